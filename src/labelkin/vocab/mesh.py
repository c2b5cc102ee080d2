"""MeSH: descriptor XML, and the hierarchy that its tree numbers define."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from labelkin.corpus.report import ReadReport
from labelkin.corpus.source import Source
from labelkin.corpus.text import clean_label
from labelkin.corpus.xml import stream_elements
from labelkin.vocab.concept import Concept

if TYPE_CHECKING:
    from lxml.etree import _Element

TREE_NUMBER = re.compile(r"[A-Z]\d+(\.\d+)*")
DESCRIPTOR_ID = re.compile(r"D\d{6,9}")

CATEGORY_NAMES = {
    "A": "Anatomy",
    "B": "Organisms",
    "C": "Diseases",
    "D": "Chemicals and Drugs",
    "E": "Analytical, Diagnostic and Therapeutic Techniques, and Equipment",
    "F": "Psychiatry and Psychology",
    "G": "Phenomena and Processes",
    "H": "Disciplines and Occupations",
    "I": "Anthropology, Education, Sociology, and Social Phenomena",
    "J": "Technology, Industry, and Agriculture",
    "K": "Humanities",
    "L": "Information Science",
    "M": "Named Groups",
    "N": "Health Care",
    "V": "Publication Characteristics",
    "Z": "Geographicals",
}


def with_tree_hierarchy(concepts: Iterable[Concept]) -> list[Concept]:
    """`concepts` with `broader` filled in from their tree numbers.

    `C10.228.140` is narrower than the concept at `C10.228`; a concept with
    several tree numbers can have several parents.
    """
    listed = list(concepts)
    places = {number: concept.id for concept in listed for number in concept.notations}
    result = []
    for concept in listed:
        parents = dict.fromkeys(
            places[parent]
            for number in concept.notations
            if (parent := number.rpartition(".")[0]) in places and places[parent] != concept.id
        )
        known = dict.fromkeys((*concept.broader, *parents))
        result.append(replace(concept, broader=tuple(known)) if parents else concept)
    return result


def read_mesh_xml(source: Source, report: ReadReport, language: str = "en") -> list[Concept]:
    """Read the descriptors of `desc20XX.xml`, parsing one record at a time."""
    return with_tree_hierarchy(_descriptors(source, report, language))


def _descriptors(source: Source, report: ReadReport, language: str) -> Iterator[Concept]:
    for record in stream_elements(source, "DescriptorRecord"):
        concept = _descriptor(record, language)
        if concept.id and concept.names:
            yield concept
        else:
            where = f"line {record.sourceline}"
            report.skip(source.name, where, "no DescriptorUI or DescriptorName")


def _descriptor(record: _Element, language: str) -> Concept:
    name = clean_label(record.findtext("DescriptorName/String") or "")
    terms = [
        clean_label(node.text or "")
        for node in record.iterfind("ConceptList/Concept/TermList/Term/String")
    ]
    synonyms = tuple(dict.fromkeys(term for term in terms if term and term != name))
    related = record.iterfind("SeeRelatedList/SeeRelatedDescriptor/DescriptorReferredTo")
    return Concept(
        id=clean_label(record.findtext("DescriptorUI") or ""),
        names={language: name} if name else {},
        synonyms={language: synonyms} if synonyms else {},
        notations=tuple(
            clean_label(node.text or "") for node in record.iterfind("TreeNumberList/TreeNumber")
        ),
        related=tuple(clean_label(node.findtext("DescriptorUI") or "") for node in related),
    )
