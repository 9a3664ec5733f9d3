/* The probes of the floating-point mode, in the modes that this machine can be set to. */
#include "numerics/float_mode.h"

#include <fenv.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "check.h"

int main(void)
{
    static const int directions[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    CHECK(bincp_find_float_mode() == BINCP_FLOATS_STRICT);
    for (int i = 0; i < 3; i++) {
        fesetround(directions[i]);
        const bincp_float_mode found = bincp_find_float_mode();
        fesetround(FE_TONEAREST);
        CHECK(found == BINCP_FLOATS_NOT_NEAREST);
    }
#if defined(__SSE2__)
    static const unsigned flags[] = {0x8000, 0x0040, 0x8040}; /* results, arguments, and both */
    for (int i = 0; i < 3; i++) {
        const unsigned before = _mm_getcsr();
        _mm_setcsr(before | flags[i]);
        const bincp_float_mode found = bincp_find_float_mode();
        _mm_setcsr(before);
        CHECK(found == BINCP_FLOATS_FLUSHED);
    }
#endif
    CHECK(bincp_find_float_mode() == BINCP_FLOATS_STRICT);
    return report("float_mode");
}
