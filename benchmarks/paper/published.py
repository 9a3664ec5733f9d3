"""Networks with published weights: ResNet-110 for CIFAR-10, torchvision's ResNet-50 for ImageNet.

The weights of Cohen, Rosenfeld and Kolter ("Certified adversarial robustness via randomized
smoothing", ICML 2019) were trained with the Gaussian noise that their file names state, in pixels
of [0, 1]; a user downloads them (README.md says where from) and gives the path of one file.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from benchmarks.paper.settings import DATASETS, Dataset, Setting, Task, l2
from benchmarks.study import data, scores
from bincp.sampling import NormalizedModel

__all__ = ["PublishedTask", "ResNet", "imagenet", "load_weights", "published", "resnet50"]

CIFAR10_SCALES = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
IMAGENET_SCALES = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
IMAGENET_FOLDER = "imagenet-val"
N_IMAGENET_CLASSES = 1000
SHORT_SIDE, CROP = 256, 224
N_INPUTS = {"cifar10": 1500, "imagenet": 500}
N_SAMPLES = {"cifar10": 256, "imagenet": 64}


class BasicBlock(nn.Module):
    """Two convolutions of 3 x 3 around which the input passes, projected where its shape changes.

    Names of parameters are those of the published weights.
    """

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.downsample: nn.Module | None = None
        if stride != 1 or n_in != n_out:
            self.downsample = nn.Sequential(
                nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features (b, n_out, ...)."""
        passed = x if self.downsample is None else self.downsample(x)
        hidden = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(hidden)) + passed)


class ResNet(nn.Module):
    """Residual network for images of 32 x 32 pixels (He et al., CVPR 2016, Section 4.2).

    Parameters
    ----------
    depth : int
        6 n + 2: 110 for the published weights.
    n_classes : int
    """

    def __init__(self, depth: int = 110, n_classes: int = 10) -> None:
        super().__init__()
        n_blocks, left = divmod(depth - 2, 6)
        if left or n_blocks < 1:
            raise ValueError(f"`depth` must be 6 n + 2, n >= 1, got {depth}")
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = _stage(16, 16, n_blocks, stride=1)
        self.layer2 = _stage(16, 32, n_blocks, stride=2)
        self.layer3 = _stage(32, 64, n_blocks, stride=2)
        self.fc = nn.Linear(64, n_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of normalised images (b, 3, 32, 32)."""
        x = functional.relu(self.bn1(self.conv1(x)))
        features = self.layer3(self.layer2(self.layer1(x)))
        logits: torch.Tensor = self.fc(features.mean((2, 3)))
        return logits


def _stage(n_in: int, n_out: int, n_blocks: int, stride: int) -> nn.Sequential:
    first = BasicBlock(n_in, n_out, stride)
    return nn.Sequential(first, *(BasicBlock(n_out, n_out, 1) for _ in range(n_blocks - 1)))


def resnet50() -> nn.Module:
    """Return torchvision's ResNet-50 with random weights."""
    try:
        from torchvision import models
    except ImportError as error:
        raise ImportError(
            "`imagenet` needs torchvision, of the version that goes with the torch installed: "
            f"pip install torchvision ({error})"
        ) from error
    network: nn.Module = models.resnet50(weights=None)
    return network


def load_weights(network: nn.Module, path: Path) -> nn.Module:
    """Load parameters from a file, published ones under the prefixes of their wrappers.

    Parameters
    ----------
    network : torch.nn.Module
    path : Path
        File of a state dictionary, or of a dictionary with one as ``state_dict``.

    Raises
    ------
    FileNotFoundError
        If there is no file.
    ValueError
        If it is not for this network.
    """
    if not path.is_file():
        raise FileNotFoundError(f"`--weights` must be a file of weights, got {path}")
    try:
        found: Any = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises several kinds of error for a file of something else
        raise ValueError(f"{path} must be a file of torch, got: {error}") from error
    found = found.get("state_dict", found) if isinstance(found, dict) else {}
    wanted = network.state_dict()
    named = {_own_name(name, wanted): value for name, value in found.items()}
    bad = [
        name
        for name, value in wanted.items()
        if name not in named or named[name].shape != value.shape
    ]
    if bad:
        raise ValueError(
            f"{path} must hold the weights of {type(network).__name__}, but {len(bad)} of "
            f"{len(wanted)} are missing or have another shape: {', '.join(bad[:3])}"
        )
    network.load_state_dict({name: named[name] for name in wanted})
    return network


def _own_name(name: str, wanted: dict[str, torch.Tensor]) -> str:
    """Return a name without the prefixes of wrappers, e.g. ``1.module.``."""
    while name not in wanted and "." in name:
        name = name.partition(".")[2]
    return name


class ChannelsFirst(nn.Module):
    """A network of images (b, channels, height, width) as one of (b, height, width, channels)."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        logits: torch.Tensor = self.network(x.permute(0, 3, 1, 2).contiguous())
        return logits


class PublishedTask(scores.ImageTask):
    """A smoothed network with weights from a file, by the methods of `ImageTask`."""

    def __init__(
        self, setting: Setting, images: data.Images, weights: Path, n_threads: int = 2
    ) -> None:
        super().__init__(setting, images, n_threads)
        self.weights = weights

    def network(self) -> Any:
        """Return the network with its weights, of raw images."""
        if self.setting.dataset == "imagenet":
            network, (mean, std) = resnet50(), IMAGENET_SCALES
        else:
            network, (mean, std) = ResNet(), CIFAR10_SCALES
        load_weights(network, self.weights)
        return ChannelsFirst(NormalizedModel(network, mean, std)).to(self.device).eval()

    def for_sampling(self, network: Any) -> nn.Module:
        """Return the network as it is."""
        return network

    def train(self, network: Any, report: Callable[[str], None]) -> None:
        """Do nothing: the weights are there."""


def imagenet(folder: Path, n_inputs: int, n_classes: int = N_IMAGENET_CLASSES) -> data.Images:
    """Return random images of the validation set of ImageNet, all of them held out.

    Parameters
    ----------
    folder : Path
        Folder with ``imagenet-val/<wnid>/*.JPEG``, one folder for each of the classes.
    n_inputs : int
    n_classes : int
        Folders that must be there: the label is the position of the folder in sorted order.
    """
    from PIL import Image

    root = folder / IMAGENET_FOLDER
    classes = sorted(path.name for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    if len(classes) != n_classes:
        raise ValueError(
            f"`--data` must be a folder with {n_classes} folders of classes in {IMAGENET_FOLDER}, "
            f"got {len(classes)} in {root}"
        )
    files = [path for name in classes for path in sorted((root / name).glob("*.JPEG"))]
    if len(files) < n_inputs:
        raise ValueError(f"{root} must hold at least {n_inputs} images, got {len(files)}")
    chosen = np.random.default_rng(data.SPLIT_SEED).permutation(len(files))[:n_inputs]
    pixels = []
    for i in chosen:
        with Image.open(files[i]) as image:
            scale = SHORT_SIDE / min(image.size)
            size = [max(SHORT_SIDE, round(scale * length)) for length in image.size]
            left, top = ((length - CROP) // 2 for length in size)
            resized = image.convert("RGB").resize(size)
            pixels.append(np.asarray(resized.crop((left, top, left + CROP, top + CROP))))
    labels = np.array([classes.index(files[i].parent.name) for i in chosen], dtype=np.int64)
    rows = np.arange(n_inputs)
    return data.Images(np.stack(pixels), labels, rows[:0], rows, mirrored=True)


def published(name: str, sigma: float) -> Dataset:
    """Return what is run with published weights: the grids of the data set, one network."""
    network = "resnet50" if name == "imagenet" else "resnet110"
    n, m = N_INPUTS[name], N_SAMPLES[name]
    setting = Setting(f"{name}-{network}-{sigma:g}", name, (sigma,), network, 0, 0, 0.0, n, m, m)
    task = Task(setting, l2(0.12, 0.25, 0.5, 0.75, 1))
    return Dataset((task,), DATASETS["cifar10"].experiments, n_logits=m)


def task_for(setting: Setting, folder: Path, cache: Path, weights: Path, n: int) -> PublishedTask:
    """Read the data of a network with published weights."""
    if setting.dataset == "imagenet":
        images = imagenet(folder, setting.n_inputs)
    else:
        images = data.cifar10(folder, cache)
        rows = images.held_out[: setting.n_inputs]  # the accuracy of more would take too long
        images = data.Images(images.pixels, images.labels, images.train, rows, mirrored=True)
    return PublishedTask(setting, images, weights, n)
