"""The vocabulary of a collection in one state, shared by everything that reads that state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from labelkin.memo import Memo
from labelkin.vocab.vocabulary import Vocabulary

if TYPE_CHECKING:
    from labelkin.store.reader import Reader

Places = npt.NDArray[np.int64]

# For more columns, or more lookups, reading the whole order once is faster.
_FEW = 1000
_LOOK_UPS = 3
_DERIVED = 64


class VocabularyState:
    """The concepts below a column, loaded when first needed.

    `key` changes whenever the vocabulary does and differs between collections.
    `derived` holds what others compute from the vocabulary: policies, name tables.
    """

    def __init__(self, key: str, width: int, previous: VocabularyState | None = None) -> None:
        self.key = key
        self.width = width
        self.derived = Memo(_DERIVED)
        self._values = Memo()
        self._look_ups = 0
        # The caller knows that concepts were only appended: those of an earlier state are right.
        self._base = previous.loaded() if previous is not None else None

    def loaded(self) -> Vocabulary | None:
        """The vocabulary if it is in memory."""
        loaded: Vocabulary | None = self._values.peek("vocabulary")
        return loaded

    def vocabulary(self, reader: Reader) -> Vocabulary:
        """All concepts. Do not change it: `Vocabulary.extended` makes another."""
        return self._values.get("vocabulary", lambda: self._read(reader))

    def label_order(self, reader: Reader) -> LabelOrder:
        """The order of concept ids, by column."""
        return LabelOrder(reader, self)

    def columns_by_id(self, reader: Reader) -> dict[str, int]:
        """The column of every concept. Do not change it."""
        return self._values.get("columns", lambda: dict(reader.columns_by_id_below(self.width)))

    def has_deprecated(self, reader: Reader) -> bool:
        """Whether any concept is deprecated."""
        return self._values.get("deprecated", reader.any_deprecated)

    def whole_order(self, reader: Reader) -> Places:
        """For each column its place in the order of concept ids."""
        return self._values.get(
            "places",
            lambda: _inverted(
                np.array(
                    [column for _, column in reader.columns_by_id_below(self.width)],
                    dtype=np.int64,
                )
            ),
        )

    def wants_whole_order(self) -> bool:
        """Whether the whole order is in memory, or used often enough to be worth reading."""
        self._look_ups += 1
        return self._look_ups > _LOOK_UPS or self._values.peek("places") is not None

    def _read(self, reader: Reader) -> Vocabulary:
        base, self._base = self._base, None
        if base is None or len(base) > self.width:
            base = Vocabulary(former_names=reader.former_names())
        return base.extended(reader.concepts_from(len(base), self.width))


class LabelOrder:
    """The places of vocabulary columns in the order of concept ids.

    Used like an array with an entry per column, but only places from the same
    lookup can be compared.
    """

    def __init__(self, reader: Reader, state: VocabularyState) -> None:
        self._reader = reader
        self._state = state

    def __len__(self) -> int:
        return self._state.width

    def __getitem__(self, columns: npt.NDArray[np.integer]) -> Places:
        """The place of each column; for a few columns the others are not read."""
        if not self._state.wants_whole_order():
            wanted, inverse = np.unique(columns, return_inverse=True)
            if len(wanted) <= _FEW:
                by_id = self._reader.in_order_of_id(wanted.tolist())
                among_wanted = _inverted(np.searchsorted(wanted, by_id))
                return np.asarray(among_wanted[inverse])
        return np.asarray(self._state.whole_order(self._reader)[columns])


def _inverted(order: npt.NDArray[np.integer]) -> Places:
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places
