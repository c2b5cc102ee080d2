"""The evidence for suggested headings, as blocks of lines that fit the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from labelkin.wording import counted

if TYPE_CHECKING:
    from labelkin.scoring.suggestion import Carrier, Naming, Suggestion

# A narrower terminal breaks lines.
_NARROWEST = 20
_CARRIERS = 3
_NAMINGS = 2
_SIGNALS = 2
# A weaker signal is not worth naming.
_LEAST_WEIGHT = 0.2
# Characters of a word that is left out rather than cut.
_WORD = 15
_INDENT = "  "
_ELLIPSIS = "…"


def explained(suggestion: Suggestion, language: str, width: int) -> Iterator[str]:
    """The lines about one heading, none wider than `width` cells (20 at least).

    Heading, score and band; the strongest signals; the words that name it, in
    their sentence; the nearest documents that carry it.
    """
    width = max(width, _NARROWEST)
    score = "  ".join(filter(None, (f"{suggestion.score:.2f}", suggestion.band)))
    name = _one_line(suggestion.concept.name(language))
    yield f"{cut(name, width - len(score) - 2)}  {score}"
    inner = width - len(_INDENT)
    lines = list(_packed(_reasons(suggestion, language), inner))
    namings = [one for one in suggestion.named if not one.nested] or suggestion.named
    lines += [in_sentence(naming, inner) for naming in namings[:_NAMINGS]]
    lines += [_carrier(carrier, inner) for carrier in suggestion.carriers[:_CARRIERS]]
    if (more := len(suggestion.carriers) - _CARRIERS) > 0:
        lines.append(f"and {more:,} more")
    yield from (_INDENT + line for line in lines if line)


def in_sentence(naming: Naming, width: int) -> str:
    """The words that name a heading in their sentence, marked by quotation marks."""
    from rich.cells import cell_len

    where = "title" if naming.place == "title" else "text"
    how = "part of a longer name" if naming.nested else "named"
    often = f" ({naming.count:,} times)" if naming.count > 1 else ""
    start = f"{how} in the {where}{often}: "
    words = cut(f"“{_one_line(naming.words)}”", width - len(start))
    rest = width - len(start) - cell_len(words)
    after = cut(naming.after, max(rest - cell_len(naming.before), rest // 2))
    before = _cut_start(naming.before, rest - cell_len(after))
    return cut(f"{start}{before}{words}{after}", width)


def cut(text: str, width: int) -> str:
    """`text` cut to a number of terminal cells; wide characters take two."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + _ELLIPSIS if width > 0 else ""


def _cut_start(text: str, width: int) -> str:
    from rich.cells import cell_len

    if cell_len(text) <= width:
        return text
    while text and cell_len(text) > width - 1:
        text = text[1:]
    # Not in the middle of a word, unless it is very long or the script has no spaces.
    word, space, rest = text.partition(" ")
    text = rest if space and len(word) < _WORD else text
    return _ELLIPSIS + text if width > 0 else ""


def _reasons(suggestion: Suggestion, language: str) -> Iterator[str]:
    """How many neighbours carry the heading, and the strongest signals."""
    from labelkin.scoring.suggestion import BASE, NAMED

    if suggestion.inferred_from and not suggestion.votes:
        names = (_one_line(one.name(language)) for one in suggestion.inferred_from)
        yield f"inferred from {', '.join(names)}"
    elif suggestion.neighbours and not suggestion.votes:
        yield f"none of the {suggestion.neighbours} nearest documents"
    elif suggestion.neighbours:
        nearest = counted(suggestion.neighbours, "nearest document")
        yield f"{suggestion.votes} of {nearest}"
    strong = [
        one for one in suggestion.signals if abs(one.weight) >= _LEAST_WEIGHT and one.name != BASE
    ]
    for one in [one for one in strong if one.weight > 0][:_SIGNALS]:
        yield f"{one.name} {one.weight:+.1f}"
    for one in [one for one in strong if one.weight < 0][-1:]:
        missing = "" if suggestion.named or one.name != NAMED else "not "
        yield f"against it: {missing}{one.name} {one.weight:+.1f}"


def _packed(parts: Iterator[str], width: int) -> Iterator[str]:
    """The parts one after another, on as many lines as they need."""
    from rich.cells import cell_len

    line = ""
    for part in parts:
        longer = f"{line}; {part}" if line else part
        if line and cell_len(longer) >= width:
            yield f"{line};"
            longer = part
        line = cut(longer, width - 1)
    if line:
        yield line


def _carrier(carrier: Carrier, width: int) -> str:
    """Distance, year and title; the share of the score if the document lacks the heading."""
    share = "" if carrier.carries else f"({carrier.share:.0%}) "
    year = f"{carrier.year:>4}" if carrier.year is not None else "    "
    line = f"{carrier.distance:.2f}  {year}  {share}{_one_line(carrier.title) or '(no text)'}"
    return cut(line, width)


def _one_line(text: str) -> str:
    return " ".join(text.split())
