/* Whether floating-point operations are rounded as the kernels need it. */
#ifndef BINCP_FLOAT_MODE_H
#define BINCP_FLOAT_MODE_H

#include "numerics/strict_floats.h"

typedef enum bincp_float_mode {
    BINCP_FLOATS_STRICT,
    BINCP_FLOATS_WIDE,       /* operations are rounded to a wider type first, as by x87 */
    BINCP_FLOATS_FLUSHED,    /* subnormal numbers are taken for 0 */
    BINCP_FLOATS_NOT_NEAREST /* results are not rounded to the nearest double */
} bincp_float_mode;

/* The mode of the thread that calls, found by operations whose results differ. */
bincp_float_mode bincp_find_float_mode(void);

#endif
