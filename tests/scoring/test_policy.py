from __future__ import annotations

import numpy as np
import pytest

from labelkin.exceptions import ConfigError
from labelkin.scoring.policy import LabelPolicy
from labelkin.scoring.suggestion import Suggestion, fold_broader
from labelkin.vocab import Concept, Vocabulary


def allowed(policy: LabelPolicy) -> list[int]:
    return sorted({int(column) for column in policy.target if column >= 0})


def test_deprecated_concepts_count_as_their_replacement(vocabulary: Vocabulary) -> None:
    rows, columns = np.array([0, 0, 0, 1]), np.array([0, 2, 4, 4], dtype=np.int32)
    found = LabelPolicy(vocabulary).apply(rows, columns)
    assert [one.tolist() for one in found] == [[0, 0, 1], [0, 2, 2]]


def test_circles_and_dead_ends() -> None:
    concepts = [
        Concept("a", {}, deprecated=True, replaced_by=("b",)),
        Concept("b", {}, deprecated=True, replaced_by=("a",)),
        Concept("c", {}, deprecated=True),
        Concept("d", {}, deprecated=True, replaced_by=("elsewhere", "e")),
        Concept("e", {}),
    ]
    assert LabelPolicy(Vocabulary(concepts)).target.tolist() == [-1, -1, -1, 4, 4]


def test_a_split_concept_counts_as_none_of_its_successors() -> None:
    concepts = [
        Concept("a", {}, deprecated=True, replaced_by=("b", "c")),
        Concept("b", {}),
        Concept("c", {}),
        Concept("d", {}, deprecated=True, replaced_by=("a", "e")),
        Concept("e", {}, deprecated=True, replaced_by=("b",)),
        Concept("f", {}, deprecated=True, replaced_by=("e", "b")),
    ]
    assert LabelPolicy(Vocabulary(concepts)).target.tolist() == [-1, 1, 2, -1, 1, 1]


def test_include_and_exclude(vocabulary: Vocabulary) -> None:
    assert allowed(LabelPolicy(vocabulary, exclude=["Oats"])) == [0, 1, 3]
    assert allowed(LabelPolicy(vocabulary, include=["A01"])) == [0, 1]
    assert allowed(LabelPolicy(vocabulary, include=["A"], exclude=["A01.100"])) == [0]
    assert allowed(LabelPolicy(vocabulary, include=["http://example.org/v"])) == [3]
    assert allowed(LabelPolicy(vocabulary, include=["Bread"])) == [0, 1]
    with pytest.raises(ConfigError, match="'Wheat' is not a concept, notation, scheme or group"):
        LabelPolicy(vocabulary, include=["Wheat"])


def test_fold_broader(vocabulary: Vocabulary) -> None:
    made = [
        Suggestion(vocabulary[column], 0.5, rank, (), 5)
        for rank, column in enumerate([0, 2, 1], start=1)
    ]
    folded = fold_broader(made, vocabulary)
    assert [(s.concept.id, s.rank) for s in folded] == [("V3", 1), ("V2", 2)]


def test_fold_broader_keeps_headings_in_cycles() -> None:
    concepts = [
        Concept("a", {}, broader=("b",)),
        Concept("b", {}, broader=("a",)),
        Concept("c", {}, broader=("a",)),
        Concept("d", {}, broader=("d",)),
    ]
    vocabulary = Vocabulary(concepts)

    def folded(*ids: str) -> list[str]:
        made = [Suggestion(vocabulary.concept(one), 0.5, 1, (), 5) for one in ids]
        return [suggestion.concept.id for suggestion in fold_broader(made, vocabulary)]

    assert folded("a") == ["a"]
    assert folded("a", "b", "d") == ["a", "b", "d"]
    assert folded("a", "b", "c") == ["c"]
