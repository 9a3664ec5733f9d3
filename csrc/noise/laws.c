/* Keyed noise (see laws.h).
 *
 * Layers, each inlined into the next: `philox_group` makes the 64 random words of 16 counters,
 * `box_muller` and its siblings turn words into numbers, `draw` and `flip` walk along a row and are
 * compiled once per instruction set, and the exported functions add the noise to float32 or float64
 * inputs through a buffer that stays in the first-level cache.
 *
 * The same bits come out of every build: integers, and only + - * sqrt on floats (all correctly
 * rounded; compile without contraction to fused multiply-add and without -ffast-math). Logarithm,
 * sine and cosine are the polynomials of the Cephes library (S. Moshier), good to about an ulp.
 *
 * Measured, 64 x 16 x 3072 Gaussians against one torch.randn of that size (one thread, Zen 5):
 * 0.55 with AVX-512, 0.8 with AVX2, 1.7 with SSE2 (clang: 1.2).
 *
 * All 32 bits of a word go into the radius: its tails end at 6.76 sigma (5.9 with 24 bits). A
 * Laplace number is one word, a sign and 31 bits, whose logarithm ends at 22.18 scales. Where 32
 * bits are too few, an element has a second word: that of the same counter in a stream of its own.
 * Discrete noise has four, 128 bits, of which the last are drawn where the first decide nothing.
 */
#include "noise/laws.h"

#include <math.h>
#include <string.h>

#include "numerics/clones.h"

enum { CHUNK = 16 * PHILOX_GROUP }; /* elements buffered at a time */

static ALWAYS_INLINE float bits_to_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static ALWAYS_INLINE uint32_t float_to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* w + 1/2, rounded once: the two halves are exact. The largest words round to 2^32. Conversions go
 * through int32, which every instruction set vectorises. */
static ALWAYS_INLINE float centred(uint32_t w)
{
    return (float)(int32_t)(w >> 16) * 65536.0f + ((float)(int32_t)(w & 0xFFFF) + 0.5f);
}

/* (0, 1] */
static ALWAYS_INLINE float unit(uint32_t w)
{
    return centred(w) * 0x1p-32f;
}

/* [-1, 1], symmetric: the word read as a signed number. */
static ALWAYS_INLINE float symmetric(uint32_t w)
{
    const float high = (float)((int32_t)((w ^ UINT32_C(0x80000000)) >> 16) - 32768);
    return (high * 65536.0f + ((float)(int32_t)(w & 0xFFFF) + 0.5f)) * 0x1p-31f;
}

/* log(u) for normal u in (0, 1]: u = m 2^e with m in [sqrt(1/2), sqrt(2)). */
static ALWAYS_INLINE float log_unit(float u)
{
    const uint32_t sqrt_half = UINT32_C(0x3F3504F3);
    const uint32_t shifted = float_to_bits(u) + (UINT32_C(0x3F800000) - sqrt_half);
    const float e = (float)((int32_t)(shifted >> 23) - 127);
    const float x = bits_to_float((shifted & UINT32_C(0x007FFFFF)) + sqrt_half) - 1.0f;
    const float z = x * x;
    float y = 7.0376836292e-2f;
    y = y * x - 1.1514610310e-1f;
    y = y * x + 1.1676998740e-1f;
    y = y * x - 1.2420140846e-1f;
    y = y * x + 1.4249322787e-1f;
    y = y * x - 1.6668057665e-1f;
    y = y * x + 2.0000714765e-1f;
    y = y * x - 2.4999993993e-1f;
    y = y * x + 3.3333331174e-1f;
    y = y * x * z;
    y += e * -2.12194440e-4f;
    y -= 0.5f * z;
    return (x + y) + e * 0.693359375f;
}

/* A Laplace number of scale 1: the highest bit is the sign, the rest the magnitude. */
static ALWAYS_INLINE float laplace(uint32_t w)
{
    const uint32_t sign = w & UINT32_C(0x80000000);
    const float magnitude = -log_unit(centred(w ^ sign) * 0x1p-31f);
    return bits_to_float(float_to_bits(magnitude) ^ sign);
}

/* Two independent standard normal numbers. The angle is the word itself: its nearest multiple of a
 * right angle, and a rest of at most pi/4 either way. */
static ALWAYS_INLINE void box_muller(uint32_t radius_word, uint32_t angle_word, float *z0,
                                     float *z1)
{
    const float radius = sqrtf(-2.0f * log_unit(unit(radius_word)));
    const uint32_t quadrant = (angle_word + UINT32_C(0x20000000)) >> 30;
    const int32_t rest = (int32_t)(angle_word - (quadrant << 30));
    const float t = (float)rest * 1.4629180792671596e-9f; /* (pi/2) 2^-30 */
    const float z = t * t;
    const float sine
        = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * t + t;
    const float cosine
        = ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z
          - 0.5f * z + 1.0f;
    const uint32_t swap = 0 - (quadrant & 1); /* all ones for odd quadrants */
    const uint32_t s = float_to_bits(sine), c = float_to_bits(cosine);
    const uint32_t along = ((s & swap) | (c & ~swap)) ^ ((quadrant + 1) & 2) << 30;
    const uint32_t across = ((c & swap) | (s & ~swap)) ^ (quadrant & 2) << 30;
    *z0 = radius * bits_to_float(along);
    *z1 = radius * bits_to_float(across);
}

static ALWAYS_INLINE void noise_group(bincp_noise_law law, float scale, bincp_noise_key key,
                                      size_t group, float out[PHILOX_GROUP])
{
    uint32_t words[4][PHILOX_LANES];
    philox_group(key, group, words);
    if (law == BINCP_NOISE_GAUSSIAN) {
        for (int i = 0; i < PHILOX_LANES; i++) {
            float z0, z1, z2, z3;
            box_muller(words[0][i], words[1][i], &z0, &z1);
            box_muller(words[2][i], words[3][i], &z2, &z3);
            out[i] = scale * z0;
            out[PHILOX_LANES + i] = scale * z1;
            out[2 * PHILOX_LANES + i] = scale * z2;
            out[3 * PHILOX_LANES + i] = scale * z3;
        }
    } else if (law == BINCP_NOISE_LAPLACE) {
        for (int r = 0; r < 4; r++) {
            for (int i = 0; i < PHILOX_LANES; i++) {
                out[r * PHILOX_LANES + i] = scale * laplace(words[r][i]);
            }
        }
    } else {
        for (int r = 0; r < 4; r++) {
            for (int i = 0; i < PHILOX_LANES; i++) {
                const uint32_t w = words[r][i];
                out[r * PHILOX_LANES + i] = scale * (law == BINCP_NOISE_UNIFORM ? symmetric(w) : unit(w));
            }
        }
    }
}

static ALWAYS_INLINE void draw_law(bincp_noise_law law, float scale, bincp_noise_key key,
                                   size_t first, size_t n, float *out)
{
    size_t done = 0;
    for (; done + PHILOX_GROUP <= n; done += PHILOX_GROUP) {
        noise_group(law, scale, key, (first + done) / PHILOX_GROUP, out + done);
    }
    if (done < n) {
        float last[PHILOX_GROUP];
        noise_group(law, scale, key, (first + done) / PHILOX_GROUP, last);
        memcpy(out + done, last, (n - done) * sizeof *out);
    }
}

/* Noise of the elements first .. first + n - 1 of a row; `first` is a multiple of PHILOX_GROUP. Laplace has
 * a loop of its own: as one more choice inside, it makes gcc 12 spill the words of the group, and
 * all laws take twice the time. (With a loop for each law, Gaussians do.) */
CLONES_V4 static void draw(bincp_noise_law law, float scale, bincp_noise_key key, size_t first,
                           size_t n, float *out)
{
    if (law == BINCP_NOISE_LAPLACE) {
        draw_law(BINCP_NOISE_LAPLACE, scale, key, first, n, out);
    } else {
        draw_law(law, scale, key, first, n, out);
    }
}

void bincp_noise_add_f32(bincp_noise_law law, float scale, bincp_noise_key key, size_t n,
                         const float *x, float *out)
{
    if (x == NULL) {
        draw(law, scale, key, 0, n, out);
        return;
    }
    float buffer[CHUNK];
    for (size_t first = 0; first < n; first += CHUNK) {
        const size_t length = n - first < CHUNK ? n - first : CHUNK;
        draw(law, scale, key, first, length, buffer);
        for (size_t j = 0; j < length; j++) {
            out[first + j] = x[first + j] + buffer[j];
        }
    }
}

void bincp_noise_add_f64(bincp_noise_law law, float scale, bincp_noise_key key, size_t n,
                         const double *x, double *out)
{
    float buffer[CHUNK];
    for (size_t first = 0; first < n; first += CHUNK) {
        const size_t length = n - first < CHUNK ? n - first : CHUNK;
        draw(law, scale, key, first, length, buffer);
        for (size_t j = 0; j < length; j++) {
            out[first + j] = (x == NULL ? 0.0 : x[first + j]) + (double)buffer[j];
        }
    }
}

/* The third and the fourth word of an element. */
static uint64_t more_words(bincp_noise_key key, uint32_t stream, size_t element)
{
    const uint64_t third = philox_word(key, stream | PHILOX_THIRD, element);
    return third << 32 | philox_word(key, stream | PHILOX_THIRD | PHILOX_SECOND, element);
}

/* u n in units of 2^64, n < 2^32. */
typedef struct product {
    uint64_t whole;
    uint64_t rest;
} product;

static ALWAYS_INLINE product product_of(uint64_t u, uint64_t n)
{
    const uint64_t low = (u & UINT32_MAX) * n, high = (u >> 32) * n + (low >> 32);
    const product result = {high >> 32, high << 32 | (low & UINT32_MAX)};
    return result;
}

/* The number below n, 0 < n < 2^32, that belongs to an element with these first two words:
 * floor(u n) for the number u in [0, 1) of four words. The last two add less than 1 to u n, which
 * makes a difference once in 2^64 / n elements. */
static ALWAYS_INLINE uint64_t below(uint64_t n, bincp_noise_key key, uint32_t stream,
                                    size_t element, uint64_t first)
{
    const product found = product_of(first, n);
    if (found.rest <= UINT64_MAX - (n - 1)) {
        return found.whole;
    }
    const uint64_t more = product_of(more_words(key, stream, element), n).whole;
    return found.whole + (found.rest + more < more);
}

/* Selection sampling (Knuth, TAOCP vol. 2, 3.4.2, algorithm S): of the elements that are left, each
 * is as likely to be among those that are still to be kept. */
void bincp_noise_keep(bincp_noise_key key, size_t keep, size_t n, uint8_t *kept)
{
    uint64_t words[CHUNK];
    uint64_t missing = keep;
    for (size_t first = 0; first < n; first += CHUNK) {
        const size_t length = n - first < CHUNK ? n - first : CHUNK;
        bincp_noise_words(key, first, length, words);
        for (size_t j = 0; j < length; j++) {
            const uint64_t place = below(n - first - j, key, key.stream, first + j, words[j]);
            kept[first + j] = place < missing;
            missing -= place < missing;
        }
    }
}

/* The upper 52 bits and a half, by 2^-52; every step is exact. Conversions go through int32. */
CLONES_V4 static void to_units(size_t n, const uint64_t *words, double *out)
{
    for (size_t j = 0; j < n; j++) {
        const uint32_t w = (uint32_t)(words[j] >> 32), w2 = (uint32_t)words[j];
        const double high = (double)(int32_t)(w ^ UINT32_C(0x80000000)) + 0x1p31;
        out[j] = high * 0x1p-32 + ((double)(int32_t)(w2 >> 12) + 0.5) * 0x1p-52;
    }
}

void bincp_noise_unit_f64(bincp_noise_key key, size_t n, double *out)
{
    uint64_t words[CHUNK];
    for (size_t first = 0; first < n; first += CHUNK) {
        const size_t length = n - first < CHUNK ? n - first : CHUNK;
        bincp_noise_words(key, first, length, words);
        to_units(length, words, out + first);
    }
}

/* A probability in units of 2^-128, as an event on the four random words of an element: read as one
 * number, they are below it. */
typedef struct threshold {
    uint64_t high; /* 2^32 where the probability is 1 */
    uint32_t low[3];
} threshold;

static threshold threshold_of(double p)
{
    /* Powers of two scale exactly, and so do the differences: only what is left is cut off. */
    double scaled = p * 0x1p32;
    threshold result = {(uint64_t)scaled, {0, 0, 0}};
    scaled -= (double)result.high;
    for (int i = 0; i < 3; i++) {
        scaled *= 0x1p32;
        result.low[i] = (uint32_t)(uint64_t)scaled;
        scaled -= (double)result.low[i];
    }
    return result;
}

/* Whether the words of an element after the first are below those of a threshold. */
static NOINLINE uint32_t rest_is_below(const uint32_t low[3], bincp_noise_key key, size_t element)
{
    static const uint32_t streams[3]
        = {PHILOX_SECOND, PHILOX_THIRD, PHILOX_THIRD | PHILOX_SECOND};
    for (int i = 0; i < 3; i++) {
        const uint32_t word = philox_word(key, key.stream | streams[i], element);
        if (word != low[i]) {
            return word < low[i];
        }
    }
    return 0;
}

/* Flip the elements of a row (bits[j] is 0 or 1) in place; `plus` is for the zeros. */
CLONES_V4 static void flip(threshold plus, threshold minus, bincp_noise_key key, size_t first,
                           size_t n, uint32_t *bits)
{
    /* A comparison of 32 bits cannot say "always"; `all` does. */
    const uint32_t high[2] = {(uint32_t)plus.high, (uint32_t)minus.high};
    const uint32_t all[2] = {(uint32_t)(plus.high >> 32), (uint32_t)(minus.high >> 32)};
    for (size_t done = 0; done < n; done += PHILOX_GROUP) {
        uint32_t words[4][PHILOX_LANES];
        uint32_t group[PHILOX_GROUP] = {0};
        const size_t length = n - done < PHILOX_GROUP ? n - done : PHILOX_GROUP;
        uint32_t ties = 0;
        memcpy(group, bits + done, length * sizeof *bits);
        philox_group(key, (first + done) / PHILOX_GROUP, words);
        for (int r = 0; r < 4; r++) {
            for (int i = 0; i < PHILOX_LANES; i++) {
                const uint32_t bit = group[r * PHILOX_LANES + i], w = words[r][i];
                const uint32_t edge = bit ? high[1] : high[0];
                ties |= w == edge;
                group[r * PHILOX_LANES + i] = bit ^ ((uint32_t)(w < edge) | (bit ? all[1] : all[0]));
            }
        }
        if (ties) { /* once in 2^32 elements */
            for (size_t j = 0; j < length; j++) {
                const threshold *const edge = bits[done + j] ? &minus : &plus;
                if (words[j / PHILOX_LANES][j % PHILOX_LANES] == edge->high) {
                    group[j] ^= rest_is_below(edge->low, key, first + done + j);
                }
            }
        }
        memcpy(bits + done, group, length * sizeof *bits);
    }
}

/* bits[j] = whether x[j] is not 0; none is where x is NULL. */
#define DEFINE_BITS(NAME, TYPE)                                          \
    static inline void NAME(const TYPE *x, size_t n, uint32_t *bits)     \
    {                                                                    \
        if (x == NULL) {                                                 \
            memset(bits, 0, n * sizeof *bits);                           \
            return;                                                      \
        }                                                                \
        for (size_t j = 0; j < n; j++) {                                 \
            bits[j] = x[j] != 0;                                         \
        }                                                                \
    }

DEFINE_BITS(bits_f32, float)
DEFINE_BITS(bits_f64, double)

/* For both types alike; they differ in the loads and stores around `flip` alone. */
#define DEFINE_FLIP(NAME, TYPE, BITS)                                                             \
    void NAME(double p_plus, double p_minus, bincp_noise_key key, size_t n, const TYPE *x,        \
              TYPE *out)                                                                          \
    {                                                                                             \
        const threshold plus = threshold_of(p_plus), minus = threshold_of(p_minus);               \
        uint32_t bits[CHUNK];                                                                     \
        for (size_t first = 0; first < n; first += CHUNK) {                                       \
            const size_t length = n - first < CHUNK ? n - first : CHUNK;                          \
            BITS(x == NULL ? NULL : x + first, length, bits);                                     \
            flip(plus, minus, key, first, length, bits);                                          \
            for (size_t j = 0; j < length; j++) {                                                 \
                out[first + j] = (TYPE)(int32_t)bits[j];                                          \
            }                                                                                     \
        }                                                                                         \
    }

DEFINE_FLIP(bincp_noise_flip_f32, float, bits_f32)
DEFINE_FLIP(bincp_noise_flip_f64, double, bits_f64)

/* ---- categories ------------------------------------------------------------------------------ */

#define CATEGORY_STREAM UINT32_C(0x40) /* words that choose the new category: streams of their own */

/* A number below n for element j. */
static uint32_t choose(bincp_noise_key key, size_t j, uint32_t n)
{
    const uint32_t stream = key.stream | CATEGORY_STREAM;
    uint32_t words[2][4];
    philox_block(key, stream, (uint32_t)(j / 4), words[0]);
    philox_block(key, stream | PHILOX_SECOND, (uint32_t)(j / 4), words[1]);
    const uint64_t first = (uint64_t)words[0][j % 4] << 32 | words[1][j % 4];
    return (uint32_t)below(n, key, stream, j, first);
}

/* The category that an element changes to: the `choice`-th of those that it is not. */
static uint32_t other(uint32_t category, uint32_t choice)
{
    return choice < category ? choice : choice + 1;
}

#define DEFINE_CATEGORICAL(NAME, TYPE, BITS)                                                      \
    void NAME(uint32_t k, double p_plus, double p_minus, bincp_noise_key key, size_t n,           \
              const TYPE *x, TYPE *out)                                                           \
    {                                                                                             \
        const threshold plus = threshold_of(p_plus), minus = threshold_of(p_minus);               \
        uint32_t bits[CHUNK];                                                                     \
        for (size_t first = 0; first < n; first += CHUNK) {                                       \
            const size_t length = n - first < CHUNK ? n - first : CHUNK;                          \
            BITS(x == NULL ? NULL : x + first, length, bits);                                     \
            flip(plus, minus, key, first, length, bits);                                          \
            for (size_t j = first; j < first + length; j++) {                                     \
                const TYPE value = x == NULL ? 0 : *(const volatile TYPE *)(x + j);               \
                const int changed = bits[j - first] != (uint32_t)(value != 0);                    \
                out[j] = changed && value >= 0 && value < (TYPE)k /* or it is no category */      \
                             ? (TYPE)other((uint32_t)value, choose(key, j, k - 1))                \
                             : value;                                                             \
            }                                                                                     \
        }                                                                                         \
    }

DEFINE_CATEGORICAL(bincp_noise_categorical_f32, float, bits_f32)
DEFINE_CATEGORICAL(bincp_noise_categorical_f64, double, bits_f64)
