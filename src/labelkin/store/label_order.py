"""The order of concept ids, by which equally good labels are ranked."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelkin.store.database import Database

Places = npt.NDArray[np.int64]

# More are not looked up one by one: reading the whole order once is faster.
_FEW = 1000


class LabelOrder:
    """For vocabulary columns their places in the order of concept ids.

    Used like an array with an entry per column, but places compare only with
    those of the same look-up.
    """

    def __init__(self, database: Database, columns: int) -> None:
        self._database = database
        self._columns = columns
        self._whole: Places | None = None

    def __len__(self) -> int:
        return self._columns

    def __getitem__(self, columns: npt.NDArray[np.integer]) -> Places:
        """The place of each column; for a few columns the others are not read."""
        if self._whole is None:
            wanted, inverse = np.unique(columns, return_inverse=True)
            if len(wanted) <= _FEW:
                marks = ", ".join("?" * len(wanted))
                by_id = self._by_id(f'WHERE "column" IN ({marks})', wanted.tolist())
                among_wanted = _inverted(np.searchsorted(wanted, by_id))
                return np.asarray(among_wanted[inverse])
            self._whole = _inverted(self._by_id('WHERE "column" < ?', [self._columns]))
        return np.asarray(self._whole[columns])

    def _by_id(self, condition: str, values: list[int]) -> Places:
        """Columns in the order of concept ids."""
        with self._database.errors_explained():
            found = self._database.connection.execute(
                f'SELECT "column" FROM concepts {condition} ORDER BY id', values
            )
            return np.array([column for (column,) in found], dtype=np.int64)


def _inverted(order: npt.NDArray[np.integer]) -> Places:
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places
