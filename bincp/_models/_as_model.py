"""`as_model`: one function for each kind of estimator, and the checks that they share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from bincp._models._probabilities import log_probabilities
from bincp._utils.validation import check_flag

if TYPE_CHECKING:
    import torch

ModelLike: TypeAlias = Any
"""A torch module or function, a classifier of scikit-learn or ART, or a result of `as_model`."""

Model: TypeAlias = Callable[["torch.Tensor"], "torch.Tensor"]
"""A function of a batch (b, ...) that returns logits (b, K)."""

Outputs: TypeAlias = Literal["logits", "probabilities"]

_OUTPUTS = ("logits", "probabilities")


def as_model(
    estimator: ModelLike,
    *,
    outputs: Outputs | None = None,
    classes: Sequence[Any] | None = None,
    arrays: bool = False,
) -> Model:
    """Return a classifier of another library as a model for `bincp.sampling`.

    Parameters
    ----------
    estimator : object
        One of:

        * a torch module, or a function of a batch (b, ...), a tensor, that returns a tensor (b, K),
          or an object that has it as ``.logits``;
        * an estimator of ``art.estimators.classification``, of any backend;
        * a fitted scikit-learn classifier with ``predict_proba``, or an object with its interface,
          such as a pipeline; inputs are flattened to (b, features);
        * with ``arrays=True``, a function of NumPy arrays.

    outputs : "logits" or "probabilities", optional
        The kind of numbers that the estimator returns. Probabilities p become the logits log(p),
        whose softmax gives them back; 0 becomes -inf. A number that exceeds [0, 1] by rounding
        counts as 0 or 1. The kind is known for scikit-learn and ART's scikit-learn estimators, and
        taken to be logits for torch modules and functions. It must be given for other estimators of
        ART, whose ``predict`` passes on the output of the wrapped network. The sets are valid
        either way, but larger than necessary with the wrong kind.
    classes : sequence, optional
        For scikit-learn models, also inside ART: the class of each label, so that label k is the
        model's class ``classes[k]``. Needed where ``classes_`` is not 0, 1, ..., K - 1.
    arrays : bool, optional
        `estimator` is a function that takes and returns NumPy arrays.

    Returns
    -------
    callable
        Maps a batch (b, ...) to logits (b, K). A torch module or function of logits is returned as
        it is. Other models have no gradients and ignore `device`: batches are copied to the CPU.

    Raises
    ------
    TypeError
        If the estimator is none of these, or an option has a wrong type.
    ValueError
        If `outputs` is needed and not given or contradicts the estimator, `classes` is needed and
        not given, does not hold each class once or has no meaning for the estimator, or an ART
        estimator adds noise itself (randomised smoothing: pass the classifier that it wraps). When
        the model is called, if inputs do not fit the estimator, or it returns other numbers than
        probabilities where it should return those.

    Notes
    -----
    ART and scikit-learn are not imported here. ART's ``predict`` leaves a torch module in
    evaluation mode. An estimator must treat the rows of a batch independently of each other, as the
    guarantee needs of any model; a preprocessing step that normalises over the batch does not.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from bincp.adapters import as_model
    >>> def softmax(x):
    ...     weights = np.exp(x @ np.eye(4, 3, dtype=np.float32))
    ...     return weights / weights.sum(axis=1, keepdims=True)
    >>> model = as_model(softmax, outputs="probabilities", arrays=True)
    >>> model(torch.ones(2, 4)).shape
    torch.Size([2, 3])
    """
    _check_options(outputs, arrays)
    if arrays:
        return _of_function(estimator, outputs, classes)
    if _is_module(estimator):
        return _of_torch(estimator, outputs, classes)
    if has_base(estimator, "art.estimators.", "BaseEstimator"):
        return _of_art(estimator, outputs, classes)
    if callable(getattr(estimator, "predict_proba", None)) and not isinstance(estimator, type):
        return _of_sklearn(estimator, outputs, classes)
    if callable(estimator) and not isinstance(estimator, type):
        return _of_torch(estimator, outputs, classes)
    raise TypeError(
        "`model` must be a torch module or a callable, a scikit-learn classifier with "
        f"predict_proba, or an ART classifier, got {shown(estimator)}"
    )


def array_of(
    function: Callable[[npt.NDArray[Any]], Any], batch: "torch.Tensor"
) -> npt.NDArray[Any]:
    """Return what a function of arrays makes of a batch, in the byte order of this machine.

    It is a copy, for the function may keep, reuse or write-protect the array that it returns.
    """
    values = function(batch.detach().cpu().numpy())
    if not isinstance(values, np.ndarray):
        raise TypeError(f"`model` must return an array, got {type(values).__name__}")
    if isinstance(values, np.ma.MaskedArray) or values.dtype.itemsize > 8:
        raise TypeError(
            "`model` must return a plain array of numbers of at most 64 bits, got "
            f"{type(values).__name__} of {values.dtype}"
        )
    return np.array(values, dtype=values.dtype.newbyteorder("="))


@dataclass(frozen=True)
class _ArrayModel:
    """A function of NumPy arrays as a model: batches are copied to the CPU, results back."""

    name: str
    function: Callable[[npt.NDArray[Any]], Any]
    outputs: Outputs
    columns: npt.NDArray[np.intp] | None = None

    def __call__(self, batch: "torch.Tensor") -> "torch.Tensor":
        import torch

        values = array_of(self.function, batch)
        if values.ndim != 2 or len(values) != len(batch) or values.dtype.kind != "f":
            raise ValueError(
                f"`model` must return floating-point numbers of shape ({len(batch)}, K) for a "
                f"batch of {len(batch)}, got {values.dtype} of shape {values.shape}"
            )
        if self.columns is not None:
            if values.shape[1] != len(self.columns):
                raise ValueError(
                    f"`model` must return a column for each of its {len(self.columns)} classes_, "
                    f"got shape {values.shape}"
                )
            values = values[:, self.columns]
        if self.outputs == "probabilities":
            values = log_probabilities(values)
        return torch.from_numpy(values).to(batch.device)


# Classes, for pickle takes no functions that are made inside others.


@dataclass(frozen=True)
class _PredictProba:
    """The method ``predict_proba`` of an estimator, for inputs of any shape."""

    estimator: Any

    def __call__(self, x: npt.NDArray[Any]) -> Any:
        return self.estimator.predict_proba(x.reshape(len(x), -1))


@dataclass(frozen=True)
class _ArtPredict:
    """The method ``predict`` of an estimator of ART."""

    estimator: Any

    def __call__(self, x: npt.NDArray[Any]) -> Any:
        rows = _fitted_to(self.estimator, x)
        return self.estimator.predict(rows, batch_size=len(rows))


# ---- one function a kind of estimator ----------------------------------------------------------


def _of_torch(model: Model, outputs: Outputs | None, classes: Sequence[Any] | None) -> Model:
    _refuse_classes(classes, model)
    if outputs in (None, "logits"):
        return model
    import torch

    from bincp._models._torch_models import LogModule, LogOf

    return LogModule(model) if isinstance(model, torch.nn.Module) else LogOf(model)


def _of_function(
    function: Any, outputs: Outputs | None, classes: Sequence[Any] | None
) -> _ArrayModel:
    if not callable(function):
        raise TypeError(f"`estimator` must be callable with arrays=True, got {shown(function)}")
    _refuse_classes(classes, function)
    return _ArrayModel(shown(function), function, outputs or "logits")


def _of_sklearn(
    estimator: Any, outputs: Outputs | None, classes: Sequence[Any] | None
) -> _ArrayModel:
    name = type(estimator).__name__
    _check_known(outputs, "probabilities", f"{name}.predict_proba")
    columns = _columns(estimator, classes)
    return _ArrayModel(name, _PredictProba(estimator), "probabilities", columns)


def _of_art(estimator: Any, outputs: Outputs | None, classes: Sequence[Any] | None) -> _ArrayModel:
    name = type(estimator).__name__
    if not has_base(estimator, "art.estimators.classification", "ClassifierMixin"):
        raise TypeError(f"`estimator` must be an ART classifier, got {name}")
    if has_base(estimator, "art.estimators.certification", "RandomizedSmoothingMixin"):
        raise ValueError(
            f"`estimator` must not add noise itself, got {name}: pass the classifier that it wraps"
        )
    columns = None
    if has_base(estimator, "art.estimators.classification", "ScikitlearnClassifier"):
        if not estimator.postprocessing_defences:
            known: Outputs = "logits" if estimator.use_logits else "probabilities"
            outputs = _check_known(outputs, known, f"{name}.predict")
        columns = _columns(estimator.model, classes)
    else:
        _refuse_classes(classes, estimator)
    if outputs is None:
        raise ValueError(
            f"`outputs` must be 'logits' or 'probabilities' for {name}, whose predict may return "
            "either, got None: pass bincp.adapters.as_model(estimator, outputs=...)"
        )

    return _ArrayModel(name, _ArtPredict(estimator), outputs, columns)


def _fitted_to(estimator: Any, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a batch in the shape of an ART estimator's inputs, or refuse it."""
    shape = tuple(getattr(estimator, "input_shape", None) or (None,))
    known = all(isinstance(size, int | np.integer) for size in shape)
    if known and len(shape) == 1:
        x = x.reshape(len(x), -1)  # a table: features have no other order
    if known and x.shape[1:] != shape:
        raise ValueError(f"`x` must have inputs of shape {shape}, got {x.shape[1:]}")
    if x.dtype == np.float64 and _is_module(estimator.model):
        parameter = next(iter(estimator.model.parameters()), None)
        if parameter is not None and str(parameter.dtype) == "torch.float32":
            raise ValueError(
                "`x` must have the dtype of the model's parameters, float32, got float64; "
                "use x.astype(np.float32)"
            )
    return x


def _columns(estimator: Any, classes: Sequence[Any] | None) -> npt.NDArray[np.intp]:
    """Return the column of ``predict_proba`` of each label."""
    own = getattr(estimator, "classes_", None)
    name = type(estimator).__name__
    if own is None:
        raise ValueError(f"`estimator` must be fitted, got {name} without classes_")
    if not (isinstance(own, np.ndarray) and own.ndim == 1):
        raise ValueError(f"`estimator` must have one output, got {name} with classes_ {own!r}")
    there = own.tolist()
    if classes is None:
        if there != list(range(len(there))) or own.dtype.kind == "b":
            raise ValueError(
                f"`classes` must say which class each label is, as classes_ of {name} is not "
                f"0, 1, ..., got None and classes_ {there}"
            )
        return np.arange(len(there))
    if isinstance(classes, str) or not isinstance(classes, Sequence | np.ndarray):
        raise TypeError(f"`classes` must be a sequence, got {classes!r}")
    wanted = list(classes.tolist() if isinstance(classes, np.ndarray) else classes)
    if len(wanted) != len(there) or any(wanted.count(one) != 1 for one in there):
        raise ValueError(f"`classes` must hold each of {there} once, got {wanted}")
    return np.array([there.index(one) for one in wanted])


# ---- checks --------------------------------------------------------------------------------------


def _check_options(outputs: object, arrays: object) -> None:
    if outputs is not None and not isinstance(outputs, str):
        raise TypeError(f"`outputs` must be a string, got {outputs!r}")
    if outputs not in (None, *_OUTPUTS):
        raise ValueError(f"`outputs` must be 'logits' or 'probabilities', got {outputs!r}")
    check_flag("arrays", arrays)


def _check_known(outputs: Outputs | None, known: Outputs, source: str) -> Outputs:
    if outputs not in (None, known):
        raise ValueError(f"`outputs` must be {known!r} for {source}, got {outputs!r}")
    return known


def _refuse_classes(classes: object, estimator: object) -> None:
    if classes is not None:
        raise ValueError(
            f"`classes` must be None for an estimator without classes_, got {classes!r} for "
            f"{shown(estimator)}"
        )


def _is_module(value: object) -> bool:
    return has_base(value, "torch.nn", "Module")


def has_base(value: object, module: str, name: str) -> bool:
    """Return whether a base class has this name, without importing the library of that class."""
    bases = type(value).__mro__
    return any(base.__name__ == name and base.__module__.startswith(module) for base in bases)


def shown(value: object) -> str:
    """Return a short name: the repr of an ART estimator fills the screen."""
    kind = type(value)
    if kind.__module__ == "builtins" and not callable(value):
        return repr(value)
    return getattr(value, "__qualname__", kind.__qualname__)
