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

/* The same for -log T of a law whose density falls from the centre, and is log-concave: the curve is
 * convex, so a point near the root proves one on its side. */
double bincp_solve_tail(curve_fn f, const void *params, double target, double target_error,
                        double start, int side);

/* Numbers of coefficients, which are multiples of four. */
enum { BINCP_EXPP_NEAR = 16, BINCP_EXPP_FAR = 40, BINCP_SECH_NEAR = 20, BINCP_SECH_FAR = 28 };

/* Density exp(-|x|^power) / (2 gamma). */
typedef struct bincp_expp {
    double power, gamma;    /* power >= 1; gamma = Gamma(1 + 1 / power) */
    double rise, far_units; /* what bincp_expp_make adds, see incomplete.c */
    double near[BINCP_EXPP_NEAR], far[BINCP_EXPP_FAR];
} bincp_expp;

/* Density norm sech(x)^(2 alpha). */
typedef struct bincp_sech {
    double alpha, norm; /* alpha >= 1/2; norm = Gamma(alpha + 1/2) / (Gamma(alpha) sqrt(pi)) */
    double first;       /* what bincp_sech_make adds, see incomplete.c */
    double near[BINCP_SECH_NEAR], far[BINCP_SECH_FAR];
} bincp_sech;

bincp_expp bincp_expp_make(double power, double gamma);
bincp_sech bincp_sech_make(double alpha, double norm);

/* -log T(x) for x >= 0, where T(x) is the mass beyond x; `params` is one of the structs above. */
curve bincp_expp_tail(double x, const void *params);
curve bincp_sech_tail(double x, const void *params);

#endif
