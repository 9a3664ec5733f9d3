/* Counter-based random words: Philox4x32-10 with one key for each row of noise.
 *
 * Every word is a function of its key and its position in the row, and of nothing else: no state, no
 * order, no batch. Rows with different keys use disjoint counters, so they are independent as far as
 * the generator is random. A word does not depend on the length of the row.
 *
 * The seed is the key of the generator. Counter words: block of the row, draw, low half of the id,
 * (stream << 24 | high bits of the id). Element j of a row is in group j / 64; there, it is word
 * (j % 64) / 16 of counter j % 16, so that 16 counters side by side are one vectorised loop and
 * results are stored in order.
 *
 * Functions may be called from any thread. They do not allocate, and they cannot fail.
 */
#ifndef BINCP_PHILOX_H
#define BINCP_PHILOX_H

#include <stddef.h>
#include <stdint.h>

#include "numerics/clones.h"

#define BINCP_NOISE_MAX_ID ((INT64_C(1) << 56) - 1)     /* ids are in [0, 2^56) */
#define BINCP_NOISE_MAX_LENGTH ((INT64_C(1) << 34) - 1) /* elements of a row */

/* What the randomness is for: a phase, and what is drawn in it. Streams never share a counter. A
 * stream has more of its own: 64 is added for the words that choose a category, 128 for the second
 * word of an element, 16 for the third and, with 128, the fourth. Integer noise, which chooses no
 * category, adds 64, 128 and 192 for the words that decide ties, 32 and 48 for the words that round
 * inputs off the grid. So numbers stay below 16. Graphs have 9, 10 and 11 for their phases, and add
 * 16, 32 and 48 (see graph.h); 15 is free. */
typedef enum bincp_noise_stream {
    BINCP_STREAM_CALIBRATION = 0,
    BINCP_STREAM_TEST = 1,
    BINCP_STREAM_CALIBRATION_SCORE = 2, /* randomness of the conformity score itself (APS) */
    BINCP_STREAM_TEST_SCORE = 3,
    BINCP_STREAM_CALIBRATION_RADIUS = 4, /* radius and face of noise drawn as direction x radius */
    BINCP_STREAM_TEST_RADIUS = 5,
    BINCP_STREAM_TUNING = 6, /* points on which p, tau and the like are chosen */
    BINCP_STREAM_TUNING_SCORE = 7,
    BINCP_STREAM_TUNING_RADIUS = 8,
    BINCP_STREAM_CALIBRATION_SELECTION = 12, /* which elements of an input get noise */
    BINCP_STREAM_TEST_SELECTION = 13,
    BINCP_STREAM_TUNING_SELECTION = 14
} bincp_noise_stream;

typedef struct bincp_noise_key {
    uint64_t seed;
    uint64_t id;     /* of the input, < 2^56 */
    uint32_t draw;   /* of the input's Monte-Carlo samples */
    uint32_t stream; /* bincp_noise_stream, < 16 */
} bincp_noise_key;

static ALWAYS_INLINE bincp_noise_key bincp_noise_key_of(uint64_t seed, uint32_t stream,
                                                        uint64_t id, uint32_t draw)
{
    return (bincp_noise_key){.seed = seed, .id = id, .draw = draw, .stream = stream};
}

/* One block of Philox4x32-10 (Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011). */
void bincp_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* out[j] = a random number of 64 bits for element first + j of a row, j < n; `first` is a multiple
 * of 64. The word of an element is the high half, its second word the low half. */
void bincp_noise_words(bincp_noise_key key, size_t first, size_t n, uint64_t *out);

/* ---- for those who turn words into numbers as they are made ------------------------------------ */

enum {
    PHILOX_LANES = 16,               /* counters side by side */
    PHILOX_GROUP = 4 * PHILOX_LANES /* elements that they make */
};

#define PHILOX_M0 UINT64_C(0xD2511F53)
#define PHILOX_M1 UINT64_C(0xCD9E8D57)
#define PHILOX_W0 UINT32_C(0x9E3779B9)
#define PHILOX_W1 UINT32_C(0xBB67AE85)

/* Added to a stream: the stream of the second words of its elements, and that of the third words, to
 * which the fourth are the second ones. */
#define PHILOX_SECOND UINT32_C(0x80)
#define PHILOX_THIRD UINT32_C(0x10)

/* The last counter word: the purpose of the row, and the bits of its id above the lowest 32. */
static ALWAYS_INLINE uint32_t philox_stream_word(bincp_noise_key key, uint32_t stream)
{
    return stream << 24 | (uint32_t)(key.id >> 32);
}

/* The rounds of bincp_philox4x32, for loops that call them now and then: a call into another file
 * would cost them their registers. */
static inline void philox_rounds(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t product0 = PHILOX_M0 * c0, product1 = PHILOX_M1 * c2;
        c0 = (uint32_t)(product1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)product1;
        c2 = (uint32_t)(product0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)product0;
        k0 += PHILOX_W0;
        k1 += PHILOX_W1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* The words of one counter of a row, in a stream that may differ from that of the key. */
static inline void philox_block(bincp_noise_key key, uint32_t stream, uint32_t counter,
                                uint32_t words[4])
{
    const uint32_t seed[2] = {(uint32_t)key.seed, (uint32_t)(key.seed >> 32)};
    const uint32_t counters[4] = {counter, key.draw, (uint32_t)key.id,
                                  philox_stream_word(key, stream)};
    philox_rounds(counters, seed, words);
}

/* The word of one element, for ties, which are rare. */
static inline uint32_t philox_word(bincp_noise_key key, uint32_t stream, size_t element)
{
    uint32_t words[4];
    const size_t group = element / PHILOX_GROUP, place = element % PHILOX_GROUP;
    philox_block(key, stream, (uint32_t)(group * PHILOX_LANES + place % PHILOX_LANES), words);
    return words[place / PHILOX_LANES];
}

/* words[r][i]: word r of the block of counter `16 group + i`. Inlined, so that each instruction set
 * has its own version. */
static ALWAYS_INLINE void philox_group(bincp_noise_key key, size_t group,
                                       uint32_t words[4][PHILOX_LANES])
{
    uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);
    for (uint32_t i = 0; i < PHILOX_LANES; i++) {
        words[0][i] = (uint32_t)(group * PHILOX_LANES) + i;
        words[1][i] = key.draw;
        words[2][i] = (uint32_t)key.id;
        words[3][i] = philox_stream_word(key, key.stream);
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < PHILOX_LANES; i++) {
            const uint64_t product0 = PHILOX_M0 * words[0][i], product1 = PHILOX_M1 * words[2][i];
            words[0][i] = (uint32_t)(product1 >> 32) ^ words[1][i] ^ k0;
            words[1][i] = (uint32_t)product1;
            words[2][i] = (uint32_t)(product0 >> 32) ^ words[3][i] ^ k1;
            words[3][i] = (uint32_t)product0;
        }
        k0 += PHILOX_W0;
        k1 += PHILOX_W1;
    }
}

#endif
