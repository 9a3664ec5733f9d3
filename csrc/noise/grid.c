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

#include <math.h>
#include <string.h>

#include "numerics/clones.h"

enum {
    SECOND_WORDS = 0x40, /* added to a stream: the words that decide ties, the highest first */
    THIRD_WORDS = 0x80,
    FOURTH_WORDS = 0xC0,
    STEP_WORDS = 0x30, /* the words that decide a step of inputs off the grid, */
    LAST_WORDS = 0x20  /* and 21 more bits where they do not */
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
        const size_t element = group * PHILOX_GROUP + (size_t)j;
        q[j] = e & mask; /* also where all 128 bits are equal */
        for (int part = 0; part < 3; part++) {
            const uint32_t more = philox_word(key, key.stream | streams[part], element);
            if (more != low[part]) {
                q[j] = more < low[part] ? column : e & mask;
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

/* ---- inputs off the grid ----------------------------------------------------------------------- *
 *
 * Let grid x = k + f with the nearest integer k, and let q be the integer noise, the cell of s N for a
 * standard normal N. Then k + q + f + (s N - q) lies in the cell of k + q, or in the next one in the
 * direction of f. Given q, it is in the next one with probability B = h(F) / h(1), where F = |f| and
 *
 *     h(F) = integral of exp(a t - b t^2) over (0, F),  a = (sign(f) q + 1/2) / s^2,  b = 1 / (2 s^2):
 *
 * t is the distance of s N from that end of its cell. So a number U, uniform on [0, 1), takes the
 * step if U < B, and the result is exactly the rounded sum.
 *
 * A first approximation of B decides nearly all elements: F - a F (1 - F) / 2, of which the error is at
 * most half of F (1 - F) (a^2 / 4 + b), and 2^-20 more covers the rounding of single precision. The
 * other elements take the series of h, and U with 53 bits instead of 32.
 */

static ALWAYS_INLINE uint32_t float_to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static ALWAYS_INLINE float bits_to_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* An input in grid steps: its nearest point, and the rest, which is rounded once. */
typedef struct place {
    int32_t point;
    double rest;
} place;

/* The product with the grid is exact in two parts, of 32 and of 21 bits of x. The nearest integer is in
 * the low bits of a sum with 1.5 2^52: an integer whatever x is, also where another thread writes to
 * it meanwhile. */
static ALWAYS_INLINE place place_of(double x, double grid)
{
    uint64_t bits;
    double high;
    memcpy(&bits, &x, sizeof bits);
    bits &= ~UINT64_C(0x1FFFFF);
    memcpy(&high, &bits, sizeof high);
    const double large = high * grid, small = (x - high) * grid;
    const double shifted = (large + small) + 0x1.8p52;
    memcpy(&bits, &shifted, sizeof bits);
    const place result = {(int32_t)(uint32_t)bits, (large - (shifted - 0x1.8p52)) + small};
    return result;
}

/* h(F) of the comment above. The series has 40 terms of which the last is below 2^-80, as |a| is at
 * most 13.2 / s + 1 / s^2. */
static double integral(double a, double b, double F)
{
    double before = 0.0, term = 1.0, power = F, sum = 0.0;
    for (int n = 0; n < 40; n++) {
        sum += term * power / (n + 1);
        const double next = (a * term - 2.0 * b * before) / (n + 1);
        before = term;
        term = next;
        power *= F;
    }
    return sum;
}

/* The probability B of a step. Where exp(a t) falls, the integral from the other end has no
 * cancellation. */
static double step_probability(double a, double b, double F)
{
    if (a < 0.0) {
        const double other = 2.0 * b - a;
        return 1.0 - integral(other, b, 1.0 - F) / integral(other, b, 1.0);
    }
    return integral(a, b, F) / integral(a, b, 1.0);
}

/* Whether an element takes its step, from 53 random bits. */
static NOINLINE uint32_t decide_step(double s, bincp_noise_key key, size_t j, uint32_t word,
                                     int32_t q, double rest)
{
    const uint32_t last = philox_word(key, key.stream | LAST_WORDS, j) >> 11;
    const double u = ((double)word * 0x1p21 + (double)last) * 0x1p-53;
    const double a = ((rest < 0.0 ? -q : q) + 0.5) / (s * s), b = 0.5 / (s * s);
    return u < step_probability(a, b, fabs(rest));
}

/* The steps of a group, in their direction, of inputs with these rests and noises. */
static ALWAYS_INLINE void steps_of_group(double s, bincp_noise_key key, size_t group,
                                         const int32_t q[PHILOX_GROUP],
                                         const double rest[PHILOX_GROUP],
                                         uint32_t steps[PHILOX_GROUP])
{
    const float b = (float)(0.5 / (s * s));
    uint32_t words[4][PHILOX_LANES], unsure[PHILOX_GROUP], any = 0;
    bincp_noise_key own = key;
    own.stream |= STEP_WORDS;
    philox_group(own, group, words);
    for (int r = 0; r < 4; r++) {
        for (int i = 0; i < PHILOX_LANES; i++) {
            const int j = r * PHILOX_LANES + i;
            const uint32_t f = float_to_bits((float)rest[j]), sign = f & UINT32_C(0x80000000);
            const float F = bits_to_float(f ^ sign), room = F * (1.0f - F);
            const float along = bits_to_float(float_to_bits((float)q[j]) ^ sign);
            const float a = (along + 0.5f) * (2.0f * b);
            const float u = (float)(int32_t)(words[r][i] >> 8) * 0x1p-24f;
            const float gap = u - (F - 0.5f * a * room);
            const float size = bits_to_float(float_to_bits(gap) & UINT32_C(0x7FFFFFFF));
            unsure[j] = (uint32_t)(size < room * (0.25f * a * a + b) + 0x1p-20f);
            any |= unsure[j];
            steps[j] = (0 - (uint32_t)(gap < 0.0f)) & (1 - (sign >> 30)); /* 1 or -1, or none */
        }
    }
    for (int j = 0; any && j < PHILOX_GROUP; j++) { /* 6e-5 of the elements for s = 64 */
        if (unsure[j]) {
            const uint32_t word = words[j / PHILOX_LANES][j % PHILOX_LANES];
            const size_t element = group * PHILOX_GROUP + (size_t)j;
            const uint32_t direction = rest[j] < 0.0 ? UINT32_MAX : 1;
            steps[j] = decide_step(s, key, element, word, q[j], rest[j]) ? direction : 0;
        }
    }
}

#define DEFINE_OFF_GRID(SUFFIX, TYPE)                                                             \
    CLONES_V4 static void round_##SUFFIX(const bincp_grid_table *table, int32_t grid, double s,   \
                                         bincp_noise_key key, size_t n, const TYPE *x, TYPE *out) \
    {                                                                                             \
        const TYPE divisor = (TYPE)grid;                                                          \
        uint32_t noise[PHILOX_GROUP], steps[PHILOX_GROUP];                                        \
        int32_t point[PHILOX_GROUP], q[PHILOX_GROUP];                                             \
        double rest[PHILOX_GROUP];                                                                \
        for (size_t first = 0; first < n; first += PHILOX_GROUP) {                                \
            const size_t length = n - first < PHILOX_GROUP ? n - first : PHILOX_GROUP;            \
            TYPE here[PHILOX_GROUP] = {0};                                                        \
            if (x != NULL) {                                                                      \
                memcpy(here, x + first, length * sizeof *x);                                      \
            }                                                                                     \
            grid_group(table, key, first / PHILOX_GROUP, noise);                                  \
            for (int j = 0; j < PHILOX_GROUP; j++) {                                              \
                const place at = place_of((double)here[j], (double)grid);                         \
                point[j] = at.point;                                                              \
                rest[j] = at.rest;                                                                \
                q[j] = (int32_t)(noise[j] - (uint32_t)table->half);                               \
            }                                                                                     \
            steps_of_group(s, key, first / PHILOX_GROUP, q, rest, steps);                         \
            for (int j = 0; j < PHILOX_GROUP; j++) {                                              \
                const uint32_t sum = (uint32_t)point[j] + (uint32_t)q[j] + steps[j];              \
                here[j] = (TYPE)(int32_t)sum / divisor;                                           \
            }                                                                                     \
            memcpy(out + first, here, length * sizeof *out);                                      \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    void bincp_noise_off_grid_##SUFFIX(bincp_grid_table table, int32_t grid, double s,            \
                                       bincp_noise_key key, size_t n, const TYPE *x, TYPE *out)   \
    {                                                                                             \
        round_##SUFFIX(&table, grid, s, key, n, x, out);                                          \
    }

DEFINE_OFF_GRID(f32, float)
DEFINE_OFF_GRID(f64, double)
