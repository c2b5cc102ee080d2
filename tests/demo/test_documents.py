from __future__ import annotations

import random
import re
import time
from collections import Counter
from itertools import combinations

import pytest

from labelkin.corpus.document import Document
from labelkin.demo.documents import FIRST_YEAR, LAST_YEAR, demo_documents, draw_distractors
from labelkin.demo.headings import demo_headings
from labelkin.demo.topics import CHECK_TAGS, topic_model
from labelkin.vocab.concept import Concept


def test_four_thousand_documents_with_ids_in_order(demo_collection: list[Document]) -> None:
    assert [document.id for document in demo_collection] == [
        f"demo-{number:05d}" for number in range(1, 4001)
    ]


def test_a_shorter_collection_is_the_beginning_of_a_longer_one() -> None:
    assert list(demo_documents(100, seed=4)) == list(demo_documents(200, seed=4))[:100]


def test_documents_come_one_by_one() -> None:
    assert next(demo_documents(10**9)).id == "demo-00001"
    assert list(demo_documents(0)) == []


def test_seeds_give_different_collections() -> None:
    zero, one = list(demo_documents(50, seed=0)), list(demo_documents(50, seed=1))
    assert not {document.body for document in zero} & {document.body for document in one}
    assert [document.labels for document in zero] != [document.labels for document in one]


def test_fast_enough_for_a_demonstration() -> None:
    start = time.process_time()
    for _ in demo_documents(1000, seed=9):
        pass
    assert time.process_time() - start < 1.25 * 2  # 5 s for 4,000, twice that on a busy machine


def test_language_year_and_journal(demo_collection: list[Document]) -> None:
    assert {document.language for document in demo_collection} == {"en"}
    years = [document.metadata["year"] for document in demo_collection]
    assert all(type(year) is int for year in years)
    assert FIRST_YEAR <= min(years) < 1985
    assert 2020 < max(years) <= LAST_YEAR
    journals = Counter(document.metadata["journal"] for document in demo_collection)
    assert 12 <= len(journals) <= 20
    assert min(journals.values()) > 20


def test_lengths(demo_collection: list[Document]) -> None:
    lengths = sorted(len(document.body.split()) for document in demo_collection)
    assert lengths[0] >= 60
    assert lengths[-1] <= 175
    assert lengths[int(0.99 * len(lengths))] <= 160
    assert 95 <= sum(lengths) / len(lengths) <= 125
    assert all(2 <= len(document.title.split()) <= 30 for document in demo_collection)


def test_texts_differ(demo_collection: list[Document]) -> None:
    assert len({document.body for document in demo_collection}) == len(demo_collection)
    assert len({document.title for document in demo_collection}) > 0.9 * len(demo_collection)


def test_label_counts(demo_collection: list[Document]) -> None:
    counts = Counter(len(document.labels) for document in demo_collection)
    assert min(counts) == 2
    assert max(counts) == 12
    total = sum(size * count for size, count in counts.items())
    assert 5.7 <= total / len(demo_collection) <= 6.3


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_labels_are_distinct_ids_of_standing_headings(seed: int) -> None:
    standing = {h.id for h in demo_headings(seed) if not h.concept.deprecated}
    for document in demo_documents(500, seed):
        assert set(document.labels) <= standing
        assert list(document.labels) == sorted(set(document.labels))


def test_frequencies_have_a_head_and_a_long_tail(
    demo_collection: list[Document], demo_vocabulary: dict[str, Concept]
) -> None:
    frequencies = Counter(label for document in demo_collection for label in document.labels)
    shares = {
        demo_vocabulary[label].name(): count / len(demo_collection)
        for label, count in frequencies.items()
    }
    head = {name for name, share in shares.items() if 0.1 <= share <= 0.2}
    assert head == set(list(CHECK_TAGS)[:3])
    assert max(shares.values()) <= 0.2
    assert max(share for name, share in shares.items() if name not in CHECK_TAGS) < 0.1
    rare = sum(count <= 5 for count in frequencies.values())
    assert 0.25 <= rare / len(demo_vocabulary) <= 0.5
    unused = 1 - len(frequencies) / len(demo_vocabulary)
    assert 0.1 <= unused <= 0.18
    ranked = [count for _, count in frequencies.most_common()]
    assert ranked[0] > 4 * ranked[20] > 8 * ranked[200]


def test_labels_are_correlated(demo_collection: list[Document]) -> None:
    """Pairs meet far more often than if headings were drawn independently."""
    frequencies = Counter(label for document in demo_collection for label in document.labels)
    pairs = Counter(pair for d in demo_collection for pair in combinations(d.labels, 2))
    middling = {label for label, count in frequencies.items() if 40 <= count <= 200}
    lifts = [
        count * len(demo_collection) / (frequencies[one] * frequencies[other])
        for (one, other), count in pairs.items()
        if one in middling and other in middling and count >= 5
    ]
    assert len(lifts) > 100
    assert sorted(lifts)[len(lifts) // 2] > 5


def test_how_labels_show_in_the_text(demo_collection: list[Document]) -> None:
    headings = {heading.id: heading for heading in demo_headings()}
    shown = Counter[str]()
    for document in demo_collection:
        text = document.text.lower()
        for label in document.labels:
            heading = headings[label]
            if _holds(text, heading.said):
                shown["name"] += 1
            elif any(_holds(text, said) for said in heading.said_synonyms):
                shown["synonym"] += 1
            elif any(word in text for word in heading.topic_words):
                shown["words"] += 1
            else:
                shown["absent"] += 1
    shares = {manner: count / shown.total() for manner, count in shown.items()}
    assert 0.48 <= shares["name"] <= 0.56
    assert 0.17 <= shares["synonym"] <= 0.25
    assert 0.16 <= shares["words"] <= 0.24  # some come with the scene rather than the label
    assert 0.05 <= shares["absent"] <= 0.11


def test_only_implied_headings_are_absent_and_places_are_named() -> None:
    headings = {heading.id: heading for heading in demo_headings()}
    model = topic_model()
    absent = 0
    for document in demo_documents(1000):
        labels = [headings[label] for label in document.labels]
        implied = model.implied(labels)
        text = document.text.lower()
        for heading in labels:
            said = [heading.said, *heading.said_synonyms]
            named = any(_holds(text, one) for one in said)
            expressed = named or any(word in text for word in heading.topic_words)
            assert named or heading.category != "G"
            assert expressed or heading.id in implied
            absent += not expressed
    assert absent > 200


def test_titles_name_headings_that_the_document_carries() -> None:
    headings = {heading.id: heading for heading in demo_headings()}
    naming = 0
    for document in demo_documents(1000):
        title = document.title.lower()
        labels = [headings[label] for label in document.labels]
        naming += any(
            _holds(title, said) for one in labels for said in (one.said, *one.said_synonyms)
        )
    assert naming > 970


def test_texts_name_headings_that_the_document_does_not_carry(
    demo_collection: list[Document],
) -> None:
    long_names = [h for h in demo_headings() if len(h.said) > 12 and h.concept.broader]
    sample = demo_collection[:300]
    foreign = sum(
        _holds(document.body.lower(), heading.said)
        for document in sample
        for heading in long_names
        if heading.id not in document.labels
    )
    assert 0.3 <= foreign / len(sample) <= 2.0


def test_distractors_are_not_carried() -> None:
    model = topic_model()
    for number in range(300):
        rng = random.Random(number)
        topics = model.draw_topics(rng)
        labels = model.draw_labels(topics, rng)
        distractors = draw_distractors(model, topics[0], labels, rng)
        assert len({heading.id for heading in distractors}) == 3
        assert not {heading.id for heading in distractors} & {heading.id for heading in labels}


def _holds(text: str, term: str) -> bool:
    lowered = term.lower()
    return lowered in text and bool(re.search(rf"(?<!\w){re.escape(lowered)}(?!\w)", text))
