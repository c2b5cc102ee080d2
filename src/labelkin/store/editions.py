"""Another edition of a collection's vocabulary, in one transaction, and how it is undone.

A concept keeps its column. Documents follow their headings by id and by replaced-by
links. Documents that change get a new row each, as corrected ones do, so that every
derived store follows by the change log. What an update has replaced stays in the
database until the next one.
"""

from __future__ import annotations

import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from labelkin.exceptions import CollectionDamagedError, CollectionError, VocabularyError
from labelkin.store.collection import Collection
from labelkin.store.database import DATABASE_NAME, EDITION_TABLES
from labelkin.store.derived import BuildProgress
from labelkin.store.label_sets import COLUMN_TYPE, LabelSets, Rows
from labelkin.store.reader import Reader
from labelkin.store.reports import EditionReport, WithdrawnHeading
from labelkin.store.rows import (
    ResolvedLabels,
    Values,
    checked_values,
    concept_from_json,
    concept_to_json,
    corrected_values,
)
from labelkin.store.writer import (
    add_tombstones,
    insert_concepts,
    log_change,
    move_documents,
    update_concepts,
)
from labelkin.vocab.concept import Concept
from labelkin.vocab.editions import EditionDiff, compare_editions, completed
from labelkin.vocab.names import name_key
from labelkin.vocab.vocabulary import Vocabulary
from labelkin.wording import counted

_PAGE = 500
# So many rows are counted at once.
_COUNTED = 1 << 16
# So many documents are listed for each heading that can no longer be suggested.
_LISTED = 100
# The places of LABEL_COLUMNS and of the language among the values of a document.
_LABELS = slice(-4, -1)
_LANGUAGE = 4
# An edition that lacks more of the headings is probably another vocabulary.
_MOST_LOST = 0.5


def update_vocabulary(
    collection: Collection,
    vocabulary: Vocabulary,
    *,
    dry_run: bool = False,
    force: bool = False,
    progress: BuildProgress | None = None,
) -> EditionReport:
    """Make `vocabulary` the collection's edition; with `dry_run`, report and change nothing.

    Concepts that it lacks keep their columns and become deprecated, except those that
    labels of documents have brought (`[labels] unknown = "keep"`). What it says nothing
    about stays: names in languages that it does not have, a hierarchy if it has none (see
    `vocab.editions.completed`). An edition that lacks most headings is refused without
    `force`.
    """
    return _Update(collection, vocabulary, force, progress).run(dry_run)


def undo_vocabulary(
    collection: Collection, *, dry_run: bool = False, progress: BuildProgress | None = None
) -> EditionReport:
    """Restore the edition before the last update, and the labels that the update has changed.

    Documents that were added or changed since keep their headings; labels of theirs that
    did not resolve are resolved again. Concepts that only the undone edition has keep their
    columns and become deprecated; no label resolves to them.
    """
    return _Undo(collection, progress).run(dry_run)


class _Transition:
    """From one vocabulary to another with the same columns, and perhaps more.

    `successors` has for each column the one that documents follow to, mostly itself.
    """

    def __init__(self, before: Vocabulary, after: Vocabulary, diff: EditionDiff) -> None:
        self.before = before
        self.after = after
        self.diff = diff
        self.changed = [column for column, one in enumerate(before) if after[column] != one]
        self.appended = range(len(before), len(after))
        self.successors: npt.NDArray[np.int64] = np.array(
            [after.successor(column) for column in range(len(after))], dtype=np.int64
        )
        # What headings go by, before and after, where the names differ in any language.
        self._shown = {
            column: (old, new)
            for column in range(len(before))
            if list((old := _shown(before, column)).names.items())
            != list((new := _shown(after, column)).names.items())
        }

    def renamed(self, language: str | None) -> npt.NDArray[np.bool_]:
        """For each column, whether documents in a language are found by another name of it."""
        renamed = np.zeros(len(self.after), dtype=np.bool_)
        for column, (old, new) in self._shown.items():
            renamed[column] = old.indexed_name(language) != new.indexed_name(language)
        return renamed

    def withdrawn(self) -> list[int]:
        """The columns that can no longer be suggested and that no single heading replaces."""
        return [
            column
            for column in self.changed
            if self.after[column].deprecated
            and not self.before[column].deprecated
            and self.successors[column] == column
        ]


@dataclass(frozen=True, slots=True)
class _Withdrawn:
    """The headings that can no longer be suggested, and how many documents carry any of them."""

    headings: list[WithdrawnHeading]
    documents: int

    @classmethod
    def of(cls, reader: Reader, transition: _Transition, restored: Rows) -> _Withdrawn:
        """Those with most documents first; rows in `restored` count by their former labels."""
        columns = transition.withdrawn()
        is_withdrawn = np.zeros(len(transition.before), dtype=np.bool_)
        is_withdrawn[columns] = True
        gone = reader.tombstones()
        rows = np.setdiff1d(reader.label_sets().rows_with(is_withdrawn), np.union1d(gone, restored))
        counts, listed = _carriers(reader.label_sets(), rows, is_withdrawn)
        documents = len(rows)
        for row, of_row in _former_columns(reader, np.setdiff1d(restored, gone)):
            carried = of_row[is_withdrawn[of_row]]
            documents += bool(len(carried))
            counts[carried] += 1
            for column in carried.tolist():
                if len(of_column := listed.setdefault(column, [])) < _LISTED:
                    of_column.append(row)
        ids = reader.ids_of(sorted({row for of_one in listed.values() for row in of_one}))
        successors = transition.diff.successors()
        concepts = {column: transition.after[column] for column in columns}
        headings = [
            WithdrawnHeading(
                concept.id,
                concept.name(),
                successors.get(concept.id, ()),
                tuple(sorted(ids[row] for row in listed.get(column, ()))),
                int(counts[column]),
            )
            for column, concept in concepts.items()
        ]
        return cls(sorted(headings, key=lambda one: (-one.count, one.id)), documents)


def _former_columns(reader: Reader, rows: Rows) -> Iterator[tuple[int, npt.NDArray[np.int32]]]:
    """Rows and the columns that their documents had before the last update."""
    for start in range(0, len(rows), _PAGE):
        page = reader.former_labels(rows[start : start + _PAGE].tolist())
        for row, (labels, *_) in sorted(page.items()):
            yield row, np.frombuffer(labels, dtype=COLUMN_TYPE)


def _carriers(
    label_sets: LabelSets, rows: Rows, wanted: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], dict[int, list[int]]]:
    """How many of `rows` have each wanted column, and the first of them."""
    counts = np.zeros(len(wanted), dtype=np.int64)
    first: dict[int, list[int]] = {}
    for start in range(0, len(rows), _COUNTED):
        part = rows[start : start + _COUNTED]
        starts, columns = label_sets.gather(part)
        is_wanted = wanted[columns]
        owners, columns = np.repeat(part, np.diff(starts))[is_wanted], columns[is_wanted]
        order = np.argsort(columns, kind="stable")
        owners, columns = owners[order], columns[order]
        places = counts[columns] + np.arange(len(columns)) - np.searchsorted(columns, columns)
        is_listed = places < _LISTED
        for column, row in zip(
            columns[is_listed].tolist(), owners[is_listed].tolist(), strict=True
        ):
            first.setdefault(column, []).append(row)
        counts += np.bincount(columns, minlength=len(wanted))
    return counts, first


class _Change(ABC):
    """A change of the edition: what becomes of the documents, and how it is written."""

    can_be_undone: bool

    def __init__(self, collection: Collection, progress: BuildProgress | None) -> None:
        self._collection = collection
        self._progress = progress
        self._keeps_unknown = collection.config.labels.unknown == "keep"

    @abstractmethod
    def transition(self, reader: Reader) -> _Transition:
        """From the reader's vocabulary to the other edition."""

    @abstractmethod
    def rows(self, reader: Reader, transition: _Transition) -> Rows:
        """The rows of documents whose labels may change."""

    @abstractmethod
    def labels(
        self,
        reader: Reader,
        transition: _Transition,
        page: Mapping[int, Values],
        report: EditionReport,
    ) -> dict[int, Values]:
        """The labels to be, by row, as `corrected_values` gives them."""

    def run(self, dry_run: bool) -> EditionReport:
        """Report what changes and, unless it is a dry run, write it in one transaction."""
        started = time.monotonic()
        if dry_run:
            with closing(self._collection.pinned()) as reader:
                transition = self.transition(reader)
                report = self._apply(reader, transition, self._withdrawn(reader, transition), None)
        else:
            self._collection.upgrade()
            # Other writers need not wait while editions are compared.
            with closing(self._collection.pinned()) as reader:
                key, generation = reader.vocabulary_state.key, reader.generation()
                transition = self.transition(reader)
                withdrawn = self._withdrawn(reader, transition)
            with self._collection.database.transaction() as connection:
                if self._collection.vocabulary_state.key != key:
                    transition = self.transition(self._collection)
                if self._collection.generation() != generation:
                    withdrawn = self._withdrawn(self._collection, transition)
                writer = _Writer(connection, self._collection, transition, self.can_be_undone)
                report = self._apply(self._collection, transition, withdrawn, writer)
                writer.finish()
            if self._collection.pending_rows():
                self._collection.flush_label_sets()
        report.seconds = time.monotonic() - started
        return report

    def _resolved(
        self, values: Values, transition: _Transition, report: EditionReport, *, follows: bool
    ) -> Values:
        """A document's labels with those resolved that can be; with `follows`, replaced ones too.

        The result is that of `corrected_values`.
        """
        stored = ResolvedLabels.stored(*values[_LABELS])
        resolved = ResolvedLabels()
        for label in stored.order:
            is_major = label in stored.major
            column: int | None
            if isinstance(label, int):
                column = int(transition.successors[label]) if follows else label
                if column != label:
                    report.followed[transition.before[label].id] += 1
            else:
                name = stored.unresolved[label]
                column = transition.after.resolve(
                    label, name, values[_LANGUAGE] or "", guess=not self._keeps_unknown
                ).column
                if column is None:
                    report.unresolved[label] += 1
                    resolved.add(label, name, is_major=is_major)
                    continue
                report.resolved[label] += 1
                column = int(transition.successors[column])
            resolved.add(column, is_major=is_major)
        return corrected_values(values, resolved, values[-1])

    def _withdrawn(self, reader: Reader, transition: _Transition) -> _Withdrawn:
        # An update leaves headings that it withdraws to their documents, undoing it does not.
        restored = np.zeros(0, dtype=np.int64)
        if not self.can_be_undone:
            restored = reader.rows_with_former_labels()
        return _Withdrawn.of(reader, transition, restored)

    def _apply(
        self,
        reader: Reader,
        transition: _Transition,
        withdrawn: _Withdrawn,
        writer: _Writer | None,
    ) -> EditionReport:
        tombstones = reader.tombstones()
        renamed = {language: transition.renamed(language) for language in reader.languages()}
        in_any = np.any([np.zeros(len(transition.after), np.bool_), *renamed.values()], axis=0)
        relabelled = np.setdiff1d(self.rows(reader, transition), tombstones)
        reindexed = np.setdiff1d(reader.label_sets().rows_with(in_any), tombstones)
        changes = transition.diff.changes
        report = EditionReport(
            headings=sum(not concept.deprecated for concept in transition.after),
            changes=transition.diff.counts(),
            is_changed=bool(transition.changed or transition.appended),
            withdrawn=withdrawn.headings,
            withdrawn_documents=withdrawn.documents,
            new_headings=[
                change.concept.id for kind in ("added", "restored") for change in changes[kind]
            ],
        )
        rows = np.union1d(relabelled, reindexed)
        for start in range(0, len(rows), _PAGE):
            wanted = rows[start : start + _PAGE].tolist()
            page = dict(sorted(reader.stored_documents(wanted)))
            labels = self.labels(reader, transition, page, report)
            changed = {row for row, new in labels.items() if new[:-2] != page[row][_LABELS]}
            moved = [
                row
                for row, values in page.items()
                if row in changed or _has_any(values, renamed[values[_LANGUAGE]])
            ]
            report.documents += len(changed)
            report.reindexed += len(moved) - len(changed)
            report.is_changed = report.is_changed or bool(moved)
            if writer is not None and moved:
                writer.move(
                    {
                        row: labels.get(row) or _with_labels(page[row], page[row][_LABELS])
                        for row in moved
                    },
                    {row: page[row][_LABELS] for row in changed},
                )
            if self._progress is not None:
                self._progress(start + len(wanted), len(rows))
        return report


class _Update(_Change):
    """To an edition from outside."""

    can_be_undone = True

    def __init__(
        self,
        collection: Collection,
        vocabulary: Vocabulary,
        force: bool,
        progress: BuildProgress | None,
    ) -> None:
        super().__init__(collection, progress)
        self._vocabulary = vocabulary
        self._force = force

    def transition(self, reader: Reader) -> _Transition:
        """From the reader's vocabulary to the new edition."""
        before = reader.vocabulary
        edition = completed(before, self._vocabulary)
        diff = compare_editions(before, edition)
        headings, removed = diff.old, diff.changes["removed"]
        if self._keeps_unknown:
            is_from_label = reader.columns_from_labels()
            # An edition that has adopted such a concept has usually given it more than a name.
            lacking = [
                change
                for change in removed
                if not is_from_label[before.column(change.concept.id)]
                or not _is_ad_hoc(change.concept)
            ]
            headings -= len(removed) - len(lacking)
            removed[:] = lacking
        counts = diff.counts()
        lost = counts["removed"] + counts["deprecated"]
        if lost > _MOST_LOST * headings and not self._force:
            raise VocabularyError(
                f"the new edition lacks {lost:,} of {counted(headings, 'heading')}; is it another "
                "vocabulary? `--force` (force=True) updates all the same"
            )
        return _Transition(before, _updated(before, edition, diff), diff)

    def rows(self, reader: Reader, transition: _Transition) -> Rows:
        """The rows with headings that were replaced, or with labels that were unknown."""
        width = len(transition.before)
        follows = transition.successors[:width] != np.arange(width)
        return np.union1d(reader.label_sets().rows_with(follows), reader.rows_with_unresolved())

    def labels(
        self,
        reader: Reader,  # noqa: ARG002
        transition: _Transition,
        page: Mapping[int, Values],
        report: EditionReport,
    ) -> dict[int, Values]:
        """Labels that follow their headings, and those that can be resolved now."""
        return {
            row: self._resolved(values, transition, report, follows=True)
            for row, values in page.items()
        }


class _Undo(_Change):
    """Back to the edition before the last update."""

    can_be_undone = False

    def transition(self, reader: Reader) -> _Transition:
        """From the reader's vocabulary to the one before; it is checked that there is one."""
        former = reader.former_concepts()
        if former is None:
            raise CollectionError(
                f"{reader.path}: there is no former edition to restore; the vocabulary was never "
                "updated, or its last update has been undone"
            )
        before = reader.vocabulary
        after = Vocabulary(
            (
                _restored(concept, former[column]) if column in former else concept
                for column, concept in enumerate(before)
            ),
            former_names=reader.former_names(before=reader.edition()),
        )
        diff = compare_editions(before, after)
        for kind in ("merged", "split"):
            # Undoing adds no links: what only names would lead to is not replaced.
            linked = [one for one in diff.changes[kind] if after.successors(one.concept)]
            diff.changes["deprecated"].extend(
                replace(one, after=()) for one in diff.changes[kind] if one not in linked
            )
            diff.changes[kind][:] = linked
        return _Transition(before, after, diff)

    def rows(self, reader: Reader, transition: _Transition) -> Rows:  # noqa: ARG002
        """The rows that the update has given other labels, and those with unknown labels."""
        return np.union1d(reader.rows_with_former_labels(), reader.rows_with_unresolved())

    def labels(
        self,
        reader: Reader,
        transition: _Transition,
        page: Mapping[int, Values],
        report: EditionReport,
    ) -> dict[int, Values]:
        """The labels that the update has replaced; others that can be resolved now."""
        former = reader.former_labels(list(page))
        labels = {}
        for row, values in page.items():
            if row in former:
                labels[row] = _with_labels(values, former[row])
                report.unresolved.update(ResolvedLabels.stored(*former[row]).unresolved.keys())
            else:
                labels[row] = self._resolved(values, transition, report, follows=False)
        return labels


class _Writer:
    """Writes a change of the edition, from the first thing that changes on."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        collection: Collection,
        transition: _Transition,
        can_be_undone: bool,
    ) -> None:
        self._connection = connection
        self._transition = transition
        self._can_be_undone = can_be_undone
        self._before = collection.generation()
        self._rows = 0
        self._has_begun = False
        if transition.changed or transition.appended or not can_be_undone:
            self._begin()

    def _begin(self) -> None:
        if self._has_begun:
            return
        self._has_begun = True
        before, after = self._transition.before, self._transition.after
        for table in EDITION_TABLES:
            self._connection.execute(table)
        if self._can_be_undone:
            self._forget_former()
            self._connection.executemany(
                "INSERT INTO former_concepts VALUES (?, ?)",
                (
                    *(
                        (column, concept_to_json(before[column]))
                        for column in self._transition.changed
                    ),
                    *((column, None) for column in self._transition.appended),
                ),
            )
            self._connection.executemany(
                "INSERT OR IGNORE INTO former_names VALUES (?, ?, ?)",
                ((*one, self._before.number + 1) for one in after.former_names),
            )
        else:
            self._connection.execute(
                "DELETE FROM former_names WHERE generation = (SELECT max(generation) FROM editions)"
            )
        update_concepts(
            self._connection, ((column, after[column]) for column in self._transition.changed)
        )
        insert_concepts(
            self._connection, ((column, after[column]) for column in self._transition.appended)
        )

    def _forget_former(self) -> None:
        self._connection.execute("DELETE FROM former_concepts")
        self._connection.execute("DELETE FROM former_labels")
        self._connection.execute("DELETE FROM former_rows")

    def move(self, labels: Mapping[int, Values], former: Mapping[int, Values]) -> None:
        """Give documents new rows with `corrected_values`; `former` labels can be restored."""
        self._begin()
        first = self._before.next_row + self._rows
        moves = dict(zip(labels, range(first, first + len(labels)), strict=True))
        add_tombstones(self._connection, moves, self._before.number + 1)
        move_documents(self._connection, ((new, *labels[row], row) for row, new in moves.items()))
        if self._can_be_undone:
            self._connection.executemany(
                "INSERT INTO former_labels VALUES (?, ?, ?, ?)",
                ((moves[row], *values) for row, values in former.items()),
            )
            self._connection.executemany(
                "INSERT INTO former_rows VALUES (?, ?)", ((moves[row], row) for row in former)
            )
        else:
            # With its former labels, a document is as it was in the row before the update.
            self._connection.executemany(
                "INSERT INTO moves SELECT ?, former FROM former_rows WHERE row = ?",
                ((moves[row], row) for row in former),
            )
        self._connection.executemany(
            "INSERT INTO moves VALUES (?, ?)",
            ((new, row) for row, new in moves.items() if row not in former),
        )
        self._rows += len(labels)

    def finish(self) -> None:
        """Enter the edition and the generation that brings it."""
        if not self._has_begun:
            return
        if not self._can_be_undone:
            self._forget_former()
        self._connection.execute(
            "INSERT INTO editions VALUES (?, ?)", (self._before.number + 1, self._can_be_undone)
        )
        log_change(self._connection, self._before, self._rows, len(self._transition.appended))


def _is_ad_hoc(concept: Concept) -> bool:
    """Whether a concept is as the label of a document brings it: an id and at most one name."""
    return len(concept.names) <= 1 and replace(concept, names={}) == Concept(concept.id, {})


def _updated(before: Vocabulary, edition: Vocabulary, diff: EditionDiff) -> Vocabulary:
    """The concepts of `before` as the edition has them, each in its column, then the new ones."""
    merged = {change.concept.id: change.after for change in diff.changes["merged"]}
    gone = {
        change.concept.id
        for kind in ("removed", "merged", "split")
        for change in diff.changes[kind]
    }
    concepts = []
    for concept in before:
        now = edition.get(concept.id)
        if now is None:
            now = replace(concept, deprecated=True) if concept.id in gone else concept
        if now.deprecated and not edition.successors(now):
            # Without links of the edition's own: those that names have given, now or before.
            before_that = concept.replaced_by if concept.deprecated else now.replaced_by
            now = replace(now, replaced_by=merged.get(concept.id, before_that))
        concepts.append(now)
    former = [
        (column, name)
        for column, concept in enumerate(before)
        if not concept.undone
        for name in _lost_names(concept, concepts[column])
    ]
    concepts += [concept for concept in edition if concept.id not in before]
    return Vocabulary(concepts, dict.fromkeys((*before.former_names, *former)))


def _lost_names(before: Concept, after: Concept) -> list[str]:
    """The names, synonyms and notations that a concept has no longer."""
    if before == after:
        return []
    keys = {name_key(name) for name in (*after.all_names(), *after.notations)}
    return [name for name in (*before.all_names(), *before.notations) if name_key(name) not in keys]


def _restored(concept: Concept, former: str | None) -> Concept:
    """A concept as it was; one that the former edition lacks is deprecated."""
    if former is None:
        return replace(concept, deprecated=True, replaced_by=(), undone=True)
    try:
        return concept_from_json(former)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CollectionDamagedError(
            f"{DATABASE_NAME}: the concept {concept.id!r} of the former edition cannot be read",
            "restore it from a backup",
        ) from error


def _shown(vocabulary: Vocabulary, column: int) -> Concept:
    """What a heading goes by: the one heading that has replaced it, else itself."""
    concept = vocabulary[column]
    return concept.current(vocabulary.get) or concept


def _has_any(values: Values, columns: npt.NDArray[np.bool_]) -> bool:
    labels = np.frombuffer(values[_LABELS][0], dtype=COLUMN_TYPE)
    return bool(columns[labels].any())


def _with_labels(values: Values, labels: Values) -> Values:
    """As `corrected_values`, with stored labels (LABEL_COLUMNS)."""
    return checked_values(values, (*labels, values[-1]))
