/* bincp/bincp.h - the public C interface of bincp. Its folder is bincp.get_include().
 *
 * An operator is the certificate of one smoothing scheme for one perturbation ball: a struct of
 * function pointers. It crosses the border to Python in a capsule named BINCP_OPERATOR_CAPSULE, in
 * both directions: bincp takes one wherever a certificate is made (Certificate.from_native, and the
 * factories given to bincp.register), and `certificate.operator.capsule` hands one out. All other
 * functions are in a table, bincp_api, that bincp_import fetches: nothing is linked.
 *
 * Rules: members are only ever appended, never reordered or retyped, so a provider may be newer than
 * its consumer; `struct_size` lets each side see which members the other side knows.
 * BINCP_ABI_VERSION changes when the meaning of a member does. Functions may be called from any
 * thread without the GIL, except where a comment says otherwise. They keep no state: two threads may
 * call them at once, but not while either of them writes the memory that the other one reads.
 */
#ifndef BINCP_BINCP_H
#define BINCP_BINCP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BINCP_ABI_VERSION 1u
#define BINCP_OPERATOR_CAPSULE "bincp.operator.v1"
#define BINCP_API_CAPSULE "bincp._C_API" /* the name stays when files move */

struct _object; /* Python's PyObject */

/* ---- operators ------------------------------------------------------------------------------- */

/* A bound of a certificate: p in [0, 1] to a probability in [0, 1], or NaN for p outside [0, 1].
 * Rounded outward: a lower bound down, an upper bound up. Non-decreasing in p up to that rounding:
 * 1e-12 relative, or 1e-15 absolute. */
typedef double (*bincp_bound_fn)(double p, const void *params);

/* The same bound at n probabilities: out[i] has the bits of bound(p[i], params) for each i < n. The
 * arrays do not overlap. */
typedef void (*bincp_fill_fn)(const double *p, size_t n, const void *params, double *out);

typedef struct bincp_operator {
    uint32_t abi_version; /* BINCP_ABI_VERSION of the header that it was built with */
    uint32_t struct_size; /* sizeof(bincp_operator) of that header */
    const char *name;     /* for messages, e.g. "gaussian"; never NULL */
    bincp_bound_fn lower; /* worst-case p over the ball */
    bincp_bound_fn upper; /* best-case p over the inverted ball */
    const void *params;   /* passed to all functions; owned by the maker of the operator */
    /* Optional: NULL, or beyond struct_size, where an array costs one call a value. */
    bincp_fill_fn lower_fill;
    bincp_fill_fn upper_fill;
} bincp_operator;

/* An operator that is given to bincp may have NULL for `upper`, and then for `upper_fill`: bincp puts
 * the generalised inverse of `lower` there. bincp calls the destructor of its capsule when it needs
 * the operator no more; an operator in static memory needs no destructor. An operator that bincp
 * hands out has both bounds. Where a function from outside leaves [0, 1], or gives NaN, the bound is
 * NaN; functions from outside are only called with p in [0, 1]. */

/* Initial value of an operator that a function of the table will fill in. */
#define BINCP_OPERATOR_INIT                                                                      \
    {                                                                                            \
        BINCP_ABI_VERSION, (uint32_t)sizeof(bincp_operator), NULL, NULL, NULL, NULL, NULL, NULL, \
    }

/* ---- the table ------------------------------------------------------------------------------- */

/* The values of functions that return int. */
typedef enum bincp_status {
    BINCP_REFUSED = -1, /* an argument is not as stated here; nothing was written */
    BINCP_OK = 0,       /* done */
    BINCP_NAN_SCORE = 1 /* a score is NaN; the counts mean nothing */
} bincp_status;

/* A law of integer noise, in 2^bits columns: bincp.noise.grid_table(scheme) has its arrays, and `half`.
 * Column c stands for the noise c - half. */
typedef struct bincp_grid_table {
    const uint32_t *entry; /* 2^bits of t' << bits | alias, t' the first 32 - bits bits of a threshold */
    const uint32_t *low;   /* 2^bits rows of the other three words of the threshold, the highest first */
    uint32_t bits;         /* 1 to 16 */
    int32_t half;          /* 0 to 2^15 - 1 */
} bincp_grid_table;

/* Functions that return int return a bincp_status; functions that return double return NaN where an
 * argument is not as stated here. Nothing allocates: `storage` is the caller's, aligned as by malloc,
 * and must outlive the operator that is made in it. `op` must hold BINCP_OPERATOR_INIT. Pointers are
 * not NULL unless a comment allows it. New members come last. */
typedef struct bincp_api {
    uint32_t abi_version; /* BINCP_ABI_VERSION of the bincp that is installed */
    uint32_t struct_size; /* sizeof(bincp_api) there */

    /* counts[row] = #{scores of the row >= threshold} for n_rows adjacent rows of n_samples < 2^31
     * adjacent scores. The threshold is not NaN. */
    int (*count_float32)(const float *scores, size_t n_rows, size_t n_samples, float threshold,
                         int32_t *counts);
    int (*count_float64)(const double *scores, size_t n_rows, size_t n_samples, double threshold,
                         int32_t *counts);

    /* One-sided Clopper-Pearson bounds: 0 <= successes <= trials, 1 <= trials < 2^31, eta in
     * (0, 1). The tables have trials + 1 values; either may be NULL. */
    double (*cp_lower)(int64_t successes, int64_t trials, double eta);
    double (*cp_upper)(int64_t successes, int64_t trials, double eta);
    int (*cp_table)(int64_t trials, double eta, double *lower, double *upper);

    /* Closed forms: Phi(Phi^-1(p) -+ shift) and clip(p -+ shift, 0, 1). 0 <= shift, rounded up by
     * the caller; it is copied to *storage. */
    int (*gaussian)(double shift, double *storage, bincp_operator *op);
    int (*uniform)(double shift, double *storage, bincp_operator *op);

    /* Fractional knapsack over 1 <= n < 2^31 likelihood-ratio regions, in decreasing order of
     * clean / perturbed mass. Each mass is in [0, 1], and each sum is 1 up to rounding: append
     * (missing, 0) first or (0, missing) last where masses were left out. The masses, and with them
     * the order, are right to a relative error `slack` in [2^-53, 0.01], or to `tiny` >= 0 where
     * they are near the smallest doubles. The masses are not needed afterwards. */
    size_t (*regions_bytes)(size_t n); /* of `storage` */
    int (*regions)(const double *clean, const double *perturbed, size_t n, double slack,
                   double tiny, void *storage, bincp_operator *op);

    /* The regions of sparse flips: additions + deletions + 1 masses each, and their knapsack.
     * Flip probabilities are 0 or at least 1e-300, additions + deletions + 1 is below 2^31. */
    int (*sparse_masses)(size_t additions, size_t deletions, double p_plus, double p_minus,
                         double *clean, double *perturbed, void *workspace);
    size_t (*sparse_bytes)(size_t additions, size_t deletions); /* of `storage`, `workspace` */
    int (*sparse)(size_t additions, size_t deletions, double p_plus, double p_minus, void *storage,
                  bincp_operator *op);

    /* out[i] = bound(p[i], params) for i < n, by one call a value. lower_fill and upper_fill, below,
     * are faster where the operator can do many values at once. */
    void (*fill)(bincp_bound_fn bound, const void *params, const double *p, size_t n, double *out);

    /* An upper bound from a lower one: the largest q with lower(q) <= p, from above. NaN where
     * `lower` is. */
    double (*inverse)(bincp_bound_fn lower, const void *params, double p);

    /* The operator of a Python certificate (or of its `operator`), borrowed: valid as long as that
     * object lives. Needs the GIL. Returns NULL with a Python error set if the certificate is made of
     * Python code. */
    const bincp_operator *(*operator_of)(struct _object *certificate);

    /* out[j] = x[j] with the noise of one draw at one input, n < 2^34. A NULL x stands for zeros,
     * and x may be out. `stream` is 0 for calibration, 1 for test and 6 for tuning noise, id < 2^56.
     * Gaussian noise has standard deviation sigma, uniform noise is on [-half_width, half_width]; both are
     * finite and >= 0. Flips turn 0 into 1 with probability p_plus, and every other number, which
     * counts as 1, into 0 with probability p_minus; what is below 2^-128 of a probability is cut off.
     * `sparse` does not pay for that, but the operator of a Python certificate does (operator_of). */
    int (*gaussian_row)(uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw, float sigma,
                        size_t n, const float *x, float *out);
    int (*uniform_row)(uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw, float half_width,
                       size_t n, const float *x, float *out);
    int (*flip_row)(uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw, double p_plus,
                    double p_minus, size_t n, const float *x, float *out);

    /* Laplace noise of density exp(-|x| / scale) / (2 scale), with finite scale >= 0. */
    int (*laplace_row)(uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw, float scale,
                       size_t n, const float *x, float *out);

    /* Counting as above, for scores and thresholds that are given as the bits of 16-bit floats:
     * IEEE half precision, and the upper half of a float32. */
    int (*count_float16)(const uint16_t *scores, size_t n_rows, size_t n_samples,
                         uint16_t threshold, int32_t *counts);
    int (*count_bfloat16)(const uint16_t *scores, size_t n_rows, size_t n_samples,
                          uint16_t threshold, int32_t *counts);

    /* A bound of `op` at n probabilities; the arrays do not overlap. `op` is any operator with both
     * bounds, of this version of the header or of an older one. */
    void (*lower_fill)(const bincp_operator *op, const double *p, size_t n, double *out);
    void (*upper_fill)(const bincp_operator *op, const double *p, size_t n, double *out);

    /* P[X = successes], its logarithm, P[X >= successes] and P[X <= successes] for X binomial with
     * success probability p, 0 <= successes <= trials, 1 <= trials < 2^31. q = 1 - p comes along
     * because the smaller of the two decides how accurate the result is. Not rounded to either side. */
    double (*binom_pmf)(int64_t successes, int64_t trials, double p, double q);
    double (*binom_log_pmf)(int64_t successes, int64_t trials, double p, double q);
    double (*binom_sf)(int64_t successes, int64_t trials, double p, double q);
    double (*binom_cdf)(int64_t successes, int64_t trials, double p, double q);

    /* out[j] = (k[j] + noise) / grid with integer noise on a grid, keyed as in gaussian_row, for
     * 1 <= grid <= 2^20 and |k[j]| <= 2^20. A NULL k stands for zeros. The operator of a scheme with
     * that grid (operator_of) is its certificate. */
    int (*grid_row)(const bincp_grid_table *table, int32_t grid, uint64_t seed, uint32_t stream,
                    uint64_t id, uint32_t draw, size_t n, const int32_t *k, float *out);
} bincp_api;

/* ---- import, for those who include Python.h first -------------------------------------------- */

#ifdef Py_PYTHON_H

/* Fetch the table; it lives as long as the interpreter. Needs the GIL. Returns NULL with a Python
 * error set: ImportError, of the kind bincp.CertificateABIError if the installed bincp has another
 * version or a shorter table than this header. */
static inline const bincp_api *bincp_import(void)
{
    const bincp_api *api = (const bincp_api *)PyCapsule_Import(BINCP_API_CAPSULE, 0);
    if (api == NULL ||
        (api->abi_version == BINCP_ABI_VERSION && api->struct_size >= sizeof(bincp_api))) {
        return api;
    }
    PyObject *errors = PyImport_ImportModule("bincp.errors");
    PyObject *error = errors ? PyObject_GetAttrString(errors, "CertificateABIError") : NULL;
    if (error != NULL) {
        PyErr_Format(error,
                     "built for version %u of bincp_api with at least %u bytes, but the installed "
                     "bincp has version %u with %u bytes",
                     (unsigned)BINCP_ABI_VERSION, (unsigned)sizeof(bincp_api),
                     (unsigned)api->abi_version, (unsigned)api->struct_size);
        Py_DECREF(error);
    }
    Py_XDECREF(errors);
    return NULL;
}

#endif

#ifdef __cplusplus
}
#endif

#endif
