/* The largest errors of exp_scaled and log_scaled against the long doubles of the C library, which are
 * exact to 2^-64: over every mantissa of a float (or every so-manieth, the first argument), at several
 * exponents. The errors are printed in units of 2^-53 of the result, and compared with what
 * numerics/elementary.h states.
 */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "numerics/elementary.h"

#if LDBL_MANT_DIG < 64
#error "the test needs a long double of 64 bits or more"
#endif

enum { MANTISSAS = 1 << 23 };

/* 1 to 2, in steps of 2^-23. */
static double mantissa(long i)
{
    return 1.0 + (double)i * 0x1p-23;
}

static double units_off(long double got, long double exact)
{
    return (double)(fabsl(got - exact) / (fabsl(exact) * 0x1p-53L));
}

static double exp_error(long step, int exponent, double sign)
{
    double most = 0.0;
    for (long i = 0; i < MANTISSAS; i += step) {
        const double x = sign * ldexp(mantissa(i), exponent);
        const scaled power = exp_scaled(x);
        most = fmax(most, units_off(ldexpl(power.value, (int)power.k), expl(x)));
    }
    return most;
}

/* Of w = mantissa 2^exponent, split as the kernels do. */
static double log_error(long step, int exponent)
{
    double most = 0.0;
    for (long i = 0; i < MANTISSAS; i += step) {
        const double w = ldexp(mantissa(i), exponent);
        most = fmax(most, w == 1.0 ? fabs(log_scaled(split(w))) : units_off(log_scaled(split(w)), logl(w)));
    }
    return most;
}

static int check(const char *what, int exponent, double error, double limit)
{
    printf("%s at 2^%d: %.3f units of %.1f\n", what, exponent, error, limit);
    return error <= limit;
}

int main(int argc, char **argv)
{
    const long step = argc > 1 ? atol(argv[1]) : 1;
    static const int exp_exponents[] = {-40, -5, -3, -2, -1, 0, 1, 3, 6, 9, 11};
    static const int log_exponents[] = {-1022, -300, -54, -5, -2};
    static const int logs_near_one[] = {-1, 0, 1, 60};
    int good = 1;
    for (size_t i = 0; i < sizeof exp_exponents / sizeof *exp_exponents; ++i) {
        const int e = exp_exponents[i];
        good &= check("exp", e, exp_error(step, e, 1.0), EXP_UNITS);
        good &= check("exp(-x)", e, exp_error(step, e, -1.0), EXP_UNITS);
    }
    for (size_t i = 0; i < sizeof log_exponents / sizeof *log_exponents; ++i) {
        good &= check("log", log_exponents[i], log_error(step, log_exponents[i]), TAIL_LOG_UNITS);
    }
    for (size_t i = 0; i < sizeof logs_near_one / sizeof *logs_near_one; ++i) {
        good &= check("log", logs_near_one[i], log_error(step, logs_near_one[i]), LOG_UNITS);
    }
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
