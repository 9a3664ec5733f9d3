/* Kernels that read memory while another thread overwrites it, under the address and
 * undefined-behaviour sanitizers: `make -C tests/c`.
 *
 * The data races are the point: what is computed means nothing, but no kernel may leave its memory,
 * overflow or hang. (That they do not race on memory of their own is for hammer_shared.c.)
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "certificates/knapsack.h"
#include "certificates/location.h"
#include "certificates/operators.h"
#include "certificates/sparse_regions.h"
#include "certificates/steps.h"
#include "counting/count.h"
#include "noise/grid.h"
#include "noise/laws.h"
#include "noise/splitting.h"
#include "numerics/binomial.h"
#include "rules/mixture.h"
#include "rules/sequential.h"

#include "check.h"

enum { N = 1500, REGIONS = 41, M = 50, INPUTS = 3, LABELS = 10, ROWS = 60, ROUNDS = 5000 };
enum { BITS = 12, COLUMNS = 1 << BITS, FEW = 24 };

/* What the other thread writes to. Each kind has values that are right and values that are wrong. */
typedef struct memory {
    double p[N], q[N], clean[REGIONS], perturbed[REGIONS], weights[M + 1], categories[N];
    int64_t successes[N], trials[N], inputs[ROWS];
    uint32_t order[N], entry[COLUMNS], low[3 * COLUMNS];
    int32_t accept[M + 1], reject[M + 1], draws[INPUTS], starts[N], slack[N];
    float scores[N];
    unsigned char hits[ROWS * LABELS];
} memory;

static memory right;
static memory *shared; /* in the heap, so that a step beyond the last array is seen */
static atomic_int done, wrong;

static void make_right(void)
{
    for (int i = 0; i < N; i++) {
        right.p[i] = (double)i / (N - 1);
        right.q[i] = 1.0 - right.p[i];
        right.categories[i] = i % 4;
        right.successes[i] = i % 90;
        right.trials[i] = 90 + i % 100;
        right.order[i] = (uint32_t)(N - 1 - i);
        right.scores[i] = (float)i;
        right.starts[i] = 2 * (i % 200) - 1;
        right.slack[i] = i % 10;
    }
    for (int i = 0; i < REGIONS; i++) {
        right.clean[i] = right.perturbed[i] = 1.0 / REGIONS;
    }
    for (uint32_t c = 0; c < COLUMNS; c++) { /* so many columns that some words are ties */
        right.entry[c] = right.low[3 * c] = (c << (32 - BITS)) | c;
    }
    for (int l = 0; l <= M; l++) {
        right.weights[l] = (double)l / M;
        right.accept[l] = 30;
        right.reject[l] = l + 29 - M;
    }
    for (int r = 0; r < ROWS; r++) {
        right.inputs[r] = r % INPUTS;
    }
    memset(right.hits, 1, sizeof right.hits);
}

static void *overwrite(void *unused)
{
    /* As doubles NaN, -1, 7, infinity and 9e307; as pairs of int32_t the largest and the smallest. */
    static const uint64_t patterns[] = {
        UINT64_C(0x7ff8000000000000), UINT64_C(0xbff0000000000000), UINT64_C(0x401c000000000000),
        UINT64_C(0x7ff0000000000000), UINT64_C(0x7fe0000000000000), UINT64_C(0x7fffffff7fffffff),
        UINT64_C(0x8000000080000000),
    };
    unsigned char *const bytes = (unsigned char *)shared;
    for (size_t turn = 0; !atomic_load(&done); turn++) {
        const uint64_t pattern = patterns[turn % (sizeof patterns / sizeof *patterns)];
        for (size_t i = 0; i + sizeof pattern <= sizeof *shared; i += 8 * (1 + turn % 97)) {
            memcpy(bytes + i, &pattern, sizeof pattern);
        }
        if (turn % 3 == 0) {
            memset(bytes, turn % 2 ? 0xff : 0x7f, sizeof *shared); /* integers of all sizes */
        }
        memcpy(shared, &right, sizeof right);
    }
    return unused;
}

static double *doubles(size_t n)
{
    return malloc(n * sizeof(double)); /* its own block, so that each end is watched */
}

static void certificates(const bincp_regions *regions)
{
    double *const out = doubles(9 * N);
    bincp_regions_lower_fill(regions, shared->p, N, out);
    const bincp_operator op = bincp_operator_make(BINCP_REGIONS, regions);
    bincp_lower_fill(&op, shared->p, N, out);
    bincp_upper_fill(&op, shared->p, N, out);
    const double shift = 0.1;
    const bincp_operator uniform = bincp_operator_make(BINCP_UNIFORM, &shift);
    bincp_lower_fill(&uniform, shared->p, N, out);
    bincp_upper_fill(&uniform, shared->p, N, out);
    double *const workspace = doubles(bincp_sparse_grid_workspace(2, 2, N));
    bincp_sparse_grid(2, 2, 0.01, 0.6, shared->p, shared->order, N, out, workspace);
    bincp_sparse_grid(2, 2, 0.01, 0.6, shared->p, NULL, N, out, workspace);
    free(workspace);
    double *const storage = doubles(bincp_regions_size(REGIONS));
    double *const sums = doubles(bincp_regions_workspace(REGIONS));
    const bincp_regions made =
        bincp_regions_make(shared->clean, shared->perturbed, REGIONS, 1e-15, 0.0, storage, sums);
    bincp_regions_lower_fill(&made, right.p, N, out);
    for (int i = 0; i < N; i++) {
        out[i] = bincp_regions_upper(&made, right.p[i]);
    }
    free(sums);
    free(storage);
    free(out);
}

/* Every law over arrays, and the charge for it. The slow ones get a few probabilities. */
static void laws(void)
{
    static const double shifts[2] = {0.25, 0.125};
    static const bincp_steps steps = {255.0, 10.0};
    const bincp_location expp = {.shift = 0.5,
                                 .law.expp = bincp_expp_make(4.0, 0.90640247705547708)};
    const bincp_location sech = {.shift = 0.5, .law.sech = bincp_sech_make(1.0, 0.5)};
    const bincp_location pareto = {.shift = 0.5, .law.pareto = {4.0 / 3.0, -0.5}};
    const struct {
        bincp_builtin kind;
        const void *params;
        size_t n;
    } made[] = {
        {BINCP_IDENTITY, NULL, N},          {BINCP_GAUSSIAN, shifts, N},
        {BINCP_UNIFORM, shifts, N},         {BINCP_STEPS, &steps, N},
        {BINCP_LAPLACE, shifts, N},         {BINCP_EXPP, &expp, FEW},
        {BINCP_LAPLACE_UNIFORM, shifts, N}, {BINCP_SECH, &sech, FEW},
        {BINCP_PARETO, &pareto, FEW},       {BINCP_HALF_POWER, shifts, FEW},
    };
    double *const out = doubles(N);
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        const bincp_charge charge = {bincp_operator_make(made[i].kind, made[i].params), 0x1p-20};
        const bincp_operator op[2] = {charge.of, bincp_operator_charged(&charge)};
        for (int charged = 0; charged < 2; charged++) {
            bincp_lower_fill(&op[charged], shared->p, made[i].n, out);
            bincp_upper_fill(&op[charged], shared->p, made[i].n, out);
        }
    }
    free(out);
}

static void grid_noise(void)
{
    const bincp_noise_key key = {.seed = 1, .id = 2, .draw = 3, .stream = BINCP_STREAM_TEST};
    const bincp_grid_table table = {shared->entry, shared->low, BITS, COLUMNS / 2};
    double *const wide = doubles(N);
    float *const narrow = malloc(N * sizeof *narrow);
    bincp_noise_grid_f32(table, 255, key, N, shared->starts, narrow);
    bincp_noise_grid_f64(table, 255, key, N, shared->starts, wide);
    bincp_noise_off_grid_f32(table, 255, 16.0, key, N, shared->scores, narrow);
    bincp_noise_off_grid_f64(table, 255, 16.0, key, N, shared->p, wide);
    free(narrow);
    free(wide);
}

static void rules(void)
{
    double *const out = doubles(3 * N), *const scratch = doubles(BINCP_SEQUENTIAL_SCRATCH(M));
    bincp_failures(30, M, shared->p, shared->q, N, out);
    bincp_binomial_means(shared->weights, M, shared->p, shared->q, N, out);
    bincp_corner_envelope(shared->q, shared->p, N - 1, 0.1);
    bincp_point_envelope(shared->q, shared->p, N - 1, 0.1);
    const bincp_sequential_rule rule = {shared->accept, shared->reject, M};
    bincp_sequential_exits(&rule, shared->p, shared->q, 100, scratch, out, out + N, out + 2 * N);
    double *const left = doubles((M + 1) * 100);
    bincp_sequential_undecided(&rule, shared->p, shared->q, 100, scratch, left);
    free(left);
    int32_t *const counts = calloc(INPUTS * LABELS, sizeof *counts);
    int32_t *const exits = malloc(INPUTS * LABELS * sizeof *exits);
    memset(exits, 0xff, INPUTS * LABELS * sizeof *exits);
    memset(shared->draws, 0, sizeof shared->draws); /* other calls play the same inputs */
    const bincp_sequential_state state = {INPUTS, LABELS, shared->draws, counts, exits};
    const bincp_sequential_rules rules = {shared->accept, shared->reject, M, 1};
    const size_t played =
        bincp_sequential_replay(&rules, &state, shared->hits, shared->inputs, ROWS);
    atomic_fetch_add(&wrong, played > ROWS);
    free(exits);
    free(counts);
    free(scratch);
    free(out);
}

static void intervals_and_noise(void)
{
    double *const out = doubles(N);
    for (int i = 0; i < 100; i++) {
        const int64_t s = shared->successes[i], m = shared->trials[i];
        const double eta = shared->q[i];
        if (m < INT32_MAX) { /* which the kernel asks for, and does not check */
            const double lower = bincp_cp_lower(s, m, eta), upper = bincp_cp_upper(s, m, eta);
            atomic_fetch_add(&wrong,
                             !(lower >= 0.0 && lower <= 1.0 && upper >= 0.0 && upper <= 1.0));
        }
    }
    const bincp_noise_key key = {.seed = 1, .id = 2, .draw = 3, .stream = BINCP_STREAM_TEST};
    bincp_noise_categorical_f64(4, 0.5, 0.5, key, N, shared->categories, out);
    bincp_noise_flip_f64(0.5, 0.5, key, N, shared->categories, out);
    bincp_noise_add_f64(BINCP_NOISE_GAUSSIAN, 1.0f, key, N, shared->p, out);
    bincp_split_f64(0.5, key, N, shared->p, out);
    const bincp_split_grid split = {10, 255};
    bincp_split_copy_f64(split, 3, N, shared->starts, shared->slack, out);
    int32_t *const counts = malloc(N / 10 * sizeof *counts);
    const ptrdiff_t shape = N / 10, stride = 10 * sizeof(float), none = 0, step = sizeof *counts;
    const bincp_count_task task = {
        .type = BINCP_FLOAT32,
        .n_axes = 1,
        .shape = &shape,
        .n_samples = 10,
        .scores = shared->scores,
        .score_strides = &stride,
        .sample_stride = sizeof(float),
        .thresholds = shared->scores,
        .threshold_strides = &none,
    };
    bincp_count(&task, counts, &step);
    free(counts);
    free(out);
}

static void *call(void *regions)
{
    for (int round = 0; round < ROUNDS; round++) {
        certificates(regions);
        laws();
        grid_noise();
        rules();
        intervals_and_noise();
    }
    return NULL;
}

int main(void)
{
    make_right();
    shared = malloc(sizeof *shared);
    memcpy(shared, &right, sizeof right);
    double *const storage = doubles(bincp_regions_size(REGIONS));
    double *const workspace = doubles(bincp_regions_workspace(REGIONS));
    double *const clean = doubles(3 * REGIONS + 2), *const perturbed = doubles(REGIONS);
    bincp_sparse_masses(20, 20, 0.01, 0.6, clean, perturbed, clean + REGIONS);
    bincp_regions regions = bincp_regions_make(clean, perturbed, REGIONS, BINCP_SPARSE_SLACK,
                                               bincp_sparse_tiny(20, 20), storage, workspace);
    pthread_t writer, other;
    CHECK(pthread_create(&writer, NULL, overwrite, NULL) == 0);
    CHECK(pthread_create(&other, NULL, call, &regions) == 0);
    call(&regions);
    pthread_join(other, NULL);
    atomic_store(&done, 1);
    pthread_join(writer, NULL);
    CHECK(atomic_load(&wrong) == 0);
    free(perturbed);
    free(clean);
    free(workspace);
    free(storage);
    free(shared);
    return report("hammer_memory");
}
