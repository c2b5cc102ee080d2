"""PubMed/MEDLINE XML: baseline and update files (`PubmedArticleSet`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from labelkin.corpus.document import Deletion, Document
from labelkin.corpus.intake import Intake
from labelkin.corpus.language import normalise_language
from labelkin.corpus.record import RecordError, checked_id, lacking
from labelkin.corpus.revision import parse_revision
from labelkin.corpus.source import Source
from labelkin.corpus.text import clean_label, clean_text, is_valid_id
from labelkin.corpus.xml import stream_elements

if TYPE_CHECKING:
    from lxml.etree import _Element

_NO_TITLE = ("[Not Available].", "[Not Available]")
_YEAR = re.compile(r"\d{4}")


def read_pubmed(source: Source, intake: Intake) -> Iterator[Document | Deletion]:
    """Read citations in file order, and a Deletion for each PMID in `DeleteCitation`.

    Book records (`PubmedBookArticle`) have no MeSH headings; they are skipped and reported.
    """
    for element in stream_elements(source, "MedlineCitation", "DeleteCitation", "BookDocument"):
        if element.tag == "DeleteCitation":
            for node in element.iterfind("PMID"):
                if is_valid_id(pmid := (node.text or "").strip()):
                    yield Deletion(pmid)
                else:
                    where = f"DeleteCitation (line {node.sourceline})"
                    intake.report.skip(source.name, where, "no usable PMID")
            continue
        where = f"PMID {element.findtext('PMID') or 'missing'} (line {element.sourceline})"
        try:
            document = _document(element, intake.place(where))
        except RecordError as error:
            intake.report.skip(source.name, where, str(error))
            continue
        yield replace(document, lacks=lacking(document, {})) if intake.corrections else document


def _document(citation: _Element, where: str) -> Document:
    if citation.tag == "BookDocument":
        raise RecordError("a book record, not an article")
    pmid = (citation.findtext("PMID") or "").strip()
    if not pmid:
        raise RecordError("no PMID")
    checked_id(pmid)
    article = citation.find("Article")
    if article is None:
        raise RecordError("no Article element")
    title = _inner_text(article.find("ArticleTitle"))
    if title in _NO_TITLE:
        title = ""
    # PubMed has titles and abstracts in English, whatever the article's own
    # language; only the vernacular title is in the article's language.
    written_in = normalise_language(article.findtext("Language") or "")
    language: str | None = "en"
    body = _abstract(article.find("Abstract"))
    if not title:
        title = _inner_text(article.find("VernacularTitle"))
        language = "en" if body else written_in
    if not (title or body):
        raise RecordError("no text: title and abstract are missing or empty")
    headings = [_heading(node) for node in citation.iterfind("MeshHeadingList/MeshHeading")]
    return Document(
        id=pmid,
        title=title,
        body=body,
        language=language,
        metadata=_metadata(citation, article, written_in, headings),
        labels=_labels(headings),
        label_names={heading["ui"]: heading["name"] for heading in headings if heading["ui"]},
        major_labels=_labels([heading for heading in headings if _is_major(heading)]),
        revision=_revision(citation.find("DateRevised")),
        where=where,
    )


def _revision(revised: _Element | None) -> str | None:
    """The day on which a citation was last changed; None if the element is not a date."""
    if revised is None:
        return None
    parts = [(revised.findtext(name) or "").strip().zfill(2) for name in ("Year", "Month", "Day")]
    return parse_revision("-".join(parts))


def _inner_text(element: _Element | None) -> str:
    """The text inside `element` without its markup (<i>, <sup>, …)."""
    if element is None:
        return ""
    return clean_text(" ".join("".join(map(str, element.itertext())).split()))


def _abstract(abstract: _Element | None) -> str:
    """The abstract's sections, one per line, each with its label: `METHODS: …`."""
    if abstract is None:
        return ""
    sections = []
    for part in abstract.iterfind("AbstractText"):
        text = _inner_text(part)
        label = clean_label(part.get("Label") or "")
        if text:
            sections.append(f"{label}: {text}" if label and label != "UNLABELLED" else text)
    return "\n".join(sections)


def _heading(node: _Element) -> dict[str, Any]:
    descriptor = node.find("DescriptorName")
    if descriptor is None:
        raise RecordError("a MeshHeading without DescriptorName")
    heading = _mesh_name(descriptor)
    qualifiers = [_mesh_name(qualifier) for qualifier in node.iterfind("QualifierName")]
    return {**heading, "qualifiers": qualifiers} if qualifiers else heading


def _labels(headings: list[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(heading["ui"] or heading["name"] for heading in headings))


def _is_major(heading: dict[str, Any]) -> bool:
    """Whether the heading is a main topic, alone or with one of its qualifiers."""
    return bool(heading["major"]) or any(one["major"] for one in heading.get("qualifiers", ()))


def _mesh_name(element: _Element) -> dict[str, Any]:
    return {
        "ui": clean_label(element.get("UI") or ""),
        "name": clean_label(element.text or ""),
        "major": element.get("MajorTopicYN") == "Y",
    }


def _metadata(
    citation: _Element, article: _Element, written_in: str | None, headings: list[dict[str, Any]]
) -> dict[str, Any]:
    date = article.find("Journal/JournalIssue/PubDate")
    published = "" if date is None else f"{date.findtext('Year') or date.findtext('MedlineDate')}"
    year = _YEAR.search(published)
    keywords = [_inner_text(node) for node in citation.iterfind("KeywordList/Keyword")]
    metadata = {
        "journal": _inner_text(article.find("Journal/Title")),
        "year": int(year.group()) if year else None,
        "article_language": written_in if written_in != "en" else None,
        "keywords": [keyword for keyword in keywords if keyword],
        "mesh": headings,
    }
    return {key: value for key, value in metadata.items() if value}
