"""A run that is on disk: what it holds, read and checked a part at a time."""

import copy
from collections.abc import Iterator, Sequence
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, round_to
from bincp._utils.validation import check_threshold
from bincp.calibration._counts import Counts as CountsOfScores
from bincp.calibration._counts import How, known_counts
from bincp.calibration._provenance import KEPT, check_same
from bincp.noise._keys import IntArray
from bincp.sampling._inputs import Key
from bincp.sampling._rules import check_fitted
from bincp.sampling._run import _canonical
from bincp.sampling._run._data import Digests, data_of
from bincp.sampling._run._kept import (
    AllScores,
    Counts,
    Decisions,
    Kept,
    LabelScores,
    digest_of_rule,
    kept_of,
)
from bincp.sampling._run._manifest import Manifest
from bincp.sampling._run._parts import Part, read_part
from bincp.sampling._run._stream import Piece, read_end, stream_of
from bincp.sampling._run._worker import check_digests

Array = npt.NDArray[Any]
Sets = npt.NDArray[np.bool_]


class Block(NamedTuple):
    """All draws of some inputs: their positions in the run, values, labels and digests."""

    first: int
    last: int
    values: Array
    labels: IntArray | None
    digests: Digests


class Run:
    """A run on disk, which `run` made and `open` opens.

    `calibrate` and `predict_set` of `BinCP`, `MondrianBinCP` and `RobustRiskControl` take it in
    place of scores, and `bincp.metrics` in place of labels.

    Attributes
    ----------
    path : Path
        Its folder.
    phase : str
        "calibration", "test" or "tuning".
    first_id, n_inputs, first_draw, n_samples, n_classes : int
        The ids and the draws that it holds, and K.
    dtype : str
        Of the scores.
    keep : str
        What it keeps: "label scores", "scores", "counts", "votes" or "decisions".
    identity : dict
        All that decides its numbers, by the names of the arguments of `run`.
    n_parts : int
        Into how many files it is cut.

    Notes
    -----
    A part is read and checked each time that it is asked for, and one is in memory at a time beside
    the result. The object keeps only the manifest, and any number of threads may use it, also while
    other processes write parts.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import torch
    >>> import bincp.sampling
    >>> from bincp.smoothing import Gaussian
    >>> model, x = torch.nn.Linear(4, 3), torch.zeros(5, 4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "run")
    ...     _ = bincp.sampling.run(path, model, x, Gaussian(0.5), 16, phase="test", parts=2)
    ...     opened = bincp.sampling.open(path)
    ...     opened.verify(x)
    ...     print(opened.keep, opened.n_inputs, opened.missing(), opened.values().shape)
    scores 5 [] (5, 3, 16)
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self._folder = path.absolute()  # also if the process goes to another folder
        self._manifest = manifest
        self._layout = manifest.layout
        self._kept: Kept = kept_of(manifest.identity["keep"])

    def __repr__(self) -> str:
        return (
            f"Run({str(self.path)!r}, phase={self.phase!r}, keep={self.keep!r}, "
            f"n_inputs={self.n_inputs}, n_samples={self.n_samples}, n_parts={self.n_parts})"
        )

    @property
    def identity(self) -> dict[str, Any]:
        """All that decides the numbers, by the names of the arguments of `run`; a copy."""
        return copy.deepcopy(self._manifest.identity)

    @property
    def phase(self) -> str:
        """What the noise is for."""
        return str(self._manifest.identity["phase"])

    @property
    def first_id(self) -> int:
        """The id of the first input."""
        return int(self._manifest.identity["first_id"])

    @property
    def n_inputs(self) -> int:
        """The number of inputs, n."""
        return int(self._manifest.identity["n_inputs"])

    @property
    def first_draw(self) -> int:
        """The number of the first draw."""
        return int(self._manifest.identity["first_draw"])

    @property
    def n_samples(self) -> int:
        """The number of draws of each input, m."""
        return int(self._manifest.identity["n_samples"])

    @property
    def n_classes(self) -> int:
        """The number of labels, K."""
        return int(self._manifest.identity["n_classes"])

    @property
    def dtype(self) -> str:
        """The dtype of the scores."""
        return str(self._manifest.identity["dtype"])

    @property
    def keep(self) -> str:
        """What is kept of the scores."""
        return self._kept.name

    @property
    def n_parts(self) -> int:
        """The number of files."""
        return self._layout.n_parts

    def missing(self) -> list[str]:
        """Return the names of the parts that are not there; those that are are not read."""
        names = map(self._layout.name, range(self.n_parts))
        return [name for name in names if not (self._folder / name).exists()]

    def environments(self) -> list[dict[str, Any]]:
        """Return on which devices, with which torch and how many threads its parts were made.

        More than one is no error: the last bits of the scores may then differ from part to part.

        Raises
        ------
        FileNotFoundError, ValueError
            If a part is missing or damaged.
        """
        found: dict[str, dict[str, Any]] = {}
        for number in range(self.n_parts):
            environment = self._part(number).note["environment"]
            found[_canonical.digest(environment)] = environment
        return list(found.values())

    def values(self) -> Array:
        """Return what the run keeps, of all inputs in the order of their ids.

        Returns
        -------
        array
            Scores (n, m) of the labels, scores (n, K, m), counts (n, thresholds, K) or votes
            (n, K). Decisions (n,) have the fields ``sets`` (n, K), ``counts`` (n, K), up to the
            draw that decided, and ``draws`` (n,).

        Raises
        ------
        FileNotFoundError, ValueError
            If a part is missing or damaged.
        """
        shape = self._kept.shape(self.n_inputs, self.n_samples, self.n_classes)
        result = np.empty(shape, self._kept.dtype(self.dtype, self.n_classes))
        for block in self.blocks():
            result[block.first : block.last] = block.values
        return result

    def labels(self) -> IntArray | None:
        """Return the labels (n,) in the order of their ids; None if the run has none.

        Raises
        ------
        FileNotFoundError, ValueError
            If a part is missing or damaged.
        """
        if not self._manifest.identity["labels"]:
            return None
        rows = range(0, self.n_parts, self._layout.n_columns)
        return np.concatenate([self._part(number).labels for number in rows])

    def counts(self, tau: float) -> CountsOfScores:
        """Return how many scores (n, K) reach a threshold, as `bincp.Counts`.

        Parameters
        ----------
        tau : float
            Compared as ``score >= tau`` in the dtype of the scores. A run of counts must have been
            made for it.

        Raises
        ------
        FileNotFoundError
            If a part is missing.
        TypeError, ValueError
            If `tau` is not a number; if the run keeps other thresholds, or neither counts nor all
            scores; or if a part is damaged.
        """
        threshold = check_threshold("tau", tau)
        counts = np.concatenate([self._counts(block.values, threshold) for block in self.blocks()])
        how = How(self.n_samples, threshold, self.phase, provenance=self.provenance())
        return known_counts(counts, how)

    def verify(self, x: object, labels: ArrayLike | None = None, *, key: Key = None) -> None:
        """Compare all inputs and labels with those that the run was made of.

        Parameters
        ----------
        x, labels, key
            As in `run`. Inputs without a length are read once, as they come.

        Raises
        ------
        ValueError
            If an input or a label is another one; the message has its position. If there are
            more inputs or fewer.
        FileNotFoundError
            If a part is missing.
        """
        n = 0
        for row, piece in enumerate(self._pieces_of(x, labels, key)):
            n = piece.first + len(piece)
            if n > self.n_inputs:
                raise ValueError(f"`x` must yield {self.n_inputs} inputs, got more")
            if n < self._layout.ids[row + 1]:
                break
            for number in self._layout.row(row):
                check_digests(self._part(number), piece.own, piece.first)
        if n < self.n_inputs:
            raise ValueError(f"`x` must yield {self.n_inputs} inputs, got {n}")

    def _pieces_of(self, x: Any, labels: Any, key: Key) -> Iterator[Piece]:
        """Yield the inputs of the parts that share their ids, and what follows them in a stream."""
        cuts = list(pairwise(self._layout.ids))
        if (stream := stream_of(x, labels, key)) is not None:
            yield from stream.pieces(last - first for first, last in cuts)
            return
        data = data_of(x, labels, key)
        if len(data) != self.n_inputs:
            raise ValueError(f"`x` must hold {self.n_inputs} inputs, got {len(data)}")
        for first, last in cuts:
            yield Piece(first, data.rows(first, last))

    def blocks(self) -> Iterator[Block]:
        """Yield all draws of some inputs at a time, in the order of their ids."""
        yield from self.blocks_between(0, self.n_inputs)

    def blocks_between(self, first: int, last: int) -> Iterator[Block]:
        """Yield the blocks that hold the inputs at some positions."""
        for row, (start, end) in enumerate(pairwise(self._layout.ids)):
            if start < last and first < end:
                yield self._block(row)

    def cuts(self) -> tuple[int, ...]:
        """Return the positions at which the inputs are cut into parts, from 0 to their number."""
        return self._layout.ids

    def joined(self, pieces: list[Array]) -> Array:
        """Return the values of more draws of the same inputs."""
        return self._kept.join(pieces)

    def provenance(self) -> dict[str, Any]:
        """Return what a rule that is calibrated on the run keeps of it, by the names of `run`."""
        return {name: self._manifest.identity.get(name) for name in KEPT}

    def check_calibrates(self, certificate: dict[str, Any]) -> None:
        """Refuse test points, and other noise than that of a certificate, given its description.

        Raises
        ------
        ValueError
            If the run is for other noise or in the phase "test".
        """
        self._check_use("calibrate", "test", certificate)

    def calibration_points(self, certificate: dict[str, Any]) -> tuple[Array, IntArray | None, int]:
        """Return the scores (n, m) of the true labels, the labels, and K, for a calibration.

        Parameters
        ----------
        certificate : dict
            The description of the certificate; that of other noise is refused.

        Raises
        ------
        ValueError
            If the run cannot calibrate: its phase is "test", or it keeps no scores of the labels.
        FileNotFoundError
            If a part is missing.
        """
        self.check_calibrates(certificate)
        labels = self.labels()
        if isinstance(self._kept, LabelScores):
            return self.values(), labels, self.n_classes
        if labels is None or not isinstance(self._kept, AllScores):
            raise ValueError(
                f"a run to calibrate on must keep the scores of its labels, got {self!r}"
                + ("" if labels is not None else ", which has no labels")
            )
        own = [block.values[np.arange(len(block.values)), block.labels] for block in self.blocks()]
        return np.concatenate(own), labels, self.n_classes

    def all_scores(self, certificate: dict[str, Any]) -> Array:
        """Return the scores (n, K, m) of all labels, which `RobustRiskControl` takes.

        Parameters
        ----------
        certificate : dict
            As in `calibration_points`.

        Raises
        ------
        ValueError
            If the run cannot calibrate: its phase is "test", or it does not keep all scores.
        FileNotFoundError
            If a part is missing.
        """
        self.check_calibrates(certificate)
        if not isinstance(self._kept, AllScores):
            raise ValueError(f"a run to control a risk on must keep all scores, got {self!r}")
        return self.values()

    def sets_of(self, rule: Any) -> npt.NDArray[np.bool_]:
        """Return the prediction sets (n, K) of a calibrated rule: `BinCP.predict_set` calls this.

        Parameters
        ----------
        rule : BinCP, MondrianBinCP or RobustRiskControl

        Raises
        ------
        ValueError
            If the run cannot serve the rule: it is for other noise or in the phase "calibration",
            or keeps neither all scores, nor counts at the threshold of the rule, nor its decisions.
        FileNotFoundError
            If a part is missing.
        """
        self._check_serves(rule)
        return np.concatenate([self._sets(rule, block.values) for block in self.blocks()])

    def decisions(self, rules: Sequence[Any]) -> Iterator[tuple[Iterator[Sets], IntArray | None]]:
        """Yield the prediction sets of each rule, and the labels, of some inputs at a time.

        Parameters
        ----------
        rules : sequence of BinCP or MondrianBinCP

        Yields
        ------
        iterator of bool arrays (b, K), array (b,) or None
            The sets of b inputs by each rule, made when they are asked for, and their labels.

        Raises
        ------
        ValueError, FileNotFoundError
            As in `sets_of`.
        """
        for rule in rules:
            self._check_serves(rule)
        for block in self.blocks():
            yield (self._sets(rule, block.values) for rule in rules), block.labels

    def _check_serves(self, rule: Any) -> None:
        self._check_use("predict", "calibration", rule.certificate_description)
        check_same(getattr(rule, "provenance_", None), self.provenance(), f"the run {self.path}")
        if isinstance(self._kept, Decisions):
            self._check_decided(rule)
        if rule.dtype_ != self.dtype:
            raise ValueError(
                f"a run to predict from must have scores of the dtype {rule.dtype_} that the rule "
                f"was calibrated with, got {self.dtype}"
            )

    def _sets(self, rule: Any, values: Array) -> Sets:
        if isinstance(self._kept, Decisions):
            return np.asarray(values["sets"])
        if isinstance(self._kept, AllScores):
            return np.asarray(rule.predict_set(values))
        counts = self._counts(values, rule.tau_)
        return np.asarray(rule.predict_set_from_counts(counts, n_samples=self.n_samples))

    def _check_decided(self, rule: Any) -> None:
        assert isinstance(self._kept, Decisions)
        check_fitted(rule)
        if digest_of_rule(rule) != self._kept.digest:
            raise ValueError(
                f"{self.path} keeps the decisions of one rule, and drawing stopped with them, got "
                "another rule: sample again"
            )

    def _counts(self, values: Array, tau: Any) -> npt.NDArray[np.int32]:
        """Return the counts (n, K) at one threshold, or at one for each label."""
        wanted = np.broadcast_to(round_to(self.dtype, tau), self.n_classes)
        if isinstance(self._kept, AllScores):
            reached: npt.NDArray[np.int32] = (values >= wanted[:, None]).sum(-1, dtype=np.int32)
            return reached
        if not isinstance(self._kept, Counts):
            raise ValueError(f"a run to predict from must keep scores or counts, got {self!r}")
        known = np.array(self._kept.taus)
        places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        if (known[places] != wanted).any():
            raise ValueError(
                f"{self.path} keeps counts at the thresholds {known.tolist()} and not at "
                f"{wanted[known[places] != wanted][0]}: sample again with rules=[...] of all rules "
                "that it is to serve, or with keep='scores'"
            )
        counts: npt.NDArray[np.int32] = values[:, places, np.arange(self.n_classes)]
        return counts

    def _check_use(self, use: str, wrong_phase: str, certificate: dict[str, Any]) -> None:
        if self.phase == wrong_phase:
            raise ValueError(f"a run to {use} from must not have the phase {wrong_phase!r}")
        scheme = _canonical.hexed(certificate.get("smoothing"))
        if scheme != self._manifest.identity["smoothing"]:
            raise ValueError(
                f"a run to {use} from must have the noise of the certificate, "
                f"{_canonical.readable(scheme)}, "
                f"got {_canonical.readable(self._manifest.identity['smoothing'])}"
            )

    def _block(self, row: int) -> Block:
        parts = [self._part(number) for number in self._layout.row(row)]
        values = parts[0].values
        if len(parts) > 1:
            values = self._kept.join([part.values for part in parts])
        first, last = self._layout.ids[row : row + 2]
        return Block(first, last, values, parts[0].labels, parts[0].digests)

    def _part(self, number: int) -> Part:
        path = self._folder / self._layout.name(number)
        try:
            return read_part(path, self._manifest.digest, number)
        except FileNotFoundError as error:
            what = f"not complete, {len(self.missing())} of its {self.n_parts} parts are missing"
            if not self._folder.exists():
                what = "not there any more: its folder was moved, renamed or removed"
            raise FileNotFoundError(error.errno, f"the run is {what}", str(path)) from None


def open_run(path: str | PathLike[str]) -> Run:
    """Open a run on disk.

    Parameters
    ----------
    path : str or path-like
        Its folder.

    Returns
    -------
    Run
        Parts are read when they are asked for; it need not be complete, unless its inputs had no
        length.

    Raises
    ------
    FileNotFoundError
        If there is no run, or its inputs had no length and were not read to their end.
    ValueError
        If the manifest is damaged.

    Examples
    --------
    >>> from bincp.sampling import open
    >>> open("no-such-folder")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'no-such-folder/manifest.json'
    """
    folder = as_folder(path)
    return Run(folder, read_end(folder, Manifest.read(folder)))


def as_folder(path: object) -> Path:
    """Return the folder of a run as a path."""
    if not isinstance(path, str | PathLike):
        raise TypeError(f"`path` must be a str or path-like, got {path!r}")
    return Path(path)
