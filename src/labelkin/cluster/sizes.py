"""How much text is sent at a time: Spark takes no task of more than 128 MB."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from labelkin.corpus.document import Document

#: Characters of a task, at most 32 MB.
TASK = 1 << 23
#: Characters of the tasks that Spark has at a time, all of which the driver holds in memory.
WAVE = 1 << 28

Item = TypeVar("Item")


def text_alone(document: Document) -> Document:
    """A document without what no result depends on: metadata, which may be large, and labels."""
    return replace(
        document,
        metadata={},
        labels=(),
        label_names={},
        major_labels=(),
        revision=None,
        lacks=(),
    )


def sendable(documents: Sequence[Document], longest: int) -> tuple[Document, ...]:
    """Documents as executors need them: body and fields cut to `longest` characters each.

    Executors would cut them as well. The title stays whole: outputs have it.
    """
    return tuple(
        replace(text_alone(one), body=one.body[:longest], fields=_cut(one, longest))
        for one in documents
    )


def _cut(document: Document, longest: int) -> dict[str, str]:
    return {name: text[:longest] for name, text in document.fields.items()}


def characters(documents: Sequence[Document]) -> int:
    """The length of some documents."""
    return sum(
        len(one.title) + len(one.body) + sum(map(len, one.fields.values())) for one in documents
    )


def taken(
    items: Iterator[Item], most: int, limit: int, length: Callable[[Item], int]
) -> list[Item]:
    """The next `most` items, or fewer that reach `limit` together."""
    several: list[Item] = []
    total = 0
    while len(several) < most and total < limit and (item := next(items, None)) is not None:
        several.append(item)
        total += length(item)
    return several


def taken_documents(documents: Iterator[Document], most: int, limit: int) -> list[Document]:
    """The next `most` documents, or fewer with so many characters."""
    return taken(documents, most, limit, lambda one: characters([one]))


def task_slices(documents: Sequence[Document], most: int) -> Iterator[slice]:
    """The parts of `documents`, each for one task: at most so many documents."""
    waiting, first = iter(documents), 0
    while part := taken_documents(waiting, most, TASK):
        yield slice(first, first + len(part))
        first += len(part)
