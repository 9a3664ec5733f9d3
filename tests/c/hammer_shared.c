/* Threads that share operators, rules and the table of the C interface, each with results of its own,
 * under the thread sanitizer: `make -C tests/c`.
 *
 * Whatever every thread computes must also be, to the last bit, what one thread computes alone.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/capi.h"
#include "certificates/location.h"
#include "certificates/operators.h"
#include "certificates/steps.h"
#include "noise/grid.h"
#include "rules/mixture.h"
#include "rules/sequential.h"

#include "check.h"

enum { N = 400, M = 40, THREADS = 4, ROUNDS = 150, KINDS = 3, LABELS = 5, ROWS = 30 };
enum { LAWS = 9, BITS = 14, COLUMNS = 1 << BITS };

/* What all threads read. */
typedef struct common {
    bincp_api api;
    bincp_operator op[KINDS];
    void *storage[KINDS];
    bincp_location expp, sech, pareto;
    bincp_steps steps;
    double shifts[2];
    bincp_charge charge[LAWS];
    bincp_operator charged[LAWS];
    uint32_t entry[COLUMNS], low[3 * COLUMNS];
    int32_t points[N];
    double p[N], q[N], weights[M + 1];
    float scores[N];
    int32_t accept[M + 1], reject[M + 1];
    unsigned char hits[ROWS * LABELS];
    int64_t inputs[ROWS];
} common;

/* What each of them writes. */
typedef struct answers {
    double lower[KINDS][N], upper[KINDS][N], cp[2][M + 1], single[N];
    double law_lower[2][LAWS][N], law_upper[2][LAWS][N];
    double failures[N], means[N], refused[N], accepted[N], draws[N];
    bincp_envelope envelope;
    int32_t counts[N / 10], made[2], hit_counts[2 * LABELS], exits[2 * LABELS];
    float noise[6][N];
} answers;

static common all;
static answers alone;
static answers each[THREADS];

static const bincp_operator *no_python(struct _object *certificate)
{
    (void)certificate;
    return NULL;
}

/* The laws of noise, each as it is and with a charge, and a table of noise on a grid. */
static void make_laws(void)
{
    static const bincp_builtin kinds[LAWS] = {
        BINCP_GAUSSIAN, BINCP_UNIFORM, BINCP_LAPLACE, BINCP_LAPLACE_UNIFORM, BINCP_HALF_POWER,
        BINCP_STEPS,    BINCP_EXPP,    BINCP_SECH,    BINCP_PARETO,
    };
    all.shifts[0] = 0.25;
    all.shifts[1] = 0.125;
    all.steps = (bincp_steps){255.0, 10.0};
    all.expp.shift = all.sech.shift = all.pareto.shift = 0.5;
    all.expp.law.expp = bincp_expp_make(4.0, 0.90640247705547708);
    all.sech.law.sech = bincp_sech_make(1.0, 0.5);
    all.pareto.law.pareto = (bincp_pareto){4.0 / 3.0, -0.5};
    const void *const params[LAWS] = {
        all.shifts, all.shifts, all.shifts, all.shifts,  all.shifts,
        &all.steps, &all.expp,  &all.sech,  &all.pareto,
    };
    for (int law = 0; law < LAWS; law++) {
        all.charge[law] = (bincp_charge){bincp_operator_make(kinds[law], params[law]), 0x1p-20};
        all.charged[law] = bincp_operator_charged(&all.charge[law]);
    }
    for (uint32_t c = 0; c < COLUMNS; c++) {
        all.entry[c] = (c << (32 - BITS)) | (COLUMNS - 1 - c);
        all.low[3 * c] = c << (32 - BITS);
    }
    for (int i = 0; i < N; i++) {
        all.points[i] = i % 256;
    }
}

static void make_common(void)
{
    all.api = bincp_api_make(no_python);
    for (int i = 0; i < N; i++) {
        all.p[i] = (double)i / (N - 1);
        all.q[i] = 1.0 - all.p[i];
        all.scores[i] = (float)(i % 7);
    }
    for (int l = 0; l <= M; l++) {
        all.weights[l] = (double)l / M;
        all.accept[l] = 30;
        all.reject[l] = l + 29 - M;
    }
    for (int r = 0; r < ROWS; r++) {
        all.inputs[r] = r % 2;
        for (int y = 0; y < LABELS; y++) {
            all.hits[r * LABELS + y] = (unsigned char)(r % (y + 1) == 0);
        }
    }
    for (int kind = 0; kind < KINDS; kind++) {
        all.op[kind].abi_version = BINCP_ABI_VERSION;
        all.op[kind].struct_size = sizeof(bincp_operator);
    }
    all.storage[0] = malloc(sizeof(double));
    all.storage[1] = malloc(sizeof(double));
    all.storage[2] = malloc(all.api.sparse_bytes(3, 5));
    CHECK(all.api.gaussian(0.5, all.storage[0], &all.op[0]) == 0);
    CHECK(all.api.uniform(0.1, all.storage[1], &all.op[1]) == 0);
    CHECK(all.api.sparse(3, 5, 0.01, 0.6, all.storage[2], &all.op[2]) == 0);
}

static void certify(answers *to)
{
    for (int kind = 0; kind < KINDS; kind++) {
        const bincp_operator *op = &all.op[kind];
        all.api.fill(op->lower, op->params, all.p, N, to->lower[kind]);
        all.api.fill(op->upper, op->params, all.p, N, to->upper[kind]);
    }
    for (int law = 0; law < LAWS; law++) {
        const bincp_operator *op[2] = {&all.charge[law].of, &all.charged[law]};
        for (int charged = 0; charged < 2; charged++) {
            bincp_lower_fill(op[charged], all.p, N, to->law_lower[charged][law]);
            bincp_upper_fill(op[charged], all.p, N, to->law_upper[charged][law]);
        }
    }
    for (int i = 0; i < N; i++) {
        to->single[i] = all.op[2].lower(all.q[i], all.op[2].params);
    }
}

static void decide(answers *to)
{
    const float threshold = 3.0f;
    all.api.cp_table(M, 0.05, to->cp[0], to->cp[1]);
    all.api.count_float32(all.scores, N / 10, 10, threshold, to->counts);
    bincp_failures(30, M, all.p, all.q, N, to->failures);
    bincp_binomial_means(all.weights, M, all.p, all.q, N, to->means);
    to->envelope = bincp_corner_envelope(all.q, all.q, N - 1, 0.1);
    const bincp_sequential_rule rule = {all.accept, all.reject, M};
    double *const scratch = malloc(BINCP_SEQUENTIAL_SCRATCH(M) * sizeof *scratch);
    bincp_sequential_exits(&rule, all.p, all.q, N, scratch, to->refused, to->accepted, to->draws);
    free(scratch);
    memset(to->made, 0, sizeof to->made);
    memset(to->hit_counts, 0, sizeof to->hit_counts);
    memset(to->exits, 0xff, sizeof to->exits);
    const bincp_sequential_state state = {2, LABELS, to->made, to->hit_counts, to->exits};
    const bincp_sequential_rules rules = {all.accept, all.reject, M, 1};
    bincp_sequential_replay(&rules, &state, all.hits, all.inputs, ROWS);
}

static void draw(answers *to)
{
    all.api.gaussian_row(1, 1, 2, 3, 0.5f, N, all.scores, to->noise[0]);
    all.api.uniform_row(1, 1, 2, 3, 0.5f, N, all.scores, to->noise[1]);
    all.api.flip_row(1, 1, 2, 3, 0.01, 0.6, N, all.scores, to->noise[2]);
    const bincp_grid_table table = {all.entry, all.low, BITS, COLUMNS / 2};
    all.api.grid_row(&table, 255, 1, 1, 2, 3, N, all.points, to->noise[3]);
    const bincp_noise_key key = {.seed = 1, .id = 2, .draw = 3, .stream = BINCP_STREAM_TEST};
    bincp_noise_off_grid_f32(table, 255, 16.0, key, N, all.scores, to->noise[4]);
    bincp_noise_off_grid_f32(table, 255, 16.0, key, N, NULL, to->noise[5]);
}

static void *answer(void *to)
{
    for (int round = 0; round < ROUNDS; round++) {
        certify(to);
        decide(to);
        draw(to);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    make_common();
    make_laws();
    answer(&alone);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, answer, &each[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(memcmp(&each[i], &alone, sizeof alone) == 0);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        free(all.storage[kind]);
    }
    return report("hammer_shared");
}
