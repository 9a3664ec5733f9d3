"""Runs on disk: equal bytes whatever happens, and refusals that change nothing."""

import errno
import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from run_tasks import MODEL, SEED, K, M, N, X, Y, files, sample  # noqa: E402

import bincp.sampling  # noqa: E402
from bincp import (  # noqa: E402
    BinCP,
    MondrianBinCP,
    RobustRiskControl,
    SequentialRule,
    balls,
    certify,
    metrics,
)
from bincp.sampling import count_scores, merge, sample_scores, vote_counts  # noqa: E402
from bincp.sampling._run import _data, _publish, _seed, _stream  # noqa: E402
from bincp.sampling._run._grid import Cells, Grid  # noqa: E402
from bincp.sampling._run._layout import Layout  # noqa: E402
from bincp.sampling._run._model import fingerprint  # noqa: E402
from bincp.sampling._run._shard import parse_shard, shard_of  # noqa: E402
from bincp.smoothing import Gaussian  # noqa: E402
from support import quiet  # noqa: E402

HERE = Path(__file__).parent
NOISE = Gaussian(0.5)


def coordinates(x):
    """A model whose every number is a number of its input: equal to the bit at any batch size."""
    return 3 * x[:, :K]


def process(*arguments, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        cwd=HERE,
        **options,
    )


class TestValues:
    @pytest.mark.parametrize("phase", ["calibration", "test", "tuning"])
    @pytest.mark.parametrize("score", ["tps", ("raps", {"penalty": 0.1})])
    def test_they_are_those_of_sampling_in_memory(self, tmp_path, phase, score):
        options = {"phase": phase, "score": score, "first_draw": 3, "batch_size": 5}
        given = {"model": coordinates, "model_id": "coordinates", "first_id": 100}
        whole = sample_scores(
            coordinates, X, NOISE, M, indices=100 + np.arange(N), seed=SEED, **options
        )
        stored = sample(tmp_path / "all", keep="scores", **given, **options)
        assert np.array_equal(stored.values(), whole)
        assert np.array_equal(stored.labels(), Y)
        own = sample(tmp_path / "own", keep="label scores", **given, **options)
        assert np.array_equal(own.values(), whole[np.arange(N), Y])

    def test_counts_and_votes_are_those_of_sampling_in_memory(self, tmp_path):
        given = {"model": coordinates, "model_id": "coordinates", "phase": "test"}
        rules = [rule_of(0.1), rule_of(0.3), rule_of(0.3)]
        stored = sample(tmp_path / "counts", rules=rules, **given)
        taus = sorted({rule.tau_ for rule in rules})
        assert stored.values().shape == (N, len(taus), K)
        for tau in taus:
            counts = count_scores(coordinates, X, NOISE, M, tau, phase="test", seed=SEED)
            assert np.array_equal(stored.counts(tau), counts)
        with pytest.raises(ValueError, match="keeps counts at the thresholds"):
            stored.counts(taus[0] / 2)
        votes = sample(tmp_path / "votes", keep="votes", **given)
        assert np.array_equal(votes.values(), vote_counts(coordinates, X, NOISE, M, seed=SEED))

    @pytest.mark.parametrize("tau", [float("nan"), "a", None, True, np.zeros(2)])
    def test_thresholds_that_are_none_are_refused(self, tmp_path, tau):
        run = sample(tmp_path / "run", keep="scores")
        with pytest.raises((TypeError, ValueError), match="`tau` must "):
            run.counts(tau)

    def test_datasets_and_loaders_give_the_bytes_of_arrays(self, tmp_path):
        dataset = torch.utils.data.TensorDataset(X, torch.from_numpy(Y))
        expected = sample(tmp_path / "array")
        np.save(tmp_path / "x.npy", X.numpy())
        others = [
            (X.numpy(), Y),
            (np.load(tmp_path / "x.npy", mmap_mode="r"), Y),
            (dataset, None),
            (torch.utils.data.DataLoader(dataset, batch_size=7), None),
        ]
        for i, (x, labels) in enumerate(others):
            sample(tmp_path / str(i), x=x, labels=labels)
            assert files(tmp_path / str(i)) == files(expected.path)

    def test_grey_levels_stay_grey_levels(self, tmp_path):
        x = np.arange(N * 4, dtype=np.uint8).reshape(N, 4)
        scheme = Gaussian(0.5, grid=255)
        options = {"model": coordinates, "model_id": "coordinates", "smoothing": scheme}
        run = sample(tmp_path / "run", x=x, keep="scores", **options)
        assert run.identity["input_dtype"] == "uint8"
        whole = sample_scores(coordinates, x, scheme, M, phase="calibration", seed=SEED)
        assert np.array_equal(run.values(), whole)

    def test_items_that_do_not_fit_are_refused(self, tmp_path):
        cases = {
            "`labels` must be an integer, got 1.5": [(X[0], 0), (X[1], 1.5)],
            "of one shape and dtype": [(X[0], 0), (X[1, :2], 1)],
            "pairs of an input and its label": [(X[0], 0), (X[1], 1, 2)],
            "must yield tensors or arrays": [(X[0], 0), ("x", 1)],
            "got 3 at index": [(X[0], 0), (X[1], 3)],
            "labels for all inputs or none, got both by 1": [(X[0], 0), X[1]],
            "for all inputs or none, got both by 1": [X[0], (X[1], 0)],
            "at least one input, got an empty dataset": [],
        }
        for message, items in cases.items():
            with pytest.raises((TypeError, ValueError), match=message):
                sample(tmp_path / str(len(message)), x=Items(items), labels=None)

    @pytest.mark.parametrize("labelled_first", [True, False])
    def test_labels_that_only_some_parts_have_are_not_lost(self, tmp_path, labelled_first):
        items = [(x, 0) if (i < 8) == labelled_first else x for i, x in enumerate(X)]
        for parts in (1, 2, N):
            folder = tmp_path / str(parts)
            with pytest.raises(ValueError, match="labels for all inputs or none, got both by 8"):
                sample(folder, x=Items(items), labels=None, keep="scores", parts=parts)

    def test_arrays_that_do_not_fit_are_refused(self, tmp_path):
        for options, message in (
            ({"x": X[0], "labels": None}, r"`x` must have shape \(n, ...\) and not be empty"),
            ({"x": X[:0], "labels": None}, r"`x` must have shape \(n, ...\) and not be empty"),
            ({"labels": Y[:3]}, r"`labels` must have shape \(14,\), got \(3,\)"),
            ({"labels": Y[:, None]}, r"`labels` must have shape \(14,\), got \(14, 1\)"),
        ):
            with pytest.raises(ValueError, match=message):
                sample(tmp_path / "run", **options)
        with pytest.raises(TypeError, match="`key` must be None with an array of inputs, got 'x'"):
            sample(tmp_path / "run", key="x")
        assert not (tmp_path / "run").exists()

    def test_loaders_in_another_order_are_refused(self, tmp_path):
        collated = torch.utils.data.DataLoader(X, collate_fn=torch.stack)
        with pytest.raises(ValueError, match="`x` must be a loader with the default collate_fn"):
            sample(tmp_path / "run", x=collated, labels=None)
        loader = torch.utils.data.DataLoader(X, shuffle=True)
        with pytest.raises(ValueError, match="RandomSampler"):
            sample(tmp_path / "run", x=loader, labels=None)
        with pytest.raises(TypeError, match="`x` must be"):
            sample(tmp_path / "run", x=[[0.0]], labels=None)
        assert not (tmp_path / "run").exists()


class Items:
    """A dataset of these items."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def rule_of(alpha, m=M, dtype=np.float32, **options):
    """Return a rule whose tau depends on alpha."""
    scores = np.random.default_rng(0).random((60, m), dtype=np.float32).astype(dtype)
    return quiet(BinCP(certify(NOISE, balls.L2(0.01)), alpha=alpha, **options).calibrate, scores)


class TestGrid:
    @pytest.mark.parametrize("m", [1, 2, 7, 16, 64, 100, 257, 1009, 4096])
    @pytest.mark.parametrize("batch_size", [1, 8, 31, 256])
    def test_batches_are_the_largest_that_use_nearly_all_rows(self, m, batch_size):
        def used(pieces):
            draws = -(-m // pieces)
            return (batch_size // draws) * m / (pieces * batch_size)

        grid = Grid.of(m, batch_size)
        assert 1 <= grid.inputs * grid.draws <= batch_size
        pieces = -(-m // grid.draws)
        fewer = [p for p in range(1, m + 1) if -(-m // p) > grid.draws and used(p) >= 0.97]
        assert used(pieces) >= 0.97 or any(
            -(-m // p) == grid.draws and used(p) >= 0.97 for p in range(1, m + 1)
        )
        assert fewer == []

    @pytest.mark.parametrize("parts", [1, 2, 3, 8, 64])
    def test_parts_tile_the_run_by_whole_batches(self, parts):
        grid = Grid(2, 3)
        layout = Layout.cut(11, 10, grid, parts)
        assert layout.n_parts <= parts
        seen = np.zeros((11, 10), int)
        for number in range(layout.n_parts):
            where = layout.rectangle(number)
            assert where.first_input % 2 == where.first_draw % 3 == 0
            for inputs, draws in Cells(grid, where.shape).batches(6):
                seen[where.first_input + inputs, where.first_draw + draws] += 1
        assert (seen == 1).all()


class TestBytes:
    @pytest.mark.parametrize("keep", ["label scores", "scores", "votes"])
    def test_any_parts_and_workers_give_the_same_bytes(self, tmp_path, keep):
        expected = sample(tmp_path / "1", parts=1, keep=keep).values()
        for parts, workers in ((2, 1), (8, 3), (64, 5)):
            path = tmp_path / str(parts)
            for i in reversed(range(workers)):
                run = sample(path, parts=parts, keep=keep, shard=(i, workers))
            assert run.missing() == []
            assert run.values().tobytes() == expected.tobytes()

    def test_other_numbers_of_workers_may_continue(self, tmp_path):
        expected = files(sample(tmp_path / "whole").path)
        for workers in (1, 2, 5):
            path = tmp_path / str(workers)
            assert sample(path, shard=(1, 3)).missing() != []
            for i in range(workers):
                sample(path, shard=(i, workers), parts=9)
            assert files(path) == expected

    @pytest.mark.parametrize("seed", [SEED, None])
    def test_three_processes_make_the_same_parts_at_once(self, tmp_path, seed):
        code = f"""
import sys, torch
from pathlib import Path
from run_tasks import sample
torch.set_num_threads({torch.get_num_threads()})
sample(Path(sys.argv[1]), seed={seed})
"""
        started = [
            subprocess.Popen(
                [sys.executable, "-c", code, str(tmp_path / "run")],
                cwd=HERE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
            for _ in range(3)
        ]
        assert [one.wait() for one in started] == [0, 0, 0]
        agreed = int(json.loads((tmp_path / "run" / "seed").read_text())["seed"])
        assert seed in (None, agreed)
        assert files(tmp_path / "run") == files(sample(tmp_path / "whole", seed=agreed).path)

    def test_a_complete_run_needs_no_forward_pass_and_no_seed(self, tmp_path):
        path = sample(tmp_path / "run").path
        (path / "seed").unlink()
        before = files(path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.nn.Linear, "forward", None)
            sample(path, seed=None)
        assert files(path) == before

    def test_a_drawn_seed_is_kept_secret_and_used_again(self, tmp_path):
        run = sample(tmp_path / "run", seed=None, shard=(0, 2))
        assert (run.path / "seed").stat().st_mode & 0o777 == 0o600
        seed = int(json.loads((run.path / "seed").read_text())["seed"])
        sample(run.path, seed=None)
        assert files(sample(tmp_path / "again", seed=seed).path) == files(run.path)
        other = sample(tmp_path / "other", seed=None)
        assert (other.values() != run.values()).any()


class TestKills:
    def test_at_some_operations_on_files(self, tmp_path):
        ended = process("run_killer.py", tmp_path, "operations", 7)
        assert ended.returncode == 0, ended.stderr
        assert int(ended.stdout) >= 10

    def test_at_some_random_moments(self, tmp_path):
        ended = process("run_killer.py", tmp_path, "random", 5)
        assert ended.returncode == 0, ended.stderr

    @pytest.mark.parametrize("rounds", [5, pytest.param(100, marks=pytest.mark.slow)])
    def test_beside_other_processes_and_damaged_parts(self, tmp_path, rounds):
        ended = process("run_killer.py", tmp_path, "race", rounds)
        assert ended.returncode == 0, ended.stderr
        assert int(ended.stdout) == rounds

    @pytest.mark.slow
    def test_at_every_operation_on_files(self, tmp_path):
        ended = process("run_killer.py", tmp_path, "operations", 1)
        assert ended.returncode == 0, ended.stderr
        assert int(ended.stdout) >= 100

    @pytest.mark.slow
    def test_at_a_thousand_random_moments(self, tmp_path):
        ended = process("run_killer.py", tmp_path, "random", 334)
        assert ended.returncode == 0, ended.stderr
        assert int(ended.stdout) >= 1000


class TestDamage:
    def test_every_bit_of_a_manifest_counts(self, tmp_path):
        run = sample(tmp_path / "run")
        path = run.path / "manifest.json"
        data = path.read_bytes()
        for bit in range(8 * len(data)):
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            path.write_bytes(flipped)
            with pytest.raises(ValueError, match="damaged"):
                bincp.sampling.open(run.path)
        for other in (b"", bytes(len(data)), data[:-1], data + b"\n"):
            path.write_bytes(other)
            before = files(run.path)
            with pytest.raises(ValueError, match="damaged"):
                sample(run.path)
            assert files(run.path) == before

    def test_every_byte_of_a_part_counts_and_damaged_parts_are_made_again(self, tmp_path):
        run = sample(tmp_path / "run")
        expected = files(run.path)
        path = run.path / "00002-of-00004.npz"
        data = path.read_bytes()
        for at in range(0, len(data), 3):
            flipped = bytearray(data)
            flipped[at] ^= 1 << at % 8
            path.write_bytes(flipped)
            with pytest.raises(ValueError, match=r"00002-of-00004\.npz: damaged"):
                run.values()
        for other in (b"", bytes(len(data)), data[:-1], data + b"0", bytes(flipped)):
            path.write_bytes(other)
            sample(run.path)
            assert files(run.path) == expected

    def test_a_missing_part_is_named_and_made_again(self, tmp_path):
        run = sample(tmp_path / "run")
        expected = files(run.path)
        (run.path / "00001-of-00004.npz").unlink()
        assert run.missing() == ["00001-of-00004.npz"]
        with pytest.raises(FileNotFoundError, match=r"00001-of-00004\.npz"):
            run.values()
        sample(run.path)
        assert files(run.path) == expected

    def test_a_run_is_found_from_another_folder_and_missed_where_it_was(
        self, tmp_path, monkeypatch
    ):
        expected = sample(tmp_path / "run").values()
        monkeypatch.chdir(tmp_path)
        run = bincp.sampling.open("run")
        (tmp_path / "below").mkdir()
        monkeypatch.chdir(tmp_path / "below")
        np.testing.assert_array_equal(run.values(), expected)
        assert run.missing() == []
        os.rename(tmp_path / "run", tmp_path / "moved")
        with pytest.raises(FileNotFoundError, match="its folder was moved, renamed or removed"):
            run.values()
        np.testing.assert_array_equal(bincp.sampling.open("../moved").values(), expected)

    def test_a_part_of_another_run_is_refused_and_not_replaced(self, tmp_path):
        run, other = sample(tmp_path / "run"), sample(tmp_path / "other", seed=1)
        shutil.copy(other.path / "00001-of-00004.npz", run.path)
        before = files(run.path)
        with pytest.raises(ValueError, match="part of another one"):
            sample(run.path)
        assert files(run.path) == before

    def test_a_full_disk_names_the_part_and_leaves_the_rest(self, tmp_path, monkeypatch):
        expected = files(sample(tmp_path / "whole").path)
        fsync, calls = os.fsync, []

        def full(descriptor):
            calls.append(descriptor)
            if len(calls) == 8:
                raise OSError(errno.ENOSPC, "No space left on device")
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=r"No space left on device: .*-of-00004.npz") as error:
            sample(tmp_path / "run")
        assert error.value.errno == errno.ENOSPC
        there = files(tmp_path / "run")
        assert 2 < len(there) < len(expected)
        assert there.items() <= expected.items()
        sample(tmp_path / "run")
        assert files(tmp_path / "run") == expected

    @pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
    def test_disks_without_links_do(self, tmp_path, monkeypatch, number):
        expected = files(sample(tmp_path / "whole").path)

        def link(*paths):
            raise OSError(number, "no links here")

        monkeypatch.setattr(os, "link", link)
        assert files(sample(tmp_path / "run").path) == expected

    def test_leftovers_of_others_are_removed_with_the_file_that_they_were_to_become(self, tmp_path):
        run = sample(tmp_path / "run", shard=(0, 2))
        names = ["manifest.json", "seed", "00000-of-00004.npz", "00001-of-00004.npz"]
        for name in names:
            (run.path / f".{name}.0123.tmp").write_bytes(b"half")
        sample(run.path, shard=(0, 2))
        assert [p.name for p in run.path.glob(".*")] == [".00001-of-00004.npz.0123.tmp"]
        sample(run.path)
        assert list(run.path.glob(".*")) == []

    def test_leftovers_that_may_not_be_removed_do_no_harm(self, tmp_path, monkeypatch):
        """The folder is read-only or another user's, or the file is open on Windows."""
        expected = files(sample(tmp_path / "whole").path)
        run = sample(tmp_path / "run", shard=(0, 2))
        (run.path / ".seed.0123.tmp").write_bytes(b"half")
        (run.path / ".00001-of-00004.npz.0123.tmp").write_bytes(b"half")
        unlink = os.unlink

        def denied(path, *options, **more):
            if "0123" in str(path):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            unlink(path, *options, **more)

        monkeypatch.setattr(os, "unlink", denied)
        for _ in range(2):  # while it is made, and once it is complete
            assert sample(run.path).missing() == []
        assert {name: files(run.path)[name] for name in expected} == expected

    def test_a_writer_whose_file_was_removed_sees_that_the_part_is_there(self, tmp_path):
        path = tmp_path / "file"

        def write(stream):
            stream.write(b"ours")
            path.write_bytes(b"theirs")
            _publish.remove_leftovers(tmp_path, Path.exists)

        _publish.publish(path, write, Path.exists)
        assert path.read_bytes() == b"theirs"
        assert list(tmp_path.iterdir()) == [path]


OTHERS = {
    "n_samples": {"n_samples": M + 1},
    "phase": {"phase": "tuning"},
    "smoothing": {"smoothing": Gaussian(0.25)},
    "score": {"score": "aps"},
    "first_id": {"first_id": 1},
    "first_draw": {"first_draw": 1},
    "batch": {"batch_size": 9},
    "keep": {"keep": "scores"},
    "model": {"model": torch.nn.Linear(4, K)},
    "inputs_digest": {"x": X.flip(0)},
    "n_inputs": {"x": X[1:], "labels": Y[1:]},
    "input_dtype": {"x": X.double(), "model": MODEL.double()},
    "labels": {"labels": None, "keep": "scores"},
}
MODEL.float()


class TestRefusals:
    @pytest.mark.parametrize("name", OTHERS)
    def test_other_arguments_are_named_with_both_values(self, tmp_path, name):
        run = sample(tmp_path / "run", shard=(0, 2))
        before = files(run.path)
        given = dict(OTHERS[name])
        if name == "input_dtype":
            torch.manual_seed(0)
            given["model"] = torch.nn.Linear(4, K).double()
        with pytest.raises(
            ValueError, match=rf"begun with other arguments: .*`{name}` was .*, got"
        ):
            sample(run.path, **given)
        assert files(run.path) == before

    def test_the_identity_is_a_copy(self, tmp_path):
        own = sample(tmp_path / "run")
        own.identity["smoothing"]["sigma"] = (1.0).hex()
        assert own.identity["smoothing"]["sigma"] == (0.5).hex()

    def test_another_precision_is_refused(self, tmp_path):
        run = sample(tmp_path / "run", shard=(0, 2))
        with torch.autocast("cpu", torch.bfloat16), pytest.raises(ValueError, match="bfloat16"):
            sample(run.path)

    @pytest.mark.parametrize("seed", [0, 2**63, 2**64 - 1])
    def test_another_seed_is_refused(self, tmp_path, seed):
        run = sample(tmp_path / "run", shard=(0, 2))
        before = files(run.path)
        with pytest.raises(ValueError, match="`seed` must be the one"):
            sample(run.path, seed=seed)
        assert files(run.path) == before
        (run.path / "seed").unlink()
        with pytest.raises(ValueError, match="`seed` must be given to continue"):
            sample(run.path, seed=None)
        assert sample(run.path).missing() == []

    def test_inputs_that_are_exchanged_are_seen_by_the_parts(self, tmp_path):
        n = 40
        x = torch.linspace(-1, 1, 4 * n).reshape(n, 4)
        options = {"labels": np.zeros(n, int), "parts": 4}
        run = sample(tmp_path / "run", x=x, shard=(0, 2), **options)
        other = x.clone()
        other[[0 + 1, 1 + 3]] = other[[1 + 3, 0 + 1]]
        assert _data.probe(_data.data_of(x, None)) == _data.probe(_data.data_of(other, None))
        before = files(run.path)
        with pytest.raises(ValueError, match="at position 1"):
            sample(run.path, x=other, **options)
        assert files(run.path) == before
        run = sample(run.path, x=other, check_inputs=False, **options)
        with pytest.raises(ValueError, match="at position 1"):
            run.verify(other, options["labels"])
        run.verify(x, options["labels"])

    def test_a_folder_of_something_else_is_refused(self, tmp_path):
        (tmp_path / "notes.txt").write_text("mine")
        with pytest.raises(ValueError, match=r"notes\.txt"):
            sample(tmp_path)
        assert list(files(tmp_path)) == ["notes.txt"]

    def test_functions_need_names(self, tmp_path):
        with pytest.raises(ValueError, match="`model_id` must name"):
            sample(tmp_path / "run", model=coordinates)
        with pytest.raises(ValueError, match="`score_id` must name"):
            sample(tmp_path / "run", score=lambda logits: logits)
        with pytest.raises(ValueError, match="`score_id` must be None for the score 'tps'"):
            sample(tmp_path / "run", score="tps", score_id="tps")
        with pytest.raises(TypeError, match="`model_id` must be a str, got 1"):
            sample(tmp_path / "run", model_id=1)
        assert not (tmp_path / "run").exists()

    def test_what_is_kept_must_be_there_to_keep(self, tmp_path):
        for options, message in (
            ({"keep": "all"}, "`keep` must be one of 'label scores', 'scores', .* got 'all'"),
            ({"keep": "label scores", "labels": None}, "`labels` must be given with keep='label"),
            ({"keep": "counts", "rules": []}, "`rules` must hold at least one rule, got none"),
            ({"keep": "counts"}, "`rules` must be given with keep='counts' .* got no rules"),
            ({"keep": "scores", "rules": rule_of(0.1)}, "got rules with keep='scores'"),
            (
                {"rules": BinCP(certify(NOISE, balls.L2(0.01)))},
                "`rules` must be calibrated on sampled scores",
            ),
            (
                {"rules": [rule_of(0.1), rule_of(0.1, dtype=np.float64)]},
                "`rules` must be for scores of one dtype, got float32 and float64",
            ),
            ({"rules": rule_of(0.1, passes="auto"), "keep": "counts"}, "got one that stops early"),
        ):
            with pytest.raises(ValueError, match=message):
                sample(tmp_path / "run", **options)
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize("seed", [-1, 2**64, 1.0])
    def test_seeds_out_of_range_are_refused(self, tmp_path, seed):
        with pytest.raises((TypeError, ValueError), match="`seed` must be"):
            sample(tmp_path / "run", seed=seed)

    def test_another_seed_than_the_one_that_was_agreed_on_is_refused(self, tmp_path):
        _seed.agreed_seed(made(tmp_path / "run"), 3)
        with pytest.raises(ValueError, match=r"`seed` must be the one in .* begun with"):
            _seed.agreed_seed(tmp_path / "run", 4)

    def test_seeds_keep_their_last_bit(self, tmp_path):
        for seed in (2**53, 2**53 + 1, 2**64 - 1, 2**32, 0):
            assert _seed.agreed_seed(made(tmp_path / str(seed)), seed) == seed
            assert _seed.agreed_seed(tmp_path / str(seed), None) == seed


def made(path):
    path.mkdir()
    return path


class TestRules:
    def test_rules_calibrate_and_predict_on_runs_as_on_their_scores(self, tmp_path):
        n = 60
        torch.manual_seed(1)
        x, y = torch.randn(n, 4), np.arange(n) % K
        calibration = sample(tmp_path / "c", x=x, labels=y)
        test = sample(tmp_path / "t", phase="test", keep="scores")
        certificate = certify(NOISE, balls.L2(0.01))
        for made_rule in (
            lambda: BinCP(certificate, alpha=0.2),
            lambda: MondrianBinCP(certificate, n_classes=K, alpha=0.2),
        ):
            rule = quiet(made_rule().calibrate, calibration)
            given = (
                (calibration.values(), y)
                if isinstance(rule, MondrianBinCP)
                else (calibration.values(),)
            )
            again = quiet(made_rule().calibrate, *given)
            assert np.array_equal(rule.tau_, again.tau_)
            sets = again.predict_set(test.values())
            assert np.array_equal(rule.predict_set(test), sets)
            counts = sample(tmp_path / type(rule).__name__, phase="test", rules=rule)
            assert np.array_equal(rule.predict_set(counts), sets)

    def test_a_run_tells_where_it_was_made_and_reads_only_its_own_inputs(self, tmp_path):
        run = sample(tmp_path / "run", keep="scores", labels=None)
        (place,) = run.environments()
        assert place["torch"] == torch.__version__
        with pytest.raises(ValueError, match=f"`x` must hold {N} inputs, got {N - 1}"):
            run.verify(X[:-1])
        for path in (3, None):
            with pytest.raises(TypeError, match="`path` must be a str or path-like, got"):
                bincp.sampling.open(path)
        certificate = certify(NOISE, balls.L2(0.01))
        with pytest.raises(ValueError, match=r"must keep the scores of its labels.* has no labels"):
            BinCP(certificate).calibrate(run)
        votes = sample(tmp_path / "votes", keep="votes")
        with pytest.raises(ValueError, match="must keep the scores of its labels, got"):
            BinCP(certificate).calibrate(votes)
        labelled = sample(tmp_path / "all", keep="scores")
        own = sample(tmp_path / "own")
        assert quiet(BinCP(certificate).calibrate, labelled).tau_ == (
            quiet(BinCP(certificate).calibrate, own).tau_
        )
        rule = rule_of(0.1, dtype=np.float64)
        with pytest.raises(ValueError, match="must have scores of the dtype float64 that the rule"):
            rule.predict_set(sample(tmp_path / "test", keep="scores", phase="test"))

    def test_runs_that_cannot_serve_are_refused(self, tmp_path):
        calibration = sample(tmp_path / "c")
        test = sample(tmp_path / "t", phase="test", keep="scores")
        rule = BinCP(certify(NOISE, balls.L2(0.01)), alpha=0.2)
        with pytest.raises(ValueError, match="phase 'test'"):
            rule.calibrate(test)
        quiet(rule.calibrate, calibration)
        with pytest.raises(ValueError, match="phase 'calibration'"):
            rule.predict_set(calibration)
        other = BinCP(certify(Gaussian(0.25), balls.L2(0.01)), alpha=0.2)
        noise = r"must have the noise of the certificate, .*'sigma': 0\.25.*got .*'sigma': 0\.5"
        with pytest.raises(ValueError, match=noise):
            other.calibrate(calibration)
        with pytest.raises(ValueError, match="`n_classes` must be the K = 3"):
            rule.calibrate(calibration, n_classes=4)
        early = rule_of(0.3, m=64, passes="auto")
        assert early.boundaries_ is not None
        with pytest.raises(ValueError, match="stops early"):
            sample(tmp_path / "e", phase="test", rules=[early])

    def test_rules_for_other_noise_or_another_model_are_refused_at_once(self, tmp_path):
        points = sample(tmp_path / "own", keep="label scores")
        rule = quiet(BinCP(certify(NOISE, balls.L2(0.1)), alpha="0.3").calibrate, points)
        options = {"phase": "test", "rules": rule}
        for model, noise, message in (
            (MODEL, Gaussian(0.25), "`rules` must be for the noise of the run"),
            (torch.nn.Linear(X.shape[1], K), NOISE, "as in calibration: `model` was"),
        ):
            with pytest.raises(ValueError, match=message):
                bincp.sampling.run(tmp_path / "run", model, X, noise, M, **options)
        assert not (tmp_path / "run").exists()

    def test_scores_of_another_model_are_refused_by_every_rule_of_a_run(self, tmp_path):
        points = sample(
            tmp_path / "c", keep="scores", x=torch.randn(60, 4), labels=np.arange(60) % K
        )
        same, other = (
            sample(tmp_path / name, model=model, phase="test", keep="scores")
            for name, model in (("same", MODEL), ("other", torch.nn.Linear(X.shape[1], K)))
        )
        certificate = certify(NOISE, balls.L2(0.01))
        risk = RobustRiskControl(certificate, alpha=0.3)
        quiet(risk.calibrate, points, np.eye(K, dtype=bool)[np.arange(60) % K])
        risk.save(tmp_path / "risk.json")
        swept = quiet(bincp.sweep, certificate, points, alpha=[0.2, 0.3])
        loaded = RobustRiskControl.load(tmp_path / "risk.json")
        rules = [risk, loaded, *swept.rules]
        for rule in rules:
            assert rule.provenance_ == points.provenance()
            assert np.array_equal(rule.predict_set(same), rule.predict_set(same.values()))
            with pytest.raises(ValueError, match="as in calibration: `model` was"):
                rule.predict_set(other)
        assert quiet(bincp.sweep, certificate, points, same).rows[0].n_test == N
        with pytest.raises(ValueError, match="as in calibration: `model` was"):
            quiet(bincp.sweep, certificate, points, other)

    def test_risk_is_controlled_on_runs_as_on_their_scores(self, tmp_path):
        calibration = sample(tmp_path / "c", keep="scores", x=torch.randn(60, 4), labels=None)
        test = sample(tmp_path / "t", phase="test", keep="scores")
        true = np.arange(60 * K).reshape(60, K) % 4 > 0
        certificate = certify(NOISE, balls.L2(0.01))
        rule, again = (RobustRiskControl(certificate, alpha=0.3) for _ in range(2))
        quiet(rule.calibrate, calibration, true)
        quiet(again.calibrate, calibration.values(), true)
        assert rule.tau_ == again.tau_
        sets = again.predict_set(test.values())
        assert np.array_equal(rule.predict_set(test), sets)
        counts = sample(tmp_path / "counts", phase="test", rules=rule)
        assert np.array_equal(rule.predict_set(counts), sets)
        with pytest.raises(ValueError, match="phase 'test'"):
            rule.calibrate(test, true)
        with pytest.raises(ValueError, match="must keep all scores"):
            rule.calibrate(sample(tmp_path / "labels"), true)

    def test_metrics_take_the_labels_of_runs(self, tmp_path):
        test = sample(tmp_path / "t", phase="test", keep="scores")
        sets = np.arange(N * K).reshape(N, K) % 2 > 0
        for measure in (metrics.coverage, metrics.class_conditional_coverage):
            assert np.array_equal(measure(sets, test), measure(sets, Y))
        bare = sample(tmp_path / "bare", phase="test", labels=None)
        with pytest.raises(ValueError, match="a run that has them"):
            metrics.coverage(sets, bare)


class TestDecisions:
    EARLY = staticmethod(lambda: rule_of(0.3, m=64, passes="auto"))

    def sample(self, path, rule, **options):
        given = {"phase": "test", "keep": "decisions", "rules": rule, "n_samples": 64}
        given |= {"model": coordinates, "model_id": "coordinates", "batch_size": 1} | options
        return sample(path, **given)

    @pytest.mark.parametrize("alpha", [0.2, 0.4])
    @pytest.mark.parametrize("passes", ["auto", None])
    def test_decisions_are_those_of_each_label_on_its_scores_in_order(
        self, tmp_path, alpha, passes
    ):
        rule = rule_of(alpha, m=64, passes=passes)
        run = self.sample(tmp_path / "d", rule)
        scores = self.sample(tmp_path / "s", None, keep="scores").values()
        assert np.array_equal(rule.predict_set(run), rule.predict_set(scores))
        test = rule.boundaries_ or SequentialRule.curtailed(rule.min_count_, 64)
        values = run.values()
        for i in range(N):
            exits = []
            for y in range(K):
                hits = np.cumsum(scores[i, y] >= np.float32(rule.tau_))
                ends = (hits >= test.accept[1:]) | (hits <= test.reject[1:])
                exits.append(int(np.argmax(ends)))
                assert values["counts"][i, y] == hits[exits[-1]]
                assert values["sets"][i, y] == (hits[exits[-1]] >= test.accept[exits[-1] + 1])
            assert max(exits) + 1 <= values["draws"][i] <= 64

    def test_bytes_do_not_depend_on_parts_or_workers(self, tmp_path):
        rule, options = self.EARLY(), {"model": MODEL, "model_id": None}
        whole = self.sample(tmp_path / "whole", rule, parts=1, **options)
        for parts in (2, 64):
            for worker in (1, 0):
                path = tmp_path / str(parts)
                self.sample(path, rule, parts=parts, shard=(worker, 2), **options)
            cut = bincp.sampling.open(path)
            assert cut.n_parts == 2
            assert cut.values().tobytes() == whole.values().tobytes()
        before = files(path)
        next(path.glob("00001-of-*.npz")).unlink()
        self.sample(path, rule, **options)
        assert files(path) == before

    def test_other_rules_are_refused(self, tmp_path):
        rule, other = self.EARLY(), rule_of(0.2, m=64, passes="auto")
        run = self.sample(tmp_path / "d", rule)
        for refused in (other, rule_of(0.3, m=64)):
            with pytest.raises(ValueError, match="the decisions of one rule"):
                refused.predict_set(run)
        before = files(run.path)
        with pytest.raises(ValueError, match="`keep` was"):
            self.sample(run.path, other)
        assert files(run.path) == before
        with pytest.raises(ValueError, match="must keep scores or counts"):
            run.counts(0.5)

    def test_what_cannot_be_decided_is_refused(self, tmp_path):
        rule = self.EARLY()
        for options, error in (
            ({"n_samples": 63}, "the n_samples = 64 that"),
            ({"phase": "calibration"}, "`phase` must not be 'calibration'"),
            ({"rules": [rule, rule]}, "must be one rule"),
            ({"rules": None}, "`rules` must be given with keep='counts' or 'decisions'"),
            ({"x": X.double()}, "the dtype = float32 that"),
        ):
            with pytest.raises(ValueError, match=error):
                self.sample(tmp_path / "d", rule, **options)
            assert not list(tmp_path.glob("d/*.npz"))
            shutil.rmtree(tmp_path / "d", ignore_errors=True)

    def test_ids_join_and_draws_do_not(self, tmp_path):
        rule = self.EARLY()
        pieces = [
            self.sample(
                tmp_path / f"{ids.start}", rule, x=X[ids], labels=Y[ids], first_id=ids.start
            )
            for ids in (slice(8, N), slice(0, 8))
        ]
        merged = merge(tmp_path / "merged", pieces)
        expected = self.sample(tmp_path / "whole", rule)
        assert np.array_equal(merged.values(), expected.values())
        more = self.sample(tmp_path / "more", rule, first_draw=64)
        with pytest.raises(ValueError, match="must hold all draws of their inputs"):
            merge(tmp_path / "both", [expected, more])
        assert not (tmp_path / "both").exists()


class TestStreams:
    @pytest.fixture(autouse=True)
    def _small_parts(self, monkeypatch):
        monkeypatch.setattr(_stream, "_INPUTS", 4)

    def sample(self, path, batches, **options):
        return sample(path, x=iter(batches), labels=None, parts=None, **options)

    def batches(self, *ends, x=X):
        for start, end in zip((0, *ends), (*ends, N), strict=True):
            yield x[start:end], Y[start:end]

    def test_values_are_those_of_inputs_with_a_length(self, tmp_path):
        whole = sample(tmp_path / "whole")
        run = self.sample(tmp_path / "stream", self.batches(3, 9))
        assert np.array_equal(run.values(), whole.values())
        assert np.array_equal(run.labels(), Y)
        again = bincp.sampling.open(run.path)
        assert (again.n_inputs, again.n_parts, again.missing()) == (N, 4, [])
        again.verify(X, Y)
        assert sorted(p.name for p in run.path.glob("*.npz")) == [
            *(f"0000{i}.npz" for i in range(4)), "end.npz",
        ]  # fmt: skip

    def test_files_do_not_depend_on_the_batches(self, tmp_path):
        expected = files(self.sample(tmp_path / "one", self.batches()).path)
        for i, ends in enumerate([(1, 2, 3, 4, 5), (4, 8, 12), (13,), (0, 0, 7), range(1, N)]):
            assert files(self.sample(tmp_path / str(i), self.batches(*ends)).path) == expected

    def test_a_loader_of_an_iterable_dataset_is_a_stream(self, tmp_path):
        class Stream(torch.utils.data.IterableDataset):
            def __iter__(self):
                yield from zip(X, Y.tolist(), strict=True)

        loader = torch.utils.data.DataLoader(Stream(), batch_size=5)
        run = sample(tmp_path / "run", x=loader, labels=None, parts=None)
        assert files(run.path) == files(self.sample(tmp_path / "other", self.batches(3)).path)

    @pytest.mark.parametrize("killed_after", range(1, 7))
    def test_a_stream_that_broke_is_read_again_from_its_start(self, tmp_path, killed_after):
        expected = files(self.sample(tmp_path / "whole", self.batches()).path)

        def broken():
            for i, batch in enumerate(self.batches(*range(2, N, 2))):
                if i == killed_after:
                    raise KeyboardInterrupt
                yield batch

        with pytest.raises(KeyboardInterrupt):
            self.sample(tmp_path / "run", broken())
        with pytest.raises(FileNotFoundError, match="not read to their end"):
            bincp.sampling.open(tmp_path / "run")
        self.sample(tmp_path / "run", self.batches(5))
        assert files(tmp_path / "run") == expected

    def test_damaged_files_are_made_again(self, tmp_path):
        run = self.sample(tmp_path / "run", self.batches())
        expected = files(run.path)
        for name in ("00001.npz", "end.npz"):
            data = bytearray((run.path / name).read_bytes())
            data[len(data) // 2] ^= 1
            (run.path / name).write_bytes(data)
            with pytest.raises(ValueError, match="damaged"):
                bincp.sampling.open(run.path).values()
            self.sample(run.path, self.batches())
            assert files(run.path) == expected

    def test_other_streams_are_refused_and_change_nothing(self, tmp_path):
        run = self.sample(tmp_path / "run", self.batches())
        before, other = files(run.path), X.clone()
        other[6] += 1
        more = [*self.batches(), (X[:1], Y[:1])]
        for batches, error in (
            (self.batches(x=other), "another one at position 6"),
            ([(X[:12], Y[:12])], "the 14 inputs of the run .* got 12"),
            ([(X[:13], Y[:13])], "got 1 from position 12 on, where 00003.npz has 2"),
            (more, "the 14 inputs of the run .* got more"),
            ([(X, None)], "`labels` was True"),
        ):
            with pytest.raises((ValueError, TypeError), match=error):
                self.sample(run.path, batches)
            assert files(run.path) == before
        (run.path / "end.npz").unlink()
        with pytest.raises(ValueError, match="got 3 from position 12 on"):
            self.sample(run.path, more)

    def test_loaders_that_repeat_or_lose_inputs_are_refused(self, tmp_path):
        class Items(torch.utils.data.IterableDataset):
            def __iter__(self):
                return iter(X)

        for options, message in (
            ({"num_workers": 2}, "at most one worker"),  # each yields all of it
            ({"drop_last": True}, "which loses inputs"),
        ):
            loader = torch.utils.data.DataLoader(Items(), batch_size=4, **options)
            with pytest.raises(ValueError, match=message):
                bincp.sampling.run(tmp_path / "run", MODEL, loader, NOISE, M, phase="test")
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize("parts", [None, 3, 14])
    def test_streams_are_verified_as_they_come(self, tmp_path, parts):
        """Against runs of a stream, and of an array whose parts share ids or not."""
        if parts is None:
            run = self.sample(tmp_path / "run", self.batches(3))
        else:
            run = sample(tmp_path / "run", parts=parts, batch_size=2)
        for ends in ((), (1, 2, 9), (0, 13), range(1, N)):
            run.verify(self.batches(*ends))
        run.verify(iter([{"a": X[:5], "b": Y[:5]}, {"a": X[5:], "b": Y[5:]}]), key=("a", "b"))
        for at in (0, 6, N - 1):
            other, labels = X.clone(), Y.copy()
            other[at, 1] += 1
            labels[at] += 1
            for x, y in ((other, Y), (X, labels)):
                with pytest.raises(ValueError, match=f"another one at position {at}$"):
                    run.verify(iter([(x[:5], y[:5]), (x[5:], y[5:])]))
        with pytest.raises(ValueError, match=r"another one at position 0$"):
            run.verify(iter([X]))  # without labels
        for n in (1, 12, 13):
            with pytest.raises(ValueError, match=f"`x` must yield 14 inputs, got {n}$"):
                run.verify(iter([(X[:n], Y[:n])]))
        for more in (1, 20):
            with pytest.raises(ValueError, match=r"`x` must yield 14 inputs, got more$"):
                run.verify(itertools.chain(self.batches(5), [(X[:more], Y[:more])] * more))
        endless = itertools.chain(self.batches(5), itertools.repeat((X[:1], Y[:1])))
        with pytest.raises(ValueError, match="got more"):
            run.verify(endless)
        with pytest.raises(TypeError, match="`labels` must be given with an array"):
            run.verify(iter([X]), Y)
        with pytest.raises(ValueError, match="at least one batch"):
            run.verify(iter([]))
        next(run.path.glob("00000*.npz")).unlink()
        with pytest.raises(FileNotFoundError, match="are missing"):
            run.verify(self.batches())

    def test_arrays_and_tensors_of_one_dtype_are_one_stream(self, tmp_path):
        batches = [(X[:5], Y[:5]), (X[5:].numpy(), torch.from_numpy(Y[5:]))]
        run = self.sample(tmp_path / "run", batches)
        assert files(run.path) == files(self.sample(tmp_path / "other", self.batches(3)).path)
        options = {"phase": "test", "seed": 1}
        found = sample_scores(coordinates, iter(batches), NOISE, M, **options)
        assert np.array_equal(found, sample_scores(coordinates, X, NOISE, M, **options))

    def test_what_cannot_be_a_stream_is_refused(self, tmp_path):
        for x, options, error in (
            (self.batches(), {"shard": (0, 2)}, "to be shared by 2 workers"),
            (self.batches(), {"parts": 4}, "`parts` must be None"),
            (iter([]), {}, "at least one batch"),
            (iter([X[:4], X[4:8].double()]), {"keep": "scores"}, "of one shape and dtype"),
            (iter([X[0]]), {}, "batches of shape"),
            (iter([(X[:2], Y[:3])]), {}, "one label for each input of a batch, .* in batch 0"),
            (iter([(X[:2], Y[:2]), X[2:4]]), {}, "labels for all inputs or none, .* position 2"),
            (iter([X[:2], X[2:4, :3]]), {}, r"got \(3,\), float32 at position 2 after \(4,\)"),
        ):
            with pytest.raises(ValueError, match=error):
                sample(tmp_path / "run", x=x, labels=None, **{"parts": None, **options})
            shutil.rmtree(tmp_path / "run", ignore_errors=True)
        with pytest.raises(TypeError, match="`labels` must be given with an array"):
            sample(tmp_path / "run", x=self.batches(), parts=None)


class TestMerging:
    def piece(self, path, ids, draws, **options):
        given = {"model": coordinates, "model_id": "coordinates", "keep": "scores"} | options
        return sample(
            path,
            x=X[ids],
            labels=Y[ids],
            first_id=ids.start,
            first_draw=draws.start,
            n_samples=draws.stop - draws.start,
            **given,
        )

    @pytest.mark.parametrize("keep", ["scores", "label scores", "votes"])
    def test_runs_that_tile_a_rectangle_are_one(self, tmp_path, keep):
        whole = self.piece(tmp_path / "whole", slice(0, N), slice(0, M), keep=keep)
        pieces = [
            self.piece(tmp_path / str(i), ids, draws, keep=keep, parts=3)
            for i, (ids, draws) in enumerate(
                [
                    (slice(5, N), slice(4, M)),
                    (slice(0, 5), slice(0, 2)),
                    (slice(5, N), slice(0, 4)),
                    (slice(0, 5), slice(2, M)),
                ]
            )
        ]
        merged = merge(tmp_path / "merged", pieces)
        assert np.array_equal(merged.values(), whole.values())
        assert np.array_equal(merged.labels(), Y)
        merged.verify(X, Y)
        before = files(merged.path)
        next(merged.path.glob("00001-of-*.npz")).unlink()
        assert files(merge(tmp_path / "merged", [p.path for p in pieces]).path) == before

    def test_a_merge_that_is_stopped_goes_on(self, tmp_path, monkeypatch):
        pieces = [
            self.piece(tmp_path / str(i), ids, slice(0, M), parts=3)
            for i, ids in enumerate([slice(0, 5), slice(5, N)])
        ]
        expected = files(merge(tmp_path / "whole", pieces).path)
        link, calls = os.link, []

        def stop(*paths):
            calls.append(paths)
            if len(calls) == 3:
                raise KeyboardInterrupt
            link(*paths)

        monkeypatch.setattr(os, "link", stop)
        with pytest.raises(KeyboardInterrupt):
            merge(tmp_path / "merged", pieces)
        assert len(bincp.sampling.open(tmp_path / "merged").missing()) > 0
        assert files(merge(tmp_path / "merged", pieces).path) == expected

    def test_what_is_not_one_rectangle_or_one_kind_is_refused(self, tmp_path):
        first = self.piece(tmp_path / "a", slice(0, 5), slice(0, M))
        cases = {
            "must not overlap": self.piece(tmp_path / "b", slice(4, N), slice(0, M)),
            "must leave no hole": self.piece(tmp_path / "c", slice(6, N), slice(0, M)),
            "no hole": self.piece(tmp_path / "d", slice(5, N), slice(0, M - 1)),
            "`seed` was": self.piece(tmp_path / "e", slice(5, N), slice(0, M), seed=3),
            "`score` was": self.piece(tmp_path / "f", slice(5, N), slice(0, M), score="aps"),
        }
        for message, other in cases.items():
            with pytest.raises(ValueError, match=message):
                merge(tmp_path / "merged", [first, other])
        with pytest.raises(ValueError, match="must not overlap"):
            merge(tmp_path / "merged", [first, first])
        incomplete = self.piece(tmp_path / "g", slice(5, N), slice(0, M), shard=(0, 2))
        with pytest.raises(FileNotFoundError, match="00001-of-"):
            merge(tmp_path / "merged", [first, incomplete])
        assert not (tmp_path / "merged").exists()

    def test_draws_that_are_missing_in_the_middle_are_a_hole(self, tmp_path):
        pieces = [
            self.piece(tmp_path / str(draws.start), slice(0, N), draws)
            for draws in (slice(0, 2), slice(3, 4), slice(4, M))
        ]
        with pytest.raises(ValueError, match="must leave no hole, got none with id 0, draw 2"):
            merge(tmp_path / "merged", pieces)
        assert not (tmp_path / "merged").exists()

    def test_no_run_is_no_rectangle(self, tmp_path):
        with pytest.raises(ValueError, match="`runs` must hold at least one run, got none"):
            merge(tmp_path / "all", [])
        assert not (tmp_path / "all").exists()

    def test_one_run_is_no_sequence(self, tmp_path):
        own = sample(tmp_path / "own")
        for one in (own, str(own.path), own.path):
            with pytest.raises(TypeError, match="`runs` must be a sequence of runs or paths"):
                merge(tmp_path / "all", one)

    def test_other_inputs_at_the_same_ids_are_refused(self, tmp_path):
        first = self.piece(tmp_path / "a", slice(0, N), slice(0, 4))
        other = sample(
            tmp_path / "b", x=X.flip(0), keep="scores", first_draw=4, n_samples=2,
            model=coordinates, model_id="coordinates",
        )  # fmt: skip
        with pytest.raises(ValueError, match="at id 0"):
            merge(tmp_path / "merged", [first, other])
        assert not (tmp_path / "merged").exists()


class TestShards:
    @pytest.mark.parametrize(
        ("environment", "expected"),
        [
            ({}, (0, 1)),
            ({"RANK": "2", "WORLD_SIZE": "3", "SLURM_PROCID": "0"}, (2, 3)),
            ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, (0, 1)),
            ({"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "8"}, (3, 8)),
            (
                {"RANK": "1", "WORLD_SIZE": "2", "SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "8"},
                (1, 2),
            ),
        ],
    )
    def test_what_starts_processes_says_which_one_this_is(self, environment, expected):
        assert shard_of(None, environment) == expected
        assert shard_of((4, 7), environment) == (4, 7)

    def array(self, task, low, high, step, count):
        values = {"ID": task, "MIN": low, "MAX": high, "STEP": step, "COUNT": count}
        return {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in values.items()}

    def test_arrays_multiply(self):
        step = {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}
        found = [shard_of(None, self.array(task, 3, 9, 2, 4) | step) for task in (3, 5, 7, 9)]
        assert found == [(1, 8), (3, 8), (5, 8), (7, 8)]

    def test_arrays_with_holes_and_nonsense_are_refused(self):
        for array in (self.array(7, 3, 7, 1, 2), self.array(4, 3, 9, 2, 4)):
            with pytest.raises(ValueError, match="no holes"):
                shard_of(None, array)
        with pytest.raises(ValueError, match="RANK must be a number"):
            shard_of(None, {"RANK": "-1", "WORLD_SIZE": "2"})
        with pytest.raises(ValueError, match="RANK must be below"):
            shard_of(None, {"RANK": "2", "WORLD_SIZE": "2"})
        incomplete = self.array(3, 3, 9, 2, 4)
        del incomplete["SLURM_ARRAY_TASK_STEP"]
        with pytest.raises(ValueError, match="SLURM_ARRAY_TASK_STEP must be set as SLURM_ARRAY_TA"):
            shard_of(None, incomplete)
        for shard in ((0, 1, 2), [0, 1], "0/2", 0):
            with pytest.raises(TypeError, match=r"`shard` must be a pair \(i, N\), got"):
                shard_of(shard, {})

    def test_text(self):
        assert parse_shard("0/4") == (0, 4)
        for text in ("4/4", "1", "a/b", "0/0", "-1/2", "1/2/3"):
            with pytest.raises(ValueError, match="`shard"):
                parse_shard(text)


class TestFingerprints:
    def test_what_wraps_a_module_does_not_count(self):
        own = fingerprint(MODEL)
        assert fingerprint(torch.nn.DataParallel(MODEL)) == own
        assert fingerprint(torch.compile(MODEL, backend="eager")) == own
        parallel = torch.nn.DataParallel(MODEL)
        assert fingerprint(torch.compile(parallel, backend="eager")) == own
        assert fingerprint(torch.nn.Sequential(MODEL)) != own

    def test_a_module_without_its_weights_has_none(self):
        with pytest.raises(ValueError, match="must hold its weights, got weight on the device 'me"):
            fingerprint(torch.nn.Linear(2, 2, device="meta"))

    def test_weights_count_and_places_do_not(self, tmp_path):
        run = sample(tmp_path / "run", shard=(0, 2))
        wrapped = torch.nn.DataParallel(MODEL)
        MODEL.train().requires_grad_(False)
        try:
            assert sample(run.path, model=wrapped).missing() == []
        finally:
            MODEL.eval().requires_grad_(True)
        with torch.no_grad():
            weight = MODEL[0].weight
            before = weight[0, 0].clone()
            weight[0, 0] = torch.nextafter(before, torch.tensor(9.0))
        try:
            with pytest.raises(ValueError, match="`model` was"):
                sample(run.path)
        finally:
            with torch.no_grad():
                weight[0, 0] = before
