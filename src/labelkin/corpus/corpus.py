"""Corpus files in any known format, read as one stream of documents."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from labelkin.corpus.annif import AnnifFolder, subject_file, text_file_id, text_file_ids
from labelkin.corpus.document import CorpusItem, Correction, Deletion, Document
from labelkin.corpus.folder import CORPUS_SUFFIXES, Listing, Selection, list_folder, sample
from labelkin.corpus.foreign import CONTAINERS
from labelkin.corpus.formats import (
    FORMATS,
    Format,
    extension_of,
    has_subjects,
    recognise,
)
from labelkin.corpus.intake import Intake
from labelkin.corpus.plausibility import SAMPLE, implausible
from labelkin.corpus.report import QuietReport, ReadReport
from labelkin.corpus.source import Source, printable
from labelkin.corpus.text import clean_text, is_valid_id
from labelkin.exceptions import DamagedFileError, FormatError, InputError, WrongKindError
from labelkin.wording import counted

logger = logging.getLogger(__name__)

_PLAIN_STANDARD_INPUT = "standard-input"


class Corpus:
    """A stream of documents from files, with a report of what was read.

    It can be iterated repeatedly; `report` describes the latest pass. A file
    that is unreadable or truncated is reported, and reading continues with the
    next one. A file that looks like something else, such as a vocabulary,
    raises WrongKindError before the first document, unless `force` is set.

    A folder stands for the corpus files in it and below it; `glob` and `ignore`
    are patterns that restrict them. With `texts`, labels are not needed and a
    plain text is a document, with its file name as its id (its path, if several
    have the same name), or `text_id`. With `corrections`, a record without a
    text is a correction of the headings of a stored document. `report` makes the
    report of each pass; the default one logs problems. While documents are read,
    `file_name` is the name of the file or folder that the last one comes from.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        format_name: str | None = None,
        label_separator: str = "|",
        *,
        glob: Sequence[str] = (),
        ignore: Sequence[str] = (),
        force: bool = False,
        texts: bool = False,
        text_id: str | None = None,
        corrections: bool = False,
        report: Callable[[], ReadReport] = ReadReport,
    ) -> None:
        self._new_report = report
        self.report = report()
        self.file_name = ""
        self._source: Source | None = None
        self._finished_bytes = 0
        self._checked = False
        self._open: dict[Path, Source] = {}
        self._text_id = text_id
        if format_name is not None and format_name not in FORMATS:
            raise FormatError(f"unknown corpus format {format_name!r}; known: {', '.join(FORMATS)}")
        if not label_separator:
            raise FormatError("the label separator is empty; give a character such as | or ;")
        known = FORMATS[format_name] if format_name else None
        self._selection = Selection(
            tuple(glob), tuple(ignore), texts, force, known, label_separator, corrections
        )
        self._inputs: list[Path | AnnifFolder] = []
        self._left_out: list[str] = []
        paths = list(paths)
        self._text_ids = text_file_ids(
            path
            for path in paths
            if extension_of(path.name) not in CORPUS_SUFFIXES and not path.is_dir()
        )
        for path in paths:
            if path in self._inputs and not path.is_file():
                name = _name(path)
                raise InputError(f"{name} is given more than once, but can be read only once")
            self._inputs += self._inputs_of(path)

    def _inputs_of(self, path: Path) -> list[Path | AnnifFolder]:
        if path.is_symlink() and not path.exists():
            raise InputError(f"{printable(path)}: a link that leads nowhere")
        if str(path) != "-" and not path.exists():
            raise InputError(f"{printable(path)}: no such file or folder")
        if path.is_dir():
            listing = list_folder(path, self._selection)
            self._note_left_out(path, listing)
            return listing.inputs
        if self._selection.format is FORMATS["annif-folder"]:
            raise FormatError(f"{printable(path)}: not a folder, as annif-folder requires")
        is_text = self._selection.format is None and extension_of(path.name) == ".txt"
        if is_text and path.is_file() and subject_file(path) is not None:
            return [AnnifFolder(path.parent, (path,), {path: self._text_ids[path]})]
        return [path]

    def _note_left_out(self, folder: Path, listing: Listing) -> None:
        names = listing.names_left_out()
        self._left_out += [str(Path(printable(folder)) / name) for name in names]
        if names:
            count, what = f"{len(names):,}", listing.described()
            logger.info("%s: left out %s of its entries: %s", printable(folder), count, what)

    @property
    def paths(self) -> list[Path]:
        """All files that are read."""
        inputs = ((one,) if isinstance(one, Path) else one.files for one in self._inputs)
        return [path for group in inputs for path in group]

    def __iter__(self) -> Iterator[CorpusItem]:
        self.report = self._new_report()
        self.report.files_left_out = list(self._left_out)
        self._finished_bytes = 0
        self.check()
        begun = {path: _begin(self._read(path)) for path in list(self._open)}
        for one in self._inputs:
            path = one if isinstance(one, Path) else one.path
            self.report.files += 1
            self.file_name = _name(path)
            try:
                yield from self._counted(begun.pop(path) if path in begun else self._read(one))
            except WrongKindError as error:
                if not self._selection.force and error.kind not in CONTAINERS:
                    raise
                self._refuse(path, error)
            except DamagedFileError as error:
                self.report.damage(_name(path), str(error))
            except InputError as error:
                self._refuse(path, error)
            files = (path,) if isinstance(one, Path) else one.files
            self._finished_bytes += sum(_size(file) for file in files)

    def check(self) -> None:
        """Raise WrongKindError if the beginning of a file shows that it is no corpus.

        Iterating does so by itself, the first time. Files that cannot be read
        are not checked here; empty standard input raises InputError.
        """
        if self._checked:
            return
        self._checked = True
        for one in self._inputs:
            if isinstance(one, AnnifFolder):
                continue
            if one.is_file():
                if not self._selection.force:
                    self._check_file(one)
            elif str(one) == "-" or (one.exists() and not one.is_dir()):
                self._check_stream(one)

    def _check_file(self, path: Path) -> None:
        try:
            with Source(path) as source:
                known = self._format_of(source)
                if known is not None and known.name != "pubmed":
                    separator = self._selection.label_separator
                    _refuse_implausible(source.name, sample(source, known, separator), known)
        except WrongKindError as error:
            if error.kind not in CONTAINERS:
                raise
        except InputError:
            return

    def _check_stream(self, path: Path) -> None:
        """Open what can be read only once, for the pass that follows."""
        try:
            source = Source(path)
        except WrongKindError:
            raise
        except InputError:
            return
        if not source.head.strip():
            source.close()
            raise InputError(f"{source.name} is empty; pipe texts or a corpus into it")
        self._open[path] = source

    def documents(self) -> Iterator[Document]:
        """The documents alone: corrections and deletions only matter to a collection."""
        return (item for item in self if isinstance(item, Document))

    def documents_again(self) -> Iterator[Document]:
        """The documents of a later pass, whose problems the first one has logged."""
        report = self._new_report
        self._new_report = QuietReport
        try:
            yield from self.documents()
        finally:
            self._new_report = report

    @property
    def bytes_read(self) -> int:
        """Bytes read of the (compressed) files, for progress bars."""
        return self._finished_bytes + (self._source.position if self._source else 0)

    @property
    def bytes_total(self) -> int:
        """Size of all files in bytes; 0 if standard input is among them."""
        if any(str(path) == "-" for path in self.paths):
            return 0
        return sum(map(_size, self.paths))

    def _refuse(self, path: Path, error: InputError) -> None:
        name = _name(path)
        self.report.refuse(name, str(error).removeprefix(f"{name}: "))

    def _counted(self, items: Iterator[CorpusItem]) -> Iterator[CorpusItem]:
        for item in items:
            if isinstance(item, Deletion):
                self.report.deletions += 1
            else:
                self.report.read += 1
                is_correction = isinstance(item, Correction)
                self.report.corrections += is_correction
                self.report.without_labels += not (is_correction or item.labels)
            yield item

    def _read(self, one: Path | AnnifFolder) -> Iterator[CorpusItem]:
        name = printable(one.path) if isinstance(one, AnnifFolder) else _name(one)
        selected = self._selection
        intake = Intake(name, self.report, selected.label_separator, selected.corrections)
        if isinstance(one, AnnifFolder):
            yield from FORMATS["annif-folder"].read(one, intake)
            return
        if one.is_dir():
            raise InputError(f"{_name(one)}: the folder cannot be listed")
        is_stream = one in self._open
        with self._open.pop(one) if is_stream else Source(one) as source:
            self._source = source
            try:
                known = self._format_of(source)
                if known is None:
                    yield self._plain_text(source)
                else:
                    items = known.read(source, intake)
                    yield from self._plausible(source.name, known, items) if is_stream else items
            finally:
                self._source = None
                if source.not_utf8:
                    many = counted(source.not_utf8, "line is", "lines are")
                    message = f"{many} not UTF-8 and read as Windows-1252"
                    self.report.note(source.name, "encoding", message)

    def _plausible(
        self, name: str, known: Format, items: Iterator[CorpusItem]
    ) -> Iterator[CorpusItem]:
        """The same items; looks at the first ones before it yields any."""
        first = [] if self._selection.force else list(islice(items, SAMPLE))
        documents = [item for item in first if isinstance(item, Document)]
        _refuse_implausible(name, documents, known)
        yield from first
        yield from items

    def _format_of(self, source: Source) -> Format | None:
        """The format of an open file; None if it is a plain text and may be one."""
        if self._selection.format is not None:
            return self._selection.format
        is_text = extension_of(source.name) == ".txt"
        try:
            known = recognise(source, force=self._selection.force)
        except WrongKindError:
            raise
        except FormatError:
            if not source.head.strip() or b"\x00" in source.head:
                raise
            if self._selection.texts:
                return None
            if is_text:
                raise FormatError(_without_labels(source)) from None
            raise
        if known.name == "annif-tsv" and is_text and not has_subjects(source.head):
            # A tab in a plain text.
            if self._selection.texts:
                return None
            raise FormatError(_without_labels(source))
        return known

    def _plain_text(self, source: Source) -> Document:
        lines = [line for _, line in source.lines()]
        default = self._text_ids.get(source.path) or text_file_id(Path(source.path.name))
        if str(source.path) == "-":
            default = _PLAIN_STANDARD_INPUT
        identifier = default if self._text_id is None else self._text_id
        if self._text_id is None and not is_valid_id(identifier):
            raise InputError(
                f"{source.name}: the id {identifier!r} has a line break, tab or other control "
                "character; rename the file"
            )
        return Document(identifier, body=clean_text("\n".join(lines)))


def _begin(items: Iterator[CorpusItem]) -> Iterator[CorpusItem]:
    """The same items, of which the first is read now, before any file is.

    What looks like something else raises now, what cannot be read in its turn.
    """
    try:
        first = list(islice(items, 1))
    except WrongKindError:
        raise
    except InputError as error:
        return _raising(error)
    return chain(first, items)


def _raising(error: InputError) -> Iterator[CorpusItem]:
    yield from ()
    raise error


def _name(path: Path) -> str:
    return "standard input" if str(path) == "-" else printable(path)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _without_labels(source: Source) -> str:
    stem = Path(source.stem).name
    return (
        f"{source.name}: a plain text without labels; put them beside it as {stem}.key (a name a "
        f"line) or {stem}.tsv (<uri><TAB>name), or give a corpus with labels"
    )


def _refuse_implausible(name: str, documents: Sequence[Document], known: Format) -> None:
    verdict = implausible(documents, named=known.name != "annif-tsv")
    if verdict is not None:
        raise WrongKindError(f"{name}: {verdict.message}; --force reads it anyway", verdict.kind)


def read_corpus(
    *paths: str | Path,
    format: str | None = None,
    label_separator: str = "|",
    glob: Sequence[str] = (),
    ignore: Sequence[str] = (),
    force: bool = False,
    texts: bool = False,
    corrections: bool = False,
) -> Corpus:
    """Open corpus files in any known format, compressed (gzip, bzip2, xz, Zstandard) or not.

    The format is recognised by content and extension unless `format` is given.
    A folder stands for the corpus files in it and below it, restricted by the
    patterns `glob` and `ignore`; other files are listed in the log and left out.
    `texts` takes a plain text as a document, where no labels are needed. `force`
    reads files that do not look like a corpus, which raise WrongKindError otherwise.
    With `corrections`, a record that has an id and labels but no text is a
    `Correction`, as `labelkin learn` reads it.
    """
    return Corpus(
        [Path(path) for path in paths],
        format,
        label_separator,
        glob=glob,
        ignore=ignore,
        force=force,
        texts=texts,
        corrections=corrections,
    )
