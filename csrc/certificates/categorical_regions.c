/* The masses of the regions of categorical smoothing (see categorical_regions.h).
 *
 * Coordinates are added one by one. Each step makes a mass from three products of positive numbers,
 * in sums of two doubles, so the masses are right to a few units in the last place however many
 * coordinates there are.
 */
#include "certificates/categorical_regions.h"

#include "numerics/clones.h"
#include "numerics/constants.h"
#include "numerics/double_double.h"

double bincp_categorical_tiny(const bincp_coordinates *kinds, size_t n_kinds, size_t size)
{
    double steps = 1.0;
    for (size_t i = 0; i < n_kinds; ++i) {
        steps += (double)kinds[i].count;
    }
    return 16.0 * steps * (double)size * TRUE_MIN;
}

/* Add one coordinate: to[e] = sum over j of probability j times from[e - exponent j], for e < n.
 * Zeros stand before `from`. */
CLONES_V4 static void add_coordinate(const bincp_coordinates *kind, const double *restrict from_hi,
                                     const double *restrict from_lo, size_t n,
                                     double *restrict to_hi, double *restrict to_lo)
{
    for (size_t i = 0; i < n; ++i) {
        to_hi[i] = to_lo[i] = 0.0;
    }
    for (size_t j = 0; j < 3; ++j) {
        const pair weight = {kind->hi[j], kind->lo[j]};
        const double *const source_hi = from_hi - kind->exponent[j];
        const double *const source_lo = from_lo - kind->exponent[j];
        if (weight.hi == 0.0) {
            continue;
        }
        for (size_t i = 0; i < n; ++i) {
            const pair mass = {source_hi[i], source_lo[i]};
            pair product = dd_mul(mass, weight);
            /* A possible sum keeps a positive mass, also where the product underflows. */
            product.hi = mass.hi > 0.0 && product.hi < TRUE_MIN ? TRUE_MIN : product.hi;
            const pair sum = two_sum(to_hi[i], product.hi);
            const pair result = fast_two_sum(sum.hi, sum.lo + (to_lo[i] + product.lo));
            to_hi[i] = result.hi;
            to_lo[i] = result.lo;
        }
    }
}

static size_t largest_exponent(const bincp_coordinates *kind)
{
    size_t largest = 0;
    for (size_t j = 0; j < 3; ++j) {
        largest = kind->exponent[j] > largest ? kind->exponent[j] : largest;
    }
    return largest;
}

void bincp_categorical_masses(const bincp_coordinates *kinds, size_t n_kinds, size_t size,
                              double *mass, double *workspace)
{
    size_t margin = 0;
    for (size_t k = 0; k < n_kinds; ++k) {
        const size_t largest = largest_exponent(kinds + k);
        margin = largest > margin ? largest : margin;
    }
    const size_t stride = margin + size;
    for (size_t i = 0; i < 4 * stride; ++i) {
        workspace[i] = 0.0;
    }
    double *here = workspace + margin; /* its low parts follow `stride` places behind */
    double *there = here + 2 * stride;
    here[0] = 1.0;
    size_t largest_sum = 0;
    for (size_t k = 0; k < n_kinds; ++k) {
        for (size_t i = 0; i < kinds[k].count; ++i) {
            largest_sum += largest_exponent(kinds + k);
            add_coordinate(kinds + k, here, here + stride, largest_sum + 1, there, there + stride);
            double *const left = here;
            here = there;
            there = left;
        }
    }
    for (size_t i = 0; i < size; ++i) {
        mass[i] = here[i];
    }
}
