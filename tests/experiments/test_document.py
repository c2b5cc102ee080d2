from __future__ import annotations

from labelkin.experiments.document import (
    Comparison,
    Heading,
    Image,
    Paragraph,
    Table,
    markdown,
)


def test_parts() -> None:
    text = markdown([Heading("Title", 1), Paragraph("Words."), Image("x", "A figure")])
    assert text == "# Title\n\nWords.\n\n![A figure](figures/x.png)\n"


def test_cells_hold_paper_ours_and_difference() -> None:
    table = Table(
        ["name", "MiF"],
        [
            ["a|b", Comparison(0.51, 0.5, ours_best=True)],
            ["c", Comparison(0.4, 0.5, paper_best=True)],
            ["d", Comparison(0.4)],
        ],
    )
    assert markdown([table]).splitlines() == [
        "| name | MiF |",
        "| --- | --: |",
        "| a\\|b | 0.5000 / **0.5100** (+0.0100) |",
        "| c | **0.5000** / 0.4000 (−0.1000) |",
        "| d | 0.4000 |",
    ]
