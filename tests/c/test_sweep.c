/* Ends and unions of intervals on hard numbers, under the sanitizers. */
#include "check.h"

#include <math.h>

#include "regression/interval_scores.h"
#include "regression/sweep.h"

static void check_end(double low, double high, double scale, double tau)
{
    double left, right;
    bincp_interval_ends(&low, &high, &scale, tau, 1, &left, &right);
    double tried[] = {left, right, nextafter(left, -INFINITY), nextafter(left, INFINITY),
                      nextafter(right, -INFINITY), nextafter(right, INFINITY), 0.0, low, high};
    for (size_t i = 0; i < sizeof tried / sizeof *tried; ++i) {
        double y = tried[i], score;
        if (fabs(y) <= DBL_MAX) {
            bincp_interval_scores(&low, &high, &scale, &y, 1, 1, &score);
            CHECK((left <= y && y <= right) == (score >= tau));
        }
    }
}

static void test_ends(void)
{
    const double hard[] = {0.0, -0.0, 5e-324, -5e-324, 1e-300, 1.0, -1.0, 0.1, 1e16, DBL_MAX, -DBL_MAX,
                           INFINITY, -INFINITY};
    const double scales[] = {5e-324, 1e-3, 1.0, 3.0, DBL_MAX};
    const double thresholds[] = {-DBL_MAX, -1.0, -0.1, -5e-324, 0.0, 5e-324, 0.1, 1.0, DBL_MAX, INFINITY};
    size_t n = sizeof hard / sizeof *hard;
    for (size_t i = 0; i < n * n; ++i) {
        for (size_t s = 0; s < sizeof scales / sizeof *scales; ++s) {
            for (size_t t = 0; t < sizeof thresholds / sizeof *thresholds; ++t) {
                check_end(hard[i / n], hard[i % n], scales[s], thresholds[t]);
            }
        }
    }
}

static void test_sweep(void)
{
    double left[] = {0.0, 2.0, INFINITY, 5.0}, right[] = {1.0, 1.5, INFINITY, 7.0};
    CHECK(bincp_mark_empty(left, right, 4) == 0);
    const double sorted_left[] = {0.0, 5.0, INFINITY, INFINITY};
    const double sorted_right[] = {1.0, 7.0, INFINITY, INFINITY};
    double starts[4], stops[4];
    int64_t offsets[2];
    CHECK(bincp_sweep(sorted_left, sorted_right, 1, 4, 1, starts, stops, offsets) == 2);
    CHECK(offsets[0] == 0 && offsets[1] == 2);
    CHECK(starts[0] == 0.0 && stops[0] == 1.0 && starts[1] == 5.0 && stops[1] == 7.0);
    CHECK(bincp_sweep(sorted_left, sorted_right, 1, 4, 4, starts, stops, offsets) == 0);
    double missing = NAN, zero = 0.0;
    CHECK(bincp_mark_empty(&missing, &zero, 1) == 1);
}

static void test_unions(void)
{
    /* At least one of [0, 2], [1, 3] and [7, 7], and at least two of them. */
    const double left[] = {0.0, 1.0, 7.0}, right[] = {2.0, 3.0, 7.0};
    double starts[3], stops[3];
    int64_t offsets[2];
    CHECK(bincp_sweep(left, right, 1, 3, 1, starts, stops, offsets) == 2);
    CHECK(starts[0] == 0.0 && stops[0] == 3.0 && starts[1] == 7.0 && stops[1] == 7.0);
    CHECK(bincp_sweep(left, right, 1, 3, 2, starts, stops, offsets) == 1);
    CHECK(starts[0] == 1.0 && stops[0] == 2.0);
    const double later_left[] = {0.0, 2.0, 3.0}, later_right[] = {1.0, 4.0, 5.0};
    CHECK(bincp_sweep(later_left, later_right, 1, 3, 1, starts, stops, offsets) == 2);
    CHECK(stops[0] == 1.0 && starts[1] == 2.0 && stops[1] == 5.0);
    double point[] = {7.0, -INFINITY, INFINITY}, same[] = {7.0, -INFINITY, INFINITY};
    CHECK(bincp_mark_empty(point, same, 3) == 0);
    CHECK(point[0] == 7.0 && same[0] == 7.0 && point[1] == INFINITY && same[1] == INFINITY);
}

/* Each row has its pieces behind those of the rows before. */
static void test_rows(void)
{
    const double left[] = {0.0, 5.0, 1.0, 2.0, 3.0, 9.0}, right[] = {1.0, 6.0, 4.0, 4.0, 3.5, 9.5};
    double starts[6], stops[6];
    int64_t offsets[4];
    CHECK(bincp_sweep(left, right, 3, 2, 1, starts, stops, offsets) == 5);
    CHECK(offsets[0] == 0 && offsets[1] == 2 && offsets[2] == 3 && offsets[3] == 5);
    CHECK(starts[0] == 0.0 && starts[1] == 5.0 && starts[2] == 1.0 && starts[3] == 3.0 && starts[4] == 9.0);
    CHECK(stops[0] == 1.0 && stops[1] == 6.0 && stops[2] == 4.0 && stops[3] == 3.5 && stops[4] == 9.5);
}

/* Without a scale it is 1. */
static void test_no_scale(void)
{
    const double low[] = {-1.0, 0.5}, high[] = {2.0, 0.25}, y[] = {0.5, 0.5}, ones[] = {1.0, 1.0};
    double scores[2], same[2], left[2], right[2], left_too[2], right_too[2];
    bincp_interval_scores(low, high, NULL, y, 2, 1, scores);
    bincp_interval_scores(low, high, ones, y, 2, 1, same);
    CHECK(scores[0] == 1.5 && scores[1] == -0.25);
    CHECK(scores[0] == same[0] && scores[1] == same[1]);
    bincp_interval_ends(low, high, NULL, 0.5, 2, left, right);
    bincp_interval_ends(low, high, ones, 0.5, 2, left_too, right_too);
    CHECK(left[0] == -0.5 && right[0] == 1.5);
    for (int i = 0; i < 2; i++) {
        CHECK(left[i] == left_too[i] && right[i] == right_too[i]);
    }
}

int main(void)
{
    test_ends();
    test_sweep();
    test_unions();
    test_rows();
    test_no_scale();
    return report("sweep");
}
