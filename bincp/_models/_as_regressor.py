"""`as_regressor`: regressors of several kinds as models of columns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bincp._models._as_model import Model, ModelLike, array_of, has_base, shown
from bincp._utils.validation import check_flag

if TYPE_CHECKING:
    import torch


def as_regressor(estimator: ModelLike, *, arrays: bool = False) -> Model:
    """Return a regressor of another library as a model for `bincp.sampling.RobustRegressor`.

    Parameters
    ----------
    estimator : object or pair of objects
        One of:

        * a torch module, or a function of a batch (b, ...), a tensor, that returns a tensor (b,) or
          (b, q) of predictions;
        * a fitted scikit-learn regressor, or an object with its ``predict``, such as a pipeline;
          inputs are flattened to (b, features);
        * with ``arrays=True``, a function of NumPy arrays;
        * a tuple or list of several of these, whose predictions are put side by side: a model of
          the mean and one of the spread, or models of two quantiles.

    arrays : bool, optional
        `estimator` is a function, or functions, of NumPy arrays.

    Returns
    -------
    torch.nn.Module
        Maps a batch (b, ...) to predictions (b, q). Those parts that are torch modules keep their
        modes and devices. Other parts have no gradients: batches are copied to the CPU.

    Raises
    ------
    TypeError
        If the estimator is none of these, or `arrays` no bool.
    ValueError
        If it is a classifier. When the model is called, if it returns a wrong shape or dtype.

    Notes
    -----
    scikit-learn is not imported here. An estimator must treat the rows of a batch independently of
    each other, as the guarantee needs of any model.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from bincp.adapters import as_regressor
    >>> model = as_regressor([lambda x: x.mean(1) - 1, lambda x: x.mean(1) + 1], arrays=True)
    >>> model(torch.ones(2, 4))
    tensor([[0., 2.],
            [0., 2.]])
    """
    check_flag("arrays", arrays)
    from bincp._models._torch_models import Columns

    several = isinstance(estimator, tuple | list)
    parts = list(estimator) if several else [estimator]
    if not parts:
        raise TypeError("`model` must be a regressor, or several, got none")
    return Columns([_one(part, arrays) for part in parts])


def _one(estimator: Any, arrays: bool) -> Model:
    """Return a model of one regressor."""
    is_object = not isinstance(estimator, type)
    if arrays:
        if not (callable(estimator) and is_object):
            raise TypeError(f"`model` must be callable with arrays=True, got {shown(estimator)}")
        return _ArrayRegressor(estimator)
    if has_base(estimator, "torch.nn", "Module"):
        return estimator  # type: ignore[no-any-return]
    if is_object and callable(getattr(estimator, "predict", None)):
        if hasattr(estimator, "predict_proba") or hasattr(estimator, "classes_"):
            raise ValueError(f"`model` must be a regressor, got the classifier {shown(estimator)}")
        return _ArrayRegressor(_Predict(estimator))
    if callable(estimator) and is_object:
        return estimator  # type: ignore[no-any-return]
    raise TypeError(
        "`model` must be a torch module or a callable, a scikit-learn regressor with predict, or "
        f"several of these, got {shown(estimator)}"
    )


@dataclass(frozen=True)
class _Predict:
    """The method ``predict`` of an estimator, for inputs of any shape."""

    estimator: Any

    def __call__(self, x: npt.NDArray[Any]) -> Any:
        return self.estimator.predict(x.reshape(len(x), -1))


@dataclass(frozen=True)
class _ArrayRegressor:
    """A function of NumPy arrays as a model: batches are copied to the CPU, results back."""

    function: Callable[[npt.NDArray[Any]], Any]

    def __call__(self, batch: "torch.Tensor") -> "torch.Tensor":
        import torch

        values = array_of(self.function, batch)
        if values.dtype.kind not in "fiu":
            raise TypeError(f"`model` must return an array of real numbers, got {values.dtype}")
        if values.dtype.kind != "f":
            values = values.astype(np.float64)
        return torch.from_numpy(values).to(batch.device)
