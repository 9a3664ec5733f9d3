"""Risk control on a multi-label task: the mixture against confidence bounds, at the same level.

    python -m benchmarks.risk [--splits 20]

The data are scikit-learn's ``make_multilabel_classification``, the model a logistic regression for
each label that was trained on noisy inputs. Each cell has the mean number of labels in the sets of
clean test inputs and their mean loss, at level alpha = 0.1. There are K = 8 labels, n = 400
calibration points and m = m' = 32 draws. The radius is in standard deviations of the noise.
"""

import argparse
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

import bincp
from bincp.metrics import false_negative_rate

Array = npt.NDArray[Any]

N, N_TEST, N_TRAIN, K, SAMPLES, SIGMA = 400, 1000, 2000, 8, 32, 1.0
RADII = (0.0, 0.1, 0.25, 0.5)


def any_missed(sets: Array, labels: Array) -> Array:
    """Whether a true label is missing."""
    return np.asarray((labels & ~sets).any(axis=1))


LOSSES: dict[str, Any] = {"false-negative rate": "false-negative-rate", "any missed": any_missed}
CORRECTIONS: dict[str, dict[str, Any]] = {
    "mixture": {"correction": "mixture"},
    "mixture, 4 passes": {"correction": "mixture", "passes": 4},
    "clopper-pearson": {"correction": "clopper-pearson"},
}


def sampled(seed: int) -> tuple[Array, Array]:
    """Return the scores (n, K, m) of calibration and test points, and their labels (n, K)."""
    rng = np.random.default_rng(seed)
    x, y = make_multilabel_classification(
        N_TRAIN + N + N_TEST, n_features=20, n_classes=K, n_labels=3, random_state=seed
    )
    x = (x - x.mean(axis=0)) / x.std(axis=0) * 3
    labels = y.astype(bool)
    noisy = x[:N_TRAIN] + rng.normal(0, SIGMA, (N_TRAIN, x.shape[1]))
    model = MultiOutputClassifier(LogisticRegression(max_iter=500)).fit(noisy, labels[:N_TRAIN])
    rest = x[N_TRAIN:]
    draws = rest[:, None] + rng.normal(0, SIGMA, (len(rest), SAMPLES, x.shape[1]))
    flat = draws.reshape(-1, x.shape[1])
    scores = np.stack([one.decision_function(flat) for one in model.estimators_], axis=1)
    return scores.reshape(len(rest), SAMPLES, K).swapaxes(1, 2), labels[N_TRAIN:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--splits", type=int, default=20)
    splits = [sampled(seed) for seed in range(parser.parse_args().splits)]
    for name, loss in LOSSES.items():
        print(f"**{name}**\n\n| r / sigma | {' | '.join(CORRECTIONS)} |")
        print("|---|" + "---|" * len(CORRECTIONS))
        for radius in RADII:
            ball = bincp.balls.L2(radius * SIGMA)
            certificate = bincp.certify(bincp.smoothing.Gaussian(SIGMA), ball)
            cells = []
            for options in CORRECTIONS.values():
                found = [outcome(certificate, loss, *split, **options) for split in splits]
                size, risk = np.mean(found, axis=0)
                cells.append(f"{size:.3f}, {risk:.3f}")
            print(f"| {radius} | {' | '.join(cells)} |", flush=True)
        print()


def outcome(
    certificate: bincp.Certificate, loss: Any, scores: Array, labels: Array, **options: Any
) -> tuple[float, float]:
    """Return the mean number of labels in the sets of test points, and their mean loss."""
    rule = bincp.RobustRiskControl(certificate, alpha="0.1", loss=loss, **options)
    with warnings.catch_warnings():  # the table shows where every label is in every set
        warnings.simplefilter("ignore", bincp.TrivialSetWarning)
        rule.calibrate(scores[:N], labels[:N])
    sets = rule.predict_set(scores[N:])
    losses = false_negative_rate if isinstance(loss, str) else loss
    return float(sets.sum(axis=1).mean()), float(np.mean(losses(sets, labels[N:])))


if __name__ == "__main__":
    main()
