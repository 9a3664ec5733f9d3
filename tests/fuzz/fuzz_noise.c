/* Keyed noise, splitting noise and noisy graphs: each element again, from the words of its key. */
#include "noise/graph.h"
#include "noise/grid.h"
#include "noise/laws.h"
#include "noise/splitting.h"

#include <math.h>

#include "fuzz.h"

enum { MOST = 200, MOST_BITS = 6, MOST_COLUMNS = 1 << MOST_BITS };

#define PI 3.14159265358979323846

typedef unsigned __int128 wide;

static bincp_noise_key key_from(bytes *from)
{
    return bincp_noise_key_of(word_of(from), byte_of(from) % 15, word_of(from) >> 8,
                              (uint32_t)word_of(from));
}

/* A word of an element, in a stream to which `more` is added, as philox.h places it. */
static uint32_t word_at(bincp_noise_key key, uint32_t more, size_t j)
{
    const uint32_t seed[2] = {(uint32_t)key.seed, (uint32_t)(key.seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)(16 * (j / 64) + j % 16), key.draw, (uint32_t)key.id,
                                 (key.stream | more) << 24 | (uint32_t)(key.id >> 32)};
    uint32_t words[4];
    bincp_philox4x32(counter, seed, words);
    return words[j % 64 / 16];
}

/* The four words of an element as one number. */
static wide number_at(bincp_noise_key key, uint32_t more, size_t j)
{
    return (wide)word_at(key, more, j) << 96 | (wide)word_at(key, more | 0x80, j) << 64
           | (wide)word_at(key, more | 0x10, j) << 32 | word_at(key, more | 0x90, j);
}

/* A probability, or the first bits of the number of an element, which ties with it. */
static double chance_from(bytes *from, bincp_noise_key key)
{
    const uint8_t place = byte_of(from);
    return place < 128 ? probability_from(from) : ldexp((double)(uint64_t)(number_at(key, 0, place - 128) >> 75), -53);
}

static int is_below(wide number, double p)
{
    return p >= 1.0 || number < (wide)ldexp(p, 128);
}

/* floor(u n) for the number u in [0, 1) of 128 bits. */
static uint64_t part_of(wide u, uint64_t n)
{
    return (uint64_t)(((u >> 64) * n + (((u & UINT64_MAX) * n) >> 64)) >> 64);
}

/* ---- laws --------------------------------------------------------------------------------------- */

/* The first words and second words of an element as the category takes them: four to a counter. */
static wide choice_at(bincp_noise_key key, size_t j)
{
    const uint32_t seed[2] = {(uint32_t)key.seed, (uint32_t)(key.seed >> 32)};
    uint32_t words[2][4];
    for (uint32_t half = 0; half < 2; half++) {
        const uint32_t stream = key.stream | 0x40 | half << 7;
        const uint32_t counter[4] = {(uint32_t)(j / 4), key.draw, (uint32_t)key.id,
                                     stream << 24 | (uint32_t)(key.id >> 32)};
        bincp_philox4x32(counter, seed, words[half]);
    }
    return (wide)words[0][j % 4] << 96 | (wide)words[1][j % 4] << 64
           | (wide)word_at(key, 0x50, j) << 32 | word_at(key, 0xD0, j);
}

static void flips(bytes *from)
{
    const bincp_noise_key key = key_from(from);
    const double p_plus = chance_from(from, key), p_minus = chance_from(from, key);
    const size_t n = byte_of(from) % MOST;
    const uint32_t k = 2 + (byte_of(from) % 2 ? byte_of(from) : (uint32_t)(word_of(from) >> 42));
    float *const x = memory(n * sizeof *x), *const out = memory(n * sizeof *out);
    double *const wide_x = memory(n * sizeof *wide_x), *const wide_out = memory(n * sizeof *wide_out);
    for (size_t j = 0; j < n; j++) {
        const uint8_t kind = byte_of(from);
        x[j] = kind < 200 ? (float)(kind % k) : kind < 240 ? (float)kind - 220.0f : -0.0f;
        wide_x[j] = (double)x[j];
    }
    const int absent = byte_of(from) % 8 == 0;
    bincp_noise_flip_f32(p_plus, p_minus, key, n, absent ? NULL : x, out);
    bincp_noise_flip_f64(p_plus, p_minus, key, n, absent ? NULL : wide_x, wide_out);
    for (size_t j = 0; j < n; j++) {
        const int bit = !absent && x[j] != 0;
        const int flipped = bit ^ is_below(number_at(key, 0, j), bit ? p_minus : p_plus);
        REQUIRE(out[j] == (float)flipped && wide_out[j] == flipped);
    }
    memcpy(out, x, n * sizeof *x); /* in place */
    bincp_noise_categorical_f32(k, p_plus, p_minus, key, n, out, out);
    bincp_noise_categorical_f64(k, p_plus, p_minus, key, n, wide_x, wide_out);
    for (size_t j = 0; j < n; j++) {
        const int bit = x[j] != 0;
        double value = (double)x[j];
        if (value >= 0 && value < k && is_below(number_at(key, 0, j), bit ? p_minus : p_plus)) {
            const uint64_t choice = part_of(choice_at(key, j), k - 1);
            value = (double)(choice + (choice >= (uint64_t)value));
        }
        REQUIRE((double)out[j] == (double)(float)value && wide_out[j] == value);
    }
    free(x);
    free(out);
    free(wide_x);
    free(wide_out);
}

static void selections(bytes *from)
{
    const bincp_noise_key key = key_from(from);
    const size_t n = 1 + byte_of(from), keep = word_of(from) % (n + 1);
    uint8_t kept[256];
    double unit[256];
    size_t missing = keep;
    bincp_noise_keep(key, keep, n, kept);
    bincp_noise_unit_f64(key, n, unit);
    for (size_t j = 0; j < n; j++) {
        const wide u = number_at(key, 0, j);
        const int taken = part_of(u, n - j) < missing;
        REQUIRE(kept[j] == taken);
        missing -= (size_t)taken;
        REQUIRE(unit[j] == ((double)(uint64_t)(u >> 76) + 0.5) * 0x1p-52);
    }
    REQUIRE(missing == 0);
}

/* w + 1/2, rounded to a float. */
static double centred(uint32_t w)
{
    return (double)(float)((double)w + 0.5);
}

/* A number of scale 1, in double precision. */
static double law_at(bincp_noise_law law, bincp_noise_key key, size_t j)
{
    const uint32_t w = word_at(key, 0, j);
    const size_t first = j - j % 32 + j % 16; /* of the pair of elements that share two words */
    const double radius = sqrt(-2.0 * log(centred(word_at(key, 0, first)) * 0x1p-32));
    const double angle = (double)word_at(key, 0, first + 16) * (2.0 * PI * 0x1p-32);
    switch (law) {
    case BINCP_NOISE_GAUSSIAN: return radius * (j % 32 < 16 ? cos(angle) : sin(angle));
    case BINCP_NOISE_UNIFORM: return ((double)(int32_t)w + 0.5) * 0x1p-31;
    case BINCP_NOISE_UNIT: return centred(w) * 0x1p-32;
    default: return (w >> 31 ? 1.0 : -1.0) * log(centred(w & 0x7FFFFFFF) * 0x1p-31);
    }
}

static void additive(bytes *from)
{
    const bincp_noise_key key = key_from(from);
    const bincp_noise_law law = (bincp_noise_law)(byte_of(from) % 4);
    const size_t n = byte_of(from) % MOST;
    const float scale = (float)byte_of(from) / 16.0f;
    float noise[MOST], x[MOST], out[MOST];
    double wide_x[MOST], wide_out[MOST];
    for (size_t j = 0; j < n; j++) {
        x[j] = (float)byte_of(from) / 256.0f;
        wide_x[j] = (double)x[j] + 1e-12;
    }
    bincp_noise_add_f32(law, scale, key, n, NULL, noise);
    bincp_noise_add_f32(law, scale, key, n, x, out);
    bincp_noise_add_f64(law, scale, key, n, wide_x, wide_out);
    for (size_t j = 0; j < n; j++) {
        const double wanted = (double)scale * law_at(law, key, j);
        REQUIRE(fabs((double)noise[j] - wanted) <= 2e-6 * ((double)scale + fabs(wanted)));
        REQUIRE(out[j] == x[j] + noise[j] && wide_out[j] == wide_x[j] + (double)noise[j]);
    }
}

/* ---- integer noise on a grid -------------------------------------------------------------------- */

typedef struct table {
    uint32_t entry[MOST_COLUMNS], low[3 * MOST_COLUMNS];
    bincp_grid_table shown;
} table;

/* Any thresholds; now and then those of the words of an element, up to the last bit or less. */
static void table_from(bytes *from, bincp_noise_key key, table *made)
{
    const uint32_t bits = 1 + byte_of(from) % MOST_BITS, columns = UINT32_C(1) << bits;
    for (uint32_t c = 0; c < columns; c++) {
        made->entry[c] = (uint32_t)word_of(from) << bits | byte_of(from) % columns;
        for (int part = 0; part < 3; part++) {
            made->low[3 * c + (uint32_t)part] = (uint32_t)word_of(from);
        }
    }
    for (uint8_t ties = byte_of(from) % 8; ties > 0; ties--) {
        const size_t j = byte_of(from) % MOST;
        const uint32_t w = word_at(key, 0, j), c = w & (columns - 1);
        const int equal = byte_of(from) % 4;
        made->entry[c] = (w & ~(columns - 1)) | (made->entry[c] & (columns - 1));
        for (int part = 0; part < equal; part++) {
            made->low[3 * c + (uint32_t)part] = word_at(key, 0x40U * ((uint32_t)part + 1), j);
        }
    }
    made->shown = (bincp_grid_table){made->entry, made->low, bits, (int32_t)(columns / 2)};
}

static int32_t noise_at(const table *of, bincp_noise_key key, size_t j)
{
    const uint32_t bits = of->shown.bits, mask = (UINT32_C(1) << bits) - 1;
    const uint32_t w = word_at(key, 0, j), c = w & mask;
    wide number = w >> bits, threshold = of->entry[c] >> bits;
    for (uint32_t part = 0; part < 3; part++) {
        number = number << 32 | word_at(key, 0x40 * (part + 1), j);
        threshold = threshold << 32 | of->low[3 * c + part];
    }
    return (int32_t)(number < threshold ? c : of->entry[c] & mask) - of->shown.half;
}

/* The chance that a rest of F beyond the point makes a step, by Simpson's rule. */
static long double step_chance(double s, int32_t q, long double rest)
{
    const long double a = ((rest < 0 ? -q : q) + 0.5L) / ((long double)s * s), b = 0.5L / ((long double)s * s);
    long double parts[2];
    for (int i = 0; i < 2; i++) {
        const long double end = i ? 1.0L : fabsl(rest);
        enum { STEPS = 64 };
        long double sum = 0.0L;
        for (int step = 0; step <= STEPS; step++) {
            const long double t = end * step / STEPS;
            sum += (step == 0 || step == STEPS ? 1 : step % 2 ? 4 : 2) * expl(a * t - b * t * t);
        }
        parts[i] = sum * end / (3 * STEPS);
    }
    return parts[0] / parts[1];
}

static void grids(bytes *from)
{
    static table law;
    const bincp_noise_key key = key_from(from);
    table_from(from, key, &law);
    const int32_t grid = 1 + (int32_t)(word_of(from) >> (44 + byte_of(from) % 20));
    const size_t n = byte_of(from) % MOST;
    const double s = 4.0 + fmod(fabs((double)(word_of(from) >> 40)), 2496.0);
    int32_t k[MOST];
    float out[MOST];
    double wide_out[MOST], x[MOST];
    for (size_t j = 0; j < n; j++) {
        k[j] = (int32_t)(word_of(from) >> 43) - (1 << 20);
        x[j] = ((double)(k[j] / 2) + probability_from(from) - 0.5) / grid;
    }
    const int absent = byte_of(from) % 8 == 0;
    bincp_noise_grid_f32(law.shown, grid, key, n, absent ? NULL : k, out);
    bincp_noise_grid_f64(law.shown, grid, key, n, absent ? NULL : k, wide_out);
    for (size_t j = 0; j < n; j++) {
        const int32_t point = (absent ? 0 : k[j]) + noise_at(&law, key, j);
        REQUIRE(out[j] == (float)point / (float)grid && wide_out[j] == (double)point / grid);
    }
    bincp_noise_off_grid_f64(law.shown, grid, s, key, n, absent ? NULL : x, wide_out);
    for (size_t j = 0; j < n; j++) {
        const long double place = absent ? 0.0L : (long double)x[j] * grid;
        const int32_t q = noise_at(&law, key, j);
        const int32_t nearest = (int32_t)nearbyintl(place), without = nearest + q;
        const long double rest = place - nearest;
        const int32_t with = without + (rest < 0 ? -1 : 1);
        const long double u = (word_at(key, 0x30, j) * 0x1p21L + (word_at(key, 0x20, j) >> 11)) * 0x1p-53L;
        const long double gap = u - step_chance(s, q, rest);
        REQUIRE(wide_out[j] == (double)(gap < 0 ? with : without) / grid || fabsl(gap) < 1e-12L
                || fabsl(rest) > 0.5L - 1e-9L);
    }
}

/* ---- splitting noise ---------------------------------------------------------------------------- */

static void splits(bytes *from)
{
    const bincp_noise_key key = key_from(from);
    const double length = 0.01 + byte_of(from) / 64.0;
    const size_t n = byte_of(from) % MOST;
    const bincp_split_grid split = {1 + (int32_t)(word_of(from) >> 44), 1 + (int32_t)(word_of(from) >> 45)};
    const int32_t number = (int32_t)(word_of(from) % (uint64_t)split.levels);
    int32_t starts[MOST], slack[MOST];
    double x[MOST], out[MOST];
    float narrow[MOST];
    for (size_t j = 0; j < n; j++) {
        const int32_t k = (int32_t)(word_of(from) % ((uint64_t)split.grid + 1));
        slack[j] = (int32_t)(word_of(from) % (uint64_t)split.levels);
        starts[j] = 2 * (k - slack[j]) - 1;
        x[j] = probability_from(from);
    }
    bincp_split_copy_f64(split, number, n, starts, slack, out);
    bincp_split_copy_f32(split, number, n, starts, slack, narrow);
    for (size_t j = 0; j < n; j++) {
        const double at = starts[j] / 2.0 + slack[j] + 0.5; /* in grid steps */
        double low = starts[j] / 2.0 + number;
        low -= low > at ? split.levels : 0;
        const double middle = (fmax(low, 0.0) + fmin(low + split.levels, split.grid)) / 2.0 / split.grid;
        REQUIRE(low < at && at < low + split.levels);
        REQUIRE(fabs(out[j] - middle) <= 1e-15 && fabsf(narrow[j] - (float)middle) <= 1e-7f);
    }
    bincp_split_f64(length, key, n, x, out);
    for (size_t j = 0; j < n; j++) {
        const uint64_t word = (uint64_t)(number_at(key, 0, j) >> 64);
        const long double offset = ((long double)(word >> 11) + 0.5L) * 0x1p-53L * length;
        const long double cell = ceill((x[j] - offset) / length);
        const long double low = offset + (cell - 1) * length, high = offset + cell * length;
        const long double middle = (fmaxl(low, 0.0L) + fminl(high, 1.0L)) / 2.0L;
        const int near_end = fminl(x[j] - low, high - x[j]) < 1e-14L;
        REQUIRE(near_end || fabsl(out[j] - middle) <= 1e-14L);
    }
}

/* ---- graphs ------------------------------------------------------------------------------------- */

enum { NODES = 9, WIDTH = 21, GAPS = 6 };

static int grow(bincp_graph_list *list, size_t room)
{
    int64_t *at = realloc(list->at, room * sizeof *at);
    if (at == NULL) {
        return -1;
    }
    list->at = at;
    list->room = room;
    return 0;
}

static void start_empty(bincp_graph_drawn *drawn, int64_t *place)
{
    memset(drawn, 0, sizeof *drawn);
    drawn->node.grow = drawn->degree.grow = drawn->source.grow = drawn->target.grow = grow;
    drawn->row.grow = drawn->attribute.grow = drawn->attribute_end.grow = grow;
    drawn->place = place;
    for (int i = 0; i < NODES; i++) {
        place[i] = -1;
    }
}

static void release(bincp_graph_drawn *drawn)
{
    bincp_graph_list *const lists[] = {&drawn->node,   &drawn->degree, &drawn->source,
                                       &drawn->target, &drawn->row,    &drawn->attribute,
                                       &drawn->attribute_end};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        free(lists[i]->at);
    }
}

/* Bounds that do not rise, of which the first may be 1, and the guide through them. */
typedef struct coins {
    uint64_t high[GAPS], low[GAPS];
    int32_t guide[BINCP_GRAPH_GUIDE + 1];
    bincp_graph_flips flips;
} coins;

static void coins_from(bytes *from, coins *made)
{
    wide before = ~(wide)0;
    const int32_t n = byte_of(from) % (GAPS + 1), n_certain = n ? byte_of(from) % n : 0;
    for (int32_t i = 0; i < n; i++) {
        const wide drawn = (wide)word_of(from) << 64 | word_of(from);
        before = i < n_certain || drawn > before ? before : drawn;
        made->high[i] = (uint64_t)(before >> 64);
        made->low[i] = (uint64_t)before;
    }
    for (int i = 0; i <= BINCP_GRAPH_GUIDE; i++) {
        made->guide[i] = 0;
        for (int32_t j = 0; j < n; j++) {
            const wide part = (wide)i << 116, bound = (wide)made->high[j] << 64 | made->low[j];
            made->guide[i] += i < BINCP_GRAPH_GUIDE && (j < n_certain || bound > part);
        }
    }
    made->flips = (bincp_graph_flips){byte_of(from) % 4 ? word_of(from) : 0, byte_of(from) % 4 ? word_of(from) : 0,
                                      byte_of(from) % 8 == 0, n, n_certain, made->high, made->low,
                                      made->guide};
}

static wide coin_at(bincp_graph_key key, int kind, uint64_t row, uint32_t i)
{
    const uint64_t q = row << 28 | key.id;
    const uint32_t stream = (uint32_t)kind << 4 | (9 + key.phase);
    const uint32_t seed[2] = {(uint32_t)key.seed, (uint32_t)(key.seed >> 32)};
    const uint32_t counter[4] = {i, key.draw, (uint32_t)q, stream << 24 | (uint32_t)(q >> 32)};
    uint32_t word[4];
    bincp_philox4x32(counter, seed, word);
    return (wide)word[0] << 96 | (wide)word[1] << 64 | (wide)word[2] << 32 | word[3];
}

/* The noisy bits of a row: zeros that stay zero are counted, ones have a coin each. */
static void row_of(const bincp_graph_flips *flips, bincp_graph_key key, int kind, uint64_t row,
                   const uint8_t *ones, uint64_t width, uint8_t *noisy)
{
    uint64_t place = 0;
    memset(noisy, 0, width);
    for (uint32_t i = 0; flips->n_gaps > 0 && place < width; i++) {
        const wide coin = coin_at(key, kind + 1, row, i);
        int32_t stay = 0;
        while (stay < flips->n_gaps
               && (stay < flips->n_certain
                   || coin < ((wide)flips->gap_high[stay] << 64 | flips->gap_low[stay]))) {
            stay++;
        }
        place += (uint64_t)stay;
        if (stay < flips->n_gaps && place < width) {
            noisy[place++] = 1;
        }
    }
    for (uint32_t u = 0; u < width; u++) {
        if (ones[u]) {
            const wide bound = (wide)flips->ones_high << 64 | flips->ones_low;
            noisy[u] = !flips->always && coin_at(key, kind, row, u) >= bound;
        }
    }
}

/* Every edge and every attribute that was drawn, each once, and no other. */
static void compare_graph(const bincp_graph *graph, bincp_graph_key key, const uint8_t ones[NODES][NODES],
                          const uint8_t has[NODES][WIDTH], const bincp_graph_drawn *whole)
{
    uint8_t bits[NODES][NODES], edges[NODES][NODES] = {{0}}, attributes[WIDTH];
    size_t n_edges = 0, next = 0;
    for (uint64_t w = 0; w < NODES; w++) {
        row_of(&graph->adjacency_flips, key, BINCP_GRAPH_ADJACENCY, w, ones[w], NODES, bits[w]);
    }
    REQUIRE(whole->node.size == NODES && whole->source.size == whole->target.size);
    for (size_t i = 0; i < whole->source.size; i++) {
        uint8_t *const edge = &edges[whole->source.at[i]][whole->target.at[i]];
        REQUIRE(*edge == 0);
        *edge = 1;
    }
    for (size_t a = 0; a < NODES; a++) {
        int64_t degree = 0;
        for (size_t b = 0; b < NODES; b++) { /* the row of b, or of the end that came first */
            const size_t row = graph->directed || b < a ? b : a, column = row == a ? b : a;
            const int is_edge = a != b && bits[whole->node.at[row]][whole->node.at[column]];
            REQUIRE(edges[a][b] == is_edge);
            n_edges += (size_t)is_edge;
            degree += a != b && (graph->directed ? bits[whole->node.at[a]][whole->node.at[b]] : is_edge);
        }
        REQUIRE(whole->degree.at[a] == degree);
        const int64_t node = whole->node.at[a];
        row_of(&graph->attribute_flips, key, BINCP_GRAPH_ATTRIBUTES, (uint64_t)node, has[node], WIDTH,
               attributes);
        for (int64_t u = 0; u < WIDTH; u++) {
            REQUIRE(!attributes[u] || (next < whole->attribute.size && whole->attribute.at[next++] == u));
        }
        REQUIRE(whole->attribute_end.at[a] == (int64_t)next);
    }
    REQUIRE(n_edges == whole->source.size && next == whole->attribute.size);
}

static int64_t rows_from(const uint8_t *ones, int64_t width, int64_t *start, int64_t *column)
{
    int64_t n = 0;
    for (int64_t i = 0; i < NODES; i++) {
        start[i] = n;
        for (int64_t j = 0; j < width; j++) {
            if (ones[i * width + j]) {
                column[n++] = j;
            }
        }
    }
    return start[NODES] = n;
}

/* A field is the beginning of the whole graph, whose nodes are all met once. */
static void graphs(bytes *from)
{
    static coins adjacency, attributes;
    int64_t start[NODES + 1], column[NODES * NODES], places[3][NODES];
    int64_t attribute_start[NODES + 1], attribute[NODES * WIDTH];
    uint8_t ones[NODES][NODES] = {{0}}, has[NODES][WIDTH];
    const int directed = byte_of(from) % 2;
    for (int i = 0; i < NODES; i++) {
        for (int j = 0; j < (directed ? NODES : i); j++) {
            ones[i][j] = i != j && byte_of(from) % 4 == 0;
            if (!directed) {
                ones[j][i] = ones[i][j];
            }
        }
        for (int u = 0; u < WIDTH; u++) {
            has[i][u] = byte_of(from) % 4 == 1;
        }
    }
    rows_from(ones[0], NODES, start, column);
    rows_from(has[0], WIDTH, attribute_start, attribute);
    coins_from(from, &adjacency);
    coins_from(from, &attributes);
    const bincp_graph graph = {NODES, {start, column, NODES}, {attribute_start, attribute, WIDTH},
                               adjacency.flips, attributes.flips, directed};
    const bincp_graph_key key = {word_of(from), word_of(from) >> 36, (uint32_t)word_of(from),
                                 byte_of(from) % 3};
    bincp_graph_drawn field, whole, in_order;
    start_empty(&field, places[0]);
    start_empty(&whole, places[1]);
    start_empty(&in_order, places[2]);
    const int64_t target = byte_of(from) % NODES, hops = byte_of(from) % 5;
    REQUIRE(bincp_graph_draw(&graph, key, target, BINCP_GRAPH_FIELD, hops, 1, &field) == 0);
    REQUIRE(bincp_graph_draw(&graph, key, target, BINCP_GRAPH_WHOLE, 0, 1, &whole) == 0);
    REQUIRE(bincp_graph_draw(&graph, key, target, BINCP_GRAPH_IN_ORDER, 0, 1, &in_order) == 0);
    compare_graph(&graph, key, ones, has, &whole);
    compare_graph(&graph, key, ones, has, &in_order);
    REQUIRE(field.node.size >= 1 && field.node.size <= NODES && whole.node.at[0] == target);
    uint32_t met = 0;
    for (size_t i = 0; i < NODES; i++) {
        met |= UINT32_C(1) << whole.node.at[i];
        REQUIRE(in_order.node.at[i] == (int64_t)i);
        REQUIRE(i >= field.node.size || (field.node.at[i] == whole.node.at[i] &&
                                         field.degree.at[i] == whole.degree.at[i]));
        REQUIRE(places[0][i] == -1 && places[1][i] == -1 && places[2][i] == -1);
    }
    REQUIRE(met == (UINT32_C(1) << NODES) - 1);
    release(&field);
    release(&whole);
    release(&in_order);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const kinds[])(bytes *) = {flips, selections, additive, grids, splits, graphs};
    bytes from = {data, size};
    kinds[byte_of(&from) % 6](&from);
    return 0;
}
