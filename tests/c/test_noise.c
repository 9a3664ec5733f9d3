/* The noise kernel on its own, for the sanitizers:
 *
 *   gcc -std=c11 -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -Icsrc \
 *       tests/c/test_noise.c csrc/noise.c -lm
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "noise.h"

static const bincp_noise_key KEY
    = {UINT64_C(0xFEDCBA9876543210), UINT64_C(0xABCDEF01234567), 0x7FFFFFFF, BINCP_STREAM_TEST};

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

int main(void)
{
    test_philox();
    test_lengths();
    test_values();
    test_wide_units();
    test_flips();
    return report("noise");
}
