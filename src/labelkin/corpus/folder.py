"""The corpus files in a folder and below it, and the files that are something else."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from labelkin.corpus.annif import (
    AnnifFolder,
    document_suffix,
    is_annif_document,
    subject_files,
)
from labelkin.corpus.compression import without_suffix
from labelkin.corpus.document import Document
from labelkin.corpus.foreign import LFS_POINTER, VOCABULARY
from labelkin.corpus.formats import (
    FORMATS,
    TEXT_KEY,
    Format,
    extension_of,
    has_subjects,
    has_text_column,
    has_uris,
    recognise,
)
from labelkin.corpus.intake import Intake
from labelkin.corpus.plausibility import LIST_OF_SUBJECTS, SAMPLE, implausible
from labelkin.corpus.report import SilentReport
from labelkin.corpus.source import HEAD_BYTES, Source, printable
from labelkin.exceptions import DamagedFileError, FormatError, InputError, WrongKindError
from labelkin.layout import is_collection

_DOCUMENTATION_NAME = re.compile(
    r"(readme|licen[cs]e|copying|changelog|notice|authors|citation|contributing)(\.\w+)*"
    r"|readme[._-].*|(changes|install|manifest)(\.(txt|in))?",
    re.IGNORECASE,
)
_DOCUMENTATION_SUFFIXES = set(
    ".md .rst .html .htm .pdf .doc .docx .odt .rtf .dtd .xsd .css .js .png .jpg .svg".split()
)
_CHECKSUMS = re.compile(
    r".*\.(md5|sha1|sha224|sha256|sha384|sha512|crc32?|sfv|asc|sig)(sums?)?(\.txt)?"
    r"|(md5|sha\d+)(sums?)?(\.txt)?|checksums?(\.\w+)?",
    re.IGNORECASE,
)
CORPUS_SUFFIXES = (".jsonl", ".ndjson", ".json", ".xml", ".csv", ".tsv")
_SHOWN_NAMES = 3
_DOCUMENT, _CORPUS, _DOCUMENTATION = "document", "corpus file", "documentation"
TEXT_WITHOUT_SUBJECTS = "text without subjects"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which files of a folder are wanted, and what they are read as.

    `texts` says that labels are not needed, so that a plain text is a document,
    `corrections` that texts are not needed.
    """

    glob: Sequence[str] = ()
    ignore: Sequence[str] = ()
    texts: bool = False
    force: bool = False
    format: Format | None = None
    label_separator: str = "|"
    corrections: bool = False

    def wants(self, relative: str) -> bool:
        """Whether --glob and --ignore let this file through."""
        return (not self.glob or _matches(relative, self.glob)) and not self.ignores(relative)

    def ignores(self, relative: str) -> bool:
        """Whether --ignore leaves out this file or folder."""
        return _matches(relative, self.ignore)


def _matches(relative: str, patterns: Sequence[str]) -> bool:
    name = relative.rpartition("/")[2]
    return any(fnmatchcase(relative, one) or fnmatchcase(name, one) for one in patterns)


@dataclass
class Listing:
    """What is in a folder: inputs to read, in order, and names of what is left out, by kind."""

    inputs: list[Path | AnnifFolder] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    not_asked_for: Counter[str] = field(default_factory=Counter)

    def leave_out(self, kind: str, relative: str) -> None:
        """Note a file that is not read."""
        self.left_out.setdefault(kind, []).append(relative)

    def names_left_out(self) -> list[str]:
        """The files that are not read, by their paths in the folder."""
        return [name for names in self.left_out.values() for name in names]

    def described(self) -> str:
        """`README.txt, a.md (documentation); x.md5 (checksum)`."""
        parts = []
        for kind, names in self.left_out.items():
            more = len(names) - _SHOWN_NAMES
            shown = ", ".join(names[:_SHOWN_NAMES]) + (f" and {more:,} more" if more > 0 else "")
            parts.append(f"{shown} ({kind})")
        return "; ".join(parts)


def list_folder(folder: Path, selection: Selection) -> Listing:
    """Find the corpus files in a folder and below it, each in its own format.

    Raises InputError, saying what there is, if none can be read.
    """
    if is_collection(folder):
        raise WrongKindError(
            f"{printable(folder)}: a collection, not a corpus; `labelkin corpus convert "
            f"{printable(folder)} -o FILE.jsonl` writes its documents to a file",
            "collection",
        )
    listing = Listing()
    for files in _walk(folder, selection, listing):
        _sort_out(folder, files, selection, listing)
    if not listing.inputs:
        raise InputError(_nothing_to_read(folder, listing))
    return listing


def sample(source: Source, known: Format, label_separator: str) -> list[Document]:
    """The first documents of an open file; fewer if it is damaged early."""
    documents: list[Document] = []
    intake = Intake(source.name, SilentReport(), label_separator)
    try:
        for item in islice(known.read(source, intake), SAMPLE):
            documents += [item] if isinstance(item, Document) else []
    except DamagedFileError:
        pass
    return documents


def _nothing_to_read(folder: Path, listing: Listing) -> str:
    name = printable(folder)
    if not listing.left_out:
        if not listing.not_asked_for:
            return f"{name}: the folder is empty"
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in listing.not_asked_for.most_common(5))
        return f"{name}: no file is left by --glob and --ignore; the folder holds {kinds}"
    advice = "corpus files are described in docs/formats.md; --format reads files as one format"
    if {VOCABULARY, LIST_OF_SUBJECTS} & {*listing.left_out}:
        advice = f"a vocabulary is given to `labelkin init --vocab`; {advice}"
    if TEXT_WITHOUT_SUBJECTS in listing.left_out:
        advice = (
            "put the subjects beside each text as NAME.key or NAME.tsv, "
            "or read texts without labels with --format annif-folder"
        )
    return f"{name}: no corpus file in the folder, only {listing.described()}; {advice}"


def _walk(folder: Path, selection: Selection, listing: Listing) -> Iterator[list[Path]]:
    """The wanted files of each folder, in a stable order; a linked folder is entered once."""
    seen = {_identity(folder)}
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        try:
            entries = sorted(current.iterdir())
        except OSError:
            # Reading it is what reports that it cannot be read.
            listing.inputs.append(current)
            continue
        files, folders = [], []
        for entry in entries:
            relative = _relative(entry, folder)
            if entry.is_dir():
                if selection.ignores(relative):
                    listing.not_asked_for["folder"] += 1
                elif entry.name.startswith("."):
                    listing.leave_out("hidden", f"{relative}/")
                elif is_collection(entry):
                    listing.leave_out("collection", f"{relative}/")
                elif (identity := _identity(entry)) not in seen:
                    seen.add(identity)
                    folders.append(entry)
            elif selection.wants(relative):
                files.append(entry)
            else:
                listing.not_asked_for[extension_of(entry.name) or "file"] += 1
        waiting += reversed(folders)
        yield files


def _identity(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_dev, status.st_ino


def _relative(path: Path, folder: Path) -> str:
    return printable(path.relative_to(folder)).replace(os.sep, "/")


def _sort_out(folder: Path, files: list[Path], selection: Selection, listing: Listing) -> None:
    """Divide the files of one folder into documents of their own, corpus files and others."""
    beside = {path: subject_files(path) for path in files if document_suffix(path) == ".txt"}
    paired = {path for path, found in beside.items() if found}
    subjects = {file for found in beside.values() for file in found}
    documents: list[Path] = []
    inputs: list[Path | AnnifFolder] = []
    for path in files:
        if path in subjects:
            continue
        kind = _DOCUMENT if path in paired else _kind(path, selection, bool(paired))
        if kind == _DOCUMENT:
            documents.append(path)
        elif kind == _CORPUS:
            inputs.append(path)
        else:
            listing.leave_out(kind, _relative(path, folder))
    if documents:
        listing.inputs.append(AnnifFolder(folder, tuple(documents)))
    listing.inputs += inputs


def _kind(path: Path, selection: Selection, has_pairs: bool) -> str:
    """_DOCUMENT, _CORPUS, or what the file is instead.

    `has_pairs` says that other texts beside it have their subjects. A file that
    looks like a corpus file but cannot be read is one: reading it reports why.
    """
    if kind := _kind_by_name(path.name):
        return kind
    if not path.is_file():
        return _CORPUS if path.is_symlink() and not path.exists() else "not a regular file"
    suffix = document_suffix(path)
    if selection.format is not None:
        if selection.format.name != "annif-folder":
            return _CORPUS
        return _DOCUMENT if suffix in (".txt", ".json") else "neither text nor JSON"
    try:
        with Source(path) as source:
            if suffix == ".txt" and has_pairs:
                return _DOCUMENT
            if not source.head.strip():
                return _CORPUS if suffix in CORPUS_SUFFIXES else "empty"
            return _kind_by_content(source, selection)
    except WrongKindError as error:
        if error.kind == LFS_POINTER:
            return _CORPUS
        return error.kind
    except InputError:
        return _CORPUS


def _kind_by_name(name: str) -> str:
    if name.startswith("."):
        return "hidden"
    if _CHECKSUMS.fullmatch(name):
        return "checksum"
    extension = extension_of(name)
    if extension in _DOCUMENTATION_SUFFIXES:
        return _DOCUMENTATION
    if extension not in CORPUS_SUFFIXES and _is_named_as_documentation(name):
        return _DOCUMENTATION
    return "subjects without a text" if extension == ".key" else ""


def _is_named_as_documentation(name: str) -> bool:
    return _DOCUMENTATION_NAME.fullmatch(without_suffix(name)) is not None


def _is_json(head: bytes) -> bool:
    """Whether a file, or its first line, is valid JSON as far as one can see."""
    if len(head) >= HEAD_BYTES:
        return True
    for text in (head, head.split(b"\n", 1)[0]):
        with suppress(ValueError, RecursionError):
            json.loads(text)
            return True
    return False


def _kind_by_content(source: Source, selection: Selection) -> str:
    extension = extension_of(source.name)
    text = _DOCUMENT if selection.texts else TEXT_WITHOUT_SUBJECTS
    if extension == ".json" and is_annif_document(source.head):
        return _DOCUMENT
    try:
        known = recognise(source).name
    except WrongKindError as error:
        return error.kind
    except FormatError:
        return text if extension == ".txt" and b"\x00" not in source.head else "unknown format"
    if known == "annif-tsv" and not has_subjects(source.head) and extension != ".tsv":
        return text if extension == ".txt" else "unknown format"
    if not selection.corrections:
        if known in ("csv", "tsv") and not has_text_column(source.head):
            return "table without texts"
        if extension == ".json" and known != "pubmed" and not TEXT_KEY.search(source.head):
            return "JSON without texts" if _is_json(source.head) else _CORPUS
    is_documentation = _is_named_as_documentation(source.path.name)
    if known != "annif-tsv" and not is_documentation:
        return _CORPUS
    first = sample(source, FORMATS[known], selection.label_separator)
    if is_documentation and not _are_documents(first, known, source.head):
        return _DOCUMENTATION
    if known == "annif-tsv" and not selection.force:
        verdict = implausible(first, named=False)
        if verdict is not None and verdict.kind == LIST_OF_SUBJECTS:
            return verdict.kind
    return _CORPUS


def _are_documents(first: list[Document], known: str, head: bytes) -> bool:
    """Whether a file that is named like documentation holds a corpus all the same.

    A table of authors has no URIs, and a citation is one record without labels.
    """
    if known == "annif-tsv":
        return has_uris(head)
    return known == "pubmed" or len(first) > 1 or any(document.labels for document in first)
