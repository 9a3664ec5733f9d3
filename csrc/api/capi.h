/* The table of functions of bincp/bincp.h. */
#ifndef BINCP_CAPI_H
#define BINCP_CAPI_H

#include "bincp/bincp.h"
#include "numerics/strict_floats.h"

/* The table. `operator_of` is the one member that needs Python, and so comes from the caller. */
bincp_api bincp_api_make(const bincp_operator *(*operator_of)(struct _object *certificate));

#endif
