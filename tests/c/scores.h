/* Scores of the four types, read one by one: the slow form that the counting kernels must equal. */
#ifndef BINCP_TESTS_SCORES_H
#define BINCP_TESTS_SCORES_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "counting/count.h"

static const ptrdiff_t SCORE_SIZES[] = {
    [BINCP_FLOAT16] = 2, [BINCP_BFLOAT16] = 2, [BINCP_FLOAT32] = 4, [BINCP_FLOAT64] = 8};

/* The value of a 16-bit pattern with this many exponent bits. */
static inline double value_of_bits(uint16_t bits, int exponent_bits)
{
    const int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = (bits & 0x7fff) >> mantissa_bits;
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    double value;
    if (exponent == (1 << exponent_bits) - 1) {
        value = mantissa ? (double)NAN : (double)INFINITY;
    } else if (exponent == 0) {
        value = ldexp(mantissa, 1 - bias - mantissa_bits);
    } else {
        value = ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
    }
    return bits & 0x8000 ? -value : value;
}

static inline double score_at(bincp_score_type type, const char *at)
{
    uint16_t bits;
    float single;
    double wide;
    switch (type) {
    case BINCP_FLOAT16:
    case BINCP_BFLOAT16:
        memcpy(&bits, at, sizeof bits);
        return value_of_bits(bits, type == BINCP_FLOAT16 ? 5 : 8);
    case BINCP_FLOAT32:
        memcpy(&single, at, sizeof single);
        return (double)single;
    default:
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
}

#endif
