/* A digest of noise, which tests/kernels/test_same_bits.py compares as it does that of bounds.c: a line
 * for each kernel.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "noise/grid.h"
#include "noise/laws.h"
#include "noise/philox.h"
#include "noise/splitting.h"

/* Rows end inside a group of 64. A table of so many columns makes ties in a million words. */
enum { N = 1000, BITS = 16, COLUMNS = 1 << BITS };

/* What the rows are made from: numbers in [0, 1], zeros and ones, codes, and places on a grid. */
static float x32[N], flags32[N], codes32[N];
static double x64[N], flags64[N], codes64[N];
static int32_t points[N], starts[N], slack[N];
static uint32_t entry[COLUMNS], low[3 * COLUMNS];
static const bincp_grid_table table = {entry, low, BITS, COLUMNS / 2};
static const bincp_split_grid split = {127, 255};

static uint64_t state = 1;

static uint64_t random_bits(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state ^ (state >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
}

static void make_inputs(void)
{
    for (int j = 0; j < N; ++j) {
        x32[j] = (float)(random_bits() >> 40) * 0x1p-24f;
        x64[j] = (double)(random_bits() >> 11) * 0x1p-53;
        flags32[j] = (float)(random_bits() >> 63);
        flags64[j] = (double)flags32[j];
        codes32[j] = (float)(random_bits() >> 62);
        codes64[j] = (double)codes32[j];
        points[j] = (int32_t)(random_bits() >> 56);
        starts[j] = 2 * (int32_t)(random_bits() >> 56) + 1;
        slack[j] = (int32_t)(random_bits() >> 57);
    }
    for (int c = 0; c < COLUMNS; ++c) {
        entry[c] = (uint32_t)(random_bits() >> 32);
        for (int part = 0; part < 3; ++part) {
            low[3 * c + part] = (uint32_t)(random_bits() >> 32);
        }
    }
}

/* ---- digests ----------------------------------------------------------------------------------- */

static union {
    float narrow[N];
    double wide[N];
    uint64_t words[N];
    uint8_t bytes[N * sizeof(uint64_t)];
} out;

static uint64_t digest;

static void add(size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; ++i) {
        digest = (digest ^ out.bytes[i]) * UINT64_C(0x100000001b3);
    }
    digest ^= digest >> 31;
}

/* The digest of so many rows, each with a key of its own. */
#define DIGEST(NAME, TYPE, CALL)                                                                  \
    do {                                                                                          \
        digest = UINT64_C(0xcbf29ce484222325);                                                    \
        for (uint32_t row = 0; row < rows; ++row) {                                               \
            const bincp_noise_key key = {                                                         \
                .seed = random_bits(), .id = random_bits() >> 8, .draw = row, .stream = row % 9}; \
            CALL;                                                                                 \
            add(N * sizeof(TYPE));                                                                \
        }                                                                                         \
        printf("%s %016llx\n", NAME, (unsigned long long)digest);                                 \
    } while (0)

/* Ten million values for 400 rows. */
int main(int argc, char **argv)
{
    const uint32_t rows = argc > 1 ? (uint32_t)atoi(argv[1]) : 400;
    float *const f32 = out.narrow;
    double *const f64 = out.wide;
    make_inputs();
    DIGEST("words", uint64_t, bincp_noise_words(key, 0, N, out.words));
    DIGEST("keep", uint8_t, bincp_noise_keep(key, N / 3, N, out.bytes));
    DIGEST("wide unit", double, bincp_noise_unit_f64(key, N, f64));
    DIGEST("gaussian f32", float,
           bincp_noise_add_f32(BINCP_NOISE_GAUSSIAN, 0.3f, key, N, x32, f32));
    DIGEST("gaussian f64", double,
           bincp_noise_add_f64(BINCP_NOISE_GAUSSIAN, 0.3f, key, N, x64, f64));
    DIGEST("uniform f32", float, bincp_noise_add_f32(BINCP_NOISE_UNIFORM, 0.3f, key, N, x32, f32));
    DIGEST("uniform f64", double, bincp_noise_add_f64(BINCP_NOISE_UNIFORM, 0.3f, key, N, x64, f64));
    DIGEST("laplace f32", float, bincp_noise_add_f32(BINCP_NOISE_LAPLACE, 0.3f, key, N, x32, f32));
    DIGEST("laplace f64", double, bincp_noise_add_f64(BINCP_NOISE_LAPLACE, 0.3f, key, N, x64, f64));
    DIGEST("unit f32", float, bincp_noise_add_f32(BINCP_NOISE_UNIT, 1.0f, key, N, NULL, f32));
    DIGEST("flip f32", float, bincp_noise_flip_f32(0.1, 0.6, key, N, flags32, f32));
    DIGEST("flip f64", double, bincp_noise_flip_f64(0.1, 0.6, key, N, flags64, f64));
    DIGEST("categories f32", float, bincp_noise_categorical_f32(4, 0.1, 0.6, key, N, codes32, f32));
    DIGEST("categories f64", double,
           bincp_noise_categorical_f64(4, 0.1, 0.6, key, N, codes64, f64));
    DIGEST("grid f32", float, bincp_noise_grid_f32(table, 255, key, N, points, f32));
    DIGEST("grid f64", double, bincp_noise_grid_f64(table, 255, key, N, points, f64));
    DIGEST("grid of zeros", float, bincp_noise_grid_f32(table, 255, key, N, NULL, f32));
    DIGEST("off grid f32", float, bincp_noise_off_grid_f32(table, 255, 4.5, key, N, x32, f32));
    DIGEST("off grid f64", double, bincp_noise_off_grid_f64(table, 255, 4.5, key, N, x64, f64));
    DIGEST("off grid, wide", float, bincp_noise_off_grid_f32(table, 255, 64.0, key, N, x32, f32));
    DIGEST("off grid, wider", double, bincp_noise_off_grid_f64(table, 255, 2e3, key, N, x64, f64));
    DIGEST("split f32", float, bincp_split_f32(0.5, key, N, x32, f32));
    DIGEST("split f64", double, bincp_split_f64(0.5, key, N, x64, f64));
    DIGEST("split copy f32", float,
           bincp_split_copy_f32(split, (int32_t)(key.draw % 127), N, starts, slack, f32));
    DIGEST("split copy f64", double,
           bincp_split_copy_f64(split, (int32_t)(key.draw % 127), N, starts, slack, f64));
    return EXIT_SUCCESS;
}
