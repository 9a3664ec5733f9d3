"""Two modules have one fingerprint if they compute the same, whatever kind of module holds them."""

import copy
import io
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from bincp.balls import L2  # noqa: E402
from bincp.sampling import RobustClassifier, run  # noqa: E402
from bincp.sampling._run._fingerprint import fingerprint  # noqa: E402
from bincp.smoothing import Gaussian  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore"
)  # of torch, on kinds of modules that it has given up

X = torch.from_numpy(np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32))
Y = np.arange(40) % 3


def network(seed=0, activation=torch.nn.ReLU):
    torch.manual_seed(seed)
    layers = torch.nn.Linear(4, 8), activation(), torch.nn.Linear(8, 3)
    return torch.nn.Sequential(*layers).eval()


def frozen(module):
    return torch.jit.freeze(torch.jit.script(module))


def exported(module):
    sizes = ({0: torch.export.Dim("b")},)
    return torch.export.export(module, (X[:2],), dynamic_shapes=sizes).module()


def unflattened(module):
    return torch.export.unflatten(torch.export.export(module, (X[:2],)))


def quantised(module):
    return torch.ao.quantization.quantize_dynamic(module, {torch.nn.Linear}, dtype=torch.qint8)


KINDS = {
    "eager": lambda module: module,
    "scripted": torch.jit.script,
    "traced": lambda module: torch.jit.trace(module, X[:2]),
    "frozen": frozen,
    "frozen from a trace": lambda module: torch.jit.freeze(torch.jit.trace(module, X[:2])),
    "for inference": lambda module: torch.jit.optimize_for_inference(torch.jit.script(module)),
    "graph": torch.fx.symbolic_trace,
    "exported": exported,
    "unflattened": unflattened,
    "quantised": quantised,
    "scripted and quantised": lambda module: torch.jit.script(quantised(module)),
    "frozen and quantised": lambda module: frozen(quantised(module)),
}


@pytest.mark.parametrize("name", KINDS)
def test_weights_and_structure_count_in_every_kind_of_module(name):
    make = KINDS[name]
    own = fingerprint(make(network()))
    assert fingerprint(make(network())) == own
    assert fingerprint(make(network(seed=1))) != own
    assert fingerprint(make(network(activation=torch.nn.Sigmoid))) != own
    one_more = network()
    with torch.no_grad():  # a bias, which no name and no shape shows
        one_more[2].bias[1] = torch.nextafter(one_more[2].bias[1], torch.tensor(9.0))
    assert fingerprint(make(one_more)) != own


@pytest.mark.parametrize(
    "name", ["scripted", "traced", "frozen", "frozen from a trace", "frozen and quantised"]
)
def test_a_file_keeps_the_fingerprint_of_a_script(name):
    module = KINDS[name](network())
    loaded = module
    for _ in range(2):
        stream = io.BytesIO()
        torch.jit.save(loaded, stream)
        stream.seek(0)
        loaded = torch.jit.load(stream)
        assert fingerprint(loaded) == fingerprint(module)


def test_a_file_keeps_the_fingerprint_of_a_program():
    program, stream = torch.export.export(network(), (X[:2],)), io.BytesIO()
    torch.export.save(program, stream)
    stream.seek(0)
    assert fingerprint(torch.export.load(stream).module()) == fingerprint(program.module())


class Scaled(torch.nn.Module):
    """Has a number that is no parameter."""

    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return self.scale * x[:, :3]


class Stored(Scaled):
    """Saves the number."""

    def get_extra_state(self):
        return {"scale": [self.scale], "of": "x"}

    def set_extra_state(self, state):
        (self.scale,) = state["scale"]


@pytest.mark.parametrize(
    "make", [torch.jit.script, torch.fx.symbolic_trace, exported, lambda one: one]
)
@pytest.mark.parametrize("number", [float, lambda value: torch.full((3,), value)])
def test_numbers_that_are_no_parameters_count_where_they_are_seen(make, number):
    kind = Stored if make.__name__ == "<lambda>" else Scaled
    one, same, other = (fingerprint(make(kind(number(value)))) for value in (1.0, 1.0, 2.0))
    assert one == same != other


@pytest.mark.parametrize("make", [frozen, exported, quantised])
def test_other_weights_are_refused(make, tmp_path):
    """A rule and a run of one module do not serve another one."""
    one, other = make(network()), make(network(seed=1))
    options = {"n_samples": 8, "alpha": 0.2}
    ours = RobustClassifier(one, Gaussian(0.5), L2(0.1), **options).calibrate(X, Y)
    with pytest.raises(ValueError, match="as in calibration: `model` was"):
        RobustClassifier(other, Gaussian(0.5), L2(0.1), rule=copy.deepcopy(ours.rule))
    ours.model = other
    with pytest.raises(ValueError, match="as in calibration: `model` was"):
        ours.predict(X)
    run(tmp_path / "run", one, X, Gaussian(0.5), 8, phase="test", shard=(0, 2))
    with pytest.raises(ValueError, match="begun with other arguments: `model` was"):
        run(tmp_path / "run", other, X, Gaussian(0.5), 8, phase="test", shard=(1, 2))


def test_weights_that_are_not_there_yet_are_refused():
    lazy = torch.nn.LazyLinear(3)
    with pytest.raises(ValueError, match="`model` must hold its weights, got weight, which no"):
        fingerprint(lazy)
    lazy(X)
    assert len(fingerprint(lazy)) == 64


PRECISION = """
import torch
from bincp.sampling._run._model import precision_content
{set}
print(*(precision_content(torch.device(kind))["float32_matmul"] for kind in ("cpu", "cuda")))
"""


@pytest.mark.skipif(
    not hasattr(torch.backends.mkldnn, "matmul"), reason="needs settings for each library"
)
@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("torch.set_float32_matmul_precision('medium')", "medium medium"),
        ("torch.backends.cuda.matmul.allow_tf32 = True", "high high"),
        ("torch.backends.fp32_precision = 'tf32'", "high high"),
        ("torch.backends.fp32_precision = 'bf16'", "medium highest"),
        ("torch.backends.mkldnn.matmul.fp32_precision = 'bf16'", "medium highest"),
        ("torch.backends.cuda.matmul.fp32_precision = 'tf32'", "highest high"),
        (
            "torch.set_float32_matmul_precision('high')\n"
            "torch.backends.cuda.matmul.fp32_precision = 'ieee'",
            "high highest",
        ),
    ],
)
def test_the_precision_of_products_is_seen_however_it_is_set(setting, expected):
    """In a process of its own: torch refuses to read one setting after the other was used."""
    code = PRECISION.format(set=setting)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected
