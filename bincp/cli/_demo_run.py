"""The demo: BinCP beside vanilla conformal prediction on real images, clean and under attack.

A small network learns scikit-learn's bundled handwritten digits (1,797 images of 8 x 8 pixels) with
Gaussian noise. BinCP is calibrated for several l2 radii, and both methods are tested on clean
images and on images that projected gradient descent has moved by up to that radius. Every image
serves one purpose only: training, calibration or test.
"""

import importlib.util
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bincp import metrics
from bincp._utils.levels import Level, check_level, conformal_rank
from bincp._utils.validation import check_integer, check_real
from bincp.balls import L2
from bincp.calibration import BinCP
from bincp.certificates import certify
from bincp.scores import tps
from bincp.smoothing import Gaussian

if TYPE_CHECKING:
    import torch
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Outcome", "Result", "Row", "Settings", "plot", "run"]

PACKAGES = {
    "torch": "torch",
    "sklearn": "scikit-learn",
    "matplotlib": "matplotlib",
    "tqdm": "tqdm",
}
N_IMAGES = 1797
N_CLASSES = 10
ETA = "0.001"  # the share of alpha that is spent on the error of sampling
BATCH_SIZE = 128
SAMPLING_BATCH_SIZE = 4096
BLUE, ORANGE = "#0072b2", "#d55e00"  # colour-blind readers can tell these apart

Images = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
Sets = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Settings:
    """Settings of the demo.

    Parameters
    ----------
    alpha : Level
        Miscoverage level, above the 0.001 that BinCP spends on sampling error; the nominal coverage
        is 1 - alpha.
    radii : tuple of float
        Radii of the l2 ball, >= 0, for images with pixels in [0, 1].
    n_samples : int
        Noise draws for each image, m, in calibration and in prediction.
    seed : int
        Seed of the split, the network, the noise and the attack.
    sigma : float
        Standard deviation of the noise, for pixels in [0, 1].
    n_train, n_calibration, n_test : int
        Sizes of the parts that the images are split into; at most 1,797 together.
    n_epochs : int
        Passes over the training images.
    attack_steps, attack_draws : int
        Steps of the attack, and noise draws that each averages the gradient over.

    Raises
    ------
    TypeError, ValueError
        If a setting has a wrong type or value.
    """

    alpha: Level = "0.1"
    radii: tuple[float, ...] = (0.0, 0.125, 0.25, 0.375, 0.5)
    n_samples: int = 1000
    seed: int = 0
    sigma: float = 0.25
    n_train: int = 497
    n_calibration: int = 500
    n_test: int = 800
    n_epochs: int = 60
    attack_steps: int = 20
    attack_draws: int = 16

    def __post_init__(self) -> None:
        if check_level("alpha", self.alpha) <= check_level("eta", ETA):
            raise ValueError(f"`alpha` must be above {ETA}, got {self.alpha}")
        checked: dict[str, object] = {
            "sigma": check_real("sigma", self.sigma, low=0, open_low=True),
            "seed": check_integer("seed", self.seed, low=0, high=2**64 - 1),
        }
        if not self.radii:
            raise ValueError("`radii` must hold at least one radius, got none")
        checked["radii"] = tuple(check_real("radii", radius, low=0) for radius in self.radii)
        counts = (
            "n_samples",
            "n_train",
            "n_calibration",
            "n_test",
            "n_epochs",
            "attack_steps",
            "attack_draws",
        )
        for name in counts:
            checked[name] = check_integer(name, getattr(self, name), low=1)
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        n_used = self.n_train + self.n_calibration + self.n_test
        if n_used > N_IMAGES:
            raise ValueError(
                f"`n_train` + `n_calibration` + `n_test` must be at most {N_IMAGES}, got {n_used}"
            )

    @property
    def nominal_coverage(self) -> float:
        """The coverage that is guaranteed, 1 - alpha."""
        return float(1 - check_level("alpha", self.alpha))


@dataclass(frozen=True)
class Outcome:
    """Coverage and set size of a method on the test images, clean and under attack.

    Parameters
    ----------
    coverage, coverage_attacked : float
        Share of the images whose set holds their label.
    set_size, set_size_attacked : float
        Mean number of labels in a set.
    """

    coverage: float
    coverage_attacked: float
    set_size: float
    set_size_attacked: float


@dataclass(frozen=True)
class Row:
    """The outcome at one radius.

    Parameters
    ----------
    radius : float
        Radius of the l2 ball, for pixels in [0, 1].
    tau, min_count, certified_p
        BinCP's decision rule: ``tau_``, ``min_count_`` and ``certified_p_`` of `BinCP`.
    bincp, vanilla : Outcome
        Outcomes of BinCP, and of split conformal prediction with the same network without noise.
    """

    radius: float
    tau: float
    min_count: int
    certified_p: float
    bincp: Outcome
    vanilla: Outcome


@dataclass(frozen=True)
class Result:
    """The result of the demo.

    Parameters
    ----------
    settings : Settings
    accuracy : float
        Accuracy of the network on clean test images, without noise.
    rows : tuple of Row
        One for each radius, in the order of the settings.
    """

    settings: Settings
    accuracy: float
    rows: tuple[Row, ...]


def run(settings: Settings, *, progress: bool = False) -> Result:
    """Train, calibrate, attack and measure.

    Parameters
    ----------
    settings : Settings
    progress : bool, optional
        Show a progress bar on stderr if that is a terminal.

    Returns
    -------
    Result
        Equal settings give equal results on one machine.

    Warns
    -----
    TrivialSetWarning
        If a radius is so large, or `n_samples` so small, that every label is in every set.

    Raises
    ------
    ModuleNotFoundError
        If torch, scikit-learn, matplotlib or tqdm is missing.
    """
    require_packages()
    from tqdm import tqdm

    rules = [_uncalibrated_rule(radius, settings) for radius in settings.radii]
    n_stages = 2 + len(settings.radii)
    bar = tqdm(total=n_stages, disable=None if progress else True, leave=False)
    with bar, _one_thread():
        bar.set_description("training")
        images, labels = _load_digits()
        train, calibration, test = _split(settings)
        model = _train(images[train], labels[train], settings)
        bar.update()
        bar.set_description("calibrating")
        trial = _Trial(model, images[test], labels[test], settings)
        vanilla_threshold = trial.calibrate(rules, images[calibration], labels[calibration])
        bar.update()
        rows = []
        for radius, rule in zip(settings.radii, rules, strict=True):
            bar.set_description(f"attacking, radius {radius:g}")
            rows.append(trial.measure(radius, rule, vanilla_threshold))
            bar.update()
    return Result(settings, trial.accuracy(), tuple(rows))


def plot(result: Result) -> "Figure":
    """Draw coverage and set size against the radius.

    Parameters
    ----------
    result : Result
        The return value of `run`.

    Returns
    -------
    matplotlib.figure.Figure
        A figure that pyplot does not know and nothing shows; save it by ``savefig``.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    settings = result.settings
    rows = sorted(result.rows, key=lambda row: row.radius)
    nominal = 100 * settings.nominal_coverage

    figure = Figure(figsize=(10, 4.6), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    left.axhline(nominal, color="black", linestyle=":", label=f"nominal, {nominal:g}%")
    _draw(left, _curves("coverage"), rows, scale=100)
    left.set(ylabel="covered test images (%)", title="Coverage", ylim=(0, 103))
    _draw(right, _curves("set_size"), rows)
    right.set(ylabel=f"labels in a set (of {N_CLASSES})", title="Average set size", ylim=(0, None))
    figure.suptitle(
        f"Handwritten digits: noise of sigma = {settings.sigma:g}, m = {settings.n_samples} draws, "
        f"{settings.n_calibration} calibration and {settings.n_test} test images",
        fontsize=11,
    )
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False
    )
    return figure


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch use one thread.

    The matrices are too small to gain from more (on a busy machine threads that wait for each other
    took three times as long), and the number of threads changes the last bits of a sum.
    """
    import torch

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


# ---- data and network -----------------------------------------------------------------------


def require_packages() -> None:
    """Raise an error that names the packages to install, if one is missing."""
    missing = [
        name for module, name in PACKAGES.items() if importlib.util.find_spec(module) is None
    ]
    if missing:
        raise ModuleNotFoundError(f'the demo needs {", ".join(missing)}: pip install "bincp[demo]"')


def _load_digits() -> tuple[Images, Labels]:
    """Return images (n, 1, 8, 8) with pixels in [0, 1], and labels."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    return (digits.images / 16).astype(np.float32)[:, None], digits.target.astype(np.int64)


def _split(settings: Settings) -> list[Labels]:
    """Return the indices of the training, calibration and test images."""
    order = np.random.default_rng(settings.seed).permutation(N_IMAGES)
    sizes = (settings.n_train, settings.n_calibration, settings.n_test)
    return np.split(order, np.cumsum(sizes))[:3]


def _train(images: Images, labels: Labels, settings: Settings) -> "torch.nn.Module":
    """Train a network on noisy copies of the images, new ones in each epoch."""
    import torch
    from torch import nn

    x, y = torch.from_numpy(images), torch.from_numpy(labels)
    with torch.random.fork_rng(devices=[]):  # leave the caller's random numbers alone
        torch.manual_seed(settings.seed)
        model = nn.Sequential(
            nn.Flatten(),
            nn.Linear(64, 128),
            nn.ReLU(),
            nn.Linear(128, 64),
            nn.ReLU(),
            nn.Linear(64, N_CLASSES),
        )
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        n_steps = settings.n_epochs * math.ceil(len(x) / BATCH_SIZE)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=n_steps)
        for _ in range(settings.n_epochs):
            for batch in torch.split(torch.randperm(len(x)), BATCH_SIZE):
                noisy = x[batch] + settings.sigma * torch.randn_like(x[batch])
                loss = nn.functional.cross_entropy(model(noisy), y[batch])
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
    return model.eval()


# ---- calibration, attack and test -----------------------------------------------------------


def _uncalibrated_rule(radius: float, settings: Settings) -> BinCP:
    certificate = certify(Gaussian(settings.sigma), L2(radius))
    return BinCP(certificate, alpha=settings.alpha, correction="clopper-pearson", eta=ETA)


@dataclass(frozen=True)
class _Trial:
    """A trained network and the test images that both methods are tried on."""

    model: "torch.nn.Module"
    images: Images
    labels: Labels
    settings: Settings

    def calibrate(self, rules: Iterable[BinCP], images: Images, labels: Labels) -> float:
        """Calibrate the rules of BinCP, and return the threshold of vanilla prediction."""
        from bincp.sampling import sample_scores

        true_scores = sample_scores(
            self.model,
            images,
            Gaussian(self.settings.sigma),
            self.settings.n_samples,
            phase="calibration",
            labels=labels,
            batch_size=SAMPLING_BATCH_SIZE,
            seed=self.settings.seed,
        )
        for rule in rules:
            rule.calibrate(true_scores, n_classes=N_CLASSES)
        plain_scores = self._probabilities(images)[np.arange(len(labels)), labels]
        rank = conformal_rank(check_level("alpha", self.settings.alpha), len(labels))
        return float(np.sort(plain_scores)[rank - 1]) if rank else -math.inf

    def measure(self, radius: float, rule: BinCP, vanilla_threshold: float) -> Row:
        """Measure both methods on clean images and on images that an attack on each has moved."""

        def robust_sets(images: Images) -> Sets:
            counts = self._counts(images, rule.tau_)
            return rule.predict_set_from_counts(counts, n_samples=self.settings.n_samples)

        def vanilla_sets(images: Images) -> Sets:
            return np.asarray(self._probabilities(images) >= vanilla_threshold)

        assert rule.min_count_ is not None  # calibrated on samples
        return Row(
            radius,
            rule.tau_,
            rule.min_count_,
            float(rule.certified_p_ or 0.0),
            bincp=self._outcome(robust_sets, radius, smoothed=True),
            vanilla=self._outcome(vanilla_sets, radius, smoothed=False),
        )

    def accuracy(self) -> float:
        """Return the share of the images that the network without noise classifies rightly."""
        return float((self._probabilities(self.images).argmax(axis=1) == self.labels).mean())

    def _outcome(
        self, predict_sets: Callable[[Images], Sets], radius: float, *, smoothed: bool
    ) -> Outcome:
        clean = predict_sets(self.images)
        attacked = predict_sets(self._attack(radius, smoothed=smoothed)) if radius else clean
        return Outcome(
            metrics.coverage(clean, self.labels),
            metrics.coverage(attacked, self.labels),
            metrics.average_set_size(clean),
            metrics.average_set_size(attacked),
        )

    def _counts(self, images: Images, tau: float) -> npt.NDArray[np.int32]:
        from bincp.sampling import count_scores

        return count_scores(
            self.model,
            images,
            Gaussian(self.settings.sigma),
            self.settings.n_samples,
            tau,
            phase="test",
            batch_size=SAMPLING_BATCH_SIZE,
            seed=self.settings.seed,
        )

    def _probabilities(self, images: Images) -> npt.NDArray[np.float32]:
        """Return the TPS scores (n, K) of the network without noise."""
        import torch

        with torch.no_grad():
            probabilities = tps(self.model(torch.from_numpy(images)).softmax(1))
        return np.asarray(probabilities)

    def _attack(self, radius: float, *, smoothed: bool) -> Images:
        """Lower the score of the true label by projected gradient descent in the l2 ball.

        The descent is on the log-probability of the true label: for the smoothed network on its
        mean over noise draws, new ones in each step (expectation over transformation). They are the
        attacker's own, not those of the test. Pixels may leave [0, 1], as the guarantee allows.
        """
        import torch

        settings = self.settings
        sigma, n_draws = (settings.sigma, settings.attack_draws) if smoothed else (0.0, 1)
        generator = torch.Generator().manual_seed(settings.seed)
        x = torch.from_numpy(self.images).repeat_interleave(n_draws, 0)
        y = torch.from_numpy(self.labels).repeat_interleave(n_draws)[:, None]
        shift = torch.zeros(self.images.shape)
        for _ in range(settings.attack_steps):
            shift.requires_grad_(True)
            noise = sigma * torch.randn(x.shape, generator=generator)
            logits = self.model(x + noise + shift.repeat_interleave(n_draws, 0))
            objective = logits.log_softmax(1).gather(1, y).sum()
            (gradient,) = torch.autograd.grad(objective, shift)
            step = 2.5 * radius / settings.attack_steps
            shift = shift.detach() - step * gradient / _norms(gradient)
            shift = shift * (radius / _norms(shift)).clamp(max=1)
        return (torch.from_numpy(self.images) + shift).numpy()


def _norms(images: "torch.Tensor") -> "torch.Tensor":
    """Return the l2 norms of images, away from 0, with shape (n, 1, 1, 1)."""
    norms: torch.Tensor = images.flatten(1).norm(dim=1)
    return norms.clamp_min(1e-12)[:, None, None, None]


# ---- picture --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Curve:
    """One line of the picture: a field of the outcome of a method, against the radius."""

    method: str
    field: str
    color: str
    line: str
    label: str


def _curves(quantity: str) -> list[_Curve]:
    """Return the four lines of a quantity; clean and attacked differ by their line."""
    return [
        _Curve(method, quantity + suffix, color, line, f"{name}, {how}")
        for method, name, color in (("bincp", "BinCP", BLUE), ("vanilla", "vanilla CP", ORANGE))
        for suffix, line, how in (("_attacked", "o-", "attacked"), ("", "o--", "clean"))
    ]


def _draw(axes: "Axes", curves: list[_Curve], rows: list[Row], *, scale: float = 1) -> None:
    radii = [row.radius for row in rows]
    for curve in curves:
        values = [scale * getattr(getattr(row, curve.method), curve.field) for row in rows]
        face = "white" if curve.line == "o--" else curve.color
        axes.plot(
            radii,
            values,
            curve.line,
            color=curve.color,
            markerfacecolor=face,
            markersize=5,
            label=curve.label,
        )
    axes.set_xlabel("l2 radius of the perturbation (pixels in [0, 1])")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
