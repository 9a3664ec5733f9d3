/* A shared library that knows nothing of Python or bincp. */
#include <math.h>

double pixel_lower(double p, void *shift)
{
    return fmax(nextafter(p - *(const double *)shift, 0.0), 0.0);
}
