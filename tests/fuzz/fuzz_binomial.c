/* Clopper-Pearson bounds and their kin at any counts and levels: the inequalities that define them. */
#include "numerics/binomial.h"
#include "numerics/confidence.h"

#include <math.h>

#include "fuzz.h"

/* How much larger a computed tail may be than the true one, twice over. */
static double error_of(double tail)
{
    return tail > 0.0 ? 2.0 * BINCP_BINOM_ERROR * (10.0 - log(tail)) : 0.0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bytes from = {data, size};
    const int64_t m = 1 + (int64_t)(word_of(&from) % (byte_of(&from) % 2 ? 2147483646 : 300));
    const int64_t s = (int64_t)(word_of(&from) % ((uint64_t)m + 1));
    const double eta = probability_from(&from), u = probability_from(&from);
    const double low = bincp_cp_lower(s, m, eta), high = bincp_cp_upper(s, m, eta);
    REQUIRE(0.0 <= low && low <= 1.0 && 0.0 <= high && high <= 1.0);
    if (eta > 0.0 && eta < 1.0) {
        if (low > 0.0 && eta >= 1e-290) {
            const double tail = bincp_binom_sf(s, m, low, 1.0 - low);
            REQUIRE(tail <= eta * (1.0 + error_of(tail) + 4e-16 * (double)m));
        }
        if (high < 1.0 && eta >= 1e-290) {
            const double tail = bincp_binom_cdf(s, m, high, 1.0 - high);
            REQUIRE(tail <= eta * (1.0 + error_of(tail) + 4e-16 * (double)m));
        }
        REQUIRE(eta > 0.5 || low <= high);
        REQUIRE(bincp_randomized_lower(s, m, 1.0, eta) <= low * (1 + 1e-9) + 1e-300);
        REQUIRE(bincp_randomized_lower(s, m, u, eta) >= bincp_randomized_lower(s, m, 1.0, eta));
        REQUIRE(bincp_sequence_lower(s, m, eta) <= bincp_sequence_upper(s, m, eta));
    } else {
        REQUIRE(low == 0.0 && high == 1.0);
    }
    const double p = probability_from(&from), q = 1.0 - p;
    const double at_least = bincp_binom_sf(s, m, p, q), at_most = bincp_binom_cdf(s - 1, m, p, q);
    REQUIRE(at_least >= 0.0 && at_most >= 0.0 && at_least <= 1.0 + 1e-9 && at_most <= 1.0 + 1e-9);
    REQUIRE(fabs(at_least + at_most - 1.0) <= 1e-12 + 4e-16 * (double)m);
    if (m <= 300) {
        double lower[301], upper[301];
        bincp_cp_table(m, eta, lower, upper);
        REQUIRE(fabs(lower[s] - low) <= 1e-12 * low && fabs(upper[s] - high) <= 1e-12);
        for (int64_t i = 1; i <= m; i++) {
            REQUIRE(lower[i - 1] <= lower[i] && upper[i - 1] <= upper[i]);
        }
    }
    return 0;
}
