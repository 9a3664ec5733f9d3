"""Saved decision rules come back exactly, and damaged ones do not come back at all."""

import errno
import json
import os
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import bincp
from bincp import balls, smoothing
from bincp._utils.files import replace_file
from bincp.calibration._documents import FITTED, SETTINGS
from bincp.calibration._storage import checksum
from bincp.certificates import described
from support import content_of, forge, golden

FIELDS = [*SETTINGS, *(f"{name}_" for name in FITTED)]
CERTIFICATE = bincp.certify(smoothing.SparseFlip(0.3, 0.4), balls.Flips(0, 1))


def paper(certificate, **options):
    """BinCP with the paper's correction, unless the test says otherwise."""
    return bincp.BinCP(certificate, **{"correction": "clopper-pearson", **options})


def calibrated(**options):
    scores = np.random.default_rng(3).normal(1, 0.4, (120, 80)).astype(np.float32)
    return paper(CERTIFICATE, **options).calibrate(scores, n_classes=4)


@pytest.fixture
def rule():
    return calibrated(alpha="1/7", eta="0.013")


@pytest.fixture
def saved(rule, tmp_path):
    path = tmp_path / "rule.json"
    rule.save(path)
    return path


@pytest.mark.parametrize("options", [{}, {"p": "2/3"}, {"tau": 0.1, "correction": "none"}])
def test_round_trip_is_exact(options, tmp_path):
    rule = calibrated(**options)
    rule.save(tmp_path / "rule.json")
    loaded = bincp.BinCP.load(tmp_path / "rule.json")
    for field in FIELDS:
        assert getattr(loaded, field) == getattr(rule, field), field
    scores = (
        np.random.default_rng(4)
        .normal(np.linspace(-3, 3, 50)[:, None, None], 0.6, (50, 4, 80))
        .astype(np.float32)
    )
    sets = rule.predict_set(scores)
    assert 0 < sets.mean() < 1
    np.testing.assert_array_equal(loaded.predict_set(scores), sets)
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (tmp_path / "rule.json").read_text()


MIXTURES = {
    "p-fixed": ({"p": "2/3"}, 80),
    "losses, m < m'": ({}, 100),
    "tau-fixed": ({"tau": 0.9}, 30),
    "losses, m > m'": ({}, 30),
    "early stopping": ({"passes": "4"}, 30),
    "early stopping with ranks": ({"p": "2/3", "passes": "auto"}, 30),
    "training-conditional": ({"p": "2/3", "guarantee": ("training-conditional", "1/20")}, 80),
}


def mixture(name):
    options, m_test = MIXTURES[name]
    scores = np.random.default_rng(3).normal(1, 0.4, (120, 80)).astype(np.float32)
    rule = bincp.BinCP(CERTIFICATE, correction="mixture", alpha="1/7", **options)
    return rule.calibrate(scores, n_test_samples=m_test)


@pytest.mark.parametrize("name", MIXTURES)
def test_round_trip_of_the_mixture_correction(name, tmp_path):
    rule = mixture(name)
    assert rule.min_count_ > 0
    assert (rule.rank_ is None) == ("p" not in MIXTURES[name][0] and name != "tau-fixed")
    assert (rule.losses_ is None) == (rule.rank_ is not None)
    assert (rule.boundaries_ is None) == ("early" not in name)
    rule.save(tmp_path / "rule.json")
    loaded = bincp.BinCP.load(tmp_path / "rule.json")
    for field in FIELDS:
        assert getattr(loaded, field) == getattr(rule, field), field
    m_test = rule.n_test_samples_
    draws = (
        np.random.default_rng(5).random((200, 1, m_test)) < np.linspace(0, 1, 200)[:, None, None]
    )
    scores = np.where(draws, np.float32(rule.tau_), np.float32(-9))
    sets = rule.predict_set(scores)
    assert 0 < sets.mean() < 1
    np.testing.assert_array_equal(loaded.predict_set(scores), sets)
    if rule.boundaries_ is None:
        counts = draws.sum(axis=-1)
        np.testing.assert_array_equal(
            loaded.predict_set_from_counts(counts, n_samples=m_test), sets
        )
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (tmp_path / "rule.json").read_text()
    assert loaded.sequential_rule() == rule.sequential_rule()
    assert pickle.loads(pickle.dumps(rule)).sequential_rule() == rule.sequential_rule()


@pytest.mark.parametrize("m_test", [4, 8])
def test_round_trip_of_trivial_mixtures(m_test, tmp_path):
    rule = bincp.BinCP(CERTIFICATE, correction="mixture")
    with pytest.warns(bincp.TrivialSetWarning):
        rule.calibrate(np.ones((5, 8)), n_test_samples=m_test)
    rule.save(tmp_path / "rule.json")
    loaded = bincp.BinCP.load(tmp_path / "rule.json")
    assert (loaded.tau_, loaded.min_count_, loaded.rank_) == (-np.inf, 0, rule.rank_)
    assert loaded.predict_set(np.zeros((1, 2, m_test))).all()


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("p-fixed", {"rank_": 18}),  # above alpha (n + 1)
        ("p-fixed", {"rank_": -1}),
        ("p-fixed", {"rank_": None}),
        ("p-fixed", {"success_rank_": None}),
        ("p-fixed", {"success_rank_": 81}),
        ("p-fixed", {"min_count_": 81}),
        ("p-fixed", {"certified_p_": None}),
        ("p-fixed", {"rank_": None, "success_rank_": None, "p_": None, "certified_p_": None}),
        ("tau-fixed", {"rank_": None, "success_rank_": None, "p_": None, "certified_p_": None}),
        ("p-fixed", {"correction": "clopper-pearson"}),
        ("p-fixed", {"correction": "Mixture"}),
        ("p-fixed", {"union": "both"}),
        ("p-fixed", {"p_lower_": "0x1.0p-2"}),
        ("p-fixed", {"p_lower_": "0x1.0000000000000p-2"}),
        ("tau-fixed", {"success_rank_": None}),
        ("losses, m > m'", {"rank_": 3}),
        ("losses, m > m'", {"success_rank_": 3}),
        ("losses, m > m'", {"p_": "0x1.0000000000000p-1"}),
        ("losses, m > m'", {"p": "1/2"}),
        ("losses, m > m'", {"tau": "0x1.0000000000000p-1"}),
        ("losses, m > m'", {"n_samples_": 30}),  # another number of losses
        ("losses, m > m'", {"correction": "none"}),
        ("losses, m > m'", {"min_count_": None}),
    ],
)
def test_damaged_mixtures(name, fields, tmp_path):
    path = tmp_path / "rule.json"
    mixture(name).save(path)
    change(path, **fields)
    with pytest.raises(ValueError, match="damaged"):
        bincp.BinCP.load(path)


def test_round_trip_of_an_infinite_threshold_and_of_an_exact_rule(tmp_path):
    rule = paper(CERTIFICATE, alpha=0.01)
    with pytest.warns(bincp.TrivialSetWarning):
        rule.calibrate(np.ones((5, 80)), n_classes=2)
    rule.save(tmp_path / "rule.json")
    assert bincp.BinCP.load(tmp_path / "rule.json").tau_ == -np.inf
    exact = paper(CERTIFICATE).calibrate_exact(np.linspace(0.5, 1, 50), tau=0.3)
    exact.save(tmp_path / "exact.json")
    loaded = bincp.BinCP.load(tmp_path / "exact.json")
    probabilities = np.linspace(0, 1, 40).reshape(10, 4)
    np.testing.assert_array_equal(
        loaded.predict_set_exact(probabilities), exact.predict_set_exact(probabilities)
    )


@pytest.mark.parametrize("which", range(len(golden("rules"))))
def test_files_of_this_version_stay_readable(which, tmp_path):
    """Files that an earlier commit saved load, and are saved again as they were."""
    path = tmp_path / "rule.json"
    document = golden("rules")[which]
    path.write_text(json.dumps(document))
    kind = bincp.MondrianBinCP if "classes" in document else bincp.BinCP
    loaded = kind.load(path)
    assert loaded.certificate.describe() == loaded.certificate_description
    loaded.save(path)
    assert json.loads(path.read_text()) == document
    assert list(json.loads(path.read_text())) == list(document)


def test_pickle_round_trip(rule):
    loaded = pickle.loads(pickle.dumps(rule))
    for field in FIELDS:
        assert getattr(loaded, field) == getattr(rule, field)
    loaded.calibrate(np.ones((99, 500)), n_classes=2)


def test_a_loaded_rule_has_its_certificate_again(rule, saved):
    loaded = bincp.BinCP.load(saved)
    assert loaded.certificate_description == json.loads(json.dumps(CERTIFICATE.describe()))
    p = np.linspace(0, 1, 101)
    np.testing.assert_array_equal(loaded.certificate.lower(p), CERTIFICATE.lower(p))
    scores = np.random.default_rng(5).normal(1, 0.4, (99, 80)).astype(np.float32)
    again = paper(CERTIFICATE, alpha="1/7", eta="0.013").calibrate(scores, n_classes=4)
    assert loaded.calibrate(scores, n_classes=4).min_count_ == again.min_count_


@pytest.mark.parametrize(
    "certificate",
    [
        bincp.Certificate.from_bounds(lambda p: max(p - 0.1, 0.0)),
        bincp.Certificate.from_regions([0.7, 0.3], [0.5, 0.5]),
    ],
    ids=["bounds", "regions"],
)
def test_a_certificate_from_outside_is_described_and_no_more(certificate, tmp_path):
    bincp.BinCP(certificate).calibrate(np.random.default_rng(0).random((99, 20))).save(
        tmp_path / "rule.json"
    )
    loaded = bincp.BinCP.load(tmp_path / "rule.json")
    assert loaded.certificate is None
    assert loaded.certificate_description == certificate.describe()
    with pytest.raises(bincp.CertificateError, match="by description only"):
        loaded.calibrate(np.ones((9, 9)))


def test_a_rule_that_takes_more_than_its_certificate_proves_is_refused(tmp_path):
    """The description of a stronger attack, under a valid checksum."""
    path = tmp_path / "rule.json"
    mixture("p-fixed").save(path)
    stronger = bincp.certify(smoothing.SparseFlip(0.3, 0.4), balls.Flips(0, 3))
    change(path, certificate=stronger.describe())
    with pytest.raises(ValueError, match="damaged, `certified_p_` must be what"):
        bincp.BinCP.load(path)
    weaker = bincp.certify(smoothing.SparseFlip(0.3, 0.4), balls.Flips(0, 0))
    change(path, certificate=weaker.describe())
    assert bincp.BinCP.load(path).certificate is None


def test_a_loaded_rule_refuses_another_number_of_samples(saved):
    with pytest.raises(ValueError, match=r"m' = 80 .* got 79"):
        bincp.BinCP.load(saved).predict_set(np.ones((1, 4, 79), np.float32))


def test_nothing_is_saved_before_calibration(tmp_path):
    with pytest.raises(bincp.NotCalibratedError, match="before save"):
        paper(CERTIFICATE).save(tmp_path / "rule.json")
    assert not list(tmp_path.iterdir())


def test_a_failed_save_keeps_the_last_file(rule, saved, monkeypatch):
    text = saved.read_text()

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        rule.save(saved)
    assert saved.read_text() == text
    assert list(saved.parent.iterdir()) == [saved]


def test_unreadable_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing\.json"):
        bincp.BinCP.load(tmp_path / "missing.json")
    with pytest.raises(IsADirectoryError):
        bincp.BinCP.load(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[]", b"null", b'{"format": "other"}', b"\x80\x04]q.", b"[" * 10**5],
)
def test_foreign_files(content, tmp_path):
    path = tmp_path / "rule.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"rule\.json"):
        bincp.BinCP.load(path)


@pytest.mark.parametrize("version", [4, True, 3.0, "3", None])
def test_other_versions(version, saved):
    change(saved, version=version)
    with pytest.raises(ValueError, match=rf"version must be 3, got {version!r}.*newer"):
        bincp.BinCP.load(saved)


@pytest.mark.parametrize("version", [1, 2])
def test_older_versions_are_refused_with_the_cure(version, saved):
    """Files of version 1 have no checksum, those of version 2 no losses and no boundaries."""
    change(saved, version=version)
    with pytest.raises(ValueError, match=rf"version must be 3, got {version}; calibrate again"):
        bincp.BinCP.load(saved)


@pytest.mark.parametrize("field", ["certificate", "sha256", *FIELDS])
def test_missing_fields(field, saved):
    document = json.loads(saved.read_text())
    del document[field]
    saved.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=f"`{field}` is missing"):
        bincp.BinCP.load(saved)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tau_", "nan"),
        ("tau_", 0.5),
        ("tau_", None),
        ("min_count_", 81),
        ("min_count_", -1),
        ("min_count_", 1.0),
        ("min_count_", True),
        ("min_count_", None),
        ("n_test_samples_", "80"),
        ("alpha", "0"),
        ("alpha", "1/0"),
        ("alpha", "2"),
        ("alpha", 0.1),
        ("dtype_", "int8"),
        ("dtype_", None),
        ("certified_p_", "0x1.8p+0"),
        ("correction", 3),
        ("correction", "foo"),
        ("eta", "5"),
        ("eta", "1/2"),
        ("alpha", "1e999999999"),
        ("p", "7"),
        ("n_classes_", 0),
        ("n_classes_", None),
        ("n_samples_", 0),
        ("rank_", 10**9),
        ("success_rank_", 10**9),
        ("success_rank_", None),
        ("n_calibration_", 0),
        ("n_test_samples_", 10**12),
        ("p_lower_", "0x1p+5"),
        ("p_lower_", None),
        ("certificate", []),
    ],
)
def test_damaged_fields(field, value, saved):
    change(saved, **{field: value})
    with pytest.raises(ValueError, match="damaged"):
        bincp.BinCP.load(saved)


def change(path, **fields):
    """Change fields, and the checksum with them."""
    document = {**json.loads(path.read_text()), **fields}
    document["sha256"] = checksum({k: v for k, v in document.items() if k != "sha256"})
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("name", "fields", "complaint"),
    [
        ("losses, m > m'", {"losses_": 3}, "3 is not a list of counts"),
        ("p-fixed", {"share_": "2/40"}, "'2/40' is not a share in lowest terms"),
        ("early stopping", {"boundaries_": []}, "is not an object of `accept` and `reject`"),
        (
            "early stopping",
            {"boundaries_": {"accept": 3, "reject": [0]}},
            "`accept` is not a list of integers",
        ),
    ],
)
def test_fields_of_another_form_are_named(name, fields, complaint, tmp_path):
    mixture(name).save(tmp_path / "rule.json")
    change(tmp_path / "rule.json", **fields)
    with pytest.raises(ValueError, match=f"damaged, `{next(iter(fields))}`: .*{complaint}"):
        bincp.BinCP.load(tmp_path / "rule.json")


def test_a_certificate_that_rounds_up_can_still_be_saved(tmp_path):
    """The law allows a bound to exceed p by rounding; a decision rule never uses more than p."""
    certificate = bincp.Certificate.from_bounds(lambda p: 1 - (1 - p))
    for p in ("1/20", "3/20", "6/20"):
        rule = paper(certificate, p=p, correction="none", alpha=0.2)
        rule.calibrate(np.random.default_rng(0).random((50, 20)))
        rule.save(tmp_path / "rule.json")
        assert bincp.BinCP.load(tmp_path / "rule.json").min_count_ == rule.success_rank_


@pytest.mark.parametrize(
    ("field", "text"), [("tau_", "0.7"), ("certified_p_", "0.1"), ("p_", "0x3p-2"), ("tau_", "1")]
)
def test_only_the_hexadecimal_form_of_a_number_is_read(field, text, saved):
    change(saved, **{field: text})
    with pytest.raises(ValueError, match="damaged"):
        bincp.BinCP.load(saved)


def test_keys_that_stand_twice_are_refused(saved):
    text = saved.read_text().rstrip().removesuffix("}")
    saved.write_text(text + ', "min_count_": 0}')
    with pytest.raises(ValueError, match="twice"):
        bincp.BinCP.load(saved)


def test_threads_may_save_to_one_path(rule, tmp_path):
    path = tmp_path / "rule.json"
    with ThreadPoolExecutor(3) as pool:
        for job in [pool.submit(rule.save, path) for _ in range(60)]:
            job.result()
    assert bincp.BinCP.load(path).tau_ == rule.tau_
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_keeps_its_mode(rule, saved):
    saved.chmod(0o600)
    rule.save(saved)
    assert saved.stat().st_mode & 0o777 == 0o600


def test_the_new_file_has_the_mode_of_the_target_from_the_start(saved):
    saved.chmod(0o640)
    seen = []

    def write(stream):
        temporary = [path for path in saved.parent.iterdir() if path != saved]
        seen.extend(path.stat().st_mode & 0o777 for path in temporary)
        stream.write(b"new")

    replace_file(saved, write)
    assert seen == [0o640]
    assert saved.read_bytes() == b"new"


def test_a_read_only_file_is_refused(rule, saved):
    text = saved.read_text()
    saved.chmod(0o444)
    with pytest.raises(PermissionError, match=r"read-only"):
        rule.save(saved)
    assert saved.read_text() == text
    assert list(saved.parent.iterdir()) == [saved]


def test_a_folder_is_no_file(rule, tmp_path):
    with pytest.raises(OSError, match="`path` must be a file or not exist yet"):
        rule.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_mode_that_cannot_be_set_leaves_the_last_file(rule, saved, monkeypatch):
    def refused(path, mode):
        raise PermissionError(path)

    text = saved.read_text()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "chmod", refused)
        with pytest.raises(PermissionError):
            rule.save(saved)
    assert saved.read_text() == text
    assert list(saved.parent.iterdir()) == [saved]


def test_folders_that_cannot_be_synchronised_hold_files(rule, tmp_path, monkeypatch):
    monkeypatch.delattr(os, "O_DIRECTORY")
    rule.save(tmp_path / "rule.json")
    assert bincp.BinCP.load(tmp_path / "rule.json").tau_ == rule.tau_


def test_links_in_a_circle_are_no_file(rule, tmp_path):
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(OSError, match="circle"):
        rule.save(tmp_path / "circle")


def test_a_file_is_on_the_disk_before_it_replaces_the_last_one(rule, saved, monkeypatch):
    calls = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr("os.fsync", lambda file: (calls.append("fsync"), sync(file)))
    monkeypatch.setattr("os.replace", lambda *paths: (calls.append("replace"), replace(*paths)))
    rule.save(saved)
    assert calls[:2] == ["fsync", "replace"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ValueError])
def test_nothing_is_left_behind_after_an_error(error, saved):
    text = saved.read_text()

    def write(stream):
        stream.write(b"half")
        raise error

    with pytest.raises(error):
        replace_file(saved, write)
    assert saved.read_text() == text
    assert list(saved.parent.iterdir()) == [saved]


def test_an_error_names_the_file_that_was_asked_for(rule, saved, monkeypatch):
    def fail(source, _):
        raise OSError(errno.EIO, "I/O error", source)

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="I/O error") as caught:
        rule.save(saved)
    assert caught.value.filename == str(saved)


def test_a_long_name_can_be_saved(rule, tmp_path):
    path = tmp_path / ("r" * 250)
    rule.save(path)
    assert bincp.BinCP.load(path).tau_ == rule.tau_


@pytest.mark.parametrize("depth", [300, 900])
def test_a_certificate_that_is_nested_deeply_is_unknown_or_damaged(saved, depth):
    content = content_of(saved)
    for _ in range(depth):
        part = content["certificate"]
        content["certificate"] = {"made_by": {"type": "repeat", "r": 1, "parts": [part]}}
    assert described(content["certificate"]) is None
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(10_000)  # to write it
        forge(saved, content)
    finally:
        sys.setrecursionlimit(limit)
    try:
        found = bincp.BinCP.load(saved).certificate
    except ValueError as error:
        found = str(error)
    assert found is None or str(found).startswith(str(saved))
