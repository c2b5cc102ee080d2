from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from typer.testing import Result

from labelkin.cli.explanation import cut, explained, in_sentence
from labelkin.scoring.suggestion import Carrier, Naming, SignalWeight, Suggestion
from labelkin.vocab import Concept

Run = Callable[..., Result]

LONG = "A long title about the keeping of horses in the hills, and about what became of them later"
CARRIERS = tuple(
    Carrier(f"d{number}", LONG, 0.5, 0.1, year=1990 + number % 10) for number in range(80)
)
NAMING = Naming("horses", "body", 2, before="In the hills, the keeping of ", after=" was rare.")
SIGNALS = (
    SignalWeight("named in the text", 3.14),
    SignalWeight("similar documents", 1.5),
    SignalWeight("words of the text", 0.9),
    SignalWeight("other headings", -0.75),
    SignalWeight("any candidate", -5.0),
)
HUMANS = Suggestion(
    Concept("V1", {"en": "Horses", "de": "Pferde"}), 0.876, 1, CARRIERS, 80, named=(NAMING,)
)


def lines(suggestion: Suggestion, width: int = 80, language: str = "en") -> list[str]:
    return list(explained(suggestion, language, width))


def test_a_block_of_a_few_lines() -> None:
    block = lines(replace(HUMANS, signals=SIGNALS, band="accept"))
    title = LONG[:64] + "…"
    assert block == [
        "Horses  0.88  accept",
        "  80 of 80 nearest documents; named in the text +3.1; similar documents +1.5;",
        "  against it: other headings -0.8",
        "  named in the text (2 times): In the hills, the keeping of “horses” was rare.",
        f"  0.50  1990  {title}",
        f"  0.50  1991  {title}",
        f"  0.50  1992  {title}",
        "  and 77 more",
    ]


@pytest.mark.parametrize("width", [20, 40, 57, 80, 200])
@pytest.mark.parametrize("title", [LONG, "馬の飼育について" * 20, "e\u0301" * 300, "Short"])
def test_no_line_is_wider_than_the_terminal(width: int, title: str) -> None:
    naming = Naming("馬" * 5, "body", 1, before=title, after=title)
    carriers = [replace(carrier, title=title) for carrier in CARRIERS[:3]]
    suggestion = replace(
        HUMANS,
        concept=Concept("V1", {"en": title}),
        carriers=tuple(carriers),
        named=(naming, NAMING),
        signals=SIGNALS,
        band="review",
    )
    for line in lines(suggestion, width):
        assert cell_len(line) <= width
        assert line == line.rstrip()


def test_a_terminal_that_is_too_narrow_still_shows_the_heading() -> None:
    assert lines(HUMANS, 5)[0] == "Horses  0.88"
    assert lines(HUMANS, 5) == lines(HUMANS, 20)


def test_votes_only() -> None:
    block = lines(replace(HUMANS, carriers=CARRIERS[:2], neighbours=20, named=()))
    assert block[1] == "  2 of 20 nearest documents"
    assert len(block) == 4
    assert not any("more" in line for line in block)


def test_inferred_headings_name_their_sources_in_the_language() -> None:
    sources = (Concept("V2", {"en": "Hay", "de": "Heu"}), Concept("V3", {"en": "Oats"}))
    carriers = tuple(replace(one, carries=False, share=0.25) for one in CARRIERS[:1])
    suggestion = replace(HUMANS, carriers=carriers, inferred_from=sources, named=())
    block = lines(suggestion, language="de")
    assert block[:2] == ["Pferde  0.88", "  inferred from Heu, Oats"]
    assert block[2].startswith("  0.50  1990  (25%) A long title")


def test_a_heading_that_is_not_named_says_so() -> None:
    signals = (SignalWeight("similar documents", 2.0), SignalWeight("named in the text", -1.0))
    block = lines(replace(HUMANS, named=(), signals=signals), 100)
    assert block[1].endswith("similar documents +2.0; against it: not named in the text -1.0")
    named = lines(replace(HUMANS, signals=signals), 100)
    assert named[1].endswith("similar documents +2.0; against it: named in the text -1.0")


def test_names_only() -> None:
    block = lines(replace(HUMANS, carriers=(), neighbours=0))
    assert len(block) == 2
    assert "“horses”" in block[1]


def test_a_name_within_a_longer_one_counts_only_by_itself() -> None:
    nested = replace(NAMING, nested=True)
    both = lines(replace(HUMANS, named=(NAMING, nested)))
    assert sum("“horses”" in line for line in both) == 1
    assert "part of a longer name" in lines(replace(HUMANS, named=(nested,)))[2]


def test_documents_without_a_year_are_aligned() -> None:
    carriers = (CARRIERS[0], replace(CARRIERS[1], year=None, title="No\nyear"))
    block = lines(replace(HUMANS, carriers=carriers))
    assert block[-1] == "  0.50        No year"


def test_long_sentences_keep_the_words_that_matter() -> None:
    naming = Naming("wet hay", "body", before="word " * 40, after=" word" * 40)
    for width in (40, 60, 80):
        line = in_sentence(naming, width)
        assert "“wet hay”" in line
        assert line.startswith("named in the text: …" + ("word " if width > 40 else ""))
        assert line.endswith("…")
        assert width - 6 <= cell_len(line) <= width


def test_cut_counts_cells() -> None:
    assert cut("馬の飼育", 8) == "馬の飼育"
    assert cut("馬の飼育", 7) == "馬の飼…"
    assert cut("馬の飼育", 6) == "馬の…"
    assert cut("abc", 0) == ""


def test_documents_without_a_title_show_the_beginning_of_their_text(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a collection to the screen: years, texts for titles, and the width of the terminal."""
    body = "Oats were cut late. " * 40
    records = [
        {"id": "with-title", "title": "On oats", "labels": ["Oats"], "year": 1987},
        {"id": "without-title", "text": body, "labels": ["Oats"]},
        {"id": "only-fields", "fields": {"notes": body}, "labels": ["Oats"]},
    ]
    Path("c.jsonl").write_text(
        "".join(json.dumps({**one, "language": "en"}) + "\n" for one in records)
    )
    assert run("init", "c").exit_code == 0
    assert run("add", "c", "c.jsonl").exit_code == 0
    for width in (50, 80):
        monkeypatch.setenv("COLUMNS", str(width))
        shown = run("suggest", "c", "--text", "Late oats.", "--explain", "--method", "knn").stdout
        assert max(map(cell_len, shown.splitlines())) <= width
        carriers = [line[8:] for line in shown.splitlines() if line.startswith("  0.")]
        assert len(carriers) == 3
        assert "1987  On oats" in carriers
        assert sum(line.startswith("      Oats were cut late. Oats") for line in carriers) == 2
        assert "without-title" not in shown
    everything = run("suggest", "c", "--text", "Late oats.", "--method", "knn", "--json").stdout
    ((first, *_),) = [one["suggestions"] for one in json.loads(everything)]
    found = {one["id"]: one for one in first["evidence"]["carriers"]}
    assert found["with-title"]["year"] == 1987
    assert found["without-title"]["year"] is None
    assert found["without-title"]["title"].startswith("Oats were cut late.")
