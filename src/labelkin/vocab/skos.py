"""SKOS vocabularies in any syntax that rdflib reads."""

from __future__ import annotations

import json
import logging
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, cast

from labelkin.corpus.foreign import is_xml
from labelkin.corpus.language import normalise_language
from labelkin.corpus.report import ReadReport
from labelkin.corpus.source import Source, decode
from labelkin.corpus.text import clean_label
from labelkin.exceptions import DamagedFileError, VocabularyError
from labelkin.vocab.concept import Concept
from labelkin.vocab.rdf_xml import parse_rdf_xml
from labelkin.wording import counted

if TYPE_CHECKING:
    from rdflib import Graph, URIRef
    from rdflib.term import Node

# catch_warnings replaces the filters of the whole process and restores them afterwards.
_warning_filters_lock = threading.Lock()

_ISO_THES = "http://purl.org/iso25964/skos-thes#"

SYNTAXES = {
    ".ttl": "turtle",
    ".turtle": "turtle",
    ".n3": "n3",
    ".nt": "nt",
    ".nq": "nquads",
    ".trig": "trig",
    ".jsonld": "json-ld",
    ".json": "json-ld",
    ".rdf": "xml",
    ".owl": "xml",
    ".skos": "xml",
    ".xml": "xml",
}


# Relative URIs are resolved against this, and then known as such.
_NO_BASE = "http://relative.invalid/"
_BY_LINE = ("nt", "nquads")
_BAD_TURTLE = re.compile(r"at line (\d+) of <\S*>: Bad syntax \((.*?)\) at \^ in: .*")


def syntax_of(head: bytes, extension: str) -> str:
    """The RDF syntax of a file, by its content if that is clear, else by its extension."""
    if is_xml(head):
        return "xml"
    by_extension = SYNTAXES.get(extension, "turtle")
    # What is called .xml or .rdf and is something else.
    if by_extension == "xml" and not head.lstrip().startswith(b"<"):
        return "json-ld" if head.lstrip().startswith((b"{", b"[")) else "turtle"
    return by_extension


class _Text:
    """The text of a file for rdflib's parsers: whole, or a line at a time.

    `line` is the number of the line that was read last.
    """

    # rdflib takes what has an encoding for text.
    encoding = "utf-8"

    def __init__(self, source: Source, *, by_line: bool) -> None:
        self._source = source
        self._lines = source.lines() if by_line else None
        self.line = 0

    def read(self, _size: int = -1) -> str:
        """The next line, or else everything."""
        if self._lines is None:
            text, is_utf8 = decode(self._source.stream.read())
            self._source.not_utf8 += not is_utf8
            return text
        for number, line in self._lines:
            self.line = number
            return f"{line}\n"
        return ""

    def close(self) -> None:
        """The file is closed by who opened it."""


class _InvalidUris(logging.Filter):
    """Collects the URIs that rdflib would print a line about, each time that it meets them."""

    def __init__(self) -> None:
        super().__init__()
        self.uris: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep the URI and drop the message."""
        uri, _, _ = record.getMessage().partition(" does not look like a valid URI")
        self.uris.add(uri)
        return False

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Collect URIs as long as the context is entered."""
        logger = logging.getLogger("rdflib.term")
        logger.addFilter(self)
        try:
            yield
        finally:
            logger.removeFilter(self)


def read_skos(
    source: Source, syntax: str, report: ReadReport, language: str = "en"
) -> list[Concept]:
    """Read every `skos:Concept`, ordered by URI; literals without a tag are in `language`.

    If there are none, everything with a `skos:prefLabel` that is not a scheme or
    collection is a concept. rdflib holds the whole graph in memory.
    """
    from rdflib import Dataset, Graph, URIRef
    from rdflib.namespace import RDF, SKOS

    # Quad syntaxes need a dataset; its default graph is the union of all graphs.
    graph: Graph = Dataset(default_union=True) if syntax in ("nquads", "trig") else Graph()
    text = _Text(source, by_line=syntax in _BY_LINE)
    invalid = _InvalidUris()
    try:
        with (
            source.damage_reported("in the middle"),
            _warning_filters_lock,
            warnings.catch_warnings(),
            invalid.collected(),
        ):
            # rdflib uses parts of itself that it has deprecated.
            warnings.simplefilter("ignore", DeprecationWarning)
            if syntax == "xml":
                parse_rdf_xml(source, graph, _NO_BASE)
            elif syntax == "json-ld":
                data = _without_remote_contexts(source)
                graph.parse(data=data, format=syntax, publicID=_NO_BASE)
            else:
                graph.parse(source=cast("IO[bytes]", text), format=syntax, publicID=_NO_BASE)
    except DamagedFileError:
        raise
    except RecursionError as error:
        raise DamagedFileError(f"not readable as RDF ({syntax}): nested too deeply") from error
    except Exception as error:  # rdflib's parsers raise a dozen unrelated types
        reason = _BAD_TURTLE.sub(r"line \1: \2", " ".join(str(error).split()))[:200]
        place = f"line {text.line}: " if text.line else ""
        raise DamagedFileError(f"not readable as RDF ({syntax}): {place}{reason}") from error
    if invalid.uris:
        many = counted(len(invalid.uris), "URI has", "URIs have")
        message = f"{many} characters that no URI can have, such as <{min(invalid.uris)}>"
        report.note(source.name, "URIs", message)
    subjects = set(graph.subjects(RDF.type, SKOS.Concept))
    if not subjects:
        subjects = set(graph.subjects(SKOS.prefLabel))
        for kind in (SKOS.ConceptScheme, *_group_kinds()):
            subjects -= set(graph.subjects(RDF.type, kind))
    uris = sorted((node for node in subjects if isinstance(node, URIRef)), key=str)
    _check_subjects(source, graph, subjects, uris, report)
    groups = _Groups(graph, language)
    concepts = [_concept(graph, uri, language, groups) for uri in uris]
    _note_repeated_names(source, graph, uris, report)
    nameless = [concept.id for concept in concepts if not concept.names]
    if nameless:
        many = counted(len(nameless), "concept has", "concepts have")
        message = f"{many} no preferred label, such as {nameless[0]}"
        report.note(source.name, "labels", message)
    return concepts


def _check_subjects(
    source: Source, graph: Graph, subjects: set[Node], uris: list[URIRef], report: ReadReport
) -> None:
    """Raise VocabularyError if there are no concepts that can be used; report lost ones."""
    if not len(graph):
        raise VocabularyError(
            f"{source.name}: no concepts: there is no RDF in the file; give SKOS in an RDF syntax, "
            "MeSH descriptor XML or a table of ids and names"
        )
    if not subjects:
        statements = counted(len(graph), "statement")
        raise VocabularyError(
            f"{source.name}: RDF without SKOS: no concepts among its {statements}, that is no "
            "skos:Concept and no skos:prefLabel; convert it to SKOS or to a table of ids and names"
        )
    nameless = counted(len(subjects) - len(uris), "concept has", "concepts have")
    if not uris:
        raise VocabularyError(
            f"{source.name}: {nameless} no URI (a blank node), and no other has one; "
            "give each concept a URI"
        )
    if len(uris) < len(subjects):
        report.note(source.name, "ids", f"{nameless} no URI (a blank node); left out")
    relative = next((uri for uri in uris if uri.startswith(_NO_BASE)), None)
    if relative is not None:
        raise VocabularyError(
            f"{source.name}: relative URIs such as <{relative.removeprefix(_NO_BASE)}>, but no "
            "base; say what they begin with (`@base <http://…/> .` in Turtle, xml:base in RDF/XML)"
        )


def _note_repeated_names(
    source: Source, graph: Graph, uris: list[URIRef], report: ReadReport
) -> None:
    """Report concepts with several preferred labels in one language, which SKOS forbids."""
    from rdflib.namespace import SKOS

    repeated = []
    for uri in uris:
        tags = [getattr(label, "language", None) for label in graph.objects(uri, SKOS.prefLabel)]
        if len(set(tags)) < len(tags):
            repeated.append(uri)
    if repeated:
        many = counted(len(repeated), "concept has", "concepts have")
        message = (
            f"{many} several preferred labels in one language, such as {repeated[0]}; the first "
            "in the alphabet is the name, others are synonyms"
        )
        report.note(source.name, "labels", message)


def _without_remote_contexts(source: Source) -> bytes:
    """The JSON-LD, unless rdflib would fetch a context from the network or another file."""
    content = source.stream.read()
    pending: list[Any] = [json.loads(content)]
    if not isinstance(pending[0], dict | list):
        raise DamagedFileError("not readable as RDF (json-ld): neither an object nor a list")
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            for key in ("@context", "@import"):
                contexts = value.get(key)
                for context in contexts if isinstance(contexts, list) else [contexts]:
                    if isinstance(context, str):
                        raise DamagedFileError(
                            f"the JSON-LD context {context[:200]} is not in the file and is not "
                            "fetched; convert the file to Turtle, or include the context in it"
                        )
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return content


class _Groups:
    """The collections and concept groups of a graph, which may contain others, and its schemes."""

    def __init__(self, graph: Graph, language: str) -> None:
        from rdflib.namespace import RDF, SKOS, Namespace

        self._graph = graph
        self._language = language
        self._names: dict[Node, tuple[str, ...]] = {}
        self._above: dict[Node, set[Node]] = {}
        thesauri = Namespace(_ISO_THES)
        nodes: set[Node] = set(graph.subjects(SKOS.member)) | set(graph.subjects(SKOS.memberList))
        for kind in _group_kinds():
            nodes |= set(graph.subjects(RDF.type, kind))
        for group in nodes:
            members = {*graph.objects(group, SKOS.member), *graph.objects(group, thesauri.subGroup)}
            members |= set(graph.subjects(thesauri.superGroup, group))
            for first in graph.objects(group, SKOS.memberList):
                members |= _list_items(graph, first)
            for member in members - {group}:
                self._above.setdefault(member, set()).add(group)

    def of(self, concept: Node, schemes: set[Node]) -> dict[str, tuple[str, ...]]:
        """The groups above a concept and its named schemes, each with its names."""
        groups: set[Node] = set()
        pending = list(self._above.get(concept, ()))
        while pending:
            group = pending.pop()
            if group not in groups:
                groups.add(group)
                pending.extend(self._above.get(group, ()))
        named = {scheme for scheme in schemes if self.names(scheme)}
        return {str(one): self.names(one) for one in sorted(groups | named, key=str)}

    def names(self, group: Node) -> tuple[str, ...]:
        """The names of a group or scheme in all languages, and its notations."""
        from rdflib.namespace import DC, DCTERMS, RDFS, SKOS

        if group not in self._names:
            labels = _texts(self._graph, group, "prefLabel", self._language)
            names = [text for texts in labels.values() for text in texts]
            for kind in (RDFS.label, DCTERMS.title, DC.title, SKOS.notation):
                names += sorted(clean_label(str(one)) for one in self._graph.objects(group, kind))
            self._names[group] = tuple(dict.fromkeys(name for name in names if name))
        return self._names[group]


def _list_items(graph: Graph, first: Node) -> set[Node]:
    """The items of an RDF list; one that leads back into itself ends there."""
    from rdflib.namespace import RDF

    items: set[Node] = set()
    pending, seen = [first], {first}
    while pending:
        place = pending.pop()
        items |= set(graph.objects(place, RDF.first))
        following = set(graph.objects(place, RDF.rest)) - seen
        seen |= following
        pending.extend(following)
    return items


def _group_kinds() -> tuple[Node, ...]:
    from rdflib import URIRef
    from rdflib.namespace import SKOS

    thesauri = (URIRef(_ISO_THES + name) for name in ("ConceptGroup", "ThesaurusArray"))
    return (SKOS.Collection, SKOS.OrderedCollection, *thesauri)


def _concept(graph: Graph, uri: Node, language: str, groups: _Groups) -> Concept:
    from rdflib.namespace import DCTERMS, OWL, SKOS

    preferred = _texts(graph, uri, "prefLabel", language)
    names = {tag: texts[0] for tag, texts in preferred.items()}
    synonyms: dict[str, tuple[str, ...]] = {}
    others = {tag: texts[1:] for tag, texts in preferred.items()}
    for texts in (
        others,
        _texts(graph, uri, "altLabel", language),
        _texts(graph, uri, "hiddenLabel", language),
    ):
        for tag, values in texts.items():
            if values:
                synonyms[tag] = tuple(dict.fromkeys((*synonyms.get(tag, ()), *values)))
    broader = {*graph.objects(uri, SKOS.broader), *graph.subjects(SKOS.narrower, uri)}
    related = {*graph.objects(uri, SKOS.related), *graph.subjects(SKOS.related, uri)}
    replaced_by = {
        *graph.objects(uri, DCTERMS.isReplacedBy),
        *graph.subjects(DCTERMS.replaces, uri),
    }
    schemes = {*graph.objects(uri, SKOS.inScheme), *graph.objects(uri, SKOS.topConceptOf)}
    deprecated = any(
        str(value).lower() in ("true", "1") for value in graph.objects(uri, OWL.deprecated)
    )
    return Concept(
        id=str(uri),
        names=names,
        synonyms=synonyms,
        notations=_sorted(set(graph.objects(uri, SKOS.notation))),
        broader=_sorted(broader),
        related=_sorted(related),
        schemes=_sorted(schemes),
        deprecated=deprecated,
        replaced_by=_sorted(replaced_by),
        groups=groups.of(uri, schemes),
    )


def _texts(graph: Graph, uri: Node, label: str, language: str) -> dict[str, tuple[str, ...]]:
    """The labels of one kind by language, including SKOS-XL labels.

    Labels with a plain tag precede those with a regional one: `de` before `de-AT`.
    """
    from rdflib.namespace import SKOS, Namespace

    extended = Namespace("http://www.w3.org/2008/05/skos-xl#")
    literals = list(graph.objects(uri, SKOS[label]))
    for node in graph.objects(uri, extended[label]):
        literals += graph.objects(node, extended.literalForm)
    by_language: dict[str, set[tuple[bool, str]]] = {}
    for literal in literals:
        tag = getattr(literal, "language", None) or ""
        key = (normalise_language(tag) if tag else None) or language
        text = clean_label(str(literal))
        if text:
            by_language.setdefault(key, set()).add((tag not in ("", key), text))
    return {
        tag: tuple(dict.fromkeys(text for _, text in sorted(by_language[tag])))
        for tag in sorted(by_language)
    }


def _sorted(nodes: set[Node]) -> tuple[str, ...]:
    return tuple(sorted(map(str, nodes)))
