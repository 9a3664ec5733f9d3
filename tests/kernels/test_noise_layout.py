"""The layout of inputs: what a scheme keeps, flips or deletes is what its certificate counts.

A sampler that took an image with the channels last for one with the channels first would show one
channel of several pixels where the certificate counts one pixel.
"""

from fractions import Fraction

import numpy as np
import pytest

from bincp import balls, certify
from bincp.noise import all_copies, draw
from bincp.smoothing import (
    Ablation,
    BandAblation,
    BlockAblation,
    CategoricalFlip,
    Deletion,
    Joint,
    SparseFlip,
)

CHANNELS = "channels first"


def image(*shape):
    return 1 + np.arange(2 * np.prod(shape), dtype=np.float64).reshape(2, *shape)


# ---- pixels -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dim", "shape"),
    [
        (64, (8, 8, 3)),
        (64, (192,)),  # of two orders of channels and pixels, one is wrong
        (64, (64, 3)),
        (64, (8, 3, 8)),
        (64, (32,)),
        (64, (3, 8, 8, 2)),
        (12, (4, 3, 3)),
        (9, (9, 4)),
    ],
)
def test_ablation_refuses_other_layouts(dim, shape):
    with pytest.raises(ValueError, match=rf"flat .* {CHANNELS} .* dim = {dim}, got shape \(2, "):
        draw(Ablation(1, dim), image(*shape), 4, phase="test")


@pytest.mark.parametrize(
    ("dim", "shape", "channels"),
    [
        (64, (3, 8, 8), 3),
        (64, (1, 8, 8), 1),
        (64, (8, 8), 1),
        (64, (64,), 1),
        (64, (3, 64), 3),
        (64, (2, 3, 8, 8), 6),
        (192, (8, 8, 3), 1),  # elements, whatever the shape
        (192, (192,), 1),
        (1, (5,), 5),
    ],
)
@pytest.mark.parametrize("keep", [1, 5])
def test_ablation_shows_so_many_pixels_and_all_their_channels(dim, shape, channels, keep):
    """Every draw shows exactly `keep` pixels, so a pixel is seen with probability keep / dim."""
    keep = min(keep, dim)
    x = image(*shape)
    seen = draw(Ablation(keep, dim), x, 50, phase="test").reshape(2, 50, channels, dim) != 0
    assert (seen.any(axis=2) == seen.all(axis=2)).all()
    assert (seen.any(axis=2).sum(axis=2) == keep).all()


@pytest.mark.parametrize("channels", [(), (1,), (3,), (2, 3)])
@pytest.mark.parametrize(("height", "width"), [(4, 5), (3, 3)])
def test_a_pixel_is_seen_in_as_many_copies_as_the_certificate_takes_off(channels, height, width):
    """By enumeration of all copies; the patch is a single pixel, with all its channels."""
    x = image(*channels, height, width)
    for scheme in (BlockAblation(2, height, width), BandAblation(2, width)):
        seen = all_copies(scheme, x).reshape(2, scheme.levels, -1, height, width) != 0
        assert (seen.any(axis=2) == seen.all(axis=2)).all()
        copies = seen.any(axis=2).sum(axis=1)
        lost = 1 - Fraction(certify(scheme, balls.Patch(1, 1)).lower(1.0))
        assert (copies == copies[0, 0, 0]).all()
        share = Fraction(int(copies[0, 0, 0]), scheme.levels)
        assert share <= lost <= share + Fraction(1, 2**50)


@pytest.mark.parametrize(
    ("scheme", "shape"),
    [
        (BlockAblation(2, 8, 8), (8, 8, 3)),
        (BlockAblation(2, 8, 8), (64,)),
        (BlockAblation(2, 8, 8), (3, 64)),
        (BlockAblation(2, 4, 5), (5, 4)),
        (BandAblation(2, 8), (8, 8, 3)),
        (BandAblation(2, 8), (64,)),
    ],
)
def test_blocks_and_bands_refuse_other_layouts(scheme, shape):
    for call in (
        lambda: draw(scheme, image(*shape), 2, phase="test"),
        lambda: all_copies(scheme, image(*shape)),
    ):
        with pytest.raises(ValueError, match=r"`x` must have shape \(n, ..., .*channels before"):
            call()


def test_models_get_no_image_of_another_layout():
    torch = pytest.importorskip("torch")
    from bincp.sampling import RobustClassifier, exact_probabilities, sample_scores

    x, y = image(8, 8, 3), np.array([0, 1])

    def model(rows):
        return torch.zeros(len(rows), 2)

    scheme = Ablation(1, 64)
    classifier = RobustClassifier(model, scheme, balls.L0(1), alpha=0.5, n_samples=4)
    for call in (
        lambda: sample_scores(model, x, scheme, 4, phase="test"),
        lambda: classifier.calibrate(x, y),
    ):
        with pytest.raises(ValueError, match=CHANNELS):
            call()
    with pytest.raises(ValueError, match="channels before the pixels"):
        exact_probabilities(model, x, BandAblation(1, 8), tau=0.5)


# ---- positions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("length", [(7,), (4, 4)])
def test_one_hot_vectors_are_no_codes(k, length):
    """A changed category is one position of codes, but two elements of one-hot vectors."""
    codes = np.random.default_rng(0).integers(0, k, (3, *length))
    one_hot = np.eye(k)[codes]
    scheme = CategoricalFlip(k, 0.1, 0.2)
    for axis in range(1, one_hot.ndim):
        with pytest.raises(ValueError, match=rf"must hold codes, .* axis {axis}: use x.argmax"):
            draw(scheme, np.moveaxis(one_hot, -1, axis), 2, phase="test")
        assert (np.moveaxis(one_hot, -1, axis).argmax(axis) == codes).all()
    assert draw(scheme, codes.astype(float), 2, phase="test").shape == (3, 2, *length)
    parts = np.concatenate([np.zeros((3, 2, k)), one_hot.reshape(3, -1, k)], axis=1)
    with pytest.raises(ValueError, match=r"must hold codes, .* axis 2: use x.argmax"):
        draw(Joint(SparseFlip(0.1, 0.2), scheme, 2 * k), parts, 2, phase="test")
    flat = one_hot.reshape(3, -1)
    assert draw(scheme, flat, 2, phase="test").shape == (3, 2, flat.shape[1])


def test_codes_are_accepted_whatever_their_shape():
    for shape in ((5, 3), (3, 5), (3, 3, 3)):
        x = np.random.default_rng(1).integers(0, 3, (4, *shape)).astype(np.float32)
        assert draw(CategoricalFlip(3, 0.1, 0.2), x, 2, phase="test").shape == (4, 2, *shape)


def test_tokens_have_one_axis():
    tokens = np.eye(3)[[[0, 1, 2, 2]]]
    with pytest.raises(ValueError, match=r"\(n, length\), one token an element, for Deletion"):
        draw(Deletion(0.5), tokens, 1, phase="test")


# ---- parts --------------------------------------------------------------------------------------


def joint(n_adjacency):
    return Joint(SparseFlip(1.0, 1.0), SparseFlip(0.0, 0.0), n_adjacency=n_adjacency)


def test_parts_side_by_side_are_refused():
    """Node by node, the adjacency (5) and the attributes (3): the leading elements are both."""
    x = np.zeros((2, 5, 8))
    for n_adjacency in (25, 1, 39):
        with pytest.raises(ValueError, match=r"along axis 1, for Joint, .* begins at element"):
            draw(joint(n_adjacency), x, 1, phase="test")
    nested = Joint(joint(8), SparseFlip(0.0, 0.0), n_adjacency=12)
    with pytest.raises(ValueError, match="begins at element 12"):
        draw(nested, x, 1, phase="test")


@pytest.mark.parametrize("shape", [(40,), (5, 8), (5, 2, 4)])
def test_parts_in_order_are_flipped_up_to_their_end(shape):
    for rows in range(6):
        noisy = draw(joint(8 * rows), np.zeros((2, *shape)), 1, phase="test")
        flat = noisy.reshape(2, 40)
        assert (flat[:, : 8 * rows] == 1).all()
        assert (flat[:, 8 * rows :] == 0).all()
