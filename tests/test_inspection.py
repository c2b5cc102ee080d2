"""What a model does not know of a collection that has moved on, and whether training would pay."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from labelkin import Document, Indexer, Vocabulary
from labelkin.inspection import ModelState, Staleness, model_states, staleness

pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("lightgbm", reason="needs the extra `rerank`")


@pytest.fixture
def indexer(trained: Path, tmp_path: Path):
    with Indexer.open(shutil.copytree(trained, tmp_path / "c")) as opened:
        yield opened


def states(indexer: Indexer) -> dict[str, ModelState]:
    return {state.name: state for state in model_states(indexer.snapshot())}


def copies(indexer: Indexer, count: int, labels: tuple[str, ...] | None = None) -> list[Document]:
    texts = list(indexer.documents())[:count]
    return [
        replace(one, id=f"new {one.id}", labels=one.labels if labels is None else labels)
        for one in texts
    ]


def test_a_new_model_is_not_stale(indexer: Indexer) -> None:
    for state in states(indexer).values():
        assert (state.added or 0, state.removed or 0, state.unknown) == (0, 0, ())
    assert not indexer.staleness().is_stale
    reason = indexer.staleness().reason
    assert reason.startswith("label-ae: 0.0% of the documents have changed (it pays from 10%)")
    assert "; rerank: 0.0%" in reason
    assert indexer.staleness(label_ae=False).reason.startswith("rerank: ")


def test_many_new_documents(indexer: Indexer) -> None:
    documents = states(indexer)["rerank"].documents
    assert documents is not None
    indexer.add(copies(indexer, documents // 10 - 1))
    assert not indexer.staleness(label_ae=False).is_stale
    # A document that is replaced is added and removed, and counts once.
    indexer.remove([f"new {one.id}" for one in copies(indexer, 1)])
    texts = [replace(one, title=f"{one.title}!") for one in indexer.documents()]
    indexer.add([replace(one) for one in texts[40:44]])
    state = states(indexer)["rerank"]
    assert state.removed is not None
    assert state.added is not None
    assert state.changed_share == max(state.added, state.removed) / documents
    assert indexer.staleness(label_ae=False).is_stale
    assert "% of the documents have changed since" in indexer.staleness(label_ae=False).reason


def test_headings_that_a_model_cannot_know(indexer: Indexer) -> None:
    used = {label for one in indexer.documents() for label in one.labels}
    concepts = [one for one in indexer.vocabulary if one.id not in used and not one.deprecated]
    first, second = concepts[:2]
    before = states(indexer)["label-ae"].headings_without_row
    assert before is not None
    # Four documents are too few to learn a heading from.
    indexer.add(copies(indexer, 4, (first.id,)))
    state = states(indexer)["label-ae"]
    assert (state.unknown_headings, state.unknown) == (1, (first.name(),))
    assert (state.unknown_share, state.headings_without_row) == (0.0, before + 1)
    assert not indexer.staleness().is_stale
    given = [*copies(indexer, 5, (first.id,)), *copies(indexer, 11, (second.id,))[5:]]
    indexer.add(given)
    for state in states(indexer).values():
        if state.name != "lsa":
            assert state.unknown == (second.name(), first.name())
            assert state.unknown_share == 1.0
            assert state.reason.startswith("it does not know 100.0% of the headings that new")
    assert indexer.staleness().reason == f"label-ae: {states(indexer)['label-ae'].reason}"
    assert indexer.info().model_states[0]["reason"]


def test_renamed_headings_are_known(indexer: Indexer) -> None:
    frequencies = indexer.label_frequencies()
    often = indexer.vocabulary[int(frequencies.argmax())]
    edition = Vocabulary(
        replace(one, names={"en": "Quite another name"}) if one == often else one
        for one in indexer.vocabulary
    )
    report = indexer.update_vocabulary(edition)
    assert (report.documents, report.reindexed) == (0, frequencies.max())

    def check(added: int) -> None:
        for state in states(indexer).values():
            if state.name != "lsa":
                assert (state.added, state.removed) == (added, 0)
                assert (state.unknown_headings, state.reason) == (0, "")
        assert not indexer.staleness().is_stale

    check(0)
    indexer.compact()
    check(0)
    # What was added since stays new when it moves.
    carriers = [one for one in indexer.documents() if often.id in one.labels]
    indexer.add([replace(carriers[0], id="new", labels=(often.id,))])
    check(1)
    assert indexer.undo_vocabulary().reindexed == len(carriers) + 1
    check(1)
    # A record with other metadata teaches a model nothing.
    indexer.add([replace(carriers[1], metadata={"volume": 7})])
    check(1)
    # One with another text is another document, but no unknown heading.
    indexer.add([replace(carriers[1], body="Another text", metadata={"volume": 7})])
    state = states(indexer)["rerank"]
    assert (state.added, state.removed, state.unknown_headings) == (2, 1, 0)
    indexer.remove(["new"])
    assert states(indexer)["rerank"].added == 1


def test_a_reranker_that_cannot_be_trained_is_not_stale(indexer: Indexer) -> None:
    shutil.rmtree(indexer.collection.path / "models" / "rerank")
    assert indexer.staleness().reason == "rerank has not been trained yet"
    indexer.remove([one.id for one in indexer.documents()][100:])
    few = "100 documents with labels are too few to train a reranker on; it needs at least 140"
    assert indexer.staleness(label_ae=False) == Staleness(False, f"rerank cannot be trained: {few}")
    # With enough documents beside the collection it can.
    assert indexer.staleness(label_ae=False, given=40).is_stale


@pytest.mark.parametrize("name", ["label-ae", "rerank"])
def test_models_that_are_missing_or_damaged(indexer: Indexer, name: str) -> None:
    folder = indexer.collection.path / "models" / name
    (folder / "model.json").write_text("{}")
    assert indexer.staleness().is_stale
    assert f"{name} cannot be used" in staleness(indexer.snapshot(), [name]).reason
    shutil.rmtree(folder)
    assert staleness(indexer.snapshot(), [name]).reason == f"{name} has not been trained yet"


def test_a_model_that_does_not_say_what_it_was_trained_on() -> None:
    state = ModelState("label-ae", is_usable=True)
    assert (state.changed_share, state.reason, state.is_outdated) == (None, "", False)
