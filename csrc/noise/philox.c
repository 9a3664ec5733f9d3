/* The generator of random words (see philox.h). Integers only: the same bits come out of every build. */
#include "noise/philox.h"

#include <string.h>

void bincp_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
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

/* The two halves are made by one loop: with two groups in one body, gcc 12 spills, and takes twice
 * the time. */
CLONES_V4 static void draw_words(bincp_noise_key key, size_t first, size_t n, uint64_t *out)
{
    for (size_t done = 0; done < n; done += PHILOX_GROUP) {
        uint32_t words[2][4][PHILOX_LANES];
        uint64_t numbers[PHILOX_GROUP];
        bincp_noise_key half = key;
        for (int h = 0; h < 2; h++) {
            philox_group(half, (first + done) / PHILOX_GROUP, words[h]);
            half.stream |= PHILOX_SECOND;
        }
        for (int r = 0; r < 4; r++) {
            for (int i = 0; i < PHILOX_LANES; i++) {
                numbers[r * PHILOX_LANES + i] = (uint64_t)words[0][r][i] << 32 | words[1][r][i];
            }
        }
        memcpy(out + done, numbers, (n - done < PHILOX_GROUP ? n - done : PHILOX_GROUP) * sizeof *out);
    }
}

void bincp_noise_words(bincp_noise_key key, size_t first, size_t n, uint64_t *out)
{
    draw_words(key, first, n, out);
}
