/* The regions of categorical smoothing, as places of a walk: coordinates move a place by the power of
 * the ratio that their outcome has.
 *
 * Step by step the masses are sums of three products of positive numbers, in pairs of doubles, so
 * that they are right to a few units in the last place however many steps there are.
 */
#include "certificates/categorical_regions.h"

#include "numerics/clones.h"
#include "numerics/double_double.h"

#define TRUE_MIN 4.9406564584124654e-324 /* the smallest positive double */

double bincp_walk_tiny(const bincp_stride *steps, size_t n_steps, size_t size)
{
    double times = 1.0;
    for (size_t i = 0; i < n_steps; ++i) {
        times += (double)steps[i].times;
    }
    return 16.0 * times * (double)size * TRUE_MIN;
}

/* One step: to[i] = sum of weight[j] from[i - offset[j]] for i < n; zeros stand before `from`. */
CLONES_V4 static void walk_on(const bincp_stride *steps, const double *restrict from_hi,
                              const double *restrict from_lo, size_t n, double *restrict to_hi,
                              double *restrict to_lo)
{
    for (size_t i = 0; i < n; ++i) {
        to_hi[i] = to_lo[i] = 0.0;
    }
    for (size_t j = 0; j < 3; ++j) {
        const pair weight = {steps->hi[j], steps->lo[j]};
        const double *const source_hi = from_hi - steps->offset[j];
        const double *const source_lo = from_lo - steps->offset[j];
        if (weight.hi == 0.0) {
            continue;
        }
        for (size_t i = 0; i < n; ++i) {
            const pair mass = {source_hi[i], source_lo[i]};
            pair product = times(mass, weight);
            /* What can be reached stays positive. */
            product.hi = mass.hi > 0.0 && product.hi < TRUE_MIN ? TRUE_MIN : product.hi;
            const pair sum = two_sum(to_hi[i], product.hi);
            const pair result = fast_two_sum(sum.hi, sum.lo + (to_lo[i] + product.lo));
            to_hi[i] = result.hi;
            to_lo[i] = result.lo;
        }
    }
}

static size_t farthest(const bincp_stride *steps)
{
    size_t most = 0;
    for (size_t j = 0; j < 3; ++j) {
        most = steps->offset[j] > most ? steps->offset[j] : most;
    }
    return most;
}

void bincp_walk_masses(const bincp_stride *steps, size_t n_steps, size_t size, double *mass,
                       double *workspace)
{
    size_t margin = 0;
    for (size_t k = 0; k < n_steps; ++k) {
        margin = farthest(steps + k) > margin ? farthest(steps + k) : margin;
    }
    const size_t stride = margin + size;
    for (size_t i = 0; i < 4 * stride; ++i) {
        workspace[i] = 0.0;
    }
    double *here = workspace + margin; /* its low parts are `stride` behind it */
    double *there = here + 2 * stride;
    here[0] = 1.0;
    size_t reach = 0;
    for (size_t k = 0; k < n_steps; ++k) {
        for (size_t t = 0; t < steps[k].times; ++t) {
            reach += farthest(steps + k);
            walk_on(steps + k, here, here + stride, reach + 1, there, there + stride);
            double *const left = here;
            here = there;
            there = left;
        }
    }
    for (size_t i = 0; i < size; ++i) {
        mass[i] = here[i];
    }
}
