"""Pictures of the reports: each is there, of the data beside it, readable and for all eyes."""

import itertools
import json
import re

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("PIL.Image")
pytest.importorskip("torch")

from PIL import Image

from support import import_benchmarks

import_benchmarks()

from benchmarks import diabetes, pictures, small_plots  # noqa: E402
from benchmarks.paper import plots as paper_plots  # noqa: E402
from benchmarks.paper.stored import read_all  # noqa: E402
from benchmarks.study import plots as study_plots  # noqa: E402

FOLDER = small_plots.FOLDER
PAGES = sorted(FOLDER.rglob("*.md"))


def test_every_picture_is_on_a_page_and_every_page_has_its_pictures():
    shown = set()
    for page in PAGES:
        for link in re.findall(r"!\[[^\]]+\]\(([^)]*)\)", page.read_text("utf-8")):
            shown.add((page.parent / link).resolve())
    assert shown == {path.resolve() for path in FOLDER.rglob("*.png")}


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.png")), ids=lambda path: path.stem)
def test_pictures_are_sharp_at_the_width_of_a_page_and_small(path):
    with Image.open(path) as picture:
        assert picture.size[0] == pictures.WIDTH * pictures.DPI >= 1200
    assert path.stat().st_size < 100_000


def drawn(monkeypatch, module, draw, *arguments):
    """Return the labelled lines of each panel of a picture."""
    kept = []
    monkeypatch.setattr(module, "save", lambda figure, path: kept.append(figure))
    draw(*arguments, None)
    (figure,) = kept
    assert len(figure.legends) == 1  # beside the panels, not in them
    return [
        {line.get_label(): line.get_xydata().tolist() for line in panel.get_lines()}
        for panel in figure.axes
    ]


def test_the_picture_of_the_diabetes_data(monkeypatch):
    covered, width = drawn(monkeypatch, small_plots, small_plots.diabetes)
    rows = small_plots.rows_of(FOLDER / "diabetes" / "RESULTS.md", "method")
    for method in small_plots.METHODS:
        own = [[float(cell) for cell in row[1:]] for row in rows if row[0] == method]
        assert covered[f"{method}: attacked"] == [[row[0], 100 * row[3]] for row in own]
        assert covered[f"{method}: promised"] == [[row[0], 100 * row[1]] for row in own]
        assert [[row[0], row[4]] for row in own] in width.values()


def test_the_picture_of_the_graph(monkeypatch):
    (lines,) = drawn(monkeypatch, small_plots, small_plots.graphs)
    rows = small_plots.rows_of(FOLDER / "GRAPHS.md", "rule")
    for place, attack in ((2, "clean"), (4, "gradient"), (6, "search")):
        assert lines[attack] == [[float(row[place]), i] for i, row in enumerate(rows)]


def test_the_picture_of_the_study(monkeypatch):
    stored = json.loads((FOLDER / "study" / "sizes.json").read_text())
    panels = drawn(monkeypatch, study_plots, study_plots.size_against_passes, stored)
    for lines, problem in zip(panels, stored["problems"], strict=True):
        rows = {(row["method"], row["m"], row["m_test"]): row for row in problem["rows"]}
        for label, method in (
            ("bincp, stopping early", ("mixture, early", 64, 16)),
            ("the paper's rule", ("Clopper-Pearson, paper", 64, 64)),
            ("RCP1, one pass", ("RCP1", 1, 1)),
        ):
            row = rows[method]
            assert [row["passes"][1], row["size"][1]] in lines[label]


def test_the_pictures_of_the_paper(monkeypatch):
    found = read_all(FOLDER / "paper")
    panels = drawn(monkeypatch, paper_plots, paper_plots.samples, found)
    settings = [(stored, setting) for stored in found for setting in stored.settings]
    for lines, (stored, setting) in zip(panels, settings, strict=True):
        radii = list(dict.fromkeys(p.radius for p in stored.of("samples", setting=setting)))
        for method in ("BinCP, mixture", "BinCP, as printed", "RCP1"):
            points = stored.of("samples", setting=setting, radius=radii[1], method=method)
            assert lines[method] == [[p.m, p.size] for p in points]


def test_rows_of_a_table_are_read_back():
    path = FOLDER / "diabetes" / "RESULTS.md"
    rows = small_plots.rows_of(path, "method")
    found = [
        diabetes.Row(row[0], float(row[1]), *(float(row[i]) for i in (3, 4, 5, 2))) for row in rows
    ]
    assert diabetes.table(found) in path.read_text("utf-8")
    assert {row.method for row in found} == set(small_plots.METHODS)


def seen_by(colour, kind):
    """Return a colour in linear light as the colour-blind see it (Viénot, Brettel and Mollon)."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (value**2.2 for value in (red, green, blue))
    if kind == "protan":
        both = 0.11238 * red + 0.88762 * green
        return both, both, 0.00401 * red - 0.00401 * green + blue
    if kind == "deutan":
        both = 0.29275 * red + 0.70725 * green
        return both, both, -0.02234 * red + 0.02234 * green + blue
    return red, green, blue


@pytest.mark.parametrize("kind", ["all", "protan", "deutan"])
@pytest.mark.parametrize("styles", [study_plots.STYLES, paper_plots.STYLES, small_plots.METHODS])
def test_lines_of_a_picture_differ_to_all_eyes(styles, kind):
    """Lines of two colours are told apart by them, and lines of one by their marker or dashes."""
    found = [style[1] if isinstance(style[0], str) and isinstance(style[1], tuple) else style
             for style in styles.values()]  # fmt: skip
    for one, other in itertools.combinations(found, 2):
        assert (one.colour, one.marker, one.line) != (other.colour, other.marker, other.line)
        if one.colour != other.colour:
            colours = zip(seen_by(one.colour, kind), seen_by(other.colour, kind), strict=True)
            distance = sum((a - b) ** 2 for a, b in colours) ** 0.5
            assert distance > 0.05 or one.marker != other.marker
