"""Draws that certify a radius: `bincp.classification` against rules of other work, on equal counts.

    python -m benchmarks.sequential_certification [--cache DIR]

An input is certified at the radius r once its votes prove, at level alpha = 0.001, that the label
has a probability above Phi(r / sigma). Each rule is a boundary: the least number of votes that
certifies after m draws, for each m. From it follows the exact law of the number of draws, for
every probability of the label, so the first two tables have no sampling error. The rules:

* sequence: ``is_certified(..., bound="sequence")``, after every draw;
* betting: Algorithm 2 of Voracek, "Treatment of statistical estimation problems in randomized
  smoothing for adversarial robustness", NeurIPS 2024: Krichevsky and Trofimov's estimate bets on
  the votes. The paper stops at a wealth of 1 / alpha, its code (github.com/vvoracek/RS_conf_seq)
  at half of that, which the paper's theorem does not cover;
* union bound: Algorithm 1 there, with the times and the levels of that code;
* stages: Horvath et al., "Boosting randomized smoothing with variance reduced classifiers", ICLR
  2022: bounds of Clopper and Pearson at alpha / 4 after 100, 1,000, 10,000 and 120,000 draws;
* fixed: the bound of Clopper and Pearson for the number of draws that suits this input best, which
  nobody knows beforehand; ideal: Wald's test, which knows the probability of the label.

With ``--cache`` there is a third table: votes of the CIFAR-10 images of the study, whose cache
``python -m benchmarks.study.scores --only cifar10-0.25`` fills. All rules see the same votes.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaln
from scipy.stats import binom, norm

import bincp
from bincp.classification import is_certified

Counts = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

ALPHA = 0.001
STAGES = (100, 1_000, 10_000, 120_000)
MOST = 20_000  # draws that are looked at
CASES = ((0.25, 0.5), (0.25, 0.35), (0.5, 1.0), (0.5, 0.6), (1.0, 1.5), (1.0, 1.1), (2.0, 2.5))
NEVER = 2**40


def least_votes(accepts: Callable[[Counts, Counts], npt.NDArray[np.bool_]], most: int) -> Counts:
    """Return the least counts that a monotone rule accepts after 0, ..., most draws."""
    draws = np.arange(most + 1)
    low, high = np.zeros(most + 1, dtype=np.int64), draws + 1
    while (low < high).any():
        middle = (low + high) // 2
        open_ = low < high
        good = np.zeros(most + 1, dtype=bool)
        good[open_] = accepts(middle[open_], draws[open_])
        high = np.where(open_ & good, middle, high)
        low = np.where(open_ & ~good, middle + 1, low)
    return np.where(high > draws, NEVER, high)


def sequence(r: float, most: int) -> Counts:
    """Return the boundary of the library's confidence sequence."""
    certificate = bincp.certify(bincp.smoothing.Gaussian(1.0), bincp.balls.L2(r))

    def accepts(votes: Counts, draws: Counts) -> npt.NDArray[np.bool_]:
        found = np.zeros(len(votes), dtype=bool)
        some = draws > 0
        counts = np.stack([votes, draws - votes], axis=1)[some]
        selected = np.tile([1, 0], (len(counts), 1))
        found[some] = is_certified(selected, counts, certificate, alpha=ALPHA, bound="sequence")
        return found

    return least_votes(accepts, most)


def betting(r: float, most: int, wealth: float = 1 / ALPHA) -> Counts:
    """Return the boundary of Krichevsky and Trofimov's bets."""
    p = norm.cdf(r)

    def accepts(votes: Counts, draws: Counts) -> npt.NDArray[np.bool_]:
        log_bets = betaln(votes + 0.5, draws - votes + 0.5) - betaln(0.5, 0.5)
        log_null = votes * np.log(p) + (draws - votes) * np.log1p(-p)
        return (log_bets - log_null > np.log(wealth)) & (votes >= p * draws)

    return least_votes(accepts, most)


def union_bound(r: float, most: int) -> Counts:
    """Return the boundary of bounds at times that grow by a tenth, as the published code has it."""
    least, power = np.full(most + 1, NEVER), 11
    for m in range(1, most + 1):
        if m > 1.1**power:
            power += 1
            t = power - 11
            least[m] = binom.isf(5 * ALPHA / ((t + 4) * (t + 5)), m, norm.cdf(r)) + 1
    # Votes that suffice for a later time certify now: their number does not fall.
    return np.minimum.accumulate(least[::-1])[::-1]


def stages(r: float, most: int) -> Counts:
    """Return the boundary of a few looks, each at an equal share of the level."""
    least = np.full(most + 1, NEVER)
    for m in STAGES:
        if m <= most:
            least[m] = binom.isf(ALPHA / len(STAGES), m, norm.cdf(r)) + 1
    return least


RULES: dict[str, Callable[[float, int], Counts]] = {
    "sequence": sequence,
    "betting": betting,
    "betting, code": lambda r, most: betting(r, most, 1 / (2 * ALPHA)),
    "union bound": union_bound,
    "stages": stages,
}


def ideal(r: float, own: float, most: int) -> Counts:
    """Return the boundary of Wald's test of Phi(r) against the true probability Phi(own)."""
    draws = np.arange(most + 1)
    gain, loss = norm.logcdf(own) - norm.logcdf(r), norm.logsf(own) - norm.logsf(r)
    least = np.ceil((np.log(1 / ALPHA) - draws * loss) / (gain - loss)).astype(np.int64)
    return np.where(least > draws, NEVER, least)


def law(least: Counts, p: float) -> Doubles:
    """Return the probability of stopping after 0, 1, ... draws of success probability p."""
    stopping = np.zeros(len(least))
    alive, low = np.ones(1), 0  # of low, low + 1, ... successes so far, undecided
    for m in range(1, len(least)):
        grown = np.zeros(len(alive) + 1)
        grown[:-1] = alive * (1 - p)
        grown[1:] += alive * p
        top = max(min(int(least[m]) - low, len(grown)), 0)
        stopping[m] = grown[top:].sum()
        alive = grown[:top]
        if m % 100 == 0:  # what is too improbable to matter is left out
            cut = int(np.searchsorted(np.cumsum(alive), 1e-25))
            alive, low = alive[cut:], low + cut
        if alive.sum() < 1e-12:
            break
    return stopping


def fixed_draws(r: float, own: float, most: int) -> int:
    """Return the least number of draws with which Clopper and Pearson certify in 9 of 10 runs."""
    draws = np.arange(1, most + 1)
    needed = binom.isf(ALPHA, draws, norm.cdf(r)) + 1
    return int(draws[np.argmax(binom.sf(needed - 1, draws, norm.cdf(own)) >= 0.9)])


def draws_table(most: int = MOST) -> list[str]:
    """Return the exact numbers of draws."""
    lines = [f"| r / sigma | own radius | {' | '.join(RULES)} | fixed | ideal |"]
    lines.append("|---|---|" + "---|" * (len(RULES) + 2))
    boundaries = {r: {name: rule(r, most) for name, rule in RULES.items()} for r, _ in CASES}
    for r, own in CASES:
        found = [law(least, norm.cdf(own)) for least in boundaries[r].values()]
        cells = [*map(summary, found), str(fixed_draws(r, own, most))]
        cells.append(summary(law(ideal(r, own, most), norm.cdf(own))))
        lines.append(f"| {r} | {own} | {' | '.join(cells)} |")
    lines += ["", f"| r / sigma | {' | '.join(RULES)} |", "|---|" + "---|" * len(RULES)]
    for r, own in boundaries.items():
        errors = [law(least, norm.cdf(r)).sum() for least in own.values()]
        lines.append(f"| {r} | " + " | ".join(f"{error:.2e}" for error in errors) + " |")
    return lines


def summary(stopping: Doubles) -> str:
    """Return the mean number of draws, and the number that is enough in 9 of 10 runs."""
    rest = 1 - stopping.sum()
    mean = (np.arange(len(stopping)) * stopping).sum() + rest * (len(stopping) - 1)
    enough = int(np.argmax(np.cumsum(stopping) >= 0.9))
    return f"{mean:.0f}, {enough}" if stopping.sum() >= 0.9 else f"{mean:.0f}, -"


def image_table(cache: Path) -> list[str]:
    """Return the share of images that is certified, and the mean draws, of votes for the label."""
    from benchmarks.study.scores import load

    _, scores, labels = load(cache, "cifar10-0.25")
    votes = np.stack([image.argmax(axis=0) == y for image, y in zip(scores, labels, strict=True)])
    counts = np.concatenate([np.zeros((len(votes), 1), int), votes.cumsum(axis=1)], axis=1)
    most = votes.shape[1]
    lines = [f"| r / sigma | {' | '.join(RULES)} |", "|---|" + "---|" * len(RULES)]
    for r in (0.25, 0.5, 1.0):
        cells = []
        for rule in RULES.values():
            certified = counts >= rule(r, most)
            some = certified.any(axis=1)
            draws = np.where(some, certified.argmax(axis=1), most)
            cells.append(f"{some.mean():.1%}, {draws[some].mean():.0f}, {draws.mean():.0f}")
        lines.append(f"| {r} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cache", type=Path, help="folder of the study's scores")
    arguments: Any = parser.parse_args()
    print("\n".join(draws_table()))
    if arguments.cache:
        print("\n" + "\n".join(image_table(arguments.cache)))


if __name__ == "__main__":
    main()
