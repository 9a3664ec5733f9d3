/* The noise kernels on their own, for the sanitizers: `make -C tests/c`.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "noise/grid.h"
#include "noise/laws.h"
#include "noise/splitting.h"

static const bincp_noise_key KEY = {UINT64_C(0xFEDCBA9876543210), UINT64_C(0xABCDEF01234567),
                                    0x7FFFFFFF, BINCP_STREAM_TEST};

static void test_philox(void)
{
    const uint32_t counter[4] = {0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344};
    const uint32_t key[2] = {0xA4093822, 0x299F31D0};
    const uint32_t expected[4] = {0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1};
    uint32_t out[4];
    bincp_philox4x32(counter, key, out);
    CHECK(memcmp(out, expected, sizeof out) == 0);
}

/* Rows of every length around the sizes of group and buffer, in memory with no byte to spare: what
 * is written is the beginning of the longest row. */
static void test_lengths(void)
{
    enum { LONGEST = 2100 };
    static float zeros[LONGEST], longest[LONGEST];
    for (int law = BINCP_NOISE_GAUSSIAN; law <= BINCP_NOISE_LAPLACE; law++) {
        bincp_noise_add_f32((bincp_noise_law)law, 0.5f, KEY, LONGEST, NULL, longest);
        for (size_t n = 0; n <= LONGEST; n += n < 200 ? 1 : 61) {
            float *out = malloc((n + !n) * sizeof *out), *x = calloc(n + !n, sizeof *x);
            double *wide = malloc((n + !n) * sizeof *wide);
            double *wide_x = calloc(n + !n, sizeof *wide_x);
            bincp_noise_add_f32((bincp_noise_law)law, 0.5f, KEY, n, NULL, out);
            CHECK(memcmp(out, longest, n * sizeof *out) == 0);
            bincp_noise_add_f32((bincp_noise_law)law, 0.5f, KEY, n, x, out);
            bincp_noise_add_f64((bincp_noise_law)law, 0.5f, KEY, n, wide_x, wide);
            int equal = 1;
            for (size_t j = 0; j < n; j++) {
                equal &= out[j] == longest[j] && wide[j] == (double)longest[j];
            }
            CHECK(equal);
            bincp_noise_add_f32((bincp_noise_law)law, 0.5f, KEY, n, x, x); /* in place */
            CHECK(n == 0 || memcmp(x, out, n * sizeof *out) == 0);
            free(out);
            free(x);
            free(wide);
            free(wide_x);
        }
    }
    static double units[LONGEST];
    bincp_noise_unit_f64(KEY, LONGEST, units);
    for (size_t n = 0; n <= LONGEST; n += n < 200 ? 1 : 61) {
        double *out = malloc((n + !n) * sizeof *out);
        bincp_noise_unit_f64(KEY, n, out);
        CHECK(memcmp(out, units, n * sizeof *out) == 0);
        free(out);
    }
    bincp_noise_flip_f32(0.3, 0.6, KEY, LONGEST, zeros, longest);
    for (size_t n = 0; n <= LONGEST; n += n < 200 ? 1 : 61) {
        float *out = malloc((n + !n) * sizeof *out);
        bincp_noise_flip_f32(0.3, 0.6, KEY, n, zeros, out);
        CHECK(memcmp(out, longest, n * sizeof *out) == 0);
        free(out);
    }
}

static void test_values(void)
{
    enum { N = 1 << 20 };
    float *z = malloc(N * sizeof *z);
    double sum = 0, squares = 0, lowest = 1, highest = 0;
    bincp_noise_add_f32(BINCP_NOISE_GAUSSIAN, 1.0f, KEY, N, NULL, z);
    for (size_t j = 0; j < N; j++) {
        sum += (double)z[j];
        squares += (double)z[j] * (double)z[j];
    }
    CHECK(fabs(sum / N) < 5 / sqrt(N));
    CHECK(fabs(squares / N - 1) < 5 * sqrt(2.0 / N));
    bincp_noise_add_f32(BINCP_NOISE_UNIT, 1.0f, KEY, N, NULL, z);
    for (size_t j = 0; j < N; j++) {
        lowest = fmin(lowest, (double)z[j]);
        highest = fmax(highest, (double)z[j]);
    }
    CHECK(lowest > 0 && lowest < 2e-5);
    CHECK(highest <= 1 && highest > 1 - 2e-5);
    bincp_noise_add_f32(BINCP_NOISE_LAPLACE, 1.0f, KEY, N, NULL, z);
    sum = squares = 0;
    for (size_t j = 0; j < N; j++) {
        sum += (double)z[j];
        squares += (double)z[j] * (double)z[j];
    }
    CHECK(fabs(sum / N) < 5 * sqrt(2.0 / N));
    CHECK(fabs(squares / N - 2) < 5 * sqrt(20.0 / N)); /* the fourth moment is 24 */
    free(z);
}

static void test_wide_units(void)
{
    enum { N = 1 << 18 };
    double *u = malloc(N * sizeof *u);
    double sum = 0;
    size_t bad = 0;
    bincp_noise_unit_f64(KEY, N, u);
    for (size_t j = 0; j < N; j++) {
        const double scaled = u[j] * 0x1p53; /* exact */
        bad += !(u[j] > 0 && u[j] < 1) || fmod(scaled, 2) != 1;
        sum += u[j];
    }
    CHECK(bad == 0);
    CHECK(fabs(sum / N - 0.5) < 5 * sqrt(1.0 / 12 / N));
    free(u);
}

static void test_flips(void)
{
    enum { N = 5000 };
    double x[N], out[N];
    size_t never = 0, always = 0;
    for (size_t j = 0; j < N; j++) {
        x[j] = (double)(j % 2);
    }
    bincp_noise_flip_f64(0.0, 0.0, KEY, N, x, out);
    for (size_t j = 0; j < N; j++) {
        never += out[j] != x[j];
    }
    CHECK(never == 0);
    bincp_noise_flip_f64(1.0, 1.0, KEY, N, x, out);
    for (size_t j = 0; j < N; j++) {
        always += out[j] == 1 - x[j];
    }
    CHECK(always == N);
}

/* Words of every length are the beginning of the longest row, in whatever parts it is made. */
static void test_words(void)
{
    enum { LONGEST = 1100 };
    static uint64_t longest[LONGEST];
    bincp_noise_words(KEY, 0, LONGEST, longest);
    for (size_t n = 0; n <= LONGEST; n += n < 100 ? 1 : 61) {
        uint64_t *out = malloc((n + !n) * sizeof *out);
        const size_t first = n / 128 * 64;
        bincp_noise_words(KEY, 0, n, out);
        CHECK(memcmp(out, longest, n * sizeof *out) == 0);
        bincp_noise_words(KEY, first, n - first, out);
        CHECK(memcmp(out, longest + first, (n - first) * sizeof *out) == 0);
        free(out);
    }
}

static void test_keep(void)
{
    for (size_t n = 1; n <= 2100; n += n < 70 ? 1 : 203) {
        uint8_t *kept = malloc(n);
        for (size_t keep = 0; keep <= n; keep += 1 + n / 9) {
            size_t sum = 0;
            bincp_noise_keep(KEY, keep, n, kept);
            for (size_t j = 0; j < n; j++) {
                sum += kept[j];
            }
            CHECK(sum == keep);
        }
        free(kept);
    }
}

static void test_splitting(void)
{
    for (size_t n = 1; n <= 2100; n += n < 40 ? 1 : 507) {
        double *x = malloc(n * sizeof *x), *out = malloc(n * sizeof *out);
        float *y = malloc(n * sizeof *y), *single = malloc(n * sizeof *single);
        int32_t *starts = malloc(n * sizeof *starts), *slack = malloc(n * sizeof *slack);
        int inside = 1, equal = 1, by_hand = 1;
        for (size_t j = 0; j < n; j++) {
            y[j] = (float)(j % 9) / 8; /* exact in both types */
            x[j] = (double)y[j];
            starts[j] = -7; /* cells of 5 steps around 0 of a grid of 8: -3.5 to 1.5 */
            slack[j] = 3;
        }
        bincp_split_f64(0.3, KEY, n, x, out);
        bincp_split_f32(0.3, KEY, n, y, single);
        for (size_t j = 0; j < n; j++) {
            inside &= fabs(out[j] - x[j]) <= 0.1500001 && out[j] >= 0 && out[j] <= 1;
            equal &= single[j] == (float)out[j];
        }
        CHECK(inside && equal);
        for (int32_t number = 0; number < 5; number++) {
            static const double ends[] = {3, 5, 7, 9, 1}; /* in halves of 1/8 */
            const bincp_split_grid split = {5, 8};
            bincp_split_copy_f64(split, number, n, starts, slack, out);
            bincp_split_copy_f32(split, number, n, starts, slack, single);
            for (size_t j = 0; j < n; j++) {
                by_hand &= out[j] == ends[number] / 32 && single[j] == (float)out[j];
            }
        }
        CHECK(by_hand);
        free(x);
        free(out);
        free(y);
        free(single);
        free(starts);
        free(slack);
    }
}

/* Changes happen where flips do, and lead to any category but the old one; rows are beginnings of
 * longer rows. */
static void test_categories(void)
{
    enum { N = 1300, K = 5 };
    static float x[N], out[N], bits[N], flipped[N], shorter[N];
    static double wide_x[N], wide[N];
    for (int j = 0; j < N; j++) {
        x[j] = (float)(j % K);
        wide_x[j] = j % K;
        bits[j] = x[j] != 0;
    }
    bincp_noise_categorical_f32(K, 0.3, 0.6, KEY, N, x, out);
    bincp_noise_categorical_f64(K, 0.3, 0.6, KEY, N, wide_x, wide);
    bincp_noise_categorical_f32(K, 0.3, 0.6, KEY, 77, x, shorter);
    bincp_noise_flip_f32(0.3, 0.6, KEY, N, bits, flipped);
    int good = memcmp(shorter, out, 77 * sizeof *out) == 0;
    for (int j = 0; j < N; j++) {
        good &= (out[j] != x[j]) == (flipped[j] != bits[j]) && wide[j] == (double)out[j];
        good &= out[j] >= 0 && out[j] < K;
    }
    CHECK(good);
    bincp_noise_categorical_f32(2, 0.3, 0.6, KEY, N, bits, out);
    CHECK(memcmp(out, flipped, sizeof out) == 0);
    bincp_noise_categorical_f32(1 << 24, 1.0, 1.0, KEY, N, x, x); /* in place */
    for (int j = 0; j < N; j++) {
        CHECK(x[j] != (float)(j % K) && x[j] < 1 << 24);
    }
}

/* NULL stands for a row of zeros, in rows that are longer than the buffer, too. */
static void test_null_is_zeros(void)
{
    enum { N = 2500 };
    static const float zeros[N];
    static const double wide_zeros[N];
    static float from_zeros[N], from_null[N];
    static double wide_from_zeros[N], wide_from_null[N];
    bincp_noise_flip_f32(0.3, 0.6, KEY, N, zeros, from_zeros);
    bincp_noise_flip_f32(0.3, 0.6, KEY, N, NULL, from_null);
    CHECK(memcmp(from_zeros, from_null, sizeof from_null) == 0);
    bincp_noise_flip_f64(0.3, 0.6, KEY, N, wide_zeros, wide_from_zeros);
    bincp_noise_flip_f64(0.3, 0.6, KEY, N, NULL, wide_from_null);
    CHECK(memcmp(wide_from_zeros, wide_from_null, sizeof wide_from_null) == 0);
    bincp_noise_categorical_f32(7, 0.3, 0.6, KEY, N, zeros, from_zeros);
    bincp_noise_categorical_f32(7, 0.3, 0.6, KEY, N, NULL, from_null);
    CHECK(memcmp(from_zeros, from_null, sizeof from_null) == 0);
    bincp_noise_categorical_f64(7, 0.3, 0.6, KEY, N, wide_zeros, wide_from_zeros);
    bincp_noise_categorical_f64(7, 0.3, 0.6, KEY, N, NULL, wide_from_null);
    CHECK(memcmp(wide_from_zeros, wide_from_null, sizeof wide_from_null) == 0);
}

/* Integer noise of every length, in memory with no byte to spare, and of inputs that are no numbers. */
static void test_grid(void)
{
    enum { LONGEST = 200 };
    uint32_t entry[4] = {1, UINT32_C(0x80000002), 3, UINT32_C(0xFFFFFFFC)}, low[12] = {0};
    const bincp_grid_table table = {entry, low, 2, 1};
    static float longest[LONGEST], rounded[LONGEST];
    bincp_noise_grid_f32(table, 255, KEY, LONGEST, NULL, longest);
    bincp_noise_off_grid_f32(table, 255, 64.0, KEY, LONGEST, NULL, rounded);
    double wide_longest[LONGEST];
    bincp_noise_grid_f64(table, 255, KEY, LONGEST, NULL, wide_longest);
    for (size_t j = 0; j < LONGEST; j++) {
        CHECK((float)wide_longest[j] == longest[j]);
    }
    bincp_noise_off_grid_f64(table, 255, 64.0, KEY, LONGEST, NULL, wide_longest);
    for (size_t j = 0; j < LONGEST; j++) {
        CHECK((float)wide_longest[j] == rounded[j]);
    }
    for (size_t n = 1; n <= LONGEST; n++) {
        int32_t *k = calloc(n, sizeof *k);
        float *out = malloc(n * sizeof *out), *x = calloc(n, sizeof *x);
        double *wide = malloc(n * sizeof *wide), *wide_x = calloc(n, sizeof *wide_x);
        bincp_noise_grid_f32(table, 255, KEY, n, k, out);
        CHECK(memcmp(out, longest, n * sizeof *out) == 0);
        bincp_noise_grid_f64(table, 255, KEY, n, k, wide);
        CHECK((float)wide[n - 1] == longest[n - 1]);
        bincp_noise_off_grid_f32(table, 255, 64.0, KEY, n, x, x);
        CHECK(memcmp(x, rounded, n * sizeof *x) == 0);
        wide_x[0] = NAN;
        wide_x[n / 2] = -INFINITY;
        bincp_noise_off_grid_f64(table, 255, 64.0, KEY, n, wide_x, wide);
        k[0] = INT32_MAX;
        k[n - 1] = INT32_MIN;
        bincp_noise_grid_f32(table, 255, KEY, n, k, out);
        free(k);
        free(out);
        free(x);
        free(wide);
        free(wide_x);
    }
}

/* Word number `which` of an element: the definition, by the function that is checked against published
 * values. */
static uint32_t word_of(uint32_t stream, size_t element, int which)
{
    static const uint32_t streams[] = {0, PHILOX_SECOND, PHILOX_THIRD, PHILOX_THIRD | PHILOX_SECOND};
    const uint32_t counter[4]
        = {(uint32_t)(element / 64 * 16 + element % 16), KEY.draw, (uint32_t)KEY.id,
           (stream | streams[which]) << 24 | (uint32_t)(KEY.id >> 32)};
    const uint32_t seed[2] = {(uint32_t)KEY.seed, (uint32_t)(KEY.seed >> 32)};
    uint32_t out[4];
    bincp_philox4x32(counter, seed, out);
    return out[element % 64 / 16];
}

/* The random number of an element is its first two words. */
static void test_numbers_of_elements(void)
{
    enum { N = 300, FIRST = 128 };
    uint64_t numbers[N];
    bincp_noise_words(KEY, FIRST, N, numbers);
    for (size_t j = 0; j < N; j++) {
        CHECK(numbers[j] >> 32 == word_of(KEY.stream, FIRST + j, 0));
        CHECK((uint32_t)numbers[j] == word_of(KEY.stream, FIRST + j, 1));
    }
}

/* Probabilities whose first word, or first two, are those of an element: later words decide. */
static void test_flips_at_ties(void)
{
    enum { N = 8192 };
    static float zeros[N], ones[N], flips[N];
    int second = 0, third = 0;
    for (size_t j = 0; j < N; j++) {
        ones[j] = 1;
    }
    for (size_t j = 0; j < N; j++) {
        const uint32_t high = word_of(KEY.stream, j, 0), low = word_of(KEY.stream, j, 1);
        const uint64_t both = (uint64_t)high << 32 | low;
        if (j >= 64 && both % 2048 != 0) {
            continue; /* it has no double of its own */
        }
        const double p = (double)(both >> 11) * 0x1p-53;
        const int below = both < both >> 11 << 11;
        bincp_noise_flip_f32(p, 1.0, KEY, j + 1, zeros, flips); /* the number of p ends in zeros */
        CHECK(flips[j] == (float)below);
        bincp_noise_flip_f32(0.0, fmin(p + 0x1p-53, 1.0), KEY, j + 1, ones, flips);
        CHECK(flips[j] == 0.0f);
        second += both % 2048 != 0;
        third += both % 2048 == 0;
    }
    CHECK(second > 0 && third > 0);
}

/* Entries that agree with an element in the first word, and in as many of the other three. */
static void test_grid_at_ties(void)
{
    enum { N = 64, BITS = 2, MASK = 3 };
    static const uint32_t streams[] = {0, 0x40, 0x80, 0xC0};
    static const int32_t zeros[N];
    for (size_t j = 0; j < N; j++) {
        uint32_t entry[MASK + 1] = {0}, low[3 * (MASK + 1)] = {0}, number[4];
        for (int part = 0; part < 4; part++) {
            number[part] = word_of(KEY.stream | streams[part], j, 0);
        }
        const uint32_t column = number[0] & MASK, other = MASK - column;
        entry[column] = (number[0] & ~(uint32_t)MASK) | other;
        for (int equal = 0; equal <= 3; equal++) { /* words after the first that are equal */
            for (int more = 0; more <= (equal < 3); more++) {
                double out[N];
                for (int part = 0; part < 3; part++) {
                    low[3 * column + (uint32_t)part] = number[part + 1];
                }
                if (equal < 3) { /* it does not wrap around for these numbers */
                    low[3 * column + (uint32_t)equal] += more ? 1 : UINT32_MAX;
                }
                const bincp_grid_table table = {entry, low, BITS, 0};
                bincp_noise_grid_f64(table, 1, KEY, N, zeros, out);
                CHECK(out[j] == (double)(more ? column : other)); /* below the threshold, or not */
            }
        }
    }
}

/* The integral of exp(a t - b t^2) over (0, F), by Simpson's rule. */
static long double area(long double a, long double b, long double F)
{
    enum { PARTS = 2000 };
    long double sum = 0;
    for (int i = 0; i <= PARTS; i++) {
        const long double t = F * i / PARTS;
        sum += expl(a * t - b * t * t) * (i == 0 || i == PARTS ? 1 : i % 2 ? 4 : 2);
    }
    return sum * F / PARTS / 3;
}

/* Inputs between two points of the grid go up with the stated probability, in both directions, and the
 * number that decides has the bits of two words. */
static void test_off_the_grid(void)
{
    enum { N = 3000, BITS = 5 };
    static double x[N], out[N], q[N];
    static int32_t zeros[N];
    uint32_t entry[1 << BITS], low[3 << BITS] = {0};
    for (uint32_t column = 0; column < 1 << BITS; column++) {
        entry[column] = UINT32_C(0xFFFFFFE0) | column; /* each point as often as any other */
    }
    const bincp_grid_table table = {entry, low, BITS, 1 << (BITS - 1)};
    const double s = 4.0;
    for (size_t j = 0; j < N; j++) {
        x[j] = ((double)(j % 7) - 3 + ((double)(j % 101) - 50) / 101) / 8;
    }
    bincp_noise_grid_f64(table, 1, KEY, N, zeros, q);
    bincp_noise_off_grid_f64(table, 8, s, KEY, N, x, out);
    size_t steps = 0, wrong = 0;
    for (size_t j = 0; j < N; j++) {
        const double point = nearbyint(8 * x[j]), rest = 8 * x[j] - point;
        const long double b = 0.5L / (s * s), a = ((rest < 0 ? -q[j] : q[j]) + 0.5L) * 2 * b;
        const uint32_t stream = KEY.stream | 0x30, last = KEY.stream | 0x20;
        const double u = ((double)word_of(stream, j, 0) * 0x1p21 +
                          (double)(word_of(last, j, 0) >> 11)) * 0x1p-53;
        const int step = (long double)u < area(a, b, fabs(rest)) / area(a, b, 1);
        wrong += out[j] * 8 != point + q[j] + (rest < 0 ? -step : step);
        steps += (size_t)step;
    }
    CHECK(wrong == 0);
    CHECK(steps > N / 10 && steps < N / 2);
}

/* Numbers below 2^32 - 2 of which the first two words decide nothing, where the other two add one and
 * where they do not: they were searched for, and floor(u n) computed with long integers. */
static void test_choices_of_four_words(void)
{
    static const struct {
        uint32_t draw;
        int element;
        double choice;
    } cases[] = {{12045532, 8, 1198975800}, {41324465, 11, 3163127143}};
    for (int i = 0; i < 2; i++) {
        const bincp_noise_key key = {1, 0, cases[i].draw, BINCP_STREAM_TEST};
        double out[64];
        bincp_noise_categorical_f64(UINT32_MAX, 1.0, 1.0, key, 64, NULL, out);
        CHECK(out[cases[i].element] == cases[i].choice + 1); /* it changes from 0 */
    }
}

/* What is no category stays as it is, though its coin says that it changes. */
static void test_no_categories(void)
{
    enum { N = 4 };
    const double wide[N] = {-1, 5, NAN, 1e300};
    const float x[N] = {-1, 5, NAN, 1e30f};
    double wide_out[N];
    float out[N];
    bincp_noise_categorical_f64(5, 1.0, 1.0, KEY, N, wide, wide_out);
    bincp_noise_categorical_f32(5, 1.0, 1.0, KEY, N, x, out);
    CHECK(memcmp(wide, wide_out, sizeof wide) == 0);
    CHECK(memcmp(x, out, sizeof x) == 0);
    double noise[N];
    bincp_noise_add_f64(BINCP_NOISE_UNIFORM, 0.5f, KEY, N, NULL, noise);
    bincp_noise_add_f32(BINCP_NOISE_UNIFORM, 0.5f, KEY, N, NULL, out);
    for (int j = 0; j < N; j++) {
        CHECK(noise[j] == (double)out[j]);
    }
}

int main(void)
{
    test_philox();
    test_lengths();
    test_values();
    test_wide_units();
    test_flips();
    test_words();
    test_keep();
    test_splitting();
    test_grid();
    test_categories();
    test_null_is_zeros();
    test_numbers_of_elements();
    test_flips_at_ties();
    test_grid_at_ties();
    test_off_the_grid();
    test_choices_of_four_words();
    test_no_categories();
    return report("noise");
}
