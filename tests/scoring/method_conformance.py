"""What every method must do, as tests.

A package with a method of its own runs them by deriving a class from
`MethodConformance` whose fixtures give an open collection, documents to
suggest headings for and the settings that name the method:

    class TestToyMethod(MethodConformance):
        @pytest.fixture
        def indexer(self): ...

        @pytest.fixture
        def documents(self): ...

        @pytest.fixture
        def settings(self, indexer):
            return Settings.from_config(indexer.config, "toy")
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from labelkin import Document, Indexer
from labelkin.scoring.method import Method
from labelkin.scoring.methods import METHODS
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import Settings
from labelkin.store.config import read_config, update_config, write_config
from labelkin.vocab.vocabulary import Vocabulary

KS = (3, 10)
THRESHOLDS = (0.1, 0.5, 0.9)
# Products of matrices round differently for batches of other sizes.
ROUNDING = 1e-4


class MethodConformance:
    """The tests; subclasses give the fixtures `indexer`, `documents` and `settings`."""

    #: Whether no label with a score below the threshold is suggested.
    threshold_applies_to_scores = True
    #: Whether a limit that is larger than the number of ranked labels gives all of them.
    a_large_limit_gives_everything = True

    @pytest.fixture
    def method(self, settings: Settings) -> Method:
        return settings.implementation

    @pytest.fixture
    def queries(self, indexer: Indexer, documents: Sequence[Document], settings: Settings):
        return indexer.queries(documents, max(settings.k, *KS) if settings.k else 0)

    @pytest.fixture
    def ranking(self, method: Method, queries: Queries, settings: Settings) -> Ranking:
        return method.rank(queries, settings)

    def test_it_is_registered(self, method: Method, settings: Settings) -> None:
        assert METHODS[settings.method] is method
        assert method.name == settings.method
        method.check_installed()

    def test_the_depth_is_a_number_of_neighbours(self, method: Method, settings: Settings) -> None:
        assert method.depth(settings) == settings.k >= 0

    def test_labels_are_ranked_by_score(
        self, indexer: Indexer, documents: Sequence[Document], ranking: Ranking
    ) -> None:
        assert len(ranking) == len(documents)
        assert len(ranking.columns), "the documents should have some candidates"
        width = len(indexer.vocabulary)
        for columns, scores in ranking:
            assert np.all(np.diff(scores) <= 0)
            assert np.all((scores >= 0) & (scores <= 1))
            assert len(np.unique(columns)) == len(columns)
            assert np.all((columns >= 0) & (columns < width))

    def test_deprecated_headings_are_not_ranked(self, indexer: Indexer, ranking: Ranking) -> None:
        labels = [indexer.vocabulary[column] for column in np.unique(ranking.columns).tolist()]
        assert not any(concept.deprecated for concept in labels)

    def test_the_same_twice(
        self, indexer, method: Method, documents, settings: Settings, ranking: Ranking
    ) -> None:
        again = method.rank(indexer.queries(documents, settings.k), settings)
        assert_same(again, ranking)

    def test_a_batch_gives_the_same_as_single_documents(
        self, indexer: Indexer, method: Method, documents, settings: Settings, ranking: Ranking
    ) -> None:
        for place, document in enumerate(documents):
            queries = indexer.queries([document], settings.k)
            assert_close(method.rank(queries, settings)[0], ranking[place])

    def test_a_cut_keeps_the_best(
        self, method: Method, queries: Queries, settings: Settings, ranking: Ranking
    ) -> None:
        given = method.cut(queries, ranking, settings)
        assert len(given) == len(ranking)
        for (columns, scores), (all_columns, all_scores) in zip(given, ranking, strict=True):
            assert columns.tolist() == all_columns[: len(columns)].tolist()
            assert scores.tolist() == all_scores[: len(scores)].tolist()

    @pytest.mark.parametrize("limit", [1, 4, 1000])
    def test_a_limit_gives_that_many(
        self, method: Method, queries: Queries, settings: Settings, limit: int
    ) -> None:
        limited = settings.changed(limit=limit)
        assert limited.implementation is method
        ranking = method.rank(queries, limited)
        given = method.cut(queries, ranking, limited)
        assert given.lengths.max() <= limit
        if limit < 1000 or self.a_large_limit_gives_everything:
            assert given.lengths.tolist() == np.minimum(ranking.lengths, limit).tolist()

    def test_a_limit_beside_a_threshold(
        self, method: Method, queries: Queries, settings: Settings
    ) -> None:
        both = settings.changed(limit=3, threshold=0.2)
        given = method.cut(queries, method.rank(queries, both), both)
        assert given.lengths.max() <= 3
        if self.threshold_applies_to_scores:
            assert np.all(given.scores >= np.float32(0.2))

    def test_thresholds(self, method: Method, queries: Queries, settings: Settings) -> None:
        lengths = []
        for threshold in THRESHOLDS:
            chosen = method.with_threshold(method.uncut(settings), threshold)
            assert method.threshold(chosen) == threshold
            ranking = method.rank(queries, chosen)
            given = method.cut(queries, ranking, chosen)
            if self.threshold_applies_to_scores:
                assert len(given.scores) == np.count_nonzero(
                    ranking.scores >= np.float32(threshold)
                )
            lengths.append(given.lengths)
        for lower, higher in pairwise(lengths):
            assert np.all(higher <= lower)

    def test_an_excluded_heading(
        self, indexer: Indexer, method: Method, queries: Queries, settings: Settings, ranking
    ) -> None:
        column = best_leaf(ranking, indexer.vocabulary)
        excluding = replace(settings, exclude=(indexer.vocabulary[column].id,))
        rest = method.rank(queries, excluding)
        assert column not in rest.columns
        assert len(rest.columns)

    def test_an_included_heading(
        self, indexer: Indexer, method: Method, queries: Queries, settings: Settings, ranking
    ) -> None:
        column = best_leaf(ranking, indexer.vocabulary)
        including = replace(settings, include=(indexer.vocabulary[column].id,))
        only = method.rank(queries, including)
        assert {*only.columns.tolist()} == {column}
        assert only.lengths.max() == 1

    @pytest.mark.parametrize("signals", [False, True])
    def test_explanations(
        self,
        indexer: Indexer,
        method: Method,
        queries: Queries,
        settings: Settings,
        ranking: Ranking,
        signals: bool,
    ) -> None:
        limited = settings.changed(limit=6)
        given = method.cut(queries, ranking, limited)
        explained = method.explain(queries, given, limited, signals=signals)
        assert len(explained) == len(given)
        band = method.bands(queries, settings)
        for (columns, scores), suggestions in zip(given, explained, strict=True):
            assert [indexer.vocabulary.column(s.concept.id) for s in suggestions] == (
                columns.tolist()
            )
            assert [s.score for s in suggestions] == pytest.approx(scores.tolist(), abs=1e-7)
            assert [s.rank for s in suggestions] == [*range(1, len(columns) + 1)]
            for suggestion in suggestions:
                has_evidence = suggestion.neighbours or suggestion.named or suggestion.signals
                assert bool(suggestion.reason) == bool(has_evidence)
                assert 0 <= suggestion.votes <= suggestion.neighbours
                assert suggestion.band == (None if band is None else band(suggestion.score))

    def test_nothing_to_explain(
        self, method: Method, queries: Queries, settings: Settings, documents
    ) -> None:
        nothing = Ranking.from_lists([[] for _ in documents])
        explained = method.explain(queries, nothing, settings, signals=True)
        assert explained == [[] for _ in documents]

    def test_the_sweep_has_the_present_settings(self, method: Method, settings: Settings) -> None:
        tried = [one for group in sweep_of(method, settings) for one in group]
        assert settings in tried
        assert len({*tried}) == len(tried)
        assert all(one.implementation is method for one in tried)

    def test_settings_of_a_group_share_their_ranking(
        self, method: Method, queries: Queries, settings: Settings
    ) -> None:
        for first, *others in sweep_of(method, settings):
            ranking = method.rank(queries, first)
            for other in others:
                assert_same(method.rank(queries, other), ranking)

    def test_swept_values_can_be_written_to_the_config(
        self, indexer: Indexer, method: Method, settings: Settings, tmp_path: Path
    ) -> None:
        path = tmp_path / "labelkin.toml"
        write_config(indexer.config, path)
        for first, *_, last in (group * 2 for group in sweep_of(method, settings)):
            for one in (first, last):
                values, changes = method.swept(one), method.as_config(one)
                assert values
                assert json.loads(json.dumps([values, changes])) == [values, changes]
                update_config(path, changes)
                written = Settings.from_config(read_config(path), method.name)
                assert method.swept(written) == values

    def test_it_has_no_state(
        self, method: Method, queries: Queries, settings: Settings, ranking: Ranking
    ) -> None:
        given = method.cut(queries, ranking, settings)
        method.explain(queries, given, settings, signals=True)
        assert getattr(method, "__dict__", {}) == {}

    def test_an_empty_batch(self, indexer: Indexer, method: Method, settings: Settings) -> None:
        queries = indexer.queries([], settings.k)
        ranking = method.rank(queries, settings)
        given = method.cut(queries, ranking, settings)
        assert (len(ranking), len(given)) == (0, 0)
        assert method.explain(queries, given, settings, signals=True) == []

    def test_the_checksum_of_its_models(
        self, indexer: Indexer, method: Method, settings: Settings
    ) -> None:
        checksum = method.models_checksum(indexer.runtime.models)
        assert checksum == indexer.models_checksum(settings.method)
        assert bool(checksum) == bool(method.required_models())


def sweep_of(method: Method, settings: Settings) -> list[list[Settings]]:
    ks = list(dict.fromkeys((*KS, settings.k))) if settings.k else []
    groups = list(method.sweep(settings, ks, THRESHOLDS))
    assert all(groups)
    return groups


def best_leaf(ranking: Ranking, vocabulary: Vocabulary) -> int:
    """The best label with nothing below it, which include and exclude would also mean."""
    return next(
        column
        for column in ranking.columns.tolist()
        if not vocabulary.narrower(vocabulary[column].id)
    )


def assert_same(one: Ranking, other: Ranking) -> None:
    np.testing.assert_array_equal(one.starts, other.starts)
    np.testing.assert_array_equal(one.columns, other.columns)
    np.testing.assert_array_equal(one.scores, other.scores)


def assert_close(one, other) -> None:
    """The same labels with the same scores, except for rounding at the end of the list."""
    (columns, scores), (other_columns, other_scores) = one, other
    mine = dict(zip(columns.tolist(), scores.tolist(), strict=True))
    theirs = dict(zip(other_columns.tolist(), other_scores.tolist(), strict=True))
    lowest, other_lowest = (min(found.values(), default=0.0) for found in (mine, theirs))
    for column in mine.keys() | theirs.keys():
        expected = theirs.get(column, other_lowest)
        assert mine.get(column, lowest) == pytest.approx(expected, abs=ROUNDING)
