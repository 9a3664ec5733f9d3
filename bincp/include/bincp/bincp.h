/* bincp/bincp.h - the public C interface of bincp. Its folder is bincp.get_include().
 *
 * An operator is the certificate of one smoothing scheme for one perturbation ball: a struct of two
 * function pointers. It crosses the border to Python in a capsule named BINCP_OPERATOR_CAPSULE, in
 * both directions: bincp takes one wherever a certificate is made (Certificate.from_native, and what
 * a factory given to bincp.register returns), and `certificate.operator.capsule` hands one out.
 * What else C code may want is in a table of functions, bincp_api, that bincp_import fetches:
 * nothing is linked.
 *
 * Rules: members are only ever appended, never reordered or retyped, so a provider that is newer
 * than its consumer will do; `struct_size` lets each side see which members the other side knows.
 * BINCP_ABI_VERSION changes when the meaning of a member does. Functions may be called from any
 * thread without the GIL, except where it says otherwise.
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
#define BINCP_API_CAPSULE "bincp._C_API" /* where it is: a name that stays */

struct _object; /* Python's PyObject */

/* ---- operators ------------------------------------------------------------------------------- */

/* A bound of a certificate: p in [0, 1] to a probability in [0, 1], or NaN for p outside [0, 1].
 * Rounded outward: a lower bound down, an upper bound up. Non-decreasing in p up to that rounding:
 * 1e-12 relative, or 1e-15 absolute. */
typedef double (*bincp_bound_fn)(double p, const void *params);

typedef struct bincp_operator {
    uint32_t abi_version;  /* BINCP_ABI_VERSION of the header that it was built with */
    uint32_t struct_size;  /* sizeof(bincp_operator) of that header */
    const char *name;      /* for messages, e.g. "gaussian"; never NULL */
    bincp_bound_fn lower;  /* worst-case p over the ball */
    bincp_bound_fn upper;  /* best-case p over the inverted ball */
    const void *params;    /* passed to both; owned by whoever made the operator */
} bincp_operator;

/* An operator that is given to bincp may have NULL for `upper`: the generalised inverse of `lower`
 * is put there. It lives until the destructor of its capsule frees it, which is called when bincp
 * needs it no more; one in static memory needs no destructor. An operator that bincp hands out has
 * both bounds. If a function from outside leaves [0, 1], its bound is NaN. */

/* Initial value of an operator that a function of the table will fill in. */
#define BINCP_OPERATOR_INIT                                                       \
    {                                                                             \
        BINCP_ABI_VERSION, (uint32_t)sizeof(bincp_operator), NULL, NULL, NULL, NULL \
    }

/* ---- the table ------------------------------------------------------------------------------- */

/* Functions that return int return 0, or -1 where an argument is not as stated here; then nothing
 * was written. Functions that return double return NaN instead. Nothing allocates: `storage` is the
 * caller's, aligned as by malloc, and must outlive the operator that is made in it. `op` must hold
 * BINCP_OPERATOR_INIT. New members come last. */
typedef struct bincp_api {
    uint32_t abi_version; /* BINCP_ABI_VERSION of the bincp that is installed */
    uint32_t struct_size; /* sizeof(bincp_api) there */

    /* counts[row] = #{scores of the row >= threshold} for rows of n_samples < 2^31 adjacent scores.
     * Returns 1 if a score is NaN (the counts then mean nothing). The threshold is not NaN. */
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
    int (*sparse)(size_t additions, size_t deletions, double p_plus, double p_minus,
                  void *storage, bincp_operator *op);

    /* out[i] = bound(p[i], params) for i < n. */
    void (*fill)(bincp_bound_fn bound, const void *params, const double *p, size_t n, double *out);

    /* An upper bound from a lower one: the largest q with lower(q) <= p, from above. NaN where
     * `lower` is. */
    double (*inverse)(bincp_bound_fn lower, const void *params, double p);

    /* The operator of a Python certificate (or of its `operator`), borrowed: valid as long as that
     * object lives. Needs the GIL. NULL with a Python error set where it is made of Python code. */
    const bincp_operator *(*operator_of)(struct _object *certificate);

    /* out[j] = x[j] with the noise of one draw at one input, n < 2^34. A NULL x stands for zeros,
     * and x may be out. `stream` is 0 for calibration, 1 for test and 6 for tuning noise, id < 2^56.
     * Gaussian noise has deviation sigma, uniform noise is on [-half_width, half_width]; flips are
     * as those of bincp.smoothing.SparseFlip. */
    int (*gaussian_row)(uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw, float sigma,
                        size_t n, const float *x, float *out);
    int (*uniform_row)(uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw,
                       float half_width, size_t n, const float *x, float *out);
    int (*flip_row)(uint64_t seed, uint32_t stream, uint64_t id, uint32_t draw, double p_plus,
                    double p_minus, size_t n, const float *x, float *out);
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
