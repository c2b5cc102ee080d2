from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labelkin import Document, Indexer
from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.demo import demo_concepts, demo_documents
from labelkin.exceptions import ModelDamagedError, ModelMismatchError, ModelNotFoundError
from labelkin.scoring.knn import Knn
from labelkin.scoring.label_ae import LabelAe, model_folder
from labelkin.scoring.mix import Mix, MixRanked
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import MixSettings, ScorerSettings, Settings
from labelkin.vocab import Vocabulary

pytest.importorskip("torch", reason="needs the extra `train`")

QUICK = TrainingSettings(preset="64/48/32", epochs=12, batch_size=32, device="cpu")
AVERAGE = ScorerSettings(weighting="difference", count=None, threshold=0.5)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("label-ae") / "c"
    with Indexer.create(path, Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(800, 0))
        indexer.train(QUICK)
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
def queries() -> list[Document]:
    return [replace(d, id=f"q{n}") for n, d in enumerate(demo_documents(20, 7))]


def lists(ranking: Ranking) -> list[list[int]]:
    return [columns.tolist() for columns, _ in ranking]


def test_scores_are_the_decoded_average(indexer, queries):
    near = indexer.queries(queries, 20)
    scorer = LabelAe(indexer.collection, AVERAGE)
    ranking = scorer.rank(near)
    columns, scores = ranking[0]
    rows = near.neighbours.rows[0]
    weights = 1 - near.neighbours.distances("self")[0]
    vectors = scorer.model.encode(scorer.columns.matrix(indexer.collection.label_sets(), rows))
    logits = scorer.model.decode((weights @ vectors / weights.sum())[None].astype(np.float32))[0]
    chances = 1 / (1 + np.exp(-logits[scorer.columns.places[columns]]))
    # Latent vectors are kept in float16.
    np.testing.assert_allclose(scores, chances, atol=5e-3)
    assert np.all(np.diff(scores) <= 0)
    assert len(columns) >= np.count_nonzero(logits > np.log(0.006 / 0.994))


def test_cuts(indexer, queries):
    near = indexer.queries(queries, 20)
    scorer = LabelAe(indexer.collection, AVERAGE)
    ranked = scorer.rank(near)
    assert scorer.cut(near, ranked).scores.min() >= 0.5
    counted = scorer.changed(replace(AVERAGE, count="mean", threshold=0.0)).cut(near, ranked)
    votes = Knn(indexer.collection, ScorerSettings())
    assert counted.lengths.tolist() == votes.cut(near, votes.rank(near)).lengths.tolist()


def test_batches_do_not_matter(indexer, queries, monkeypatch):
    near = indexer.queries(queries, 20)
    scorer = LabelAe(indexer.collection, AVERAGE)
    whole = scorer.rank(near)
    monkeypatch.setattr("labelkin.scoring.label_ae._CHUNK", 3)
    parts = scorer.rank(near)
    # Matrix products round differently for batches of other sizes: near ties may change places.
    for (columns, scores), (other_columns, other_scores) in zip(whole, parts, strict=True):
        expected = dict(zip(columns.tolist(), scores.tolist(), strict=True))
        found = dict(zip(other_columns.tolist(), other_scores.tolist(), strict=True))
        for column in expected.keys() | found.keys():
            assert found.get(column, 0.005) == pytest.approx(expected.get(column, 0.005), abs=1e-5)
        in_order = np.array([expected.get(column, 0.005) for column in other_columns.tolist()])
        assert np.all(np.diff(in_order) < 1e-5)


def test_a_text_without_neighbours(indexer):
    for method in indexer.usable_methods():
        settings = Settings.from_config(indexer.config, method)
        assert indexer.suggest([Document("q", "zzzz")], settings=settings) == [[]]
        assert indexer.suggest([], settings=settings) == []


def test_mix_gives_the_label_aes_labels_first(indexer, queries):
    near = indexer.queries(queries, 20)
    knn, label_ae = Knn(indexer.collection, ScorerSettings()), LabelAe(indexer.collection, AVERAGE)
    mix = Mix(knn, label_ae)
    given = mix.cut(near, mix.rank(near))
    decoded = lists(label_ae.cut(near, label_ae.rank(near)))
    voted = lists(knn.cut(near, knn.rank(near)))
    ranked_votes = lists(knn.rank(near))
    for mixed, first, votes, ranked in zip(lists(given), decoded, voted, ranked_votes, strict=True):
        rest = [label for label in ranked if label not in first]
        assert mixed == first + rest[: max(len(votes) - len(first), 0)]
    for _, scores in given:
        assert np.all(np.diff(scores) <= 0)
        assert np.all((scores >= 0) & (scores <= 1))


def test_mix_without_labels_of_the_label_ae_is_the_votes(indexer, queries):
    near = indexer.queries(queries, 20)
    knn = Knn(indexer.collection, ScorerSettings())
    silent = LabelAe(indexer.collection, replace(AVERAGE, threshold=1.0))
    mix = Mix(knn, silent)
    assert lists(mix.cut(near, mix.rank(near))) == lists(knn.cut(near, knn.rank(near)))


def test_mix_keeps_all_if_the_label_ae_gives_more(indexer, queries):
    near = indexer.queries(queries, 20)
    knn = Knn(indexer.collection, ScorerSettings())
    talkative = LabelAe(indexer.collection, replace(AVERAGE, threshold=0.01))
    mix = Mix(knn, talkative)
    assert lists(mix.cut(near, mix.rank(near))) == lists(talkative.cut(near, talkative.rank(near)))


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_mix_ranked_at_its_ends(indexer, queries, share):
    near = indexer.queries(queries, 20)
    knn, label_ae = Knn(indexer.collection, ScorerSettings()), LabelAe(indexer.collection, AVERAGE)
    mixed = MixRanked(knn, label_ae, MixSettings(share, None, 0.0)).rank(near)
    alone = (label_ae if share else knn).rank(near)
    for (columns, scores), (_, expected) in zip(mixed, alone, strict=True):
        assert len(columns) == len(set(columns.tolist()))
        np.testing.assert_allclose(scores[: len(expected)], expected, atol=1e-6)


def test_mix_ranked_adds_the_scores(indexer, queries):
    near = indexer.queries(queries, 20)
    knn, label_ae = Knn(indexer.collection, ScorerSettings()), LabelAe(indexer.collection, AVERAGE)
    mixed = MixRanked(knn, label_ae, MixSettings(share=0.3)).rank(near)
    width = len(indexer.vocabulary)
    expected = 0.3 * label_ae.rank(near).matrix(width) + 0.7 * knn.rank(near).matrix(width)
    assert abs(mixed.matrix(width) - expected).max() < 1e-6


def test_evidence_adds_up(indexer, queries):
    settings = Settings.from_config(indexer.config, "label-ae").changed(threshold=0.05)
    for suggestions in indexer.suggest(queries, settings=settings):
        for suggestion in suggestions:
            shares = [carrier.share for carrier in suggestion.carriers]
            assert sum(shares) == pytest.approx(1, abs=1e-6)
            assert shares == sorted(shares, reverse=True)
            assert suggestion.votes <= suggestion.neighbours
            if suggestion.votes == 0:
                assert suggestion.reason.startswith("inferred from ")
                assert 1 <= len(suggestion.inferred_from) <= 3


def test_some_headings_are_inferred(indexer, queries):
    settings = Settings.from_config(indexer.config, "label-ae").changed(threshold=0.02)
    found = [s for suggestions in indexer.suggest(queries, settings=settings) for s in suggestions]
    inferred = [suggestion for suggestion in found if suggestion.votes == 0]
    assert inferred
    assert all(s.concept not in s.inferred_from for s in inferred)


def test_without_the_strongest_neighbour_the_score_falls(indexer, queries):
    """What the evidence says is what happens: the neighbour with the largest share is left out."""
    near = indexer.queries(queries[:1], 20)
    scorer = LabelAe(indexer.collection, replace(AVERAGE, threshold=0.05))
    given = scorer.cut(near, scorer.rank(near))
    (suggestions,) = scorer.suggestions(near, given)
    first = suggestions[0]
    row = indexer.collection.rows_of([first.carriers[0].id])[first.carriers[0].id]
    found = near.neighbours
    kept = found.rows[0] != row
    fewer = replace(found, rows=found.rows[:, kept], scores=found.scores[:, kept])
    column = given.columns[0]
    columns, scores = scorer.rank(Queries(near.documents, fewer))[0]
    assert scores[columns.tolist().index(column)] < first.score


def test_new_documents_count_at_once(own):
    scorer = Settings.from_config(own.config, "label-ae").changed(limit=10)
    labels = next(iter(own.documents())).labels
    text = "quixotic zeppelin marmalade"
    assert own.suggest([Document("q", text)], settings=scorer) == [[]]
    own.add([Document("new", text, labels=labels, language="en")])
    (found,) = own.suggest([Document("q", text)], settings=scorer)
    assert {suggestion.concept.id for suggestion in found} & {
        own.vocabulary.find(label).id for label in labels
    }


def test_labels_that_the_model_has_not_seen_are_counted(own):
    scorer = LabelAe(own.collection, AVERAGE)
    assert scorer.unknown_labels() == 0
    fresh = next(
        concept.id for concept in own.vocabulary if concept.id not in scorer.model.info.labels
    )
    own.add([Document("new", "text", labels=(fresh,), language="en")])
    assert LabelAe(own.collection, AVERAGE).unknown_labels() == 1


def test_excluded_headings(indexer, queries):
    near = indexer.queries(queries, 20)
    everything = LabelAe(indexer.collection, AVERAGE)
    best = indexer.vocabulary[int(everything.rank(near).columns[0])]
    scorer = LabelAe(indexer.collection, replace(AVERAGE, exclude=(best.id,)))
    assert indexer.vocabulary.column(best.id) not in scorer.rank(near).columns


def test_a_model_from_another_vocabulary(own, tmp_path):
    with Indexer.create(tmp_path / "other") as other:
        other.add([Document("a", "text", labels=("X",)), Document("b", "text", labels=("Y",))])
        shutil.copytree(model_folder(own.collection), model_folder(other.collection))
        with pytest.raises(ModelMismatchError, match=r"another vocabulary \(0 of its"):
            LabelAe(other.collection, AVERAGE)


def test_headings_that_are_gone_are_said(own, tmp_path, caplog):
    concepts = list(demo_concepts(0))
    known = set(LabelAe(own.collection, AVERAGE).model.info.labels)
    dropped = next(
        c.id for c in concepts if c.id in known and not any(c.id in o.broader for o in concepts)
    )
    with Indexer.create(
        tmp_path / "other", Vocabulary(c for c in concepts if c.id != dropped), language="en"
    ) as other:
        other.add(demo_documents(20, 0))
        shutil.copytree(model_folder(own.collection), model_folder(other.collection))
        with caplog.at_level(logging.WARNING, "labelkin"):
            LabelAe(other.collection, AVERAGE)
    assert "1 headings of the model" in caplog.text


def test_no_model_is_one_line(tmp_path, vocabulary):
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        settings = Settings.from_config(indexer.config, "mix")
        with pytest.raises(ModelNotFoundError, match="labelkin train"):
            indexer.suggest([Document("q", "bread")], settings=settings)


def test_damaged_weights_are_one_line(own, queries):
    (weights,) = model_folder(own.collection).glob("weights-*")
    weights.write_bytes(b"no weights")
    settings = Settings.from_config(own.config, "label-ae")
    with pytest.raises(ModelDamagedError, match="train the model again"):
        own.suggest(queries, settings=settings)


def test_related_headings(indexer):
    heading = indexer.vocabulary.find(LabelAe(indexer.collection, AVERAGE).model.info.labels[0])
    found = indexer.related(heading.id, 5)
    assert len(found) == 5
    similarities = [similarity for _, similarity in found]
    assert similarities == sorted(similarities, reverse=True)
    assert heading not in [concept for concept, _ in found]


@pytest.mark.parametrize(
    ("method", "place"),
    [("knn", "knn"), ("label-ae", "label_ae"), ("mix", "label_ae"), ("mix-ranked", "mix")],
)
def test_settings_change_where_the_method_looks(method, place):
    changed = Settings(method=method).changed(threshold=0.9, k=7)
    assert getattr(changed, place).threshold == 0.9
    assert changed.k == 7


def test_a_limit_replaces_the_count():
    limited = Settings(method="mix-ranked").changed(limit=3)
    assert (limited.mix.count, limited.knn.count, limited.knn.limit) == (None, None, 3)
    kept = Settings(method="label-ae").changed(limit=3, threshold=0.4)
    assert (limited.label_ae.threshold, kept.label_ae.threshold) == (0.0, 0.4)


def test_mix_ranked_counts_by_its_own_scheme(indexer, queries):
    near = indexer.queries(queries, 20)
    endless = Knn(indexer.collection, ScorerSettings(count=None))
    joined = MixRanked(
        endless, LabelAe(indexer.collection, AVERAGE), MixSettings(count="mean", threshold=0.0)
    )
    votes = Knn(indexer.collection, ScorerSettings())
    given = joined.cut(near, joined.rank(near))
    assert given.lengths.tolist() == votes.cut(near, votes.rank(near)).lengths.tolist()


def test_a_new_model_is_used_at_once(own, queries):
    settings = Settings.from_config(own.config, "label-ae").changed(limit=5)
    before = own.labels(queries, settings)
    own.train(replace(QUICK, epochs=2, seed=5))
    after = own.labels(queries, settings)
    assert before.scores.tolist() != after.scores.tolist()


def test_a_model_that_was_replaced_stays_readable(own, queries):
    near = own.queries(queries, 20)
    scorer = LabelAe(own.collection, replace(AVERAGE, threshold=0.02))
    given = scorer.cut(near, scorer.rank(near))
    own.train(replace(QUICK, epochs=1, seed=5))
    assert any(s.inferred_from for found in scorer.suggestions(near, given) for s in found)


def test_evidence_of_a_replaced_heading_is_that_of_the_old_one(own, queries):
    near = own.queries(queries, 20)
    plain = LabelAe(own.collection, replace(AVERAGE, threshold=0.02))
    given = plain.cut(near, plain.rank(near))
    (before, *_), *_ = plain.suggestions(near, given)
    old, new = (
        int(given.columns[0]),
        next(column for column in range(len(own.vocabulary)) if plain.columns.places[column] < 0),
    )
    replaced = LabelAe(own.collection, replace(AVERAGE, threshold=0.02))
    replaced._targets[replaced._targets == old] = new
    ranking = Ranking(
        given.starts, np.where(given.columns == old, new, given.columns), given.scores
    )
    (after, *_), *_ = replaced.suggestions(near, ranking)
    shares = {c.id: c.share for c in before.carriers if c.share > 0}
    assert {c.id: c.share for c in after.carriers} == pytest.approx(shares)


def test_a_model_in_a_collection_without_documents(own, tmp_path):
    with Indexer.create(tmp_path / "e", Vocabulary(demo_concepts(0)), language="en") as empty:
        shutil.copytree(model_folder(own.collection), model_folder(empty.collection))
        settings = Settings.from_config(empty.config, "mix-ranked")
        assert empty.suggest([Document("q", "wheat")], settings=settings) == [[]]
