/* exp, log and their kin beyond the numbers that the kernels ask for, and sums of two doubles, for the
 * sanitizers. */
#include "numerics/double_double.h"
#include "numerics/functions.h"

#include <float.h>
#include <math.h>

#include "check.h"

static int is_pair(pair value, double hi, double lo)
{
    return value.hi == hi && value.lo == lo;
}

static void test_pairs(void)
{
    const pair one = {1.0, 0x1p-60}, square = {1.0, 0x1p-59}; /* up to 2^-120 */
    CHECK(is_pair(dd_mul(one, one), 1.0, 0x1p-59) && is_pair(dd_div(square, one), 1.0, 0x1p-60));
    CHECK(is_pair(dd_add(one, 0x1p-60), 1.0, 0x1p-59) && is_pair(dd_complement(0x1p-60), 1.0, -0x1p-60));
    CHECK(is_pair(two_sum(0x1p-60, 1.0), 1.0, 0x1p-60) && is_pair(two_sum(1.0, 0x1p-60), 1.0, 0x1p-60));
    CHECK(is_pair(fast_two_sum(1.0, 0x1p-60), 1.0, 0x1p-60) && dd_from(3).hi == 3.0);
}

int main(void)
{
    test_pairs();
    CHECK(log_of(0.0) == -INFINITY && log_of(INFINITY) == INFINITY && isnan(log_of(-1.0)));
    CHECK(isnan(log_of(NAN)) && log_of(1.0) == 0.0);
    CHECK(log1p_of(-1.0) == -INFINITY && log1p_of(INFINITY) == INFINITY && isnan(log1p_of(-2.0)));
    CHECK(log1p_of(0.0) == 0.0 && signbit(log1p_of(-0.0)) && fabs(log1p_of(1.0) - log(2.0)) < 1e-15);
    CHECK(expm1_of(-1e3) == -1.0 && expm1_of(1e3) == INFINITY && signbit(expm1_of(-0.0)));
    CHECK(fabs(expm1_of(1.0) - expm1(1.0)) < 1e-15 && fabs(expm1_of(-45.0) + 1.0) <= DBL_EPSILON);
    CHECK(fabs(expm1_of(45.0) / expm1(45.0) - 1.0) < 1e-14);
    CHECK(exp_of(-1e3) == 0.0 && exp_of(1e3) == INFINITY && exp_of(0.0) == 1.0);
    CHECK(pow_of(0.0, 2.0) == 0.0 && pow_of(INFINITY, 2.0) == INFINITY && pow_of(0.5, 1e300) == 0.0);
    CHECK(pow_of(1.5, 1e300) == INFINITY && fabs(pow_of(2.0, 0.5) - sqrt(2.0)) < 1e-15);
    return report("functions");
}
