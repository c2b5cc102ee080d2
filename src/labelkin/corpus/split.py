"""Splits a corpus into parts, such as train, dev and test, by rules that can be repeated.

A rule gives each document a value and each value a part. Documents that have to
stay together share the value of one of them, which depends on the set and not
on the order of the input.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from labelkin._version import __version__
from labelkin.atomic import atomic_text
from labelkin.corpus.corpus import Corpus
from labelkin.corpus.document import Document
from labelkin.corpus.near_duplicates import (
    DEFAULT_THRESHOLD,
    Hashes,
    Integers,
    NearDuplicates,
)
from labelkin.corpus.passes import Passes, StepProgress
from labelkin.corpus.revision import year_in
from labelkin.corpus.text import document_key
from labelkin.corpus.writers import WRITERS, DocumentWriter, extension_for, open_writer
from labelkin.exceptions import InputError

DEFAULT_PARTS = "train:0.8,dev:0.1,test:0.1"
# Documents without a year, or of a year that no part has.
REST = "rest"
SPLIT_FILE = "split.json"
# What can be kept together, with the threshold that it means; None: as asked for.
TOGETHER: dict[str, float | None] = {"near-duplicates": None, "same-text": 1.0}
_FORMAT_VERSION = 1
_NAME = re.compile(r"\w[\w.-]*")
_YEARS = re.compile(r"(?P<first>\d{4})?(?P<dash>-)?(?P<last>\d{4})?")
_KEYS = 1 << 64


class SplitRule(ABC):
    """From documents to values, and from values to parts."""

    names: tuple[str, ...]
    # The value that documents share which stay together.
    shared: np.ufunc
    # Whether the value depends on the id alone.
    is_by_id = False

    @abstractmethod
    def value(self, document: Document) -> int:
        """The value of a document alone, a 64-bit number."""

    @abstractmethod
    def part(self, value: int) -> str:
        """The part of all documents with this value."""

    def references(self, name: str) -> tuple[str, ...]:
        """The parts that a model is trained on that is tested on the part `name`."""
        return self.names[:1] if name != self.names[0] else ()

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The rule as split.json shows it."""


@dataclass(frozen=True)
class HashRule(SplitRule):
    """Parts of given shares, by a hash of the ids.

    The part of a document depends on its id and the seed alone, so documents
    that are added later do not move others. Documents that stay together have
    the smallest of their keys. The part is chosen by a second hash of the key:
    the smallest of several keys is likely to be small.
    """

    names: tuple[str, ...]
    shares: tuple[float, ...]
    seed: int = 0
    folds: bool = False
    shared = np.minimum
    is_by_id = True

    @classmethod
    def in_folds(cls, count: int, seed: int = 0) -> HashRule:
        """As many parts of equal size, `fold-1` and so on."""
        if count < 2:
            raise InputError(f"{count} folds are no split; give at least 2")
        names = tuple(f"fold-{number}" for number in range(1, count + 1))
        return cls(names, (1 / count,) * count, seed, folds=True)

    def value(self, document: Document) -> int:
        """The key of the document."""
        return document_key(document.id, self.seed)

    def part(self, value: int) -> str:
        """The part in whose share of all hashes that of the value is."""
        place = document_key(f"{value:016x}", self.seed) / _KEYS
        for name, share in zip(self.names, self.shares, strict=True):
            place -= share
            if place < 0:
                return name
        return self.names[-1]

    def references(self, name: str) -> tuple[str, ...]:
        """All other parts of folds, else the first part."""
        if self.folds:
            return tuple(other for other in self.names if other != name)
        return super().references(name)

    def to_json(self) -> dict[str, Any]:
        """Shares by part, and the seed."""
        shares = dict(zip(self.names, self.shares, strict=True))
        return {"by": "hash", "seed": self.seed, "folds": self.folds, "parts": shares}


@dataclass(frozen=True)
class YearRule(SplitRule):
    """Parts by the year in the metadata of a document.

    Documents that stay together have the latest of their years: no part has a
    document that is later than its last year.
    """

    names: tuple[str, ...]
    years: tuple[tuple[int, int], ...]
    shared = np.maximum

    def value(self, document: Document) -> int:
        """The year of the document, 0 if it has none."""
        return year_in(document.metadata.get("year")) or 0

    def part(self, value: int) -> str:
        """The part with this year, else `rest`."""
        for name, (first, last) in zip(self.names, self.years, strict=True):
            if value and first <= value <= last:
                return name
        return REST

    def to_json(self) -> dict[str, Any]:
        """First and last year by part; null stands for no limit."""
        limits = {0: None, 9999: None}
        years = {
            name: [limits.get(first, first), limits.get(last, last)]
            for name, (first, last) in zip(self.names, self.years, strict=True)
        }
        return {"by": "year", "parts": years}


def hash_rule(parts: str = DEFAULT_PARTS, seed: int = 0) -> HashRule:
    """The rule that parts such as `train:0.8,dev:0.1,test:0.1` describe."""
    names, texts = _named(parts, "train:0.8,dev:0.1,test:0.1")
    try:
        shares = tuple(float(text) for text in texts)
    except ValueError:
        wrong = next(text for text in texts if not _is_number(text))
        raise InputError(
            f"the share {wrong!r} of a part is not a number; write train:0.8,test:0.2"
        ) from None
    if not all(share > 0 for share in shares) or abs(sum(shares) - 1) > 1e-6:
        raise InputError(
            f"the shares of {parts} have to be above 0 and add up to 1, not to {sum(shares):g}"
        )
    return HashRule(names, shares, seed)


def year_rule(parts: str) -> YearRule:
    """The rule that parts such as `train:-2017,dev:2018,test:2019-` describe."""
    names, texts = _named(parts, "train:-2017,dev:2018,test:2019-")
    years = tuple(_years(text) for text in texts)
    ordered = sorted(years)
    for (_, last), (first, _) in pairwise(ordered):
        if first <= last:
            raise InputError(f"the year {first} is in two parts of {parts}; each year has one part")
    return YearRule(names, years)


def _named(parts: str, example: str) -> tuple[tuple[str, ...], list[str]]:
    """The names before the colons, and what is behind each."""
    pairs = [one.strip().partition(":") for one in parts.split(",")]
    names = tuple(name for name, _, _ in pairs)
    for name in names:
        if not _NAME.fullmatch(name) or name in (REST, Path(SPLIT_FILE).stem):
            raise InputError(
                f"{name!r} cannot be the name of a part, which is that of its file; "
                f"write parts as {example}"
            )
    if len(names) < 2 or len({name.casefold() for name in names}) < len(names):
        raise InputError(f"{parts}: give two or more parts with names of their own, as {example}")
    return names, [text for _, _, text in pairs]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _years(text: str) -> tuple[int, int]:
    match = _YEARS.fullmatch(text)
    if match is None or not (match["first"] or match["last"]):
        raise InputError(f"{text!r} are no years; write 2018, 2015-2017, -2014 or 2019-")
    first = int(match["first"] or 0)
    last = int(match["last"] or (9999 if match["dash"] else first))
    if first > last:
        raise InputError(f"the years {text} go backwards; write {last}-{first}")
    return first, last


@dataclass
class PartReport:
    """What is in one part; `unseen` counts the labels that no training part has."""

    file: str
    documents: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    unseen_labels: int = 0
    unseen_occurrences: int = 0

    def to_json(self) -> dict[str, Any]:
        """The counts of the part."""
        return {
            "file": self.file,
            "documents": self.documents,
            "distinct_labels": len(self.labels),
            "label_occurrences": self.labels.total(),
            "unseen_labels": self.unseen_labels,
            "unseen_label_occurrences": self.unseen_occurrences,
        }


@dataclass(frozen=True)
class GroupReport:
    """The groups that were kept together; `divided` of them the rule alone would divide."""

    kind: str
    threshold: float
    groups: int
    documents: int
    largest: int
    divided: int

    def to_json(self) -> dict[str, Any]:
        """The counts, with the kind of group and its threshold."""
        return {
            "keep": self.kind,
            "threshold": self.threshold,
            "groups": self.groups,
            "documents": self.documents,
            "largest": self.largest,
            "divided_by_the_rule_alone": self.divided,
        }


@dataclass(frozen=True)
class SplitReport:
    """What went where; the same as split.json."""

    rule: SplitRule
    parts: dict[str, PartReport]
    together: GroupReport | None

    @property
    def documents(self) -> int:
        """The number of documents in all parts."""
        return sum(part.documents for part in self.parts.values())

    def to_json(self) -> dict[str, Any]:
        """The rule and the counts."""
        return {
            "format": _FORMAT_VERSION,
            "labelkin": __version__,
            "rule": self.rule.to_json(),
            "together": self.together.to_json() if self.together else None,
            "documents": self.documents,
            "parts": {name: part.to_json() for name, part in self.parts.items()},
        }


def split_corpus(
    corpus: Corpus,
    folder: str | Path,
    rule: SplitRule,
    *,
    keep_together: str | None = None,
    threshold: float = DEFAULT_THRESHOLD,
    format: str = "jsonl",
    gzip: bool = False,
    progress: StepProgress | None = None,
) -> SplitReport:
    """Write each part to a file of its own in `folder`, and the report to split.json there.

    Documents with the same id stay together. `keep_together` does so for
    `near-duplicates` (texts of at least the similarity `threshold`, see
    `near_duplicates`) or `same-text`, too. The corpus is read twice, except for a
    split by hash alone. The folder must be new or empty. Files appear when all
    are complete, and split.json last.
    """
    folder = Path(folder)
    check_folder(folder)
    if format not in WRITERS:
        raise InputError(f"no output format {format!r}; known: {', '.join(WRITERS)}")
    ending = extension_for(format) + (".gz" if gzip else "")
    passes = Passes(corpus, progress)
    documents: Iterable[tuple[str, Document]]
    together = None
    if keep_together is not None and keep_together not in TOGETHER:
        known = ", ".join(TOGETHER)
        raise InputError(f"cannot keep {keep_together!r} together; known: {known}")
    if keep_together is None and rule.is_by_id:
        documents = ((rule.part(rule.value(one)), one) for one in passes.first("Writing"))
    else:
        passes.check_files()
        if keep_together is None:
            values, groups = _grouped_by_id(passes, rule)
        else:
            threshold = TOGETHER[keep_together] or threshold
            values, groups = _grouped(passes, rule, threshold)
            together = _group_report(keep_together, threshold, values, groups, rule)
        shared = _shared(values, groups, rule)
        documents = (
            (rule.part(int(shared[row])), document) for row, document in passes.again("Writing")
        )
    parts = _write(documents, folder, rule, format, ending)
    _count_unseen(parts, rule)
    report = SplitReport(rule, parts, together)
    with atomic_text(folder / SPLIT_FILE) as file:
        file.write(json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n")
    return report


def check_folder(folder: Path) -> None:
    """Refuse a folder that has anything in it: old parts would be taken for new ones.

    Unfinished files of a process that was killed do not count.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: a file; name a folder for the parts")
    names = [one.name for one in folder.iterdir()] if folder.is_dir() else []
    if any(not (name.startswith(".") and name.endswith(".part")) for name in names):
        raise InputError(f"{folder}: not empty; name a new folder for the parts, or remove it")


def _grouped_by_id(passes: Passes, rule: SplitRule) -> tuple[Hashes, Integers]:
    """The value of each document alone, and its group: the documents with its id."""
    values = array("Q", map(rule.value, passes.first("Reading")))
    groups = passes.joined_by_id(np.arange(len(values), dtype=np.int64))
    return np.frombuffer(values, dtype=np.uint64), groups


def _grouped(passes: Passes, rule: SplitRule, threshold: float) -> tuple[Hashes, Integers]:
    """The value of each document alone, and its group."""
    values = array("Q")
    with NearDuplicates(threshold) as duplicates:
        for document in passes.first("Reading"):
            duplicates.add(document.text)
            values.append(rule.value(document))
        groups = duplicates.groups(passes.within("Comparing"))
    return np.frombuffer(values, dtype=np.uint64), passes.joined_by_id(groups)


def _shared(values: Hashes, groups: Integers, rule: SplitRule) -> Hashes:
    """The value that each document shares with its group."""
    shared = values.copy()
    rule.shared.at(shared, groups, values)
    result: Hashes = shared[groups]
    return result


def _group_report(
    kind: str, threshold: float, values: Hashes, groups: Integers, rule: SplitRule
) -> GroupReport:
    sizes = np.bincount(groups)
    grouped = np.flatnonzero(sizes[groups] > 1)
    alone: dict[int, set[str]] = {}
    for group, value in zip(groups[grouped].tolist(), values[grouped].tolist(), strict=True):
        alone.setdefault(group, set()).add(rule.part(value))
    return GroupReport(
        kind,
        threshold,
        groups=len(alone),
        documents=len(grouped),
        largest=int(sizes.max()),
        divided=sum(len(parts) > 1 for parts in alone.values()),
    )


def _write(
    documents: Iterable[tuple[str, Document]],
    folder: Path,
    rule: SplitRule,
    format: str,
    ending: str,
) -> dict[str, PartReport]:
    """Write every document to the file of its part; the part `rest` is there if it is needed."""
    documents = iter(documents)
    # Nothing is left behind if there is no document.
    first = list(islice(documents, 1))
    folder.mkdir(parents=True, exist_ok=True)
    parts: dict[str, PartReport] = {}
    writers: dict[str, DocumentWriter] = {}
    with ExitStack() as stack:

        def begin(name: str) -> None:
            parts[name] = PartReport(f"{name}{ending}")
            writers[name] = stack.enter_context(open_writer(folder / parts[name].file, format))

        for name in rule.names:
            begin(name)
        for name, document in chain(first, documents):
            if name not in parts:
                begin(name)
            writers[name].write(document)
            parts[name].documents += 1
            parts[name].labels.update(document.labels)
    return parts


def _count_unseen(parts: dict[str, PartReport], rule: SplitRule) -> None:
    for name, part in parts.items():
        references: Sequence[str] = rule.references(name)
        if not references:
            continue
        unseen = [
            count
            for label, count in part.labels.items()
            if not any(label in parts[other].labels for other in references)
        ]
        part.unseen_labels, part.unseen_occurrences = len(unseen), sum(unseen)
