"""Small networks that a CPU trains in minutes and evaluates ten thousand times a second.

Smoothing costs forward passes, so the networks are made for them: the first convolution has a
stride of 2 already, each of three stages halves the image and doubles the channels, and for
sampling batch normalisation is folded into the convolutions. Convolutions compute in bfloat16,
which is fast where the CPU has instructions for it: on two cores of an AMD EPYC, the residual
network of width 32 trains with 2,900 images/s instead of 1,800, and the plain one is evaluated
20,000 times/s instead of 10,000. The mean over the image and the logits are float32, so that scores
are not rounded to 8 bits. To the theory this is one more network.
"""

import copy
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

from benchmarks.study.data import Graph, Images
from bincp import noise
from bincp.smoothing import Gaussian, Smoothing, SparseFlip

__all__ = [
    "GraphNetwork",
    "ImageNetwork",
    "as_sparse_tensor",
    "for_sampling",
    "propagation_matrix",
    "train_graph",
    "train_images",
]

BATCH_SIZE = 256
SHIFT = 4  # pixels, at most, in a random crop of 32 x 32


class ConvUnit(nn.Module):
    """Convolution, batch normalisation, ReLU."""

    def __init__(self, n_in: int, n_out: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.norm: nn.Module = nn.BatchNorm2d(n_out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features (b, n_out, ...)."""
        return functional.relu(self.norm(self.conv(x)), inplace=True)

    def fold(self) -> None:
        """Make the normalisation part of the convolution; for evaluation only."""
        self.conv = fuse_conv_bn_eval(self.conv.eval(), self.norm.eval())
        self.norm = nn.Identity()


class Residual(nn.Module):
    """Two units around which the input passes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.units = nn.Sequential(ConvUnit(width, width), ConvUnit(width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features of the shape of the input."""
        return x + self.units(x)


BLOCKS: dict[str, Callable[[int], nn.Module]] = {
    "residual": Residual,
    "plain": lambda width: ConvUnit(width, width),
}


class ImageNetwork(nn.Module):
    """Three stages, each a strided unit and a block, then the mean over the image.

    Parameters
    ----------
    kind : str
        "residual" or "plain".
    width : int
        Channels of the first stage.
    n_channels, n_classes : int
        Numbers of channels and classes of the images.
    """

    def __init__(self, kind: str, width: int, n_channels: int = 3, n_classes: int = 10) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for n_in, n_out in ((n_channels, width), (width, 2 * width), (2 * width, 4 * width)):
            layers += [ConvUnit(n_in, n_out, stride=2), BLOCKS[kind](n_out)]
        self.body = nn.Sequential(*layers).to(memory_format=torch.channels_last)
        self.head = nn.Linear(4 * width, n_classes)
        self.compute_dtype = torch.float32

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits (b, K) of images (b, height, width, channels)."""
        features = self.body(x.permute(0, 3, 1, 2).to(self.compute_dtype))
        logits: torch.Tensor = self.head(features.float().mean((2, 3)))
        return logits


def for_sampling(network: ImageNetwork, dtype: torch.dtype) -> ImageNetwork:
    """Return a copy that evaluates fast, with convolutions of this dtype."""
    network = copy.deepcopy(network).eval()
    for module in network.modules():
        if isinstance(module, ConvUnit):
            module.fold()
    network.body.to(dtype)
    network.compute_dtype = dtype
    return network.requires_grad_(False)


def train_images(
    network: ImageNetwork,
    data: Images,
    smoothing: Smoothing,
    *,
    n_epochs: int,
    max_rate: float,
    seed: int,
    report: Callable[[str], None] = print,
) -> None:
    """Train with noise, random crops and mirror images, on ``data.train`` only.

    The network is trained on its own device, a CPU or a GPU.
    """
    device = next(network.parameters()).device
    generator = torch.Generator().manual_seed(seed)
    n_batches = math.ceil(len(data.train) / BATCH_SIZE)
    optimizer = torch.optim.SGD(
        network.parameters(), lr=max_rate, momentum=0.9, weight_decay=5e-4, nesterov=True
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_rate, total_steps=n_epochs * n_batches, pct_start=0.25
    )
    network.train()
    for epoch in range(n_epochs):
        total = 0.0
        order = data.train[torch.randperm(len(data.train), generator=generator).numpy()]
        for start in range(0, len(order), BATCH_SIZE):
            rows = order[start : start + BATCH_SIZE]
            x = torch.from_numpy(_augmented(data, rows, generator)).float() / 255
            noisy = _noisy(x, smoothing, generator).to(device)
            labels = torch.from_numpy(data.labels[rows]).to(device)
            with torch.autocast(device.type, torch.bfloat16):
                logits = network(noisy)
            loss = functional.cross_entropy(logits.float(), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(rows)
        report(f"epoch {epoch + 1}/{n_epochs}: loss {total / len(order):.3f}")
    network.eval()


def _noisy(x: torch.Tensor, smoothing: Smoothing, generator: torch.Generator) -> torch.Tensor:
    """Return a noisy copy of each image."""
    if isinstance(smoothing, Gaussian):  # faster than keyed noise, which training has no use for
        return x + smoothing.sigma * torch.randn(x.shape, generator=generator)
    seed = int(torch.randint(2**62, (), generator=generator))
    return torch.from_numpy(noise.draw(smoothing, x.numpy(), 1, phase="test", seed=seed)[:, 0])


def _augmented(
    data: Images, rows: npt.NDArray[np.int64], generator: torch.Generator
) -> npt.NDArray[np.uint8]:
    """Return the images, each moved by up to `SHIFT` pixels and perhaps mirrored."""
    height, width = data.pixels.shape[1:3]
    shifts = torch.randint(-SHIFT, SHIFT + 1, (2, len(rows), 1), generator=generator).numpy()
    mirrored = data.mirrored * torch.randint(2, (len(rows), 1), generator=generator).numpy() == 1
    across = np.arange(width)
    # Pixels from beyond the border are those on it.
    y = np.clip(np.arange(height) + shifts[0], 0, height - 1)
    x = np.clip(np.where(mirrored, across[::-1], across) + shifts[1], 0, width - 1)
    return data.pixels[rows[:, None, None], y[:, :, None], x[:, None, :]]


class GraphNetwork(nn.Module):
    """Graph convolutional network of two layers (Kipf and Welling, ICLR 2017).

    Parameters
    ----------
    n_attributes, width, n_classes : int
        Attributes of a node, hidden numbers of a node, classes.
    """

    def __init__(self, n_attributes: int, width: int, n_classes: int) -> None:
        super().__init__()
        self.embed = nn.Linear(n_attributes, width, bias=False)
        self.shift = nn.Parameter(torch.zeros(width))
        self.head = nn.Linear(width, n_classes)

    def forward(self, x: torch.Tensor, propagation: torch.Tensor) -> torch.Tensor:
        """Return the logits of all nodes."""
        embedded = self.embed(functional.dropout(x, 0.5, self.training))
        hidden = functional.dropout(self.hidden(propagation @ embedded), 0.5, self.training)
        return propagation @ self.head(hidden)

    def hidden(self, gathered: torch.Tensor) -> torch.Tensor:
        """Return the hidden numbers of nodes that have gathered their neighbours' embeddings."""
        return functional.relu(gathered + self.shift)


def propagation_matrix(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return D^-1/2 (A + I) D^-1/2, D the degrees of A + I."""
    linked = sparse.csr_array(adjacency + sparse.eye(adjacency.shape[0], dtype=np.float32))
    scale = sparse.diags(linked.sum(axis=1) ** -0.5)
    return sparse.csr_array(scale @ linked @ scale, dtype=np.float32)


def as_sparse_tensor(matrix: sparse.csr_array) -> torch.Tensor:
    """Return the matrix as a sparse tensor of torch."""
    entries = matrix.tocoo()
    places = torch.from_numpy(np.stack((entries.row, entries.col)).astype(np.int64))
    values = torch.from_numpy(entries.data)
    return torch.sparse_coo_tensor(places, values, matrix.shape, check_invariants=True).coalesce()


def train_graph(
    network: GraphNetwork,
    data: Graph,
    smoothing: SparseFlip,
    *,
    n_epochs: int,
    max_rate: float,
    seed: int,
    report: Callable[[str], None] = print,
) -> None:
    """Train on the labels of ``data.train``, with new flips of all attributes in each epoch."""
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)  # dropout takes no generator
    attributes = torch.from_numpy(data.attributes)
    propagation = as_sparse_tensor(propagation_matrix(data.adjacency))
    nodes = torch.from_numpy(data.train)
    labels = torch.from_numpy(data.labels[data.train])
    flip = torch.where(attributes == 1, smoothing.p_minus, smoothing.p_plus)
    optimizer = torch.optim.Adam(network.parameters(), lr=max_rate, weight_decay=5e-4)
    network.train()
    for epoch in range(n_epochs):
        flipped = torch.rand(attributes.shape, generator=generator) < flip
        x = torch.where(flipped, 1 - attributes, attributes)
        loss = functional.cross_entropy(network(x, propagation)[nodes], labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (epoch + 1) % 50 == 0:
            report(f"epoch {epoch + 1}/{n_epochs}: loss {loss.item():.3f}")
    network.eval()
