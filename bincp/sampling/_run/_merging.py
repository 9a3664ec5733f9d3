"""`merge`: runs over neighbouring ids or draws as one run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from bincp.sampling._run import _manifest
from bincp.sampling._run._data import digest_of_probes
from bincp.sampling._run._layout import Layout
from bincp.sampling._run._manifest import Manifest, check_same, differences
from bincp.sampling._run._parts import Part
from bincp.sampling._run._publish import remove_leftovers
from bincp.sampling._run._reading import Block, Run, open_run
from bincp.sampling._run._running import made_folder
from bincp.sampling._run._storing import is_stored, store

_FREE = ("first_id", "n_inputs", "first_draw", "n_samples", "batch", "inputs_digest")


def merge(path: str | PathLike[str], runs: Sequence[Run | str | PathLike[str]]) -> Run:
    """Make one run of several, which together hold each draw of each id once.

    Decide on the ids and the draws before you see results: draws that are added because the sets
    did not please void the guarantee.

    Parameters
    ----------
    path : str or path-like
        The folder of the new run, as in `run`. A merge that was killed is continued.
    runs : sequence of Run or path
        They may differ in `first_id`, `first_draw`, the numbers of inputs and draws, `batch_size`
        and the inputs.

    Returns
    -------
    Run
        Complete. It cannot be continued by `run`.

    Raises
    ------
    ValueError
        If runs overlap (equal ids get equal noise), leave a hole, differ in anything else, the seed
        included, or hold different inputs at one id; or if a part is damaged. Nothing is written
        then.
    FileNotFoundError
        If a run is not complete. Nothing is written then.

    Notes
    -----
    The values are those of one run up to the last bits of scores, as the batches end where the runs
    do, see `run`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import torch
    >>> from bincp.sampling import merge, run
    >>> from bincp.smoothing import Gaussian
    >>> model, x = torch.nn.Linear(4, 3), torch.zeros(6, 4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     places = [pathlib.Path(folder, name) for name in ("first", "second", "both")]
    ...     options = {"phase": "test", "seed": 7}
    ...     for place, start, end in ((places[0], 0, 4), (places[1], 4, 6)):
    ...         _ = run(place, model, x[start:end], Gaussian(0.5), 8, first_id=start, **options)
    ...     merge(places[2], places[:2]).values().shape
    (6, 3, 8)
    """
    if isinstance(runs, Run | str | PathLike):
        raise TypeError(f"`runs` must be a sequence of runs or paths, got {runs!r}")
    pieces = [_Piece.of(one if isinstance(one, Run) else open_run(one)) for one in runs]
    if not pieces:
        raise ValueError("`runs` must hold at least one run, got none")
    for piece in pieces[1:]:
        _check_mergeable(pieces[0], piece)
    whole = _Whole.of(pieces)
    identity = whole.checked_identity()
    folder = made_folder(path)
    if (folder / _manifest.NAME).exists():
        check_same(folder, Manifest.read(folder).identity, identity)
    manifest = Manifest.begin(folder, identity, whole.layout)
    for number in range(whole.layout.n_parts):
        if not is_stored(folder, manifest, number):
            store(folder, manifest, number, whole.part(manifest, number))
    remove_leftovers(folder, lambda path: path.exists())  # all that can be there is complete
    return Run(folder, manifest)


@dataclass(frozen=True)
class _Piece:
    """A run as a rectangle of ids and draws."""

    run: Run
    ids: range
    draws: range

    @classmethod
    def of(cls, run: Run) -> "_Piece":
        ids = range(run.first_id, run.first_id + run.n_inputs)
        return cls(run, ids, range(run.first_draw, run.first_draw + run.n_samples))

    def holds(self, first: int, last: int) -> bool:
        return self.ids.start <= first and last <= self.ids.stop

    def slices(self, first: int, last: int) -> Iterator[Block]:
        """Yield what the run has of some of its ids."""
        start, end = first - self.ids.start, last - self.ids.start
        for block in self.run.blocks_between(start, end):
            own = slice(max(start - block.first, 0), end - block.first)
            labels = None if block.labels is None else block.labels[own]
            yield Block(0, 0, block.values[own], labels, block.digests[own])


@dataclass(frozen=True)
class _Whole:
    """The rectangle that the pieces tile, cut at the ids where a part of one of them begins."""

    pieces: list[_Piece]
    ids: range
    draws: range
    layout: Layout

    @classmethod
    def of(cls, pieces: list[_Piece]) -> "_Whole":
        ids = range(min(p.ids.start for p in pieces), max(p.ids.stop for p in pieces))
        draws = range(min(p.draws.start for p in pieces), max(p.draws.stop for p in pieces))
        inner = {p.ids.start - ids.start + cut for p in pieces for cut in p.run.cuts()}
        whole = cls(pieces, ids, draws, Layout(tuple(sorted(inner)), (0, len(draws))))
        whole._check_tiling()
        return whole

    def row(self, number: int) -> tuple[int, int, list[_Piece]]:
        """Return the first and last id of a part, and the pieces that hold it by their draws."""
        where = self.layout.rectangle(number)
        first, last = self.ids.start + where.first_input, self.ids.start + where.last_input
        there = [piece for piece in self.pieces if piece.holds(first, last)]
        return first, last, sorted(there, key=lambda piece: piece.draws.start)

    def block(self, number: int) -> Block:
        """Return the ids of a part with all their draws."""
        first, last, pieces = self.row(number)
        joined = []
        for piece in pieces:
            slices = list(piece.slices(first, last))
            labels = None
            if slices[0].labels is not None:
                labels = np.concatenate([one.labels for one in slices if one.labels is not None])
            values = np.concatenate([one.values for one in slices])
            joined.append(
                Block(first, last, values, labels, np.concatenate([one.digests for one in slices]))
            )
        for piece, other in zip(pieces[1:], joined[1:], strict=True):
            differ = (other.digests != joined[0].digests).any(axis=1)
            if differ.any():
                raise ValueError(
                    "`runs` must hold the same inputs and labels at the same ids, got others at id "
                    f"{first + int(np.argmax(differ))} in {pieces[0].run.path} and "
                    f"{piece.run.path}"
                )
        values = pieces[0].run.joined([one.values for one in joined])
        return Block(first, last, values, joined[0].labels, joined[0].digests)

    def part(self, manifest: Manifest, number: int) -> Part:
        """Return a part of the new run."""
        block = self.block(number)
        note = {"manifest": manifest.digest, "part": number, "environment": {"merged": True}}
        return Part(block.values, block.labels, block.digests, note)

    def checked_identity(self) -> dict[str, Any]:
        """Read all parts of all pieces, and return the identity of the whole."""
        digests = [self.block(number).digests for number in range(self.layout.n_parts)]
        return {
            **self.pieces[0].run.identity,
            "first_id": self.ids.start,
            "n_inputs": len(self.ids),
            "first_draw": self.draws.start,
            "n_samples": len(self.draws),
            "batch": "merged",
            "inputs_digest": digest_of_probes(np.concatenate(digests)),
        }

    def _check_tiling(self) -> None:
        for number in range(self.layout.n_parts):
            first, _, pieces = self.row(number)
            reached = self.draws.start
            for piece in pieces:
                if piece.draws.start < reached:
                    raise ValueError(
                        "`runs` must not overlap, as equal ids and draws have equal noise: id "
                        f"{first}, draw {piece.draws.start} is in {piece.run.path} and in another"
                    )
                if piece.draws.start > reached:
                    break
                reached = piece.draws.stop
            if reached != self.draws.stop:
                raise ValueError(
                    f"`runs` must leave no hole, got none with id {first}, draw {reached}"
                )


def _check_mergeable(one: _Piece, other: _Piece) -> None:
    begun, identity = one.run.identity, other.run.identity
    fixed = {name: value for name, value in identity.items() if name not in _FREE}
    found = differences(begun, fixed)
    if found:
        raise ValueError(
            f"`runs` must be of one kind, got {one.run.path} and {other.run.path}: {found}"
        )
