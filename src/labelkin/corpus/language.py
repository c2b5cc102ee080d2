"""Language codes: normalisation and detection."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

# The languages that detection distinguishes: those with a Snowball stemmer, and
# others with many published texts. With a longer list short titles are often
# misclassified as a rare language.
DETECTED_LANGUAGES = (
    "ar bg ca cs da de el en es et eu fa fi fr ga he hi hr hu hy id it ja ko lt lv "
    "ne nl no pl pt ro ru sk sl sr sv ta th tr uk vi zh"
).split()

# The least difference of log likelihoods that counts as strong evidence, chosen on titles of
# YSO's and TIB's records: docs/multilingual.md has the figures.
_STRONG_EVIDENCE = 10.0
_USUAL_SHARE = 0.05
# More characters take longer without a measurable gain.
_DETECTION_CHARACTERS = 500


@lru_cache(maxsize=1024)
def normalise_language(tag: str) -> str | None:
    """The shortest ISO 639 code of `tag` (`eng`, `en-GB`, `EN` → `en`), or None if invalid."""
    if tag in DETECTED_LANGUAGES:
        return tag
    import langcodes

    try:
        language = langcodes.Language.get(tag.strip())
    except ValueError:
        return None
    return language.language if language.is_valid() else None


def detect_language(text: str, expected: Collection[str] = ()) -> str | None:
    """The most likely language of `text` as an ISO 639-1 code, or None for a text without words.

    Another language than the `expected` ones needs strong evidence: short titles
    are often misclassified. Of equally likely ones the first is returned.
    """
    scores = _scores(text)
    known = [language for language in expected if language in scores]
    if not scores or min(scores.values()) == max(scores.values()):
        return known[0] if known else None
    best = next(iter(scores))
    if known and best not in known:
        likeliest = max(known, key=scores.__getitem__)
        if scores[best] - scores[likeliest] <= _STRONG_EVIDENCE:
            return likeliest
    return best


def clear_language(text: str) -> str | None:
    """The language of `text` if there is strong evidence for it against any other."""
    scores = _scores(text)
    (first, best), (_, second) = islice((*scores.items(), ("", 0.0), ("", 0.0)), 2)
    return first if best - second > _STRONG_EVIDENCE else None


def language_shares(text: str, languages: Sequence[str]) -> dict[str | None, float] | None:
    """The probabilities of some languages, the largest first; None stands for all others.

    None altogether if one of the languages cannot be detected.
    """
    codes = {language: normalise_language(language) for language in languages}
    if any(code not in DETECTED_LANGUAGES for code in codes.values()):
        return None
    scores = _scores(text)
    if not scores or min(scores.values()) == max(scores.values()):
        return {None: 1.0}
    best = max(scores.values())
    total = sum(math.exp(score - best) for score in scores.values())
    shares: dict[str | None, float] = {
        language: math.exp(scores[code] - best) / total for language, code in codes.items() if code
    }
    shares[None] = max(0.0, 1.0 - sum({codes[one]: shares[one] for one in codes}.values()))
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _scores(text: str) -> dict[str, float]:
    """The log likelihood of each language, best first; empty for an empty text."""
    sample = text[:_DETECTION_CHARACTERS].strip()
    return _ranked(sample) if sample else {}


@lru_cache(maxsize=4096)
def _ranked(sample: str) -> dict[str, float]:
    """Cached, because a text is often looked at twice: alone, and with its batch."""
    return dict(_identifier().rank(sample))


def usual_languages(counts: Mapping[str, int]) -> tuple[str, ...]:
    """The languages of at least one in twenty texts, the most frequent first.

    The others may come from misclassified texts.
    """
    enough = _USUAL_SHARE * sum(counts.values())
    ordered = sorted(counts, key=lambda language: (-counts[language], language))
    return tuple(language for language in ordered if counts[language] >= enough)


@lru_cache(maxsize=1)
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages(DETECTED_LANGUAGES)
    return identifier
