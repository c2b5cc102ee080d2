"""Decisions of indexers about suggested headings: evaluation data that work leaves behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from labelkin.corpus.document import Document
from labelkin.desk.rows import as_text, document_of, document_text, now
from labelkin.store.rows import storable

if TYPE_CHECKING:
    from labelkin.desk.desk import Desk

# `unneeded`: right, but not needed; `added`: the indexer's own, which was not suggested.
VERDICTS = ("accepted", "rejected", "unneeded", "added")
_CHOSEN = ("accepted", "added")
_PAGE = 500
_COLUMNS = "number, at, method, generation, seconds, blind, verdicts, document"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an indexer has decided about one heading, and how it was suggested."""

    id: str
    verdict: str
    name: str = ""
    score: float | None = None
    rank: int | None = None
    band: str | None = None

    def __post_init__(self) -> None:
        """Refuse verdicts that nothing would count."""
        if self.verdict not in VERDICTS:
            raise ValueError(f"no verdict {self.verdict!r}; known: {', '.join(VERDICTS)}")


@dataclass(frozen=True, slots=True)
class Decision:
    """All verdicts on one document at one time.

    `seconds` is how long they took; `blind` means that the indexer has chosen
    headings before seeing the suggestions.
    """

    document: Document
    verdicts: tuple[Verdict, ...]
    method: str | None = None
    generation: int | None = None
    seconds: float | None = None
    blind: bool = False
    time: str = ""
    number: int = 0

    def labelled(self) -> Document:
        """The document with the headings that were accepted or added."""
        chosen = [one for one in self.verdicts if one.verdict in _CHOSEN]
        major = {*self.document.major_labels}
        return replace(
            self.document,
            labels=tuple(one.id for one in chosen),
            label_names={one.id: one.name for one in chosen if one.name},
            major_labels=tuple(one.id for one in chosen if one.id in major),
        )


class Decisions:
    """All decisions of a desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def __len__(self) -> int:
        rows = self._desk.query("SELECT count(*) FROM decisions")
        return int(rows[0][0]) if rows else 0

    def add(self, decision: Decision) -> int:
        """Store a decision; its number. The time is now unless the decision has one."""
        with self._desk.transaction() as connection:
            cursor = connection.execute(
                "INSERT INTO decisions (document_id, at, method, generation, seconds, blind, "
                "verdicts, document) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    storable(decision.document.id),
                    decision.time or now(),
                    decision.method,
                    decision.generation,
                    decision.seconds,
                    decision.blind,
                    as_text([asdict(one) for one in decision.verdicts]),
                    document_text(decision.document),
                ),
            )
            return int(cursor.lastrowid or 0)

    def page(self, offset: int = 0, limit: int = 100) -> list[Decision]:
        """Some decisions, the newest first."""
        rows = self._desk.query(
            f"SELECT {_COLUMNS} FROM decisions ORDER BY number DESC LIMIT ? OFFSET ?",
            (limit, offset),
        )
        return [self._decision(row) for row in rows]

    def all(self) -> Iterator[Decision]:
        """All decisions, the oldest first, a page in memory at a time."""
        return self._paged("")

    def latest(self) -> Iterator[Decision]:
        """The latest decision about each document, the oldest first."""
        return self._paged(
            "AND NOT EXISTS (SELECT 1 FROM decisions AS later WHERE "
            "later.document_id = decisions.document_id AND later.number > decisions.number)"
        )

    def _paged(self, condition: str) -> Iterator[Decision]:
        number = 0
        while rows := self._desk.query(
            f"SELECT {_COLUMNS} FROM decisions WHERE number > ? {condition} "
            "ORDER BY number LIMIT ?",
            (number, _PAGE),
        ):
            for row in rows:
                yield self._decision(row)
            number = rows[-1][0]

    def _decision(self, row: Sequence[Any]) -> Decision:
        number, at, method, generation, seconds, blind, verdicts, document = row
        try:
            return Decision(
                document_of(document),
                tuple(Verdict(**one) for one in self._desk.read_json(verdicts)),
                method,
                generation,
                seconds,
                bool(blind),
                at,
                number,
            )
        except (ValueError, TypeError) as error:
            raise self._desk.damaged(error) from error
