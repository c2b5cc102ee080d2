"""tantivy's schema, and its errors in our words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from labelkin.exceptions import (
    CollectionDamagedError,
    CollectionFullError,
    CollectionReadOnlyError,
)

if TYPE_CHECKING:
    import tantivy

ROW = "row"
KEY = "key"

_NO_SPACE = re.compile(r"os error 28|No space left")
_NOT_ALLOWED = re.compile(r"os error (13|30)\b|Permission denied|Read-?only", re.IGNORECASE)


class IndexDamagedError(CollectionDamagedError):
    """The index cannot be read; it can be made anew from the documents."""


def open_index(folder: Path, fields: Sequence[str]) -> tantivy.Index:
    """The index in `folder`, or an empty one, with a field for each kind of term."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    # Signed: an unsigned fast field brings the indexing thread down.
    builder.add_integer_field(ROW, fast=True, indexed=True)
    # A string: deleting by a number deletes nothing.
    builder.add_text_field(KEY, tokenizer_name="raw", index_option="basic")
    for field in fields:
        builder.add_text_field(field, tokenizer_name="whitespace", index_option="freq")
    with engine_errors_explained(folder):
        return tantivy.Index(builder.build(), path=str(folder))


@contextmanager
def engine_errors_explained(folder: Path) -> Iterator[None]:
    """The engine says ValueError to everything; tell a full disk from damage."""
    try:
        yield
    except ValueError as error:
        reason = " ".join(str(error).split())
        if _NO_SPACE.search(reason):
            message = "the disk is full; nothing stored was lost"
            raise CollectionFullError(f"{folder}: {message}") from error
        if _NOT_ALLOWED.search(reason):
            raise CollectionReadOnlyError(f"{folder}: the index cannot be written to") from error
        raise IndexDamagedError(f"{folder}: {reason[:200]}") from error
