"""Noise on a device: its bits against the C code, and its share of the time beside a network.

    python -m benchmarks.device          # CUDA if there is any, else the CPU, with small inputs

The network has the depth and width of a ResNet-50, with random weights.
"""

import time

import numpy as np
import torch
from torch import nn

from bincp.noise import Keys
from bincp.noise._device._sampler import DeviceSampler, sampler_on
from bincp.noise._samplers import noisy_dtype, sampler_of
from bincp.smoothing import Gaussian, Laplace, Uniform

SCHEMES = [
    Gaussian(0.25),
    Laplace(0.25),
    Uniform(0.25),
    Gaussian(0.25, grid=255),
    Laplace(0.12, grid=255),
    Uniform(0.25, grid=255),
]


class Block(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            *(nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)),
        )
        self.short = nn.Conv2d(inputs, 4 * width, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.path(x) + self.short(x))


def network() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(blocks):
            layers.append(Block(inputs, width, stride if i == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


def differing(made: DeviceSampler, scheme: object, rows: int = 64, d: int = 3072) -> int:
    keys = Keys(7, "test", np.arange(rows), np.zeros(rows, np.int64))
    x = np.broadcast_to((np.arange(d) % 256 / 255).astype(np.float32), (rows, d))
    expected = np.empty((rows, d), noisy_dtype(x))
    sampler_of(scheme).fill(keys, np.arange(rows), x, expected)
    found = made.rows(keys, np.arange(rows), x).cpu().numpy()
    return int((found.view(np.uint32) != expected.view(np.uint32)).sum())


def seconds(place: torch.device, function: object, repeats: int) -> float:
    least = float("inf")
    for _ in range(repeats):
        if place.type == "cuda":
            torch.cuda.synchronize(place)
        start = time.perf_counter()
        function()  # type: ignore[operator]
        if place.type == "cuda":
            torch.cuda.synchronize(place)
        least = min(least, time.perf_counter() - start)
    return least


def main() -> None:
    cuda = torch.cuda.is_available()
    place = torch.device("cuda", 0) if cuda else torch.device("cpu")
    print(torch.cuda.get_device_name(place) if cuda else "no CUDA: torch operations on the CPU")
    rows, side, repeats = (256, 224, 10) if cuda else (2, 64, 2)
    model = network().eval().to(place)
    x = torch.zeros(rows, 3, side, side, device=place)
    keys = Keys(7, "test", np.arange(rows), np.zeros(rows, np.int64))
    with torch.no_grad():
        model_time = seconds(place, lambda: model(x), repeats)
        print(f"network, {rows} inputs of 3 x {side} x {side}: {model_time * 1e3:.2f} ms")
        for scheme in SCHEMES:
            made = sampler_on(sampler_of(scheme), place)
            if made is None:
                print(f"{scheme}: other bits on this device, left to the C code")
                continue
            means = "torch operations" if made.kernels is None else "kernels"
            wrong = differing(made, scheme)
            taken = seconds(place, lambda made=made: made.rows(keys, np.arange(rows), x), repeats)
            share = taken / (taken + model_time)
            print(f"{scheme} by {means}: {wrong} values differ, {taken * 1e3:.2f} ms, {share:.1%}")


if __name__ == "__main__":
    main()
