"""How schemes, balls and certificates are written on a command line."""

import json
import re

import numpy as np
import pytest
from certificates.test_every_operator import PAIRS

import bincp
from bincp import balls, shifts, smoothing
from bincp.certificates import (
    compose,
    from_gdp,
    from_privacy,
    from_tradeoff,
    hierarchical,
    mixture,
    product,
    repeat,
)
from bincp.cli import main
from bincp.cli._grammar import parse_ball, parse_certificate, parse_shift, parse_smoothing

P = np.linspace(0, 1, 33)
STEP = bincp.certify(smoothing.Gaussian(0.25), balls.L2(0.1))
FLIPS = bincp.certify(smoothing.SparseFlip(0.01, 0.6), balls.Flips(1, 3))
G, F = (
    "gaussian:sigma=0.25@l2:r=0.1",
    "sparse-flip:p_plus=0.01,p_minus=0.6@flips:additions=1,deletions=3",
)


def spec(described):
    """Write a scheme or ball from its description."""
    name = re.sub("([a-z0-9])([A-Z])", r"\1-\2", described["type"]).lower()
    rest = [f"{key}={written(part)}" for key, part in described.items() if key != "type"]
    return f"{name}:{','.join(rest)}" if rest else name


def written(value):
    if isinstance(value, dict):
        return f"({spec(value)})"
    if isinstance(value, list):
        return f"[{','.join(map(written, value))}]"
    return str(value).lower()


@pytest.mark.parametrize(("scheme", "ball"), PAIRS, ids=lambda value: type(value).__name__)
def test_every_scheme_and_ball_can_be_written(scheme, ball):
    described = bincp.certify(scheme, ball).describe()
    assert parse_smoothing(spec(described["smoothing"])) == scheme
    assert parse_ball(spec(described["ball"])) == ball


@pytest.mark.parametrize("ball", ["linf:r=0.1,dim=3", "(linf:r=0.1,dim=3)", " (linf:dim=3,r=0.1) "])
def test_all_that_follows_the_ball_of_a_shift_is_its_ball(ball):
    wanted = shifts.LevyProkhorov(balls.Linf(0.1, 3), "0.01")
    assert parse_shift(f"levy-prokhorov:rho=0.01,ball={ball}") == wanted


def test_numbers_of_a_shift_stay_as_they_are_written():
    digits = "0.1000000000000000000001"
    assert parse_shift(f"total-variation:rho={digits}").rho == shifts.TotalVariation(digits).rho
    assert parse_shift(f"total-variation:rho={digits}") != shifts.TotalVariation("0.1")


CERTIFICATES = {
    G: STEP,
    f"({G})": STEP,
    f"compose({G}; {F}; {G})": compose(STEP, FLIPS, STEP),
    f"product({F};{G})": product(FLIPS, STEP),
    f"repeat({G}; r=3)": repeat(STEP, 3),
    f"hierarchical({G}; q=0.9; r=2; shown=true)": hierarchical(STEP, 0.9, 2, shown=True),
    f"mixture({G}; {F}; weights=[1/3, 2/3])": mixture([STEP, FLIPS], ["1/3", "2/3"]),
    "from-privacy(epsilon=0.5; delta=1e-5)": from_privacy(0.5, 1e-5),
    "from-gdp(mu=1/2)": from_gdp(0.5),
    "from-tradeoff(f=[[0.9,-1]])": from_tradeoff([(0.9, -1)]),
    f"repeat(compose({G}; ({F})); r=2)": repeat(compose(STEP, FLIPS), 2),
}


@pytest.mark.parametrize("text", CERTIFICATES)
def test_certificates_can_be_written(text):
    made, wanted = parse_certificate(text), CERTIFICATES[text]
    assert made.describe() == wanted.describe()
    assert np.array_equal(made.lower(P), wanted.lower(P))
    again = parse_certificate(json.dumps(made.describe()))
    assert again.describe() == made.describe()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gaussian:sigma=0.25", "a certificate is NOISE@BALL or one of compose"),
        ("conjure(a; b)", "unknown certificate 'conjure'; known are compose"),
        (f"compose({G}; {F}", "brackets must match"),
        (f"repeat({G}; r=3; r=4)", "'r' must be given once"),
        (f"repeat({G})", "missing a required argument: 'r'"),
        (f"repeat({G}; n=3)", "repeat"),
        (f"mixture({G}; {F}; weights=0.5)", "a list must be written"),
        (f"mixture({G}; {F}; weights=[0.5,0.6])", "sum to 1 exactly"),
        ("gaussian:sigma=0.25@box:r=[0.1", "brackets must match"),
        (f"mixture({G}; {F}; weights=[0.5],0.5])", "brackets must match"),
        ("{", "must be a JSON object"),
        ('{"operator": "bounds"}', "must be described in full"),
        ('{"ball": {"type": "L2", "r": 0.2, "r": 0.1}}', "a key stands twice"),
        ("hierarchical:inner=(l2:r=1),q=0.5@l2:r=1", "unknown smoothing 'l2'"),
    ],
)
def test_mistakes_are_named(text, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        parse_certificate(text)


@pytest.mark.parametrize(
    ("option", "kind", "opening", "inside", "closing"),
    [
        ("--certificate", "certificate", "(", G, ")"),
        ("--certificate", "certificate", "repeat(", G, "; r=1)"),
        ("--certificate", "certificate", '{"parts": ', "1", "}"),
        ("--certificate", "certificate", '{"masses": [', "1", "]}"),
        ("--smoothing", "smoothing scheme", "hierarchical:q=0.5,inner=(", "gaussian:sigma=1", ")"),
        ("--ball", "ball", "elements:r=1,within=(", "l2:r=1", ")"),
        ("--shift", "shift", "elements:r=1,within=(", "l2:r=1", ")"),
    ],
)
def test_deep_nesting_is_refused_by_name(capsys, option, kind, opening, inside, closing):
    text = opening * 1500 + inside + closing * 1500
    if kind == "shift":
        text = f"levy-prokhorov:rho=0.1,ball={text}"
    status, out, err = run(capsys, "calibrate", "none.npy", option, text, "--out", "none.json")
    assert (status, out) == (2, "")
    assert f"argument {option}: " in err
    assert f"brackets of a {kind} are nested too deeply" in err


def run(capsys, *arguments):
    status = main(list(arguments))
    out, err = capsys.readouterr()
    return status, out, err


def test_certify_plan_and_calibrate_take_a_certificate(capsys, tmp_path):
    text = f"compose({G}; {G})"
    wanted = compose(STEP, STEP)
    status, out, _ = run(capsys, "certify", "--certificate", text, "--p", "0.9", "--json")
    data = json.loads(out)
    assert status == 0
    assert data["certificate"] == wanted.describe()
    assert data["bounds"][0]["lower"] == pytest.approx(wanted.lower(0.9), rel=1e-14)
    status, out, _ = run(capsys, "certify", "--certificate", text, "--p", "0.9")
    assert status == 0
    assert "compose" in out
    status, out, _ = run(capsys, "plan", "--certificate", text, "-n", "200", "-m", "64", "--json")
    assert status == 0
    assert json.loads(out)["plans"][0]["certificate"] == wanted.describe()
    scores = tmp_path / "scores.npy"
    np.save(scores, np.random.default_rng(0).random((200, 32)))
    rule = tmp_path / "rule.json"
    files = [str(scores), "--out", str(rule)]
    status, _, _ = run(capsys, "calibrate", *files, "--certificate", text, "--n-classes", "10")
    assert status == 0
    assert bincp.BinCP.load(rule).certificate.describe() == wanted.describe()


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--smoothing", "gaussian:sigma=1"], "--smoothing must be left out with --certificate"),
        (["--certificate", "nonsense"], "a certificate is NOISE@BALL"),
        (["--certificate", "gaussian:sigma=1@flips:additions=1,deletions=1"], "no certificate for"),
    ],
)
def test_a_certificate_stands_alone(capsys, extra, message):
    certificate = [] if "--certificate" in extra else ["--certificate", G]
    status, _, err = run(capsys, "certify", *certificate, *extra, "--p", "0.9")
    assert status == 2
    assert message in err


def test_one_of_both_is_needed(capsys):
    status, _, err = run(capsys, "plan", "--ball", "l2:r=1", "-n", "200", "-m", "64")
    assert status == 2
    assert "--smoothing (or --certificate)" in err
