from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest

from labelkin import Document, Indexer
from labelkin.autoencoder.ballots import NEIGHBOURS
from labelkin.autoencoder.training_settings import paper_settings
from labelkin.demo import demo_concepts, demo_documents
from labelkin.exceptions import ModelDamagedError, ModelMismatchError, ModelNotFoundError
from labelkin.scoring.decoder import Decoder
from labelkin.scoring.knn import Knn
from labelkin.scoring.label_ae import LabelAe
from labelkin.scoring.method import Method
from labelkin.scoring.mix import Mix, MixRanked
from labelkin.scoring.policy import LabelPolicy
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import MixSettings, ScorerSettings, Settings
from labelkin.vocab import Vocabulary

pytest.importorskip("torch", reason="needs the extra `train`")

QUICK = paper_settings(preset="64/48/32", epochs=12, batch_size=32, device="cpu")
AVERAGE = ScorerSettings(weighting="difference", count=None, threshold=0.5)
SETTINGS = Settings(knn=ScorerSettings(), label_ae=AVERAGE)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("label-ae") / "c"
    with Indexer.create(path, Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(800, 0))
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
def queries() -> list[Document]:
    return [replace(d, id=f"q{n}") for n, d in enumerate(demo_documents(20, 7))]


def lists(ranking: Ranking) -> list[list[int]]:
    return [columns.tolist() for columns, _ in ranking]


def given(method: Method, queries: Queries, settings: Settings = SETTINGS) -> Ranking:
    """The labels that a method suggests."""
    return method.cut(queries, method.rank(queries, settings), settings)


def averaging(**changes: object) -> Settings:
    """Settings with other values of the label autoencoder's."""
    return replace(SETTINGS, label_ae=replace(AVERAGE, **changes))  # type: ignore[arg-type]


def model_folder(indexer: Indexer) -> Path:
    return indexer.runtime.models.folder / "label-ae"


def decoder_of(indexer: Indexer) -> Decoder:
    return Decoder.of(indexer.queries([]))


def test_scores_are_the_decoded_average(indexer, queries):
    near = indexer.queries(queries, 20)
    decoder = Decoder.of(near)
    columns, scores = LabelAe().rank(near, SETTINGS)[0]
    rows = near.neighbours(20).rows[0]
    weights = 1 - near.neighbours(20).distances("self")[0]
    vectors = decoder.model.encode(decoder.columns.matrix(near.snapshot.label_sets(), rows))
    logits = decoder.model.decode((weights @ vectors / weights.sum())[None].astype(np.float32))[0]
    chances = 1 / (1 + np.exp(-logits[decoder.columns.places[columns]]))
    # Latent vectors are kept in float16.
    np.testing.assert_allclose(scores, chances, atol=5e-3)
    assert np.all(np.diff(scores) <= 0)
    assert len(columns) >= np.count_nonzero(logits > np.log(0.006 / 0.994))


def test_cuts(indexer, queries):
    near = indexer.queries(queries, 20)
    # A small model is never as sure as 0.5.
    assert given(LabelAe(), near, averaging(threshold=0.2)).scores.min() >= 0.2
    counted = given(LabelAe(), near, averaging(count="mean", threshold=0.0))
    assert counted.lengths.tolist() == given(Knn(), near).lengths.tolist()


def test_batches_do_not_matter(indexer, queries, monkeypatch):
    whole = LabelAe().rank(indexer.queries(queries, 20), SETTINGS)
    monkeypatch.setattr("labelkin.scoring.latent_decoder.CHUNK", 3)
    parts = LabelAe().rank(indexer.queries(queries, 20), SETTINGS)
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


def test_a_decoder_is_made_once_per_state(own, queries):
    near = own.queries(queries, 20)
    decoder = Decoder.of(near)
    assert Decoder.of(own.queries(queries[:1], 20)) is decoder
    own.add([Document("new", "text", labels=("LK0036",), language="en")])
    assert Decoder.of(near) is decoder
    assert Decoder.of(own.queries(queries, 20)) is not decoder


def test_mix_gives_the_label_aes_labels_first(indexer, queries):
    near = indexer.queries(queries, 20)
    mixed_labels = given(Mix(), near)
    decoded = lists(given(LabelAe(), near))
    voted = lists(given(Knn(), near))
    ranked_votes = lists(Knn().rank(near, SETTINGS))
    for mixed, first, votes, ranked in zip(
        lists(mixed_labels), decoded, voted, ranked_votes, strict=True
    ):
        rest = [label for label in ranked if label not in first]
        assert mixed == first + rest[: max(len(votes) - len(first), 0)]
    for _, scores in mixed_labels:
        assert np.all(np.diff(scores) <= 0)
        assert np.all((scores >= 0) & (scores <= 1))


def test_mix_without_labels_of_the_label_ae_is_the_votes(indexer, queries):
    near = indexer.queries(queries, 20)
    assert lists(given(Mix(), near, averaging(threshold=1.0))) == lists(given(Knn(), near))


def test_mix_keeps_all_if_the_label_ae_gives_more(indexer, queries):
    near = indexer.queries(queries, 20)
    many = averaging(threshold=0.01)
    assert lists(given(Mix(), near, many)) == lists(given(LabelAe(), near, many))


def test_what_leads_a_mix_may_have_a_threshold_of_its_own(indexer, queries):
    near = indexer.queries(queries, 20)
    own = replace(averaging(count="mean", threshold=0.0), mix=MixSettings(leading=0.2))
    assert lists(given(Mix(), near, own)) == lists(given(Mix(), near, averaging(threshold=0.2)))
    assert lists(given(Mix(), near, own)) != lists(given(LabelAe(), near, own))
    nothing = replace(own, mix=MixSettings(leading=1.0))
    assert lists(given(Mix(), near, nothing)) == lists(given(Knn(), near))
    assert Mix().as_config(nothing) == {"mix": {"leading": 1.0}}


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_mix_ranked_at_its_ends(indexer, queries, share):
    near = indexer.queries(queries, 20)
    mixed = MixRanked().rank(near, replace(SETTINGS, mix=MixSettings(share, None, 0.0)))
    alone = (LabelAe() if share else Knn()).rank(near, SETTINGS)
    for (columns, scores), (_, expected) in zip(mixed, alone, strict=True):
        assert len(columns) == len(set(columns.tolist()))
        np.testing.assert_allclose(scores[: len(expected)], expected, atol=1e-6)


def test_without_a_share_mix_ranked_is_the_votes(indexer, queries):
    """Labels with equal votes are in their order too: those of nearer documents first."""
    near = indexer.queries(queries, 20)
    votes = replace(SETTINGS, mix=MixSettings(0.0, "mean", 0.0))
    ranked = lists(Knn().rank(near, SETTINGS))
    mixed = lists(MixRanked().rank(near, votes))
    assert [mine[: len(theirs)] for mine, theirs in zip(mixed, ranked, strict=True)] == ranked
    assert lists(given(MixRanked(), near, votes)) == lists(given(Knn(), near))


def test_mix_ranked_adds_the_scores(indexer, queries):
    near = indexer.queries(queries, 20)
    mixed = MixRanked().rank(near, replace(SETTINGS, mix=MixSettings(share=0.3)))
    width = len(indexer.vocabulary)
    decoded, votes = (one.rank(near, SETTINGS).matrix(width) for one in (LabelAe(), Knn()))
    assert abs(mixed.matrix(width) - (0.3 * decoded + 0.7 * votes)).max() < 1e-6


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


@pytest.mark.parametrize("method", ["label-ae", "mix-ranked"])
def test_some_headings_are_inferred(indexer, queries, method):
    settings = Settings.from_config(indexer.config, method).changed(threshold=0.01)
    found = [s for suggestions in indexer.suggest(queries, settings=settings) for s in suggestions]
    inferred = [suggestion for suggestion in found if suggestion.votes == 0]
    assert inferred
    assert all(s.concept not in s.inferred_from for s in inferred)


def test_without_the_strongest_neighbour_the_score_falls(indexer, queries):
    """What the evidence says is what happens when the neighbour with the largest share is gone."""
    near = indexer.queries(queries[:1], 20)
    settings = averaging(threshold=0.05)
    labels = given(LabelAe(), near, settings)
    (suggestions,) = LabelAe().explain(near, labels, settings)
    first = suggestions[0]
    row = indexer.collection.rows_of([first.carriers[0].id])[first.carriers[0].id]
    found = near.neighbours(20)
    kept = found.rows[0] != row
    fewer = replace(found, rows=found.rows[:, kept], scores=found.scores[:, kept])
    again = indexer.queries(near.documents, 20, neighbours=fewer)
    columns, scores = LabelAe().rank(again, settings)[0]
    assert scores[columns.tolist().index(labels.columns[0])] < first.score


def test_new_documents_count_at_once(own):
    settings = Settings.from_config(own.config, "label-ae").changed(limit=10)
    labels = next(iter(own.documents())).labels
    text = "quixotic zeppelin marmalade"
    assert own.suggest([Document("q", text)], settings=settings) == [[]]
    own.add([Document("new", text, labels=labels, language="en")])
    (found,) = own.suggest([Document("q", text)], settings=settings)
    assert {suggestion.concept.id for suggestion in found} & {
        own.vocabulary.find(label).id for label in labels
    }


def test_labels_that_the_model_has_not_seen_are_counted(own):
    assert decoder_of(own).unknown_labels() == own.unknown_labels() == 0
    known = decoder_of(own).model.info.labels
    new = next(concept.id for concept in own.vocabulary if concept.id not in known)
    own.add([Document("new", "text", labels=(new,), language="en")])
    assert own.unknown_labels() == 1


def test_excluded_headings(indexer, queries):
    near = indexer.queries(queries, 20)
    best = indexer.vocabulary[int(LabelAe().rank(near, SETTINGS).columns[0])]
    ranking = LabelAe().rank(near, replace(SETTINGS, exclude=(best.id,)))
    assert indexer.vocabulary.column(best.id) not in ranking.columns


def test_a_model_from_another_vocabulary(own, tmp_path):
    with Indexer.create(tmp_path / "other") as other:
        other.add([Document("a", "text", labels=("X",)), Document("b", "text", labels=("Y",))])
        shutil.copytree(model_folder(own), model_folder(other))
        with pytest.raises(ModelMismatchError, match=r"another vocabulary \(0 of its"):
            decoder_of(other)


def test_a_warning_about_headings_that_are_gone(own, tmp_path, caplog):
    concepts = list(demo_concepts(0))
    known = set(decoder_of(own).model.info.labels)
    dropped = next(
        c.id for c in concepts if c.id in known and not any(c.id in o.broader for o in concepts)
    )
    with Indexer.create(
        tmp_path / "other", Vocabulary(c for c in concepts if c.id != dropped), language="en"
    ) as other:
        other.add(demo_documents(20, 0))
        shutil.copytree(model_folder(own), model_folder(other))
        with caplog.at_level(logging.WARNING, "labelkin"):
            decoder_of(other)
    assert "skipping 1 headings of the model" in caplog.text


def test_no_model_is_one_line(tmp_path, vocabulary):
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        settings = Settings.from_config(indexer.config, "mix")
        with pytest.raises(ModelNotFoundError, match="labelkin train"):
            indexer.suggest([Document("q", "bread")], settings=settings)


def test_damaged_weights_are_one_line(own, queries):
    (weights,) = model_folder(own).glob("weights-*")
    weights.write_bytes(b"no weights")
    settings = Settings.from_config(own.config, "label-ae")
    with pytest.raises(ModelDamagedError, match="train the model again"):
        own.suggest(queries, settings=settings)


def test_related_headings(indexer):
    heading = indexer.vocabulary.find(decoder_of(indexer).model.info.labels[0])
    found = indexer.related(heading.id, 5)
    assert len(found) == 5
    similarities = [similarity for _, similarity in found]
    assert similarities == sorted(similarities, reverse=True)
    assert heading not in [concept for concept, _ in found]


@pytest.mark.parametrize(
    ("method", "place"),
    [
        ("knn", "knn.threshold"),
        ("label-ae", "label_ae.threshold"),
        ("mix", "mix.leading"),
        ("mix-ranked", "mix.threshold"),
    ],
)
def test_settings_change_where_the_method_looks(method, place):
    changed = Settings(method=method).changed(threshold=0.9, k=7)
    assert attrgetter(place)(changed) == changed.implementation.threshold(changed) == 0.9
    assert (changed.knn.k, changed.label_ae.k) == (7, 7)
    # The joint autoencoder looks at more neighbours, whatever k is.
    assert changed.k == (7 if method == "knn" else NEIGHBOURS)
    assert Settings(method=method).changed(k=NEIGHBOURS + 1).k == NEIGHBOURS + 1


@pytest.mark.parametrize("method", ["knn", "label-ae", "mix", "mix-ranked"])
def test_a_limit_replaces_the_count(indexer, queries, method):
    near = indexer.queries(queries, 20)
    counting = Settings(
        method,
        knn=ScorerSettings(count="mean", threshold=0.3),
        label_ae=replace(AVERAGE, count="mean", threshold=0.3),
        mix=MixSettings(count="mean", threshold=0.3),
    )
    limited = counting.changed(limit=9)
    ranking = limited.implementation.rank(near, limited)
    labels = limited.implementation.cut(near, ranking, limited)
    assert labels.lengths.tolist() == np.minimum(ranking.lengths, 9).tolist()
    kept = counting.changed(limit=9, threshold=0.4)
    assert kept.implementation.threshold(kept) == 0.4
    assert limited.implementation.threshold(limited) == 0


def test_mix_ranked_counts_by_its_own_scheme(indexer, queries):
    near = indexer.queries(queries, 20)
    settings = replace(
        SETTINGS,
        knn=ScorerSettings(count=None),
        mix=MixSettings(count="mean", threshold=0.0),
    )
    labels = given(MixRanked(), near, settings)
    assert labels.lengths.tolist() == given(Knn(), near).lengths.tolist()


def test_a_new_model_is_used_at_once(own, queries):
    settings = Settings.from_config(own.config, "label-ae").changed(limit=5)
    before = own.labels(queries, settings)
    checksum = own.models_checksum("label-ae")
    own.train_label_ae(replace(QUICK, epochs=2, seed=5))
    after = own.labels(queries, settings)
    assert before.scores.tolist() != after.scores.tolist()
    assert own.models_checksum("label-ae") == own.models_checksum("mix") != checksum
    assert own.models_checksum("knn") == ""


def test_a_request_keeps_the_model_that_it_began_with(own, queries):
    near = own.queries(queries, 20)
    settings = averaging(threshold=0.02)
    labels = given(LabelAe(), near, settings)
    expected = LabelAe().explain(near, labels, settings)
    assert any(s.inferred_from for suggestions in expected for s in suggestions)
    own.train_label_ae(replace(QUICK, epochs=1, seed=5))
    assert LabelAe().explain(near, labels, settings) == expected


def test_evidence_of_a_replaced_heading_is_that_of_the_old_one(own, queries, monkeypatch):
    near = own.queries(queries, 20)
    settings = averaging(threshold=0.02)
    labels = given(LabelAe(), near, settings)
    (before, *_), *_ = LabelAe().explain(near, labels, settings)
    places = Decoder.of(near).columns.places
    old, new = (
        int(labels.columns[0]),
        next(column for column in range(len(own.vocabulary)) if places[column] < 0),
    )
    policy = LabelPolicy(own.vocabulary)
    policy.target[old] = new
    monkeypatch.setattr(Queries, "policy", lambda *_: policy)
    ranking = Ranking(
        labels.starts, np.where(labels.columns == old, new, labels.columns), labels.scores
    )
    (after, *_), *_ = LabelAe().explain(near, ranking, settings)
    assert after.concept == own.vocabulary[new]
    assert [(c.id, c.carries) for c in after.carriers] == [
        (c.id, c.carries) for c in before.carriers
    ]
    shares = [carrier.share for carrier in before.carriers]
    assert [carrier.share for carrier in after.carriers] == pytest.approx(shares)


def test_a_model_in_a_collection_without_documents(own, tmp_path):
    with Indexer.create(tmp_path / "e", Vocabulary(demo_concepts(0)), language="en") as empty:
        shutil.copytree(model_folder(own), model_folder(empty))
        settings = Settings.from_config(empty.config, "mix-ranked")
        assert empty.suggest([Document("q", "wheat")], settings=settings) == [[]]
