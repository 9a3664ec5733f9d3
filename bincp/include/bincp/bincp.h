/* bincp/bincp.h - the public C interface of bincp.
 *
 * An operator is the certificate of one smoothing scheme for one perturbation ball: a struct of
 * function pointers, which compiled code gets and calls through `bincp/_operators.pxd`. The folder
 * of this header is bincp.get_include().
 *
 * Rules: members are only ever appended, never reordered; `struct_size` lets each side see which
 * members the other side knows. A bound function may be called from any thread, without the GIL.
 */
#ifndef BINCP_BINCP_H
#define BINCP_BINCP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BINCP_ABI_VERSION 1u

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

#ifdef __cplusplus
}
#endif

#endif
