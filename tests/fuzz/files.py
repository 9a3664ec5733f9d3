"""Mutated files of rules, classifiers and runs: each is refused, or reads as it was.

    python tests/fuzz/files.py SECONDS [SEED]

The seeds are the saved rules of ``tests/data/rules.json`` and ``tests/fuzz/seeds/files``, and a
classifier and a run that are made first. A rule is also forged: its fields are exchanged, and its
checksum is made anew; then it may read as another rule, whose own file must read as that rule. Each
file is a function of SEED and its number, which the message of a failure tells.
"""

import copy
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import bincp.sampling
from bincp.balls import L2
from bincp.calibration._storage import checksum, document_of, parse
from bincp.sampling._saved import Saved
from bincp.smoothing import Gaussian

HERE = Path(__file__).resolve().parent
TOKENS = [b"NaN", b"-1", b"1e999", b"null", b"true", b'""', b"[]", b"{}", b"0", b'"0x1p0"']
TOKENS.append(b"9" * 400)
VALUES: list[Any] = [None, True, -1, 0, 1, 2**31, 2**70, 0.5, 1e308, "", "1/0", "1/2", "0x1p-1"]
VALUES += [[], {}, ["1/2"], [0, 1], {"type": "L2"}, "mixture", "float16", "\u0661"]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Change some bytes: one to four times, a byte, a slice or a token."""
    for _ in range(rng.randrange(1, 5)):
        a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        b = min(b, a + rng.choice([1, 2, 8, 64]))
        put = [
            bytes([rng.randrange(256)]),
            bytes([(data + b"\0")[a] ^ 1 << rng.randrange(8)]),
            data[a:b] * 2,
            rng.choice(TOKENS),
            b"",
        ]
        data = data[:a] + rng.choice(put) + data[b:]
    return data


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where each value stands in a JSON value."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


def forged(data: bytes, others: list[Any], rng: random.Random) -> bytes:
    """Exchange one to three values of a rule for other ones, and make its checksum anew."""
    content = json.loads(data)
    for _ in range(rng.randrange(1, 4)):
        where = rng.choice(list(places(content)))
        owner = content
        for key in where[:-1]:
            owner = owner[key]
        if rng.random() < 0.1 and isinstance(owner, dict):
            del owner[where[-1]]
        else:
            owner[where[-1]] = copy.deepcopy(rng.choice(rng.choice([VALUES, others])))
    content.pop("sha256", None)
    return json.dumps({**content, "sha256": checksum(content)}).encode()


def read_rule(data: bytes) -> None:
    """Read a rule; it is what its own file reads as."""
    rule, _ = parse(data, "rule.json")
    again, _ = parse(json.dumps(document_of(rule)).encode(), "again.json")
    assert again == rule


def rules() -> list[bytes]:
    """Return the saved rules of this repository."""
    found = json.loads((HERE.parent / "data" / "rules.json").read_text())
    seeds = sorted((HERE / "seeds" / "files").glob("*.json"))
    return [json.dumps(rule).encode() for rule in found] + [path.read_bytes() for path in seeds]


def same_bytes(read: Callable[[bytes], Any], data: bytes) -> Callable[[bytes], None]:
    """Return a reader of mutated files, which may give nothing but what the true one gives."""
    expected = read(data)

    def check(changed: bytes) -> None:
        assert read(changed) == expected

    return check


def readers(folder: Path) -> list[tuple[str, list[bytes], Callable[[bytes], None]]]:
    """Return the kinds of files: a name, the seeds, and what reads one of them."""
    torch.manual_seed(0)
    model, x = torch.nn.Linear(4, 3), torch.linspace(-1, 1, 80).reshape(20, 4)
    labels = np.arange(20) % 3
    classifier = bincp.sampling.RobustClassifier(
        model, Gaussian(0.5), L2(0.1), alpha=0.2, n_samples=8, seed=1
    )
    classifier.calibrate(x, labels).save(folder / "classifier.json")
    run = bincp.sampling.run(
        folder / "run", model, x, Gaussian(0.5), 8, phase="test", seed=1, parts=2
    )
    run.values()

    def read_classifier(data: bytes) -> Any:
        (folder / "changed.json").write_bytes(data)
        saved = Saved.read(folder / "changed.json", bincp.sampling.RobustClassifier._who)
        return saved.rule, saved.seed, saved.answers.tolist() if saved.answers is not None else None

    def read_run(path: Path) -> Callable[[bytes], Any]:
        true = path.read_bytes()

        def read(data: bytes) -> Any:
            path.write_bytes(data)
            try:
                return bincp.sampling.open(folder / "run").values().tolist()
            finally:
                path.write_bytes(true)

        return read

    saved = (folder / "classifier.json").read_bytes()
    kinds = [("rules", rules(), read_rule)]
    kinds.append(("classifiers", [saved], same_bytes(read_classifier, saved)))
    for path in sorted((folder / "run").iterdir()):
        data = path.read_bytes()
        kinds.append((f"run: {path.name}", [data], same_bytes(read_run(path), data)))
    return kinds


def main(seconds: float, seed: int = 0) -> int:
    """Try files of every kind in turn until the time is over."""
    with tempfile.TemporaryDirectory() as folder:
        kinds = readers(Path(folder))
        values = [json.loads(rule) for rule in rules()]
        others = [item for rule in values for item in rule.values()]
        end, number, refused = time.monotonic() + seconds, 0, 0
        while time.monotonic() < end:
            name, seeds, read = kinds[number % len(kinds)]
            rng = random.Random(f"{seed} {number}")
            data = rng.choice(seeds)
            forge = name == "rules" and rng.random() < 0.7
            changed = forged(data, others, rng) if forge else mutated(data, rng)
            try:
                read(changed)
            except ValueError:
                refused += 1
            except BaseException:
                print(f"file {number} of seed {seed}, {name}: {changed!r}", file=sys.stderr)
                raise
            number += 1
    print(f"files: {number} of {len(kinds)} kinds, {refused} refused, in {seconds:g} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), *map(int, sys.argv[2:])))
