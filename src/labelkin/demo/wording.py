"""Forms of a heading: inside a sentence, in the singular, inverted and direct."""

from __future__ import annotations

from labelkin.demo.lexicon.places import PROPER_NOUNS

_SMALL_WORDS = frozenset("a and by for from in of off on out the to with".split())
_TAKES_ARTICLE = frozenset(
    "Basin Belt Borderlands Catchment Cliffs Country Delta Estuary Fen Fenlands Fens Firth Forest "
    "Gap Headwaters Hills Islands Isles Lakes Level Lowlands Marches Moor Ouselet Parishes Plain "
    "Realm River Sands Sea Slopes Sound Strand Vale Wash Woods".split()
)
_SINGULARS = {"Leaves": "Leaf", "Butterflies": "Butterfly", "Heaths": "Heath"}


def direct(term: str) -> str:
    """The direct form of an inverted term: `Wheat, Winter` becomes `Winter Wheat`."""
    head, comma, qualifier = term.partition(", ")
    return f"{qualifier} {head}" if comma else term


def inverted(term: str) -> str | None:
    """The inverted form of a term of two words, or None for others and for Latin binomials."""
    words = term.split()
    if len(words) != 2 or "," in term or words[1].islower():
        return None
    return f"{words[1]}, {words[0]}"


def singular(name: str) -> str:
    """The form of a name before another noun: `Cherries` becomes `Cherry` in `Cherry Harvest`."""
    if "," in name:
        name = direct(name)
    if name in _SINGULARS:
        return _SINGULARS[name]
    for plural, ending in (("ies", "y"), ("oes", "o"), ("ches", "ch"), ("shes", "sh")):
        if name.endswith(plural):
            return name.removesuffix(plural) + ending
    if name.endswith("s") and not name.endswith(("ss", "us", "is")):
        return name[:-1]
    return name


def spoken(term: str, *, proper: bool = False) -> str:
    """The term as it appears in a sentence: direct, lower case, proper nouns with an article.

    Latin binomials (`Salmo trutta`) and acronyms keep their capitals.
    """
    term = direct(term)
    words = term.split()
    if proper:
        needs_article = (
            "of" in words or words[-1] in _TAKES_ARTICLE or words[0] in ("River", "Vale")
        )
        if words[0] == "The":
            return "the " + " ".join(words[1:])
        return f"the {term}" if needs_article else term
    if any(word.islower() and word not in _SMALL_WORDS for word in words[1:]):
        return term
    return " ".join(word if _keeps_capital(word) else word.lower() for word in words)


def sentence(text: str) -> str:
    """The text with a capital at the front and a full stop at the end."""
    return f"{text[0].upper()}{text[1:]}."


def listed(phrases: list[str]) -> str:
    """The phrases as an enumeration: `a`, `a and b`, `a, b and c`."""
    if len(phrases) == 1:
        return phrases[0]
    return f"{', '.join(phrases[:-1])} and {phrases[-1]}"


def _keeps_capital(word: str) -> bool:
    return word in PROPER_NOUNS or (len(word) > 1 and word.isupper())
