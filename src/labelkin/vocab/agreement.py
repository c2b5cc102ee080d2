"""Whether the labels of documents are those of a vocabulary, and what to do if they are not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from labelkin.corpus.document import Correction, Document
from labelkin.exceptions import WrongKindError
from labelkin.vocab.vocabulary import Vocabulary

# How many documents are looked at.
FIRST_DOCUMENTS = 500
# With fewer different labels, that none is known may be chance.
_ENOUGH_LABELS = 10
_LOOKED_AT = 300
_SHOWN = 3
_SHOWN_CHARACTERS = 40
_SEPARATORS = (";", "|", ",")
# A single heading may well have a comma in it, so that more evidence is needed.
_PART_OF_NAMES = ","


def check_labels(
    documents: Iterable[Document | Correction], vocabulary: Vocabulary, separator: str
) -> None:
    """Raise WrongKindError if the documents have labels and the vocabulary knows none of them."""
    unknown: dict[str, None] = {}
    for document in documents:
        for label in document.labels:
            name = document.label_names.get(label, "")
            language = document.language if isinstance(document, Document) else None
            if vocabulary.resolve(label, name, language or "").column is not None:
                return
            unknown.setdefault(label)
    if not len(vocabulary) or len(unknown) < _ENOUGH_LABELS:
        return
    shown = ", ".join(f"'{_short(label)}'" for label in islice(unknown, _SHOWN))
    joined_by = label_separator_of(list(unknown), vocabulary, separator)
    advice = (
        f"they look like lists; split them with --label-separator '{joined_by}'"
        if joined_by
        else "are they headings of another vocabulary? --keep-unknown makes concepts of them, "
        "--force adds the documents without headings"
    )
    raise WrongKindError(
        f"none of the first {len(unknown):,} labels is in the vocabulary, such as {shown}; "
        f"{advice}; nothing was stored",
        "labels of another vocabulary",
    )


def label_separator_of(
    unresolved: Sequence[str], vocabulary: Vocabulary, current: str
) -> str | None:
    """The character that joins several labels to one among those that were not resolved.

    The parts of most such labels are in the vocabulary, or most unresolved labels
    have the character.
    """
    labels = unresolved[:_LOOKED_AT]
    best, most = None, 0
    for separator in _SEPARATORS:
        joined = [label for label in labels if separator in label.strip(separator)]
        if separator == current or not joined:
            continue
        known = sum(_has_known_parts(label, separator, vocabulary) for label in joined)
        is_usual = len(joined) >= len(labels) / 2
        has_known = known >= len(joined) / 2
        is_list = is_usual and has_known if separator == _PART_OF_NAMES else is_usual or has_known
        if is_list and len(joined) > most:
            best, most = separator, len(joined)
    return best


def _has_known_parts(label: str, separator: str, vocabulary: Vocabulary) -> bool:
    parts = [part.strip() for part in label.split(separator) if part.strip()]
    known = sum(vocabulary.resolve(part, "", "").column is not None for part in parts)
    return len(parts) > 1 and known >= len(parts) / 2


def _short(label: str) -> str:
    return label if len(label) <= _SHOWN_CHARACTERS else f"{label[:_SHOWN_CHARACTERS]}…"
