"""Language codes: normalisation and detection."""

from __future__ import annotations

from functools import lru_cache
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


def detect_language(text: str) -> str | None:
    """The most likely language of `text` as an ISO 639-1 code, or None for an empty text."""
    sample = text[:_DETECTION_CHARACTERS].strip()
    return str(_identifier().classify(sample)[0]) if sample else None


@lru_cache(maxsize=1)
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages(DETECTED_LANGUAGES)
    return identifier
