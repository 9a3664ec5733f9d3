/* Values from memory that another thread may write to.
 *
 * An index that has been checked must be the index that is used. A compiler may load a plain value
 * twice, once for the check and once for the use; it loads a volatile value once.
 */
#ifndef BINCP_READ_ONCE_H
#define BINCP_READ_ONCE_H

#include <stdint.h>

static inline double read_double(const double *place)
{
    return *(const volatile double *)place;
}

static inline int32_t read_int32(const int32_t *place)
{
    return *(const volatile int32_t *)place;
}

static inline int64_t read_int64(const int64_t *place)
{
    return *(const volatile int64_t *)place;
}

static inline uint32_t read_uint32(const uint32_t *place)
{
    return *(const volatile uint32_t *)place;
}

#endif
