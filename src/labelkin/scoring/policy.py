"""Which labels may be suggested: none that are deprecated or that the lists rule out."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from labelkin.exceptions import ConfigError
from labelkin.store.reader import Reader
from labelkin.vocab.concept import Concept
from labelkin.vocab.vocabulary import Vocabulary


class LabelPolicy:
    """Turns the labels that documents carry into those that may be suggested.

    A deprecated concept counts as the one that replaced it, or not at all.
    `include` and `exclude` name concepts (by id or name) or branches: a tree
    number or notation with everything below it, or a scheme.
    """

    def __init__(
        self, vocabulary: Vocabulary, include: Iterable[str] = (), exclude: Iterable[str] = ()
    ) -> None:
        self.target = np.array(
            [_current(vocabulary, column) for column in range(len(vocabulary))], dtype=np.int64
        )
        allowed = np.ones(len(vocabulary), dtype=bool)
        wanted = list(include)
        if wanted:
            allowed[:] = False
            for name in wanted:
                allowed[_branch(vocabulary, name)] = True
        for name in exclude:
            allowed[_branch(vocabulary, name)] = False
        self.target[(self.target >= 0) & ~allowed[self.target]] = -1
        self._changes_nothing = bool((self.target == np.arange(len(vocabulary))).all())

    def apply(
        self, rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Pairs of row and label with the labels that may be suggested, each pair once."""
        if self._changes_nothing:
            return rows, columns
        targets = self.target[columns]
        kept = targets >= 0
        pairs = np.unique(rows[kept] * len(self.target) + targets[kept])
        kept_rows, labels = np.divmod(pairs, max(len(self.target), 1))
        return kept_rows, labels.astype(np.int32)


def policy_for(
    reader: Reader, include: Iterable[str] = (), exclude: Iterable[str] = ()
) -> LabelPolicy | None:
    """The policy of a collection, made once per vocabulary; None if everything may be suggested.

    Without lists and deprecated concepts the vocabulary need not be read.
    """
    include, exclude = tuple(include), tuple(exclude)
    if not (include or exclude or reader.has_deprecated_concepts()):
        return None
    return reader.vocabulary_state.derived.get(
        ("policy", include, exclude), lambda: LabelPolicy(reader.vocabulary, include, exclude)
    )


def _current(vocabulary: Vocabulary, column: int) -> int:
    """The concept that has replaced this one, or itself; −1 if there is none."""
    seen: set[int] = set()
    while vocabulary[column].deprecated and column not in seen:
        seen.add(column)
        successors = [i for i in vocabulary[column].replaced_by if i in vocabulary]
        if not successors:
            return -1
        column = vocabulary.column(successors[0])
    return -1 if column in seen else column


def _branch(vocabulary: Vocabulary, name: str) -> npt.NDArray[np.int64]:
    """The columns that an entry of an include or exclude list means."""
    columns = [column for column, concept in enumerate(vocabulary) if _is_below(concept, name)]
    if not columns:
        resolved = vocabulary.resolve(name).column
        columns = [] if resolved is None else [resolved]
    if not columns:
        raise ConfigError(
            f"{name!r} is not a concept, notation or scheme of this vocabulary; "
            "try `labelkin vocab search`"
        )
    return np.array(columns, dtype=np.int64)


def _is_below(concept: Concept, name: str) -> bool:
    if name in concept.schemes:
        return True
    is_category = len(name) == 1 and name.isalpha()
    return any(
        place == name or place.startswith(f"{name}.") or (is_category and place.startswith(name))
        for place in concept.notations
    )
