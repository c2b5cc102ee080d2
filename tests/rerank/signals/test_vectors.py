from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from labelkin import Document, Indexer
from labelkin.demo import demo_concepts, demo_documents
from labelkin.represent.lsa import LsaEncoder
from labelkin.rerank.features import Evidence, Features, Knowledge, find_candidates
from labelkin.rerank.pairs import Pairs
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.rerank.signals import SIGNALS
from labelkin.rerank.signals.vectors import (
    NameVectors,
    VectorKnowledge,
    encode_names,
    fit_ridge,
)
from labelkin.rerank.training import RerankTrainer
from labelkin.rerank.training_data import TrainingContext
from labelkin.scoring.queries import Queries
from labelkin.scoring.settings import RERANK_DEPTH
from labelkin.store.held_out import HeldOut
from labelkin.vocab import Concept, Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

pytest.importorskip("faiss", reason="needs the extra `dense`")

SETTINGS = RerankTrainingSettings(documents=40, linear=False, threads=1, encoder="lsa")
DOCUMENTS = 240
WIDTH = 9
SIGNAL = SIGNALS["vectors"]


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexer]:
    """A collection with documents, one of them without a text, and deprecated headings."""
    concepts = list(demo_concepts(0))
    concepts += [
        Concept("X1", {"en": concepts[0].names["en"]}, deprecated=True),
        Concept("X2", {}),
        Concept("X3", {"en": concepts[0].names["en"]}),
    ]
    path = tmp_path_factory.mktemp("vectors") / "c"
    with Indexer.create(path, Vocabulary(concepts), language="en") as indexer:
        indexer.add(demo_documents(DOCUMENTS, 0))
        indexer.add([Document("no text", "", labels=(concepts[0].id,))])
        yield indexer


def trainer_of(indexer: Indexer, held_out: HeldOut | None = None) -> RerankTrainer:
    views = indexer.runtime.views()
    return RerankTrainer(
        views,
        indexer.runtime.models,
        indexer.search(),
        SETTINGS,
        held_out or SETTINGS.held_out(views.snapshot),
        indexes=indexer.runtime.indexes,
    )


@pytest.fixture(scope="module")
def knowledge(collection: Indexer) -> Knowledge:
    return trainer_of(collection).collect()[1]


@pytest.fixture
def queries(collection: Indexer) -> Queries:
    texts = list(demo_documents(DOCUMENTS + 6, 0))[DOCUMENTS:]
    return collection.queries([*texts, Document("", "", language="en")], RERANK_DEPTH)


@pytest.fixture
def evidence(queries: Queries, knowledge: Knowledge) -> Evidence:
    return Evidence(queries, knowledge)


def some_vectors(seed: int = 0) -> tuple[np.ndarray, csr_matrix]:
    """Vectors with a common direction, and labels that depend on them; one text has none."""
    from scipy.sparse import csr_matrix

    random = np.random.default_rng(seed)
    vectors = (random.normal(size=(120, 8)) + 2 * np.eye(8)[0]).astype(np.float32)
    labels = (vectors @ random.normal(size=(8, 5)) > 1.5).astype(np.float32)
    vectors[7] = 0
    return vectors, csr_matrix(labels)


def parts(vectors: np.ndarray, labels: csr_matrix, size: int) -> list[Any]:
    return [(vectors[at : at + size], labels[at : at + size]) for at in range(0, 120, size)]


def all_pairs(documents: int, width: int) -> Pairs:
    return Pairs(np.arange(documents * width), documents, width)


@pytest.mark.parametrize("size", [120, 33, 1])
def test_the_regression_is_the_closed_form(size: int) -> None:
    vectors, labels = some_vectors()
    ridge = fit_ridge(parts(vectors, labels, size), np.array([0, 2, 4, 5, 8]))
    known = np.delete(np.arange(120), 7)
    x, y = vectors[known].astype(np.float64), labels.toarray()[known].astype(np.float64)
    centred = x - x.mean(0)
    gram = centred.T @ centred
    penalty = 0.03 * np.trace(gram) / 8
    weights = np.linalg.solve(gram + penalty * np.eye(8), centred.T @ (y - y.mean(0)))
    expected = centred @ weights + y.mean(0)
    scores = ridge.scores(vectors[known], all_pairs(119, WIDTH)).reshape(119, WIDTH)
    np.testing.assert_allclose(scores[:, [0, 2, 4, 5, 8]], expected, atol=4e-3)
    assert np.all(scores[:, [1, 3, 6, 7]] == -1)


def test_the_best_are_those_with_the_highest_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labelkin.rerank.signals.vectors._BEST", 2)
    monkeypatch.setattr("labelkin.rerank.signals.vectors._CHUNK", 7)
    vectors, labels = some_vectors()
    ridge = fit_ridge(parts(vectors, labels, 50), np.array([0, 2, 4, 5, 8]))
    scores = ridge.scores(vectors, all_pairs(120, WIDTH)).reshape(120, WIDTH)
    expected = {
        document * WIDTH + int(column)
        for document in range(120)
        for column in np.argsort(-scores[document])[:2]
        if document != 7
    }
    keys = ridge.best(vectors, WIDTH)
    assert len(keys) == 2 * 119
    assert {*keys.tolist()} == expected
    assert np.all(scores[7] == -1)


def test_small_weights_keep_their_digits() -> None:
    vectors, labels = some_vectors()
    usual = fit_ridge(parts(vectors, labels, 50), np.arange(5))
    # Vectors of another size: weights that half precision alone would round to zero.
    large = fit_ridge(parts(vectors * 1e6, labels, 50), np.arange(5))
    pairs = all_pairs(120, 5)
    np.testing.assert_allclose(
        large.scores(vectors * 1e6, pairs), usual.scores(vectors, pairs), atol=4e-3
    )


@pytest.mark.parametrize("documents", [0, 3])
def test_nothing_to_fit(documents: int) -> None:
    from scipy.sparse import csr_matrix

    labels = csr_matrix((documents, 4), dtype=np.float32)
    vectors = np.zeros((documents, 8), dtype=np.float32)
    ridge = fit_ridge([(vectors, labels)], np.arange(4))
    assert len(ridge.columns) == 0
    text = np.ones((2, 8), dtype=np.float32)
    assert ridge.scores(text, all_pairs(2, 4)).tolist() == [-1.0] * 8
    assert len(ridge.best(text, 4)) == 0


def test_similarity_to_names() -> None:
    names = np.array([[1, 0], [0.6, 0.8]], dtype=np.float16)
    texts = np.array([[2, 0], [0, 0], [0, -3]], dtype=np.float32)
    found = NameVectors(names, np.array([1, 3])).similarities(texts, all_pairs(3, 4))
    expected = [[0, 1, 0, 0.6], [0, 0, 0, 0], [0, 0, 0, -0.8]]
    np.testing.assert_allclose(found.reshape(3, 4), expected, atol=1e-3)


def context_of(indexer: Indexer) -> TrainingContext:
    trainer = trainer_of(indexer)
    return trainer.context(np.arange(len(trainer.data.rows)))


def test_names_that_are_encoded(collection: Indexer) -> None:
    names = encode_names(context_of(collection))
    vocabulary = collection.vocabulary
    assert names.columns.tolist() == [
        column
        for column, concept in enumerate(vocabulary)
        if not concept.deprecated and concept.id != "X2"
    ]
    assert vocabulary.column("X1") not in names.columns
    # The same name twice, and the text of the name itself.
    assert np.array_equal(names.vectors[0], names.vectors[-1])
    text = collection.queries([Document("", vocabulary[0].names["en"], language="en")])
    pairs = Pairs(np.array([0]), 1, len(vocabulary))
    similarity = names.similarities(text.vectors("lsa"), pairs)
    assert similarity == pytest.approx(1, abs=1e-2)


def test_votes_of_the_nearest_by_vectors(collection: Indexer, evidence: Evidence) -> None:
    pairs = find_candidates(evidence).pairs
    values = SIGNAL.values(evidence, pairs, Features(evidence, pairs))
    label_sets = collection.snapshot().label_sets()
    near = collection.neighbour_arrays(evidence.queries.documents, 60, representation="lsa")
    by_terms = collection.neighbour_arrays(evidence.queries.documents, 60)
    assert not np.array_equal(near.rows, by_terms.rows)
    carried = 0
    for place, (document, column) in enumerate(zip(pairs.documents, pairs.columns, strict=True)):
        rows = near.rows[document]
        weights = (near.scores[document] / max(near.scores[document, 0], 1e-9)) ** 8
        has = np.array([row >= 0 and column in label_sets.columns(row) for row in rows])
        total = weights[rows >= 0].sum()
        share = weights[has].sum() / total if total else 0
        assert values["vector_votes"][place] == pytest.approx(share, abs=1e-3)
        assert values["vector_majority20"][place] == pytest.approx(has[:20].mean())
        assert values["vector_first"][place] == (np.argmax(has) if has.any() else 200)
        carried += has.any()
    assert 0 < carried < len(pairs)


def test_an_empty_text_has_no_evidence(evidence: Evidence) -> None:
    last = len(evidence) - 1
    pairs = Pairs(last * evidence.width + np.arange(evidence.width), len(evidence), evidence.width)
    values = SIGNAL.values(evidence, pairs, Features(evidence, pairs))
    for name, missing in (
        ("vector_votes", 0),
        ("vector_first", 200),
        ("vector_score", -1),
        ("name_similarity", 0),
    ):
        assert np.all(values[name] == missing), name
    keys = SIGNAL.propose(evidence)
    assert keys is not None
    assert not np.any(keys // evidence.width == last)


def test_it_proposes_by_votes_and_regression_only(
    evidence: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: VectorKnowledge = evidence.fitted("vectors")
    keys = SIGNAL.propose(evidence)
    assert keys is not None
    per_document = np.bincount(keys // evidence.width, minlength=len(evidence))
    assert per_document[:-1].min() > 40
    assert per_document.max() <= 80
    ridge = fitted.ridge.best(evidence.queries.vectors("lsa"), evidence.width)
    assert {*ridge.tolist()} < {*keys.tolist()}
    # Names change nothing.
    monkeypatch.setattr(NameVectors, "similarities", lambda *_: 1 / 0)
    assert np.array_equal(SIGNAL.propose(evidence), keys)


def test_a_saved_value_gives_the_same(
    collection: Indexer, queries: Queries, evidence: Evidence, knowledge: Knowledge
) -> None:
    fitted = knowledge.fitted["vectors"]
    saved = SIGNAL.to_arrays(fitted)
    assert {name for name, one in saved.items() if one.dtype == np.float16} == {"weights", "names"}
    loaded = SIGNAL.from_arrays(saved)
    assert loaded.encoder == "lsa"
    other = replace(knowledge, fitted={**knowledge.fitted, "vectors": loaded})
    again = Evidence(collection.queries(queries.documents, RERANK_DEPTH), other)
    pairs = find_candidates(evidence).pairs
    assert np.array_equal(pairs.keys, find_candidates(again).pairs.keys)
    expected = SIGNAL.values(evidence, pairs, Features(evidence, pairs))
    for name, values in SIGNAL.values(again, pairs, Features(again, pairs)).items():
        np.testing.assert_array_equal(values, expected[name], err_msg=name)


def test_without_an_encoder_it_takes_no_part(collection: Indexer) -> None:
    views = collection.runtime.views()
    settings = replace(SETTINGS, encoder="")
    trainer = RerankTrainer(
        views,
        collection.runtime.models,
        collection.search(),
        settings,
        settings.held_out(views.snapshot),
    )
    assert "vectors" not in trainer.groups
    assert "vectors" in trainer_of(collection).groups


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that have been encoded since the last look."""
    texts: list[str] = []
    usual = LsaEncoder.encode

    def encode(self: LsaEncoder, documents: Any) -> Any:
        texts.extend(document.text for document in documents)
        return usual(self, documents)

    monkeypatch.setattr(LsaEncoder, "encode", encode)
    return texts


def test_a_training_encodes_names_once_and_documents_never(
    tmp_path: Path, encoded: list[str]
) -> None:
    concepts = list(demo_concepts(0))
    with Indexer.create(tmp_path / "c", Vocabulary(concepts), language="en") as indexer:
        indexer.add(demo_documents(DOCUMENTS, 0))
        indexer.build("lsa")
        assert len(encoded) == DOCUMENTS
        encoded.clear()
        trainer = trainer_of(indexer)
        assert len(trainer._held_out.folds) == 2
        trainer.collect()
        assert sorted(encoded) == sorted(
            {one.names["en"] for one in concepts if not one.deprecated}
        )
        encoded.clear()
        # They are on disk now.
        trainer_of(indexer).collect()
        assert encoded == []


def test_a_request_encodes_its_texts_once(evidence: Evidence, encoded: list[str]) -> None:
    find_candidates(evidence)
    assert sorted(encoded) == sorted(one.text for one in evidence.queries.documents)


def test_held_out_documents_are_no_neighbours_and_train_nothing(
    collection: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = trainer_of(collection)
    held_out = trainer._held_out
    given: list[tuple[set[str], set[int]]] = []
    fitted: list[set[int]] = []
    usual_give, usual_fit = Queries.give_vectors, type(SIGNAL).fit

    def give(self: Queries, encoder: str, vectors: Any, neighbours: Any) -> None:
        assert neighbours.k == RERANK_DEPTH
        assert np.all(neighbours.rows[:, :60] >= 0)
        given.append(({one.id for one in self.documents}, {*neighbours.rows.ravel().tolist()}))
        usual_give(self, encoder, vectors, neighbours)

    def fit(self: Any, context: TrainingContext) -> VectorKnowledge:
        fitted.append({*context.texts.rows.tolist()})
        return usual_fit(self, context)

    monkeypatch.setattr(Queries, "give_vectors", give)
    monkeypatch.setattr(type(SIGNAL), "fit", fit)
    trainer.collect()
    ids = {row: one.id for row, one in collection.snapshot().texts_of(range(DOCUMENTS)).items()}
    assert len(given) == len(held_out.folds) == 2
    assert len(fitted) == 3
    for fold, (asked, near), rows in zip(held_out.folds, given, fitted[:2], strict=True):
        unseen = {*fold.unseen.tolist()}
        assert asked == {ids[row] for row in fold.rows.tolist()}
        assert {*fold.rows.tolist()} <= unseen
        assert not near & unseen
        assert not rows & unseen
    assert fitted[2] == {*held_out.rows.tolist()}
