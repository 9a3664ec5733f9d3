"""Samplers of schemes from outside: drawn like ours, and checked."""

import itertools
import threading
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from bincp import noise
from bincp.noise import Keys, _samplers, draw
from bincp.smoothing import Gaussian, Joint, Smoothing, SparseFlip


@dataclass(frozen=True)
class Dice(Smoothing):
    """Adds a whole number from 1 to `sides` to each element."""

    sides: int


EXAMPLE = (Dice(6), np.zeros((3, 2, 4)))


def roll(scheme, x, keys):
    return x + (1 + keys.integers(x[0].size, scheme.sides)).reshape(x.shape).astype(x.dtype)


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Forget what a test registers."""
    monkeypatch.setattr(_samplers, "_entries", dict(_samplers._entries))


def register(sampler, *, examples=()):
    return noise.register(Dice, examples=examples)(sampler)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("chunk", [1, 100, 2**16])
def test_rows_do_not_depend_on_the_batch(dtype, chunk, monkeypatch):
    assert register(roll, examples=[EXAMPLE]) is roll
    monkeypatch.setattr(_samplers, "CHUNK", chunk)
    x = np.arange(24, dtype=dtype).reshape(4, 2, 3)
    full = draw(Dice(6), x, 9, phase="test", seed=3, indices=[7, 1, 2**50, 4])
    assert full.dtype == dtype
    assert full.shape == (4, 9, 2, 3)
    part = draw(Dice(6), x[2:], 5, phase="test", seed=3, indices=[2**50, 4])
    np.testing.assert_array_equal(part, full[2:, :5])
    keys = Keys(3, "test", [1], [8])
    np.testing.assert_array_equal(roll(Dice(6), x[1:2], keys)[0], full[1, 8])
    assert (draw(Dice(6), x, 9, phase="tuning", seed=3) != full).any()


def test_the_distribution_is_that_of_the_keys():
    """An integer has its probability to within 2^-64, so this is chi-square (p > 1e-6)."""
    register(roll)
    found = draw(Dice(6), np.zeros((10, 50)), 200, phase="test", seed=1).astype(int)
    assert found.min() == 1
    assert found.max() == 6
    assert stats.chisquare(np.bincount(found.ravel())[1:]).pvalue > 1e-6
    pairs = np.histogram2d(found[..., 0].ravel(), found[..., 49].ravel(), bins=6)[0]
    assert stats.chisquare(pairs.ravel()).pvalue > 1e-6


def test_samplers_may_write_to_what_they_get():
    def roll_in_place(scheme, x, keys):
        x += (1 + keys.integers(x[0].size, scheme.sides)).reshape(x.shape)
        return x

    register(roll_in_place)
    x = np.zeros((2, 3))
    assert draw(Dice(6), x, 4, phase="test").min() >= 1
    assert (x == 0).all()


def test_several_threads_draw_at_once():
    register(roll)
    x = np.zeros((3, 1000), np.float32)
    expected, found = draw(Dice(6), x, 20, phase="test"), [None] * 4

    def work(i):
        found[i] = draw(Dice(6), x, 20, phase="test")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    for one in found:
        np.testing.assert_array_equal(one, expected)


# ---- what a sampler must not do -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("sampler", "error", "message"),
    [
        (lambda s, x, keys: None, TypeError, "return a NumPy array, got NoneType"),
        (lambda s, x, keys: x.tolist(), TypeError, "return a NumPy array, got list"),
        (lambda s, x, keys: np.ma.array(x), TypeError, "return a NumPy array, got MaskedArray"),
        (lambda s, x, keys: x[:, :1], ValueError, r"float32 of shape \(6, 3\) .* shape \(6, 1\)"),
        (lambda s, x, keys: x[0], ValueError, r"float32 of shape \(6, 3\) .* shape \(3,\)"),
        (lambda s, x, keys: x.astype(float), ValueError, r"return float32 .*, got float64 of"),
        (lambda s, x, keys: x.astype(int), ValueError, r"return float32 .*, got int64 of"),
        (lambda s, x, keys: x * np.nan, ValueError, r"not return NaN, got one at index \(0, 0\)"),
    ],
)
def test_wrong_results_name_the_scheme(sampler, error, message):
    register(sampler)
    with pytest.raises(error, match=rf"the sampler of Dice\(sides=6\) must .*{message}"):
        draw(Dice(6), np.zeros((2, 3), np.float32), 3, phase="test")


def fixed_seed(scheme, x, keys):
    return x + np.random.default_rng(keys.seed).integers(6, size=x.shape).astype(x.dtype)


def global_state(scheme, x, keys):
    return x + np.random.random(x.shape)  # noqa: NPY002


def first_id(scheme, x, keys):
    numbers = Keys(keys.seed, keys.phase, keys.ids[:1], keys.draws[:1]).integers(8, 6)
    return x + numbers.reshape(x[:1].shape)


def constant(scheme, x, keys):
    return x + 1


def made_of(**fixed):
    """A sampler that leaves out a part of the key."""

    def sampler(scheme, x, keys):
        parts = {"seed": keys.seed, "phase": keys.phase, "ids": keys.ids, "draws": keys.draws}
        for name, value in fixed.items():
            parts[name] = parts[name] * 0 if value is None else value
        return roll(scheme, x, Keys(**parts))

    return sampler


def one_noise_for(first, second):
    """A sampler that takes one phase for another."""

    def sampler(scheme, x, keys):
        phase = first if keys.phase == second else keys.phase
        return roll(scheme, x, Keys(keys.seed, phase, keys.ids, keys.draws))

    return sampler


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (fixed_seed, "from its input and its key alone, but draws of input"),
        (global_state, "from its input and its key alone, but draws of input"),
        (first_id, "from its input and its key alone, but draws of input"),
        (made_of(seed=0), "other noise for another seed"),
        (made_of(phase="test"), "other noise for another phase"),
        (one_noise_for("calibration", "tuning"), "other noise for another phase"),
        (one_noise_for("calibration", "test"), "other noise for another phase"),
        (one_noise_for("test", "tuning"), "other noise for another phase"),
        (made_of(ids=None), "other noise for another id"),
        (made_of(draws=None), "other noise for another draw"),
        (constant, "other noise for another seed"),
        (lambda s, x, keys: x[:, :1], "return float64 of shape"),
    ],
)
def test_samplers_that_are_not_keyed_are_refused_by_their_example(sampler, message):
    with pytest.raises(ValueError, match=rf"the sampler of Dice\(sides=6\) must .*{message}"):
        register(sampler, examples=[EXAMPLE])
    with pytest.raises(TypeError, match=r"bincp\.noise\.register adds more"):
        draw(Dice(6), np.zeros((1, 2)), 1, phase="test")  # it is not registered


def test_errors_of_the_sampler_go_through():
    def picky(scheme, x, keys):
        raise ValueError("`x` must be a die")

    register(picky)
    with pytest.raises(ValueError, match="`x` must be a die"):
        draw(Dice(6), np.zeros((1, 2)), 1, phase="test")


# ---- registration -------------------------------------------------------------------------------


def test_a_second_sampler_is_refused():
    register(roll)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"Dice must not .*: the first is .*\.roll"):
            register(constant)
    with pytest.raises(ValueError, match=r"Gaussian .*: the first is bincp\.noise"):
        noise.register(Gaussian)(roll)
    assert draw(Dice(1), np.zeros((1, 2)), 1, phase="test").tolist() == [[[1, 1]]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: noise.register(Dice(6)), r"`smoothing_type` must be a class, got Dice\(sides=6\)"),
        (lambda: noise.register(Dice)(1), "`sampler` must be callable, got 1"),
        (lambda: register(roll, examples=[(Gaussian(1.0), EXAMPLE[1])]), "of the type Dice, got"),
        (lambda: register(roll, examples=None), r"`examples` must be an iterable of pairs \(smoo"),
        (lambda: register(roll, examples=[1]), r"`examples` must be pairs \(smoothing, x\), got 1"),
        (lambda: register(roll, examples=[(1, 2, 3)]), "`examples` must be pairs .*, got .1, 2, 3"),
        (lambda: draw(Dice(6), EXAMPLE[1], 1, phase="test"), r"must be one of .*got Dice\(sides"),
        (lambda: draw(Gaussian, EXAMPLE[1], 1, phase="test"), "must be one of .*got <class"),
    ],
)
def test_wrong_types(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_types_may_be_registered_while_the_known_ones_are_named():
    class Registers(type):
        """While its name is asked for, another thread could do the same."""

        @property
        def __name__(cls):
            noise.register(type("Late", (), {}))(roll)
            return "Registers"

    noise.register(Registers("Registers", (), {}))(roll)
    with pytest.raises(TypeError, match=r"`smoothing` must be one of .*Registers"):
        draw(object(), EXAMPLE[1], 1, phase="test")


def test_subclasses_do_not_inherit_a_sampler():
    """What a subclass means by its parameters is unknown; certificates are not inherited either."""

    class Other(Gaussian):
        pass

    with pytest.raises(TypeError, match=r"`smoothing` must be one of .*, got .*Other"):
        draw(Other(1.0), np.zeros((1, 2)), 1, phase="test")


def test_parts_of_a_joint_scheme_are_ours():
    """Parts share the words of a position, which samplers from outside need not."""
    register(roll)
    scheme = Joint(Dice(6), SparseFlip(0.1, 0.1), n_adjacency=1)
    with pytest.raises(TypeError, match=r"must join SparseFlip, .* got Dice\(sides=6\)"):
        draw(scheme, np.zeros((1, 2)), 1, phase="test")


# ---- models -------------------------------------------------------------------------------------


def test_models_see_the_same_draws():
    torch = pytest.importorskip("torch")
    from bincp.sampling import count_scores, sample_scores, vote_counts

    register(roll, examples=[EXAMPLE])
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    expected = draw(Dice(6), x, 7, phase="test", seed=2)
    for batch_size in (1, 4, 100):
        options = {"phase": "test", "seed": 2, "batch_size": batch_size}
        scores = sample_scores(lambda rows: rows, x, Dice(6), 7, score="logit", **options)
        np.testing.assert_array_equal(scores, expected.transpose(0, 2, 1))
        counts = count_scores(lambda rows: rows, x, Dice(6), 7, 9.0, score="logit", **options)
        np.testing.assert_array_equal(counts, (expected >= 9).sum(axis=1))
        votes = vote_counts(lambda rows: rows, x, Dice(6), 7, **options)
        labels = torch.from_numpy(expected).argmax(dim=2).numpy()
        np.testing.assert_array_equal(votes, (labels[..., None] == np.arange(4)).sum(axis=1))


def test_a_sampler_is_looked_up_once_a_job(monkeypatch):
    pytest.importorskip("torch")
    from bincp.sampling import sample_scores

    made = []
    entry = _samplers._entries[Gaussian]
    counted = entry._replace(factory=lambda scheme: made.append(scheme) or entry.factory(scheme))
    monkeypatch.setitem(_samplers._entries, Gaussian, counted)
    x = np.zeros((6, 3), np.float32)
    sample_scores(lambda rows: rows, x, Gaussian(1.0), 8, phase="test", batch_size=4)
    assert len(made) == 1


def test_every_batch_is_checked():
    pytest.importorskip("torch")
    from bincp.sampling import sample_scores

    calls = itertools.count()

    def late(scheme, x, keys):
        return roll(scheme, x, keys) if next(calls) < 3 else x * np.nan

    register(late)
    x = np.zeros((6, 3), np.float32)
    with pytest.raises(ValueError, match=r"the sampler of Dice\(sides=6\) must not return NaN"):
        sample_scores(lambda rows: rows, x, Dice(6), 8, phase="test", batch_size=4)
