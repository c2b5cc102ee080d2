"""Aspects: short names that a line of an outline lists to generate narrower headings.

`Wheat + winter diseases` yields "Wheat, Winter" and "Wheat Diseases" below "Wheat".
In a pattern, `{name}` is the heading's name ("Apples") and `{stem}` its singular ("Apple").
An aspect with a `home` gives its headings a second parent, which is where most of the
poly-hierarchy comes from ("Wheat Diseases" is also below "Crop Diseases").
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Aspect:
    """Name patterns of one aspect, and its headings' second parent, category and topic words."""

    pattern: str
    synonyms: tuple[str, ...]
    home: str | None = None
    category: str | None = None
    words: tuple[str, ...] = ()


ASPECTS: dict[str, Aspect] = {
    "winter": Aspect("{name}, Winter", ("Autumn-Sown {name}",), words=("hardiness", "snow mould")),
    "spring": Aspect("{name}, Spring", ("March-Sown {name}",), words=("late sowing", "dry tilth")),
    "early": Aspect("{name}, Early", ("New {name}",), words=("chitting trays", "forced rows")),
    "dwarf": Aspect("{name}, Dwarf", ("Bush {name}",), words=("compact growth", "short nodes")),
    "wild": Aspect("{name}, Wild", ("Uncultivated {name}",), words=("bank finds", "foraging")),
    "climbing": Aspect(
        "{name}, Climbing", ("Rambling {name}",), words=("wall nails", "long canes")
    ),
    "young": Aspect("{name}, Young", ("Juvenile {name}",), words=("fry densities", "nurseries")),
    "diseases": Aspect(
        "{stem} Diseases",
        ("Diseases of {name}", "{stem} Pathology"),
        home="Crop Diseases",
        category="D",
        words=("lesion counts", "infected lots", "symptom scores"),
    ),
    "ailments": Aspect(
        "{stem} Ailments",
        ("Sickness in {name}", "{stem} Health"),
        home="Livestock Diseases",
        category="D",
        words=("drenching", "sick stalls", "vet's notes"),
    ),
    "breeding": Aspect(
        "{stem} Breeding",
        ("{stem} Improvement", "Selection of {name}"),
        home="Plant Breeding",
        category="E",
        words=("crossing blocks", "parent lines", "selected families"),
    ),
    "breedingstock": Aspect(
        "{stem} Breeding",
        ("{stem} Improvement", "Selection of {name}"),
        home="Animal Breeding",
        category="E",
        words=("sire choice", "pedigree rolls", "progeny records"),
    ),
    "storage": Aspect(
        "{stem} Storage",
        ("Keeping of {name}",),
        home="Crop Storage",
        category="E",
        words=("stored lots", "spring condition", "shrinkage"),
    ),
    "harvest": Aspect(
        "{stem} Harvest",
        ("Gathering of {name}",),
        home="Harvesting",
        category="E",
        words=("picking rates", "field boxes", "cutting weeks"),
    ),
    "pruning": Aspect(
        "{stem} Pruning",
        ("Cutting of {name}",),
        home="Pruning",
        category="E",
        words=("trained arms", "removed wood", "cut length"),
    ),
    "trade": Aspect(
        "{stem} Trade",
        ("Commerce in {name}", "Dealing in {name}"),
        home="Produce Trade",
        category="F",
        words=("auction days", "merchants' letters", "crate prices"),
    ),
    "rearing": Aspect(
        "{stem} Rearing",
        ("Raising of {name}",),
        home="Stock Keeping",
        category="E",
        words=("survival to weaning", "growth curves", "rearing pens"),
    ),
    "feeding": Aspect(
        "{stem} Feeding",
        ("Foddering of {name}",),
        home="Animal Feeding",
        category="E",
        words=("ration trials", "feed refusals", "bucket intake"),
    ),
    "migration": Aspect(
        "{stem} Migration",
        ("Passage of {name}",),
        home="Animal Migration",
        words=("passage dates", "counted runs", "ring recoveries"),
    ),
    "counts": Aspect(
        "{stem} Populations",
        ("Stocks of {name}", "Abundance of {name}"),
        words=("index values", "breeding numbers", "long-term decline"),
    ),
    "restoration": Aspect(
        "{stem} Restoration",
        ("Renewal of {name}",),
        home="Habitat Restoration",
        category="E",
        words=("replanted stretches", "reference sites", "recovery scores"),
    ),
    "floods": Aspect(
        "{name} Floods",
        ("High Waters on {name}",),
        home="Floods",
        category="D",
        words=("flood stones", "drowned lanes"),
    ),
    "fisheries": Aspect(
        "{name} Fisheries",
        ("Fishing on {name}",),
        home="Fishing",
        category="E",
        words=("rod licences", "net stations"),
    ),
}
