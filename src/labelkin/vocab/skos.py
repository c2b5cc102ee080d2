"""SKOS vocabularies in any syntax that rdflib reads."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from labelkin.corpus.language import normalise_language
from labelkin.corpus.source import Source
from labelkin.corpus.text import clean_label
from labelkin.exceptions import DamagedFileError
from labelkin.vocab.concept import Concept

if TYPE_CHECKING:
    from rdflib import Graph, URIRef
    from rdflib.term import Node

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


def read_skos(source: Source, syntax: str, language: str = "en") -> list[Concept]:
    """Every `skos:Concept` in the order of its URIs; a literal without a tag is in `language`.

    rdflib holds the whole graph in memory while it is read.
    """
    from rdflib import Dataset, Graph, URIRef
    from rdflib.namespace import RDF, SKOS

    # Quad syntaxes want a dataset; its default graph is the union of all.
    graph: Graph = Dataset(default_union=True) if syntax in ("nquads", "trig") else Graph()
    try:
        with source.damage_reported("part of the way"), warnings.catch_warnings():
            # rdflib warns of its own use of its own deprecated parts.
            warnings.simplefilter("ignore", DeprecationWarning)
            graph.parse(source=source.stream, format=syntax)
    except DamagedFileError:
        raise
    except Exception as error:  # rdflib's parsers raise a dozen unrelated types
        reason = " ".join(str(error).split())[:200]
        raise DamagedFileError(f"not readable as RDF ({syntax}): {reason}") from error
    subjects = {*graph.subjects(RDF.type, SKOS.Concept), *graph.subjects(SKOS.prefLabel)}
    schemes = set(graph.subjects(RDF.type, SKOS.ConceptScheme))
    uris = sorted((node for node in subjects - schemes if isinstance(node, URIRef)), key=str)
    return [_concept(graph, uri, language) for uri in uris]


def _concept(graph: Graph, uri: Node, language: str) -> Concept:
    from rdflib.namespace import DCTERMS, OWL, SKOS

    names = {tag: texts[0] for tag, texts in _texts(graph, uri, [SKOS.prefLabel], language).items()}
    broader = {*graph.objects(uri, SKOS.broader), *graph.subjects(SKOS.narrower, uri)}
    related = {*graph.objects(uri, SKOS.related), *graph.subjects(SKOS.related, uri)}
    schemes = {*graph.objects(uri, SKOS.inScheme), *graph.objects(uri, SKOS.topConceptOf)}
    deprecated = any(
        str(value).lower() in ("true", "1") for value in graph.objects(uri, OWL.deprecated)
    )
    return Concept(
        id=str(uri),
        names=names,
        synonyms=_texts(graph, uri, [SKOS.altLabel, SKOS.hiddenLabel], language),
        notations=_sorted(set(graph.objects(uri, SKOS.notation))),
        broader=_sorted(broader),
        related=_sorted(related),
        schemes=_sorted(schemes),
        deprecated=deprecated,
        replaced_by=_sorted(set(graph.objects(uri, DCTERMS.isReplacedBy))),
    )


def _texts(
    graph: Graph, uri: Node, properties: list[URIRef], language: str
) -> dict[str, tuple[str, ...]]:
    texts: dict[str, set[str]] = {}
    for property_ in properties:
        for literal in graph.objects(uri, property_):
            tag = getattr(literal, "language", None)
            key = (normalise_language(tag) if tag else None) or language
            text = clean_label(str(literal))
            if text:
                texts.setdefault(key, set()).add(text)
    return {tag: tuple(sorted(texts[tag])) for tag in sorted(texts)}


def _sorted(nodes: set[Node]) -> tuple[str, ...]:
    return tuple(sorted(map(str, nodes)))
