/* The functions of the table in bincp/bincp.h, which other people's C code calls.
 *
 * The kernels trust their callers. The callers of the table are not ours, so each function here
 * checks the scalars that a kernel relies on, in constant time, and the order of regions, on which a
 * guarantee rests, in linear time, as the kernel takes. Kernels stay hidden symbols: a table needs
 * no linking, and its size says which members it has.
 *
 * Operators are filled in through a pointer to the caller's struct. If they were returned by value,
 * the calling convention would change when the struct grows.
 */
#include "api/capi.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "certificates/knapsack.h"
#include "certificates/operators.h"
#include "certificates/sparse_regions.h"
#include "counting/count.h"
#include "noise/grid.h"
#include "noise/laws.h"
#include "numerics/binomial.h"
#include "numerics/constants.h"
#include "numerics/double_double.h"

#define MAX_COUNT ((size_t)INT32_MAX)
#define TINIEST_FLIP 1e-300 /* as bincp.smoothing.SparseFlip has it */
#define MAX_SLACK 0.01

/* ---- counting -------------------------------------------------------------------------------- */

static int count(bincp_score_type type, const void *scores, size_t n_rows, size_t n_samples,
                 const void *threshold, int threshold_is_nan, int32_t *counts)
{
    if (n_samples > MAX_COUNT || threshold_is_nan) {
        return BINCP_REFUSED;
    }
    return bincp_count_rows(type, scores, n_rows, n_samples, threshold, counts) ? BINCP_NAN_SCORE
                                                                                : BINCP_OK;
}

static int count_float16(const uint16_t *scores, size_t n_rows, size_t n_samples,
                         uint16_t threshold, int32_t *counts)
{
    const int is_nan = (threshold & 0x7fff) > 0x7c00;
    return count(BINCP_FLOAT16, scores, n_rows, n_samples, &threshold, is_nan, counts);
}

static int count_bfloat16(const uint16_t *scores, size_t n_rows, size_t n_samples,
                          uint16_t threshold, int32_t *counts)
{
    const int is_nan = (threshold & 0x7fff) > 0x7f80;
    return count(BINCP_BFLOAT16, scores, n_rows, n_samples, &threshold, is_nan, counts);
}

static int count_float32(const float *scores, size_t n_rows, size_t n_samples, float threshold,
                         int32_t *counts)
{
    return count(BINCP_FLOAT32, scores, n_rows, n_samples, &threshold, isnan(threshold), counts);
}

static int count_float64(const double *scores, size_t n_rows, size_t n_samples, double threshold,
                         int32_t *counts)
{
    return count(BINCP_FLOAT64, scores, n_rows, n_samples, &threshold, isnan(threshold), counts);
}

/* ---- binomials ------------------------------------------------------------------------------- */

static int is_trial(int64_t successes, int64_t trials)
{
    return 0 <= successes && successes <= trials && 1 <= trials && trials <= INT32_MAX;
}

static int is_level(double eta)
{
    return eta > 0.0 && eta < 1.0;
}

static double cp_lower(int64_t successes, int64_t trials, double eta)
{
    return is_trial(successes, trials) && is_level(eta) ? bincp_cp_lower(successes, trials, eta)
                                                        : NAN;
}

static double cp_upper(int64_t successes, int64_t trials, double eta)
{
    return is_trial(successes, trials) && is_level(eta) ? bincp_cp_upper(successes, trials, eta)
                                                        : NAN;
}

static int cp_table(int64_t trials, double eta, double *lower, double *upper)
{
    if (!is_trial(0, trials) || !is_level(eta)) {
        return BINCP_REFUSED;
    }
    bincp_cp_table(trials, eta, lower, upper);
    return BINCP_OK;
}

/* The success probability and its complement, up to their rounding. */
static int are_complements(double p, double q)
{
    return is_probability(p) && is_probability(q) && fabs(p + q - 1.0) <= DBL_EPSILON;
}

#define BINOMIAL(name)                                                        \
    static double name(int64_t successes, int64_t trials, double p, double q) \
    {                                                                         \
        return is_trial(successes, trials) && are_complements(p, q)           \
                   ? bincp_##name(successes, trials, p, q)                    \
                   : NAN;                                                     \
    }

BINOMIAL(binom_pmf)
BINOMIAL(binom_log_pmf)
BINOMIAL(binom_sf)
BINOMIAL(binom_cdf)

/* ---- operators ------------------------------------------------------------------------------- */

/* The caller's header may be older or newer than ours: write the members that both know. */
static int hand_out(bincp_operator made, bincp_operator *op)
{
    const uint32_t struct_size = op->struct_size;
    memcpy(op, &made, struct_size < sizeof made ? struct_size : sizeof made);
    op->struct_size = struct_size;
    return BINCP_OK;
}

static int is_fillable(const bincp_operator *op)
{
    return op->abi_version == BINCP_ABI_VERSION && op->struct_size >= BINCP_OPERATOR_MIN_SIZE;
}

static int make_shift(bincp_builtin kind, double shift, double *storage, bincp_operator *op)
{
    if (!(shift >= 0.0) || !is_fillable(op)) {
        return BINCP_REFUSED;
    }
    *storage = shift;
    return hand_out(bincp_operator_make(kind, storage), op);
}

static int gaussian(double shift, double *storage, bincp_operator *op)
{
    return make_shift(BINCP_GAUSSIAN, shift, storage, op);
}

static int uniform(double shift, double *storage, bincp_operator *op)
{
    return make_shift(BINCP_UNIFORM, shift, storage, op);
}

/* The workspace that makes the regions lies behind them. */
static size_t regions_bytes(size_t n)
{
    return bincp_operator_regions_bytes(n) + bincp_regions_workspace(n) * sizeof(double);
}

/* a b (1 + slack) >= c d, for factors in [0, 1], without underflow. */
static int product_reaches(double a, double b, double slack, double c, double d)
{
    int exponents[4];
    const double left = frexp(a, &exponents[0]) * frexp(b, &exponents[1]);
    const double right = frexp(c, &exponents[2]) * frexp(d, &exponents[3]);
    const int apart = exponents[0] + exponents[1] - exponents[2] - exponents[3];
    return right == 0.0 || ldexp(left * (1.0 + slack), apart) >= right;
}

/* The sum of masses; NaN if one of them is no probability. */
static double total(const double *masses, size_t n)
{
    pair sum = {0.0, 0.0};
    for (size_t i = 0; i < n; ++i) {
        if (!is_probability(masses[i])) {
            return NAN;
        }
        const pair next = two_sum(sum.hi, masses[i]);
        sum = (pair){next.hi, sum.lo + next.lo};
    }
    return sum.hi + sum.lo;
}

/* Neighbours may be in the wrong order by what the errors of four masses allow. A region without
 * any mass has no ratio: it is in order with all others, so those around it are compared. */
static int are_ordered(const double *clean, const double *perturbed, size_t n, double slack)
{
    size_t last = 0;
    for (size_t i = 1; i < n; ++i) {
        if (clean[i] == 0.0 && perturbed[i] == 0.0) {
            continue;
        }
        if (!product_reaches(clean[last], perturbed[i], 4.0 * slack, clean[i], perturbed[last])) {
            return 0;
        }
        last = i;
    }
    return 1;
}

static int regions(const double *clean, const double *perturbed, size_t n, double slack,
                   double tiny, void *storage, bincp_operator *op)
{
    if (n == 0 || n > MAX_COUNT || !(slack >= UNIT_ROUNDOFF && slack <= MAX_SLACK) ||
        !(tiny >= 0.0) || !is_fillable(op)) {
        return BINCP_REFUSED;
    }
    const double sums[] = {total(clean, n), total(perturbed, n)};
    const double rounding = (double)n * DBL_EPSILON + slack;
    if (!(fabs(sums[0] - 1.0) <= rounding && fabs(sums[1] - 1.0) <= rounding) ||
        !are_ordered(clean, perturbed, n, slack)) {
        return BINCP_REFUSED;
    }
    const double excess = fmax(fmax(sums[0], sums[1]) - 1.0, 0.0); /* no set may have more than 1 */
    double *const workspace = (double *)(void *)((char *)storage + bincp_operator_regions_bytes(n));
    return hand_out(
        bincp_operator_regions(clean, perturbed, n, slack, tiny + excess, storage, workspace), op);
}

static int is_flip(double p)
{
    return p == 0.0 || (p >= TINIEST_FLIP && p <= 1.0);
}

static int are_flips(size_t additions, size_t deletions, double p_plus, double p_minus)
{
    return additions <= MAX_COUNT && deletions < MAX_COUNT - additions && is_flip(p_plus) &&
           is_flip(p_minus);
}

/* The workspace that makes the regions lies behind them; the workspace of the masses is smaller. */
static size_t sparse_bytes(size_t additions, size_t deletions)
{
    return bincp_operator_regions_bytes(additions + deletions + 1) +
           bincp_operator_sparse_workspace(additions, deletions) * sizeof(double);
}

static int sparse_masses(size_t additions, size_t deletions, double p_plus, double p_minus,
                         double *clean, double *perturbed, void *workspace)
{
    if (!are_flips(additions, deletions, p_plus, p_minus)) {
        return BINCP_REFUSED;
    }
    bincp_sparse_masses(additions, deletions, p_plus, p_minus, clean, perturbed, workspace);
    return BINCP_OK;
}

static int sparse(size_t additions, size_t deletions, double p_plus, double p_minus, void *storage,
                  bincp_operator *op)
{
    if (!are_flips(additions, deletions, p_plus, p_minus) || !is_fillable(op)) {
        return BINCP_REFUSED;
    }
    const size_t kept = bincp_operator_regions_bytes(additions + deletions + 1);
    double *const workspace = (double *)(void *)((char *)storage + kept);
    return hand_out(
        bincp_operator_sparse(additions, deletions, p_plus, p_minus, storage, workspace), op);
}

/* ---- noise ----------------------------------------------------------------------------------- */

static int is_key(uint32_t stream, uint64_t id, size_t n)
{
    const int is_phase = stream == BINCP_STREAM_CALIBRATION || stream == BINCP_STREAM_TEST
                         || stream == BINCP_STREAM_TUNING;
    return is_phase && id <= BINCP_NOISE_MAX_ID && n <= BINCP_NOISE_MAX_LENGTH;
}

static int additive_row(bincp_noise_law law, bincp_noise_key key, float scale, size_t n,
                        const float *x, float *out)
{
    if (!is_key(key.stream, key.id, n) || !(scale >= 0.0f && scale <= FLT_MAX)) {
        return BINCP_REFUSED;
    }
    bincp_noise_add_f32(law, scale, key, n, x, out);
    return BINCP_OK;
}

static int gaussian_row(uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw, float sigma,
                        size_t n, const float *x, float *out)
{
    const bincp_noise_key key = bincp_noise_key_of(seed, stream, id, draw);
    return additive_row(BINCP_NOISE_GAUSSIAN, key, sigma, n, x, out);
}

static int uniform_row(uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw, float half_width,
                       size_t n, const float *x, float *out)
{
    const bincp_noise_key key = bincp_noise_key_of(seed, stream, id, draw);
    return additive_row(BINCP_NOISE_UNIFORM, key, half_width, n, x, out);
}

static int laplace_row(uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw, float scale,
                       size_t n, const float *x, float *out)
{
    const bincp_noise_key key = bincp_noise_key_of(seed, stream, id, draw);
    return additive_row(BINCP_NOISE_LAPLACE, key, scale, n, x, out);
}

static int grid_row(const bincp_grid_table *table, int32_t grid, uint64_t seed, uint32_t stream,
                    uint64_t id, uint32_t draw, size_t n, const int32_t *k, float *out)
{
    const bincp_noise_key key = bincp_noise_key_of(seed, stream, id, draw);
    if (!is_key(stream, id, n) || grid < 1 || grid > 1 << 20 || table->bits < 1 || table->bits > 16
        || table->half < 0 || table->half >= 1 << 15) {
        return BINCP_REFUSED;
    }
    for (size_t j = 0; k != NULL && j < n; j++) {
        if (k[j] < -(1 << 20) || k[j] > 1 << 20) {
            return BINCP_REFUSED;
        }
    }
    bincp_noise_grid_f32(*table, grid, key, n, k, out);
    return BINCP_OK;
}

static int flip_row(uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw, double p_plus,
                    double p_minus, size_t n, const float *x, float *out)
{
    const bincp_noise_key key = bincp_noise_key_of(seed, stream, id, draw);
    if (!is_key(stream, id, n) || !is_probability(p_plus) || !is_probability(p_minus)) {
        return BINCP_REFUSED;
    }
    bincp_noise_flip_f32(p_plus, p_minus, key, n, x, out);
    return BINCP_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

bincp_api bincp_api_make(const bincp_operator *(*operator_of)(struct _object *certificate))
{
    return (bincp_api){
        .abi_version = BINCP_ABI_VERSION,
        .struct_size = (uint32_t)sizeof(bincp_api),
        .count_float32 = count_float32,
        .count_float64 = count_float64,
        .cp_lower = cp_lower,
        .cp_upper = cp_upper,
        .cp_table = cp_table,
        .gaussian = gaussian,
        .uniform = uniform,
        .regions_bytes = regions_bytes,
        .regions = regions,
        .sparse_masses = sparse_masses,
        .sparse_bytes = sparse_bytes,
        .sparse = sparse,
        .fill = bincp_bound_fill,
        .inverse = bincp_generalised_inverse,
        .operator_of = operator_of,
        .gaussian_row = gaussian_row,
        .uniform_row = uniform_row,
        .flip_row = flip_row,
        .laplace_row = laplace_row,
        .count_float16 = count_float16,
        .count_bfloat16 = count_bfloat16,
        .lower_fill = bincp_lower_fill,
        .upper_fill = bincp_upper_fill,
        .binom_pmf = binom_pmf,
        .binom_log_pmf = binom_log_pmf,
        .binom_sf = binom_sf,
        .binom_cdf = binom_cdf,
        .grid_row = grid_row,
    };
}
