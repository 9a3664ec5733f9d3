/* Functions from outside, good and broken, that tests/certificates/test_native.py loads as a shared library. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "bincp/bincp.h"

double shifted_lower(double p, void *shift)
{
    return fmax(nextafter(p - *(const double *)shift, 0.0), 0.0);
}

double shifted_upper(double p, void *shift)
{
    return fmin(nextafter(p + *(const double *)shift, 1.0), 1.0);
}

double tenth_lower(double p)
{
    double shift = 0.1;
    return shifted_lower(p, &shift);
}

double tenth_upper(double p)
{
    double shift = 0.1;
    return shifted_upper(p, &shift);
}

/* ---- broken ---------------------------------------------------------------------------------- */

double falling(double p)
{
    return p < 0.5 ? p : 1.0 - p;
}

double rising(double p)
{
    return sqrt(p);
}

double far_upper(double p)
{
    return fmin(p + 0.2, 1.0);
}

double not_a_number(double p)
{
    return p == 0.25 ? NAN : 0.5 * p;
}

double above_one(double p)
{
    return p == 1.0 ? 1.0 + 1e-15 : p;
}

double below_zero(double p)
{
    return p - 0.5;
}

/* Broken at and just above 0.3, where no point of a grid of k / 64 is. */
double nan_off_the_grid(double p)
{
    return p >= 0.3 && p < 0.3001 ? NAN : tenth_lower(p);
}

double two_off_the_grid(double p)
{
    return p == 0.3 ? 2.0 : p;
}

float single(float p)
{
    return p;
}

/* ---- the GIL --------------------------------------------------------------------------------- */

/* Spins until another thread has moved the counter on, or for too long: data[0] is the counter and
 * data[1] gets 1 where it was seen to move. */
double waits_for_another_thread(double p, void *data)
{
    volatile long long *shared = data;
    const long long before = shared[0];
    for (long i = 0; i < 2000000000L && p == 0.3; ++i) {
        if (shared[0] != before) {
            shared[1] = 1;
            break;
        }
    }
    return p;
}

/* ---- structs --------------------------------------------------------------------------------- */

static double shift = 0.1;

static double bound_lower(double p, const void *params)
{
    return fmax(nextafter(p - *(const double *)params, 0.0), 0.0);
}

static double bound_upper(double p, const void *params)
{
    return fmin(nextafter(p + *(const double *)params, 1.0), 1.0);
}

bincp_operator both = {
    BINCP_ABI_VERSION, sizeof(bincp_operator), "both", bound_lower, bound_upper, &shift, NULL, NULL,
};
bincp_operator lower_only = {
    BINCP_ABI_VERSION, sizeof(bincp_operator), "lower only", bound_lower, NULL, &shift, NULL, NULL,
};
bincp_operator crossed = {
    BINCP_ABI_VERSION,
    sizeof(bincp_operator),
    "crossed",
    bound_upper,
    bound_lower,
    &shift,
    NULL,
    NULL,
};
bincp_operator old_version = {
    BINCP_ABI_VERSION - 1, sizeof(bincp_operator), "old", bound_lower, NULL, &shift, NULL, NULL,
};
bincp_operator too_short = {
    BINCP_ABI_VERSION,
    offsetof(bincp_operator, lower_fill) - 1,
    "short",
    bound_lower,
    NULL,
    &shift,
    NULL,
    NULL,
};
bincp_operator latin_1 = {
    BINCP_ABI_VERSION,
    sizeof(bincp_operator),
    "d\xe9j\xe0",
    bound_lower,
    bound_upper,
    &shift,
    NULL,
    NULL,
};
bincp_operator unnamed = {
    BINCP_ABI_VERSION, sizeof(bincp_operator), NULL, bound_lower, NULL, &shift, NULL, NULL,
};
bincp_operator empty = BINCP_OPERATOR_INIT;

/* A later version of the struct: members that we do not know come behind. */
struct {
    bincp_operator known;
    void *appended;
} longer = {
    {BINCP_ABI_VERSION, sizeof longer, "longer", bound_lower, bound_upper, &shift, NULL, NULL},
    NULL,
};

/* ---- functions for arrays -------------------------------------------------------------------- */

long long fill_calls = 0;

static void lower_fill(const double *p, size_t n, const void *params, double *out)
{
    ++fill_calls;
    for (size_t i = 0; i < n; ++i) {
        out[i] = bound_lower(p[i], params);
    }
}

static void upper_fill(const double *p, size_t n, const void *params, double *out)
{
    ++fill_calls;
    for (size_t i = 0; i < n; ++i) {
        out[i] = bound_upper(p[i], params);
    }
}

/* The bounds of lower_fill, but a unit in the last place more at one point of the grid. */
static void other_fill(const double *p, size_t n, const void *params, double *out)
{
    lower_fill(p, n, params, out);
    for (size_t i = 0; i < n; ++i) {
        out[i] = p[i] == 0.75 ? nextafter(out[i], 1.0) : out[i];
    }
}

/* The bounds of lower_fill at equal distances, and no loss at all in between. */
static void between_fill(const double *p, size_t n, const void *params, double *out)
{
    lower_fill(p, n, params, out);
    for (size_t i = 0; i < n; ++i) {
        if (p[i] * 1024.0 != floor(p[i] * 1024.0)) {
            out[i] = p[i];
        }
    }
}

/* Leaves [0, 1] at 0.3, is NaN at 0.7 and writes nothing at 0.9, none of which is on the grid. */
static void wild_fill(const double *p, size_t n, const void *params, double *out)
{
    for (size_t i = 0; i < n; ++i) {
        if (p[i] != 0.9) {
            out[i] = p[i] == 0.3 ? -0.5 : p[i] == 0.7 ? NAN : bound_lower(p[i], params);
        }
    }
}

static void fatal_fill(const double *p, size_t n, const void *params, double *out)
{
    (void)p, (void)n, (void)params, (void)out;
    abort();
}

bincp_operator with_fills = {
    BINCP_ABI_VERSION, sizeof(bincp_operator),
    "with fills",      bound_lower,
    bound_upper,       &shift,
    lower_fill,        upper_fill,
};
bincp_operator between_values = {
    BINCP_ABI_VERSION, sizeof(bincp_operator), "between values", bound_lower, bound_upper, &shift,
    between_fill, upper_fill,
};
bincp_operator lower_fill_only = {
    BINCP_ABI_VERSION,
    sizeof(bincp_operator),
    "lower fill",
    bound_lower,
    NULL,
    &shift,
    lower_fill,
    NULL,
};
bincp_operator upper_fill_only = {
    BINCP_ABI_VERSION, sizeof(bincp_operator), "upper fill", bound_lower, NULL, &shift, NULL,
    upper_fill,
};
bincp_operator other_values = {
    BINCP_ABI_VERSION, sizeof(bincp_operator),
    "other values",    bound_lower,
    bound_upper,       &shift,
    other_fill,        upper_fill,
};
bincp_operator wild_values = {
    BINCP_ABI_VERSION, sizeof(bincp_operator),
    "wild values",     bound_lower,
    bound_upper,       &shift,
    wild_fill,         NULL,
};

/* The struct of the first header, which ends before the fills: what lies behind it, as here, is not
 * a part of it. */
struct {
    uint32_t abi_version, struct_size;
    const char *name;
    bincp_bound_fn lower, upper;
    const void *params;
    bincp_fill_fn behind[2];
} first_header = {
    BINCP_ABI_VERSION,
    offsetof(bincp_operator, lower_fill),
    "first",
    bound_lower,
    bound_upper,
    &shift,
    {fatal_fill, fatal_fill},
};
