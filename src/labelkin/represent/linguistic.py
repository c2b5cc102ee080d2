"""Terms that take linguistic analysis: lemmas, noun phrases, dependencies, entities, keywords.

All of them come from one pass of a spaCy pipeline over the text, in which only
the components run that the wanted kinds need.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from typing import TYPE_CHECKING

from labelkin.corpus.document import Document
from labelkin.exceptions import MissingExtraError
from labelkin.represent.language_model import find_language_model, load_language_model

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_ALGORITHM_VERSION = 1
_BATCH = 64
# Below this, starting processes takes longer than the work.
_WORTH_PROCESSES = 8 * _BATCH

CONTENT = frozenset({"NOUN", "PROPN", "VERB", "ADJ", "ADV", "X"})

# The paper's relations.
RELATIONS = frozenset(
    "acl advcl advmod amod ccomp compound conj csubj dep flat iobj nmod nsubj obj xcomp "
    "dobj pobj".split()
)
# What spaCy's English models call some of them; a subtype (`nsubj:pass`) counts as its type.
_SAME_RELATION = {
    "acomp": "xcomp",
    "csubjpass": "csubj",
    "dative": "iobj",
    "dobj": "obj",
    "nsubjpass": "nsubj",
    "oprd": "xcomp",
    "pobj": "nmod",
    "poss": "nmod",
    "relcl": "acl",
}
# Values rather than names: what a number or a date says of a topic is little.
_VALUES = frozenset("CARDINAL DATE MONEY ORDINAL PERCENT QUANTITY TIME".split())
_KEYWORDS = 10


@dataclass(frozen=True, slots=True)
class LinguisticAnalysis:
    """The kinds of terms that a spaCy model gives.

    `title_weight` counts the terms of the title that many times (keywords are
    of the text as a whole and count once). Many documents are spread over
    `processes`, 0 for one per core.
    """

    model: str
    title_weight: int = 1
    processes: int = 0

    def version(self, kind: str) -> str:
        """What the terms of a kind depend on besides the text."""
        found = find_language_model(self.model)
        parts = [
            str(_ALGORITHM_VERSION),
            f"title x{self.title_weight}",
            f"{self.model} {found.version}",
            f"spaCy {_version('spacy')}",
        ]
        if kind == "keywords":
            parts.append(f"textacy {_version('textacy')}")
        return ", ".join(parts)

    def analyse(
        self, documents: Sequence[Document], kinds: Sequence[str]
    ) -> Iterator[list[list[str]]]:
        """For each document the terms of each of `kinds`, as they get ready."""
        texts = [
            (unicodedata.normalize("NFKC", document.text), _length_of_title(document))
            for document in documents
        ]
        batches = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]
        processes = self.processes or os.cpu_count() or 1
        if processes == 1 or len(texts) < _WORTH_PROCESSES:
            return chain.from_iterable(self._batch(batch, tuple(kinds)) for batch in batches)
        from joblib import Parallel, delayed

        parallel = Parallel(n_jobs=processes, return_as="generator")
        work = (delayed(self._batch)(batch, tuple(kinds)) for batch in batches)
        return chain.from_iterable(parallel(work))

    def _batch(
        self, texts: Sequence[tuple[str, int]], kinds: tuple[str, ...]
    ) -> list[list[list[str]]]:
        nlp = load_language_model(self.model, frozenset(kinds))
        found = []
        # What is analysed leaves nothing behind in the model's string store.
        with nlp.memory_zone():
            cut = ((text[: nlp.max_length], length) for text, length in texts)
            for doc, title in nlp.pipe(cut, as_tuples=True, batch_size=_BATCH):
                found.append([list(self._terms(doc, kind, title)) for kind in kinds])
        return found

    def _terms(self, doc: Doc, kind: str, title: int) -> Iterator[str]:
        for term, start in _EXTRACTORS[kind](doc):
            for _ in range(self.title_weight if start < title else 1):
                yield term


def _lemmas(doc: Doc) -> Iterator[tuple[str, int]]:
    for token in doc:
        if _is_content(token):
            yield _lemma(token), token.idx


def _noun_phrases(doc: Doc) -> Iterator[tuple[str, int]]:
    for chunk in doc.noun_chunks:
        words = [_lemma(token) for token in chunk if _is_content(token)]
        if words:
            yield "_".join(words), chunk.start_char


def _dependencies(doc: Doc) -> Iterator[tuple[str, int]]:
    """`relation:head:dependent`, of lemmas of content words.

    The object of a preposition depends on what the preposition belongs to, as
    in Universal Dependencies: `nmod:treatment:asthma` in "treatment of asthma".
    """
    for token in doc:
        name = token.dep_.partition(":")[0]
        relation = _SAME_RELATION.get(name, name)
        if relation not in RELATIONS or not _is_content(token):
            continue
        head = token.head.head if name == "pobj" else token.head
        if head.i != token.i and _is_content(head):
            yield f"{relation}:{_lemma(head)}:{_lemma(token)}", token.idx


def _entities(doc: Doc) -> Iterator[tuple[str, int]]:
    """Names as they are written, but for case and a leading article."""
    for entity in doc.ents:
        if entity.label_ in _VALUES:
            continue
        tokens = [token for token in entity if _has_letter_or_digit(token.text)]
        while tokens and tokens[0].is_stop:
            del tokens[0]
        words = chain.from_iterable(token.text.casefold().split() for token in tokens)
        if term := "_".join(words):
            yield term, entity.start_char


def _keywords(doc: Doc) -> Iterator[tuple[str, int]]:
    """The strongest terms by TextRank (Mihalcea and Tarau 2004), strongest first."""
    from textacy.extract.keyterms.textrank import textrank

    for term, _ in textrank(doc, normalize="lemma", topn=_KEYWORDS):
        words = [word for word in term.casefold().split() if _has_letter_or_digit(word)]
        if words:
            yield "_".join(words), len(doc.text)


_EXTRACTORS = {
    "lemmas": _lemmas,
    "nps": _noun_phrases,
    "deps": _dependencies,
    "ners": _entities,
    "keywords": _keywords,
}


def _is_content(token: Token) -> bool:
    return token.pos_ in CONTENT and _has_letter_or_digit(token.text)


def _lemma(token: Token) -> str:
    return "_".join((token.lemma_ or token.text).casefold().split())


@lru_cache(maxsize=100_000)
def _has_letter_or_digit(text: str) -> bool:
    return any(character.isalnum() for character in text)


def _length_of_title(document: Document) -> int:
    return len(unicodedata.normalize("NFKC", document.title))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        raise MissingExtraError(
            f"{package} is not installed; pip install 'labelkin[nlp]'"
        ) from None
