from dataclasses import dataclass

import numpy as np

import bincp


@dataclass(frozen=True)
class WholeNoise(bincp.smoothing.Smoothing):  # adds whole numbers in [-width, width] to pixels
    width: int


@dataclass(frozen=True)
class WholeSteps(bincp.balls.Ball):  # pixels change by whole numbers, of size r together
    r: int


@bincp.noise.register(WholeNoise, examples=[(WholeNoise(4), np.zeros((2, 3, 3)))])
def whole_noise(scheme, x, keys):
    if (x != np.rint(x)).any():
        raise ValueError("`x` must be whole numbers for WholeNoise")
    steps = keys.integers(x[0].size, high=2 * scheme.width + 1) - scheme.width
    return x + steps.reshape(x.shape).astype(x.dtype)


@bincp.register(WholeNoise, WholeSteps, examples=[(WholeNoise(4), WholeSteps(2))])
def whole_noise_steps(scheme, ball):
    lost = ball.r / (2 * scheme.width + 1) + 1e-15  # of the cube, where one pixel makes all steps
    return lambda p: max(p - lost, 0.0)
