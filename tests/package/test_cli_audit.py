"""``bincp audit``: its table and JSON are those of `bincp.audit`, and what it refuses."""

import json

import numpy as np
import pytest

import bincp
from bincp import balls, smoothing
from bincp.cli import main

NOISE = ["audit", "--smoothing", "gaussian:sigma=0.5"]
FLIPS = [
    *["audit", "--smoothing", "sparse-flip:p_plus=0.01,p_minus=0.6", "--ball"],
    *["flips:additions=0,deletions=1", "flips:additions=1,deletions=0"],
]


def run(capsys, *argv, status=0):
    assert main(list(map(str, argv))) == status
    out, err = capsys.readouterr()
    return out if status == 0 else err.splitlines()[-1]


def test_json_has_every_guarantee(capsys):
    options = ["--radii", 0, 0.1, "-n", 99, "--alpha", "0.1", "--delta", "0.05", "--json"]
    told = json.loads(run(capsys, *NOISE, "--ball", "l2:r=7", *options))
    found = bincp.audit(
        smoothing.Gaussian(0.5), balls.L2, [0, 0.1], n=99, alpha="0.1", delta="0.05"
    )
    assert [row["ball"] for row in told["balls"]] == [repr(balls.L2(0.0)), repr(balls.L2(0.1))]
    for name in ("coverage", "iid_coverage", "conditional_coverage"):
        assert [row[name] for row in told["balls"]] == getattr(found, name).tolist()
    assert (told["n"], told["alpha"], told["rank"], told["delta"]) == (99, "1/10", 10, "1/20")


def test_balls_without_a_radius_and_outcomes(capsys):
    out = run(capsys, *FLIPS, "--covered", 931, 1000, "--delta", "0.05")
    bound = bincp.clopper_pearson_lower(931, 1000, "0.05")
    certificate = bincp.certify(smoothing.SparseFlip(0.01, 0.6), balls.Flips(0, 1))
    assert f"{certificate.lower(bound):.8f}"[:9] in out
    assert "Flips(additions=1, deletions=0)" in out
    told = json.loads(run(capsys, *FLIPS, "--covered", 931, 1000, "--delta", "0.05", "--json"))
    assert told["clean_coverage"] == bound
    assert told["balls"][0]["iid_coverage"] is None


def test_integer_radii_stay_integers(capsys):
    ablation = ["audit", "--smoothing", "ablation:dim=20,keep=5", "--ball", "l0:r=0", "-n", 99]
    out = run(capsys, *ablation, "--alpha", 0.1, "--radii", 1, 2)
    assert "L0(r=2)" in out
    assert "--radii must be integers" in run(
        capsys, *ablation, "--alpha", 0.1, "--radii", 1.5, status=2
    )


def test_a_picture(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    target = tmp_path / "audit.png"
    options = ["--ball", "l2:r=0", "--radii", *np.linspace(0, 1, 5), "-n", 99, "--alpha", 0.1]
    assert f"wrote {target}" in run(capsys, *NOISE, *options, "--plot", target)
    assert target.stat().st_size > 1000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ball", "l2:r=0"], "-n and --alpha are needed, or --covered"),
        (["--ball", "l2:r=0", "-n", 9], "-n and --alpha are needed, or --covered"),
        (["--ball", "l2:r=0", "--covered", 1, 2, "-n", 9], "or --covered in place of both"),
        (["--ball", "l2:r=0", "--covered", 1, 2], "--delta is needed with --covered"),
        (["--ball", "l2:r=0", "--covered", 3, 2, "--delta", 0.1], "--covered must be S <= N"),
        (["--ball", "l2:r=0", "--covered", 0, 0, "--delta", 0.1], "--covered must be S <= N"),
        (
            ["--ball", "l2:r=0", "l2:r=1", "--radii", 1, "-n", 9, "--alpha", 0.1],
            "--radii needs one ball",
        ),
        (["--ball", "l2:r=0", "-n", 9, "--alpha", 0.1, "--plot", "a.png"], "--plot needs --radii"),
        (["--ball", "flips:additions=1,deletions=1", "-n", 9, "--alpha", 0.1], "Gaussian"),
    ],
)
def test_wrong_usage(capsys, options, message):
    assert message in run(capsys, *NOISE, *options, status=2)
