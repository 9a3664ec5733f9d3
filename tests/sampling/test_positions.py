"""Bad inputs and labels are named by their position in all that was given, in whatever pieces."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from bincp.balls import L2  # noqa: E402
from bincp.sampling import (  # noqa: E402
    RobustClassifier,
    RobustRegressor,
    count_scores,
    exact_probabilities,
    run,
    sample_scores,
    vote_counts,
)
from bincp.smoothing import Gaussian, SplittingNoise  # noqa: E402

N, D, K, M = 30, 6, 3, 4
AT = 23
SCHEME = Gaussian(0.5)
X = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)
Y = np.arange(N) % K


def model(x):
    return 2 * x.reshape(len(x), -1)[:, :K]


def careful(x):
    """A model that refuses inputs in words of its own, as those of scikit-learn do."""
    if not bool(torch.isfinite(x).all()):
        raise ValueError("Input X contains NaN")
    return model(x)


def with_bad(value, at=AT):
    x = X.copy()
    x[at, 2] = value
    return x


def fitted(one=model, kind=RobustClassifier, **options):
    options = {"alpha": 0.2, "n_samples": M, "passes": None, **options}
    return kind(one, SCHEME, L2(0.1), **options).calibrate(X, Y)


def forms(x, *labels):
    """Yield inputs as an array, a dataset, a loader and a stream of batches."""
    tensors = [torch.from_numpy(one) for one in (x, *labels)]
    dataset = TensorDataset(*tensors)
    yield dataset
    yield DataLoader(dataset, batch_size=4)
    pairs = [tuple(one[i : i + 7] for one in tensors) for i in range(0, N, 7)]
    yield iter(pairs if labels else [one for (one,) in pairs])


NAMED = rf"`x` must be finite, got {{}} in input {AT} at index \(2,\)$"


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("one", [model, careful])
def test_an_input_that_is_not_finite_is_named(value, one, tmp_path):
    """The noise leaves it as it is, and its scores are NaN: a softmax with inf is."""
    x = with_bad(value)
    options = {"phase": "test", "batch_size": 5}

    def calls(x):
        yield lambda: sample_scores(one, x, SCHEME, M, **options)
        yield lambda: count_scores(one, x, SCHEME, M, 0.5, **options)
        yield lambda: fitted(one).predict(x)
        yield lambda: list(fitted(one).predict_iter(x))

    for number in range(4):
        for form in (x, torch.from_numpy(x), *forms(x)):
            with pytest.raises(ValueError, match=NAMED.format(value)):
                list(calls(form))[number]()
    ours = fitted(one, batch_size=4)
    with pytest.raises(ValueError, match=NAMED.format(value)):
        ours.calibrate(x, Y)
    for name, parts in (("array", {"x": x, "parts": 4}), ("stream", {"x": list(forms(x))[-1]})):
        with pytest.raises(ValueError, match=NAMED.format(value)):
            run(
                tmp_path / f"{name}", one, smoothing=SCHEME, n_samples=M, model_id="a", **options,
                **parts,
            )  # fmt: skip


def test_an_id_of_its_own_is_named_too():
    with pytest.raises(ValueError, match=rf"got nan in input {AT} \(id {100 + AT}\) at index"):
        sample_scores(
            model, with_bad(np.nan), SCHEME, M, phase="test", indices=100 + np.arange(N)
        )  # fmt: skip


def test_votes_and_ranges_name_it():
    with pytest.raises(ValueError, match=NAMED.format("nan")):
        vote_counts(model, with_bad(np.nan), SCHEME, M)
    ours = fitted(input_range=(-9, 9), batch_size=4)
    for form in (with_bad(np.nan), *forms(with_bad(np.nan))):
        with pytest.raises(ValueError, match=NAMED.format("nan")):
            ours.predict(form)


def test_images_are_named_by_all_their_axes():
    images = X.reshape(N, 1, 2, 3)
    bad = with_bad(np.nan).reshape(N, 1, 2, 3)
    ours = RobustClassifier(model, SCHEME, L2(0.1), alpha=0.2, n_samples=M).calibrate(images, Y)
    with pytest.raises(ValueError, match=rf"got nan in input {AT} at index \(0, 0, 2\)$"):
        ours.predict(bad)


def test_a_model_of_nan_is_blamed_and_the_position_is_that_in_the_whole():
    """The model, and not an input before it that the model takes."""

    def broken(x):
        return torch.where(x[:, :K] > 50, torch.nan, 0.0)

    x = with_bad(100)
    for form in (x, *forms(x)):
        with pytest.raises(ValueError, match=f"`model` must not give NaN .* for input {AT}, draw"):
            sample_scores(broken, form, SCHEME, M, phase="test", batch_size=4)


class Counting:
    """An array of inputs is looked at again where a score is NaN only."""

    def __init__(self, monkeypatch):
        from bincp.sampling._jobs import Job

        self.n, check = 0, Job.check_finite

        def counted(job, sources):
            self.n += 1
            check(job, sources)

        monkeypatch.setattr(Job, "check_finite", counted)


def test_finite_scores_cost_no_second_look(monkeypatch):
    looks = Counting(monkeypatch)
    sample_scores(model, X, SCHEME, M, phase="test")
    assert looks.n == 0
    with pytest.raises(ValueError, match="`x` must be finite"):
        sample_scores(model, with_bad(np.nan), SCHEME, M, phase="test")
    assert looks.n == 1


LABEL = rf"`labels` must be in \[0, {K - 1}\], got {{}} at index \({AT},\)$"


@pytest.mark.parametrize("label", [K, -1])
def test_labels_are_named_by_their_position(label, tmp_path):
    y = Y.copy()
    y[AT] = label
    options = {"smoothing": SCHEME, "n_samples": M, "phase": "calibration", "batch_size": 4}
    cases = [({"x": X, "labels": y}, {"x": X, "labels": y, "parts": 4})]
    cases += [({"x": form, "labels": True}, {"x": form}) for form in list(forms(X, y))[:2]]
    cases += [({"x": list(forms(X, y))[2], "labels": True}, {"x": list(forms(X, y))[2]})]
    for number, (memory, disk) in enumerate(cases):
        with pytest.raises(ValueError, match=LABEL.format(label)):
            sample_scores(model, **memory, **options)
        with pytest.raises(ValueError, match=LABEL.format(label)):
            run(tmp_path / str(number), model, model_id="a", **disk, **options)
    for form in forms(X, y):
        with pytest.raises(ValueError, match=LABEL.format(label)):
            RobustClassifier(
                model, SCHEME, L2(0.1), alpha=0.2, n_samples=M, batch_size=4
            ).calibrate(form)


def test_labels_of_exact_probabilities_are_named_by_their_position():
    scheme = SplittingNoise(0.25)
    x = torch.from_numpy(np.round(np.clip(X, 0, 1) * 255) / np.float32(255))
    y = Y.copy()
    y[AT] = K
    loader = DataLoader(TensorDataset(x, torch.from_numpy(y)), batch_size=4)
    with pytest.raises(ValueError, match=LABEL.format(K)):
        exact_probabilities(model, loader, scheme, tau=0.4, labels=True)


def test_real_labels_are_named_by_their_position():
    y = X.sum(1)
    y[AT] = np.nan
    pairs = [(X[i : i + 7], y[i : i + 7]) for i in range(0, N, 7)]
    ours = RobustRegressor(lambda x: x.sum(1), SCHEME, L2(0.1), alpha=0.2, n_samples=M)
    with pytest.raises(ValueError, match=rf"`y` must be finite, got nan at index \({AT},\)$"):
        ours.calibrate(pairs)
