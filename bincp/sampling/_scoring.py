"""From the logits of a batch to its scores, by a name of `bincp.scores` or a user's function."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import torch

from bincp.scores import NAMED_SCORES, NamedScore

Score: TypeAlias = str | tuple[str, Mapping[str, Any]] | Callable[..., torch.Tensor]
"""The name of a score in `bincp.scores`, (name, parameters), or a function of logits (b, K)."""

Numbers: TypeAlias = Callable[[], torch.Tensor]
"""Draws the keyed numbers of a batch, uniform on (0, 1], as float64 (b, 1)."""


class Scoring(Protocol):
    """A checked score."""

    @property
    def random(self) -> bool:
        """Whether it draws a number for each evaluation."""

    def __call__(self, logits: torch.Tensor, numbers: Numbers) -> torch.Tensor:
        """Return the scores (b, K) of logits (b, K), in float32 or float64."""


def scoring_of(score: Score) -> Scoring:
    """Return the score that an argument ``score`` stands for."""
    if callable(score):
        return _Own(score, _wants_numbers(score))
    if isinstance(score, str):
        return _Named(_known(score))
    if not (
        isinstance(score, tuple)
        and len(score) == 2
        and isinstance(score[0], str)
        and isinstance(score[1], Mapping)
    ):
        raise TypeError(
            f"`score` must be a name, a pair (name, parameters) or a callable, got {score!r}"
        )
    name, parameters = score
    return _Named(_known(name).with_parameters(parameters))


@dataclass(frozen=True)
class _Named:
    score: NamedScore

    @property
    def random(self) -> bool:
        return self.score.random

    def __call__(self, logits: torch.Tensor, numbers: Numbers) -> torch.Tensor:
        widened = _widened(logits)
        values = widened if self.score.of_logits else widened.softmax(-1)
        drawn = (numbers(),) if self.random else ()
        return self.score.formula(values, *drawn)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Own:
    """A function of the user."""

    function: Callable[..., torch.Tensor]
    random: bool

    def __call__(self, logits: torch.Tensor, numbers: Numbers) -> torch.Tensor:
        drawn = {"uniform": numbers()} if self.random else {}
        scores = self.function(logits, **drawn)
        if not isinstance(scores, torch.Tensor):
            raise TypeError(f"`score` must return a tensor, got {type(scores).__name__}")
        if scores.shape != logits.shape or not scores.is_floating_point():
            raise ValueError(
                f"`score` must return floating-point numbers of shape {tuple(logits.shape)}, "
                f"got {scores.dtype} of shape {tuple(scores.shape)}"
            )
        return _widened(scores)


def _known(name: str) -> NamedScore:
    if name not in NAMED_SCORES:
        raise ValueError(f"`score` must be one of {', '.join(NAMED_SCORES)}, got {name!r}")
    return NAMED_SCORES[name]


def _wants_numbers(function: Callable[..., Any]) -> bool:
    """Say if a function has a keyword-only argument ``uniform`` without a default."""
    try:
        parameter = inspect.signature(function).parameters.get("uniform")
    except (TypeError, ValueError):  # compiled, without a signature
        return False
    return (
        parameter is not None
        and parameter.kind is parameter.KEYWORD_ONLY
        and parameter.default is parameter.empty
    )


def _widened(values: torch.Tensor) -> torch.Tensor:
    return values if values.dtype == torch.float64 else values.float()
