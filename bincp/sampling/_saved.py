"""Files of predictors: the rule, what the scores were made with, and answers to a probe."""

import json
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bincp._core._noise import MAX_ID
from bincp._utils.files import replace_file
from bincp._utils.validation import check_integer
from bincp.balls import Ball
from bincp.calibration import BinCP, MondrianBinCP, _storage
from bincp.calibration._class_rules import ClassRules
from bincp.calibration._decision_rule import DecisionRule
from bincp.calibration._documents import check_keys
from bincp.calibration._provenance import check_same
from bincp.certificates import Certificate
from bincp.certificates._described import pair_of
from bincp.noise._keys import check_seed
from bincp.sampling import _engine
from bincp.sampling._jobs import Job, Options
from bincp.sampling._run import _canonical
from bincp.sampling._run._manifest import versions
from bincp.sampling._scoring import Score
from bincp.smoothing import Smoothing

_PROBES = 4
_TOLERANCE = (
    1e-3  # of the largest output: other kernels round differently, other weights differ more
)

FloatArray = npt.NDArray[np.float64]


class Who(NamedTuple):
    """What messages and files call an object, and the outputs of its model."""

    noun: str
    outputs: str

    @property
    def format(self) -> str:
        """The format of its files."""
        return f"bincp robust {self.noun}"


def probe(
    model: Any, smoothing: Smoothing, shape: tuple[int, ...], dtype: str, options: Options
) -> tuple[Job, FloatArray]:
    """Return the outputs (4, q) for noisy zeros, whose noise no input gets, and their job."""
    job = Job.of(
        model,
        np.zeros((1, *shape), dtype),
        smoothing,
        _PROBES,
        replace(options, seed=0),
        phase="tuning",
        indices=[MAX_ID],
    )
    sources, draws = np.zeros(_PROBES, np.int64), np.arange(_PROBES)
    with _engine.evaluating(job.model):
        inputs = _engine.noisy(job, sources, draws, job.x).to(job.device)
        logits = _engine.logits_of(job, inputs)
    return job, logits.double().cpu().numpy()


@dataclass(frozen=True)
class Saved:
    """What the file of a classifier or a regressor holds."""

    path: str
    who: Who
    rule: DecisionRule | ClassRules
    certificate: Certificate
    seed: tuple[int, int] | None
    """A seed and the next id."""
    answers: FloatArray | None = None

    @classmethod
    def of(
        cls, rule: Any, found: dict[str, Any], seed: tuple[int, int] | None, who: Who
    ) -> "Saved":
        """Return what is to be saved of a calibrated rule, or refuse it."""
        if not isinstance(rule, BinCP | MondrianBinCP):
            raise TypeError(f"`rule` must be a BinCP or a MondrianBinCP, got {rule!r}")
        inner, known = rule._rule, rule.provenance_
        if inner is None or known is None or known.get("input_shape") is None:
            raise ValueError(
                f"`rule` must be calibrated by a Robust{who.noun.title()} or on a run, which note "
                "the model, the score and the inputs; got one that knows nothing of them"
            )
        check_same(known, found, f"the {who.noun}")
        merged = {**found, **{name: value for name, value in known.items() if value is not None}}
        one, two = known.get("model") or {}, found["model"]
        merged["model"] = {name: one.get(name) or two[name] for name in two}
        if merged["score"] is None:
            raise ValueError("`score_id` must name a score that is a function, got None")
        if merged["model"] == {"fingerprint": None, "id": None}:
            raise ValueError("`model_id` must name a model that is no torch module, got None")
        document = _storage.document_of(inner.with_provenance(merged))
        return cls._of_document(f"the {who.noun}", who, document, seed)

    @classmethod
    def _of_document(
        cls,
        path: str,
        who: Who,
        document: Any,
        seed: tuple[int, int] | None,
        answers: FloatArray | None = None,
    ) -> "Saved":
        rule, certificate = _storage.parse(json.dumps(document).encode(), path)
        if not isinstance(rule, DecisionRule | ClassRules) or rule.provenance is None:
            raise ValueError(f"{path}: damaged, it holds no rule of a {who.noun}")
        try:
            _check_provenance(rule.provenance)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"{path}: damaged, {error}") from None
        if certificate is None or "smoothing" not in rule.certificate:
            raise ValueError(
                f"{path}: must have a certificate that bincp makes again from its noise and ball, "
                f"got {rule.certificate}; save the rule, and make the {who.noun} anew"
            )
        return cls(path, who, rule, certificate, seed, answers)

    @classmethod
    def read(cls, path: str | PathLike[str], who: Who) -> "Saved":
        """Read a file that `write` wrote."""
        if not isinstance(path, str | PathLike):
            raise TypeError(f"`path` must be a str or path-like, got {path!r}")
        content = _canonical.decode(Path(path).read_bytes(), str(path), who.format)
        try:
            check_keys(content, _FIELDS)
            seed, answers = _seed_in(content), _answers_in(content)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"{path}: damaged, {error}") from None
        return cls._of_document(str(path), who, content["rule"], seed, answers)

    def write(self, path: str | PathLike[str], answers: FloatArray) -> None:
        """Write the file, and replace one that is there."""
        if not isinstance(path, str | PathLike):
            raise TypeError(f"`path` must be a str or path-like, got {path!r}")
        seed, next_id = self.seed or (None, None)
        data = _canonical.encode(
            {
                "format": self.who.format,
                "version": 1,
                "rule": _storage.document_of(self.rule),
                "probe": _canonical.hexed(answers.tolist()),
                "seed": None if seed is None else str(seed),
                "next_id": next_id,
                "made_by": versions(),
            }
        )
        replace_file(path, lambda stream: stream.write(data), private=seed is not None)

    @property
    def provenance(self) -> dict[str, Any]:
        """What the scores were made with."""
        assert self.rule.provenance is not None
        return self.rule.provenance

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an input."""
        return tuple(self.provenance["input_shape"])

    @property
    def dtype(self) -> str:
        """The dtype of the inputs."""
        return str(self.provenance["input_dtype"])

    def pair(self) -> tuple[Smoothing, Ball]:
        """Return the noise and the ball."""
        return pair_of(self.rule.certificate)

    def input_range(self) -> tuple[float, float] | None:
        """Return the declared range of the inputs."""
        declared = self.provenance.get("input_range")
        return None if declared is None else (*map(float.fromhex, declared),)  # type: ignore[return-value]

    def score(self, given: Score | None, score_id: str | None) -> Score:
        """Return the score by its name and parameters, or the function that was given."""
        content = self.provenance["score"]
        if "id" in content:
            if not callable(given):
                raise TypeError(
                    f"`score` must be the function {content['id']!r} that the classifier was saved "
                    f"with, got {given!r}"
                )
            if score_id is None:
                raise ValueError(f"`score_id` must be {content['id']!r}, as it was saved, got None")
            return given
        if given is not None or score_id is not None:
            raise TypeError(f"`score` must not be given where the file names it, got {given!r}")
        return content["name"], _parameters(content)

    def new_rule(self, model: dict[str, Any] | None = None) -> BinCP | MondrianBinCP:
        """Return a calibrated object, which knows another model if one is given."""
        rule = self.rule
        if model is not None:
            rule = rule.with_provenance({**self.provenance, "model": model})
        if isinstance(rule, ClassRules):
            return MondrianBinCP._with_rules(rule, self.certificate)
        return BinCP._with_rule(rule, self.certificate)

    def check_model(self, found: dict[str, Any], given: Any) -> None:
        """Refuse a model, of which this is known, that cannot be compared with the saved one."""
        known = self.provenance["model"]
        if known["id"] is not None and found["id"] is None:
            raise ValueError(f"`model_id` must be {known['id']!r}, as it was saved, got None")
        if known["fingerprint"] is not None and found["fingerprint"] is None:
            raise ValueError(
                f"`model` must be a torch module, as it was saved, got {given!r}; with "
                "check_fingerprint=False its answers alone are compared"
            )

    def seed_for(self, seed: int | None, first_id: int | None) -> tuple[int | None, int]:
        """Return the seed and the first id of a loaded classifier, which must be said."""
        if first_id is None:
            if self.seed is not None and seed in (None, self.seed[0]):
                got = "neither" if seed is None else "this seed= alone"
                raise ValueError(
                    f"{self.path} holds a seed: give first_id= beyond all ids in use (at least "
                    f"{self.seed[1]}) to go on with it, or another seed=, got {got}"
                )
            return seed, 0
        if seed is None and self.seed is None:
            raise ValueError(f"`first_id` must be given with a seed, got {first_id} and none")
        own = seed if self.seed is None or seed is not None else self.seed[0]
        low = self.seed[1] if self.seed is not None and own == self.seed[0] else 0
        return own, check_integer("first_id", first_id, low=low, high=MAX_ID)

    def check_probe(self, found: FloatArray) -> None:
        """Refuse a model that gives other answers than the one that was saved."""
        known = self.answers
        assert known is not None
        if known.shape == found.shape:
            finite = np.isfinite(known)
            largest = float(np.abs(known[finite]).max(initial=0.0))
            with np.errstate(invalid="ignore"):
                near = np.abs(known - found) <= _TOLERANCE * largest
            if np.where(finite, near, known == found).all():
                return
        raise ValueError(
            f"`model` must give the {self.who.outputs} that it gave when the {self.who.noun} was "
            f"saved, to 1e-3 of the largest, got {found[0][:5].tolist()}, ... instead of "
            f"{known[0][:5].tolist()}, ..."
        )


_FIELDS = {"format", "version", "rule", "probe", "seed", "next_id", "made_by"}


def _seed_in(content: dict[str, Any]) -> tuple[int, int] | None:
    """Return the seed and the next id that a file holds."""
    seed, next_id = content["seed"], content["next_id"]
    if seed is None and next_id is None:
        return None
    if not isinstance(seed, str):
        raise TypeError(f"`seed`: {seed!r} is not the text of a number")
    return check_seed(int(seed)), check_integer("next_id", next_id, low=0, high=MAX_ID)


def _answers_in(content: dict[str, Any]) -> FloatArray:
    """Return the answers to the probe that a file holds."""
    rows = [[float.fromhex(one) for one in row] for row in content["probe"]]
    answers = np.array(rows, np.float64)
    if answers.ndim != 2 or len(answers) != _PROBES or not answers.size:
        raise ValueError(f"`probe`: of shape {answers.shape}, not ({_PROBES}, q)")
    return answers


def _check_provenance(known: dict[str, Any]) -> None:
    """Refuse what the scores cannot have been made with."""
    shape, declared = known.get("input_shape"), known.get("input_range")
    if not isinstance(shape, list):
        raise TypeError(f"`input_shape`: {shape!r} is not a list")
    for size in shape:
        check_integer("input_shape", size, low=0)
    dtype = known.get("input_dtype")  # any number: a scheme from outside may take others than ours
    usual = np.dtype(dtype) if isinstance(dtype, str) else None
    if usual is None or usual.name != dtype or usual.kind not in "fiub":
        raise ValueError(f"`input_dtype`: {dtype!r} is not a dtype of inputs")
    if declared is not None and (not isinstance(declared, list) or len(declared) != 2):
        raise TypeError(f"`input_range`: {declared!r} is not a pair")
    for end in declared or ():
        float.fromhex(end)
    model, score = known.get("model"), known.get("score")
    if not isinstance(model, dict) or {*model} != {"fingerprint", "id"} or not any(model.values()):
        raise ValueError(f"`model`: {model!r} names no model")
    if not all(value is None or isinstance(value, str) for value in model.values()):
        raise TypeError(f"`model`: {model!r} is not named by texts")
    if not isinstance(score, dict) or not isinstance(score.get("id", score.get("name")), str):
        raise TypeError(f"`score`: {score!r} names no score")
    if "id" not in score:
        _parameters(score)


def _parameters(score: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a score that has a name."""
    given = {name: value for name, value in score.items() if name != "name"}
    return {
        name: float.fromhex(value) if isinstance(value, str) else value
        for name, value in given.items()
    }
