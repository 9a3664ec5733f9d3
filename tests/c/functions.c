/* The inline functions of numerics/functions.h behind symbols, for tests/kernels/test_functions.py. */
#include "numerics/functions.h"

double exp_out(double x);
double expm1_out(double x);
double log_out(double x);
double log1p_out(double x);
double pow_out(double x, double y);

double exp_out(double x)
{
    return exp_of(x);
}

double expm1_out(double x)
{
    return expm1_of(x);
}

double log_out(double x)
{
    return log_of(x);
}

double log1p_out(double x)
{
    return log1p_of(x);
}

double pow_out(double x, double y)
{
    return pow_of(x, y);
}
