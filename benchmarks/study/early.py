"""Where the constants of the choice of a rule come from, and what early stopping costs and saves.

    python -m benchmarks.study.early --cache DIR [--splits 50] [--settings 500] [--workers 2]
                                     [--out benchmarks/study/EARLY.md]

`benchmarks.study.scores` makes the cache. The tables:

* early stopping beside fixed counts, in pairs, from the public API;
* the chosen rule beside the best in hindsight, and passes in the reference population beside those
  that inputs took, over random settings (`benchmarks.study.hindsight`). The settings that are done
  are kept in the cache;
* other constants than those of the library (`benchmarks.study.constants`).
"""

import argparse
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.study import scores
from benchmarks.study.constants import alternatives_table, spreads_table
from benchmarks.study.evaluation import Method, Scores, evaluate
from benchmarks.study.hindsight import (
    all_in_hindsight,
    hindsight_table,
    passes_table,
    random_settings,
)
from benchmarks.study.report import Problem, early, fixed, problems

N_SETTINGS, N_SPLITS = 500, 50
N_ALTERNATIVE_SETTINGS = 60
M = 64

REFERENCES = (fixed(16, 16), fixed(32, 32))
COMPARED = (
    Method("fixed ranks, p = 0.7", 16, 16, {"p": "0.7"}),
    *REFERENCES,
    fixed(4, 4),
    fixed(M, 4),
    fixed(M, 16),
    early(4),
    early(16, 3.5),
    early(16),
    early(32, 7),
    early(32),
)
SIZES = ((200, "0.1"), (50, "0.1"), (199, "0.1"), (1000, "0.1"), (200, "0.05"))


def compared(
    folder: Path, found: Sequence[Problem], n_splits: int, n_workers: int
) -> Iterator[str]:
    """Yield tables of sizes over those of fixed counts."""
    yield "## Early stopping beside fixed counts"
    yield ""
    yield (
        f"{n_splits} paired splits, m = {M} samples for calibration unless the row says otherwise. "
        "Size over that of the fixed counts"
    )
    yield "of m = m' = 16 and 32, with standard errors."
    with ProcessPoolExecutor(n_workers) as pool:
        for lines in pool.map(partial(_compared, folder, n_splits), found):
            yield from lines


def _compared(folder: Path, n_splits: int, problem: Problem) -> list[str]:
    data = Scores(*scores.load(folder, problem.name))
    methods = [method for method in COMPARED if method.fits(data)]
    lines = []
    for n, alpha in (size for size in SIZES if size[0] < len(data.labels)):
        for attack in problem.attacks[:3] if (n, alpha) == SIZES[0] else problem.attacks[1:2]:
            outcomes = {
                method: evaluate(method, attack.certificate, data, n, n_splits, alpha)
                for method in methods
            }
            title = f"{problem.title}, {problem.radius} = {attack.label}"
            lines += ["", f"**{title}, n = {n}, alpha = {alpha}**", ""]
            lines += ["| rule | m | m' | size | coverage | passes | over 16 | over 32 |"]
            lines += ["|---|---|---|---|---|---|---|---|"]
            for method, own in outcomes.items():
                ratios = " | ".join(str(own.over(outcomes[other])) for other in REFERENCES)
                lines.append(
                    f"| {method.name} | {method.m} | {method.m_test} | {own.size.mean():.3f} | "
                    f"{own.coverage.mean():.1%} | {own.passes.mean():.2f} | {ratios} |"
                )
    return lines


def main(argv: list[str] | None = None) -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.study.early", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--cache", type=Path, required=True, help="folder of cached scores")
    parser.add_argument("--splits", type=int, default=N_SPLITS, help="paired splits")
    parser.add_argument("--settings", type=int, default=N_SETTINGS, help="random settings")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, help="Markdown file to write; standard output if not")
    arguments = parser.parse_args(argv)
    folder = arguments.cache
    found = [problem for problem in problems() if (folder / f"{problem.name}.json").exists()]
    settings = random_settings(found, arguments.settings)
    records = all_in_hindsight(folder, settings, arguments.workers)
    stopping = [s for s in settings if s.passes][:N_ALTERNATIVE_SETTINGS]
    few = min(arguments.splits, 20)
    lines = [
        "# Early stopping and the choice of a rule",
        "",
        "Made by `python -m benchmarks.study.early --cache DIR`, which says what the tables are.",
        "",
        *compared(folder, found, arguments.splits, arguments.workers),
        "",
        *hindsight_table(records),
        "",
        *passes_table(records),
        "",
        *alternatives_table(folder, stopping, few),
        "",
        *spreads_table(folder, found, few),
    ]
    text = "\n".join(lines) + "\n"
    if arguments.out is None:
        print(text)
    else:
        arguments.out.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
