"""The demo: BinCP, the paper's rule and vanilla conformal prediction on real images under attack.

A small network learns scikit-learn's bundled handwritten digits (1,797 images of 8 x 8 pixels of 8
bits) with Gaussian noise. The methods are calibrated for several l2 radii, and tested on clean
images and on images that projected gradient descent has moved by up to that radius, which are
images of 8 bits, too. The noise is drawn on their grid, so that the guarantee covers the very
floats that the network sees. Every image serves one purpose only: training, calibration or test.
"""

import importlib.util
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bincp import metrics
from bincp._utils.levels import Level, check_level, conformal_rank
from bincp._utils.progress import progress_bar
from bincp._utils.validation import check_integer, check_real
from bincp.balls import L2
from bincp.calibration import BinCP
from bincp.certificates import Certificate, certify
from bincp.scores import tps
from bincp.smoothing import Gaussian

if TYPE_CHECKING:
    import torch

__all__ = ["Outcome", "Result", "Row", "Settings", "run"]

PACKAGES = {
    "torch": "torch",
    "sklearn": "scikit-learn",
    "matplotlib": "matplotlib",
    "tqdm": "tqdm",
}
N_IMAGES = 1797
N_CLASSES = 10
GREY_LEVELS = 255
ETA = "0.001"  # the share of alpha that the paper's rule spends on the error of sampling
BATCH_SIZE = 128
SAMPLING_BATCH_SIZE = 4096
NO_NOISE = Gaussian(1e-5, grid=GREY_LEVELS)  # so little of it that no pixel moves

Images = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]
Sets = npt.NDArray[np.bool_]
Predict = Callable[[Images], tuple[Sets, float]]
"""Returns sets (n, K) of images, and the mean number of forward passes that an image took."""


@dataclass(frozen=True)
class Settings:
    """Settings of the demo.

    Parameters
    ----------
    alpha : Level
        Miscoverage level, above the 0.001 that the paper's rule spends on sampling error; the
        nominal coverage is 1 - alpha.
    radii : tuple of float
        Radii of the l2 ball, >= 0, for images with pixels in [0, 1].
    n_samples : int
        Noise draws for each calibration image, m, and the most for a test image.
    n_paper_samples : int
        The same for the paper's rule.
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
    n_samples: int = 64
    n_paper_samples: int = 1024
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
            "n_paper_samples",
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
    """What a method does on the test images, clean and under attack.

    Parameters
    ----------
    coverage, coverage_attacked : float
        Share of the images whose set holds their label.
    set_size, set_size_attacked : float
        Mean number of labels in a set.
    passes : float
        Mean number of forward passes that a clean image took.
    """

    coverage: float
    coverage_attacked: float
    set_size: float
    set_size_attacked: float
    passes: float


@dataclass(frozen=True)
class Row:
    """The outcomes at one radius.

    Parameters
    ----------
    radius : float
        Radius of the l2 ball, for pixels in [0, 1].
    bincp : Outcome
        Of BinCP, which stops drawing for an image once its labels are decided.
    paper : Outcome
        Of the rule of the BinCP paper, which counts its draws between confidence bounds.
    vanilla : Outcome
        Of split conformal prediction with the same network without noise.
    """

    radius: float
    bincp: Outcome
    paper: Outcome
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


def run(settings: Settings, *, progress: bool | None = False) -> Result:
    """Train, calibrate, attack and measure.

    Parameters
    ----------
    settings : Settings
    progress : bool or None, optional
        Show a progress bar on stderr; None shows it after two seconds if that is a terminal.

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
    n_stages = 2 + len(settings.radii)
    with progress_bar(progress, n_stages, "training", "stage") as bar, _one_thread():

        def next_stage(what: str) -> None:
            bar.set_description(what, refresh=False)  # before its time a bar is not to be seen
            bar.update()

        images, labels = _load_digits()
        train, calibration, test = _split(settings)
        model = _train(images[train], labels[train], settings)
        next_stage("calibrating")
        calibrated = _Calibration.of(model, images[calibration], labels[calibration], settings)
        trial = _Trial(model, images[test], labels[test], settings)
        rows = []
        for radius in settings.radii:
            next_stage(f"attacking, radius {radius:g}")
            rows.append(trial.measure(radius, calibrated))
        bar.update()
    return Result(settings, trial.accuracy(), tuple(rows))


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
    """Return images (n, 1, 8, 8) of 8 bits, and labels."""
    from sklearn.datasets import load_digits

    digits = load_digits()  # with 17 grey levels, 0 to 16
    pixels = np.rint(digits.images * (GREY_LEVELS / 16)).astype(np.uint8)
    return pixels[:, None], digits.target.astype(np.int64)


def _floats(images: Images) -> npt.NDArray[np.float32]:
    """Return images with pixels in [0, 1]."""
    return images.astype(np.float32) / np.float32(GREY_LEVELS)


def _split(settings: Settings) -> list[Labels]:
    """Return the indices of the training, calibration and test images."""
    order = np.random.default_rng(settings.seed).permutation(N_IMAGES)
    sizes = (settings.n_train, settings.n_calibration, settings.n_test)
    return np.split(order, np.cumsum(sizes))[:3]


def _train(images: Images, labels: Labels, settings: Settings) -> "torch.nn.Module":
    """Train a network on noisy copies of the images, new ones in each epoch."""
    import torch
    from torch import nn

    x, y = torch.from_numpy(_floats(images)), torch.from_numpy(labels)
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


def _noise(settings: Settings) -> Gaussian:
    return Gaussian(settings.sigma, grid=GREY_LEVELS)


def _sampled(
    model: "torch.nn.Module", images: Images, labels: Labels, settings: Settings
) -> npt.NDArray[np.floating]:
    """Return scores (n, m) of true labels, for the method that draws most."""
    from bincp.sampling import sample_scores

    return sample_scores(
        model,
        images,
        _noise(settings),
        max(settings.n_samples, settings.n_paper_samples),
        phase="calibration",
        labels=labels,
        batch_size=SAMPLING_BATCH_SIZE,
        seed=settings.seed,
        progress=False,
    )


def _probabilities(model: "torch.nn.Module", images: Images) -> npt.NDArray[np.float32]:
    """Return the TPS scores (n, K) of the network without noise."""
    import torch

    with torch.no_grad():
        return np.asarray(tps(model(torch.from_numpy(_floats(images))).softmax(1)))


@dataclass(frozen=True)
class _Calibration:
    """What all methods know of the calibration images; one sampling serves all radii."""

    model: "torch.nn.Module"
    scores: npt.NDArray[np.floating]  # (n, m) of true labels, with noise
    vanilla_threshold: float
    settings: Settings

    @classmethod
    def of(
        cls, model: "torch.nn.Module", images: Images, labels: Labels, settings: Settings
    ) -> "_Calibration":
        plain = _probabilities(model, images)[np.arange(len(labels)), labels]
        rank = conformal_rank(check_level("alpha", settings.alpha), len(labels))
        threshold = float(np.sort(plain)[rank - 1]) if rank else -math.inf
        return cls(model, _sampled(model, images, labels, settings), threshold, settings)

    def vanilla(self) -> Predict:
        def predict(images: Images) -> tuple[Sets, float]:
            return _probabilities(self.model, images) >= self.vanilla_threshold, 1.0

        return predict

    def bincp(self, ball: L2) -> Predict:
        rule = BinCP(self._certificate(ball), alpha=self.settings.alpha, passes="auto")
        return self._robust(rule, ball, self.settings.n_samples)

    def paper(self, ball: L2) -> Predict:
        rule = BinCP(
            self._certificate(ball),
            alpha=self.settings.alpha,
            correction="clopper-pearson",
            eta=ETA,
            p="0.6",
        )
        return self._robust(rule, ball, self.settings.n_paper_samples)

    def _certificate(self, ball: L2) -> Certificate:
        return certify(_noise(self.settings), ball)

    def _robust(self, rule: BinCP, ball: L2, n_samples: int) -> Predict:
        from bincp.sampling import RobustClassifier

        rule.calibrate(self.scores[:, :n_samples], n_classes=N_CLASSES)
        classifier = RobustClassifier(
            self.model,
            _noise(self.settings),
            ball,
            rule=rule,
            batch_size=SAMPLING_BATCH_SIZE,
            seed=self.settings.seed,
            progress=False,
        )

        def predict(images: Images) -> tuple[Sets, float]:
            found = classifier.predict(images)
            return found.sets, float(found.forward_passes.mean())

        return predict


@dataclass(frozen=True)
class _Trial:
    """A trained network and the test images that all methods are tried on."""

    model: "torch.nn.Module"
    images: Images
    labels: Labels
    settings: Settings

    def measure(self, radius: float, calibrated: _Calibration) -> Row:
        """Measure all methods on clean images and on images that an attack on each has moved."""
        ball = L2(radius)
        smoothed = self.attack(ball, _noise(self.settings), self.settings.attack_draws)
        plain = self.attack(ball, NO_NOISE, 1)
        return Row(
            radius,
            bincp=self._outcome(calibrated.bincp(ball), smoothed),
            paper=self._outcome(calibrated.paper(ball), smoothed),
            vanilla=self._outcome(calibrated.vanilla(), plain),
        )

    def accuracy(self) -> float:
        """Return the share of the images that the network without noise classifies rightly."""
        return float((_probabilities(self.model, self.images).argmax(1) == self.labels).mean())

    def attack(self, ball: L2, noise: Gaussian, n_samples: int) -> Images:
        """Return images of 8 bits whose true labels have the least mean log-probability.

        The noise of the attacker is the attacker's own, not that of the test.
        """
        from bincp.attacks import pgd

        moved = pgd(
            self.model,
            _floats(self.images),
            self.labels,
            noise,
            ball,
            seed=(self.settings.seed + 1) % 2**64,
            n_samples=n_samples,
            steps=self.settings.attack_steps,
            box=(0, 1),
            score=_log_probabilities,
            batch_size=SAMPLING_BATCH_SIZE,
            progress=False,
        )
        pixels: Images = np.rint(moved * np.float32(GREY_LEVELS)).astype(np.uint8)
        return pixels

    def _outcome(self, predict: Predict, attacked: Images) -> Outcome:
        sets, passes = predict(self.images)
        sets_attacked, _ = predict(attacked)
        return Outcome(
            metrics.coverage(sets, self.labels),
            metrics.coverage(sets_attacked, self.labels),
            metrics.average_set_size(sets),
            metrics.average_set_size(sets_attacked),
            passes,
        )


def _log_probabilities(logits: "torch.Tensor") -> "torch.Tensor":
    return logits.log_softmax(1)
