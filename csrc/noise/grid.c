/* Integer noise on a grid (see grid.h).
 *
 * A sum x + noise of floating-point numbers has last bits that depend on x more than real numbers
 * would let them. The output here is a function of the integer k + q alone, which is what rounding
 * grid (x + N) for continuous noise N gives, so a bound for x + N holds for it.
 *
 * The division by the grid is one IEEE operation: k / grid for q = 0 is x itself, which a product with
 * 1 / grid would miss for most k.
 */
#include "noise/grid.h"

#include "numerics/clones.h"

enum {
    SECOND_WORDS = 0x40, /* added to a stream: the words that decide ties, the highest first */
    THIRD_WORDS = 0x80,
    FOURTH_WORDS = 0xC0
};

/* The points, in [0, 2^bits), of the elements of a group whose words are ties. */
static NOINLINE void settle_ties(const bincp_grid_table *table, bincp_noise_key key, size_t group,
                                 const uint32_t words[4][PHILOX_LANES], uint32_t q[PHILOX_GROUP])
{
    static const uint32_t streams[3] = {SECOND_WORDS, THIRD_WORDS, FOURTH_WORDS};
    const uint32_t mask = (UINT32_C(1) << table->bits) - 1;
    for (int j = 0; j < PHILOX_GROUP; j++) {
        const uint32_t w = words[j / PHILOX_LANES][j % PHILOX_LANES];
        const uint32_t column = w & mask, e = table->entry[column];
        if ((w ^ e) > mask) {
            continue;
        }
        const uint32_t *low = table->low + 3 * (size_t)column;
        const uint32_t counter = (uint32_t)group * PHILOX_LANES + (uint32_t)(j % PHILOX_LANES);
        q[j] = e & mask; /* also where all 128 bits are equal */
        for (int part = 0; part < 3; part++) {
            uint32_t more[4];
            philox_block(key, key.stream | streams[part], counter, more);
            if (more[j / PHILOX_LANES] != low[part]) {
                q[j] = more[j / PHILOX_LANES] < low[part] ? column : e & mask;
                break;
            }
        }
    }
}

/* The points of a group. The entry of a column and the word w agree in nothing but their order: the
 * smaller of the two has the point in its low bits. */
static ALWAYS_INLINE void grid_group(const bincp_grid_table *table, bincp_noise_key key,
                                     size_t group, uint32_t q[PHILOX_GROUP])
{
    const uint32_t mask = (UINT32_C(1) << table->bits) - 1;
    const uint32_t *entry = table->entry;
    uint32_t words[4][PHILOX_LANES];
    uint32_t ties = 0;
    philox_group(key, group, words);
    for (int r = 0; r < 4; r++) {
        for (int i = 0; i < PHILOX_LANES; i++) {
            const uint32_t w = words[r][i], e = entry[w & mask];
            q[r * PHILOX_LANES + i] = (w < e ? w : e) & mask;
            ties |= (uint32_t)((w ^ e) <= mask);
        }
    }
    if (ties) { /* once in 2^(32 - bits) elements */
        settle_ties(table, key, group, words, q);
    }
}

/* The sum wraps around instead of overflowing, whatever another thread writes to k. */
#define DEFINE(SUFFIX, TYPE)                                                                      \
    static ALWAYS_INLINE TYPE placed_##SUFFIX(int32_t k, uint32_t q, int32_t half, TYPE grid)     \
    {                                                                                             \
        return (TYPE)(int32_t)((uint32_t)k + q - (uint32_t)half) / grid;                          \
    }                                                                                             \
                                                                                                  \
    CLONES_V4 static void draw_##SUFFIX(const bincp_grid_table *table, int32_t grid,              \
                                        bincp_noise_key key, size_t n, const int32_t *k,          \
                                        TYPE *out)                                                \
    {                                                                                             \
        static const int32_t zeros[PHILOX_GROUP];                                                 \
        const TYPE divisor = (TYPE)grid;                                                          \
        uint32_t q[PHILOX_GROUP];                                                                 \
        for (size_t first = 0; first < n; first += PHILOX_GROUP) {                                \
            const int32_t *here = k == NULL ? zeros : k + first;                                  \
            const size_t length = n - first < PHILOX_GROUP ? n - first : PHILOX_GROUP;            \
            grid_group(table, key, first / PHILOX_GROUP, q);                                      \
            if (length == PHILOX_GROUP) { /* a loop of known length has no rest */                \
                for (size_t j = 0; j < PHILOX_GROUP; j++) {                                       \
                    out[first + j] = placed_##SUFFIX(here[j], q[j], table->half, divisor);        \
                }                                                                                 \
                continue;                                                                         \
            }                                                                                     \
            for (size_t j = 0; j < length; j++) {                                                 \
                out[first + j] = placed_##SUFFIX(here[j], q[j], table->half, divisor);            \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    void bincp_noise_grid_##SUFFIX(bincp_grid_table table, int32_t grid, bincp_noise_key key,     \
                                   size_t n, const int32_t *k, TYPE *out)                         \
    {                                                                                             \
        draw_##SUFFIX(&table, grid, key, n, k, out);                                              \
    }

DEFINE(f32, float)
DEFINE(f64, double)
