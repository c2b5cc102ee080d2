"""The words of the demonstration collection: outlines of headings, aspects, sentence frames."""

from __future__ import annotations

from labelkin.demo.lexicon import animals, goods, hazards, land, places, plants, study, work

OUTLINES: dict[str, str] = {
    "A": plants.OUTLINE,
    "B": animals.OUTLINE,
    "C": land.OUTLINE,
    "D": hazards.OUTLINE,
    "E": work.OUTLINE,
    "F": goods.OUTLINE,
    "G": places.OUTLINE,
    "H": study.OUTLINE,
}
"""The outline of each top category, by the letter that begins its tree numbers."""
