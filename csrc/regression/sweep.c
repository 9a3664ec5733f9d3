#include "regression/sweep.h"

#include <math.h>

int bincp_mark_empty(double *left, double *right, size_t n)
{
    int has_nan = 0;
    for (size_t i = 0; i < n; ++i) {
        double a = left[i], b = right[i];
        int empty = a > b || (a == b && isinf(a));
        has_nan |= (a != a) | (b != b);
        left[i] = empty ? INFINITY : a;
        right[i] = empty ? INFINITY : b;
    }
    return has_nan;
}

/* Write the pieces of one row and return how many there are. */
static size_t sweep_row(const double *left, const double *right, size_t m, size_t k, double *starts,
                        double *stops)
{
    /* Each end is read once: another thread may write to them, and at most m - k + 1 pieces begin. */
    size_t n = 0;
    for (size_t i = k - 1; i < m; ++i) {
        double start = left[i], stop = right[i - (k - 1)];
        if (!(start <= stop && start < INFINITY)) {
            continue;
        }
        if (n > 0 && start <= stops[n - 1]) {
            stops[n - 1] = stop;
        } else {
            starts[n] = start;
            stops[n] = stop;
            ++n;
        }
    }
    return n;
}

size_t bincp_sweep(const double *left, const double *right, size_t n_rows, size_t m, size_t k,
                   double *starts, double *stops, int64_t *offsets)
{
    size_t n = 0;
    offsets[0] = 0;
    for (size_t i = 0; i < n_rows; ++i) {
        n += sweep_row(left + i * m, right + i * m, m, k, starts + n, stops + n);
        offsets[i + 1] = (int64_t)n;
    }
    return n;
}
