"""Settings of each data set: networks, samples and comparisons.

Networks and their noise are those of the study (`benchmarks.study.scores.SETTINGS`), so that one
cache serves both. Radii are in pixels of [0, 1], or numbers of attributes (added, deleted).
"""

from dataclasses import dataclass

import bincp
from benchmarks.study import scores as study
from bincp import balls, smoothing

__all__ = ["BASE", "DATASETS", "Base", "Dataset", "Experiment", "Radius", "Task"]

Setting = study.Setting


@dataclass(frozen=True)
class Radius:
    """A ball to be robust against, as tables and plots call it."""

    label: str
    ball: balls.Ball

    def certificate(self, noise: tuple[float, ...]) -> bincp.Certificate:
        """Return the certificate for the noise of a setting."""
        scheme = smoothing.Gaussian(*noise) if len(noise) == 1 else smoothing.SparseFlip(*noise)
        return bincp.certify(scheme, self.ball)


def l2(*radii: float) -> tuple[Radius, ...]:
    """Return balls of the Euclidean norm."""
    return tuple(Radius(f"{r:g}", balls.L2(r)) for r in radii)


def flips(*pairs: tuple[int, int]) -> tuple[Radius, ...]:
    """Return balls of (added, deleted) attributes."""
    return tuple(Radius(f"{a}+ {d}-", balls.Flips(a, d)) for a, d in pairs)


@dataclass(frozen=True)
class Base:
    """Values of an experiment that does not give its own."""

    coverage: str = "0.9"
    n: int = 200
    m: int = 256
    eta: str = "0.001"


BASE = Base()


@dataclass(frozen=True)
class Experiment:
    """A grid: every combination of its values is run with every method that applies.

    Parameters
    ----------
    name : str
    scores : tuple of str
        "tps", "aps" or "logit".
    radii : tuple of str
        Labels of radii of the data set; all if empty.
    coverages, n, m, p
        Nominal coverages 1 - alpha, calibration points, samples, and shares p of BinCP, where None
        is the default of each correction.
    """

    name: str
    scores: tuple[str, ...] = ("tps",)
    radii: tuple[str, ...] = ()
    coverages: tuple[str, ...] = (BASE.coverage,)
    n: tuple[int, ...] = (BASE.n,)
    m: tuple[int, ...] = (BASE.m,)
    p: tuple[str | None, ...] = (None,)


@dataclass(frozen=True)
class Task:
    """A network with its noise, and the radii to be robust against."""

    setting: Setting
    radii: tuple[Radius, ...]


@dataclass(frozen=True)
class Dataset:
    """The networks and experiments of one command.

    Parameters
    ----------
    tasks : tuple of Task
    experiments : tuple of Experiment
    n_logits : int
        Draws whose logits of all labels are kept, for the scores that need them.
    n_tuning : int
        Inputs at the end that tune the ranking transformation; never calibration or test points.
    attack_radii : tuple of str
        Labels of the radii at which inputs are attacked for the empirical check.
    n_attacked, n_attack_samples : int
        Inputs that are attacked, and draws of each for the methods.
    linf_radii, l2_radii : tuple of float
        Radii for VRCP and Lip-RCP; none if empty.
    n_pixels : int
        Number of pixels of an image, for these radii.
    split_widths, split_radii : tuple of float
        Half-widths of splitting noise for the derandomised experiment, none if empty, and its l1
        radii.
    n_split_inputs : int
        Inputs of that experiment.
    """

    tasks: tuple[Task, ...]
    experiments: tuple[Experiment, ...]
    n_logits: int = 256
    n_tuning: int = 100
    attack_radii: tuple[str, ...] = ()
    n_attacked: int = 300
    n_attack_samples: int = 64
    linf_radii: tuple[float, ...] = ()
    l2_radii: tuple[float, ...] = ()
    n_pixels: int = 0
    split_widths: tuple[float, ...] = ()
    split_radii: tuple[float, ...] = ()
    n_split_inputs: int = 1000


def _study(name: str) -> Setting:
    return next(setting for setting in study.SETTINGS if setting.name == name)


def experiments(radius: str, radii: tuple[str, ...], m: tuple[int, ...]) -> tuple[Experiment, ...]:
    """Return the grids, around one radius, and for the numbers of samples around several."""
    return (
        Experiment(
            "radius",
            scores=("tps", "aps", "logit"),
            coverages=("0.85", "0.9", "0.95"),
            m=(64, 256),
        ),
        Experiment("samples", radii=radii, m=m),
        Experiment(
            "coverage",
            radii=(radius,),
            coverages=("0.7", "0.75", "0.8", "0.85", "0.9", "0.95", "0.98"),
        ),
        Experiment("points", radii=(radius,), n=(50, 100, 200, 400, 800), m=(64, 256)),
        Experiment(
            "p",
            radii=radii,
            m=(64, 256),
            p=("0.5", "0.55", "0.6", "0.65", "0.7", "0.75", "0.8", "0.85", "0.9", "0.95"),
        ),
    )


SAMPLES = (1, 4, 8, 16, 32, 64, 128, 256, 512, 1024)

DATASETS = {
    "cifar10": Dataset(
        tasks=(
            Task(_study("cifar10-0.25"), l2(0.06, 0.12, 0.18, 0.25, 0.37, 0.5)),
            Task(_study("cifar10-0.5"), l2(0.06, 0.12, 0.18, 0.25, 0.37, 0.5, 0.75, 1)),
        ),
        experiments=experiments("0.25", ("0.12", "0.25", "0.5"), SAMPLES),
        attack_radii=("0.12", "0.25", "0.5"),
    ),
    "mnist": Dataset(
        tasks=(Task(_study("mnist-0.5"), l2(0.12, 0.25, 0.37, 0.5, 0.75, 1)),),
        experiments=experiments("0.5", ("0.25", "0.5", "1"), SAMPLES),
        attack_radii=("0.25", "0.5", "1"),
        linf_radii=(0.002, 0.005, 0.01, 0.02, 0.04),
        l2_radii=(0.02, 0.05, 0.12, 0.25),
        n_pixels=28 * 28,
        split_widths=(0.125, 0.25),
        split_radii=(0.02, 0.05, 0.1, 0.15),
    ),
    "cora-ml": Dataset(
        tasks=(
            Task(_study("cora-ml"), flips((0, 1), (0, 2), (0, 3), (0, 5), (1, 0), (1, 1), (1, 3))),
        ),
        experiments=experiments(
            "0+ 1-", ("0+ 1-", "0+ 3-", "1+ 1-"), (1, 4, 8, 16, 32, 64, 128, 256)
        ),
    ),
}
