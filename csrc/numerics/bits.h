/* Doubles as bit patterns. Those of positive doubles are in the order of the doubles. */
#ifndef BINCP_BITS_H
#define BINCP_BITS_H

#include <stdint.h>
#include <string.h>

#include "numerics/clones.h"

static ALWAYS_INLINE uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static ALWAYS_INLINE double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
