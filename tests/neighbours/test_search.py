from __future__ import annotations

import json
import math
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from labelkin.corpus import Correction, Document
from labelkin.demo import demo_documents
from labelkin.exceptions import (
    CollectionBusyError,
    CollectionFullError,
    ConfigError,
    StaleNeighboursError,
)
from labelkin.indexer import Indexer
from labelkin.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.neighbours.tantivy_engine import Record, TantivyEngine
from labelkin.represent import KINDS, TermKind
from labelkin.store.config import CONFIG_NAME, Config, update_config
from labelkin.store.locks import FileLock, beside
from labelkin.vocab import Concept, Vocabulary

Mounted = Callable[..., AbstractContextManager[Callable[..., None]]]


@pytest.fixture
def indexer(tmp_path: Path) -> Iterator[Indexer]:
    made = Indexer.create(tmp_path / "c", language="en")
    made.add(demo_documents(300))
    yield made
    made.close()


def text(identifier: str, words: str, *labels: str) -> Document:
    return Document(identifier, words, labels=labels, language="en")


def changed(indexer: Indexer, section: str, **values: object) -> None:
    """Edit labelkin.toml, which every open indexer notices."""
    update_config(indexer.collection.path / CONFIG_NAME, {section: values})


def ids(indexer: Indexer, found: Neighbours, place: int = 0) -> list[str]:
    rows = [int(row) for row in found.rows[place] if row != NO_NEIGHBOUR]
    texts = indexer.collection.texts_of(rows)
    return [texts[row].id for row in rows]


def test_the_same_text_is_nearest_at_distance_0(indexer: Indexer) -> None:
    stored = next(iter(demo_documents(1)))
    query = Document("copy", stored.title, stored.body, language="en")
    found = indexer.neighbour_arrays([query], 5)
    assert ids(indexer, found)[0] == stored.id
    assert found.distances("self")[0, 0] == 0
    assert (found.distances("self")[0, 1:] > 0.2).all()
    assert found.duplicates == (("copy", 0),)


def test_no_document_is_its_own_neighbour(indexer: Indexer) -> None:
    documents = list(demo_documents(20))
    found = indexer.neighbour_arrays(documents, 10)
    for row, near in enumerate(found.rows):
        assert row not in near
    assert (found.rows != NO_NEIGHBOUR).all()
    indexer.add([text("twin", documents[0].text, "X")])
    assert indexer.neighbour_arrays(documents[:1], 3).duplicates == (("demo-00001", 300),)


def test_scores_fall_and_ties_go_by_row(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "t", language="en") as indexer:
        indexer.add(text(f"d{n}", "sourdough oven dough", "L") for n in range(50))
        indexer.add([text("best", "sourdough oven dough rye", "L")])
        found = indexer.neighbour_arrays([text("q", "oven rye sourdough")], 7)
        assert found.rows.tolist() == [[50, 0, 1, 2, 3, 4, 5]]
        assert (np.diff(found.scores[0]) <= 1e-4).all()


def test_only_documents_with_labels_are_neighbours(indexer: Indexer) -> None:
    indexer.add([text("bare", "quixotic windmill"), text("lab", "quixotic windmill", "X")])
    assert ids(indexer, indexer.neighbour_arrays([text("q", "quixotic windmill")], 5))[0] == "lab"
    assert "bare" not in ids(indexer, indexer.neighbour_arrays([text("q", "quixotic")], 5))


def test_changes_are_seen_by_the_next_search_of_anyone(indexer: Indexer) -> None:
    query = [text("q", "quixotic windmill")]
    with Indexer.open(indexer.collection.path) as other:
        assert "new" not in ids(other, other.neighbour_arrays(query, 3))
        indexer.add([text("new", "quixotic windmill", "X")])
        assert ids(other, other.neighbour_arrays(query, 3))[0] == "new"
        assert ids(indexer, indexer.neighbour_arrays(query, 3))[0] == "new"
        other.add([text("new", "something else entirely", "X")])
        assert ids(indexer, indexer.neighbour_arrays(query, 3))[:1] != ["new"]
        other.add([text("new", "quixotic windmill", "X")])
        assert ids(indexer, indexer.neighbour_arrays(query, 3))[0] == "new"
        other.remove(["new"])
        assert "new" not in ids(indexer, indexer.neighbour_arrays(query, 3))


def test_a_grown_index_finds_what_a_new_one_finds(tmp_path: Path) -> None:
    documents = list(demo_documents(200))
    queries = [Document(f"q{d.id}", d.title, language="en") for d in demo_documents(220)][200:]
    with Indexer.create(tmp_path / "whole", language="en") as whole:
        whole.add(documents)
        expected = whole.neighbour_arrays(queries, 10)
    with Indexer.create(tmp_path / "grown", language="en") as grown:
        for start in range(0, 200, 40):
            grown.add(documents[start : start + 40])
            grown.build()
        found = grown.neighbour_arrays(queries, 10)
    assert np.array_equal(found.rows, expected.rows)
    assert found.scores == pytest.approx(expected.scores, rel=1e-4)


def test_threads_change_nothing(indexer: Indexer) -> None:
    queries = [Document(f"q{d.id}", d.title, language="en") for d in demo_documents(100)]
    results = []
    for threads in (1, 4):
        changed(indexer, "neighbours", threads=threads)
        # A pool keeps its size, so each number of threads takes another indexer.
        with Indexer.open(indexer.collection.path) as other:
            results.append(other.neighbour_arrays(queries, 10))
            assert other.runtime.indexes.context.threads == threads
    assert np.array_equal(results[0].rows, results[1].rows)
    assert np.array_equal(results[0].scores, results[1].scores)


def test_pruned_queries_keep_the_strongest_terms(indexer: Indexer) -> None:
    indexer.add([text("rare", "quixotic windmill", "X")])
    query = [text("q", "quixotic wheat soil river field season")]
    changed(indexer, "neighbours", max_query_terms=1)
    search = indexer.search()
    found = search.search(search.texts(query), 5)
    same = search.search(search.texts([text("copy", "quixotic windmill")]), 1)
    assert found.rows[0].tolist() == [300, NO_NEIGHBOUR, NO_NEIGHBOUR, NO_NEIGHBOUR, NO_NEIGHBOUR]
    # Measured against what the pruned query itself would score.
    assert same.rows[0].tolist() == [300]
    assert same.distances("self")[0, 0] == 0
    assert same.duplicates == (("copy", 300),)


def test_matched_terms(indexer: Indexer) -> None:
    indexer.add([text("a", "quixotic windmill quixotic rye", "X")])
    indexer.build()
    stored = indexer.collection.texts_of([300])
    query = text("q", "quixotic windmill tower")
    (matches,) = indexer.search().matched_terms(query, stored)
    assert [match.term for match in matches] == ["quixot", "windmil"]
    assert sum(match.share for match in matches) == pytest.approx(1)


HEADINGS = {"n1": "Quixotic windmills", "n2": "Rye bread", "n3": "Rye"}


@pytest.fixture
def named(tmp_path: Path) -> Iterator[Indexer]:
    """Documents whose headings have words that their texts lack."""
    vocabulary = Vocabulary(Concept(key, {"en": name}) for key, name in HEADINGS.items())
    made = Indexer.create(tmp_path / "n", vocabulary, language="en")
    made.add(
        [
            text("mill", "grinding flour by wind", "n1"),
            text("loaf", "sourdough loaf oven", "n2", "n3"),
            text("field", "harvest of cereals", "n3"),
            text("knight", "quixotic novel of windmills", "n2"),
        ]
    )
    yield made
    made.close()


def test_documents_are_found_by_the_names_of_their_headings(named: Indexer) -> None:
    near = named.neighbour_arrays([text("q", "windmills")], 5)
    assert sorted(ids(named, near)) == ["knight", "mill"]
    changed(named, "neighbours", heading_weight=0.0)
    near = named.neighbour_arrays([text("q", "windmills")], 5)
    assert ids(named, near) == ["knight"]


def test_a_heading_word_counts_once_however_many_headings_have_it(named: Indexer) -> None:
    near = named.neighbour_arrays([text("q", "rye")], 5)
    searcher = named.search()._searcher
    # "rye bread" and "rye" are two words: as rare as in the other documents, in a longer field.
    assert searcher.document_frequencies("stems_headings", ["rye"]) == [3]
    assert ids(named, near)[0] == "field"
    assert sorted(ids(named, near)[1:]) == ["knight", "loaf"]
    assert near.scores[0, 1] == near.scores[0, 2]


def test_a_document_never_searches_with_its_own_headings(named: Indexer) -> None:
    mill = named.document("mill")
    assert mill is not None
    assert mill.labels == ("n1",)
    # Its heading names the text of "knight", but its own text does not.
    assert ids(named, named.neighbour_arrays([mill], 5)) == []
    held_out = Document("new", mill.title, labels=mill.labels, language="en")
    assert ids(named, named.neighbour_arrays([held_out], 5)) == ["mill"]
    assert (named.search().search_rows(np.array([0]), 5).rows == NO_NEIGHBOUR).all()
    named.add([text("wind", "wind", "n3")])
    assert ids(named, named.neighbour_arrays([mill], 5)) == ["wind"]
    (terms,) = named.neighbours([mill], 1, terms=9)
    assert [(one.kind, one.term) for one in terms[0].terms] == [("stems", "wind")]


def test_corrected_headings_are_searched(named: Indexer) -> None:
    query = [text("q", "windmills")]
    named.build()
    named.add([Correction("mill", ("n2",)), Correction("field", ("n1",))])
    assert sorted(ids(named, named.neighbour_arrays(query, 5))) == ["field", "knight"]
    with Indexer.open(named.collection.path) as other:
        assert other.build() == 0
        other.remove(["field"])
    assert ids(named, named.neighbour_arrays(query, 5)) == ["knight"]


def test_a_deprecated_heading_goes_by_its_successors_name(tmp_path: Path) -> None:
    concepts = [
        Concept("old", {"en": "Phthisis"}, deprecated=True, replaced_by=("gone", "new")),
        Concept("new", {"en": "Tuberculosis"}),
        Concept("dead", {"en": "Dropsy"}, deprecated=True),
    ]
    with Indexer.create(tmp_path / "c", Vocabulary(concepts), language="en") as indexer:
        indexer.add([text("a", "lungs", "old"), text("b", "heart", "dead")])
        queries = [text("q", name) for name in ("tuberculosis", "phthisis", "dropsy")]
        near = indexer.neighbour_arrays(queries, 3)
        assert [ids(indexer, near, place) for place in range(3)] == [["a"], [], ["b"]]


def test_headings_are_named_in_the_language_of_the_document(tmp_path: Path) -> None:
    concepts = [
        Concept("cat", {"en": "Cats", "de": "Katzen"}),
        Concept("economics", {"en": "Economics"}),
        Concept("http://example.org/bare", {}),
    ]
    with Indexer.create(tmp_path / "c", Vocabulary(concepts)) as indexer:
        indexer.add(
            [
                Document("de", "Haustier", labels=("cat", "economics"), language="de"),
                Document("en", "pet", labels=("cat",), language="en"),
                Document("bare", "animal", labels=("http://example.org/bare",), language="en"),
            ]
        )
        queries = [
            Document("1", "Katze", language="de"),
            Document("2", "cat", language="en"),
            # No German name: the English one is found by texts in both languages.
            Document("3", "economics", language="de"),
            Document("4", "economic", language="en"),
            Document("5", "http example org", language="en"),
        ]
        near = indexer.neighbour_arrays(queries, 3)
        lists = [ids(indexer, near, place) for place in range(5)]
        assert lists == [["de"], ["en"], ["de"], ["de"], []]


def test_labels_without_a_vocabulary_are_words_too(indexer: Indexer) -> None:
    indexer.add([text("a", "lungs", "Quixotic zeppelins")])
    near = indexer.neighbour_arrays([text("q", "zeppelin")], 3)
    assert ids(indexer, near) == ["a"]


def test_terms_weigh_by_their_frequency_and_in_titles_more(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add(
            [text("rye", "rye", "L"), text("oats", "oats", "L"), text("barley", "barley", "L")]
        )
        query = [Document("q", "barley", "oats oats rye", language="en")]

        def scores() -> dict[str, float]:
            near = indexer.neighbour_arrays(query, 3)
            return dict(zip(ids(indexer, near), near.scores[0].tolist(), strict=True))

        by_log = scores()
        assert by_log["oats"] == pytest.approx(by_log["rye"] * (1 + math.log(2)), rel=1e-5)
        assert by_log["barley"] == pytest.approx(by_log["rye"] * (1 + math.log(3)), rel=1e-5)
        changed(indexer, "neighbours", title_weight=1)
        assert scores()["barley"] == pytest.approx(by_log["rye"], rel=1e-5)
        changed(indexer, "neighbours", term_frequency="once", title_weight=5)
        assert scores() == pytest.approx(dict.fromkeys(("rye", "oats", "barley"), by_log["rye"]))


def test_a_copy_is_at_0_and_nothing_is_farther_than_1(named: Indexer) -> None:
    copy = text("copy", "grinding flour by wind")
    for weight in (0.0, 1.0, 20.0):
        changed(named, "neighbours", heading_weight=weight)
        near = named.neighbour_arrays([copy, text("q", "rye bread oven windmills")], 4)
        distances = near.distances("self")
        assert distances[0, 0] == 0
        assert near.duplicates == (("copy", 0),)
        assert ((distances >= 0) & (distances <= 1)).all()
        assert (np.diff(near.scores) <= 0).all()
        assert (near.distances("top")[:, 0] == 0).all()


def test_matched_terms_of_headings_are_marked(named: Indexer) -> None:
    query = Document("q", "windmills", "the windmills of quixotic knights", language="en")
    ((first, second),) = named.neighbours([query], 2, terms=9)
    mill, knight = (first, second) if first.id == "mill" else (second, first)
    assert (mill.id, knight.id) == ("mill", "knight")
    assert {(one.kind, one.term) for one in mill.terms} == {
        ("headings", "quixot"),
        ("headings", "windmil"),
    }
    assert {one.kind for one in knight.terms} == {"stems"}
    # The shares are those of the score itself.
    for near in (mill, knight):
        assert sum(one.share for one in near.terms) == pytest.approx(1)
    weights = {"windmil": 1 + math.log(4), "quixot": 1.0}
    shares = {one.term: one.share for one in mill.terms}
    # Equally rare and in the same field: the shares are as the weights.
    ratio = weights["windmil"] / weights["quixot"]
    assert shares["windmil"] / shares["quixot"] == pytest.approx(ratio, rel=1e-5)


def test_pruned_queries_search_headings_with_the_same_terms(named: Indexer) -> None:
    named.add([text(f"oven {n}", "oven", "n3") for n in range(5)])
    changed(named, "neighbours", max_query_terms=1)
    # A rare word, in texts and headings; the frequent one is looked for in neither.
    near = named.neighbour_arrays([text("q", "quixotic oven")], 9)
    assert sorted(ids(named, near)) == ["knight", "mill"]
    near = named.neighbour_arrays([text("q", "oven")], 9)
    assert len(ids(named, near)) == 6


def test_words_that_only_headings_have(named: Indexer) -> None:
    near = named.neighbour_arrays([text("q", "bread"), text("r", "zeppelin")], 5)
    assert sorted(ids(named, near)) == ["knight", "loaf"]
    assert near.own_scores[0] > 0
    assert (near.distances("self")[0, :2] < 1).all()
    assert ids(named, near, 1) == []
    assert near.own_scores[1] == 0


def test_an_index_without_headings_is_replaced(named: Indexer) -> None:
    folder = named.collection.path
    changed(named, "neighbours", heading_weight=0.0)
    named.build()
    (before,) = (folder / "indexes").glob("terms-*")
    named.close()
    # As in a labelkin.toml of an earlier version, which lacks the key.
    config = folder / CONFIG_NAME
    lines = config.read_text().splitlines()
    config.write_text("\n".join(line for line in lines if not line.startswith("heading_weight")))
    with Indexer.open(folder) as again:
        assert again.build() == 4
        (after,) = (folder / "indexes").glob("terms-*")
        assert after != before
        assert again.info().indexes == ["stems"]
        # And back: the index with headings is not needed any more once it is behind.
        changed(again, "neighbours", heading_weight=0.0)
        assert ids(again, again.neighbour_arrays([text("q", "windmills")], 5)) == ["knight"]
        assert list((folder / "indexes").glob("terms-*")) == [after]
    with Indexer.open(folder) as again:
        again.add([text("new", "zeppelin", "n1")])
        again.build()
        assert list((folder / "indexes").glob("terms-*")) == [before]


@pytest.mark.parametrize(
    "values",
    [{"heading_weight": 2.0}, {"term_frequency": "once"}, {"title_weight": 2}],
)
def test_fingerprints_tell_weights_apart(named: Indexer, values: dict[str, object]) -> None:
    before = named.search().settings_fingerprint()
    changed(named, "neighbours", **values)
    assert named.search().settings_fingerprint() != before


def test_the_papers_search_has_the_fingerprint_of_earlier_versions(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c", language="en", recipe="paper") as indexer:
        indexer.add([text("a", "rye", "L")])
        fingerprint = indexer.search().settings_fingerprint()
        assert fingerprint["engine"] == "bm25"
        assert {*fingerprint} == {"representation", "engine", "max_query_terms"}
        assert list(fingerprint["representation"]) == ["stems"]


def test_fingerprints_tell_states_apart(indexer: Indexer, tmp_path: Path) -> None:
    before = indexer.neighbour_arrays([text("q", "wheat")], 3)
    before.save(tmp_path / "n.npz")
    assert Neighbours.load(tmp_path / "n.npz", indexer.search().fingerprint())
    indexer.remove(["demo-00001"])
    assert indexer.search().fingerprint() != before.fingerprint


def test_an_index_that_is_damaged_or_gone_is_rebuilt(indexer: Indexer) -> None:
    query = [text("q", "wheat storage")]
    expected = indexer.neighbour_arrays(query, 5)
    folder = indexer.collection.path
    indexer.close()
    (index,) = (folder / "indexes").glob("terms-*")
    (index / "meta.json").write_text("{")
    with Indexer.open(folder) as again:
        assert np.array_equal(again.neighbour_arrays(query, 5).rows, expected.rows)
    shutil.rmtree(index)
    with Indexer.open(folder) as again:
        assert np.array_equal(again.neighbour_arrays(query, 5).rows, expected.rows)
        assert again.build() == 0


def test_a_database_restored_from_a_backup(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with Indexer.create(folder, language="en") as indexer:
        indexer.add(demo_documents(50))
        indexer.build()
    shutil.copy(folder / "documents.sqlite", tmp_path / "backup")
    with Indexer.open(folder) as indexer:
        indexer.add([text("lost", "quixotic zeppelin", "X")])
        indexer.build()
    shutil.copy(tmp_path / "backup", folder / "documents.sqlite")
    with Indexer.open(folder) as indexer:
        indexer.add([text("other", "harpsichord", "X")])
        found = indexer.neighbour_arrays(
            [text("q", "quixotic zeppelin"), text("r", "harpsichord")], 3
        )
        assert ids(indexer, found, 0) == []
        assert ids(indexer, found, 1) == ["other"]


def test_a_collection_that_cannot_be_written_to_is_searched(
    indexer: Indexer, caplog: pytest.LogCaptureFixture
) -> None:
    query = [text("q", "quixotic windmill wheat")]
    indexer.build()
    indexer.add([text("late", "quixotic windmill", "X")])
    before = sorted(indexer.collection.path.rglob("*"))
    with Indexer.open(indexer.collection.path, read_only=True) as reader:
        assert ids(reader, reader.neighbour_arrays(query, 3))[0] == "late"
        assert "using a temporary copy" in caplog.messages[0]
        indexer.add([text("later", "quixotic windmill", "X")])
        assert set(ids(reader, reader.neighbour_arrays(query, 3))[:2]) == {"late", "later"}
    after = sorted(indexer.collection.path.rglob("*"))
    assert [p for p in after if "indexes" in p.parts] == [p for p in before if "indexes" in p.parts]


@contextmanager
def write_lock(folder: Path) -> Iterator[None]:
    """The lock of a process that builds the index in `folder`."""
    with FileLock(beside(folder, "write")) as lock:
        assert lock.take()
        yield


def test_while_another_process_builds(
    indexer: Indexer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("labelkin.store.derived.WRITER_PATIENCE_SECONDS", 0.2)
    # The busy index is asked for again at once.
    monkeypatch.setattr("labelkin.runtime._BUSY_SECONDS", 0.0)
    query = [text("q", "quixotic windmill wheat")]
    first = indexer.neighbour_arrays(query, 3)
    (index,) = (indexer.collection.path / "indexes").glob("terms-*")
    with write_lock(index):
        indexer.add([text("new", "quixotic windmill", "X")])
        # Nothing has been searched before: there is no earlier state to answer from.
        with (
            Indexer.open(indexer.collection.path) as other,
            pytest.raises(CollectionBusyError, match="another process is building the index"),
        ):
            other.neighbour_arrays(query, 3)
        # The whole state of before, which does not pass for the newest one.
        stale = indexer.neighbour_arrays(query, 3)
        assert np.array_equal(stale.rows, first.rows)
        assert stale.fingerprint == first.fingerprint
        assert "answering without the newest documents" in caplog.messages[-1]
    assert ids(indexer, indexer.neighbour_arrays(query, 3))[0] == "new"
    assert stale.fingerprint != indexer.search().fingerprint()


def test_a_word_that_only_a_removed_document_had(indexer: Indexer) -> None:
    stored = next(iter(demo_documents(1)))
    copy = Document("copy", stored.title, stored.body, language="en")
    expected = indexer.neighbour_arrays([copy], 3)
    indexer.add([text("z", "quixotic windmill", "X")])
    indexer.build()
    indexer.remove(["z"])
    with Indexer.open(indexer.collection.path) as other:
        assert ids(other, other.neighbour_arrays([text("q", "quixotic")], 3)) == []
        found = other.neighbour_arrays([copy], 3)
    assert found.own_scores == pytest.approx(expected.own_scores, rel=0.01)
    assert found.distances()[0, 0] == 0
    assert found.distances()[0, 1] > 0.2


class FixedConfig:
    """Settings that only one of several open indexers has."""

    def __init__(self, config: Config) -> None:
        self._settings = config

    def current(self) -> Config:
        return self._settings


def with_title_weight(config: Config, weight: int) -> Config:
    section = config.representation.model_copy(update={"title_weight": weight})
    return config.model_copy(update={"representation": section})


def test_another_index_is_dropped_only_when_nobody_has_it_open(indexer: Indexer) -> None:
    query = [text("q", "wheat storage")]
    expected = indexer.neighbour_arrays(query, 5)
    folders = indexer.collection.path / "indexes"
    with Indexer.open(indexer.collection.path) as other:
        other.collection._config = FixedConfig(with_title_weight(other.config, 3))
        other.build()
        assert len(list(folders.glob("terms-*"))) == 2
        indexer.add([text("new", "quixotic windmill", "X")])
        assert ids(indexer, indexer.neighbour_arrays([text("q", "quixotic")], 3)) == ["new"]
        assert np.array_equal(indexer.neighbour_arrays(query, 5).rows, expected.rows)
        indexer.close()
        other.add([text("newer", "quixotic windmill", "X")])
        other.build()
        assert len(list(folders.glob("terms-*"))) == 1
        assert len(list(folders.glob(".terms-*"))) == 2


class Words:
    """A kind of terms that counts the texts it is asked for."""

    asked = 0

    def analyse(
        self, documents: Sequence[Document], kinds: Sequence[str]
    ) -> Iterator[list[list[str]]]:
        for document in documents:
            self.asked += 1
            yield [document.text.split() for _ in kinds]


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> Words:
    made = Words()
    for name in ("lemmas", "nps"):
        monkeypatch.setitem(KINDS, name, lambda name, _: TermKind(name, "1", made))
    return made


def test_an_index_of_more_kinds_serves_until_it_is_behind(indexer: Indexer, words: Words) -> None:
    folder = indexer.collection.path
    query = [text("q", "wheat storage")]
    expected = indexer.neighbour_arrays(query, 5).rows
    indexer.close()
    with Indexer.open(folder) as other:
        other.build("lemmas+nps+stems")
        analysed = words.asked
        other.neighbour_arrays(query, 5, representation="nps")
        other.neighbour_arrays(query, 5, representation="lemmas")
        assert words.asked == analysed + 2
        # The index of the settings stays.
        assert len(list((folder / "indexes").glob("terms-*"))) == 2
        assert np.array_equal(other.neighbour_arrays(query, 5).rows, expected)
    with Indexer.open(folder) as other:
        other.add([text("new", "quixotic windmill", "X")])
        # A search updates the index of its own representation only.
        assert ids(other, other.neighbour_arrays([text("q", "quixotic")], 3)) == ["new"]
        assert words.asked == analysed + 2
        found = other.neighbour_arrays([text("q", "windmill")], 3, representation="nps")
        assert ids(other, found) == ["new"]
        # The document, the name of its heading and the text to search with.
        assert words.asked == analysed + 5


def test_representations_in_use_are_kept_up_to_date(indexer: Indexer, words: Words) -> None:
    query = [text("q", "quixotic")]
    indexer.neighbour_arrays(query, 3)
    indexer.neighbour_arrays(query, 3, representation="nps")
    indexer.add([text("new", "quixotic windmill", "X")])
    analysed = words.asked
    # One request brings the indexes of all representations up to date that were asked for before.
    indexer.neighbour_arrays(query, 3)
    # The document and the name of its heading.
    assert words.asked == analysed + 2
    found = indexer.neighbour_arrays(query, 3, representation="nps")
    assert ids(indexer, found) == ["new"]
    assert words.asked == analysed + 3


def test_a_search_in_a_larger_index_leaves_it_when_it_is_behind(
    indexer: Indexer, words: Words
) -> None:
    indexer.build("lemmas+stems")
    analysed = words.asked
    query = [text("q", "quixotic")]
    assert ids(indexer, indexer.neighbour_arrays(query, 3)) == []
    indexer.add([text("new", "quixotic windmill", "X")])
    assert ids(indexer, indexer.neighbour_arrays(query, 3)) == ["new"]
    assert words.asked == analysed


def test_a_smaller_index_does_not_drop_a_larger_one(indexer: Indexer, words: Words) -> None:
    folder = indexer.collection.path
    indexer.build("lemmas+nps")
    indexer.close()
    (larger,) = (folder / "indexes").glob("terms-*")
    with Indexer.open(folder) as other:
        other.add([text("new", "quixotic windmill", "X")])
        other.build("nps")
        assert larger.is_dir()
        assert len(list((folder / "indexes").glob("terms-*"))) == 2
    with Indexer.open(folder) as other:
        other.build("lemmas+nps")
        assert list((folder / "indexes").glob("terms-*")) == [larger]


def test_an_index_of_an_unknown_kind_is_passed_over(indexer: Indexer) -> None:
    folder = indexer.collection.path / "indexes" / "terms-future"
    for version in (1, 99):
        folder.mkdir(parents=True)
        record = {"kinds": {"dreams": "1"}, "format_version": version, "pending": None}
        (folder / "labelkin.json").write_text(json.dumps(record))
        with Indexer.open(indexer.collection.path) as other:
            assert other.neighbour_arrays([text("q", "wheat")], 3).rows[0, 0] != NO_NEIGHBOUR


def test_damage_that_shows_while_searching(indexer: Indexer) -> None:
    query = [text("q", "wheat storage")]
    expected = indexer.neighbour_arrays(query, 5)
    indexer.close()
    (index,) = (indexer.collection.path / "indexes").glob("terms-*")
    for path in index.glob("*.term"):
        content = path.read_bytes()
        path.write_bytes(bytes(len(content) // 2) + content[len(content) // 2 :])
    with Indexer.open(indexer.collection.path) as again:
        assert np.array_equal(again.neighbour_arrays(query, 5).rows, expected.rows)


def test_a_lost_record_and_a_restored_backup(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with Indexer.create(folder, language="en") as indexer:
        indexer.add(demo_documents(50))
    shutil.copy(folder / "documents.sqlite", tmp_path / "backup")
    with Indexer.open(folder) as indexer:
        indexer.add([text("lost", "quixotic windmill", "X")])
        records: list[Record] = []

        def lose(engine: TantivyEngine, record: Record) -> None:
            records.append(record)
            if record.pending is None:
                raise KeyboardInterrupt
            write(engine, record)

        write = TantivyEngine._write_record
        with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(TantivyEngine, "_write_record", lose)
            indexer.build()
        assert [record.pending is None for record in records] == [False, True]
    # The commit counts although its record was lost …
    with Indexer.open(folder) as indexer:
        assert indexer.build() == 0
        assert ids(indexer, indexer.neighbour_arrays([text("q", "quixotic")], 1)) == ["lost"]
        shutil.rmtree(folder / "indexes")
    with (
        Indexer.open(folder) as indexer,
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(KeyboardInterrupt),
    ):
        patch.setattr(TantivyEngine, "_write_record", lose)
        indexer.build()
    # … but not after the database was restored from a backup.
    shutil.copy(tmp_path / "backup", folder / "documents.sqlite")
    with Indexer.open(folder) as indexer:
        indexer.add([text("other", "harpsichord", "X")])
        found = indexer.neighbour_arrays([text("q", "quixotic"), text("r", "harpsichord")], 3)
        assert ids(indexer, found, 0) == []
        assert ids(indexer, found, 1) == ["other"]


def test_mixed_batches_are_not_joined(indexer: Indexer) -> None:
    first = indexer.neighbour_arrays([text("q", "wheat")], 3)
    indexer.add([text("new", "wheat", "X")])
    with pytest.raises(StaleNeighboursError, match="the collection has changed"):
        Neighbours.joined([first, indexer.neighbour_arrays([text("q", "wheat")], 3)])


def test_k_has_bounds(indexer: Indexer) -> None:
    with pytest.raises(ConfigError, match="k is 100000000"):
        indexer.neighbour_arrays([text("q", "wheat")], 100_000_000)
    assert indexer.neighbour_arrays([text("q", "wheat")], 0).rows.shape == (1, 0)


@pytest.mark.mount
@pytest.mark.parametrize("behind", [False, True])
def test_a_read_only_disk(behind: bool, tmp_path: Path, mounted: Mounted) -> None:
    with mounted(tmp_path / "disk", "size=30m") as mount:
        folder = tmp_path / "disk" / "c"
        with Indexer.create(folder, language="en") as indexer:
            indexer.add(demo_documents(100))
            indexer.build()
            if behind:
                indexer.add([text("late", "quixotic windmill", "X")])
        mount("remount", "ro")
        with Indexer.open(folder) as indexer:
            assert indexer.neighbour_arrays([text("q", "wheat")], 3).rows[0, 0] != NO_NEIGHBOUR
            late = ids(indexer, indexer.neighbour_arrays([text("q", "quixotic")], 3))
            assert late == (["late"] if behind else [])


@pytest.mark.mount
def test_a_full_disk_while_building(tmp_path: Path, mounted: Mounted) -> None:
    with mounted(tmp_path / "disk", "size=4m"):
        folder = tmp_path / "disk" / "c"
        with Indexer.create(folder, language="en") as indexer:
            indexer.add(demo_documents(500))
            ballast = tmp_path / "disk" / "ballast"
            with suppress(OSError), ballast.open("wb") as file:
                while True:
                    file.write(b"x" * 1000)
                    file.flush()
            with pytest.raises(CollectionFullError, match="the disk is full"):
                indexer.build()
            ballast.unlink()
            assert indexer.build() == 500


BUILD = """
import sys
import labelkin.neighbours.tantivy_engine as tantivy_engine
from labelkin import Indexer
tantivy_engine._ROWS_A_COMMIT = 1
with Indexer.open(sys.argv[1]) as indexer:
    indexer.build(progress=lambda done, total: print(done, flush=True))
"""


def test_killed_while_building(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add(demo_documents(4000))
    first_rows = []
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", BUILD, str(tmp_path / "c")], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        if line := process.stdout.readline():
            first_rows.append(int(line))
            time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
        process.stdout.close()
        process.wait()
    assert len(first_rows) > 1
    queries = [Document(f"q{d.id}", d.title, language="en") for d in demo_documents(50)]
    with Indexer.open(tmp_path / "c") as indexer:
        rest = indexer.build()
        assert rest < 4000
        found = indexer.neighbour_arrays(queries, 20)
        shutil.rmtree(tmp_path / "c" / "indexes")
    with Indexer.open(tmp_path / "c") as indexer:
        assert indexer.build() == 4000
        expected = indexer.neighbour_arrays(queries, 20)
    assert np.array_equal(found.rows, expected.rows)


HOSTILE = [
    "",
    " ",
    "word",
    "a",
    "wheat " * 170_000,
    "?!.,;:()[]{}<>'\"\\/|@#$%^&*-+=~`",
    "title:(wheat OR soil)~2^3",
    "stems:wheat AND NOT row:[0 TO *]",
    'wheat"~5 +soil -river *:*',
    "row:5",
    "key:0",
    "*",
    "wh?at*",
    "/wheat.*/",
    "wheat\x00soil",
    "\x00",
    "\ud800wheat",
    "مرحبا بالعالم القمح",
    "שלום עולם",
    "\u202ewheat\u202c soil",
    "w\u200bh\u200be\u200ba\u200bt",
    "\u200b\u200c\u200d\ufeff",
    "𝔴𝔥𝔢𝔞𝔱",
    "ｗｈｅａｔ",
    "🌾🌾🌾",
    "小麦和土壤的储存",
    "小麦" * 20_000,
    "zzzzqqqq xxxxyyyy",
    "0 1 2 3 4 5 6 7 8 9",
    "1e308 NaN -inf",
    "the of and to in",
    "x" * 1_000_000,
    "wheat\n" * 5,
    "\n\n\n",
    "\t",
    "a_b_c wheat_soil",
    "--drop-table; DROP TABLE documents;",
    "' OR 1=1 --",
    "${jndi:ldap://x}",
    "{{7*7}} <%= 7 %>",
    "<script>alert(1)</script>",
    "../../../etc/passwd",
    "%s%s%n %d {0}",
    "wheat'; wheat",
    "İstanbul ıssız",
    "ß SS ẞ",
    "e\u0301" * 1000,
    "\U0010ffff wheat",
    "wheat" + "\u0300" * 5000,
    "AND OR NOT",
    "^wheat^2 $soil$",
    "NULL None undefined",
]


def test_fifty_hostile_texts(indexer: Indexer) -> None:
    assert len(HOSTILE) >= 50
    documents = [Document(f"h{n}", body=words) for n, words in enumerate(HOSTILE)]
    found = indexer.neighbour_arrays(documents, 10)
    assert found.rows.shape == (len(HOSTILE), 10)
    assert np.isfinite(found.scores).all()
    distances = found.distances("self")
    assert ((distances >= 0) & (distances <= 1)).all()
    by_text = dict(zip(HOSTILE, found.rows.tolist(), strict=True))
    # What reads like query syntax is words: the same neighbours as the words alone.
    (alone,) = indexer.neighbour_arrays([Document("w", body="title wheat soil")], 10).rows.tolist()
    assert by_text["title:(wheat OR soil)~2^3"] == alone
    for nothing in ("", "*", "key:0", "zzzzqqqq xxxxyyyy", "the of and to in"):
        assert by_text[nothing] == [NO_NEIGHBOUR] * 10, nothing
    wheat = by_text["wheat\n" * 5]
    assert wheat != [NO_NEIGHBOUR] * 10
    for same in ("ｗｈｅａｔ", "𝔴𝔥𝔢𝔞𝔱", "wheat " * 170_000):
        assert by_text[same] == wheat
