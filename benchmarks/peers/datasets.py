"""The data sets and their splits, prepared once for all peers."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .data_folder import FEW, MANY, DataFolder
from .label_sets import LabelSets

if TYPE_CHECKING:
    from labelkin import Document, Vocabulary

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
MANY_RECORDS, FEW_RECORDS = 1000, 20
# The layout of a prepared folder; a folder with another number is made again.
_FORMAT = 1


@dataclass(frozen=True)
class Sample:
    """A small part of a data set, for trials: so many training and held-out records."""

    train: int
    held_out: int

    def of(self, part: str, documents: Sequence[Document]) -> list[Document]:
        """Records spread evenly over a part."""
        return spread(documents, self.train if part == "train" else self.held_out)


@dataclass(frozen=True)
class DataSet:
    """Where a data set is, and how its labels are treated.

    Labels that the vocabulary lacks always count as missed where they are gold. With
    `keeps_unknown`, systems are trained on them too. Throughput is measured on the part `timed`.
    """

    name: str
    language: str
    vocabulary: str
    keeps_unknown: bool
    timed: str

    def read(self) -> dict[str, list[Document]]:
        """The records of each part; `train` and `dev` are the first two."""
        raise NotImplementedError

    def subsets(self) -> Mapping[str, tuple[str, frozenset[str]]]:
        """Parts of parts that are measured too: the part and the ids that are left out."""
        return {}

    def measures(self, system: str) -> bool:  # noqa: ARG002
        """Whether a system is measured on it."""
        return True

    def files(self) -> Iterator[Path]:
        """What the data set is made of."""
        yield SHARED / self.vocabulary

    def read_vocabulary(self) -> Vocabulary:
        """The vocabulary of all systems, read once."""
        return _vocabulary(SHARED / self.vocabulary)


@dataclass(frozen=True)
class Mesh47k(DataSet):
    """MEDLINE records with MeSH headings; the split is that of the files."""

    def read(self) -> dict[str, list[Document]]:
        """The records of the four files."""
        from labelkin import read_corpus

        return {
            part: list(read_corpus(SHARED / "mesh47k" / f"{part}.json.gz").documents())
            for part in ("train", "dev", "test", "l1000")
        }

    def subsets(self) -> Mapping[str, tuple[str, frozenset[str]]]:
        """L1000 without the articles that cite training records."""
        with (SHARED / "mesh47k" / "l1000-cited.tsv").open(encoding="utf-8") as file:
            cited = frozenset(row[0] for row in csv.reader(file, delimiter="\t"))
        return {"l1000-clean": ("l1000", cited)}

    def files(self) -> Iterator[Path]:
        """The vocabulary, the four files and the articles to leave out."""
        yield from super().files()
        yield from sorted((SHARED / "mesh47k").glob("*.json.gz"))
        yield from sorted((SHARED / "mesh47k").glob("*-cited.tsv"))


@dataclass(frozen=True)
class MeshPart(Mesh47k):
    """The same with fewer training records, spread evenly: how quality grows with a collection."""

    records: int

    def read(self) -> dict[str, list[Document]]:
        """The records of the four files, few of them in `train`."""
        parts = super().read()
        return {**parts, "train": spread(parts["train"], self.records)}

    def measures(self, system: str) -> bool:
        """Our methods and one system of each of the fastest peers."""
        return system.startswith("labelkin-") or system in ("omikuji-bonsai", "pecos-xr-linear")


@dataclass(frozen=True)
class Tibkat(DataSet):
    """Library records with GND subjects in one language, split by a hash of the line number."""

    def read(self) -> dict[str, list[Document]]:
        """The records by line; line N is the same record in every language."""
        from labelkin import read_corpus

        path = SHARED / "tibkat" / f"{self.language}.tsv.gz"
        parts: dict[str, list[Document]] = {"train": [], "dev": [], "test": []}
        for number, document in enumerate(read_corpus(path).documents()):
            record = replace(document, id=str(number), language=self.language)
            parts[md5_part(number)].append(record)
        return parts

    def files(self) -> Iterator[Path]:
        """The vocabulary and the file of the language."""
        yield from super().files()
        yield SHARED / "tibkat" / f"{self.language}.tsv.gz"


_MESH = "mesh/descriptors.tsv.gz"
DATA_SETS: Mapping[str, DataSet] = {
    one.name: one
    for one in (
        Mesh47k("mesh47k", "en", _MESH, keeps_unknown=False, timed="l1000"),
        MeshPart("mesh5k", "en", _MESH, keeps_unknown=False, timed="l1000", records=5_000),
        MeshPart("mesh15k", "en", _MESH, keeps_unknown=False, timed="l1000", records=15_000),
        Tibkat("tibkat-en", "en", "tibkat/gnd-core-en.tsv.gz", keeps_unknown=True, timed="test"),
        Tibkat("tibkat-de", "de", "tibkat/gnd-core-en.tsv.gz", keeps_unknown=True, timed="test"),
    )
}


@cache
def _vocabulary(path: Path) -> Vocabulary:
    from labelkin import read_vocabulary

    return read_vocabulary(path)


def md5_part(number: int) -> str:
    """The part of a line by its 0-based number: md5 of the decimal string, modulo 10."""
    remainder = int(hashlib.md5(str(number).encode()).hexdigest(), 16) % 10
    return {0: "test", 1: "dev"}.get(remainder, "train")


def spread(items: Sequence[Any], count: int) -> list[Any]:
    """At most `count` items, spread evenly."""
    if len(items) <= count:
        return list(items)
    return [items[index * len(items) // count] for index in range(count)]


def prepare(data_set: DataSet, folder: Path, sample: Sample | None = None) -> DataFolder:
    """The prepared data set in `folder`; made unless it is there."""
    settings = {
        "format": _FORMAT,
        **asdict(data_set),
        "sample": None if sample is None else asdict(sample),
        "files": _checksums(data_set),
    }
    prepared, stamp = DataFolder(folder), folder / "data.json"
    if stamp.exists() and prepared.description["settings"] == settings:
        return prepared
    stamp.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    parts = data_set.read()
    if sample is not None:
        parts = {part: sample.of(part, documents) for part, documents in parts.items()}
    _write_parts(data_set, parts, folder)
    timed = spread(parts[data_set.timed], MANY_RECORDS)
    sizes = {part: len(documents) for part, documents in parts.items()}
    for part, documents in ((MANY, timed), (FEW, timed[:FEW_RECORDS])):
        _write_records(folder, part, documents, with_labels=False)
    description = {
        "name": data_set.name,
        "language": data_set.language,
        "sizes": sizes,
        "timed": {MANY: len(timed), FEW: len(timed[:FEW_RECORDS])},
        "settings": settings,
        "fingerprint": hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16],
    }
    write_json(stamp, description)
    return DataFolder(folder)


def _write_parts(data_set: DataSet, parts: dict[str, list[Document]], folder: Path) -> None:
    """Texts, ids and label sets of all parts, and the labels of all columns."""
    vocabulary = data_set.read_vocabulary()
    columns = {concept.id: column for column, concept in enumerate(vocabulary)}
    for part, documents in parts.items():
        learns = part == "train"
        _write_records(folder, part, documents, with_labels=learns)
        keeps_unknown = data_set.keeps_unknown or not learns
        sets = [sorted(_columns(one, vocabulary, columns, keeps_unknown)) for one in documents]
        LabelSets.from_lists(sets).save(folder / f"{part}.labels.npz")
    (folder / "labels.txt").write_text("".join(f"{one}\n" for one in columns), encoding="utf-8")


def _columns(
    document: Document, vocabulary: Vocabulary, columns: dict[str, int], keeps_unknown: bool
) -> set[int]:
    """The columns of a record's labels; unknown ones get new columns after the vocabulary's."""
    found = set()
    for label in document.labels:
        name = document.label_names.get(label, "")
        column = vocabulary.resolve(label, name, document.language or "").column
        if column is None and keeps_unknown:
            column = columns.setdefault(label, len(columns))
        if column is not None:
            found.add(column)
    return found


def _write_records(
    folder: Path, part: str, documents: list[Document], *, with_labels: bool
) -> None:
    from labelkin.corpus.writers import write_corpus

    records = documents if with_labels else [_unlabelled(one) for one in documents]
    write_corpus(records, folder / f"{part}.jsonl")
    texts = (" ".join(document.text.split()) for document in documents)
    (folder / f"{part}.txt").write_text("".join(f"{one}\n" for one in texts), encoding="utf-8")
    ids = "".join(f"{document.id}\n" for document in documents)
    (folder / f"{part}.ids").write_text(ids, encoding="utf-8")


def _unlabelled(document: Document) -> Document:
    return replace(document, labels=(), label_names={}, major_labels=())


def _checksums(data_set: DataSet) -> dict[str, str]:
    """What the files of a data set hold, by name."""
    return {
        str(path.relative_to(SHARED)): hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in data_set.files()
    }


def read_tsv(path: Path) -> Iterator[list[str]]:
    """The rows of a compressed table, without its header."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(rows)
        yield from rows


def write_json(path: Path, content: object) -> None:
    """Write a whole file or none."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(content, indent=1))
    part.replace(path)
