"""Progress bars are shown to who watches or asks, one a task; the library logs and never prints."""

import io
import logging
import sys

import numpy as np
import pytest

import bincp
from bincp._utils import progress as module
from bincp._utils.progress import beside_bars, check_progress, progress_bar

pytest.importorskip("tqdm")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def watched(monkeypatch):
    """Make stderr a terminal; pytest takes it back between the fixtures and the test."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def work(progress):
    with progress_bar(progress, 3, "work", "step") as bar:
        bar.set_description("stage", refresh=False)
        for _ in range(3):
            bar.update()


@pytest.mark.parametrize(
    ("progress", "delay", "shown"),
    [
        (True, 2, True),
        (False, 0, False),
        (None, 2, False),  # done before it would appear
        (None, 0, True),
    ],
)
def test_on_a_terminal(monkeypatch, progress, delay, shown):
    terminal = watched(monkeypatch)
    monkeypatch.setattr(module, "_DELAY", delay)
    work(progress)
    assert ("0/3" in terminal.getvalue()) is shown
    if progress is None and shown:
        assert terminal.getvalue().endswith("\r")  # it has vanished


@pytest.mark.parametrize("progress", [True, False, None])
def test_where_nobody_watches(monkeypatch, progress):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(module, "_DELAY", 0)
    work(progress)
    assert ("0/3" in sys.stderr.getvalue()) is (progress is True)


def test_without_tqdm_only_a_wanted_bar_is_an_error(monkeypatch):
    terminal = watched(monkeypatch)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    work(None)
    with pytest.raises(ImportError, match="a progress bar needs tqdm: pip install tqdm"):
        work(True)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("stderr", [None, "closed"])
def test_without_a_stderr(monkeypatch, stderr):
    stream = io.StringIO()  # says no more whether it is a terminal once it is closed
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream if stderr else None)
    with progress_bar(None, 3, "work", "step") as bar:
        assert isinstance(bar, module._NoBar)


def test_lines_stand_above_the_bar(monkeypatch):
    terminal = watched(monkeypatch)
    with progress_bar(True, 2, "work", "step") as bar:
        bar.update()
        with beside_bars():
            print("a line", file=sys.stderr)
    lines = terminal.getvalue().replace("\r", "\n").splitlines()
    assert "a line" in lines  # and not behind the half of a bar


@pytest.mark.parametrize("value", [0, 1, "yes"])
def test_other_values_are_refused(value):
    with pytest.raises(TypeError, match=f"`progress` must be True, False or None, got {value!r}"):
        check_progress(value)


RNG = np.random.default_rng(0)
CERTIFICATE = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.1))


def test_a_sweep_has_a_bar_for_its_rules_and_one_for_its_test_points(capsys):
    scores = RNG.normal(1, 0.3, (20, 2, 16))
    bincp.sweep(CERTIFICATE, scores[:, 0], scores, alpha=["0.2", "0.3"], progress=True)
    err = capsys.readouterr().err
    assert "2/2" in err
    assert "40/40" in err  # 2 rules x 20 test points
    bincp.sweep(CERTIFICATE, scores[:, 0], scores, alpha=["0.2", "0.3"])
    assert capsys.readouterr().err == ""


def test_a_calibration_logs_the_rule_that_it_chose(caplog, capsys):
    caplog.set_level(logging.INFO, "bincp")
    rule = bincp.BinCP(CERTIFICATE, passes=3).calibrate(RNG.normal(1, 0.3, (50, 16)))
    (line,) = caplog.messages
    assert "n = 50, m = 16, correction mixture" in line
    assert f"k = {rule.min_count_} of m' = 16" in line
    assert line.endswith("decided early")
    caplog.clear()
    bincp.BinCP(CERTIFICATE).calibrate_exact(np.linspace(0.5, 1, 99), tau=0.4)
    assert caplog.messages == ["n = 99, tau = 0.4"]
    caplog.clear()
    scores, labels = RNG.normal(1, 0.3, (50, 16)), np.zeros(50, int)
    with pytest.warns(bincp.TrivialSetWarning):
        bincp.MondrianBinCP(CERTIFICATE, n_classes=2).calibrate(scores, labels)
    assert caplog.messages[0].startswith("class 0: n = 50, ")
    assert caplog.messages[1] == "class 1 has no points: its label is in every set"
    assert {record.name.split(".")[0] for record in caplog.records} == {"bincp"}
    assert capsys.readouterr() == ("", "")


def test_risk_control_logs_the_rule_that_it_chose(caplog):
    caplog.set_level(logging.INFO, "bincp")
    scores, labels = RNG.normal(1, 0.3, (50, 3, 16)), RNG.random((50, 3)) < 0.5
    rule = bincp.RobustRiskControl(CERTIFICATE, alpha=0.3).calibrate(scores, labels)
    assert f"k = {rule.min_count_} of m' = 16" in caplog.messages[-1]


def test_a_program_that_configures_no_logging_sees_nothing(capsys):
    assert any(isinstance(h, logging.NullHandler) for h in logging.getLogger("bincp").handlers)
    logging.getLogger("bincp.test").warning("not shown")  # without a handler it would be
    assert "not shown" not in capsys.readouterr().err
