from __future__ import annotations

import pytest

from labelkin.scoring.suggestion import Carrier, Naming, SignalWeight, Suggestion
from labelkin.vocab import Concept

OATS = Concept("V3", {"en": "Oats"})
CARRIER = Carrier("d1", "Porridge", 0.5, 1.0)
NAMING = Naming("oats", "title")
SIGNALS = (
    SignalWeight("named in the text", 2.0),
    SignalWeight("similar documents", 1.5),
    SignalWeight("words of the text", 1.0),
    SignalWeight("other headings", -0.5),
)


@pytest.mark.parametrize(
    ("carriers", "named", "reason"),
    [
        ((CARRIER,), (NAMING,), "1 of 80 nearest documents; named in the title: 'oats'"),
        ((CARRIER,), (), "1 of 80 nearest documents"),
        ((), (NAMING,), "named in the title: 'oats'"),
        ((), (), "words of the text"),
    ],
)
def test_reranked(carriers: tuple[Carrier, ...], named: tuple[Naming, ...], reason: str) -> None:
    """A signal is the reason only where no document carries the heading and no word names it."""
    suggestion = Suggestion(OATS, 0.8, 1, carriers, 80, named=named, signals=SIGNALS)
    assert suggestion.reason == reason


def test_without_signals() -> None:
    assert Suggestion(OATS, 0.8, 1, neighbours=20).reason == "0 of 20 nearest documents"
    assert Suggestion(OATS, 0.8, 1, neighbours=1).reason == "0 of 1 nearest document"
