"""Noise in torch operations and Triton kernels has the bits of the C code."""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from radius_words import differing  # noqa: E402
from test_grid_noise import GOLDEN, columns_of_ties, integers, sha256, table_named  # noqa: E402

import bincp  # noqa: E402
from bincp._core import _noise  # noqa: E402
from bincp.noise import Keys  # noqa: E402
from bincp.noise._alias import Table, packed  # noqa: E402
from bincp.noise._device import _sampler, _torch, check_tensor, device_sampler  # noqa: E402
from bincp.noise._device._sampler import sampler_on  # noqa: E402
from bincp.noise._samplers import check_inputs, noisy_dtype, sampler_of  # noqa: E402
from bincp.smoothing import Exp2, Expp, Gaussian, Laplace, SparseFlip, Uniform  # noqa: E402

CPU = torch.device("cpu")
SCRIPT = Path(__file__).with_name("triton_noise.py")
FLOATS = [
    Gaussian(0.25),
    Laplace(0.25),
    Uniform(0.25),
    Gaussian(1e-37),  # products are subnormal
    Laplace(1e37),
    Expp(0.5, 1),
    Expp(0.5, 2),
]
POINTS = [
    Gaussian(0.25, grid=255),
    Gaussian(9.7, grid=255),
    Gaussian(1e-5, grid=255),
    Laplace(0.12, grid=255),
    Uniform(0.3, grid=255),
    Gaussian(0.3, grid=2**12 - 1),
]
seeds = st.integers(0, 2**64 - 1)


def bits(array):
    return np.asarray(array).view(np.uint8)


def c_rows(scheme, keys, sources, x):
    out = np.empty((len(sources), *x.shape[1:]), noisy_dtype(x))
    sampler_of(scheme).fill(keys, sources, x, out)
    return out


def inputs_of(scheme, shape, dtype, rng):
    if getattr(scheme, "grid", None) is None:
        return rng.standard_normal(shape).astype(dtype)
    k = rng.integers(0, 256, shape)
    return k.astype(dtype) if dtype == "uint8" else (k / scheme.grid).astype(dtype)


def keys_of(rows, rng, phase="test"):
    return Keys(
        int(rng.integers(2**64, dtype=np.uint64)),
        phase,
        rng.integers(0, 2**56, rows),
        rng.integers(0, 2**31, rows),
    )


def on_cpu(scheme):
    made = sampler_on(sampler_of(scheme), CPU)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("scheme", "dtype"),
    [(scheme, dtype) for scheme in FLOATS + POINTS for dtype in sampler_of(scheme).dtypes],
    ids=str,
)
def test_rows_have_the_bits_of_the_c_code(scheme, dtype):
    rng = np.random.default_rng(1)
    made = on_cpu(scheme)
    for shape in ((1,), (63,), (64,), (65,), (3, 7, 5), (4099,)):
        for phase in ("calibration", "test", "tuning"):
            x = inputs_of(scheme, (4, *shape), dtype, rng)
            keys, sources = keys_of(7, rng, phase), rng.integers(0, 4, 7)
            expected = c_rows(scheme, keys, sources, x)
            for given_x in (x, torch.from_numpy(x)):
                found = made.rows(keys, sources, given_x)
                assert found.shape == expected.shape
                np.testing.assert_array_equal(bits(found), bits(expected))


@given(
    seed=seeds,
    ids=st.lists(st.integers(0, 2**56 - 1), min_size=1, max_size=4),
    number=st.integers(0, 2**31 - 1),
    n=st.integers(1, 200),
    scheme=st.sampled_from(FLOATS + POINTS),
    at_once=st.sampled_from([1, 64, 130, 2**21]),
)
@settings(deadline=None, max_examples=80)
def test_rows_of_any_key(seed, ids, number, n, scheme, at_once):
    """Also where a row takes several blocks of operations, and where a block has several rows."""
    keys = Keys(seed, "calibration", ids, [number] * len(ids))
    x, sources = np.zeros((1, n), np.float32), np.zeros(len(ids), np.int64)
    made = on_cpu(scheme)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_sampler, "_AT_ONCE", at_once)
        found = made.rows(keys, sources, x)
    np.testing.assert_array_equal(bits(found), bits(c_rows(scheme, keys, sources, x)))


def test_inputs_of_any_layout():
    rng = np.random.default_rng(2)
    x = torch.from_numpy(rng.standard_normal((6, 3, 8, 5)).astype("f4"))
    made = on_cpu(Gaussian(0.25))
    frozen = x.numpy().copy()
    frozen.flags.writeable = False
    for own in (x.to(memory_format=torch.channels_last), x.transpose(1, 3), x[::2], x[:, :1]):
        keys = keys_of(5, rng)
        for sources in ([0, 0, 1, 1, 2], [2, 0, 2, 1, 0], [0, 2, 2, 2, 2]):
            expected = c_rows(Gaussian(0.25), keys, np.array(sources), own.contiguous().numpy())
            for same in (own, own.numpy()):
                found = made.rows(keys, np.array(sources), same)
                np.testing.assert_array_equal(bits(found.contiguous()), bits(expected))
    keys = keys_of(2, rng)
    made.rows(keys, np.array([0, 1]), frozen)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_radii_have_the_bits_of_the_c_code():
    """Of every 4099th word; `python tests/radius_words.py` takes all 2^32."""
    found, _ = differing(4099, CPU, {"ours": _torch.radius_of, "none": lambda w: w.float()})
    assert found["ours"] == 0
    assert found["none"] > 10**6


# ---- golden data ---------------------------------------------------------------------------------


def torch_integers(table, *, seed, stream, id, draw, n):  # noqa: A002
    """A row of integer noise in torch operations."""
    rows = torch.tensor([[0], [id], [draw]])
    counters = torch.arange(16 * -(-n // 64))[None]
    words = [torch.from_numpy(part.astype(np.int64)) for part in (table.entry, table.low)]
    drawn = _torch.grid_noise(*words, _torch.RowKeys(seed, stream, rows), counters)
    return (drawn[0, :n] - table.half).numpy().astype("<i4")


def key_of_row(row):
    return {name: int(row[name]) for name in ("seed", "stream", "id", "draw")}


def test_golden_rows():
    for row in GOLDEN["rows"]:
        q = torch_integers(table_named(row["law"]), **key_of_row(row), n=row["n"])
        assert q[:48].tolist() == row["first_q"]
        assert sha256(q) == row["sha256_int32"]


def test_golden_ties():
    for tie in GOLDEN["ties"]:
        n = tie["element"] + 1
        assert torch_integers(table_named(tie["law"]), **key_of_row(tie), n=n)[-1] == tie["q"]


def test_golden_tables_of_ties():
    for row in GOLDEN["synthetic"]:
        kept, alias = [0] * 2 ** row["m"], list(range(2 ** row["m"]))
        for column, threshold, other in row["columns"]:
            kept[column], alias[column] = int(threshold, 16), other
        q = torch_integers(packed(kept, alias, half=row["half"]), **key_of_row(row), n=row["n"])
        assert q[: len(row["q"])].tolist() == row["q"]
        assert sha256(q) == row["sha256_int32"]


def test_golden_outputs():
    keys = _torch.RowKeys(0, 0, torch.zeros(3, 1, dtype=torch.int64))
    for grid, k, q, single, double in GOLDEN["outputs"]["rows"]:
        # Both columns are one point, which is -half.
        table = Table(np.zeros(2, np.uint32), np.zeros((2, 3), np.uint32), -q)
        law = _sampler._Points(SimpleNamespace(grid=grid, table=table), CPU)
        points, counters = torch.tensor([[k]], dtype=torch.int32), torch.arange(16)[None]
        for dtype, order, expected in (
            (torch.float32, ">f4", single),
            (torch.float64, ">f8", double),
        ):
            noisy = law.noisy(keys, counters, points, dtype).numpy()
            assert noisy.astype(order).tobytes().hex() == expected


def test_golden_hash_of_512_rows():
    levels = torch.arange(3072).remainder(256).to(torch.uint8).expand(512, 3072)
    keys = Keys(7, "test", np.arange(512), np.zeros(512, np.int64))
    for x in (levels, levels.float() / 255):
        noisy = on_cpu(Gaussian(0.25, grid=255)).rows(keys, np.arange(512), x)
        digest = hashlib.sha256(noisy.numpy().astype("<f4").tobytes()).hexdigest()
        assert digest == GOLDEN["hash"]["sha256_float32_little_endian"]


@given(seed=seeds, level=st.integers(0, 4), size=st.integers(1, 16))
@settings(deadline=None, max_examples=40)
def test_ties_at_every_level(seed, level, size):
    key, n = {"seed": seed, "stream": 1, "id": 5, "draw": 3}, 130
    table = packed(*columns_of_ties(key, level=level, bits=size, n=n), half=0)
    expected = integers(table, **key, n=n)
    np.testing.assert_array_equal(torch_integers(table, **key, n=n), expected)


# ---- which code draws ----------------------------------------------------------------------------


def test_a_model_on_the_cpu_keeps_the_c_code():
    assert device_sampler(Gaussian(0.25), CPU) is None


@pytest.mark.parametrize("scheme", [SparseFlip(0.1, 0.1), Exp2(1.0), Expp(1.0, 4)], ids=repr)
def test_schemes_without_other_code_keep_the_c_code(scheme):
    assert sampler_on(sampler_of(scheme), CPU) is None
    assert device_sampler(scheme, torch.device("cuda:0")) is None


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("radius_of", lambda word: _torch.box_muller(word, word)[0]),
        ("_joined", lambda high, word: (high * 65536 + (word & 0xFFFF)).float() + 0.5),
        ("words_of", lambda keys, counters, added=0: [counters.expand(3, -1)] * 4),
    ],
)
def test_a_device_with_other_bits_keeps_the_c_code(name, wrong, monkeypatch):
    monkeypatch.setattr(_torch, name, wrong)
    assert sampler_on(sampler_of(Gaussian(0.25)), CPU) is None


@pytest.mark.parametrize("scheme", [Gaussian(0.25), Gaussian(0.25, grid=255)], ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_other_bits_in_one_dtype_are_enough_to_keep_the_c_code(scheme, dtype, monkeypatch):
    law = type(on_cpu(scheme).law)
    right = law.noisy

    def off_by_one_bit(self, keys, counters, inputs, wanted):
        out = right(self, keys, counters, inputs, wanted)
        return torch.nextafter(out, out + 1) if wanted == dtype else out

    monkeypatch.setattr(law, "noisy", off_by_one_bit)
    assert sampler_on(sampler_of(scheme), CPU) is None
    monkeypatch.setattr(_sampler, "_holds_doubles", lambda place: False)
    assert (sampler_on(sampler_of(scheme), CPU) is None) == (dtype == torch.float32)


def test_a_device_without_doubles_is_told_by_what_it_refuses(monkeypatch):
    assert _sampler._holds_doubles(CPU)
    zeros = torch.zeros

    def refuse(*size, **options):
        if options["dtype"] == torch.float64:
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
        return zeros(*size, **options)

    monkeypatch.setattr(torch, "zeros", refuse)
    assert not _sampler._holds_doubles(CPU)


def test_a_device_that_cannot_compute_keeps_the_c_code(monkeypatch):
    def refuse(word):
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype")

    monkeypatch.setattr(_torch, "radius_of", refuse)
    assert sampler_on(sampler_of(Gaussian(0.25)), CPU) is None
    assert sampler_on(sampler_of(Laplace(0.25)), CPU) is not None
    assert device_sampler(Gaussian(0.25), torch.device("meta")) is None


def test_kernels_that_fail_leave_it_to_torch_operations(monkeypatch):
    class Broken:
        def __getattr__(self, name):
            raise RuntimeError("Failed to find C compiler")

    monkeypatch.setattr(_sampler, "_means_of", lambda place: [Broken(), None])
    made = sampler_on(sampler_of(Uniform(0.25)), CPU)
    assert made is not None
    assert made.kernels is None


def test_a_device_without_memory_is_no_device_without_code(monkeypatch):
    def exhausted(word):
        raise torch.cuda.OutOfMemoryError("no memory")

    monkeypatch.setattr(_torch, "radius_of", exhausted)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        sampler_on(sampler_of(Gaussian(0.25)), CPU)


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((2, 3), np.float16),
        np.zeros((2, 3), np.int64),
        np.zeros(3, np.float32),
        np.zeros((0, 3), np.float32),
        np.zeros((2, 0), np.float64),
        np.full((2, 3), 0.3, np.float32),
        np.full((2, 3), np.nan, np.float32),
        np.full((2, 3), np.inf, np.float64),
        np.full((2, 3), 2.0**20, np.float32),
        np.array([[0, 1 / 255], [2 / 255, 2 / 255 + 2.0**-22]]),
        np.zeros((2, 3), np.uint8),
    ],
    ids=str,
)
@pytest.mark.parametrize("scheme", [Gaussian(1.0), Gaussian(1.0, grid=255)], ids=repr)
def test_inputs_are_refused_as_on_the_host(scheme, x):
    messages = []
    for check, same in ((check_inputs, x), (check_tensor, torch.from_numpy(x))):
        try:
            check(sampler_of(scheme), same)
            messages.append("")
        except ValueError as error:
            messages.append(str(error))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_all_points_of_the_grid_are_taken(dtype):
    x = torch.arange(-(2**20), 2**20 + 1).to(dtype)[None] / 255
    assert bool(_sampler._are_points(x, 255).all())
    assert not bool(_sampler._are_points(x * (1 + 2**-20), 255).all())


# ---- kernels -------------------------------------------------------------------------------------

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")


def run_script(command, folder, **environment):
    folders = str(Path(str(bincp.__file__)).parents[1]), str(SCRIPT.parents[1])
    found = {"PYTHONPATH": os.pathsep.join(folders), "TRITON_CACHE_DIR": folder}
    result = subprocess.run(
        [sys.executable, str(SCRIPT), command],
        env=os.environ | found | environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout)


@needs_triton
@pytest.mark.slow
def test_kernels_have_the_bits_of_the_c_code(tmp_path):
    """In Triton's interpreter, which needs no GPU."""
    differing = run_script("interpret", str(tmp_path), TRITON_INTERPRET="1")
    assert len(differing) > 50
    assert set(differing.values()) == {0}, differing


@needs_triton
@pytest.mark.slow
def test_compiled_kernels_round_after_every_operation(tmp_path):
    """The code for a GPU of NVIDIA, which is compiled without one."""
    found = run_script("compile", str(tmp_path))
    for name, code in found.items():
        assert code["fused"] == 0, name
        assert code["flushed"] == 0, name
        assert set(code["roots and quotients"]) <= {"sqrt.rn.f32", "div.rn.f32", "div.rn.f64"}
    assert found["gaussian *fp32"]["roots and quotients"] == ["sqrt.rn.f32"]
    assert found["grid *i32 *fp32"]["roots and quotients"] == ["div.rn.f32"]
    assert found["grid *i32 *fp64"]["roots and quotients"] == ["div.rn.f64"]


@needs_triton
@pytest.mark.slow
def test_compiled_kernels_with_fusion_would_be_found(tmp_path):
    found = run_script("fuse", str(tmp_path))
    assert all(found[f"{law} *fp32"]["fused"] > 0 for law in ("gaussian", "laplace", "uniform"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("scheme", FLOATS + POINTS, ids=repr)
def test_cuda_has_the_bits_of_the_c_code(scheme):
    rng = np.random.default_rng(3)
    place = torch.device("cuda", 0)
    for means in _sampler._means_of(place):
        law = _sampler._law_of(sampler_of(scheme), place)
        made = _sampler.DeviceSampler(law, place, means)
        for dtype in sampler_of(scheme).dtypes:
            x = inputs_of(scheme, (4, 4099), dtype, rng)
            keys, sources = keys_of(64, rng), rng.integers(0, 4, 64)
            expected = c_rows(scheme, keys, sources, x)
            for same in (x, torch.from_numpy(x).to(place)):
                found = made.rows(keys, sources, same).cpu()
                np.testing.assert_array_equal(bits(found), bits(expected))


def test_tables_of_devices_hold_the_words_of_the_table():
    law = _sampler._law_of(sampler_of(Gaussian(9.7, grid=255)), CPU)
    table = sampler_of(Gaussian(9.7, grid=255)).table
    assert isinstance(table, Table)
    for part, words in zip(law.packed, (table.entry, table.low), strict=True):
        np.testing.assert_array_equal(part.numpy().view(np.uint32), words)
    assert _noise.GAUSSIAN == 0  # as the kernels read it
