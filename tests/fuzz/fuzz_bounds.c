/* Bounds of every operator, and of trees of them: in [0, 1], on their sides, arrays as single values,
 * and each as its slow form. */
#include "api/capi.h"
#include "certificates/categorical_regions.h"
#include "certificates/combined.h"
#include "certificates/foreign.h"
#include "certificates/location.h"
#include "certificates/operators.h"
#include "certificates/sparse_regions.h"
#include "certificates/steps.h"

#include <float.h>
#include <math.h>

#include "fuzz.h"

enum { N = 33, MANY = 1100, MOST_FLIPS = 20, MOST_REGIONS = 9, MOST_PARTS = 3, MOST_DEPTH = 3 };

#define TRUE_MIN 4.9406564584124654e-324
#define PI 3.14159265358979323846

static bincp_api api;

static int same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static int is_proper(double p)
{
    return p >= 0.0 && p <= 1.0 && !signbit(p);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- what an operator is made of ---------------------------------------------------------------- */

typedef struct node node;
typedef void (*slow_form)(const node *of, double p, double low, double high);

struct node {
    const bincp_operator *op;
    int is_lawful; /* else only what holds for any functions is required */
    int is_single; /* not made of others */
    slow_form compare;
    const node *parts[MOST_PARTS];
    size_t n_parts;
    union {
        bincp_chain chain;
        bincp_best best;
        bincp_hierarchy hierarchy;
        bincp_charge charge;
        bincp_foreign foreign;
        bincp_location location;
        bincp_steps steps;
        double shifts[2];
        uint64_t word;
    } own;
    const bincp_operator *operators[MOST_PARTS];
    long double clean[2 * MOST_FLIPS], moved[2 * MOST_FLIPS];
    size_t n_regions;
};

enum { MOST_BLOCKS = 256 };
static void *blocks[MOST_BLOCKS];
static size_t n_blocks;

/* Memory until the end of the input. */
static void *kept(size_t size)
{
    REQUIRE(n_blocks < MOST_BLOCKS);
    return blocks[n_blocks++] = memory(size);
}

static node *new_node(void)
{
    node *made = kept(sizeof *made);
    memset(made, 0, sizeof *made);
    made->is_lawful = made->is_single = 1;
    return made;
}

static const bincp_operator *copy_of(bincp_operator op)
{
    bincp_operator *made = kept(sizeof *made);
    *made = op;
    return made;
}

static double shift_from(bytes *from)
{
    const double value = fabs(double_from(from));
    return isnan(value) ? INFINITY : byte_of(from) % 2 ? value : fmod(value, 50.0);
}

/* ---- built-in operators ------------------------------------------------------------------------- */

static const node *plain(bincp_builtin kind, bytes *from)
{
    node *made = new_node();
    made->own.shifts[0] = shift_from(from);
    made->own.shifts[1] = shift_from(from);
    made->op = copy_of(bincp_operator_make(kind, made->own.shifts));
    return made;
}

/* A struct of any size that there is, which the table fills in. */
static const node *from_table(bincp_builtin kind, bytes *from)
{
    node *made = new_node();
    const size_t sizes[] = {BINCP_OPERATOR_MIN_SIZE, offsetof(bincp_operator, upper_fill),
                            sizeof(bincp_operator), sizeof(bincp_operator) + 8};
    const size_t size = sizes[byte_of(from) % 4];
    bincp_operator *const op = kept(size);
    memset(op, 0xEE, size);
    op->abi_version = BINCP_ABI_VERSION;
    op->struct_size = (uint32_t)size;
    const double shift = shift_from(from);
    const int status = kind == BINCP_GAUSSIAN ? api.gaussian(shift, made->own.shifts, op)
                                              : api.uniform(shift, made->own.shifts, op);
    REQUIRE(status == BINCP_OK && op->struct_size == size);
    made->op = op;
    return made;
}

static const node *steps(bytes *from)
{
    node *made = new_node();
    bincp_steps *move = &made->own.steps;
    move->levels = fmin(1.0 + (double)(word_of(from) >> (14 + byte_of(from) % 50)), BINCP_MAX_LEVELS);
    move->steps = floor(move->levels * probability_from(from));
    made->op = copy_of(bincp_operator_make(BINCP_STEPS, move));
    return made;
}

static const node *expp(bytes *from)
{
    node *made = new_node();
    const double power = 1.0 + fmod(shift_from(from), 1000.0);
    made->own.location.shift = shift_from(from);
    made->own.location.law.expp = bincp_expp_make(power, tgamma(1.0 + 1.0 / power));
    made->op = copy_of(bincp_operator_make(BINCP_EXPP, &made->own.location));
    return made;
}

static const node *sech(bytes *from)
{
    node *made = new_node();
    const double alpha = 0.5 * (1.0 + (double)(word_of(from) >> (20 + byte_of(from) % 44)));
    const double norm = alpha < 1e4 ? exp(lgamma(alpha + 0.5) - lgamma(alpha)) / sqrt(PI)
                                    : sqrt(alpha / PI) * (1.0 - 0.125 / alpha);
    made->own.location.shift = shift_from(from);
    made->own.location.law.sech = bincp_sech_make(alpha, norm);
    made->op = copy_of(bincp_operator_make(BINCP_SECH, &made->own.location));
    return made;
}

/* gamma, and digamma(1 / gamma) - digamma(1), for a from 0.02 to 10^6 */
static const double PARETO[][2] = {
    {51.0, -50.96820053387606},
    {11.0, -10.859646757092172},
    {4.333333333333333, -4.006845622720277},
    {2.4285714285714284, -1.9007452511860539},
    {2.0, -1.3862943611198906},
    {1.6666666666666667, -0.9634035489916576},
    {1.3333333333333333, -0.5086452148849393},
    {1.1, -0.1603647469731971},
    {1.005, -0.008213638643205652},
    {1.000001, -1.6449336239713859e-06},
};

static const node *pareto(bytes *from)
{
    node *made = new_node();
    const double *law = PARETO[byte_of(from) % (sizeof PARETO / sizeof *PARETO)];
    made->own.location = (bincp_location){.shift = shift_from(from), .law.pareto = {law[0], law[1]}};
    made->op = copy_of(bincp_operator_make(BINCP_PARETO, &made->own.location));
    return made;
}

/* ---- regions ------------------------------------------------------------------------------------ */

/* The sum of `to` that a share p of `from` has, region after region. First ones without `from` are free. */
static long double knapsack(const long double *from, const long double *to, size_t n, long double p)
{
    long double spent = 0.0L, sum = 0.0L;
    for (size_t i = 0; i < n && (spent < p || spent + from[i] == 0.0L); i++) {
        const long double left = p - spent;
        sum += left < from[i] && from[i] > 0.0L ? left / from[i] * to[i] : to[i];
        spent += from[i];
    }
    return sum;
}

#define FINE (16.0L * LDBL_EPSILON)
#define COARSE 1e-13L

/* The exact bounds, of a p that is a little less or more: long doubles know sums near 1 no better, and
 * sums of masses are 1 up to rounding. */
static void compare_regions(const node *of, double p, double low, double high)
{
    const long double *const clean = of->clean, *const moved = of->moved;
    const size_t n = of->n_regions;
    const long double off = FINE + 2 * fabsl(knapsack(clean, clean, n, 2.0L) - 1)
                            + 2 * fabsl(knapsack(moved, moved, n, 2.0L) - 1);
    REQUIRE(low <= knapsack(clean, moved, n, p * (1 + FINE) + off) * (1 + FINE) + p * off);
    REQUIRE(low >= knapsack(clean, moved, n, p * (1 - COARSE) - off) * (1 - COARSE) - off - 1e-290L);
    REQUIRE(high >= knapsack(moved, clean, n, p * (1 - FINE) - off) * (1 - FINE) - off);
    REQUIRE(high <= knapsack(moved, clean, n, p * (1 + COARSE) + off) * (1 + COARSE) + off);
}

/* Masses of a wide range, each law summing to 1, in the order of their ratios. */
static const node *regions(bytes *from)
{
    node *made = new_node();
    const size_t n = 1 + byte_of(from) % MOST_REGIONS;
    double masses[2][MOST_REGIONS], sums[2] = {0.0, 0.0}, sorted[2][MOST_REGIONS];
    size_t order[MOST_REGIONS], m = 0;
    for (size_t i = 0; i < n; i++) {
        for (int law = 0; law < 2; law++) {
            const uint8_t scale = byte_of(from);
            masses[law][i] = scale % 8 == 0 ? 0.0 : ldexp(1.0 + byte_of(from), -(scale % 128));
            sums[law] += masses[law][i];
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (int law = 0; law < 2; law++) {
            masses[law][i] = sums[law] > 0.0 ? masses[law][i] / sums[law] : i == 0;
        }
        if (masses[0][i] > 0.0 || masses[1][i] > 0.0) { /* else it has no place in the order */
            order[m++] = i;
        }
    }
    for (size_t i = 1; i < m; i++) {
        for (size_t j = i; j > 0; j--) {
            const size_t a = order[j - 1], b = order[j];
            if ((long double)masses[0][a] * masses[1][b] >= (long double)masses[0][b] * masses[1][a]) {
                break;
            }
            order[j - 1] = b;
            order[j] = a;
        }
    }
    for (size_t i = 0; i < m; i++) {
        made->clean[i] = sorted[0][i] = masses[0][order[i]];
        made->moved[i] = sorted[1][i] = masses[1][order[i]];
    }
    made->n_regions = m;
    bincp_operator *const op = kept(sizeof *op);
    *op = (bincp_operator)BINCP_OPERATOR_INIT;
    REQUIRE(api.regions(sorted[0], sorted[1], m, 0x1p-50, 0.0, kept(api.regions_bytes(m)), op)
            == BINCP_OK);
    made->op = op;
    made->compare = compare_regions;
    return made;
}

/* The law of a number of flips, coin by coin. */
static void add_coins(long double *law, size_t *n, size_t coins, long double p, long double q)
{
    for (size_t i = 0; i < coins; i++) {
        law[++*n] = 0.0L;
        for (size_t k = *n; k > 0; k--) {
            law[k] = law[k] * q + law[k - 1] * p;
        }
        law[0] *= q;
    }
}

static double flip_from(bytes *from)
{
    const double p = probability_from(from);
    return p < 1e-300 ? 0.0 : p;
}

static const node *sparse(bytes *from)
{
    node *made = new_node();
    const size_t additions = byte_of(from) % MOST_FLIPS, deletions = byte_of(from) % MOST_FLIPS;
    const double p_plus = flip_from(from), p_minus = flip_from(from);
    bincp_operator *const op = kept(sizeof *op);
    *op = (bincp_operator)BINCP_OPERATOR_INIT;
    void *const storage = kept(api.sparse_bytes(additions, deletions));
    REQUIRE(api.sparse(additions, deletions, p_plus, p_minus, storage, op) == BINCP_OK);
    made->op = op;
    const int direction = bincp_sparse_direction(p_plus, p_minus);
    const int is_in_range = (p_plus == 0.0 || p_plus > 1e-100) && (p_minus == 0.0 || p_minus > 1e-100);
    if (direction == 0 || additions + deletions == 0 || !is_in_range) {
        return made; /* the identity, or masses that are no long doubles */
    }
    size_t n[2] = {0, 0};
    made->clean[0] = made->moved[0] = 1.0L;
    add_coins(made->clean, &n[0], additions, p_plus, 1.0L - p_plus);
    add_coins(made->clean, &n[0], deletions, p_minus, 1.0L - p_minus);
    add_coins(made->moved, &n[1], additions, 1.0L - p_minus, p_minus);
    add_coins(made->moved, &n[1], deletions, 1.0L - p_plus, p_plus);
    made->n_regions = n[0] + 1;
    for (size_t i = 0; direction > 0 && i < made->n_regions / 2; i++) {
        const size_t j = n[0] - i;
        const long double clean = made->clean[i], moved = made->moved[i];
        made->clean[i] = made->clean[j];
        made->moved[i] = made->moved[j];
        made->clean[j] = clean;
        made->moved[j] = moved;
    }
    made->compare = compare_regions;
    return made;
}

/* ---- operators of operators --------------------------------------------------------------------- */

static const node *tree(bytes *from, int depth);

static double lower(const node *of, double p)
{
    return of->op->lower(p, of->op->params);
}

static double upper(const node *of, double p)
{
    return of->op->upper(p, of->op->params);
}

static node *of_parts(bytes *from, int depth, size_t n)
{
    node *made = new_node();
    made->n_parts = n;
    made->is_single = 0;
    for (size_t i = 0; i < n; i++) {
        made->parts[i] = tree(from, depth - 1);
        made->operators[i] = made->parts[i]->op;
        made->is_lawful &= made->parts[i]->is_lawful;
    }
    return made;
}

static void compare_chain(const node *of, double p, double low, double high)
{
    double down = p + 0.0, up = down; /* 0 for -0 */
    for (size_t round = 0; round < of->own.chain.rounds; round++) {
        for (size_t i = 0; i < of->n_parts; i++) {
            down = lower(of->parts[i], down);
            up = upper(of->parts[of->n_parts - 1 - i], up);
        }
    }
    REQUIRE(!of->is_lawful || (same(low, down) && same(high, up)));
}

static const node *chain(bytes *from, int depth)
{
    node *made = of_parts(from, depth, 1 + byte_of(from) % MOST_PARTS);
    made->own.chain = (bincp_chain){made->operators, made->n_parts, byte_of(from) % 4};
    made->op = copy_of(bincp_operator_chain(&made->own.chain));
    made->compare = compare_chain;
    return made;
}

static void compare_best(const node *of, double p, double low, double high)
{
    double most = 0.0, least = 1.0;
    for (size_t i = 0; i < of->n_parts; i++) {
        const double down = lower(of->parts[i], p), up = upper(of->parts[i], p);
        most = isnan(down) || down > most ? down : most;
        least = isnan(up) || up < least ? up : least;
        if (isnan(down) || isnan(up)) {
            REQUIRE((!isnan(down) || isnan(low)) && (!isnan(up) || isnan(high)));
            return;
        }
    }
    REQUIRE(same(low, most) && same(high, least));
}

static const node *best(bytes *from, int depth)
{
    node *made = of_parts(from, depth, 1 + byte_of(from) % MOST_PARTS);
    made->own.best = (bincp_best){made->operators, made->n_parts};
    made->op = copy_of(bincp_operator_best(&made->own.best));
    made->compare = compare_best;
    return made;
}

/* The formula at a p, and with a weight, that are a little better and a little worse. */
static void compare_hierarchy(const node *of, double p, double low, double high)
{
    const bincp_hierarchy *level = &of->own.hierarchy;
    const double given = (double)(1.0L - (1.0L - p) / level->above);
    const double selected = nextafter(given > 0.0 ? given : 0.0, 2.0);
    const double most = lower(of->parts[0], fmin(selected, 1.0));
    const double least = upper(of->parts[0], fmin(nextafter(p / level->above, -1.0), 1.0));
    if (of->is_lawful && of->parts[0]->is_single) { /* others may fall by more than rounding */
        REQUIRE(low <= (level->above * (long double)most) * (1.0L + 1e-12L) + 1e-15L);
        REQUIRE(high >= (1.0L - level->above + level->above * (long double)fmax(least, 0.0))
                            * (1.0L - 1e-12L) - 1e-15L);
    }
}

static const node *hierarchy(bytes *from, int depth)
{
    node *made = of_parts(from, depth, 1);
    const double w = fmin(fmax(probability_from(from), DBL_MIN), 1.0 - 0x1p-53);
    const double rest = 1.0 - w, lack = (1.0 - rest) - w; /* 1 - w = rest + lack */
    const double up = lack > 0.0 ? nextafter(rest, 2.0) : rest;
    made->own.hierarchy = (bincp_hierarchy){made->operators[0], w, w, up, (rest - up) + lack};
    made->op = copy_of(bincp_operator_hierarchy(&made->own.hierarchy));
    made->compare = compare_hierarchy;
    return made;
}

static void compare_charge(const node *of, double p, double low, double high)
{
    const long double delta = of->own.charge.delta;
    const double less = (double)(p - delta), more = (double)(p + delta);
    if (of->is_lawful && of->parts[0]->is_single) {
        const long double most = lower(of->parts[0], fmin(fmax(nextafter(less, 2.0), 0.0), 1.0)) - delta;
        const long double least = upper(of->parts[0], fmin(fmax(nextafter(more, -1.0), 0.0), 1.0)) + delta;
        REQUIRE(low <= (most > 0.0L ? most : 0.0L) * (1.0L + 1e-12L) + 1e-15L);
        REQUIRE(high >= (least < 1.0L ? least : 1.0L) * (1.0L - 1e-12L) - 1e-15L);
    }
}

static const node *charge(bytes *from, int depth)
{
    node *made = of_parts(from, depth, 1);
    memcpy(&made->own.charge.of, made->operators[0],
           made->operators[0]->struct_size < sizeof(bincp_operator) ? made->operators[0]->struct_size
                                                                    : sizeof(bincp_operator));
    made->own.charge.delta = probability_from(from);
    made->op = copy_of(bincp_operator_charged(&made->own.charge));
    made->compare = compare_charge;
    return made;
}

/* ---- functions from outside --------------------------------------------------------------------- */

/* Any double, the same one for the same p; but the ends stay, where chains stop. */
static double wild(double p, const void *params)
{
    REQUIRE(is_proper(p));
    if (p == 0.0 || p == 1.0) {
        return p;
    }
    uint64_t bits;
    memcpy(&bits, &p, sizeof bits);
    bits = (bits ^ *(const uint64_t *)params) * UINT64_C(0x9E3779B97F4A7C15);
    bits ^= bits >> 29;
    double value;
    memcpy(&value, &bits, sizeof value);
    return bits % 8 == 0 ? value : bits % 8 == 1 ? -0.0 : (double)(bits >> 11) * 0x1p-53;
}

static double wild_with_data(double p, void *data)
{
    return wild(p, data);
}

static void wild_fill(const double *p, size_t n, const void *params, double *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = wild(p[i], params);
    }
}

static const node *outside(bytes *from)
{
    node *made = new_node(), *seed = new_node();
    const uint8_t flags = byte_of(from);
    seed->own.word = word_of(from);
    bincp_function *const both[] = {&made->own.foreign.lower, &made->own.foreign.upper};
    for (int i = 0; i < (flags & 1 ? 2 : 1); i++) {
        both[i]->data = &seed->own.word;
        if (flags & 2) {
            both[i]->with_data = wild_with_data;
        } else {
            both[i]->bound = wild;
        }
        both[i]->fill = flags & 4 ? wild_fill : NULL;
    }
    made->is_lawful = 0;
    made->op = copy_of(bincp_foreign_operator(&made->own.foreign, "outside"));
    return made;
}

/* An operator of our own as one from outside, of which `upper` may be left out. */
static void compare_guarded(const node *of, double p, double low, double high)
{
    REQUIRE(same(low, lower(of->parts[0], p)));
    const double inverse = bincp_generalised_inverse(of->parts[0]->op->lower,
                                                     of->parts[0]->op->params, p);
    REQUIRE(same(high, of->own.foreign.upper.bound ? upper(of->parts[0], p) : inverse));
}

static const node *guarded(bytes *from, int depth)
{
    node *made = of_parts(from, depth, 1);
    made->own.foreign = bincp_foreign_functions(made->operators[0]);
    if (byte_of(from) % 4 == 0) {
        memset(&made->own.foreign.upper, 0, sizeof made->own.foreign.upper);
    }
    made->op = copy_of(bincp_foreign_operator(&made->own.foreign, "guarded"));
    made->compare = compare_guarded;
    return made;
}

static const node *tree(bytes *from, int depth)
{
    static const bincp_builtin shifts[] = {BINCP_IDENTITY,        BINCP_GAUSSIAN, BINCP_UNIFORM,
                                           BINCP_LAPLACE,         BINCP_LAPLACE_UNIFORM,
                                           BINCP_HALF_POWER};
    const int kind = byte_of(from) % (depth > 0 ? 20 : 14);
    switch (kind) {
    case 6: return from_table(BINCP_GAUSSIAN, from);
    case 7: return from_table(BINCP_UNIFORM, from);
    case 8: return steps(from);
    case 9: return expp(from);
    case 10: return sech(from);
    case 11: return pareto(from);
    case 12: return regions(from);
    case 13: return sparse(from);
    case 14: return chain(from, depth);
    case 15: return best(from, depth);
    case 16: return hierarchy(from, depth);
    case 17: return charge(from, depth);
    case 18: return guarded(from, depth);
    case 19: return outside(from);
    default: return plain(shifts[kind], from);
    }
}

/* ---- what holds for all of them ----------------------------------------------------------------- */

static void check_lawful(const node *of, double p, double low, double high)
{
    REQUIRE(low <= p && p <= high);
    /* The law: going down and up again ends where it began, or above. */
    REQUIRE(low < 1e-290 || upper(of, low) >= p * (1 - 1e-9) - 1e-13);
}

static void check_inverse(const node *of, double p)
{
    const double value = bincp_generalised_inverse(of->op->lower, of->op->params, p);
    if (!of->is_lawful) {
        REQUIRE(isnan(value) || is_proper(value));
        return;
    }
    REQUIRE(is_proper(value) && (value == 1.0 || lower(of, value) > p));
    REQUIRE(p < 1e-290 || fabs(value - upper(of, p)) <= 1e-9 * value + 1e-13);
}

static void check(const node *of, bytes *from)
{
    double p[MANY], low[MANY], high[MANY];
    for (int i = 0; i < N; i++) {
        p[i] = probability_from(from);
    }
    const uint8_t flags = byte_of(from);
    const int in_order = flags % 2;
    if (in_order) {
        qsort(p, N, sizeof *p, ascending);
    }
    const size_t n = flags < 250 ? N : MANY; /* chunks have 512 values */
    for (size_t i = N; i < n; i++) {
        p[i] = p[i % N];
    }
    bincp_lower_fill(of->op, p, n, low);
    bincp_upper_fill(of->op, p, n, high);
    for (size_t i = 0; i < n; i++) {
        REQUIRE(i < N || (same(low[i], low[i % N]) && same(high[i], high[i % N])));
    }
    for (size_t i = 0; i < N; i++) {
        REQUIRE(same(low[i], lower(of, p[i])) && same(high[i], upper(of, p[i])));
        REQUIRE((is_proper(low[i]) && is_proper(high[i])) || !of->is_lawful);
        REQUIRE((is_proper(low[i]) || isnan(low[i])) && (is_proper(high[i]) || isnan(high[i])));
        if (of->is_lawful) {
            check_lawful(of, p[i], low[i], high[i]);
        }
        if (of->is_single && of->is_lawful && in_order && i > 0) { /* as bincp.h states */
            REQUIRE(low[i - 1] <= low[i] * (1 + 1e-12) + 1e-15);
            REQUIRE(high[i - 1] <= high[i] * (1 + 1e-12) + 1e-15);
        }
        if (of->compare != NULL) {
            of->compare(of, p[i], low[i], high[i]);
        }
    }
    check_inverse(of, p[0]);
    const double outside = double_from(from);
    if (!(outside >= 0.0 && outside <= 1.0)) {
        REQUIRE(isnan(lower(of, outside)) && isnan(upper(of, outside)));
    }
}

/* ---- masses of categories ----------------------------------------------------------------------- */

static void categories(bytes *from)
{
    enum { MOST_KINDS = 3, MOST_COUNT = 6, MOST_EXPONENT = 4, ROOM = 1 + 3 * 5 * 3 };
    bincp_coordinates kinds[MOST_KINDS];
    const size_t n_kinds = byte_of(from) % (MOST_KINDS + 1);
    long double law[ROOM] = {1.0L}, next[ROOM];
    size_t size = 1, margin = 0;
    for (size_t k = 0; k < n_kinds; k++) {
        bincp_coordinates *const kind = kinds + k;
        size_t largest = 0;
        kind->count = byte_of(from) % MOST_COUNT;
        for (int j = 0; j < 3; j++) {
            kind->exponent[j] = byte_of(from) % MOST_EXPONENT;
            kind->hi[j] = probability_from(from) / 3.0;
            kind->lo[j] = kind->hi[j] > 1e-280 ? kind->hi[j] * 0x1p-54 * (byte_of(from) / 256.0) : 0.0;
            largest = kind->exponent[j] > largest ? kind->exponent[j] : largest;
        }
        for (size_t i = 0; i < kind->count; i++) {
            for (size_t e = 0; e < ROOM; e++) {
                next[e] = 0.0L;
                for (int j = 0; j < 3; j++) {
                    const size_t by = kind->exponent[j];
                    next[e] += e < by ? 0.0L : law[e - by] * ((long double)kind->hi[j] + kind->lo[j]);
                }
            }
            memcpy(law, next, sizeof law);
        }
        size += kind->count * largest;
        margin = largest > margin ? largest : margin;
    }
    double *const mass = kept(size * sizeof *mass);
    double *const workspace = kept(4 * (size + margin) * sizeof *workspace);
    bincp_categorical_masses(kinds, n_kinds, size, mass, workspace);
    const long double tiny = bincp_categorical_tiny(kinds, n_kinds, size);
    for (size_t e = 0; e < size; e++) {
        REQUIRE(fabsl(mass[e] - law[e]) <= (BINCP_CATEGORICAL_SLACK + FINE) * law[e] + tiny);
        REQUIRE((mass[e] > 0.0) == (law[e] > 0.0L));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bytes from = {data, size};
    api = bincp_api_make(NULL);
    if (byte_of(&from) % 16 == 15) {
        categories(&from);
    } else {
        check(tree(&from, MOST_DEPTH), &from);
    }
    while (n_blocks > 0) {
        free(blocks[--n_blocks]);
    }
    return 0;
}
