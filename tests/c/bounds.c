/* A digest of many bounds, made without a library: tests/kernels/test_same_bits.py compares what the
 * compilers and instruction sets at hand make of it. Each kernel has a line of its own.
 *
 * Arguments are doubles made of random bits by integer arithmetic, so that they depend on nothing.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "certificates/knapsack.h"
#include "certificates/location.h"
#include "certificates/operators.h"
#include "certificates/steps.h"
#include "numerics/binomial.h"
#include "numerics/bits.h"
#include "numerics/functions.h"
#include "numerics/normal.h"

enum { COUNT = 1000, FEW = 100, FLIPS = 30 };

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

/* ---- operators --------------------------------------------------------------------------------- */

/* The bounds of an operator at so many probabilities, of an array and one by one. */
static void add_bounds(const bincp_operator *op, int count)
{
    static double p[COUNT], low[COUNT], high[COUNT];
    for (int i = 0; i < count; ++i) {
        p[i] = probability();
    }
    p[7] = 0.0;
    p[77] = 1.0;
    bincp_lower_fill(op, p, (size_t)count, low);
    bincp_upper_fill(op, p, (size_t)count, high);
    for (int i = 0; i < count; ++i) {
        add(low[i]);
        add(high[i]);
        if (bits_of(low[i]) != bits_of(op->lower(p[i], op->params)) ||
            bits_of(high[i]) != bits_of(op->upper(p[i], op->params))) {
            fprintf(stderr, "%s: a bound of an array is not the single bound at %a\n", op->name,
                    p[i]);
            exit(EXIT_FAILURE);
        }
    }
}

/* What a law is made of, with the constants to 60 digits: power and gamma; alpha and norm; gamma and
 * kappa. */
typedef double constants[2];

static const constants powers[] = {
    {1.0, 0x1.0000000000000p+0},    {1.5, 0x1.ce34a18baf34cp-1},   {2.5, 0x1.c647716e331bbp-1},
    {4.0, 0x1.d013fc47eeeeap-1},    {7.0, 0x1.def1ac1825989p-1},   {20.0, 0x1.f26f26ae379d2p-1},
    {21.0, 0x1.f3070b989df2fp-1},   {33.25, 0x1.f78ebba62c0d6p-1}, {100.0, 0x1.fd184728dea8cp-1},
    {1000.0, 0x1.ffb479035522fp-1}, {1e6, 0x1.ffffeca1c3812p-1},   {1e300, 0x1.0000000000000p+0},
};
static const constants alphas[] = {
    {0.5, 0x1.45f306dc9c883p-2},  {1.0, 0x1.0000000000000p-1},     {1.5, 0x1.45f306dc9c883p-1},
    {4.0, 0x1.1800000000000p+0},  {15.5, 0x1.1a08501801767p+1},    {16.0, 0x1.1e9e123000000p+1},
    {33.0, 0x1.9d4851a18ef03p+1}, {100.0, 0x1.68a159171a3b8p+2},   {391.5, 0x1.651c366c99f7dp+3},
    {1e5, 0x1.64d30a6258b9ep+7},  {4.6e18, 0x1.207fb422a3d20p+30},
};
static const constants paretos[] = {
    {0x1.e848200000000p+19, -0x1.e8481ffffc8cep+19}, {0x1.8000000000000p+1, -0x1.470447add533cp+1},
    {0x1.0000000000000p+1, -0x1.62e42fefa39efp+0},   {0x1.5555555555555p+0, -0x1.046d25466539cp-1},
    {0x1.0c30c30c30c31p+0, -0x1.3cdd6aeb42724p-4},   {0x1.004189374bc6ap+0, -0x1.af17f50f70757p-10},
};

#define PICK(table, i) ((table)[(size_t)(i) % (sizeof(table) / sizeof((table)[0]))])

static bincp_law law_of(bincp_builtin kind, int i)
{
    bincp_law law;
    if (kind == BINCP_EXPP) {
        law.expp = bincp_expp_make(PICK(powers, i)[0], PICK(powers, i)[1]);
    } else if (kind == BINCP_SECH) {
        law.sech = bincp_sech_make(PICK(alphas, i)[0], PICK(alphas, i)[1]);
    } else {
        law.pareto = (bincp_pareto){PICK(paretos, i)[0], PICK(paretos, i)[1]};
    }
    return law;
}

static void digest_shifts(bincp_builtin kind, int rounds, int count, int charged)
{
    digest = UINT64_C(0xcbf29ce484222325);
    const char *name = bincp_operator_make(kind, NULL).name;
    for (int i = 0; i < rounds; ++i) {
        const double by = shift();
        const bincp_charge charge = {bincp_operator_make(kind, &by), by * 0x1p-40};
        const bincp_operator op = charged ? bincp_operator_charged(&charge) : charge.of;
        add_bounds(&op, count);
    }
    printf("%s%s %016llx\n", charged ? "charged " : "", name, (unsigned long long)digest);
}

static void digest_steps(int rounds)
{
    digest = 0;
    for (int i = 0; i < rounds; ++i) {
        const double levels = (double)(1 + (random_bits() >> (14 + random_bits() % 50)));
        const bincp_steps move = {levels, (double)((uint64_t)levels / (1 + random_bits() % 9))};
        const bincp_operator op = bincp_operator_make(BINCP_STEPS, &move);
        add_bounds(&op, COUNT);
    }
    printf("steps %016llx\n", (unsigned long long)digest);
}

static void digest_laws(bincp_builtin kind, int rounds)
{
    digest = 0;
    for (int i = 0; i < rounds; ++i) {
        const bincp_location location = {.shift = shift(), .law = law_of(kind, i)};
        const bincp_operator op = bincp_operator_make(kind, &location);
        add_bounds(&op, FEW);
    }
    printf("%s %016llx\n", bincp_operator_make(kind, NULL).name, (unsigned long long)digest);
}

static void digest_regions(int rounds)
{
    const size_t most = 2 * FLIPS + 1;
    void *const storage = malloc(bincp_operator_regions_bytes(most));
    double *const workspace =
        malloc(bincp_operator_sparse_workspace(FLIPS, FLIPS) * sizeof *workspace);
    digest = 0;
    for (int i = 0; i < rounds; ++i) {
        const size_t additions = 1 + random_bits() % FLIPS, deletions = random_bits() % FLIPS;
        const double p_plus = (double)(1 + random_bits() % 1000) * 0x1p-11;
        const double p_minus = (double)(1 + random_bits() % 1000) * 0x1p-11;
        const bincp_operator op =
            bincp_operator_sparse(additions, deletions, p_plus, p_minus, storage, workspace);
        add_bounds(&op, FEW);
    }
    free(workspace);
    free(storage);
    printf("regions %016llx\n", (unsigned long long)digest);
}

/* ---- functions --------------------------------------------------------------------------------- */

static void digest_tails(int rounds)
{
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
        const int64_t m = 1 + (int64_t)(random_bits() >> 50),
                      s = (int64_t)(random_bits() >> 12) % (m + 1);
        const double p = (double)(random_bits() >> 11) * 0x1p-53, eta = probability();
        add(bincp_binom_sf(s, m, p, 1.0 - p));
        add(bincp_binom_pmf(s, m, p, 1.0 - p));
        add(bincp_cp_lower(s, m, eta));
        add(bincp_cp_upper(s, m, eta));
    }
    printf("binomial %016llx\n", (unsigned long long)digest);
}

/* A million bounds for 100 rounds, and values of the functions below them. */
int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 100;
    digest_shifts(BINCP_GAUSSIAN, rounds, COUNT, 0);
    digest_shifts(BINCP_GAUSSIAN, rounds, COUNT, 1);
    digest_shifts(BINCP_LAPLACE, rounds, COUNT, 0);
    digest_shifts(BINCP_HALF_POWER, rounds, FEW, 0);
    digest_steps(rounds);
    digest_laws(BINCP_EXPP, 3 * rounds);
    digest_laws(BINCP_SECH, 3 * rounds);
    digest_laws(BINCP_PARETO, 2 * rounds);
    digest_regions(rounds);
    digest_tails(rounds);
    digest_functions(rounds);
    digest_binomials(rounds);
    return EXIT_SUCCESS;
}
