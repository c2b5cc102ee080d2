"""What a file is, if its first bytes show that it cannot be what is expected."""

from __future__ import annotations

import re
from dataclasses import dataclass

PDF, OFFICE = "PDF", "office document"
VOCABULARY = "vocabulary"
LFS_POINTER = "Git LFS pointer"
_LFS_START = b"version https://git-lfs.github.com/spec/v1"
_ARCHIVES = {
    b"PK\x03\x04": "zip archive",
    b"PK\x05\x06": "zip archive",
    b"7z\xbc\xaf\x27\x1c": "7z archive",
    b"Rar!\x1a\x07": "rar archive",
}
_TAR = "tar archive"
# What holds texts that have to be taken out first: refused like any unreadable file.
CONTAINERS = frozenset((PDF, OFFICE, _TAR, *_ARCHIVES.values()))
_OFFICE_PARTS = re.compile(rb"(word|xl|ppt)/|mimetypeapplication/(vnd\.oasis|epub)")
_TAR_MAGIC_AT = 257

_WEB_PAGE = re.compile(rb"\s*<(!doctype\s+)?html\b", re.IGNORECASE)
MESH_ROOT = re.compile(rb"<DescriptorRecord(Set)?\b")
_RDF_XML = re.compile(rb"<rdf:RDF\b|https?://www\.w3\.org/2004/02/skos/core#")
_RDF_START = re.compile(
    rb"""(\#[^\n]*\n\s*)*(@prefix\s+\S*:\s*<|@base\s+<|prefix\s+\S*:\s*<)|\{\s*"@(context|graph)\"""",
    re.IGNORECASE,
)
_RDF_SUFFIXES = tuple(".ttl .turtle .nt .nq .trig .n3 .rdf .owl .skos .jsonld".split())
# The columns of a vocabulary table.
ID_COLUMNS = ("id", "ui", "uri")
_NAME_COLUMN = re.compile(r"(name|label|preflabel)(_[a-z]{2,3}(-\w+)?)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Foreign:
    """What a file is instead, and what can be done with it."""

    kind: str
    message: str


def foreign_kind(head: bytes) -> Foreign | None:
    """What a file with this head is, if nothing can read it: an archive, a PDF, a pointer."""
    if head.startswith(_LFS_START):
        return Foreign(
            LFS_POINTER,
            "a Git LFS pointer, not the file itself; fetch it with `git lfs pull`",
        )
    if head.startswith(b"%PDF-"):
        return Foreign(PDF, "a PDF; extract the text first, for example with pdftotext")
    for magic, name in _ARCHIVES.items():
        if head.startswith(magic):
            if _OFFICE_PARTS.search(head[:4096]):
                return Foreign(OFFICE, "an office document; save it as text or CSV first")
            return Foreign(name, f"a {name}; unpack it first")
    if head[_TAR_MAGIC_AT : _TAR_MAGIC_AT + 5] == b"ustar":
        return Foreign(_TAR, "a tar archive; unpack it first")
    return None


def is_xml(head: bytes) -> bool:
    """Whether a file is XML; Turtle and N-Triples may begin with a URI in angle brackets."""
    return head.lstrip().startswith((b"<?xml", b"<!--", b"<!DOCTYPE", b"<rdf:RDF"))


def is_vocabulary(head: bytes, name: str = "") -> bool:
    """Whether a file is MeSH's descriptor XML or RDF, which hold concepts and no documents."""
    start = head.lstrip()
    if start.startswith(b"<") and (MESH_ROOT.search(head) or _RDF_XML.search(head)):
        return True
    return bool(_RDF_START.match(start)) or name.lower().endswith(_RDF_SUFFIXES)


def is_web_page(head: bytes) -> bool:
    """Whether a file is HTML, as a server sends it instead of the file that was wanted."""
    return _WEB_PAGE.match(head) is not None


def is_vocabulary_header(cells: list[str]) -> bool:
    """Whether these are the column names of a vocabulary table: an id and a name."""
    names = [cell.strip().strip('"').casefold() for cell in cells]
    return any(name in ID_COLUMNS for name in names) and any(map(_NAME_COLUMN.fullmatch, names))
