/* A digest of many bounds, made without a library: tests/kernels/test_same_bits.py compares what the
 * compilers and instruction sets at hand make of it. Each kernel has a line of its own.
 *
 * Arguments are doubles made of random bits by integer arithmetic, so that they depend on nothing.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "certificates/laplace.h"
#include "certificates/steps.h"
#include "numerics/binomial.h"
#include "numerics/bits.h"
#include "numerics/functions.h"
#include "numerics/normal.h"

enum { COUNT = 1000 };

static uint64_t state = 1;

static uint64_t random_bits(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state ^ (state >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
}

/* A third each: all scales below 1, near 1, and evenly spread. */
static double probability(void)
{
    const uint64_t bits = random_bits(), kind = (random_bits() >> 33) % 3;
    const double spread = (double)(bits >> 11) * 0x1p-53;
    if (kind == 0) {
        return double_of(bits % bits_of(1.0));
    }
    return kind == 1 ? 1.0 - double_of(bits_of(1.0) - (bits % (UINT64_C(60) << 52))) : spread;
}

/* From 2^-20 to 2^9. */
static double shift(void)
{
    return double_of((UINT64_C(1003) << 52) + random_bits() % (UINT64_C(29) << 52));
}

static uint64_t digest;

static void add(double value)
{
    digest = (digest ^ bits_of(value)) * UINT64_C(0x100000001b3);
    digest ^= digest >> 31;
}

typedef void (*fill_fn)(const double *p, size_t n, const void *params, double *out);
typedef double (*bound_fn)(double p, const void *params);

static void normal_down(const double *p, size_t n, const void *params, double *out)
{
    bincp_normal_shift_down_fill(p, n, *(const double *)params, out);
}

static void normal_up(const double *p, size_t n, const void *params, double *out)
{
    bincp_normal_shift_up_fill(p, n, *(const double *)params, out);
}

static double normal_down_one(double p, const void *params)
{
    return bincp_normal_shift_down(p, *(const double *)params);
}

static double normal_up_one(double p, const void *params)
{
    return bincp_normal_shift_up(p, *(const double *)params);
}

static void check(const char *name, fill_fn fill, bound_fn bound, const void *params)
{
    static double p[COUNT], out[COUNT];
    for (int i = 0; i < COUNT; ++i) {
        p[i] = probability();
    }
    p[7] = 0.0;
    p[77] = 1.0;
    fill(p, COUNT, params, out);
    for (int i = 0; i < COUNT; ++i) {
        add(out[i]);
        if (bits_of(out[i]) != bits_of(bound(p[i], params))) {
            fprintf(stderr, "%s: a bound of an array is not the single bound at %a\n", name, p[i]);
            exit(EXIT_FAILURE);
        }
    }
}

static void digest_functions(int rounds)
{
    digest = 0;
    for (int i = 0; i < rounds * COUNT; ++i) {
        const double p = probability(), x = shift();
        add(exp_of(-x));
        add(expm1_of(p > 0.5 ? x : -x));
        add(log_of(p));
        add(log1p_of(-p));
        add(pow_of(p, x));
    }
    printf("functions %016llx\n", (unsigned long long)digest);
}

static void digest_binomials(int rounds)
{
    digest = 0;
    for (int i = 0; i < 10 * rounds; ++i) {
        const int64_t m = 1 + (int64_t)(random_bits() >> 50), s = (int64_t)(random_bits() >> 12) % (m + 1);
        const double p = (double)(random_bits() >> 11) * 0x1p-53, eta = probability();
        add(bincp_binom_sf(s, m, p, 1.0 - p));
        add(bincp_binom_pmf(s, m, p, 1.0 - p));
        add(bincp_cp_lower(s, m, eta));
        add(bincp_cp_upper(s, m, eta));
    }
    printf("binomial %016llx\n", (unsigned long long)digest);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 100;
    static const struct {
        const char *name;
        fill_fn fill;
        bound_fn bound;
    } kernels[] = {
        {"normal down", normal_down, normal_down_one},
        {"normal up", normal_up, normal_up_one},
        {"laplace lower", bincp_laplace_lower_fill, bincp_laplace_lower},
        {"laplace upper", bincp_laplace_upper_fill, bincp_laplace_upper},
        {"steps lower", bincp_steps_lower_fill, bincp_steps_lower},
        {"steps upper", bincp_steps_upper_fill, bincp_steps_upper},
    };
    for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; ++k) {
        digest = UINT64_C(0xcbf29ce484222325);
        for (int i = 0; i < rounds; ++i) {
            const double by = shift();
            const double levels = (double)(1 + (random_bits() >> (14 + random_bits() % 50)));
            const bincp_steps move = {levels, (double)((uint64_t)levels / (1 + random_bits() % 9))};
            check(kernels[k].name, kernels[k].fill, kernels[k].bound,
                  k < 4 ? (const void *)&by : (const void *)&move);
        }
        printf("%s %016llx\n", kernels[k].name, (unsigned long long)digest);
    }
    digest = 0;
    for (int i = 0; i < rounds * COUNT; ++i) {
        const double p = 0.5 * probability();
        if (p > 0.0) {
            const double x = bincp_normal_tail_quantile(p);
            add(x);
            add(bincp_normal_tail(x));
        }
    }
    printf("normal tail and quantile %016llx\n", (unsigned long long)digest);
    digest_functions(rounds);
    digest_binomials(rounds);
    return EXIT_SUCCESS;
}
