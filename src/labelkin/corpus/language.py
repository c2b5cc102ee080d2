"""Language codes: one spelling for all sources, and detection."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

# The languages that are told apart: those with a Snowball stemmer, and others
# with many published texts. A longer list makes short titles look exotic.
DETECTED_LANGUAGES = (
    "ar bg ca cs da de el en es et eu fa fi fr ga he hi hr hu hy id it ja ko lt lv "
    "ne nl no pl pt ro ru sk sl sr sv ta th tr uk vi zh"
).split()

# More characters cost time and gain nothing measurable.
_DETECTION_CHARACTERS = 500


@lru_cache(maxsize=1024)
def normalise_language(tag: str) -> str | None:
    """The shortest ISO 639 code of `tag` (`eng`, `en-GB`, `EN` → `en`), None if it is no tag."""
    if tag in DETECTED_LANGUAGES:
        return tag
    import langcodes

    try:
        language = langcodes.Language.get(tag.strip())
    except ValueError:
        return None
    return language.language if language.is_valid() else None


def detect_language(text: str) -> str | None:
    """The most likely language of `text` as an ISO 639-1 code, None for an empty text."""
    sample = text[:_DETECTION_CHARACTERS].strip()
    return str(_identifier().classify(sample)[0]) if sample else None


@lru_cache(maxsize=1)
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages(DETECTED_LANGUAGES)
    return identifier
