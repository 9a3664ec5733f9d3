"""The interface of MAPIE 1.x, with sets that hold under attack."""

import copy
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from bincp._models import ModelLike, as_model
from bincp._utils.arrays import ArrayLike
from bincp._utils.levels import LEVELS, Level, check_level
from bincp._utils.validation import MAX_COUNT, check_flag, check_integer
from bincp.adapters._classes import places
from bincp.adapters._columns import check_names, names_of
from bincp.balls import Ball
from bincp.calibration import BinCP
from bincp.certificates import certify
from bincp.errors import NotCalibratedError
from bincp.noise._keys import Phase
from bincp.noise._seeds import Call, Seeded, Seeds
from bincp.smoothing import Smoothing

if TYPE_CHECKING:
    import torch

    from bincp.sampling import RobustClassifier


class SplitConformalClassifier(Seeded):
    """Robust prediction sets with the interface of ``mapie.classification``, version 1.

    Code for the class of this name in MAPIE runs with two lines changed: the import, and the
    constructor, which is given the noise and the attack. ``conformalize`` and ``predict_set`` take
    and return what they do there. The set of an input that was moved inside the ball still holds
    its label with probability at least the confidence level, under the conditions of
    `bincp.sampling.RobustClassifier`.

    Parameters
    ----------
    estimator : classifier of scikit-learn or ART, torch module or callable
        A classifier that has been fitted, on other data than those of `conformalize`. One that
        needs options is given as the result of `as_model`.
    smoothing : Smoothing
        The smoothing scheme, one of `bincp.smoothing`.
    ball : Ball
        The perturbations to withstand, in the units of the inputs.
    confidence_level : level or iterable of levels
        1 - alpha, in (0, 1): one or more. A float stands for its shortest decimal.
    conformity_score : str, (str, dict) or callable
        As `score` in `bincp.sampling.sample_scores`, "lac", "aps" and "raps" among them.
    prefit : bool
        Must be True: there is no ``fit``.
    n_samples, n_test_samples : int
        Draws of a point of `conformalize`, and the most draws of an input of `predict_set`; the
        same number if the second is not given.
    batch_size, device
        As in `bincp.sampling.sample_scores`.
    random_state : int, optional
        Seed of the noise, in [0, 2**64), as `seed` of `bincp.sampling.RobustClassifier`: each call
        of `conformalize` and `predict_set` draws noise that none drew before it, and copies, clones
        and forked processes draw none until `reseed` is called. By default each call draws a secret
        seed from the system.

    Attributes
    ----------
    classes_ : ndarray, shape (K,)
        The class of each column of a set.
    rules_ : tuple of BinCP
        The calibrated rule of each level.

    Notes
    -----
    *Differences from MAPIE.* ``fit``, ``predict_params`` and ``conformity_score_params`` are not
    there or refused, and so is the score "top_k". `conformalize` may be called again, and replaces
    what it found before. Levels are exact, and nothing is interpolated. The parameters of "raps"
    are given, not tuned on a part of the data.

    Each level has draws decided by its own rule, and stops early, so that its sets need not be
    inside those of a higher level. `predict` evaluates the estimator on the inputs as they are,
    and says nothing about an attack.

    *Threads.* Several threads may call `predict_set` and `predict` at once, but none may call
    `conformalize` meanwhile.

    References
    ----------
    V. Taquet and others, "MAPIE: an open-source library for distribution-free uncertainty
    quantification", 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from bincp.adapters import SplitConformalClassifier
    >>> from bincp.balls import L2
    >>> from bincp.smoothing import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(["cat", "dog", "eel"], 600)
    >>> x = rng.normal(y[:, None] == ["cat", "dog", "eel"], 0.3)
    >>> model = LogisticRegression().fit(x[:200], y[:200])
    >>> classifier = SplitConformalClassifier(
    ...     model, smoothing=Gaussian(0.5), ball=L2(0.1), confidence_level=[0.8, 0.9]
    ... )
    >>> predicted, sets = classifier.conformalize(x[200:500], y[200:500]).predict_set(x[500:])
    >>> predicted.shape, sets.shape, classifier.classes_.tolist()
    ((100,), (100, 3, 2), ['cat', 'dog', 'eel'])
    """

    _seed_name = "random_state"

    classes_: npt.NDArray[Any]
    rules_: tuple[BinCP, ...]
    _classifiers: "tuple[RobustClassifier, ...]"
    _names: list[str] | None  # of the columns of data frames

    def __init__(
        self,
        estimator: ModelLike,
        *,
        smoothing: Smoothing,
        ball: Ball,
        confidence_level: Level | Iterable[Level] = 0.9,
        conformity_score: Any = "lac",
        prefit: bool = True,
        n_samples: int = 64,
        n_test_samples: int | None = None,
        batch_size: int = 256,
        device: Any = None,
        random_state: int | None = None,
    ) -> None:
        if not check_flag("prefit", prefit):
            raise ValueError(
                "`prefit` must be True, got False: fit the estimator before, on other data"
            )
        classes = getattr(estimator, "classes_", None)
        self._model = as_model(estimator, classes=classes)
        self._known_classes = classes
        own = getattr(estimator, "feature_names_in_", None)
        self._fitted_names = None if own is None else list(own)
        self._certificate = certify(smoothing, ball)
        self._alphas = _alphas(confidence_level)
        self._n_samples = check_integer("n_samples", n_samples, low=1, high=MAX_COUNT)
        self._n_test_samples = (
            self._n_samples
            if n_test_samples is None
            else check_integer("n_test_samples", n_test_samples, low=1, high=MAX_COUNT)
        )
        self._sampling = {"score": conformity_score, "batch_size": batch_size, "device": device}
        self._estimator, self._smoothing, self._ball = estimator, smoothing, ball
        if random_state is not None:
            check_integer("random_state", random_state, low=0, high=2**64 - 1)
        self._seeds = Seeds(random_state)

    def __repr__(self) -> str:
        parts = [
            repr(self._estimator).split("\n")[0],
            f"smoothing={self._smoothing!r}",
            f"ball={self._ball!r}",
            "confidence_level=" + " and ".join(str(1 - alpha) for alpha in self._alphas),
        ]
        if not hasattr(self, "rules_"):
            parts.append("not conformalized")
        return f"SplitConformalClassifier({', '.join(parts)})"

    def conformalize(
        self,
        X_conformalize: ArrayLike,
        y_conformalize: ArrayLike,
        predict_params: None = None,
    ) -> Self:
        """Calibrate on points that the estimator was not fitted on.

        Parameters
        ----------
        X_conformalize : array-like (n, ...) of float
            Clean inputs.
        y_conformalize : array-like (n,)
            Their classes.
        predict_params : None
            Refused if given: the estimator is called with inputs alone.

        Returns
        -------
        SplitConformalClassifier
            The object itself.

        Warns
        -----
        TrivialSetWarning
            If every label will be in every set of a level; the message names cause and cure.

        Raises
        ------
        RuntimeError
            If this is a copy, a clone or a forked process of one with a `random_state`.
        TypeError, ValueError
            If a class is none of the estimator; if a data frame has other columns than the
            estimator was fitted on, or in another order; and as in `bincp.sampling.sample_scores`.
        """
        from bincp.sampling import RobustClassifier, sample_scores

        _refuse("predict_params", predict_params)
        check_names("X_conformalize", X_conformalize, self._fitted_names)
        names = self._fitted_names or names_of(X_conformalize)
        x = _inputs(X_conformalize)
        classes = self._known_classes
        labels = y_conformalize
        if classes is not None:
            labels = places("y_conformalize", y_conformalize, classes)
        call = self._call(type(self).__name__)
        scores = sample_scores(
            self._model,
            x,
            self._smoothing,
            self._n_samples,
            phase="calibration",
            labels=labels,
            indices=_ids(call, "calibration", x),
            seed=call.seed,
            **self._sampling,
        )
        if classes is None:
            classes = np.arange(self._clean_logits(x[:1]).shape[1])
        rules = tuple(
            BinCP(self._certificate, alpha=alpha, passes="auto").calibrate(
                scores, n_classes=len(classes), n_test_samples=self._n_test_samples
            )
            for alpha in self._alphas
        )
        self._classifiers = tuple(
            RobustClassifier(self._model, self._smoothing, self._ball, rule=rule, **self._sampling)
            for rule in rules
        )
        self.rules_, self.classes_, self._names = rules, np.asarray(classes), names
        return self

    def predict_set(
        self,
        X: ArrayLike,
        conformity_score_params: None = None,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Return the class that the estimator predicts for each input, and sets of classes.

        Parameters
        ----------
        X : array-like (n, ...) of float
            Inputs, which may have been perturbed.
        conformity_score_params : None
            Refused if given: scores have their parameters in `conformity_score`.

        Returns
        -------
        ndarray, shape (n,)
            As `predict`.
        ndarray of bool, shape (n, K, n_confidence_levels)
            Whether the set of input i at each level contains class ``classes_[k]``.

        Raises
        ------
        NotCalibratedError
            If `conformalize` has not been called.
        RuntimeError
            If this is a copy, a clone or a forked process of one with a `random_state`.
        TypeError, ValueError
            As in `bincp.sampling.RobustClassifier.predict`, and if a data frame has other columns
            than before, or in another order.
        """
        _refuse("conformity_score_params", conformity_score_params)
        self._check_conformalized()
        check_names("X", X, self._names)
        x = _inputs(X)
        call = self._call(type(self).__name__)
        ids = _ids(call, "test", x)
        # The levels share the noise of a call. Copies, for other threads may predict at once.
        owns = [copy.copy(classifier).reseed(call.seed) for classifier in self._classifiers]
        sets = [classifier.predict(x, indices=ids).sets for classifier in owns]
        return self.predict(X), np.stack(sets, axis=2)

    def predict(self, X: ArrayLike) -> npt.NDArray[Any]:
        """Return the class that the estimator predicts for each input as it is.

        Parameters
        ----------
        X : array-like (n, ...) of float
            Inputs.

        Returns
        -------
        ndarray, shape (n,)
            Classes, as in `classes_`.

        Raises
        ------
        NotCalibratedError
            If `conformalize` has not been called.
        TypeError, ValueError
            If the estimator does not take the inputs, or as in `predict_set` for data frames.
        """
        self._check_conformalized()
        check_names("X", X, self._names)
        x = _inputs(X)
        if self._known_classes is not None:
            return np.asarray(self._estimator.predict(x.reshape(len(x), -1)))
        return np.asarray(self.classes_[self._clean_logits(x).argmax(axis=1)])

    def _check_conformalized(self) -> None:
        if not hasattr(self, "rules_"):
            raise NotCalibratedError("call conformalize() before predicting")

    def _clean_logits(self, x: Any) -> npt.NDArray[Any]:
        import torch

        from bincp.sampling._engine import evaluating
        from bincp.sampling._jobs import narrow_dtype

        size = self._sampling["batch_size"]
        module = self._model if isinstance(self._model, torch.nn.Module) else torch.nn.Module()
        place = next((weights.device for weights in module.parameters()), None)
        dtype = narrow_dtype(self._model)
        with evaluating(self._model):
            found = [
                self._model(_copied(x[start : start + size]).to(device=place, dtype=dtype))
                for start in range(0, len(x), size)
            ]
        return np.asarray(torch.cat(found).double().cpu())


def _copied(x: "npt.NDArray[Any] | torch.Tensor") -> "torch.Tensor":
    """Return a copy of inputs as a tensor, which a model that works in place may write to."""
    import torch

    if isinstance(x, torch.Tensor):
        return x.clone()
    return torch.from_numpy(np.array(x, dtype=x.dtype.newbyteorder("=")))


def _ids(call: Call, phase: Phase, x: Any) -> npt.NDArray[np.int64]:
    """Return ids of inputs that no other call gets."""
    return call.take(phase, len(x) if x.ndim else 0)


def _alphas(confidence_level: Any) -> tuple[Fraction, ...]:
    """Return the level alpha of each confidence level."""
    if isinstance(confidence_level, LEVELS) or not isinstance(confidence_level, Iterable):
        confidence_level = [confidence_level]
    alphas = tuple(1 - check_level("confidence_level", level) for level in confidence_level)
    if not alphas:
        raise ValueError("`confidence_level` must hold at least one level, got none")
    return alphas


def _refuse(name: str, value: object) -> None:
    if value is not None and value != {}:
        raise ValueError(f"`{name}` must be None, got {value!r}")


def _inputs(x: Any) -> "npt.NDArray[Any] | torch.Tensor":
    """Return inputs as an array; tensors stay what they are, and data frames give their values."""
    return x if hasattr(x, "detach") else np.asarray(x)
