/* Operators that are made of other operators.
 *
 * Each struct points to operators that must outlive it, and must itself outlive the operator made of
 * it. All of them round outward where the parts do, and give NaN where a part does.
 */
#ifndef BINCP_COMBINED_H
#define BINCP_COMBINED_H

#include <stddef.h>

#include "bincp/bincp.h"
#include "numerics/strict_floats.h"

/* One ball after the other, `rounds` times: `lower` takes the parts in their order, `upper` in the
 * opposite one. */
typedef struct bincp_chain {
    const bincp_operator *const *parts;
    size_t n_parts, rounds;
} bincp_chain;

/* Bounds that all hold: the largest lower bound, the smallest upper bound. */
typedef struct bincp_best {
    const bincp_operator *const *parts;
    size_t n_parts;
} bincp_best;

/* Noise that reaches all changed elements with probability w, and none of them else:
 * w lower(1 - (1 - p) / w) and 1 - w + w upper(p / w), clipped. */
typedef struct bincp_hierarchy {
    const bincp_operator *of;
    double below, above;     /* w in (0, 1), rounded to both sides */
    double rest_hi, rest_lo; /* 1 - w rounded up, and what it lacks of that, to 100 bits */
} bincp_hierarchy;

bincp_operator bincp_operator_chain(const bincp_chain *chain);
bincp_operator bincp_operator_best(const bincp_best *best);
bincp_operator bincp_operator_hierarchy(const bincp_hierarchy *hierarchy);

#endif
