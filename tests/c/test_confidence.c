/* Randomised bounds and confidence sequences on their own, for the sanitizers: `make -C tests/c`. */
#include <math.h>

#include "numerics/binomial.h"
#include "numerics/confidence.h"

#include "check.h"

static void check_bounds(int64_t s, int64_t m, double eta)
{
    double plain = bincp_cp_lower(s, m, eta), random = bincp_randomized_lower(s, m, 0.5, eta);
    CHECK(random >= plain * (1 - 1e-12) && random <= 1.0);
    CHECK(fabs(bincp_randomized_lower(s, m, 1.0, eta) - plain) <= 1e-12);
    double upper = bincp_randomized_upper(s, m, 0.5, eta);
    CHECK(upper <= bincp_cp_upper(s, m, eta) * (1 + 1e-12) && upper >= 0.0);
    double low = bincp_sequence_lower(s, m, eta), high = bincp_sequence_upper(s, m, eta);
    CHECK(low <= plain * (1 + 1e-12) && low >= 0.0 && high <= 1.0 && low < high);
    CHECK(fabs(bincp_sequence_upper(m - s, m, eta) - (1.0 - low)) <= 1e-12);
}

/* Counts without a success more, and with none less: no probability is refused, or all but one end. */
static void test_ends(void)
{
    CHECK(bincp_randomized_lower(5, 5, 0.0, 0.1) == 1.0);
    CHECK(bincp_randomized_upper(0, 5, 0.0, 0.1) == 0.0);
    /* A level among the subnormal numbers, whose neighbours differ by a hundredth of it. */
    CHECK(bincp_randomized_lower(50255280, 201588871, 1.0, 7.56e-322)
          <= bincp_cp_lower(50255280, 201588871, 7.56e-322));
    /* (1 - p)^m = 1 - 1e-300 at p = 1e-300 / m, which is subnormal. */
    CHECK(bincp_randomized_lower(1, 2147483646, 1.0, 1e-300) == 0.0);
}

int main(void)
{
    const int64_t sizes[] = {1, 2, 10, 1000, 2147483646};
    const double levels[] = {1e-300, 1e-9, 0.001, 0.1, 0.5};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        for (size_t j = 0; j < sizeof levels / sizeof *levels; ++j) {
            const int64_t m = sizes[i];
            check_bounds(0, m, levels[j]);
            check_bounds(m / 2, m, levels[j]);
            check_bounds(m, m, levels[j]);
        }
    }
    test_ends();
    return report("confidence");
}
