"""Reads a vocabulary file in any known format."""

from __future__ import annotations

import logging
import re
from pathlib import Path

from labelkin.corpus.foreign import (
    MESH_ROOT,
    is_vocabulary,
    is_vocabulary_header,
    is_web_page,
    is_xml,
)
from labelkin.corpus.formats import TEXT_KEY, extension_of, has_text_column, recognised
from labelkin.corpus.language import normalise_language
from labelkin.corpus.plausibility import are_uris
from labelkin.corpus.report import ReadReport
from labelkin.corpus.source import HEAD_BYTES, Source
from labelkin.corpus.table import header_line
from labelkin.exceptions import (
    DamagedFileError,
    FormatError,
    InputError,
    VocabularyError,
    WrongKindError,
)
from labelkin.vocab.concept import Concept
from labelkin.vocab.vocabulary import Vocabulary

logger = logging.getLogger(__name__)

FORMATS = ("mesh-xml", "skos", "table")

_JSON_CONCEPT = re.compile(rb'"(@id|@context|@graph|prefLabel|skos:\w+)"')
_RDF_NAMESPACE = b"http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_ROOT = re.compile(rb"<[^!?]")
# Names of a long cycle that are shown.
_SHOWN = 6


def read_vocabulary(
    path: str | Path, format: str | None = None, language: str = "en", *, force: bool = False
) -> Vocabulary:
    """Read a vocabulary: MeSH descriptor XML, SKOS or a table, compressed or not.

    The format is recognised by content and extension unless `format` is given
    (`mesh-xml`, `skos`, `table`). Names without a language tag are in `language`.
    A file that looks like a corpus raises WrongKindError, unless `force` is set.
    """
    path = Path(path)
    code = normalise_language(language)
    if code is None:
        raise VocabularyError(f"{language!r} is not a language code; use one such as 'en' or 'pt'")
    if path.is_dir():
        raise InputError(f"{path}: a folder; give the vocabulary file itself")
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if format is not None and format not in FORMATS:
        raise FormatError(f"unknown vocabulary format {format!r}; known: {', '.join(FORMATS)}")
    report = ReadReport()
    try:
        concepts = _read(path, format, report, code, force)
    except DamagedFileError as error:
        raise DamagedFileError(f"{path}: {error}") from error
    vocabulary = Vocabulary()
    for concept in concepts:
        if concept.id in vocabulary:
            report.skip(str(path), f"concept {concept.id}", "duplicate id")
        else:
            vocabulary.add(concept)
    if not vocabulary:
        raise VocabularyError(f"{path}: no concepts found in the file")
    _report_cycles(path, vocabulary)
    return vocabulary


def _report_cycles(path: Path, vocabulary: Vocabulary) -> None:
    groups = vocabulary.cycles()
    if not groups:
        return
    count = sum(map(len, groups))
    names = [concept.name() for concept in vocabulary.cycle_through(groups[0][0])]
    if len(names) > _SHOWN:
        names = [*names[: _SHOWN - 1], "…", names[-1]]
    logger.warning(
        "%s: %s of broader links, such as %s; labelkin works with them, but they are mistakes",
        path,
        "1 concept is in a cycle" if count == 1 else f"{count:,} concepts are in cycles",
        " → ".join(names),
    )


def _read(
    path: Path, format: str | None, report: ReadReport, language: str, force: bool
) -> list[Concept]:
    with Source(path) as source:
        if not source.head.strip():
            raise FormatError(f"{path}: the file is empty")
        if b"\x00" in source.head:
            raise FormatError(f"{path}: a binary file, not a vocabulary")
        if not force and (kind := corpus_kind(source)) is not None:
            raise WrongKindError(
                f"{path}: looks like a corpus ({kind}), not like a vocabulary; `labelkin add` "
                "takes it, and a vocabulary is MeSH descriptor XML, SKOS or a table of ids and "
                "names; `init --force` reads it anyway",
                "corpus",
            )
        concepts = _concepts(source, format or _recognise(source), report, language)
        if source.not_utf8:
            report.note(source.name, "encoding", "not UTF-8 and read as Windows-1252")
        return concepts


def _recognise(source: Source) -> str:
    if MESH_ROOT.search(source.head):
        return "mesh-xml"
    if is_web_page(source.head):
        raise FormatError(
            f"{source.path}: a web page (HTML), not a vocabulary; was it downloaded completely, or "
            "is a login needed?"
        )
    if is_xml(source.head) and _ROOT.search(source.head) and _RDF_NAMESPACE not in source.head:
        raise FormatError(
            f"{source.path}: XML, but neither MeSH descriptors (DescriptorRecordSet) nor RDF"
        )
    from labelkin.vocab.skos import SYNTAXES

    if is_xml(source.head) or is_vocabulary(source.head) or _extension(source) in SYNTAXES:
        return "skos"
    if source.head.lstrip().startswith((b"{", b"[{")):
        raise FormatError(
            f"{source.path}: JSON, but not JSON-LD; give SKOS in an RDF syntax, MeSH descriptor "
            "XML or a table of ids and names"
        )
    return "table"


def _concepts(source: Source, format: str, report: ReadReport, language: str) -> list[Concept]:
    if format == "mesh-xml":
        from labelkin.vocab.mesh import read_mesh_xml

        return read_mesh_xml(source, report, language)
    if format == "skos":
        from labelkin.vocab.skos import read_skos, syntax_of

        syntax = syntax_of(source.head, _extension(source))
        return read_skos(source, syntax, report, language)
    from labelkin.vocab.table import read_table

    return read_table(source, report, language)


def _extension(source: Source) -> str:
    return extension_of(source.path.name)


def corpus_kind(source: Source) -> str | None:
    """What kind of corpus a file seems to be, if it does not look like a vocabulary."""
    head = source.head
    known = recognised(source)
    if known == "pubmed":
        return "PubMed XML"
    if known in ("bioasq", "jsonl", "annif-jsonl"):
        # SKOS may be JSON as well.
        is_corpus = TEXT_KEY.search(head) and not _JSON_CONCEPT.search(head)
        return "JSON with texts" if is_corpus else None
    if known in ("csv", "tsv"):
        return "a table with texts" if has_text_column(head) and not _has_names(head) else None
    return "texts and subjects" if known == "annif-tsv" and _are_indexed_texts(head) else None


def _has_names(head: bytes) -> bool:
    header = header_line(head)
    return any(is_vocabulary_header(header.split(delimiter)) for delimiter in "\t,;")


def _are_indexed_texts(head: bytes) -> bool:
    """Whether lines are `text<TAB><uri> <uri>`: most have URIs after the tab, and not before."""
    lines = head.decode("utf-8", "replace").splitlines()
    if len(head) >= HEAD_BYTES and len(lines) > 1:
        lines.pop()
    rows = [line.partition("\t") for line in lines if line.strip()]
    indexed = sum(are_uris(subjects) and not are_uris(text) for text, _, subjects in rows)
    return indexed > len(rows) / 2
