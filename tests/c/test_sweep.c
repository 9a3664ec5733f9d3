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

int main(void)
{
    test_ends();
    test_sweep();
    return report("sweep");
}
