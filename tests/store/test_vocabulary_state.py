from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from labelkin.corpus import Document
from labelkin.store import Collection, Config
from labelkin.store.reader import Reader
from labelkin.store.vocabulary_state import LabelOrder
from labelkin.store.writer import add_documents
from labelkin.vocab import Concept, Vocabulary

IDS = [f"{(number * 7919) % 5000:05}" for number in range(5000)]


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    vocabulary = Vocabulary(Concept(identifier, {}) for identifier in IDS)
    path: Path = tmp_path_factory.mktemp("order") / "c"
    with Collection.create(path, vocabulary, Config()) as collection:
        yield collection


@pytest.fixture
def order(ordered: Collection) -> LabelOrder:
    return ordered.label_order()


@pytest.fixture
def collection(tmp_path: Path, vocabulary: Vocabulary) -> Iterator[Collection]:
    with Collection.create(tmp_path / "c", vocabulary, Config()) as made:
        yield made


def add_concepts(collection: Collection, *names: str) -> None:
    document = Document(" ".join(names), "x", language="en", labels=names)
    add_documents(collection, [document], keep_unknown=True)


@pytest.mark.parametrize("count", [0, 1, 30, 3000])
def test_columns_are_ordered_as_their_ids(order: LabelOrder, count: int) -> None:
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


def test_the_whole_order_is_read_after_a_few_look_ups(
    ordered: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Collection(ordered.path) as collection:
        looked_up: list[int] = []
        few = Reader.in_order_of_id
        monkeypatch.setattr(
            Reader,
            "in_order_of_id",
            lambda self, columns: looked_up.append(len(columns)) or few(self, columns),
        )
        columns = np.array([4000, 7, 1234])
        expected = np.argsort([IDS[column] for column in columns])
        for _ in range(10):
            places = collection.label_order()[columns]
            assert np.argsort(places).tolist() == expected.tolist()
    assert looked_up == [3, 3, 3]


def test_the_same_vocabulary_has_one_state(collection: Collection) -> None:
    state = collection.vocabulary_state
    add_documents(collection, [Document("d", "x", language="en", labels=("V1",))])
    snapshot = collection.snapshot()
    assert collection.vocabulary_state is state
    assert snapshot.vocabulary_state is state
    assert snapshot.vocabulary is collection.vocabulary


def test_new_concepts_make_another_state_and_leave_the_old_one(collection: Collection) -> None:
    before = collection.snapshot()
    old = before.vocabulary
    add_concepts(collection, "Hops", "Wheat")
    after = collection.snapshot()
    assert after.vocabulary_state.key != before.vocabulary_state.key
    assert len(after.vocabulary_state.label_order(after)) == 7
    assert [concept.id for concept in after.vocabulary][5:] == ["Hops", "Wheat"]
    assert after.columns_by_id()["Hops"] == 5
    assert before.vocabulary is old
    assert len(old) == 5
    assert "Hops" not in before.columns_by_id()


def test_only_new_concepts_are_read(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(collection.vocabulary) == 5
    spans: list[tuple[int, int]] = []
    concepts_from = Reader.concepts_from
    monkeypatch.setattr(
        Reader,
        "concepts_from",
        lambda self, *span: spans.append(span) or concepts_from(self, *span),
    )
    with Collection(collection.path) as other:
        add_concepts(other, "Hops")
    spans.clear()
    assert collection.vocabulary[5].id == "Hops"
    assert collection.vocabulary[0].id == "V1"
    assert spans == [(5, 6)]


def test_a_few_concepts_are_read_without_the_vocabulary(collection: Collection) -> None:
    assert {column: concept.id for column, concept in collection.concepts([2, 0]).items()} == {
        0: "V1",
        2: "V3",
    }
    assert collection.vocabulary_state.loaded() is None
    whole = collection.vocabulary
    assert collection.concepts([1]) == {1: whole[1]}


def test_deprecated_concepts_are_noticed(collection: Collection, tmp_path: Path) -> None:
    assert collection.has_deprecated_concepts()
    with Collection.create(tmp_path / "plain", Vocabulary([Concept("A", {})]), Config()) as plain:
        assert not plain.has_deprecated_concepts()


def test_threads_share_what_is_derived_from_the_vocabulary(collection: Collection) -> None:
    barrier = Barrier(8)
    made: list[int] = []

    def ask() -> tuple[object, object]:
        barrier.wait()
        state = collection.snapshot().vocabulary_state
        return collection.vocabulary, state.derived.get("table", lambda: made.append(1) or object())

    with ThreadPoolExecutor(8) as pool:
        results = [future.result() for future in [pool.submit(ask) for _ in range(8)]]
    assert len({id(vocabulary) for vocabulary, _ in results}) == 1
    assert len({id(table) for _, table in results}) == 1
    assert made == [1]
