/* The ends of [0, 1] in loops over probabilities.
 *
 * A loop computes every element as if it were inside (0, 1), which costs no select; where the marks say
 * that one was not, a second loop puts right what the first wrote there: 0 and 1 stay as they are, and
 * what is no probability becomes NaN.
 */
#ifndef BINCP_ENDS_H
#define BINCP_ENDS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "numerics/bits.h"
#include "numerics/constants.h"

/* A number whose sign bit is set unless 0 < p < 1. */
static ALWAYS_INLINE uint64_t mark_of_end(double p)
{
    return (bits_of(1.0) - 1 - bits_of(p)) | (bits_of(p) - 1);
}

static ALWAYS_INLINE int is_marked(uint64_t marks)
{
    return (marks >> 63) != 0;
}

static ALWAYS_INLINE void mend_ends(const double *p, size_t n, double *out)
{
    for (size_t i = 0; i < n; ++i) {
        if (is_marked(mark_of_end(p[i]))) {
            out[i] = probability_or_nan(p[i]);
        }
    }
}

/* All bounds where nothing is moved. */
static inline void fill_unmoved(const double *p, size_t n, double *out)
{
    for (size_t i = 0; i < n; ++i) {
        out[i] = probability_or_nan(p[i]);
    }
}

#endif
