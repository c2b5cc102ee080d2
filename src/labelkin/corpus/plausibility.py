"""Whether the first documents of a file look like documents.

A list of subjects, a table of predictions or a corpus with its columns swapped
can be read as a corpus and would give nonsense. Only what can hardly be a
corpus is refused: a false alarm is worse than a miss.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import median

from labelkin.corpus.document import Document
from labelkin.corpus.foreign import Foreign

# How many documents are looked at.
SAMPLE = 200
LIST_OF_SUBJECTS = "list of subjects"
_SHARE = 0.9
# With fewer documents, only URIs count as ids: one text may well be a number.
_FEW = 5
_URI = re.compile(r"<?[A-Za-z][A-Za-z0-9+.-]*://\S+|<\S+>")
_BRACKETED = re.compile(r"<[^<>]+>")
_ID = re.compile(r"[\w.:/#-]*\d[\w.:/#-]*")
_SENTENCE_WORDS = 15
_PART_WORDS = 6
_MANY_LABELS = 8
_PUNCTUATED = 0.05
_LIST_SEPARATORS = re.compile(r"[;|,]")


def implausible(documents: Sequence[Document], named: bool) -> Foreign | None:
    """What a file with these first documents looks like, if it does not look like a corpus.

    `named` says that the format names its texts, so that they may be as short as `T1`.
    """
    if not documents:
        return None
    texts = [document.text.strip() for document in documents]
    if _mostly(are_uris(text) for text in texts):
        return _without_texts(documents, texts[0], "URIs")
    if not named and len(texts) >= _FEW and _mostly(bool(_ID.fullmatch(text)) for text in texts):
        return _without_texts(documents, texts[-1], "ids")
    labelled = [document.labels for document in documents if document.labels]
    if labelled and are_sentences(labelled):
        shown = " ".join(labelled[0])[:50]
        return Foreign(
            "labels that are texts",
            f"its labels look like texts, such as '{shown}…'; are the columns swapped? "
            "Texts and labels are recognised by the names of the columns, and without a header "
            "the text comes first",
        )
    return None


def _without_texts(documents: Sequence[Document], example: str, what: str) -> Foreign:
    """The verdict on a file whose texts are only URIs or ids."""
    shown = example[:60]
    words = [sum(len(label.split()) for label in document.labels) for document in documents]
    if median(words) >= _MANY_LABELS:
        advice = (
            "are the columns swapped? The text comes first, then the subjects. "
            "A vocabulary is given to `labelkin init --vocab`"
            if what == "URIs"
            else "give it a header row, such as id<TAB>text<TAB>labels"
        )
        return Foreign("swapped columns", f"its texts are only {what}, such as {shown}; {advice}")
    return Foreign(
        LIST_OF_SUBJECTS,
        f"its texts are only {what}, such as {shown}: it looks like a list of subjects, not like "
        "documents; a vocabulary is given to `labelkin init --vocab`, predictions to "
        "`labelkin score`",
    )


def _mostly(verdicts: Iterable[bool]) -> bool:
    counted = list(verdicts)
    return sum(counted) >= _SHARE * len(counted)


def are_uris(text: str) -> bool:
    """Whether a text is nothing but URIs, or names in angle brackets."""
    words = _BRACKETED.sub("<x>", text).split()
    return bool(words) and all(map(_URI.fullmatch, words))


def are_sentences(labelled: Sequence[tuple[str, ...]]) -> bool:
    """Whether labels are running text, as one long label or as many single words."""
    longest = [max(labels, key=len) for labels in labelled]
    words = median(len(label.split()) for label in longest)
    # A list of labels joined by a separator has many words, but few in each part.
    parts = [part.split() for label in longest for part in _LIST_SEPARATORS.split(label)]
    if words >= _SENTENCE_WORDS and median(map(len, filter(None, parts))) >= _PART_WORDS:
        return True
    singles = [label for labels in labelled for label in labels if " " not in label]
    if median(map(len, labelled)) < _MANY_LABELS or len(singles) < _SHARE * sum(map(len, labelled)):
        return False
    punctuated = sum(label.endswith((",", ".", ";", ":")) for label in singles)
    return punctuated >= _PUNCTUATED * len(singles)
