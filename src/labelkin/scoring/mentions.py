"""Where texts name concepts: by preferred name, synonym or entry term.

Case, plural and other endings, hyphens and the order at a comma do not matter.
A name inside a longer one that is found as well ("diabetes" in "type 2
diabetes") is nested and counted separately. A name that is an acronym has to be
written as one, so that "aids" and "all" stay words; an ambiguous or very short
one counts only where the text names the concept in another way as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.ballots import NamedLabels
from labelkin.corpus.document import Document
from labelkin.represent.folding import folded, is_acronym, plain, text_words
from labelkin.scoring.name_table import NameTable

_UNKNOWN = "\x01"
_BREAK = "\x02"
# Documents searched at a time, and words whose codes are remembered.
_CHUNK = 250
_REMEMBERED = 100_000
# Words of all texts from which on it pays to build the automaton of all names.
_WORTH_AUTOMATON = 3_000
# Acronyms of at most this many letters are too ambiguous to count alone.
_SHORT = 2

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Matches:
    """All matches in a batch: which concept is named where, and by which name.

    `begins` and `ends` count the words of a document, its title before its
    body; `names` are places in the `NameTable`.
    """

    documents: Integers
    columns: Integers
    names: Integers
    begins: Integers
    ends: Integers
    in_title: npt.NDArray[np.bool_]
    nested: npt.NDArray[np.bool_]
    preferred: npt.NDArray[np.bool_]
    acronyms: npt.NDArray[np.bool_]
    lengths: Integers

    def __len__(self) -> int:
        return len(self.documents)

    def of(self, document: int) -> Matches:
        """The matches in one document, which becomes number 0."""
        mine = self.documents == document
        arrays = {field.name: getattr(self, field.name)[mine] for field in fields(self)}
        return Matches(**arrays | {"documents": np.zeros(int(mine.sum()), dtype=np.int64)})


@dataclass(frozen=True)
class Mentions:
    """The concepts that a batch of documents names, as arrays with a place per pair of both.

    Document i names the concepts `columns[starts[i]:starts[i + 1]]`, ascending.
    Beside them: how often in the `title` and the `body` outside longer names,
    how often `nested` in one, where `first` (0 for the first word of the
    document, towards 1 for the last), the `length` in words of the longest
    name, whether `preferred` is among the names, whether nothing but an
    `acronym` is, how many concepts are `sharing` the least ambiguous name, and the
    `weight` of the most specific one (`NameTable.weights`).
    """

    starts: Integers
    columns: npt.NDArray[np.int32]
    title: npt.NDArray[np.int32]
    body: npt.NDArray[np.int32]
    nested: npt.NDArray[np.int32]
    first: npt.NDArray[np.float32]
    length: npt.NDArray[np.int32]
    preferred: npt.NDArray[np.bool_]
    acronym: npt.NDArray[np.bool_]
    sharing: npt.NDArray[np.int32]
    weight: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def documents(self) -> Integers:
        """The document of each pair."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @classmethod
    def joined(cls, parts: Sequence[Mentions]) -> Mentions:
        """Batches one after another."""
        lengths = np.concatenate([np.diff(part.starts) for part in parts])
        arrays = {
            field.name: np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(cls)[1:]
        }
        return cls(np.concatenate(([0], np.cumsum(lengths))).astype(np.int64), **arrays)

    def allowed(self, targets: Integers) -> Mentions:
        """Only the concepts that a policy allows: those that stand for themselves."""
        kept = targets[self.columns] == self.columns
        counts = np.concatenate(([0], np.cumsum(kept)))
        arrays = {field.name: getattr(self, field.name)[kept] for field in fields(self)[1:]}
        return Mentions(counts[self.starts], **arrays)

    def taken(self, places: Integers) -> Mentions:
        """The documents at `places`, in that order."""
        lengths = np.diff(self.starts)[places]
        starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        inside = np.arange(starts[-1]) + np.repeat(self.starts[places] - starts[:-1], lengths)
        arrays = {field.name: getattr(self, field.name)[inside] for field in fields(self)[1:]}
        return Mentions(starts, **arrays)


def named_labels(mentions: Mentions) -> NamedLabels:
    """The concepts that documents name, as the joint label autoencoder reads them."""
    features = (
        np.minimum(mentions.title, 2) / 2,
        np.log1p(mentions.body) / 2,
        np.log1p(mentions.nested) / 2,
        mentions.first,
        np.minimum(mentions.length, 4) / 4,
        mentions.preferred,
        mentions.acronym,
        np.minimum(mentions.sharing, 5) / 5,
        mentions.weight / 10,
    )
    return NamedLabels(
        mentions.starts, mentions.columns, np.column_stack(features).astype(np.float32)
    )


class MentionFinder:
    """Finds the names of one table in texts.

    `targets` gives for each column the concept that stands for it, −1 where
    none may be named.
    """

    def __init__(self, table: NameTable, targets: Integers | None = None) -> None:
        self.table = table
        self._targets = targets
        self._words = table.codes()
        self._codes: dict[str, str] = {}
        self._searched = 0
        self._bearers = np.diff(table.starts)
        self._weights = table.weights()
        self._width = int(table.columns.max(initial=0)) if targets is None else len(targets)

    def find(self, documents: Sequence[Document]) -> Mentions:
        """The concepts that each document names."""
        parts = [
            self._mentions(documents[start : start + _CHUNK])
            for start in range(0, max(len(documents), 1), _CHUNK)
        ]
        return Mentions.joined(parts)

    def _mentions(self, documents: Sequence[Document]) -> Mentions:
        return self.mentions(*self.matches(documents), len(documents))

    def mentions(self, matches: Matches, sizes: Integers, documents: int) -> Mentions:
        """The matches of some documents gathered by document and concept."""
        order = np.lexsort((matches.columns, matches.documents))
        keys = np.stack((matches.documents[order], matches.columns[order]))
        is_new = np.ones(len(order), dtype=np.bool_)
        is_new[1:] = (keys[:, 1:] != keys[:, :-1]).any(0)
        begins = np.flatnonzero(is_new)

        def gathered(function: np.ufunc, values: npt.NDArray[Any], kind: type) -> Any:
            if len(begins) == 0:
                return np.empty(0, dtype=kind)
            return function.reduceat(values[order], begins).astype(kind)

        outside = ~matches.nested
        places = matches.begins / np.maximum(sizes[matches.documents], 1)
        counts = np.bincount(keys[0, begins], minlength=documents)
        return Mentions(
            starts=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
            columns=keys[1, begins].astype(np.int32),
            title=gathered(np.add, (outside & matches.in_title).astype(np.int32), np.int32),
            body=gathered(np.add, (outside & ~matches.in_title).astype(np.int32), np.int32),
            nested=gathered(np.add, matches.nested.astype(np.int32), np.int32),
            first=gathered(np.minimum, places, np.float32),
            length=gathered(np.maximum, matches.lengths, np.int32),
            preferred=gathered(np.logical_or, matches.preferred, np.bool_),
            acronym=gathered(np.logical_and, matches.acronyms, np.bool_),
            sharing=gathered(np.minimum, self._bearers[matches.names], np.int32),
            weight=gathered(np.maximum, self._weights[matches.names], np.float32),
        )

    def matches(self, documents: Sequence[Document]) -> tuple[Matches, Integers]:
        """The matches, and how many words each document has."""
        words: list[str] = []
        bounds = [0]
        for document in documents:
            for text in parts_of(document):
                words += text_words(plain(text))
                words.append(_BREAK)
                bounds.append(len(words))
        edges = np.array(bounds, dtype=np.int64)
        self._searched += len(words)
        once = self._searched < _WORTH_AUTOMATON
        names, begins, ends = self.table.find(self._coded(words), once=once).T
        parts = np.searchsorted(edges, begins, side="right") - 1
        nested = _nested(begins, ends)
        # A line per match and concept with that name.
        bearers = self._bearers[names]
        lines = np.repeat(np.arange(len(names)), bearers)
        offsets = np.arange(len(lines)) - np.repeat(np.cumsum(bearers) - bearers, bearers)
        entries = self.table.starts[names][lines] + offsets
        columns = self.table.columns[entries].astype(np.int64)
        if self._targets is not None:
            columns = self._targets[columns]
        acronyms = self.table.acronyms[entries]
        kept = columns >= 0
        of_document = parts[lines] // 2
        # Acronyms must be written as such; if several concepts share one, or it is very
        # short, the document must name the concept in another way as well.
        doubtful = np.flatnonzero(acronyms & kept)
        spelled = [words[begin] for begin in begins[lines[doubtful]].tolist()]
        keys = of_document * (self._width + 1) + columns
        vouched = np.isin(keys[doubtful], keys[~acronyms & kept])
        clear = np.array([len(word) > _SHORT for word in spelled], dtype=np.bool_)
        clear &= bearers[lines[doubtful]] == 1
        kept[doubtful] = np.array([is_acronym(word) for word in spelled], dtype=np.bool_)
        kept[doubtful] &= clear | vouched
        lines, entries, columns = lines[kept], entries[kept], columns[kept]
        of_document = of_document[kept]
        first_words = edges[0:-1:2]
        matches = Matches(
            documents=of_document,
            columns=columns,
            names=names[lines],
            begins=begins[lines] - first_words[of_document],
            ends=ends[lines] - first_words[of_document],
            in_title=parts[lines] % 2 == 0,
            nested=nested[lines],
            preferred=self.table.preferred[entries],
            acronyms=acronyms[kept],
            lengths=(ends - begins)[lines],
        )
        return matches, np.diff(edges[::2])

    def _coded(self, words: list[str]) -> str:
        # Threads share the cache: a full one is replaced, because others may still read it.
        if len(self._codes) > _REMEMBERED:
            self._codes = {}
        known = self._codes
        codes = {_BREAK: _BREAK}
        for word in {*words}.difference(codes):
            code = known.get(word)
            if code is None:
                code = self._words.get(folded(word, self.table.language), _UNKNOWN)
                known[word] = code
            codes[word] = code
        return "".join([codes[word] for word in words])


def parts_of(document: Document) -> tuple[str, str]:
    """The title, and all other texts."""
    return document.title, "\n".join((document.body, *document.fields.values()))


def _nested(begins: Integers, ends: Integers) -> npt.NDArray[np.bool_]:
    """Which spans lie within another, longer one."""
    order = np.lexsort((-ends, begins))
    reach = np.maximum.accumulate(ends[order]) if len(order) else ends
    nested = np.zeros(len(begins), dtype=np.bool_)
    nested[order[1:]] = reach[:-1] >= ends[order[1:]]
    return nested
