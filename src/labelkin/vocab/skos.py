"""SKOS vocabularies in any syntax that rdflib reads."""

from __future__ import annotations

import re
import threading
import warnings
from typing import TYPE_CHECKING

from labelkin.corpus.language import normalise_language
from labelkin.corpus.report import ReadReport
from labelkin.corpus.source import Source
from labelkin.corpus.text import clean_label
from labelkin.exceptions import DamagedFileError
from labelkin.vocab.concept import Concept
from labelkin.wording import counted

if TYPE_CHECKING:
    from rdflib import Graph
    from rdflib.term import Node

# catch_warnings replaces the filters of the whole process and restores them afterwards.
_warning_filters_lock = threading.Lock()
_REMOTE_CONTEXT = re.compile(rb'"@context"\s*:\s*\[?\s*"(\w+://[^"]*)"')

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


def read_skos(
    source: Source, syntax: str, report: ReadReport, language: str = "en"
) -> list[Concept]:
    """Read every `skos:Concept`, ordered by URI; literals without a tag are in `language`.

    If there are none, everything with a `skos:prefLabel` that is not a scheme or
    collection is a concept. rdflib holds the whole graph in memory.
    """
    from rdflib import Dataset, Graph, URIRef
    from rdflib.namespace import RDF, SKOS

    if syntax == "json-ld":
        _refuse_remote_contexts(source)

    # Quad syntaxes need a dataset; its default graph is the union of all graphs.
    graph: Graph = Dataset(default_union=True) if syntax in ("nquads", "trig") else Graph()
    try:
        with (
            source.damage_reported("in the middle"),
            _warning_filters_lock,
            warnings.catch_warnings(),
        ):
            # rdflib uses parts of itself that it has deprecated.
            warnings.simplefilter("ignore", DeprecationWarning)
            graph.parse(source=source.stream, format=syntax)
    except DamagedFileError:
        raise
    except Exception as error:  # rdflib's parsers raise a dozen unrelated types
        reason = " ".join(str(error).split())[:200]
        raise DamagedFileError(f"not readable as RDF ({syntax}): {reason}") from error
    subjects = set(graph.subjects(RDF.type, SKOS.Concept))
    if not subjects:
        subjects = set(graph.subjects(SKOS.prefLabel))
        for kind in (SKOS.ConceptScheme, SKOS.Collection, SKOS.OrderedCollection):
            subjects -= set(graph.subjects(RDF.type, kind))
    uris = sorted((node for node in subjects if isinstance(node, URIRef)), key=str)
    concepts = [_concept(graph, uri, language) for uri in uris]
    nameless = [concept.id for concept in concepts if not concept.names]
    if nameless:
        many = counted(len(nameless), "concept has", "concepts have")
        message = f"{many} no preferred label, such as {nameless[0]}"
        report.note(source.name, "labels", message)
    return concepts


def _refuse_remote_contexts(source: Source) -> None:
    """Refuse JSON-LD whose context rdflib would fetch from the network."""
    remote = _REMOTE_CONTEXT.search(source.head)
    if remote:
        raise DamagedFileError(
            f"the JSON-LD context {remote.group(1).decode('utf-8', 'replace')} is not in the file "
            "and is not fetched; convert the file to Turtle, or include the context in it"
        )


def _concept(graph: Graph, uri: Node, language: str) -> Concept:
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
        replaced_by=_sorted(set(graph.objects(uri, DCTERMS.isReplacedBy))),
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
