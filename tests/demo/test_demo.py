from __future__ import annotations

import math
import re
import subprocess
import sys
from collections import Counter, defaultdict

import labelkin.demo
from labelkin.corpus.document import Document
from labelkin.demo import demo_concepts, demo_documents

NEIGHBOURS = 20


def test_exported_names_are_sorted_and_exist() -> None:
    assert labelkin.demo.__all__ == sorted(labelkin.demo.__all__)
    assert all(hasattr(labelkin.demo, name) for name in labelkin.demo.__all__)


def test_same_collection_in_another_process() -> None:
    """String hashing differs between processes; the collection must not."""
    script = (
        "from labelkin.demo import demo_concepts, demo_documents;"
        "print(list(demo_documents(5, seed=3)), demo_concepts(3)[::50], end='')"
    )
    other = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "77", "PYTHONUTF8": "1"},
    )
    assert other.stdout == f"{list(demo_documents(5, seed=3))} {demo_concepts(3)[::50]}"


def test_neighbours_predict_labels_well_but_not_perfectly(demo_collection: list[Document]) -> None:
    training, held_out = demo_collection[:-100], demo_collection[-100:]
    neighbours = _Bm25([document.text for document in training])
    frequencies = Counter(label for document in training for label in document.labels)
    mean = round(frequencies.total() / len(training))
    by_vote, by_frequency = [], []
    for document in held_out:
        votes = Counter(
            label
            for number in neighbours.nearest(document.text, NEIGHBOURS)
            for label in training[number].labels
        )
        by_vote.append({label for label, _ in votes.most_common(mean)})
        by_frequency.append({label for label, _ in frequencies.most_common(mean)})
    gold = [set(document.labels) for document in held_out]
    assert 0.5 <= _micro_f(by_vote, gold) <= 0.65
    assert _micro_f(by_frequency, gold) <= 0.35


def _micro_f(predicted: list[set[str]], gold: list[set[str]]) -> float:
    hits = sum(len(one & other) for one, other in zip(predicted, gold, strict=True))
    return 2 * hits / (sum(map(len, predicted)) + sum(map(len, gold)))


class _Bm25:
    """Just enough of BM25 (k1 = 1.2, b = 0.75) to find neighbours."""

    def __init__(self, texts: list[str]) -> None:
        counts = [Counter(_tokens(text)) for text in texts]
        mean = sum(count.total() for count in counts) / len(counts)
        found_in = Counter(token for count in counts for token in count)
        self._postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for number, count in enumerate(counts):
            saturation = 1.2 * (0.25 + 0.75 * count.total() / mean)
            for token, times in count.items():
                rarity = math.log(
                    1 + (len(texts) - found_in[token] + 0.5) / (found_in[token] + 0.5)
                )
                self._postings[token].append((number, rarity * times * 2.2 / (times + saturation)))

    def nearest(self, text: str, count: int) -> list[int]:
        scores: dict[int, float] = defaultdict(float)
        for token, times in Counter(_tokens(text)).items():
            for number, score in self._postings.get(token, ()):
                scores[number] += times * score
        return sorted(scores, key=lambda number: (-scores[number], number))[:count]


def _tokens(text: str) -> list[str]:
    return re.findall(r"[a-z0-9'-]+", text.lower())
