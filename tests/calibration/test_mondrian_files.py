"""Rules of classes come back exactly from one file, and contradictory files do not come back."""

import json
import pickle
import re

import numpy as np
import pytest

import bincp
from bincp import balls, smoothing
from bincp.calibration._storage import checksum
from support import quiet

CERTIFICATE = bincp.certify(smoothing.Gaussian(0.5), balls.L2(0.12))
RNG = np.random.default_rng(0)
LABELS = np.repeat([0, 1, 2, 4], [60, 40, 60, 5])  # class 3 has no points, class 4 too few
TRUE = RNG.normal(1 + 0.1 * LABELS[:, None], 0.3, (len(LABELS), 16)).astype(np.float32)
SCORES = RNG.normal(RNG.random((200, 5, 1)) * 2, 0.3, (200, 5, 16)).astype(np.float32)

OPTIONS = {
    "by itself": ({}, 16),
    "losses": ({}, 8),
    "early": ({"passes": "auto"}, 16),
    "budget": ({"passes": "7/2"}, 8),
    "p": ({"p": "2/3"}, 16),
    "tau": ({"tau": 0.9}, 16),
    "training-conditional": ({"guarantee": ("training-conditional", "1/10")}, 16),
    "clopper-pearson": (
        {"correction": "clopper-pearson", "alpha": "3/10", "eta": "1/5", "union": "two-bounds"},
        16,
    ),
    "none": ({"correction": "none", "p": "2/3"}, 16),
}


def calibrated(name, certificate=CERTIFICATE):
    options, m_test = OPTIONS[name]
    rule = bincp.MondrianBinCP(certificate, n_classes=5, **options)
    return quiet(rule.calibrate, TRUE, LABELS, n_test_samples=m_test)


def saved(name, path):
    """Return the content of a file without its checksum."""
    calibrated(name).save(path)
    content = json.loads(path.read_text())
    del content["sha256"]
    return content


def write(path, content):
    path.write_text(json.dumps({**content, "sha256": checksum(content)}))


@pytest.mark.parametrize("name", OPTIONS)
def test_round_trip_is_exact(name, tmp_path):
    rule = calibrated(name)
    rule.save(tmp_path / "rules.json")
    for loaded in (
        bincp.MondrianBinCP.load(tmp_path / "rules.json"),
        pickle.loads(pickle.dumps(rule)),
    ):
        assert loaded._rule == rule._rule
        assert loaded.certificate_description == rule.certificate_description
        sets = rule.predict_set(SCORES[:, :, : rule.n_test_samples_])
        assert 0 < sets[:, :3].mean() < 1
        assert sets[:, 3:].all()
        np.testing.assert_array_equal(
            loaded.predict_set(SCORES[:, :, : rule.n_test_samples_]), sets
        )
        loaded.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == (tmp_path / "rules.json").read_bytes()
        again = quiet(loaded.calibrate, TRUE, LABELS, n_test_samples=rule.n_test_samples_)
        assert again._rule == rule._rule


def test_each_rule_of_a_loaded_file_is_a_bincp(tmp_path):
    rule = calibrated("early")
    rule.save(tmp_path / "rules.json")
    loaded = bincp.MondrianBinCP.load(tmp_path / "rules.json").rules_
    assert loaded[3] is None
    for y in (0, 1, 2, 4):
        alone = bincp.BinCP(CERTIFICATE, passes="auto")
        quiet(alone.calibrate, TRUE[y == LABELS], n_classes=1)
        assert loaded[y]._rule == alone._rule
        loaded[y].save(tmp_path / "one.json")
        assert bincp.BinCP.load(tmp_path / "one.json")._rule == alone._rule


def test_a_file_of_the_other_kind_is_refused_with_the_method_that_reads_it(tmp_path):
    path = tmp_path / "rule.json"
    calibrated("early").save(path)
    with pytest.raises(ValueError, match=r"BinCP.save wrote, got .* MondrianBinCP.load reads"):
        bincp.BinCP.load(path)
    bincp.BinCP(CERTIFICATE).calibrate(TRUE).save(path)
    with pytest.raises(ValueError, match=r"MondrianBinCP.save wrote, got .* which BinCP.load re"):
        bincp.MondrianBinCP.load(path)


def test_nothing_is_saved_before_calibration(tmp_path):
    with pytest.raises(bincp.NotCalibratedError, match="before save"):
        bincp.MondrianBinCP(CERTIFICATE, n_classes=2).save(tmp_path / "rules.json")
    assert not list(tmp_path.iterdir())


def test_a_certificate_from_outside_is_described_and_no_more(tmp_path):
    certificate = bincp.Certificate.from_bounds(lambda p: max(p - 0.1, 0.0))
    for name in ("by itself", "early"):
        rule = calibrated(name, certificate)
        rule.save(tmp_path / "rules.json")
        loaded = bincp.MondrianBinCP.load(tmp_path / "rules.json")
        assert loaded.certificate is None
        assert loaded.certificate_description == certificate.describe()
        np.testing.assert_array_equal(loaded.predict_set(SCORES), rule.predict_set(SCORES))
        with pytest.raises(bincp.CertificateError, match="loaded MondrianBinCP holds its cert"):
            loaded.calibrate(TRUE, LABELS)
    assert loaded.sequential_rule() == rule.sequential_rule()
    with pytest.raises(bincp.CertificateError, match="by description only"):
        loaded.sequential_rule(spread=2)


HEX = float.hex
CONTRADICTIONS = [
    ("by itself", 1, {"min_count_": 17}, "`min_count_` must be in [0, m']"),
    ("by itself", 2, {"n_calibration_": 0}, "`n_calibration_` must be in"),
    ("by itself", 0, {"tau_": HEX(0.7)}, "`tau_` must be a value of the dtype"),
    ("p", 1, {"rank_": 5}, "`rank_` must be that of alpha and n"),
    ("p", 1, {"success_rank_": 10}, "`success_rank_` must be that of p and m"),
    ("p", 1, {"p_": HEX(0.5)}, "`p_` must be t / m"),
    ("tau", 0, {"tau_": HEX(0.25)}, "`tau_` must be the `tau` that was fixed"),
    ("clopper-pearson", 2, {"p_lower_": None}, "`p_lower_` belongs to clopper-pearson"),
    ("none", 0, {"min_count_": 1}, "`min_count_` must be that of `certified_p_`"),
    ("early", 0, {"boundaries_": None}, "`boundaries_` are missing"),
    ("losses", 2, {"losses_": [0] * 9}, "`losses_`: there must be m + 1 = 17 losses, got 9"),
]


@pytest.mark.parametrize(("name", "label", "fields", "complaint"), CONTRADICTIONS)
def test_a_contradiction_in_one_class_is_found_and_the_class_named(
    name, label, fields, complaint, tmp_path
):
    path = tmp_path / "rules.json"
    content = saved(name, path)
    assert all(content["classes"][label][key] != value for key, value in fields.items())
    content["classes"][label].update(fields)
    write(path, content)
    with pytest.raises(ValueError, match=re.escape(f"damaged, class {label}: {complaint}")):
        bincp.MondrianBinCP.load(path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda c: c.update(classes=[]), "`classes` must hold the rule of a class with"),
        (lambda c: c.update(classes=[None, None]), "`classes` must hold the rule of a class"),
        (lambda c: c.update(classes=None), "`classes`: None is not a list"),
        (lambda c: c.update(classes={"0": None}), "`classes`: {'0': None} is not a list"),
        (lambda c: c["classes"].append(7), "class 5: 7 is not an object"),
        (lambda c: c["classes"][1].update(dtype_="float32"), "class 1: 'dtype_' is no field"),
        (lambda c: c["classes"][1].pop("tau_"), "class 1: `tau_` is missing"),
        (lambda c: c["classes"][1].update(tau_="0.5"), "class 1: `tau_`: '0.5' is not the hex"),
        (lambda c: c.update(n_samples_=0), "class 0: m and m' must be in"),
        (lambda c: c.update(dtype_=None), "class 0: the fields of sampled scores must be all"),
        (lambda c: c.pop("n_samples_"), "`n_samples_` is missing"),
        (lambda c: c.update(n_classes_=5), "'n_classes_' is no field of a decision rule"),
        (lambda c: c.update(tau_=HEX(0.5)), "'tau_' is no field of a decision rule"),
    ],
)
def test_a_wrong_layout_is_refused(change, complaint, tmp_path):
    path = tmp_path / "rules.json"
    content = saved("by itself", path)
    change(content)
    write(path, content)
    with pytest.raises(ValueError, match=re.escape(f"damaged, {complaint}")):
        bincp.MondrianBinCP.load(path)


def test_rules_of_exact_probabilities_are_no_rules_of_classes(tmp_path):
    path = tmp_path / "rules.json"
    content = saved("by itself", path)
    one = bincp.BinCP(CERTIFICATE).calibrate_exact(np.linspace(0.5, 1, 99), tau=0.5)
    one.save(tmp_path / "exact.json")
    exact = json.loads((tmp_path / "exact.json").read_text())
    fields = {key: exact[key] for key in content["classes"][0]}
    content.update(classes=[fields, fields], n_samples_=None, n_test_samples_=None, dtype_=None)
    write(path, content)
    with pytest.raises(ValueError, match="damaged, class 0: the fields of sampled"):
        bincp.MondrianBinCP.load(path)


@pytest.mark.parametrize("name", ["p", "early", "losses"])
def test_a_stronger_attack_than_the_rules_withstand_is_refused(name, tmp_path):
    """Under a valid checksum: neither the certified p nor ranks or losses pay for it."""
    path = tmp_path / "rules.json"
    content = saved(name, path)
    stronger = bincp.certify(smoothing.Gaussian(0.5), balls.L2(0.5))
    write(path, {**content, "certificate": json.loads(json.dumps(stronger.describe()))})
    with pytest.raises(ValueError, match=r"damaged, `(certified_p_|losses_)` must"):
        bincp.MondrianBinCP.load(path)


def test_a_class_without_points_cannot_take_the_rule_of_another(tmp_path):
    """The size of a class is in its rule: a rule of 60 points has no rank for 5."""
    path = tmp_path / "rules.json"
    content = saved("p", path)
    content["classes"][4] = {**content["classes"][0], "n_calibration_": 5}
    write(path, content)
    with pytest.raises(ValueError, match="damaged, class 4: `rank_` must be"):
        bincp.MondrianBinCP.load(path)


def test_many_classes_are_read_in_one_proof(tmp_path, monkeypatch):
    """Classes of one size share their losses, which are proven once."""
    from bincp.calibration import _rebuild

    proofs = []
    proves = _rebuild.proves
    monkeypatch.setattr(_rebuild, "proves", lambda *args: proofs.append(1) or proves(*args))
    y = np.repeat(np.arange(20), 60)
    rule = bincp.MondrianBinCP(CERTIFICATE, n_classes=20, passes="auto")
    rule.calibrate(RNG.normal(1, 0.3, (1200, 16)), y, n_test_samples=8)
    rule.save(tmp_path / "rules.json")
    assert bincp.MondrianBinCP.load(tmp_path / "rules.json")._rule == rule._rule
    assert sum(one.losses_ is not None for one in rule.rules_) == 20
    assert len(proofs) == 1
