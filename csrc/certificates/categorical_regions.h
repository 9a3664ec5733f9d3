/* Likelihood-ratio regions of categorical flips, as the ends of a walk. */
#ifndef BINCP_WALK_H
#define BINCP_WALK_H

#include <stddef.h>

#include "numerics/strict_floats.h"

/* Independent steps of a walk along 0, 1, 2, ...: each of `times` steps goes offset[i] places with
 * the probability hi[i] + lo[i]. */
typedef struct bincp_stride {
    size_t times;
    size_t offset[3];
    double hi[3], lo[3];
} bincp_stride;

/* Masses of the places 0 .. size - 1, the farthest one, where a walk from 0 ends.
 *
 * Errors are bounded like those of regions. The workspace holds 4 (size + largest offset) doubles.
 */
#define BINCP_WALK_SLACK 9e-16
double bincp_walk_tiny(const bincp_stride *steps, size_t n_steps, size_t size);
void bincp_walk_masses(const bincp_stride *steps, size_t n_steps, size_t size, double *mass,
                       double *workspace);

#endif
