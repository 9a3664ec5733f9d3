/* Likelihood-ratio regions of categorical smoothing. */
#ifndef BINCP_CATEGORICAL_REGIONS_H
#define BINCP_CATEGORICAL_REGIONS_H

#include <stddef.h>

#include "numerics/strict_floats.h"

/* Coordinates that are perturbed in the same way. The likelihood ratio of each is one of three
 * powers of a common base: exponent[i] has the probability hi[i] + lo[i]. */
typedef struct bincp_coordinates {
    size_t count;
    size_t exponent[3];
    double hi[3], lo[3];
} bincp_coordinates;

/* mass[e] = probability that the exponents of all coordinates of all kinds add up to e, for
 * e < size, where size - 1 is the largest possible sum.
 *
 * Like those of all regions, the errors are bounded by a relative BINCP_CATEGORICAL_SLACK and an
 * absolute bincp_categorical_tiny(...). The workspace holds 4 (size + largest
 * exponent) doubles.
 */
#define BINCP_CATEGORICAL_SLACK 9e-16
double bincp_categorical_tiny(const bincp_coordinates *kinds, size_t n_kinds, size_t size);
void bincp_categorical_masses(const bincp_coordinates *kinds, size_t n_kinds, size_t size,
                              double *mass, double *workspace);

#endif
