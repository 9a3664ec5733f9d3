from dataclasses import dataclass

from pixel_cython import pixel_operator  # or pixel_c, or pixel_numba

import bincp
from bincp.smoothing import Uniform


@dataclass(frozen=True)
class Pixel(bincp.balls.Ball):  # one coordinate moves by at most r
    r: float


@bincp.register(Uniform, Pixel, examples=[(Uniform(0.5), Pixel(0.1))])
def uniform_pixel(scheme, ball):
    return pixel_operator(ball.r / (2 * scheme.half_width) * (1 + 1e-15))
