/* Tails of the one-dimensional laws behind additive noise, as points of smooth increasing curves,
 * and the root finding on such curves. */
#ifndef BINCP_INCOMPLETE_H
#define BINCP_INCOMPLETE_H

#include "numerics/strict_floats.h"

/* A point of an increasing curve f at z: f, f', f'' / f', and a bound on the absolute error of f.
 * Soundness rests on `error` alone; the derivatives decide only how fast a root is found. */
typedef struct curve {
    double value, slope, bend, error;
} curve;

typedef curve (*curve_fn)(double z, const void *params);

/* A z >= 0 near the root of f = target, on a proven side of it: f(z) >= target for `side` 1,
 * f(z) <= target for `side` -1, where |target - the number meant| <= target_error. Where no side can
 * be proven it is the end of the range: infinity, or 0. */
double bincp_solve(curve_fn f, const void *params, double target, double target_error, double start,
                  int side);

/* Density exp(-|x|^power) / (2 gamma). */
typedef struct bincp_expp {
    double power, gamma; /* power >= 1; gamma = Gamma(1 + 1 / power) */
} bincp_expp;

/* Density norm sech(x)^(2 alpha). */
typedef struct bincp_sech {
    double alpha, norm; /* alpha >= 1/2; norm = Gamma(alpha + 1/2) / (Gamma(alpha) sqrt(pi)) */
} bincp_sech;

/* -log T(x) for x >= 0, where T(x) is the mass beyond x; `params` is one of the structs above. */
curve bincp_expp_tail(double x, const void *params);
curve bincp_sech_tail(double x, const void *params);

#endif
