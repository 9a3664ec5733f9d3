"""A classifier that is saved, loaded elsewhere and asked again and again."""

import copy
import hashlib
import json
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import bincp  # noqa: E402
from bincp import noise  # noqa: E402
from bincp.balls import L1, L2, Ball  # noqa: E402
from bincp.errors import NotCalibratedError  # noqa: E402
from bincp.sampling import (  # noqa: E402
    NormalizedModel,
    RobustClassifier,
    RobustRegressor,
    count_scores,
    run,
    sample_scores,
)
from bincp.smoothing import Gaussian  # noqa: E402

D, K, M = 6, 4, 16
SCHEME, BALL = Gaussian(0.5), L2(0.1)
LARGE = (2**53, 2**53 + 1, 2**64 - 1, 2**32, 0)


def network(layers=2, k=K, seed=0):
    torch.manual_seed(seed)
    hidden = [torch.nn.Linear(D, D), torch.nn.ReLU()] * (layers - 1)
    return torch.nn.Sequential(*hidden, torch.nn.Linear(D, k))


def points(n=60):
    rng = np.random.default_rng(0)
    return rng.random((n, D), dtype=np.float32), np.arange(n) % K


X, Y = points()


def fitted(model=None, smoothing=SCHEME, ball=BALL, **options):
    options = {"alpha": 0.2, "n_samples": M, **options}
    classifier = RobustClassifier(network() if model is None else model, smoothing, ball, **options)
    return classifier.calibrate(X, Y)


class Recorder:
    """A model that keeps the rows that it sees."""

    def __init__(self):
        self.rows = []

    def __call__(self, x):
        self.rows.append(x.numpy().copy())
        return x[:, :K]

    def taken(self):
        rows, self.rows = np.concatenate(self.rows), []
        return rows


class TestSeeds:
    def test_calls_draw_noise_of_their_own_by_default(self):
        model = Recorder()
        ours = fitted(model)
        model.taken()
        rows, zeros = [], np.zeros((1, D), np.float32)
        for _ in range(3):
            ours.predict(zeros)
            rows.append(model.taken())
        assert len(np.unique(np.concatenate(rows), axis=0)) == sum(map(len, rows))

    def test_seed_and_ids_are_with_the_sets(self):
        model = Recorder()
        ours = fitted(model, passes=None)
        model.taken()
        zeros = np.zeros((3, D), np.float32)
        found = ours.predict(zeros, curtail=False)
        again = noise.draw(SCHEME, zeros, M, phase="test", indices=found.ids, seed=found.seed)
        np.testing.assert_array_equal(model.taken(), again.reshape(-1, D))
        assert found.ids.tolist() == [0, 1, 2]
        assert str(found.seed) not in repr(found)
        assert ours.predict(zeros).seed != found.seed

    @pytest.mark.parametrize(
        "copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
    )
    def test_copies_predict_without_a_seed_and_refuse_with_one(self, copied):
        free = copied(fitted())
        assert free.predict(X).seed != free.predict(X).seed
        ours = fitted(seed=5)
        ours.predict(X[:3])
        other = copied(ours)
        calls = (
            lambda: other.predict(X),
            lambda: other.predict_iter(X),
            lambda: other.calibrate(X, Y),
        )
        for call in calls:
            with pytest.raises(RuntimeError, match=r"must not draw in a copy.* call reseed\(\)"):
                call()
        with pytest.raises(ValueError, match=r"`first_id` must be beyond .* \(at least 60\)"):
            other.reseed(5)
        assert other.reseed() is other
        assert other.predict(X).seed not in (5, other.predict(X).seed)
        assert other.reseed(5, first_id=1000).predict(X[:2]).ids.tolist() == [1000, 1001]
        assert ours.predict(X[:2]).ids.tolist() == [3, 4]
        assert other.reseed(7).predict(X[:2]).ids.tolist() == [0, 1]
        with pytest.raises(RuntimeError, match="copy"):
            copied(other).predict(X)

    def test_a_change_of_parameters_hands_out_no_id_twice(self):
        ours = fitted(seed=5)
        ours.predict(X[:3])
        ours.set_params(alpha="0.3").calibrate(X, Y)
        assert ours.predict(X[:2]).ids.tolist() == [3, 4]
        ours.reseed(7, first_id=10).set_params(alpha="0.4").calibrate(X, Y)
        found = ours.predict(X[:2])
        assert (found.seed, found.ids.tolist()) == (7, [10, 11])
        found = ours.set_params(seed=8).calibrate(X, Y).predict(X[:2])
        assert (found.seed, found.ids.tolist()) == (8, [0, 1])
        found = ours.set_params(seed=7).calibrate(X, Y).predict(X[:2])
        assert (found.seed, found.ids.tolist()) == (7, [12, 13])
        assert ours.reseed(8).predict(X[:2]).ids.tolist() == [2, 3]

    def test_a_seed_that_comes_back_goes_on(self):
        ours = fitted(seed=5)
        ours.predict(X[:3])
        stream = ours.predict_iter(iter([X[:2]] * 2))
        next(stream)
        assert ours.reseed(6).predict(X[:2]).ids.tolist() == [0, 1]
        assert ours.reseed(5).predict(X[:2]).ids.tolist() == [5, 6]
        assert next(stream).ids.tolist() == [7, 8]
        with pytest.raises(ValueError, match=r"`first_id` must be in \[60, .* got 59"):
            ours.reseed(5, first_id=59)  # 60 calibration points have ids
        assert ours.reseed(5, first_id=60).predict(X[:2]).ids.tolist() == [60, 61]
        with pytest.raises(ValueError, match="at least 1000"):
            copy.copy(ours.reseed(5, first_id=1000)).reseed(5)

    def test_a_stream_that_begins_after_its_seed_was_replaced_shares_none(self):
        ours = fitted()
        late = ours.reseed(5).predict_iter(iter([X[:2]]))
        assert ours.reseed(5).predict(X[:2]).ids.tolist() == [0, 1]
        assert next(late).ids.tolist() == [2, 3]

    def test_a_saved_seed_goes_on_beyond_the_ids_of_both_phases(self, tmp_path):
        fitted(seed=5).save(tmp_path / "a.json", with_seed=True)  # 60 calibration points
        with pytest.raises(ValueError, match="at least 60"):
            RobustClassifier.load(tmp_path / "a.json", network())
        with pytest.raises(ValueError, match=r"`first_id` must be in \[60"):
            RobustClassifier.load(tmp_path / "a.json", network(), first_id=59)

    @pytest.mark.parametrize("saver", [copy.copy, lambda one: pickle.loads(pickle.dumps(one))])
    def test_what_a_copy_saves_goes_on_beyond_the_ids_of_the_original(self, saver, tmp_path):
        ours = fitted(seed=5)
        saver(ours).save(tmp_path / "a.json", with_seed=True)
        ours.predict(np.zeros((100, D), np.float32))
        saver(ours.reseed(7).reseed(5)).save(tmp_path / "b.json", with_seed=True)
        for name, free in (("a", 60), ("b", 100)):
            with pytest.raises(ValueError, match=rf"`first_id` must be in \[{free}, .*, got 0"):
                RobustClassifier.load(tmp_path / f"{name}.json", network(), first_id=0)

    def test_a_loaded_seed_does_not_begin_again(self, tmp_path):
        """Neither where the same seed is given, nor where it is given later."""
        fitted(seed=5).save(tmp_path / "a.json", with_seed=True)
        with pytest.raises(ValueError, match=r"give first_id= .* got this seed= alone"):
            RobustClassifier.load(tmp_path / "a.json", network(), seed=5)
        loaded = RobustClassifier.load(tmp_path / "a.json", network(), first_id=60)
        assert loaded.reseed(5).predict(X[:2]).ids.tolist() == [60, 61]
        loaded = RobustClassifier.load(tmp_path / "a.json", network(), seed=5, first_id=70)
        assert loaded.set_params(seed=5).calibrate(X, Y).predict(X[:2]).ids.tolist() == [70, 71]

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    @pytest.mark.parametrize("seed", [None, 5])
    @pytest.mark.parametrize("fork", ["os.fork", "ctypes.CDLL(None).fork"])
    def test_forked_workers_never_share_noise(self, seed, fork):
        """Each worker answers one request with its own noise, or refuses.

        Also if code in C forks, of which Python knows nothing.
        """
        done = subprocess.run(
            [sys.executable, "-c", FORKED.format(seed=seed, fork=fork)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        answers = [line.split() for line in done.stdout.splitlines()]
        assert len(answers) == 3
        if seed is None:
            seeds = [answer[1] for answer in answers]
            assert len(set(seeds)) == 3
            return
        refused = [answer for answer in answers if answer[0] == "refused"]
        reseeded = {answer[2] for answer in refused}
        assert len(refused) == len(reseeded) == 2
        assert ["went-on", "5", "7,8"] in answers

    @pytest.mark.parametrize("seed", [2**64, -1, 1.0, "5", True])
    def test_seeds_that_are_none(self, seed):
        ours = fitted()
        for call in (lambda: fitted(seed=seed), lambda: ours.reseed(seed)):
            with pytest.raises((TypeError, ValueError), match="`seed` must be"):
                call()

    def test_first_ids_that_are_none(self):
        ours = fitted(seed=5)
        for first in (-1, 2**56):
            with pytest.raises(ValueError, match="`first_id` must be in"):
                ours.reseed(5, first_id=first)
        with pytest.raises(ValueError, match="`first_id` must be 0 without a seed, got 3"):
            ours.reseed(first_id=3)
        ours.reseed(5, first_id=2**56 - 3)
        with pytest.raises(ValueError, match="the ids of this seed are used up"):
            ours.predict(X)

    def test_large_seeds_stay_apart_everywhere(self, tmp_path):
        zeros, seen = np.zeros((1, D), np.float32), set()
        for seed in LARGE:
            model = Recorder()
            ours = fitted(model, seed=seed, model_id="first", passes=None)
            ours.save(tmp_path / "a.json", with_seed=True)
            text = json.loads((tmp_path / "a.json").read_text())
            assert text["seed"] == str(seed)
            loaded = RobustClassifier.load(
                tmp_path / "a.json", model, model_id="first", first_id=100
            )
            model.taken()
            copied = pickle.loads(pickle.dumps(loaded))
            assert copied._seeds.seed == seed
            found = loaded.predict(zeros, curtail=False)
            assert (found.seed, found.ids.tolist()) == (seed, [100])
            rows = model.taken()
            expected = noise.draw(SCHEME, zeros, M, phase="test", indices=[100], seed=seed)
            np.testing.assert_array_equal(rows, expected[0])
            seen.add(rows.tobytes())
        assert len(seen) == len(LARGE)


FORKED = textwrap.dedent("""
    import ctypes, os
    import numpy as np, torch
    from bincp.balls import L2
    from bincp.sampling import RobustClassifier
    from bincp.smoothing import Gaussian

    torch.set_num_threads(1)
    x = np.zeros((30, 6), np.float32)
    ours = RobustClassifier(
        lambda x: x[:, :4], Gaussian(0.5), L2(0.1), alpha=0.2, n_samples=8, seed={seed}
    ).calibrate(x, np.arange(30) % 4)
    ours.predict(x[:7])

    def answer():
        try:
            found = ours.predict(x[:2])
            os.write(1, f"went-on {{found.seed}} {{','.join(map(str, found.ids))}}\\n".encode())
        except RuntimeError as error:
            assert "a forked process" in str(error), error
            found = ours.reseed().predict(x[:2])
            os.write(1, f"refused then {{found.seed}}\\n".encode())

    children = []
    for _ in range(2):
        child = {fork}()
        if child == 0:
            answer()
            os._exit(0)
        children.append(child)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    answer()
""")


HELD = textwrap.dedent("""
    import os, signal, threading
    import numpy as np, torch
    from bincp.balls import L2
    from bincp.noise import _seeds
    from bincp.sampling import RobustClassifier, _modes
    from bincp.smoothing import Gaussian

    torch.set_num_threads(1)
    net, x = torch.nn.Linear(6, 4), np.zeros((30, 6), np.float32)
    ours = RobustClassifier(net, Gaussian(0.5), L2(0.1), alpha=0.2, n_samples=8)
    ours.calibrate(x, np.arange(30) % 4)
    held, done = threading.Event(), threading.Event()

    def hold():
        with _modes._lock, _seeds._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        ours.reseed(5).predict(x)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    done.set()
    thread.join()
""")


def test_another_module_that_is_assigned_is_compared():
    ours = fitted()
    known, same, other = ours.model, network(), network(seed=1)
    ours.model = same
    stream = ours.predict_iter(iter([X[:2]] * 2), indices=range(4), curtail=False)
    next(stream)
    ours.model = torch.nn.Linear(1, 1)  # takes no input of the stream, which keeps its model
    assert next(stream).sets.shape == (2, K)
    ours.model = other
    with pytest.raises(ValueError, match="as in calibration: `model` was"):
        ours.predict(X[:2])
    assert ours.calibrate(X, Y).predict(X[:2]).sets.shape == (2, K)
    ours.model = known
    with pytest.raises(ValueError, match="as in calibration: `model` was"):
        copy.deepcopy(ours).predict(X[:2])


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (RobustClassifier, bincp.BinCP(bincp.certify(SCHEME, BALL), alpha=0.2)),
        (
            RobustClassifier,
            bincp.MondrianBinCP(bincp.certify(SCHEME, BALL), alpha=0.2, n_classes=K),
        ),
        (RobustRegressor, bincp.BinCP(bincp.certify(SCHEME, BALL), alpha=0.2)),
    ],
)
def test_a_rule_that_another_object_calibrates_is_compared_again(kind, rule):
    """One rule is shared by two models: it is that of the last calibration."""
    one, other, third = (torch.nn.Linear(D, K if kind is RobustClassifier else 1) for _ in range(3))
    first, second = (kind(net, SCHEME, BALL, rule=rule, n_samples=M) for net in (one, other))
    first.calibrate(X, Y).predict(X[:2])
    second.calibrate(X, Y).predict(X[:2])
    for stale in (first, copy.copy(first)):
        with pytest.raises(ValueError, match="as in calibration: `model` was"):
            stale.predict(X[:2])
    second.model = third
    second.calibrate(X, Y).predict(X[:2])
    first.calibrate(X, Y).predict(X[:2])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("seed", [None, 5])
def test_a_stream_goes_on_in_one_of_two_forked_processes(seed):
    ours = fitted(seed=seed)
    stream = ours.predict_iter(iter([X[:2]] * 3))
    begun = next(stream)
    child = os.fork()
    if child == 0:
        try:
            next(stream)
        except RuntimeError as error:
            os._exit("before a fork" in str(error))
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert next(stream).ids.tolist() == (begun.ids + 2).tolist()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_does_not_wait_for_threads_that_it_lacks():
    subprocess.run([sys.executable, "-c", HELD], check=True)


class TestStreams:
    def test_sets_come_batch_by_batch(self):
        ours = fitted(seed=5)
        whole = fitted(seed=5).predict(X)
        asked = []

        def stream():
            for i in range(0, len(X), 25):
                asked.append(i)
                yield X[i : i + 25]

        found = ours.predict_iter(stream())
        first = next(found)
        assert asked == [0]
        assert first.ids.tolist() == list(range(25))
        parts = [first, *found]
        assert [len(part.sets) for part in parts] == [25, 25, 10]
        for name in ("sets", "counts", "forward_passes", "ids"):
            joined = np.concatenate([np.asarray(getattr(part, name)) for part in parts])
            np.testing.assert_array_equal(joined, getattr(whole, name))
        assert ours.predict(X[:1]).ids.tolist() == [60]

    @pytest.mark.parametrize("options", [{}, {"curtail": False}, {"looks": "doubling"}])
    def test_streams_and_arrays_have_the_same_sets(self, options):
        expected = fitted(seed=5, passes=None).predict(X, **options)
        for x, key in (
            ([(X[:7], Y[:7]), (X[7:], Y[7:])], {}),
            (torch.utils.data.TensorDataset(torch.from_numpy(X)), {}),
            (({"x": part} for part in (X[:7], X[7:])), {"key": "x"}),
        ):
            found = fitted(seed=5, passes=None).predict(x, **options, **key)
            np.testing.assert_array_equal(found.sets, expected.sets)
            np.testing.assert_array_equal(found.counts, expected.counts)
            assert found.counts.n_samples == M
            assert found.counts.stopped_early == (options != {"curtail": False})

    def test_a_call_without_a_seed_has_one_seed_and_ids_that_go_on(self):
        parts = list(fitted().predict_iter(iter([X[:5], X[5:9]])))
        assert parts[0].seed == parts[1].seed
        assert np.concatenate([part.ids for part in parts]).tolist() == list(range(9))

    def test_arguments_are_refused_at_the_call_and_not_at_the_first_batch(self):
        ours = RobustClassifier(network(), SCHEME, BALL, alpha=0.2, n_samples=M)
        with pytest.raises(NotCalibratedError, match="call calibrate"):
            ours.predict_iter(X)
        ours.calibrate(X, Y)
        for options, error in (
            ({"curtail": 1}, TypeError),
            ({"looks": [2, 1]}, ValueError),
            ({"key": 3}, TypeError),
            ({"indices": [0]}, ValueError),
        ):
            with pytest.raises(error):
                ours.predict_iter(X, **options)
        with pytest.raises(TypeError, match=r"use np.stack"):
            ours.predict_iter(list(X))

    def test_one_rule_decides_all_batches(self):
        ours = fitted(seed=5)
        expected = np.concatenate([part.sets for part in fitted(seed=5).predict_iter([(X, Y)] * 2)])
        found = ours.predict_iter([(X, Y)] * 2)
        first = next(found)
        ours.rule = fitted(alpha=0.5, n_samples=8, seed=9).rule
        np.testing.assert_array_equal(np.concatenate([first.sets, next(found).sets]), expected)

    def test_a_stream_holds_one_batch(self, tmp_path):
        """A memory map of 26 MB, in batches of 0.1 MB."""
        n, d = 16384, 400
        wide = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (n, d))
        wide[:] = 0.5
        wide.flush()

        def model(x):
            return x[:, :K]

        ours = RobustClassifier(
            model, SCHEME, BALL, alpha=0.2, n_samples=1, batch_size=64, passes=None, p=1
        ).calibrate(np.zeros((40, d), np.float32), np.arange(40) % K)
        x = np.load(tmp_path / "x.npy", mmap_mode="r")
        taken = 0
        next(ours.predict_iter(x[:64]))
        tracemalloc.start()
        for part in ours.predict_iter(x):
            taken += len(part.sets)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert taken == n
        assert peak < 64 * d * 4 * 10

    def test_threads_with_streams_get_ids_of_their_own(self):
        ours = fitted(seed=5)
        gate = threading.Barrier(4)

        def ids(_):
            gate.wait()
            return [part.ids for part in ours.predict_iter(iter([X[:3]] * 10))]

        with ThreadPoolExecutor(4) as pool:
            taken = np.concatenate([np.concatenate(one) for one in pool.map(ids, range(4))])
        assert sorted(taken) == list(range(4 * 10 * 3))


class TestCounts:
    def test_counts_know_their_draws(self):
        ours = fitted(seed=5, passes=None)
        tau = ours.rule.tau_
        counts = {
            m: count_scores(ours.model, X, SCHEME, m, tau, phase="test", seed=5) for m in (8, M)
        }
        expected = ours.rule.predict_set_from_counts(np.asarray(counts[M]), n_samples=M)
        np.testing.assert_array_equal(ours.rule.predict_set_from_counts(counts[M]), expected)
        np.testing.assert_array_equal(
            ours.rule.predict_set_from_counts(counts[M][:7]), expected[:7]
        )
        copied = pickle.loads(pickle.dumps(counts[M]))
        np.testing.assert_array_equal(ours.rule.predict_set_from_counts(copied), expected)
        assert (copied.n_samples, copied.phase, copied.tau) == (M, "test", tau)
        with pytest.raises(ValueError, match=r"`n_samples` must be the m' = 16 .*, got 8"):
            ours.rule.predict_set_from_counts(counts[8])
        with pytest.raises(ValueError, match="`n_samples` must be the 8 of `counts`, got 16"):
            ours.rule.predict_set_from_counts(counts[8], n_samples=16)
        with pytest.raises(TypeError, match="`n_samples` must be given with counts that are no"):
            ours.rule.predict_set_from_counts(np.asarray(counts[M]))

    def test_what_is_computed_from_counts_knows_nothing(self):
        counts = bincp.Counts([[3, 2]], n_samples=4, tau=0.5)
        for plain in (counts + counts, counts.sum(axis=1), 2 * counts, counts >= 2):
            assert type(plain) is np.ndarray
        with pytest.raises(ValueError, match="read-only"):
            counts += counts
        copies = counts.copy(), copy.copy(counts), counts[[0]], counts.astype(np.int64)
        for other in (*copies, counts[:, ::-1], counts[:, :1], counts.T):
            with pytest.raises(AttributeError, match="knows nothing"):
                _ = other.n_samples
        assert counts[:1].n_samples == 4
        assert counts.sum() == 5
        assert counts.tolist() == [[3, 2]]
        joined = np.concatenate([counts, counts])
        with pytest.raises(TypeError, match="`n_samples` must be given"):
            fitted(passes=None).rule.predict_set_from_counts(joined)

    def test_counts_that_must_not_decide(self):
        ours = fitted(seed=5, passes=None)
        tau, model = ours.rule.tau_, ours.model
        refused = [
            (ours.predict(X).counts, "counts that stopped early"),
            (
                count_scores(model, X, SCHEME, M, tau, phase="calibration"),
                "phase 'calibration', got such",
            ),
            (count_scores(model, X, SCHEME, M, tau + 0.01, phase="test"), "that reach tau_ ="),
            (
                count_scores(model, X, SCHEME, M, tau, phase="test", score="margin"),
                "`score` was .*'tps'.*, got .*'margin'",
            ),
        ]
        for counts, message in refused:
            with pytest.raises(ValueError, match=message):
                ours.rule.predict_set_from_counts(counts)
        whole = ours.predict(X, curtail=False)
        np.testing.assert_array_equal(ours.rule.predict_set_from_counts(whole.counts), whole.sets)

    def test_each_class_has_its_own_threshold(self):
        certificate = bincp.certify(SCHEME, BALL)
        rule = bincp.MondrianBinCP(certificate, n_classes=K, alpha=0.2)
        ours = RobustClassifier(network(), SCHEME, BALL, rule=rule, n_samples=M).calibrate(X, Y)
        found = ours.predict(X, curtail=False)
        np.testing.assert_array_equal(rule.predict_set_from_counts(found.counts), found.sets)
        moved = bincp.Counts(np.asarray(found.counts), n_samples=M, tau=rule.tau_[::-1])
        with pytest.raises(ValueError, match="that reach tau_ ="):
            rule.predict_set_from_counts(moved)

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"values": [[5]]}, ValueError, r"`values` must be in \[0, 4\], got 5"),
            ({"values": [1]}, ValueError, r"`values` must have shape \(n, K\), got \(1,\)"),
            ({"values": [[0.5]]}, TypeError, "`values` must be integers"),
            ({"n_samples": 0}, ValueError, "`n_samples` must be"),
            ({"phase": "train"}, ValueError, "`phase` must be 'test', .*, got 'train'"),
            ({"stopped_early": 1}, TypeError, "`stopped_early` must be a bool"),
        ],
    )
    def test_bad_counts(self, change, error, message):
        options = {"values": [[3]], "n_samples": 4, "tau": 0.5, **change}
        with pytest.raises(error, match=message):
            bincp.Counts(options.pop("values"), **options)


class TestRange:
    @pytest.mark.parametrize(
        ("x", "fits"),
        [
            (0.0, True),
            (1.0, True),
            (1.1, True),
            (-0.1, True),
            (1.11, False),
            (-0.11, False),
            (255.0, False),
            (np.nan, False),
        ],
    )
    def test_inputs_beyond_the_ball_are_refused_in_both_phases(self, x, fits):
        ours = fitted(input_range=(0, 1), seed=5)
        first = ours._seeds.next_id("test")
        inputs = X.copy()
        inputs[1, 2] = x
        for call in (lambda: ours.predict(inputs), lambda: ours.calibrate(inputs, Y)):
            if fits:
                call()
                continue
            message = r"declared input_range \(0, 1\), give or take"
            if np.isnan(x):
                message = r"`x` must be finite, got nan in input 1 at index \(2,\)"
            with pytest.raises(ValueError, match=message):
                call()
            assert ours._seeds.next_id("test") == first

    def test_grey_levels_are_parts_of_255(self):
        ours = RobustClassifier(
            lambda x: x[:, :K], Gaussian(0.5, grid=255), L2(0.1), alpha=0.2, n_samples=M,
            input_range=(0, 1),
        )  # fmt: skip
        levels = np.random.default_rng(0).integers(0, 256, X.shape).astype(np.uint8)
        ours.calibrate(levels, Y).predict(torch.from_numpy(levels))
        with pytest.raises(ValueError, match="got values from 0 to 255"):
            ours.predict(np.float32([[0, 1, 2, 3, 4, 255]]))

    @pytest.mark.parametrize(
        ("value", "error", "message"),
        [
            ((0, 1, 2), TypeError, "`input_range` must be a pair of numbers"),
            ("01", TypeError, "`input_range` must be a pair"),
            (1, TypeError, "`input_range` must be a pair"),
            ((1, 0), ValueError, "`input_range` must be two numbers in order"),
            ((0, np.inf), ValueError, "`input_range` must be finite"),
            ((0, "1"), TypeError, "`input_range` must be a"),
        ],
    )
    def test_ranges_that_are_none(self, value, error, message):
        with pytest.raises(error, match=message):
            fitted(input_range=value)


class TestRuleFiles:
    """A rule keeps what its scores were made with, and refuses others by name."""

    def test_a_rule_remembers_score_scheme_normalization_and_model(self, tmp_path):
        model = NormalizedModel(network(), 0.5, 0.25)
        ours = fitted(model, score=("raps", {"penalty": 0.25}), input_range=(0, 1))
        ours.rule.save(tmp_path / "rule.json")
        rule = bincp.BinCP.load(tmp_path / "rule.json")
        assert rule.provenance_ == ours.rule.provenance_
        known = rule.provenance_
        assert known["score"] == {"name": "raps", "penalty": (0.25).hex(), "k_reg": 5}
        assert known["normalization"]["mean"] == [(0.5).hex()]
        assert len(known["model"]["fingerprint"]) == 64
        assert known["input_shape"] == [D]
        assert rule.certificate_description["smoothing"]["sigma"] == 0.5
        known["score"] = None
        assert rule.provenance_["score"] is not None

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"score": "aps"}, "`score` was {'name': 'tps'}, got {'name': 'aps'}"),
            ({"score": "margin"}, "`score` was .*, got {'name': 'margin'}"),
            ({"model": network(seed=1)}, "`model` was {'fingerprint'"),
            ({"model": NormalizedModel(network(), 0.5, 0.25)}, "`normalization` was .*None.*; `mo"),
            ({"input_range": (0, 255)}, "`input_range` was .*, got"),
        ],
    )
    def test_another_classifier_refuses_the_rule(self, tmp_path, change, message):
        model = network()
        ours = fitted(model, input_range=(0, 1))
        ours.rule.save(tmp_path / "rule.json")
        options = {"model": model, "input_range": (0, 1), **change}
        for rule in (ours.rule, bincp.BinCP.load(tmp_path / "rule.json")):
            given = dict(options)
            with pytest.raises(ValueError, match=f"as in calibration: .*{message}"):
                RobustClassifier(given.pop("model"), SCHEME, BALL, rule=rule, **given)
        theirs = fitted(options.pop("model"), **options)
        before = theirs.rule
        with pytest.raises(ValueError, match=message):
            theirs.rule = ours.rule
        assert theirs.rule is before
        same = RobustClassifier(model, SCHEME, BALL, rule=rule, score="lac", input_range=(0, 1))
        assert same.predict(X).sets.shape == (60, K)

    def test_what_is_not_known_is_not_compared(self, tmp_path):
        scores = sample_scores(network(), X, SCHEME, M, phase="calibration", labels=Y)
        rule = bincp.BinCP(bincp.certify(SCHEME, BALL), alpha=0.2).calibrate(scores)
        assert rule.provenance_ is None
        RobustClassifier(network(seed=1), SCHEME, BALL, rule=rule, score="margin").predict(X)
        named = fitted(lambda x: x[:, :K]).rule
        RobustClassifier(lambda x: x[:, :K], SCHEME, BALL, rule=named).predict(X)
        versioned = fitted(lambda x: x[:, :K], model_id="one").rule
        with pytest.raises(ValueError, match=r"`model` was .*'one'.*, got .*'two'"):
            RobustClassifier(lambda x: x, SCHEME, BALL, rule=versioned, model_id="two")

    def test_rules_and_runs_know_each_other(self, tmp_path):
        net = network()
        options = {"keep": "scores", "phase": "test"}
        points = run(tmp_path / "c", net, X, SCHEME, M, phase="calibration", labels=Y)
        certificate = bincp.certify(SCHEME, BALL)
        rule = bincp.BinCP(certificate, alpha=0.2).calibrate(points)
        assert rule.provenance_["score"] == {"name": "tps"}
        RobustClassifier(net, SCHEME, BALL, rule=rule).predict(X)
        with pytest.raises(ValueError, match="`score` was"):
            RobustClassifier(net, SCHEME, BALL, rule=rule, score="margin")
        each = bincp.MondrianBinCP(certificate, n_classes=K, alpha=0.2).calibrate(points)
        tests = run(tmp_path / "t", net, X, SCHEME, M, **options)
        counts = tests.counts(rule.tau_)
        expected = rule.predict_set(tests)
        np.testing.assert_array_equal(rule.predict_set_from_counts(counts), expected)
        for one in (rule, each):
            assert one.predict_set(run(tmp_path / "t", net, X, SCHEME, M, **options)).shape == (
                60,
                K,
            )
            other = run(tmp_path / "o", network(seed=1), X, SCHEME, M, **options)
            with pytest.raises(ValueError, match="as in calibration: `model` was"):
                one.predict_set(other)
            margin = run(tmp_path / "m", net, X, SCHEME, M, score="margin", **options)
            with pytest.raises(ValueError, match="as in calibration: `score` was"):
                one.predict_set(margin)

    def test_rules_of_classes_remember_too(self, tmp_path):
        rule = bincp.MondrianBinCP(bincp.certify(SCHEME, BALL), n_classes=K, alpha=0.2)
        net = network()
        RobustClassifier(net, SCHEME, BALL, rule=rule, n_samples=M).calibrate(X, Y)
        rule.save(tmp_path / "rule.json")
        loaded = bincp.MondrianBinCP.load(tmp_path / "rule.json")
        assert loaded.provenance_ == rule.provenance_ is not None
        with pytest.raises(ValueError, match="`model` was"):
            RobustClassifier(network(seed=1), SCHEME, BALL, rule=loaded)

    def test_the_checksum_covers_it(self, tmp_path):
        path = tmp_path / "rule.json"
        fitted().rule.save(path)
        text = path.read_text()
        assert '"tps"' in text
        path.write_text(text.replace('"tps"', '"aps"'))
        with pytest.raises(ValueError, match="damaged, the content does not have the checksum"):
            bincp.BinCP.load(path)
        document = json.loads(text)
        document["provenance"] = 3
        del document["sha256"]
        form = json.dumps(document, sort_keys=True, separators=(",", ":"))
        document["sha256"] = hashlib.sha256(form.encode()).hexdigest()
        path.write_text(json.dumps(document))
        with pytest.raises(ValueError, match="`provenance`: 3 is not an object"):
            bincp.BinCP.load(path)


SERVED = textwrap.dedent("""
    import sys
    import numpy as np, torch
    from bincp.sampling import RobustClassifier
    torch.manual_seed(0)
    D, K = 6, 4
    net = torch.nn.Sequential(
        torch.nn.Linear(D, D), torch.nn.ReLU(), torch.nn.Linear(D, K)
    )
    served = RobustClassifier.load(sys.argv[1], net, seed=11)
    x = np.load(sys.argv[2])
    found = served.predict(x)
    np.savez(sys.argv[3], sets=found.sets, counts=found.counts, passes=found.forward_passes)
    boundaries = served.rule.sequential_rule()
    print(net.training, served.rule.n_classes_, boundaries.min_count, served.certificate)
""")


class TestFiles:
    def test_another_process_gives_the_same_sets(self, tmp_path):
        ours = fitted(input_range=(0, 1))
        ours.save(tmp_path / "classifier.json")
        np.save(tmp_path / "x.npy", X)
        done = subprocess.run(
            [sys.executable, "-c", SERVED, *(str(tmp_path / name) for name in
             ("classifier.json", "x.npy", "sets.npz"))],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        k = ours.rule.sequential_rule().min_count
        assert done.stdout.strip() == f"False {K} {k} {ours.certificate}"
        with np.load(tmp_path / "sets.npz") as found:
            expected = ours.reseed(11).predict(X)
            np.testing.assert_array_equal(found["sets"], expected.sets)
            np.testing.assert_array_equal(found["counts"], expected.counts)
            np.testing.assert_array_equal(found["passes"], expected.forward_passes)

    @pytest.mark.parametrize(
        "options",
        [
            {"score": ("raps", {"penalty": 0.125, "k_reg": 2})},
            {"score": "aps", "passes": None},
            {"n_test_samples": 5},
            {"correction": "clopper-pearson", "n_samples": 200},
            {"smoothing": Gaussian(0.5, grid=255), "ball": L2(0.05)},
            {"smoothing": bincp.smoothing.Uniform(0.5), "ball": L1(0.1)},
        ],
    )
    def test_all_that_decides_comes_back(self, tmp_path, options):
        net = network()
        if "grid" in repr(options.get("smoothing")):
            options = {**options, "model": lambda x: x[:, :K], "model_id": "first"}
            net = options["model"]
            x = np.random.default_rng(0).integers(0, 256, X.shape).astype(np.uint8)
        else:
            options, x = {"model": net, **options}, X
        ours = RobustClassifier(
            options.pop("model"),
            options.pop("smoothing", SCHEME),
            options.pop("ball", BALL),
            **{"alpha": 0.2, "n_samples": M, **options},
        ).calibrate(x, Y)
        ours.save(tmp_path / "a.json")
        loaded = RobustClassifier.load(tmp_path / "a.json", net, model_id=options.get("model_id"))
        assert loaded.rule._rule == ours.rule._rule
        assert loaded.rule.provenance_ == ours.rule.provenance_
        assert (loaded.smoothing, loaded.ball) == (ours.smoothing, ours.ball)
        assert (loaded.n_samples, loaded.n_test_samples) == (ours.n_samples, ours.n_test_samples)
        found, expected = loaded.reseed(3).predict(x), ours.reseed(3).predict(x)
        np.testing.assert_array_equal(found.sets, expected.sets)
        np.testing.assert_array_equal(found.counts, expected.counts)
        loaded.save(tmp_path / "b.json")
        assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()

    def test_functions_come_back_by_their_ids(self, tmp_path):
        def score(z):
            return z.softmax(-1) ** 2

        def model(x):
            return x[:, :K]

        ours = fitted(model, score=score, model_id="m 1", score_id="s 1")
        ours.save(tmp_path / "a.json")
        load = RobustClassifier.load
        loaded = load(tmp_path / "a.json", model, score=score, model_id="m 1", score_id="s 1")
        expected = ours.reseed(3).predict(X)
        np.testing.assert_array_equal(loaded.reseed(3).predict(X).sets, expected.sets)
        given = {"score": score, "model_id": "m 1", "score_id": "s 1"}
        for change, error, message in (
            ({"score": None}, TypeError, "`score` must be the function 's 1' that"),
            ({"score_id": "s 2"}, ValueError, "`score` was {'id': 's 1'}, got {'id': 's 2'}"),
            ({"score_id": None}, ValueError, "`score_id` must be 's 1', as it was saved"),
            ({"model_id": "m 2"}, ValueError, "`model` was .*'m 1'.*, got .*'m 2'"),
            ({"model_id": None}, ValueError, "`model_id` must be 'm 1', as it was saved"),
        ):
            with pytest.raises(error, match=message):
                load(tmp_path / "a.json", model, **{**given, **change})
        with pytest.raises(ValueError, match="must give the logits that it gave"):
            load(tmp_path / "a.json", lambda x: 2 * x[:, :K], **given)

    @pytest.mark.parametrize(
        "other",
        [network(layers=3), network(k=K - 1), network(seed=1), NormalizedModel(network(), 0.5, 1)],
    )
    def test_another_model_is_refused_before_it_is_asked(self, tmp_path, other):
        fitted().save(tmp_path / "a.json")
        before = (tmp_path / "a.json").read_bytes()
        other.register_forward_pre_hook(lambda *_: pytest.fail("a forward pass"))
        with pytest.raises(ValueError, match=r"as in calibration: .*`model` was"):
            RobustClassifier.load(tmp_path / "a.json", other)
        assert (tmp_path / "a.json").read_bytes() == before

    def test_answers_are_compared_where_fingerprints_are_not(self, tmp_path):
        net = network()
        fitted(net).save(tmp_path / "a.json")
        same = torch.nn.Sequential(torch.nn.Sequential(net))
        load = RobustClassifier.load
        with pytest.raises(ValueError, match="`model` was"):
            load(tmp_path / "a.json", same)
        loaded = load(tmp_path / "a.json", same, check_fingerprint=False)
        loaded.predict(X)
        loaded.save(tmp_path / "b.json")
        load(tmp_path / "b.json", same).predict(X)
        for other in (network(seed=1), network(k=K - 1)):
            with pytest.raises(ValueError, match=r"must give the logits|must return"):
                load(tmp_path / "a.json", other, check_fingerprint=False)

    def test_a_function_in_place_of_the_module_is_compared_by_its_answers_only(self, tmp_path):
        net = network()
        fitted(net).save(tmp_path / "a.json")
        with pytest.raises(ValueError, match="`model` must be a torch module, as it was saved"):
            RobustClassifier.load(tmp_path / "a.json", lambda x: net(x))
        load = RobustClassifier.load
        load(tmp_path / "a.json", lambda x: net(x), check_fingerprint=False).predict(X)

    def test_a_plain_attribute_is_seen_by_the_probe(self, tmp_path):
        class Scaled(torch.nn.Module):
            def __init__(self, scale):
                super().__init__()
                self.net, self.scale = network(), scale

            def forward(self, x):
                return self.scale * self.net(x)

        fitted(Scaled(1.0)).save(tmp_path / "a.json")
        RobustClassifier.load(tmp_path / "a.json", Scaled(1.0))
        with pytest.raises(ValueError, match="`model` must give the logits that it gave"):
            RobustClassifier.load(tmp_path / "a.json", Scaled(1.01))

    def test_infinite_logits_are_compared(self, tmp_path):
        class Masked(torch.nn.Module):
            def __init__(self, label):
                super().__init__()
                self.label = label

            def forward(self, x):
                z = x[:, :K].clone()
                z[:, self.label] = -torch.inf
                return z

        fitted(Masked(2)).save(tmp_path / "a.json")
        RobustClassifier.load(tmp_path / "a.json", Masked(2))
        with pytest.raises(ValueError, match="must give the logits"):
            RobustClassifier.load(tmp_path / "a.json", Masked(1))

    def test_the_module_is_in_evaluation_mode_for_good(self, tmp_path):
        net = torch.nn.Sequential(network(), torch.nn.Dropout(0.5))
        fitted(net).save(tmp_path / "a.json")
        assert net.training
        served = RobustClassifier.load(tmp_path / "a.json", net)
        assert not any(module.training for module in net.modules())
        served.predict(X)
        assert not any(module.training for module in net.modules())

    def test_another_precision_is_refused_by_name(self, tmp_path):
        net = network()
        with torch.autocast("cpu", torch.bfloat16):
            fitted(net).save(tmp_path / "a.json")
        with pytest.raises(ValueError, match=r"`precision` was .*bfloat16.*, got .*None"):
            RobustClassifier.load(tmp_path / "a.json", net)
        with torch.autocast("cpu", torch.bfloat16):
            served = RobustClassifier.load(tmp_path / "a.json", net)
            served.predict(X)
        with pytest.raises(ValueError, match=r"`precision` was .*bfloat16.*, got .*None"):
            served.predict(X)

    def test_every_bit_counts(self, tmp_path):
        fitted().save(tmp_path / "a.json")
        data = (tmp_path / "a.json").read_bytes()
        net, rng = network(), np.random.default_rng(0)
        for bit in rng.choice(8 * len(data), 300, replace=False).tolist():
            other = bytearray(data)
            other[bit // 8] ^= 1 << bit % 8
            (tmp_path / "b.json").write_bytes(other)
            with pytest.raises(ValueError, match=r"b.json: damaged"):
                RobustClassifier.load(tmp_path / "b.json", net)
        for other in (b"", data[:-1], data + b"\n", b"{}", b"[]", b"\0" * len(data)):
            (tmp_path / "b.json").write_bytes(other)
            with pytest.raises(ValueError, match=r"b.json: damaged"):
                RobustClassifier.load(tmp_path / "b.json", net)

    def test_files_of_other_kinds(self, tmp_path):
        ours = fitted()
        ours.rule.save(tmp_path / "rule.json")
        ours.save(tmp_path / "classifier.json")
        with pytest.raises(ValueError, match=r"rule.json: damaged"):
            RobustClassifier.load(tmp_path / "rule.json", network())
        with pytest.raises(ValueError, match=r"classifier.json: must be a file that BinCP.save"):
            bincp.BinCP.load(tmp_path / "classifier.json")
        for bad in (3, None):
            with pytest.raises(TypeError, match="`path` must be"):
                ours.save(bad)
            with pytest.raises(TypeError, match="`path` must be"):
                RobustClassifier.load(bad, network())
        with pytest.raises(FileNotFoundError):
            RobustClassifier.load(tmp_path / "none.json", network())

    def test_a_rule_that_its_certificate_does_not_prove_is_refused(self, tmp_path):
        """Whoever edits the file can make its checksums, and not the certificate."""
        from bincp.calibration._storage import checksum
        from bincp.sampling._run import _canonical

        fitted(passes=None, p=0.5).save(tmp_path / "a.json")
        content = _canonical.decode(
            (tmp_path / "a.json").read_bytes(), "a", "bincp robust classifier"
        )
        rule = content["rule"]
        rule["certificate"]["ball"]["r"] = 0.3
        del rule["sha256"]
        rule["sha256"] = checksum(rule)
        (tmp_path / "b.json").write_bytes(_canonical.encode(content))
        with pytest.raises(ValueError, match=r"b.json: (damaged|must have a certificate)"):
            RobustClassifier.load(tmp_path / "b.json", network())

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("probe", [["0x1p+99999"]]),
            ("probe", [["0x1p-1"]]),
            ("probe", [[0.5]]),
            ("input_range", ["0x0p+0", "0x1p+99999"]),
            ("input_range", ["0x0p+0"]),
            ("input_shape", [-1]),
            ("input_dtype", "complex64"),
            ("model", {"fingerprint": None, "id": None}),
            ("model", {"fingerprint": 1, "id": None}),
            ("score", {"name": "raps", "penalty": "x"}),
            ("score", {"name": "raps", "penalty": "0x1p+99999"}),
            ("score", {"name": 3}),
            (None, None),
        ],
        ids=str,
    )
    def test_forged_fields_are_damage(self, tmp_path, field, value):
        from bincp.calibration._storage import checksum
        from bincp.sampling._run import _canonical

        fitted().save(tmp_path / "a.json")
        content = _canonical.decode(
            (tmp_path / "a.json").read_bytes(), "a", "bincp robust classifier"
        )
        rule = content["rule"]
        if field is None:
            del rule["provenance"]
        else:
            (content if field == "probe" else rule["provenance"])[field] = value
        del rule["sha256"]
        rule["sha256"] = checksum(rule)
        (tmp_path / "b.json").write_bytes(_canonical.encode(content))
        with pytest.raises(ValueError, match=r"b.json: damaged"):
            RobustClassifier.load(tmp_path / "b.json", network())

    def test_what_cannot_be_saved(self, tmp_path):
        path = tmp_path / "a.json"
        certificate = bincp.certify(SCHEME, BALL)
        bare = bincp.BinCP(certificate, alpha=0.2).calibrate(
            sample_scores(network(), X, SCHEME, M, phase="calibration", labels=Y)
        )
        cases = [
            (
                RobustClassifier(network(), SCHEME, BALL, alpha=0.2, n_samples=M),
                NotCalibratedError,
                r"call calibrate\(\) before save",
            ),
            (RobustClassifier(network(), SCHEME, BALL, rule=bare), ValueError, "knows nothing of"),
            (fitted(lambda x: x[:, :K]), ValueError, "`model_id` must name a model that is no"),
            (fitted(score=lambda z: z.softmax(-1)), ValueError, "`score_id` must name a score"),
        ]
        for ours, error, message in cases:
            with pytest.raises(error, match=message):
                ours.save(path)
        with pytest.raises(ValueError, match="`with_seed` must be False for a classifier without"):
            fitted().save(path, with_seed=True)
        with pytest.raises(TypeError, match="`with_seed` must be a bool"):
            fitted().save(path, with_seed=1)
        changed = fitted()
        changed.model = network(seed=1)
        with pytest.raises(ValueError, match="as in calibration: `model` was"):
            changed.save(path)
        assert not path.exists()

    def test_a_scheme_from_outside_cannot_be_made_again(self, tmp_path):
        class Shift(Ball):
            r = 0.1

        bincp.register(Gaussian, Shift)(lambda smoothing, ball: lambda p: max(p - 0.05, 0.0))
        ours = fitted(ball=Shift())
        with pytest.raises(ValueError, match="must have a certificate that bincp makes again"):
            ours.save(tmp_path / "a.json")

    def test_ids_may_be_given_after_the_calibration(self, tmp_path):
        def model(x):
            return x[:, :K]

        def score(z):
            return z.softmax(-1)

        rule = fitted(model, score=score).rule
        named = {"model_id": "m 1", "score_id": "s 1"}
        RobustClassifier(model, SCHEME, BALL, rule=rule, score=score, **named).save(
            tmp_path / "a.json"
        )
        loaded = RobustClassifier.load(tmp_path / "a.json", model, score=score, **named)
        assert loaded.rule.provenance_["model"] == {"fingerprint": None, "id": "m 1"}
        assert loaded.rule.provenance_["score"] == {"id": "s 1"}

    def test_a_rule_of_a_run_is_saved_with_what_the_run_knows(self, tmp_path):
        net = network()
        points = run(tmp_path / "run", net, X, SCHEME, M, phase="calibration", labels=Y)
        rule = bincp.BinCP(bincp.certify(SCHEME, BALL), alpha=0.2).calibrate(points)
        ours = RobustClassifier(net, SCHEME, BALL, rule=rule, input_range=(0, 1))
        ours.save(tmp_path / "a.json")
        loaded = RobustClassifier.load(tmp_path / "a.json", net)
        expected = ours.reseed(3).predict(X)
        np.testing.assert_array_equal(loaded.reseed(3).predict(X).sets, expected.sets)
        with pytest.raises(ValueError, match="declared input_range"):
            loaded.predict(X + 5)

    def test_a_seed_is_written_on_request_only(self, tmp_path):
        net = network()
        ours = fitted(net, seed=987654321)
        ours.save(tmp_path / "a.json")
        assert "987654321" not in (tmp_path / "a.json").read_text()
        load = RobustClassifier.load
        assert load(tmp_path / "a.json", net).predict(X).seed != 987654321
        first = ours.predict(X[:7])
        ours.save(tmp_path / "b.json", with_seed=True)
        if os.name == "posix":
            assert (tmp_path / "b.json").stat().st_mode & 0o777 == 0o600
        later = ours.predict(X[:7])
        with pytest.raises(ValueError, match=r"holds a seed: give first_id= .*least 60.*, got n"):
            load(tmp_path / "b.json", net)
        with pytest.raises(ValueError, match=r"`first_id` must be in .*, got 59"):
            load(tmp_path / "b.json", net, first_id=59)
        restored = load(tmp_path / "b.json", net, first_id=60).predict(X[:7])
        assert restored.seed == 987654321
        taken = np.concatenate([one.ids for one in (first, later, restored)])
        assert len(np.unique(taken)) == 21
        other = load(tmp_path / "b.json", net, seed=5).predict(X[:7])
        assert (other.seed, other.ids[0]) == (5, 0)
        with pytest.raises(ValueError, match="`first_id` must be given with a seed, got 3"):
            load(tmp_path / "a.json", net, first_id=3)
        for seed in (2**64, -1, 1.0):
            with pytest.raises((TypeError, ValueError), match="`seed` must be"):
                load(tmp_path / "a.json", net, seed=seed)
