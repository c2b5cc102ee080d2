"""The language of heading names, and texts in languages that a collection does not have."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from labelkin.cli.console import counted
from labelkin.exceptions import VocabularyError

if TYPE_CHECKING:
    from labelkin.corpus import Document
    from labelkin.indexer import Indexer
    from labelkin.vocab import Vocabulary

logger = logging.getLogger(__name__)

# A collection with a smaller share of documents in a language can hardly suggest for it.
_FEW = 0.01
_LONG_ENOUGH = 20
_ENGLISH_SHARE = 0.3


def opened_vocabulary(
    source: Path, asked: str | None = None, format: str | None = None, untagged: str = "en"
) -> tuple[Vocabulary, str]:
    """The vocabulary of a collection folder or in a file, and the language to show its names in.

    `format` and the language of `untagged` names are those of a file.
    """
    from labelkin.indexer import Indexer
    from labelkin.vocab import read_vocabulary

    if source.is_dir():
        with Indexer.open(source) as indexer:
            return indexer.vocabulary, heading_language(indexer, asked)
    vocabulary = read_vocabulary(source, format, untagged)
    return vocabulary, language_of(vocabulary, asked)


def heading_language(indexer: Indexer, asked: str | None = None) -> str:
    """The language to show a collection's headings in: `asked`, else as labelkin.toml says.

    A language in which no heading has a name is refused. The vocabulary need
    not be read to know.
    """
    wanted = indexer.config.vocabulary.language if asked is None else asked
    code = "en" if wanted == "auto" else _code(wanted)
    if code == "all" or (code is not None and indexer.collection.has_names_in(code)):
        return code
    place = "vocabulary.language in labelkin.toml: " if asked is None else ""
    return _chosen(indexer.collection.names_by_language(), wanted, place)


def language_of(vocabulary: Vocabulary, asked: str | None = None) -> str:
    """The language to show the headings of a vocabulary in."""
    return _chosen(vocabulary.names_by_language(), asked)


def _chosen(names: Counter[str], asked: str | None, place: str = "") -> str:
    """One of the languages of names; `place` is for messages."""
    if asked in (None, "auto"):
        return "en" if "en" in names or not names else names.most_common(1)[0][0]
    code = _code(str(asked))
    if code is not None and (code == "all" or code in names or not names):
        return code
    reason = "is not a language code" if code is None else "is the language of no heading's name"
    there = f"; there are names in {_listed(names)}" if names else ""
    raise VocabularyError(f"{place}{asked!r} {reason}{there}")


class ForeignTexts:
    """Counts texts in languages that a collection has no or few documents in.

    A language that labelkin.toml states for all texts is not questioned.
    """

    def __init__(self, indexer: Indexer) -> None:
        from labelkin.corpus.language import usual_languages

        stored = indexer.snapshot().languages()
        self._stored = {language: count for language, count in stored.items() if language}
        self._documents = sum(self._stored.values())
        self._usual = usual_languages(self._stored)
        fixed = indexer.config.collection.language
        self._fixed = None if fixed == "auto" else fixed
        self._seen = 0
        self._foreign: Counter[str] = Counter()

    def watched(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The documents, counted as they pass."""
        from labelkin.corpus.language import detect_language

        for document in documents:
            if self._documents:
                self._seen += 1
                language = document.language or self._fixed
                if language is None and list(self._usual) == ["en"] and _is_english(document.text):
                    language = "en"
                language = language or detect_language(document.text, self._usual)
                enough = _FEW * self._documents
                if language and language != self._fixed and self._stored.get(language, 0) < enough:
                    self._foreign[language] += 1
            yield document

    def report(self) -> None:
        """Warn if there were such texts."""
        if not self._foreign:
            return
        texts = counted(self._foreign.total(), "text")
        verb = "is" if self._foreign.total() == 1 else "are"
        of = f" of {self._seen:,}" if self._seen > self._foreign.total() else ""
        logger.warning(
            "%s%s %s in a language that the collection has hardly any documents in: %s (it has "
            "%s); expect poor headings",
            texts,
            of,
            verb,
            _listed(self._foreign),
            _listed(self._stored),
        )


def report_foreign_texts(indexer: Indexer, documents: Iterable[Document]) -> None:
    """Warn if some of the documents are in languages that the collection does not have."""
    texts = ForeignTexts(indexer)
    for _ in texts.watched(documents):
        pass
    texts.report()


def _is_english(text: str) -> bool:
    """Whether a text is clearly English by its stop words; saves loading the detection.

    Of 3,000 library records in English, the median share of English stop words is
    0.47, of the same in German 0.06 and 0.25 at most. No other language is as easy to
    tell: most have a near relative with the same short words.
    """
    from labelkin.represent.stems import stop_words, words_of

    words = words_of(text)
    return len(words) >= _LONG_ENOUGH and sum(
        word in stop_words("en") for word in words
    ) >= _ENGLISH_SHARE * len(words)


def _code(tag: str) -> str | None:
    """The code of a language tag, or `all`; None if it is neither."""
    from labelkin.corpus.language import normalise_language

    return tag if tag == "all" else normalise_language(tag)


def _listed(counts: Counter[str] | dict[str, int]) -> str:
    ordered = sorted(counts, key=lambda language: (-counts[language], language))
    shown = ", ".join(f"{language} {counts[language]:,}" for language in ordered[:5])
    return shown + (f" and {len(ordered) - 5} more" if len(ordered) > 5 else "")
