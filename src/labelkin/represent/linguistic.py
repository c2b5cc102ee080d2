"""Terms from linguistic analysis: lemmas, noun phrases, dependencies, entities, keywords.

One pass of a spaCy pipeline over the text extracts all of them. It runs only the
components that the requested kinds need.
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
from labelkin.represent.language_model import LANGUAGE_MODELS, find_language_model

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_ALGORITHM_VERSION = 2
_BATCH = 64
# Memory grows with the characters of a batch, so a batch of long texts has fewer texts.
_BATCH_CHARACTERS = 200_000
# For fewer documents, starting processes takes longer than the analysis.
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
# Entities that are values, not names: numbers and dates tell little about the topic.
_VALUES = frozenset("CARDINAL DATE MONEY ORDINAL PERCENT QUANTITY TIME".split())
_KEYWORDS = 10


@dataclass(frozen=True, slots=True)
class LinguisticAnalysis:
    """Extracts the kinds of terms that a spaCy model supports.

    Terms of the title count `title_weight` times; keywords, which come from the
    whole text, count once. Large calls are spread over `processes`, 0 meaning one
    per core. Threads may share an instance; they take turns, a batch at a time.
    """

    model: str
    title_weight: int = 1
    processes: int = 0

    def version(self, kind: str) -> str:
        """The version of everything besides the text that the terms of a kind depend on."""
        model = find_language_model(self.model)
        parts = [
            str(_ALGORITHM_VERSION),
            f"title x{self.title_weight}",
            f"{self.model} {model.version}",
            f"spaCy {_version('spacy')}",
        ]
        if kind == "keywords":
            parts.append(f"textacy {_version('textacy')}")
        return ", ".join(parts)

    def analyse(
        self, documents: Sequence[Document], kinds: Sequence[str]
    ) -> Iterator[list[list[str]]]:
        """Yield for each document, in order, a list of terms per kind."""
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
        terms = []
        # The memory zone keeps the words of the texts out of the model's string store.
        with LANGUAGE_MODELS.use(self.model, frozenset(kinds)) as nlp, nlp.memory_zone():
            cut = (part[: nlp.max_length] for parts in texts for part in parts)
            docs = nlp.pipe(cut, batch_size=_BATCH)
            for parts in texts:
                title, *rest = islice(docs, len(parts))
                terms.append([list(self._terms(title, rest, kind)) for kind in kinds])
        return terms

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
    """The title, which may be empty, then body and fields; no sentence spans two parts."""
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
    """Join the parts of a text by line breaks, so that no term spans two parts."""
    from spacy.tokens import Doc

    parts = [doc for doc in docs if len(doc)] or docs[:1]
    if len(parts) == 1:
        return parts[0]
    words: list[str] = []
    tags: list[str] = []
    lemmas: list[str] = []
    for doc in parts:
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
    """`relation:head:dependent`, with the lemmas of content words.

    The object of a preposition depends on the word that the preposition modifies,
    as in Universal Dependencies: `nmod:treatment:asthma` in "treatment of asthma".
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
    """Names as written, case-folded and without leading stop words."""
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
