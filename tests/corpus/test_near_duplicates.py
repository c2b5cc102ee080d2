from __future__ import annotations

import random
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelkin.corpus.near_duplicates import Banding, NearDuplicates, words_of
from labelkin.exceptions import InputError

WORDS = "rye oats barley malt loaf dough flour crust oven seed field mill".split()
TEXTS = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join), min_size=1, max_size=12
)


def groups_of(texts: list[str], threshold: float = 0.8, seed: int = 0) -> list[int]:
    with NearDuplicates(threshold, seed=seed) as duplicates:
        for text in texts:
            duplicates.add(text)
        return duplicates.groups().tolist()


def partition(groups: list[int], texts: list[str]) -> set[frozenset[str]]:
    return {
        frozenset(text for text, other in zip(texts, groups, strict=True) if other == group)
        for group in groups
    }


def shingles(text: str) -> set[tuple[str, ...]]:
    words = words_of(text)
    return {(word,) for word in words} | set(pairwise(words))


def jaccard(one: str, other: str) -> float:
    return len(shingles(one) & shingles(other)) / len(shingles(one) | shingles(other))


def by_hand(texts: list[str], threshold: float) -> list[int]:
    """Connected components over all pairs, by the definition."""
    groups = list(range(len(texts)))
    words = [words_of(text) for text in texts]
    sets = [shingles(text) for text in texts]
    for one, other in combinations(range(len(texts)), 2):
        shared, every = sets[one] & sets[other], sets[one] | sets[other]
        if words[one] == words[other] or (threshold < 1 and len(shared) / len(every) >= threshold):
            low, high = sorted((groups[one], groups[other]))
            groups = [low if group == high else group for group in groups]
    return groups


def edited(text: str, edits: int, chance: random.Random) -> str:
    words = text.split()
    for _ in range(edits):
        words[chance.randrange(len(words))] = f"new{chance.randrange(1000)}"
    return " ".join(words)


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.8, 0.9])
def test_groups_are_those_of_all_pairs(threshold: float) -> None:
    chance = random.Random(7)
    originals = [
        " ".join(f"word{chance.randrange(5000)}" for _ in range(chance.randrange(5, 60)))
        for _ in range(30)
    ]
    texts = [edited(text, edits, chance) for text in originals for edits in (0, 1, 2, 3, 5)]
    expected = by_hand(texts, threshold)
    assert groups_of(texts, threshold) == expected
    assert 30 < len(set(expected)) < 150


@given(TEXTS)
def test_short_texts(texts: list[str]) -> None:
    # Texts of few words have few shingles, whose hashes differ more by chance.
    assert groups_of(texts, 0.5) == by_hand(texts, 0.5)


@given(TEXTS, st.randoms(use_true_random=False))
def test_order_does_not_matter(texts: list[str], chance: random.Random) -> None:
    shuffled = list(texts)
    chance.shuffle(shuffled)
    assert partition(groups_of(texts), texts) == partition(groups_of(shuffled), shuffled)


@given(st.lists(st.text(max_size=20), max_size=8), st.sampled_from([0.3, 0.8, 1.0]))
def test_any_text(texts: list[str], threshold: float) -> None:
    groups = groups_of(texts, threshold)
    assert len(groups) == len(texts)
    assert all(groups[group] == group for group in groups)
    assert all(
        texts[i] != texts[j] or groups[i] == groups[j] for i in range(len(texts)) for j in range(i)
    )


def test_case_punctuation_and_composition_do_not_count() -> None:
    assert (
        groups_of(["On Rye, caf\u00e9!", "on  rye cafe\u0301", "ON-RYE: (Caf\u00e9)"], 1.0)
        == [0] * 3
    )


def test_only_the_same_order_at_1() -> None:
    # The shingles of both are the same.
    assert groups_of(["a b a b", "a b a b a b"], 1.0) == [0, 1]
    assert groups_of(["a b a b", "a b a b a b"], 0.99) == [0, 0]


def test_scripts_without_spaces() -> None:
    one = "国立国会図書館の目録と索引についての研究"
    assert groups_of([one, one + "と", one[:5]], 0.8) == [0, 0, 2]


def test_many_alike_are_one_group() -> None:
    start = " ".join(f"w{number}" for number in range(40))
    texts = [f"{start} volume {number}" for number in range(3000)]
    assert set(groups_of(texts, 0.9)) == {0}


def test_similarities() -> None:
    texts = ["rye loaf oven", "rye loaf mill", "seed"]
    with NearDuplicates() as duplicates:
        for text in [*texts, texts[0]]:
            duplicates.add(text)
        numbers = duplicates.text_numbers()
        assert numbers.tolist() == [0, 1, 2, 0]
        left, right = np.array([0, 0, 1, 1]), np.array([1, 2, 1, 2])
        expected = [jaccard(texts[i], texts[j]) for i, j in zip(left, right, strict=True)]
        assert duplicates.similarities(left, right).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8, 0.9, 0.99, 1.0])
def test_few_are_missed(threshold: float) -> None:
    banding = Banding.for_threshold(threshold)
    assert banding.missed(threshold) <= 0.001
    assert banding.bands * banding.rows <= 128


@pytest.mark.parametrize("threshold", [0.0, 0.29, 1.01, float("nan")])
def test_bad_thresholds(threshold: float) -> None:
    with pytest.raises(InputError, match="threshold"):
        NearDuplicates(threshold)


def test_no_texts() -> None:
    assert groups_of([]) == []
