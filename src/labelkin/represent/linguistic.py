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
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING

from labelkin.corpus.document import Document
from labelkin.exceptions import MissingExtraError
from labelkin.represent.language_model import find_language_model, load_language_model

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_ALGORITHM_VERSION = 2
_BATCH = 64
# A batch takes memory by its characters; one of long texts has fewer of them.
_BATCH_CHARACTERS = 200_000
# Below this, starting processes takes longer than the work.
_WORTH_PROCESSES = 8 * _BATCH

Parts = tuple[str, ...]

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
        texts = [_parts(document) for document in documents]
        batches = _batches(texts)
        processes = self.processes or os.cpu_count() or 1
        if processes == 1 or len(texts) < _WORTH_PROCESSES:
            return chain.from_iterable(self._batch(batch, tuple(kinds)) for batch in batches)
        from joblib import Parallel, delayed

        parallel = Parallel(n_jobs=processes, return_as="generator")
        work = (delayed(self._batch)(batch, tuple(kinds)) for batch in batches)
        return chain.from_iterable(parallel(work))

    def _batch(self, texts: Sequence[Parts], kinds: tuple[str, ...]) -> list[list[list[str]]]:
        nlp = load_language_model(self.model, frozenset(kinds))
        found = []
        # What is analysed leaves nothing behind in the model's string store.
        with nlp.memory_zone():
            cut = (part[: nlp.max_length] for parts in texts for part in parts)
            docs = nlp.pipe(cut, batch_size=_BATCH)
            for parts in texts:
                title, *rest = islice(docs, len(parts))
                found.append([list(self._terms(title, rest, kind)) for kind in kinds])
        return found

    def _terms(self, title: Doc, rest: Sequence[Doc], kind: str) -> Iterator[str]:
        if kind == "keywords":
            yield from _keywords(_joined([title, *rest]))
            return
        extract = _EXTRACTORS[kind]
        for term in extract(title):
            yield from repeat(term, self.title_weight)
        for doc in rest:
            yield from extract(doc)


def _parts(document: Document) -> Parts:
    """The title, which may be empty, and what else there is: sentences do not go across."""
    rest = (part for part in (document.body, *document.fields.values()) if part)
    return tuple(unicodedata.normalize("NFKC", part) for part in (document.title, *rest))


def _batches(texts: Sequence[Parts]) -> list[list[Parts]]:
    batches: list[list[Parts]] = []
    room = 0
    for parts in texts:
        characters = sum(map(len, parts))
        if not batches or len(batches[-1]) == _BATCH or characters > room:
            batches.append([])
            room = _BATCH_CHARACTERS
        batches[-1].append(parts)
        room -= characters
    return batches


def _joined(docs: Sequence[Doc]) -> Doc:
    """Parts of a text as one, with nothing that goes across where they meet."""
    from spacy.tokens import Doc

    said = [doc for doc in docs if len(doc)] or docs[:1]
    if len(said) == 1:
        return said[0]
    words: list[str] = []
    tags: list[str] = []
    lemmas: list[str] = []
    for doc in said:
        words += [*(token.text for token in doc), "\n"]
        tags += [*(token.pos_ for token in doc), "SPACE"]
        lemmas += [*(token.lemma_ for token in doc), "\n"]
    return Doc(docs[0].vocab, words=words, pos=tags, lemmas=lemmas)


def _lemmas(doc: Doc) -> Iterator[str]:
    for token in doc:
        if _is_content(token):
            yield _lemma(token)


def _noun_phrases(doc: Doc) -> Iterator[str]:
    for chunk in doc.noun_chunks:
        words = [_lemma(token) for token in chunk if _is_content(token)]
        if words:
            yield "_".join(words)


def _dependencies(doc: Doc) -> Iterator[str]:
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
            yield f"{relation}:{_lemma(head)}:{_lemma(token)}"


def _entities(doc: Doc) -> Iterator[str]:
    """Names as they are written, but for case and a leading article."""
    for entity in doc.ents:
        if entity.label_ in _VALUES:
            continue
        tokens = [token for token in entity if _has_letter_or_digit(token.text)]
        while tokens and tokens[0].is_stop:
            del tokens[0]
        words = chain.from_iterable(token.text.casefold().split() for token in tokens)
        if term := "_".join(words):
            yield term


def _keywords(doc: Doc) -> Iterator[str]:
    """The strongest terms by TextRank (Mihalcea and Tarau 2004), strongest first."""
    from textacy.extract.keyterms.textrank import textrank

    for term, _ in textrank(doc, normalize="lemma", topn=_KEYWORDS):
        words = [word for word in term.casefold().split() if _has_letter_or_digit(word)]
        if words:
            yield "_".join(words)


_EXTRACTORS = {
    "lemmas": _lemmas,
    "nps": _noun_phrases,
    "deps": _dependencies,
    "ners": _entities,
}


def _is_content(token: Token) -> bool:
    return token.pos_ in CONTENT and _has_letter_or_digit(token.text)


def _lemma(token: Token) -> str:
    return "_".join((token.lemma_ or token.text).casefold().split())


@lru_cache(maxsize=100_000)
def _has_letter_or_digit(text: str) -> bool:
    return any(character.isalnum() for character in text)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        raise MissingExtraError(
            f"{package} is not installed; pip install 'labelkin[nlp]'"
        ) from None
