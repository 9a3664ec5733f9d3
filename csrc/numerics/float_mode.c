/* Probes of the floating-point mode. Their numbers are volatile, so that no compiler computes them. */
#include "numerics/float_mode.h"

static int is_wide(void)
{
    /* x + y lies just below the middle of x and x + 4. Rounded to 64 bits it becomes the middle. */
    volatile const double x = 18014398509481988.0, y = 2.0 - 0x1p-15;
    volatile const double difference = (x + y) - x;
    return difference != 0.0;
}

static int is_flushed(void)
{
    volatile const double least_normal = 0x1p-1022, least = 0x1p-1074;
    volatile const double half = least_normal * 0.5, grown = least * 0x1p1000;
    return half * 0x1p1000 != 0x1p-23 || grown != 0x1p-74;
}

static int is_nearest(void)
{
    volatile const double one = 1.0, little = 0x1p-54, much = 0x3p-54;
    volatile const double down = one + little, up = one + much;
    return down == 1.0 && up == 1.0 + 0x1p-52;
}

/* The direction comes first, as it decides what the other probes see. */
bincp_float_mode bincp_find_float_mode(void)
{
    if (!is_nearest()) {
        return BINCP_FLOATS_NOT_NEAREST;
    }
    if (is_wide()) {
        return BINCP_FLOATS_WIDE;
    }
    return is_flushed() ? BINCP_FLOATS_FLUSHED : BINCP_FLOATS_STRICT;
}
