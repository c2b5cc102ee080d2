"""Which labels may be suggested: none that are deprecated or that the lists rule out."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from labelkin.store.reader import Reader
from labelkin.vocab.branches import Branches
from labelkin.vocab.vocabulary import Vocabulary


class LabelPolicy:
    """Turns the labels that documents carry into those that may be suggested.

    A deprecated concept counts as the one that replaced it. One that nothing or
    several concepts have replaced does not count at all.
    `include` and `exclude` name concepts, notations, schemes and groups, each
    with everything below it: see `branches`, which a caller can pass to reuse it.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        branches: Branches | None = None,
    ) -> None:
        self.target = np.array(
            [_current(vocabulary, column) for column in range(len(vocabulary))], dtype=np.int64
        )
        allowed = np.ones(len(vocabulary), dtype=bool)
        wanted, unwanted = list(include), list(exclude)
        if branches is None and (wanted or unwanted):
            branches = Branches(vocabulary)
        if branches is not None and wanted:
            allowed[:] = False
            for entry in wanted:
                allowed[branches.columns(entry)] = True
        if branches is not None:
            for entry in unwanted:
                allowed[branches.columns(entry)] = False
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
    derived = reader.vocabulary_state.derived

    def make() -> LabelPolicy:
        branches = None
        if include or exclude:
            branches = derived.get("branches", lambda: Branches(reader.vocabulary))
        return LabelPolicy(reader.vocabulary, include, exclude, branches)

    return derived.get(("policy", include, exclude), make)


def _current(vocabulary: Vocabulary, column: int) -> int:
    """The one concept that has replaced this one, or itself; −1 if there is none."""
    concept = vocabulary[column].current(vocabulary.get)
    return -1 if concept is None else vocabulary.column(concept.id)
