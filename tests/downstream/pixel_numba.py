import numba
import numpy as np

import bincp


@numba.cfunc("float64(float64, CPointer(float64))")
def pixel_lower(p, shift):
    return max(np.nextafter(p - shift[0], 0.0), 0.0)


def pixel_operator(shift):
    """The operator of a ball: its upper bound is left to bincp."""
    return bincp.Certificate.from_native(pixel_lower, user_data=np.array([shift]), name="pixel")
