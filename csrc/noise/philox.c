/* The generator of random words (see philox.h). Integers only: the same bits come out of every build. */
#include "noise/philox.h"

#include <string.h>

void bincp_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    philox_rounds(counter, key, out);
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
        memcpy(out + done, numbers,
               (n - done < PHILOX_GROUP ? n - done : PHILOX_GROUP) * sizeof *out);
    }
}

void bincp_noise_words(bincp_noise_key key, size_t first, size_t n, uint64_t *out)
{
    draw_words(key, first, n, out);
}
