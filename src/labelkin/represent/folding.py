"""Splits names and texts into words and folds the words for comparison."""

from __future__ import annotations

import re
import unicodedata

from labelkin.represent.stems import is_informative, stemmer, stop_words

# A single letter after an apostrophe is a possessive, not a word: Crohn's disease, Crohn disease.
_WORD = re.compile(r"(?<!['’])[^\W_]+|(?<=['’])[^\W_]{2,}")
# After fewer than three letters, a full stop more likely ends an abbreviation: St. Louis, E. coli.
_WORD_OR_END = re.compile(_WORD.pattern + r"|(?<=\w\w\w)[.;:!?](?=\s)")
_LONGEST_ACRONYM = 6


def plain(text: str) -> str:
    """`text` in NFKC; lower case if all of it is in capitals, unless it is short."""
    normal = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return normal.lower() if len(normal) > _LONGEST_ACRONYM and normal.isupper() else normal


def name_words(name: str) -> list[str]:
    """The words of a `plain` name as written; hyphens separate words."""
    words: list[str] = _WORD.findall(name)
    return words


def text_words(text: str) -> list[str]:
    """The words of a `plain` text, and the marks that end its sentences: no name crosses them."""
    words: list[str] = _WORD_OR_END.findall(text)
    return words


def word_spans(text: str) -> list[tuple[int, int]]:
    """The start and end of each of the `text_words` of a `plain` text."""
    return [match.span() for match in _WORD_OR_END.finditer(text)]


def folded(word: str, language: str) -> str:
    """The form of a word that ignores case and number.

    English words lose their plural ending only: matching stems as well adds more
    noise than matches (results/lexical.md). Other languages have more endings and
    use Snowball's stems.
    """
    lower = word.casefold()
    if language == "en":
        return word.removesuffix("s").casefold() if is_acronym(word) else _singular(lower)
    stems = stemmer(language)
    return stems.stem(lower) if stems is not None else lower


def _singular(word: str) -> str:
    """An English word without its plural ending (after Harman's S stemmer, 1991)."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ses", "xes", "zes", "hes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def is_acronym(word: str) -> bool:
    """Whether a word is short and mostly in capitals: HIV, mRNA, MRIs."""
    if not 2 <= len(word) <= _LONGEST_ACRONYM:
        return False
    capitals = sum(letter.isupper() for letter in word)
    return capitals >= 2 and 2 * capitals >= len(word)


def can_be_name(word: str, language: str) -> bool:
    """Whether a word can be a name by itself: not a stop word, letter or number."""
    forms = {word.casefold(), folded(word, language)}
    return is_informative(word) and forms.isdisjoint(stop_words(language))
