/* Numbers out of the bytes of a fuzzer: each fuzz_*.c is one program for libFuzzer.
 *
 * A failed check ends the program, so that libFuzzer keeps the input.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                    \
    do {                                                                      \
        if (!(condition)) {                                                   \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);   \
            abort();                                                          \
        }                                                                     \
    } while (0)

typedef struct bytes {
    const uint8_t *at;
    size_t left;
} bytes;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next n bytes; zeros follow the last one. */
static inline void take(bytes *from, void *to, size_t n)
{
    const size_t there = n < from->left ? n : from->left;
    memset(to, 0, n);
    if (there > 0) {
        memcpy(to, from->at, there);
    }
    from->at += there;
    from->left -= there;
}

static inline uint8_t byte_of(bytes *from)
{
    uint8_t value;
    take(from, &value, sizeof value);
    return value;
}

static inline uint64_t word_of(bytes *from)
{
    uint64_t value;
    take(from, &value, sizeof value);
    return value;
}

static inline double double_from(bytes *from)
{
    double value;
    take(from, &value, sizeof value);
    return value;
}

/* A number in [0, 1], often near an end, and any double in it now and then. */
static inline double probability_from(bytes *from)
{
    const uint8_t kind = byte_of(from);
    if (kind < 16) {
        return kind % 2;
    }
    if (kind < 128) {
        return (double)(word_of(from) >> 11) * 0x1p-53;
    }
    double value = double_from(from);
    value = value < 0.0 ? -value : value;
    return value <= 1.0 ? value : value > 1.0 ? 1.0 / value : 0.5;
}

/* Memory of exactly this size, so that a step beyond it is seen. */
static inline void *memory(size_t size)
{
    void *made = malloc(size > 0 ? size : 1);
    if (made == NULL) {
        abort();
    }
    return made;
}

#endif
