/* Certificates of the form F(F^-1(p) -+ shift), with F increasing and symmetric about 1/2.
 *
 * Such a bound has radii that add up: R(lower(p)) = R(p) - r with R = F^-1. The functions take p in
 * [0, 1] and a pointer to the struct named below, and round outward: lower bounds down, upper
 * bounds up. Both tails have full relative accuracy; shift 0 gives p.
 */
#ifndef BINCP_LOCATION_H
#define BINCP_LOCATION_H

#include "numerics/incomplete.h"
#include "numerics/strict_floats.h"

/* Radius (1 / a) int_0^u dv / (1 - v^gamma) with u = 2 p - 1, in units of 1 / a. */
typedef struct bincp_pareto {
    double gamma, kappa; /* 1 + 1 / a; digamma(1 / gamma) - digamma(1) <= 0 */
} bincp_pareto;

typedef union bincp_law {
    bincp_expp expp;
    bincp_sech sech;
    bincp_pareto pareto;
} bincp_law;

typedef struct bincp_location {
    double shift; /* >= 0 or infinite, rounded up, in units of the law */
    bincp_law law;
} bincp_location;

/* A bound steps outward by the error of its curve: 1e-14 in the middle, 1e-12 where a tail is 1e-300. */

/* F of the law with the named tail; params: const bincp_location *. */
double bincp_expp_lower(double p, const void *params);
double bincp_expp_upper(double p, const void *params);
double bincp_sech_lower(double p, const void *params);
double bincp_sech_upper(double p, const void *params);

/* F^-1 as described at the struct; params: const bincp_location *. */
double bincp_pareto_lower(double p, const void *params);
double bincp_pareto_upper(double p, const void *params);

/* F^-1 = 2 int_c^inf t / (exp(t) - 1) dt with (1 + c) exp(-c) = 2 p - 1; params: const double
 * *shift. F has a bounded range: the bounds at p = 0 and 1 are the limits there. */
double bincp_half_power_lower(double p, const void *params);
double bincp_half_power_upper(double p, const void *params);

/* The curves of the last two laws: F^-1 for z = -log(2 (1 - p)) > 0; and for c, with the mass
 * w = 2 (1 - p): log w, -log(1 - w), the distance of F^-1 from the end of its range, and
 * -log F^-1. */
curve bincp_pareto_position(double z, const void *params);
curve bincp_half_power_log_mass(double c, const void *params);
curve bincp_half_power_log_rest(double c, const void *params);
curve bincp_half_power_edge(double c, const void *params);
curve bincp_half_power_log_position(double c, const void *params);

#endif
