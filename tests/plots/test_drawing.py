from __future__ import annotations

import sys
from pathlib import Path

import pytest

from labelkin.exceptions import MissingExtraError
from labelkin.plots.drawing import (
    draw_frequencies,
    draw_latent,
    draw_reliability,
    save_figure,
)
from labelkin.plots.frequencies import Frequencies
from labelkin.plots.latent import Branch, LatentMap, MapPoint
from labelkin.plots.reliability import Reliability
from labelkin.rerank.calibration import Bin

pytest.importorskip("matplotlib", reason="needs the extra `train`")

TAIL = Frequencies(((1, 2000), (2, 150), (3, 1)), {1000: 1, 100: 2, 10: 2, 1: 3}, 1)
BINS = (Bin(0.0, 0.1, 0.04, 0.05, 900), Bin(0.9, 1.0, 0.95, 0.9, 20))
RELIABLE = Reliability(BINS, 0.011, 0.8, None, 12)
POINTS = tuple(
    MapPoint(f"C{number}", name, number / 4, number / 4, branch, 10 * number)
    for number, (name, branch) in enumerate(
        [("Cost: $5 and $6", "A"), ("<script>", "A"), ("Öl", ""), ("面包", "B"), ("x" * 80, "B")]
    )
)
MAP = LatentMap(POINTS, (Branch("A", "In $ and $", 2), Branch("B", "Brot " * 30, 2)))
FIGURES = {
    "frequencies": lambda: draw_frequencies(TAIL, "A $title$"),
    "reliability": lambda: draw_reliability(RELIABLE),
    "latent": lambda: draw_latent(MAP),
}
BEGINNINGS = {".png": b"\x89PNG", ".svg": b"<?xml", ".PDF": b"%PDF"}


@pytest.mark.parametrize("extension", BEGINNINGS)
@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_written_and_equal(name: str, extension: str, tmp_path: Path) -> None:
    for number in (1, 2):
        save_figure(FIGURES[name](), tmp_path / f"{number}{extension}")
    first, second = ((tmp_path / f"{number}{extension}").read_bytes() for number in (1, 2))
    assert first.startswith(BEGINNINGS[extension])
    assert first == second


def texts(name: str, tmp_path: Path) -> str:
    save_figure(FIGURES[name](), tmp_path / "f.svg")
    return (tmp_path / "f.svg").read_text(encoding="utf-8")


def test_frequencies_say_how_many_headings_are_frequent(tmp_path: Path) -> None:
    drawn = texts("frequencies", tmp_path)
    for text in ("1 in at least 1,000 (33.3%)", "2 in at least 100 (66.7%)", "A $title$"):
        assert text in drawn
    assert "1 in a single one (33.3%)" in drawn


def test_reliability_names_error_counts_and_bands(tmp_path: Path) -> None:
    drawn = texts("reliability", tmp_path)
    for text in ("error 0.0110, 12 documents", ">900<", ">20<", "accept from 0.80"):
        assert text in drawn
    assert "review from" not in drawn


def test_names_are_text_not_formulas_and_not_markup(tmp_path: Path) -> None:
    drawn = texts("latent", tmp_path)
    assert "Cost: $5 and $6" in drawn
    assert "In $ and $ (2)" in drawn
    assert "&lt;script&gt;" in drawn
    assert "<script>" not in drawn


def test_empty_figures(tmp_path: Path) -> None:
    nothing = Frequencies((), {1000: 0, 100: 0, 10: 0, 1: 0}, 0)
    for number, figure in enumerate(
        [
            draw_frequencies(nothing),
            draw_reliability(Reliability((), 0.0, None, None, 0)),
            draw_latent(LatentMap((), ())),
        ]
    ):
        save_figure(figure, tmp_path / f"{number}.png")


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'labelkin\[train\]'"):
        draw_frequencies(TAIL)
