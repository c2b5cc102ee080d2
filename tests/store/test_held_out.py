from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labelkin import Document, Indexer
from labelkin.corpus.text import document_key
from labelkin.exceptions import TrainingError
from labelkin.store.held_out import HeldOut, HeldOutRule, choose_held_out
from labelkin.vocab import Concept, Vocabulary


def labelled(first: int, end: int) -> list[Document]:
    return [
        Document(f"d{n}", f"text number {n}", language="en", labels=("A",))
        for n in range(first, end)
    ]


@pytest.fixture
def indexer(tmp_path: Path):
    with Indexer.create(tmp_path / "c", Vocabulary([Concept("A", {"en": "A"})])) as made:
        made.add(labelled(0, 700))
        yield made


def chosen(indexer: Indexer, **changes) -> HeldOut:
    settings = {"documents": 80, "statistics_documents": 200_000, "seed": 0, **changes}
    return choose_held_out(indexer.collection, **settings)


def ids(indexer: Indexer, held_out: HeldOut) -> set[str]:
    texts = indexer.collection.texts_of(held_out.folds[0].rows.tolist())
    return {document.id for document in texts.values()}


def test_adding_a_document_changes_at_most_two_members(indexer: Indexer) -> None:
    before = ids(indexer, chosen(indexer))
    for number in range(700, 720):
        indexer.add(labelled(number, number + 1))
        after = ids(indexer, chosen(indexer))
        assert len(after) == 80
        assert len(before ^ after) <= 2
        before = after


def test_removing_documents_keeps_the_others_held_out(indexer: Indexer) -> None:
    before = ids(indexer, chosen(indexer))
    gone = {*sorted(before)[:5], "d1"}
    indexer.remove(gone)
    after = ids(indexer, chosen(indexer))
    assert before - gone <= after
    assert len(after) == 80


def test_a_replaced_document_stays_held_out(indexer: Indexer) -> None:
    before = chosen(indexer)
    names = ids(indexer, before)
    name = min(names)
    indexer.add([Document(name, "another text", language="en", labels=("A",))])
    after = chosen(indexer)
    assert ids(indexer, after) == names
    assert after.rule == before.rule


def test_the_bound_describes_the_set(indexer: Indexer) -> None:
    held_out = chosen(indexer)
    every = {document.id for document in indexer.documents()}
    below = {name for name in every if document_key(name, 0) <= held_out.rule.bound}
    assert below == ids(indexer, held_out)
    assert HeldOutRule.from_json(held_out.rule.to_json()) == held_out.rule
    assert HeldOutRule.from_json("a fingerprint of version 0.1") is None
    (fold,) = held_out.folds
    np.testing.assert_array_equal(held_out.rows[held_out.places(fold)], fold.rows)


def test_another_seed_holds_out_other_documents(indexer: Indexer) -> None:
    one, other = ids(indexer, chosen(indexer)), ids(indexer, chosen(indexer, seed=1))
    assert len(one & other) < 30


def test_only_documents_that_a_model_has_not_seen_are_held_out(indexer: Indexer) -> None:
    smaller = chosen(indexer, documents=40)
    indexer.add(labelled(700, 900))
    within = chosen(indexer, within=smaller.rule)
    assert within.rule.bound <= smaller.rule.bound
    assert ids(indexer, smaller) < ids(indexer, within)


def test_the_statistics_are_counted_over_a_sample_with_all_that_is_held_out(indexer) -> None:
    held_out = chosen(indexer, statistics_documents=350, documents=50)
    assert len(held_out.rows) == 350
    (fold,) = held_out.folds
    assert len(fold.rows) == 50
    assert {*fold.rows.tolist()} <= {*held_out.rows.tolist()}


@pytest.mark.parametrize(
    ("documents", "sizes"), [(80, [80]), (100, [100]), (101, [100, 100]), (10_000, [100] * 3)]
)
def test_more_documents_than_one_in_seven_are_held_out_by_folds(indexer, documents, sizes) -> None:
    held_out = chosen(indexer, documents=documents)
    assert [len(fold.rows) for fold in held_out.folds] == sizes
    assert held_out.count == sum(sizes)
    together = np.concatenate([fold.rows for fold in held_out.folds])
    assert len(np.unique(together)) == held_out.count
    assert held_out.unseen.tolist() == held_out.folds[0].rows.tolist()


def test_only_the_first_fold_is_within_what_a_model_has_not_seen(indexer: Indexer) -> None:
    smaller = chosen(indexer, documents=40)
    held_out = chosen(indexer, documents=250, within=smaller.rule)
    assert [len(fold.rows) for fold in held_out.folds] == [40, 100, 100]
    assert held_out.rule == smaller.rule
    together = np.concatenate([fold.rows for fold in held_out.folds])
    assert len(np.unique(together)) == held_out.count


def test_too_few_documents_are_refused(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c", Vocabulary([Concept("A", {"en": "A"})])) as indexer:
        with pytest.raises(TrainingError, match="add some"):
            chosen(indexer)
        indexer.add(labelled(0, 100))
        with pytest.raises(TrainingError, match="too few"):
            chosen(indexer)
        assert len(chosen(indexer, given=20).unseen) == 14


def test_a_setting_that_is_too_small_is_named(indexer: Indexer) -> None:
    with pytest.raises(TrainingError, match=r"on 5 documents; set `documents` in \[rerank\]"):
        chosen(indexer, documents=5)
    assert chosen(indexer, documents=5, given=20).count == 5


def test_too_few_that_the_autoencoder_has_not_seen_are_no_lack_of_documents(
    indexer: Indexer,
) -> None:
    bound = sorted(document_key(document.id, 0) for document in indexer.documents())[6]
    with pytest.raises(TrainingError, match=r"trained without 7 documents only.*trains both"):
        chosen(indexer, within=HeldOutRule(0, bound))
