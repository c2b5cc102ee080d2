"""The words of headings' names, which a document can be found by as well as by its text.

Each kind of term has a second field in the index. It holds the terms of the
preferred names of a document's headings, each once, however many of the headings
share it. Only indexed documents have them: a query is nothing but a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from labelkin.corpus.document import Document
from labelkin.represent.cache import TermCache
from labelkin.represent.kind import TermKind
from labelkin.represent.representation import Representation
from labelkin.store.reader import Reader
from labelkin.vocab.concept import Concept

_ALGORITHM_VERSION = 1
_SUFFIX = "_headings"
_USUAL_LANGUAGE = "en"

# A heading in one language, and its terms by kind.
_Key = tuple[int, str]
_Terms = dict[str, tuple[str, ...]]


def heading_field(kind: str) -> str:
    """The field with the heading terms of a kind."""
    return f"{kind}{_SUFFIX}"


def field_kind(field: str) -> str:
    """The kind of the terms in a field, of texts or of headings."""
    return field.removesuffix(_SUFFIX)


def text_kinds(fields: Iterable[str]) -> set[str]:
    """The kinds among the fields of an index, those of headings left out."""
    return {field for field in fields if not field.endswith(_SUFFIX)}


def index_fields(representation: Representation, *, headings: bool) -> dict[str, str]:
    """The fields that a representation is indexed in, each with its version."""
    fields = representation.versions()
    if headings:
        fields |= {heading_field(kind): _version(version) for kind, version in fields.items()}
    return fields


def _version(of_kind: str) -> str:
    return f"{_ALGORITHM_VERSION}, {of_kind}"


class HeadingTerms:
    """The terms of documents' headings; each name is analysed once.

    A name is analysed in the language of the document, from which queries come that look
    for it, and in its own where the vocabulary has no name in the document's language. A
    deprecated heading goes by the name of the one that replaced it, if there is one.
    Another edition of the vocabulary gives a new row to each document whose headings have
    another `indexed_name` in its language, so names need no version here.
    """

    def __init__(self, kinds: Sequence[TermKind], cache: TermCache) -> None:
        self._kinds = kinds
        self._cache = cache
        self._known: dict[_Key, _Terms] = {}

    def of(
        self, reader: Reader, page: Sequence[tuple[int, Document]]
    ) -> dict[str, list[list[str]]]:
        """For each kind the heading terms of each document of a page of rows and texts."""
        labels = reader.labels_of([row for row, _ in page])
        keys = [
            [heading_key(column, document.language) for column in labels.get(row, ())]
            for row, document in page
        ]
        self._read(reader, {key for of_one in keys for key in of_one if key not in self._known})
        return {
            kind.name: [
                joined_terms(self._known[key][kind.name] for key in of_one) for of_one in keys
            ]
            for kind in self._kinds
        }

    def by_heading(
        self, reader: Reader, pairs: Iterable[tuple[int, str | None]]
    ) -> dict[tuple[int, str], dict[str, tuple[str, ...]]]:
        """By kind, the terms of headings (columns), each for documents in a language."""
        keys = {heading_key(*pair) for pair in pairs}
        self._read(reader, {key for key in keys if key not in self._known})
        return {key: self._known[key] for key in sorted(keys)}

    def _read(self, reader: Reader, keys: set[_Key]) -> None:
        ordered = sorted(keys)
        concepts = reader.concepts(sorted({column for column, _ in ordered}))
        names = [
            _names(_current(reader, concepts[column]), language) for column, language in ordered
        ]
        terms = self._cache.terms(self._kinds, [one for of_one in names for one in of_one])
        start = 0
        for key, of_one in zip(ordered, names, strict=True):
            part = slice(start, start + len(of_one))
            self._known[key] = {
                kind: tuple(dict.fromkeys(term for one in of_all[part] for term in one))
                for kind, of_all in terms.items()
            }
            start = part.stop


def heading_key(column: int, language: str | None) -> tuple[int, str]:
    """A heading as documents in a language have it."""
    return column, language or _USUAL_LANGUAGE


def joined_terms(of_headings: Iterable[Sequence[str]]) -> list[str]:
    """The terms of a document's headings, each once."""
    return list(dict.fromkeys(term for terms in of_headings for term in terms))


def heading_texts(reader: Reader, columns: Sequence[int]) -> Iterator[Document]:
    """The names of some headings as texts that are analysed, in the languages of all documents."""
    languages = [language or _USUAL_LANGUAGE for language in reader.languages()]
    for concept in reader.concepts(columns).values():
        for language in languages:
            yield from _names(_current(reader, concept), language)


def _names(concept: Concept, language: str) -> list[Document]:
    """The preferred name as texts to analyse; none for a concept that has only an id."""
    indexed = concept.indexed_name(language)
    if indexed is None:
        return []
    own, name = indexed
    return [Document("", name, language=one) for one in dict.fromkeys((language, own))]


def _current(reader: Reader, concept: Concept) -> Concept:
    """The one concept that replaced a deprecated one, else itself."""

    def find(identifier: str) -> Concept | None:
        column = reader.columns_by_id().get(identifier)
        return None if column is None else reader.concepts([column])[column]

    return concept.current(find) or concept
