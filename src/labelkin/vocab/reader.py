"""Reads a vocabulary file in any known format."""

from __future__ import annotations

import logging
import re
from pathlib import Path

from labelkin.corpus.language import normalise_language
from labelkin.corpus.report import ReadReport
from labelkin.corpus.source import Source
from labelkin.exceptions import DamagedFileError, FormatError, InputError, VocabularyError
from labelkin.vocab.concept import Concept
from labelkin.vocab.vocabulary import Vocabulary

logger = logging.getLogger(__name__)

FORMATS = ("mesh-xml", "skos", "table")

_MESH_ROOT = re.compile(rb"<DescriptorRecord(Set)?\b")
# Names of a long cycle that are shown.
_SHOWN = 6


def read_vocabulary(
    path: str | Path, format: str | None = None, language: str = "en"
) -> Vocabulary:
    """Read a vocabulary: MeSH descriptor XML, SKOS or a table, gzipped or not.

    The format is recognised by content and extension unless `format` is given
    (`mesh-xml`, `skos`, `table`). Names without a language tag are in `language`.
    """
    path = Path(path)
    code = normalise_language(language)
    if code is None:
        raise VocabularyError(f"{language!r} is not a language code; use one such as 'en' or 'pt'")
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if format is not None and format not in FORMATS:
        raise FormatError(f"unknown vocabulary format {format!r}; known: {', '.join(FORMATS)}")
    report = ReadReport()
    try:
        concepts = _read(path, format, report, code)
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


def _read(path: Path, format: str | None, report: ReadReport, language: str) -> list[Concept]:
    with Source(path) as source:
        if not source.head.strip():
            raise FormatError(f"{path}: the file is empty")
        if b"\x00" in source.head:
            raise FormatError(f"{path}: a binary file, not a vocabulary")
        return _concepts(source, format or _recognise(source), report, language)


def _recognise(source: Source) -> str:
    start = source.head.lstrip()
    if _MESH_ROOT.search(source.head):
        return "mesh-xml"
    from labelkin.vocab.skos import SYNTAXES

    extension = _extension(source)
    if extension in SYNTAXES or start.startswith((b"<?xml", b"<rdf:RDF", b"@prefix", b"@base")):
        return "skos"
    return "table"


def _concepts(source: Source, format: str, report: ReadReport, language: str) -> list[Concept]:
    if format == "mesh-xml":
        from labelkin.vocab.mesh import read_mesh_xml

        return read_mesh_xml(source, report, language)
    if format == "skos":
        from labelkin.vocab.skos import SYNTAXES, read_skos

        start = source.head.lstrip()
        guess = "xml" if start.startswith((b"<?xml", b"<rdf:RDF")) else "turtle"
        return read_skos(source, SYNTAXES.get(_extension(source), guess), report, language)
    from labelkin.vocab.table import read_table

    return read_table(source, report, language)


def _extension(source: Source) -> str:
    return Path(source.path.name.removesuffix(".gz")).suffix.lower()
