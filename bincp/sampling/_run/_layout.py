"""How a run is cut into parts, and which of them a worker makes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bincp.sampling._run._grid import Grid, Rectangle

_PARTS = 64
_PART_BYTES = 2**28


@dataclass(frozen=True)
class Layout:
    """Parts are rectangles between cuts of the ids and of the draws, both from 0 to their number.

    Part k has the ids of row ``k // columns`` and the draws of column ``k % columns``. Inputs of
    unknown number are cut after each ``step`` ids.
    """

    ids: tuple[int, ...]
    draws: tuple[int, ...]
    step: int | None = None

    @classmethod
    def cut(cls, n: int, m: int, grid: Grid, parts: int) -> "Layout":
        """Cut a run into at most so many parts of whole batches; the ids first, then the draws."""
        rows, columns = -(-n // grid.inputs), -(-m // grid.draws)
        n_rows = min(parts, rows)
        n_columns = min(parts // n_rows, columns)
        return cls(_cuts(n, rows, n_rows, grid.inputs), _cuts(m, columns, n_columns, grid.draws))

    @classmethod
    def of(cls, content: dict[str, Any]) -> "Layout":
        """Read what `content` returned."""
        step = content.get("step")
        return cls(tuple(content["ids"]) if step is None else (0,), tuple(content["draws"]), step)

    def closed(self, n: int) -> "Layout":
        """Return the layout of a stream that ends after n inputs."""
        assert self.step is not None
        return replace(self, ids=(*range(0, n, self.step), n))

    def content(self) -> dict[str, Any]:
        """Return the JSON form."""
        if self.step is not None:
            return {"step": self.step, "draws": list(self.draws)}
        return {"ids": list(self.ids), "draws": list(self.draws)}

    @property
    def n_columns(self) -> int:
        """The number of parts that share their ids."""
        return len(self.draws) - 1

    @property
    def n_parts(self) -> int:
        """The number of parts."""
        return (len(self.ids) - 1) * self.n_columns

    def rectangle(self, number: int) -> Rectangle:
        """Return the ids and draws of a part."""
        row, column = divmod(number, self.n_columns)
        return Rectangle(*self.ids[row : row + 2], *self.draws[column : column + 2])

    def row(self, row: int) -> range:
        """Return the parts that share some ids, in the order of their draws."""
        return range(row * self.n_columns, (row + 1) * self.n_columns)

    def name(self, number: int) -> str:
        """Return the file name of a part."""
        if self.step is not None:
            return f"{number:05d}.npz"
        return f"{number:05d}-of-{self.n_parts:05d}.npz"


def usual_parts(n_bytes: int) -> int:
    """Return into how many parts to cut values of a size, so that one fits well into memory."""
    return max(_PARTS, -(-n_bytes // _PART_BYTES))


def _cuts(length: int, cells: int, pieces: int, step: int) -> tuple[int, ...]:
    cuts: Sequence[int] = [min(step * (i * cells // pieces), length) for i in range(pieces)]
    return (*cuts, length)
