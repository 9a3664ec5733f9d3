/* Counts of any layout, against comparisons one by one. */
#include "counting/count.h"

#include <math.h>

#include "fuzz.h"

enum { MOST = 4096 };

static const ptrdiff_t SIZES[] = {2, 2, 4, 8};

static double value_of_bits(uint16_t bits, int exponent_bits)
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

static double value_at(bincp_score_type type, const char *at)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bytes from = {data, size};
    const bincp_score_type type = (bincp_score_type)(byte_of(&from) % 4);
    const ptrdiff_t unit = SIZES[type];
    const ptrdiff_t shape[2] = {byte_of(&from) % 5, byte_of(&from) % 70}, m = byte_of(&from);
    ptrdiff_t strides[3], shared[2], lowest = 0, highest = 0;
    const ptrdiff_t lengths[3] = {shape[0], shape[1], m};
    for (int axis = 0; axis < 3; axis++) {
        strides[axis] = ((ptrdiff_t)byte_of(&from) - 64) * unit;
        const ptrdiff_t reach = lengths[axis] > 0 ? (lengths[axis] - 1) * strides[axis] : 0;
        *(reach < 0 ? &lowest : &highest) += reach;
    }
    for (int axis = 0; axis < 2; axis++) {
        shared[axis] = byte_of(&from) % 2 ? 0 : (axis == 0 ? shape[1] : 1) * unit;
    }
    const ptrdiff_t n_scores = (highest - lowest) / unit + 1, rows = shape[0] * shape[1];
    char *scores = memory((size_t)(n_scores * unit)), *thresholds = memory((size_t)(rows * unit));
    char *first = scores - lowest;
    for (ptrdiff_t i = 0; i < n_scores; i++) { /* the bytes that are left, over and over */
        for (ptrdiff_t b = 0; b < unit; b++) {
            scores[i * unit + b] = (char)(from.left ? from.at[(size_t)(i * unit + b) % from.left] : 0);
        }
    }
    for (ptrdiff_t row = 0; row < rows; row++) {
        memcpy(thresholds + row * unit, scores + row * 7 % n_scores * unit, (size_t)unit);
        if (isnan(value_at(type, thresholds + row * unit))) {
            memset(thresholds + row * unit, 0, (size_t)unit);
        }
    }
    int32_t *counts = memory((size_t)rows * sizeof *counts);
    const ptrdiff_t count_strides[2] = {shape[1] * 4, 4};
    const bincp_count_task task = {type,  2,          shape,      m,     first, strides,
                                   strides[2], thresholds, shared};
    int has_nan = 0, right = 1;
    const int said = bincp_count(&task, counts, count_strides);
    for (ptrdiff_t row = 0; row < rows; row++) {
        const ptrdiff_t i = row / shape[1], j = row % shape[1];
        const double t = value_at(type, thresholds + i * shared[0] + j * shared[1]);
        int32_t count = 0;
        for (ptrdiff_t k = 0; k < m; k++) {
            const double x = value_at(type, first + i * strides[0] + j * strides[1] + k * strides[2]);
            count += x >= t;
            has_nan |= isnan(x);
        }
        right &= counts[row] == count;
    }
    REQUIRE(said == has_nan);
    REQUIRE(has_nan || right);
    free(scores);
    free(thresholds);
    free(counts);
    return 0;
}
