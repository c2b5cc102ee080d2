"""What every signal of the reranker must do, as tests.

A package with a signal of its own runs them by deriving a class from
`SignalConformance` whose fixtures give the signal, an open collection, what was
counted and fitted over its documents (`RerankTrainer.collect`), and documents
that are not in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelkin import Document, Indexer
from labelkin.rerank.features import Evidence, Features, Knowledge, find_candidates
from labelkin.rerank.pairs import Pairs
from labelkin.rerank.signal import Signal
from labelkin.rerank.signals import SIGNALS
from labelkin.scoring.settings import RERANK_DEPTH
from labelkin.tensors import TensorFile, tensor_bytes

# Products of matrices round differently for batches of other sizes.
ROUNDING = 1e-4


class SignalConformance:
    """The tests; subclasses give `signal`, `indexer`, `knowledge` and `documents`."""

    @pytest.fixture
    def evidence(
        self, indexer: Indexer, knowledge: Knowledge, documents: Sequence[Document]
    ) -> Evidence:
        return evidence_of(indexer, knowledge, documents)

    @pytest.fixture
    def pairs(self, evidence: Evidence) -> Pairs:
        return find_candidates(evidence).pairs

    def test_it_is_registered(self, signal: Signal) -> None:
        assert SIGNALS[signal.name] is signal
        assert signal.reason
        assert signal.features

    def test_no_other_signal_has_its_features(self, signal: Signal) -> None:
        assert len({*signal.features}) == len(signal.features)
        for other in SIGNALS:
            if other is not signal:
                assert not {*signal.features} & {*other.features}

    def test_values_are_those_of_its_features(
        self, signal: Signal, evidence: Evidence, pairs: Pairs
    ) -> None:
        values = signal.values(evidence, pairs, Features(evidence, pairs))
        assert {*values} == {*signal.features}
        assert len(pairs)
        for name, one in values.items():
            assert one.shape == (len(pairs),), name
            assert np.issubdtype(one.dtype, np.floating), name
            # NaN stands for what is not known.
            assert not np.any(np.isinf(one)), name
            assert not np.all(np.isnan(one)), name

    def test_the_same_twice(
        self, indexer: Indexer, knowledge: Knowledge, documents, signal: Signal, evidence, pairs
    ) -> None:
        again = evidence_of(indexer, knowledge, documents)
        one, other = (
            signal.values(each, pairs, Features(each, pairs)) for each in (evidence, again)
        )
        assert_same(one, other)

    def test_proposed_candidates_are_headings_of_the_documents(
        self, signal: Signal, evidence: Evidence
    ) -> None:
        keys = signal.propose(evidence)
        if keys is None:
            return
        assert np.issubdtype(keys.dtype, np.integer)
        assert np.all((keys >= 0) & (keys < len(evidence) * evidence.width))

    def test_deprecated_headings_are_not_proposed(
        self, indexer: Indexer, signal: Signal, evidence: Evidence
    ) -> None:
        keys = signal.propose(evidence)
        if keys is None:
            return
        proposed = np.unique(keys % evidence.width).tolist()
        assert not any(indexer.vocabulary[column].deprecated for column in proposed)

    def test_a_batch_gives_the_same_as_single_documents(
        self, indexer: Indexer, knowledge: Knowledge, documents, signal: Signal, evidence, pairs
    ) -> None:
        whole = signal.values(evidence, pairs, Features(evidence, pairs))
        keys = signal.propose(evidence)
        for place, document in enumerate(documents):
            alone = evidence_of(indexer, knowledge, [document])
            span = slice(pairs.starts[place], pairs.starts[place + 1])
            mine = Pairs(pairs.keys[span] - place * pairs.width, 1, pairs.width)
            values = signal.values(alone, mine, Features(alone, mine))
            assert_close(values, {name: one[span] for name, one in whole.items()})
            proposed = signal.propose(alone)
            if keys is None:
                assert proposed is None
            else:
                columns = keys[keys // pairs.width == place] % pairs.width
                assert {*proposed.tolist()} == {*columns.tolist()}

    def test_no_documents_and_no_candidates(
        self, indexer: Indexer, knowledge: Knowledge, documents, signal: Signal
    ) -> None:
        for batch in ([], documents[:2]):
            evidence = evidence_of(indexer, knowledge, batch)
            nothing = Pairs.union([], len(batch), evidence.width)
            values = signal.values(evidence, nothing, Features(evidence, nothing))
            assert {*values} == {*signal.features}
            assert all(len(one) == 0 for one in values.values())
        assert len(find_candidates(evidence_of(indexer, knowledge, [])).pairs) == 0

    def test_a_larger_vocabulary(
        self, indexer: Indexer, knowledge: Knowledge, documents, signal: Signal, evidence, pairs
    ) -> None:
        width = evidence.width + 3
        wide = evidence_of(indexer, knowledge.widened(width), documents)
        assert wide.width == width
        moved = Pairs(pairs.documents * width + pairs.columns, pairs.count, width)
        one = signal.values(wide, moved, Features(wide, moved))
        assert_close(one, signal.values(evidence, pairs, Features(evidence, pairs)))
        new = Pairs(np.arange(len(documents)) * width + width - 1, len(documents), width)
        for name, values in signal.values(wide, new, Features(wide, new)).items():
            assert not np.any(np.isinf(values)), name

    def test_what_it_has_fitted_is_saved_as_arrays(
        self,
        tmp_path: Path,
        indexer: Indexer,
        knowledge: Knowledge,
        documents,
        signal: Signal,
        evidence,
        pairs,
    ) -> None:
        fitted = knowledge.fitted.get(signal.name)
        if fitted is None:
            assert signal.to_arrays(None) == {}
            return
        saved = signal.to_arrays(fitted)
        assert saved
        path = tmp_path / "fitted.safetensors"
        path.write_bytes(tensor_bytes(saved))
        loaded = signal.from_arrays(TensorFile(path, None))
        again = signal.to_arrays(loaded)
        assert {*again} == {*saved}
        for name, array in saved.items():
            np.testing.assert_array_equal(again[name], array, err_msg=name)
        # Weights may be saved with fewer digits.
        other = replace(knowledge, fitted={**knowledge.fitted, signal.name: loaded})
        also = evidence_of(indexer, other, documents)
        for name, values in signal.values(also, pairs, Features(also, pairs)).items():
            expected = signal.values(evidence, pairs, Features(evidence, pairs))[name]
            is_close = np.isclose(values, expected, rtol=0.05, atol=0.05, equal_nan=True)
            assert np.mean(is_close) > 0.9, name

    def test_it_has_no_state(self, signal: Signal, evidence: Evidence, pairs: Pairs) -> None:
        signal.propose(evidence)
        signal.values(evidence, pairs, Features(evidence, pairs))
        assert getattr(signal, "__dict__", {}) == {}


def evidence_of(indexer: Indexer, knowledge: Knowledge, documents: Sequence[Document]) -> Evidence:
    return Evidence(indexer.queries(documents, RERANK_DEPTH), knowledge)


def assert_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    assert {*one} == {*other}
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


def assert_close(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    assert {*one} == {*other}
    for name, values in one.items():
        np.testing.assert_allclose(values, other[name], rtol=ROUNDING, atol=ROUNDING, err_msg=name)
