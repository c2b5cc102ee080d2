from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from labelkin.store import Collection, Config
from labelkin.store.label_order import LabelOrder
from labelkin.vocab import Concept, Vocabulary

IDS = [f"{(number * 7919) % 5000:05}" for number in range(5000)]


@pytest.fixture(scope="module")
def order(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabelOrder]:
    vocabulary = Vocabulary(Concept(identifier, {}) for identifier in IDS)
    path: Path = tmp_path_factory.mktemp("order") / "c"
    with Collection.create(path, vocabulary, Config()) as collection:
        yield collection.label_order()


@pytest.mark.parametrize("count", [0, 1, 30, 3000])
def test_columns_are_placed_as_their_ids_sort(order: LabelOrder, count: int) -> None:
    columns = np.random.default_rng(count).integers(5000, size=count).astype(np.int32)
    places = order[columns]
    assert len(places) == count
    by_place = [IDS[column] for column in columns[np.argsort(places, kind="stable")]]
    assert by_place == sorted(by_place)
    equal = columns[:, None] == columns
    assert ((places[:, None] == places) == equal).all()


def test_every_column_has_a_place(order: LabelOrder) -> None:
    assert len(order) == 5000
    assert sorted(order[np.arange(5000)].tolist()) == list(range(5000))
