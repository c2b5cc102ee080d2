"""The joint label autoencoder on a collection: scores, evidence, new and replaced headings."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labelkin import Concept, Document, Indexer, Vocabulary
from labelkin.autoencoder.ballots import NEIGHBOURS, Ballots, NamedLabels, cast_ballots
from labelkin.autoencoder.joint import JointAutoencoder
from labelkin.autoencoder.model import LabelModel
from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.demo import demo_concepts, demo_documents
from labelkin.neighbours.neighbours import Neighbours
from labelkin.scoring.decoder import Decoder
from labelkin.scoring.joint_decoder import JointDecoder
from labelkin.scoring.label_ae import LabelAe
from labelkin.scoring.mentions import named_labels
from labelkin.scoring.mix import Mix, MixRanked
from labelkin.scoring.policy import LabelPolicy
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import MixSettings, ScorerSettings, Settings
from labelkin.scoring.suggestion import CARRIED, NAMED, WORDS, Suggestion

pytest.importorskip("torch", reason="needs the extra `train`")

QUICK = TrainingSettings(
    preset="24",
    epochs=5,
    batch_size=32,
    device="cpu",
    learning_rate=0.005,
    min_frequency=1,
    precision="float32",
)
SETTINGS = Settings(
    method="label-ae", label_ae=ScorerSettings(count=None, threshold=0.1), knn=ScorerSettings()
)
NEW = "NEW"
DOCUMENTS = 300


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("joint") / "c"
    concepts = [*demo_concepts(0), Concept(NEW, {"en": "quixotic zeppelins"})]
    with Indexer.create(path, Vocabulary(concepts), language="en") as indexer:
        indexer.add(demo_documents(DOCUMENTS, 0))
        indexer.train_label_ae(QUICK)
    return path


@pytest.fixture
def indexer(made: Path) -> Iterator[Indexer]:
    with Indexer.open(made) as opened:
        yield opened


@pytest.fixture
def own(made: Path, tmp_path: Path) -> Iterator[Indexer]:
    """A copy that a test may change."""
    shutil.copytree(made, tmp_path / "c")
    with Indexer.open(tmp_path / "c") as opened:
        yield opened


@pytest.fixture(scope="module")
def texts() -> list[Document]:
    return [replace(d, id=f"q{n}") for n, d in enumerate(demo_documents(6, 7))]


def decoder_of(queries: Queries) -> JointDecoder:
    decoder = Decoder.of(queries)
    assert isinstance(decoder, JointDecoder)
    return decoder


class ByHand:
    """Logits of one document's labels, computed from what is left of its evidence."""

    def __init__(self, queries: Queries, place: int) -> None:
        self.decoder = decoder_of(queries)
        self.model = queries.model(LabelModel)
        self.autoencoder = JointAutoencoder(self.model)
        self.near = queries.neighbours(NEIGHBOURS)[place : place + 1]
        self.words = [queries.wording()[place]]
        self.named = named_labels(queries.mentions()).taken(np.array([place]))
        self.label_sets = queries.snapshot.label_sets()

    def logits(
        self,
        *,
        without: int | None = None,
        neighbours: bool = True,
        words: bool = True,
        names: bool = True,
    ) -> np.ndarray:
        """By vocabulary column; very low for those that nothing speaks for."""
        close = 1 - self.near.distances("self")[0]
        rows = self.near.rows[0]
        kept = (rows >= 0) & (rows != (-2 if without is None else without)) & neighbours
        none = NamedLabels(
            np.zeros(2, dtype=np.int64), self.named.columns[:0], self.named.features[:0]
        )
        ballots = cast_ballots(
            rows[None, kept],
            close[None, kept],
            self.named if names else none,
            self.decoder.columns,
            self.label_sets,
        )
        texts = self.autoencoder.texts(self.words if words else [[]])
        logits = np.full(len(self.decoder.columns.places), -30, dtype=np.float32)
        known = self.decoder.columns.columns[: len(self.model.info.labels)]
        tally = self.autoencoder.tally(ballots)
        logits[known] = self.autoencoder.decode(ballots, tally, texts)[0]
        _, new, values = self.autoencoder.decode_new(ballots, tally)
        logits[self.decoder.columns.columns[new]] = values
        return logits


def given(queries: Queries, settings: Settings = SETTINGS) -> Ranking:
    method = settings.implementation
    return method.cut(queries, method.rank(queries, settings), settings)


def explained(queries: Queries, settings: Settings = SETTINGS) -> list[list[Suggestion]]:
    return settings.implementation.explain(queries, given(queries, settings), settings)


def test_scores_are_those_of_the_network(indexer, texts):
    queries = indexer.queries(texts, NEIGHBOURS)
    ranking = LabelAe().rank(queries, SETTINGS)
    for place in range(len(texts)):
        columns, scores = ranking[place]
        logits = ByHand(queries, place).logits()
        np.testing.assert_allclose(scores, 1 / (1 + np.exp(-logits[columns])), atol=1e-5)
        assert (np.diff(scores) <= 0).all()
        low = np.delete(logits, columns)
        # The best 200 are ranked, or all above a floor.
        assert low.max() < max(-5.2, float(logits[columns].min()) + 1e-5)


@pytest.mark.parametrize(("limit", "value"), [("CHUNK", 2), ("_LOGITS", 1000)])
def test_batches_do_not_matter(indexer, texts, monkeypatch, limit, value):
    whole = LabelAe().rank(indexer.queries(texts, NEIGHBOURS), SETTINGS)
    monkeypatch.setattr(f"labelkin.scoring.joint_decoder.{limit}", value)
    parts = LabelAe().rank(indexer.queries(texts, NEIGHBOURS), SETTINGS)
    width = len(indexer.vocabulary)
    # A score at the floor may be there or not.
    assert abs(whole.matrix(width) - parts.matrix(width)).max() < 0.0051
    for (_, scores), (_, others) in zip(whole, parts, strict=True):
        np.testing.assert_allclose(scores[:20], others[:20], atol=1e-5)


def test_some_pairs_score_as_all_do(indexer, texts):
    queries = indexer.queries(texts, NEIGHBOURS)
    decoder = decoder_of(queries)
    ranking = decoder.rank(queries, ScorerSettings(), None)
    documents = np.repeat(np.arange(len(texts)), ranking.lengths)
    columns = ranking.columns.astype(np.int64)
    scores, _ = decoder.scores_of(queries, ScorerSettings(), None, documents, columns)
    np.testing.assert_allclose(scores, ranking.scores, atol=1e-5)
    new = np.array([indexer.vocabulary.column(NEW)])
    zero = np.zeros(1, dtype=np.int64)
    assert decoder.scores_of(queries, ScorerSettings(), None, zero, new)[0].tolist() == [0]


def test_shares_are_what_the_score_loses_without_a_neighbour(indexer, texts):
    queries = indexer.queries(texts[:2], NEIGHBOURS)
    rows = indexer.collection.rows_of([f"demo-{n:05}" for n in range(1, DOCUMENTS + 1)])
    checked = 0
    for place, suggestions in enumerate(explained(queries)):
        by_hand = ByHand(queries, place)
        whole = by_hand.logits()
        there = [int(row) for row in by_hand.near.rows[0] if row >= 0]
        losses = {row: whole - by_hand.logits(without=row) for row in there}
        for suggestion in suggestions:
            column = indexer.vocabulary.column(suggestion.concept.id)
            mine = {row: max(float(loss[column]), 0.0) for row, loss in losses.items()}
            total = sum(mine.values())
            shares = {rows[one.id]: one.share for one in suggestion.carriers}
            assert sum(shares.values()) == pytest.approx(1, abs=1e-5)
            for row, loss in mine.items():
                assert shares.get(row, 0) == pytest.approx(loss / total, abs=2e-3)
                checked += 1
            assert suggestion.neighbours == len(there)
    assert checked > 100


def test_signals_are_what_the_score_loses_without_them(indexer, texts):
    queries = indexer.queries(texts, NEIGHBOURS)
    seen = set()
    for place, suggestions in enumerate(explained(queries)):
        by_hand = ByHand(queries, place)
        whole = by_hand.logits()
        reduced = {
            CARRIED: by_hand.logits(neighbours=False),
            WORDS: by_hand.logits(words=False),
            NAMED: by_hand.logits(names=False),
        }
        for suggestion in suggestions:
            column = indexer.vocabulary.column(suggestion.concept.id)
            signals = {one.name: one.weight for one in suggestion.signals}
            for name, less in reduced.items():
                loss = float(whole[column] - less[column])
                assert signals.get(name, 0) == pytest.approx(loss, abs=1e-4)
            weights = [one.weight for one in suggestion.signals]
            assert weights == sorted(weights, reverse=True)
            seen |= set(signals)
    assert seen == {CARRIED, WORDS, NAMED}


def test_names_add_nothing_to_headings_that_are_not_named(indexer, texts, monkeypatch):
    """Not even the rounding of a batch that has fewer pairs."""
    corrections = JointAutoencoder.corrections

    def rounded(self: JointAutoencoder, ballots: Ballots, votes: np.ndarray) -> np.ndarray:
        return corrections(self, ballots, votes) + np.float32(1e-6 * len(ballots.labels) / 100)

    monkeypatch.setattr(JointAutoencoder, "corrections", rounded)
    low = replace(SETTINGS, label_ae=replace(SETTINGS.label_ae, threshold=0.02))
    suggestions = [
        one for many in explained(indexer.queries(texts, NEIGHBOURS), low) for one in many
    ]
    by_name = {bool(one.named) for one in suggestions if NAMED in {s.name for s in one.signals}}
    assert by_name == {True}
    assert not all(one.named for one in suggestions)


def test_a_heading_that_nobody_carries_is_inferred(indexer, texts):
    queries = indexer.queries(texts, NEIGHBOURS)
    low = replace(SETTINGS, label_ae=replace(SETTINGS.label_ae, threshold=0.006))
    inferred = [
        one for suggestions in explained(queries, low) for one in suggestions if one.inferred_from
    ]
    assert inferred
    for one in inferred:
        assert one.votes == 0
        assert not one.named
        assert one.concept not in one.inferred_from
        assert 1 <= len(one.inferred_from) <= 3


@pytest.mark.parametrize("method", [Mix(), MixRanked()], ids=lambda one: one.name)
def test_mixes_explain_with_it(indexer, texts, method):
    settings = replace(
        SETTINGS,
        method=method.name,
        label_ae=ScorerSettings(count=None, threshold=0.006),
        mix=MixSettings(share=1.0, count=None, threshold=0.006),
    )
    queries = indexer.queries(texts, settings.k)
    assert settings.k == NEIGHBOURS
    labels = method.cut(queries, method.rank(queries, settings), settings)
    suggestions = method.explain(queries, labels, settings)
    for (columns, _), of_document in zip(labels, suggestions, strict=True):
        ids = [indexer.vocabulary[int(column)].id for column in columns]
        assert [one.concept.id for one in of_document] == ids
        assert [one.rank for one in of_document] == list(range(1, len(ids) + 1))
    assert any(one.inferred_from for of_document in suggestions for one in of_document)


def test_a_text_that_says_nothing(indexer):
    for title in ("", "zzzz", "qqq xxx"):
        assert indexer.suggest([Document("q", title)], settings=SETTINGS) == [[]]
    assert indexer.suggest([], settings=SETTINGS) == []
    queries = indexer.queries([Document("q", "zzzz")], NEIGHBOURS)
    columns = np.arange(5)
    scores, _ = decoder_of(queries).scores_of(
        queries, ScorerSettings(), None, np.zeros(5, dtype=np.int64), columns
    )
    assert not scores.any()


def test_a_text_without_neighbours_has_its_words_and_names(indexer, texts):
    (document,) = texts[:1]
    queries = indexer.queries([document], neighbours=Neighbours.empty(["q"]))
    decoder = decoder_of(queries)
    ranking = decoder.rank(queries, ScorerSettings(), None)
    assert len(ranking.columns)
    limited = replace(SETTINGS, limit=3, label_ae=ScorerSettings(count=None, threshold=0.0))
    (suggestions,) = explained(queries, limited)
    assert len(suggestions) == 3
    assert all(not one.carriers and not one.neighbours for one in suggestions)
    assert {signal.name for one in suggestions for signal in one.signals} <= {WORDS, NAMED}


def test_fewer_neighbours_than_it_knows(indexer, texts):
    whole = indexer.queries(texts, NEIGHBOURS).neighbours(NEIGHBOURS)
    queries = indexer.queries(texts, neighbours=whole.nearest(5))
    assert all(one.neighbours <= 5 for many in explained(queries) for one in many)
    logits = ByHand(queries, 0).logits()
    columns, scores = LabelAe().rank(queries, SETTINGS)[0]
    np.testing.assert_allclose(scores, 1 / (1 + np.exp(-logits[columns])), atol=1e-5)


def test_a_new_heading_has_the_votes_of_its_documents(own):
    text = "marmalade unicycles orbit"
    settings = SETTINGS.changed(limit=8, threshold=0.0)
    before = own.suggest([Document("q", text)], settings=settings)
    assert NEW not in {one.concept.id for one in before[0]}
    own.add([Document(f"n{n}", text, labels=(NEW,), language="en") for n in range(6)])
    (after,) = own.suggest([Document("q", text)], settings=settings)
    (mine,) = (one for one in after if one.concept.id == NEW)
    assert mine.votes == 6
    assert {one.id for one in mine.carriers} == {f"n{n}" for n in range(6)}
    assert sum(one.share for one in mine.carriers) == pytest.approx(1, abs=1e-5)
    assert CARRIED in {signal.name for signal in mine.signals}
    assert not mine.inferred_from
    assert own.unknown_labels() == 1


def test_a_new_heading_is_suggested_by_its_name(own):
    queries = own.queries([Document("q", "Quixotic zeppelins", language="en")], NEIGHBOURS)
    decoder = decoder_of(queries)
    assert own.vocabulary.column(NEW) not in decoder.columns.columns[: decoder._known]
    column = np.array([own.vocabulary.column(NEW)])
    zero = np.zeros(1, dtype=np.int64)
    (score,), _ = decoder.scores_of(queries, ScorerSettings(), None, zero, column)
    assert score > 0
    ranking = LabelAe().rank(queries, SETTINGS)
    assert ranking.scores[ranking.columns == column[0]] == pytest.approx([score], abs=1e-6)
    (suggestions,) = LabelAe().explain(queries, ranking, SETTINGS)
    (mine,) = (one for one in suggestions if one.concept.id == NEW)
    assert mine.named[0].words == "Quixotic zeppelins"
    assert [signal.name for signal in mine.signals][:1] == [NAMED]
    assert not mine.carriers


def test_excluded_and_included_headings(indexer, texts):
    queries = indexer.queries(texts, NEIGHBOURS)
    best = indexer.vocabulary[int(LabelAe().rank(queries, SETTINGS).columns[0])]
    without = LabelAe().rank(queries, replace(SETTINGS, exclude=(best.id,)))
    assert indexer.vocabulary.column(best.id) not in without.columns
    only = replace(SETTINGS, include=(best.id,))
    allowed = {c.id for c in indexer.vocabulary if best.id in (c.id, *c.broader)}
    (suggestions, *_) = explained(queries, only)
    assert suggestions
    assert {one.concept.id for one in suggestions} <= allowed


def test_evidence_of_a_replaced_heading_is_that_of_the_old_one(own, texts, monkeypatch):
    queries = own.queries(texts[:1], NEIGHBOURS)
    labels = given(queries)
    (before, *_), *_ = LabelAe().explain(queries, labels, SETTINGS)
    old, new = int(labels.columns[0]), own.vocabulary.column(NEW)
    policy = LabelPolicy(own.vocabulary)
    policy.target[old] = new
    monkeypatch.setattr(Queries, "policy", lambda *_: policy)
    again = own.queries(texts[:1], NEIGHBOURS)
    ranking = given(again)
    assert ranking.columns[0] == new
    assert ranking.scores[0] == pytest.approx(labels.scores[0], abs=1e-6)
    (after, *_), *_ = LabelAe().explain(again, ranking, SETTINGS)
    assert after.concept.id == NEW
    assert [(c.id, c.carries) for c in after.carriers] == [
        (c.id, c.carries) for c in before.carriers
    ]
    assert [c.share for c in after.carriers] == pytest.approx(
        [c.share for c in before.carriers], abs=1e-6
    )
    assert [s.weight for s in after.signals] == pytest.approx(
        [s.weight for s in before.signals], abs=1e-6
    )


def test_headings_that_are_gone_are_never_suggested(made, texts, tmp_path, caplog):
    with Indexer.open(made) as indexer:
        labels = LabelModel(indexer.runtime.models.folder / "label-ae").info.labels
    gone = set(labels[:3])
    concepts = [
        replace(c, broader=tuple(b for b in c.broader if b not in gone))
        for c in demo_concepts(0)
        if c.id not in gone
    ]
    with Indexer.create(tmp_path / "o", Vocabulary(concepts), language="en") as other:
        documents = (
            replace(d, labels=tuple(label for label in d.labels if label not in gone))
            for d in demo_documents(60, 0)
        )
        other.add(documents)
        shutil.copytree(made / "models" / "label-ae", tmp_path / "o" / "models" / "label-ae")
        given_here = other.suggest(texts, settings=SETTINGS.changed(threshold=0.006, limit=500))
        assert not {one.concept.id for many in given_here for one in many} & gone
        assert any(given_here)
    assert "skipping 3 headings" in caplog.text


def test_threads_share_a_model(made, texts):
    with Indexer.open(made) as alone:
        expected = [alone.labels([text], SETTINGS) for text in texts]
    with Indexer.open(made) as shared, ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: shared.labels([text], SETTINGS), texts * 3))
    for one, other in zip(found, expected * 3, strict=True):
        assert one.columns.tolist() == other.columns.tolist()
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)


def test_a_collection_of_few_documents(tmp_path):
    with Indexer.create(tmp_path / "c", Vocabulary(demo_concepts(0)), language="en") as few:
        few.add(demo_documents(12, 0))
        few.train_label_ae(replace(QUICK, epochs=1))
        queries = few.queries([next(iter(demo_documents(1, 5)))], NEIGHBOURS)
        (suggestions,) = explained(queries, SETTINGS.changed(limit=4, threshold=0.0))
        assert len(suggestions) == 4
        assert all(one.neighbours <= 12 for one in suggestions)


def test_scripts_without_spaces(tmp_path):
    vocabulary = Vocabulary([Concept("R", {"ja": "小麦"}), Concept("S", {"ja": "大麦"})])
    documents = [
        Document(
            f"d{n}",
            f"小麦の病気 {n}" if n % 2 else f"大麦の病気 {n}",
            language="ja",
            labels=("R" if n % 2 else "S",),
        )
        for n in range(24)
    ]
    with Indexer.create(tmp_path / "c", vocabulary, language="ja") as indexer:
        indexer.add(documents)
        indexer.train_label_ae(replace(QUICK, epochs=2))
        given_here = indexer.suggest(
            [Document("q", "小麦の病気", language="ja")],
            settings=SETTINGS.changed(limit=2, threshold=0.0),
        )
        assert {one.concept.id for one in given_here[0]} <= {"R", "S"}
        assert given_here[0]
