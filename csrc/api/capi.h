/* The table of functions of bincp/bincp.h. */
#ifndef BINCP_CAPI_H
#define BINCP_CAPI_H

#include "bincp/bincp.h"
#include "numerics/strict_floats.h"

/* The table. Only `operator_of` needs Python, so the caller passes it. */
bincp_api bincp_api_make(const bincp_operator *(*operator_of)(struct _object *certificate));

#endif
