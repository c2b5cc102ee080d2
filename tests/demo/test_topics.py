from __future__ import annotations

import random
from collections import Counter

import pytest

from labelkin.demo.headings import demo_headings
from labelkin.demo.topics import CHECK_TAGS, LABEL_COUNTS, REALMS, companion_names, topic_model

SEEDS = [0, 1, 2]


@pytest.mark.parametrize("seed", SEEDS)
def test_topics_prefer_bundles_and_share_some_headings(seed: int) -> None:
    topics = topic_model(seed).topics
    assert 60 <= len(topics) <= 100
    assert Counter(topic.realm for topic in topics) == dict.fromkeys(REALMS, 10)
    found_in = Counter(heading.id for topic in topics for heading in topic.headings)
    assert sum(count > 1 for count in found_in.values()) > 100
    for topic in topics:
        ids = [heading.id for heading in topic.headings]
        assert len(set(ids)) == len(ids) == len(topic.cumulative)
        assert 8 <= len(ids) <= 50
        categories = {heading.category for heading in topic.headings}
        assert len(categories) >= 3


def test_topic_headings_belong_to_its_realm() -> None:
    for topic in topic_model().topics:
        for heading in topic.headings:
            assert {topic.realm, "any"} & set(heading.group.realms)


@pytest.mark.parametrize("seed", SEEDS)
def test_check_tags_keep_their_mean_but_differ_between_topics(seed: int) -> None:
    model = topic_model(seed)
    rng = random.Random(5)
    drawn = [model.draw_topics(rng)[0] for _ in range(3000)]
    for position, (name, rate) in enumerate(CHECK_TAGS.items()):
        heading = drawn[0].check_tags[position][0]
        assert heading.concept.name() == name
        rates = [topic.check_tags[position][1] for topic in drawn]
        assert sum(rates) / len(rates) == pytest.approx(rate, abs=0.06)
        assert max(rates) > 2 * min(rates)


def test_label_sets_have_the_drawn_size_and_no_repeats() -> None:
    model = topic_model()
    rng = random.Random(1)
    sizes = Counter[int]()
    for _ in range(3000):
        labels = model.draw_labels(model.draw_topics(rng), rng)
        assert len({heading.id for heading in labels}) == len(labels)
        assert labels[0].concept.name() not in CHECK_TAGS
        sizes[len(labels)] += 1
    assert set(sizes) == set(LABEL_COUNTS)
    assert sizes[5] > sizes[2] > 0


def test_headings_that_only_give_order_are_never_drawn() -> None:
    model = topic_model()
    names = {heading.concept.name() for heading in model.headings}
    assert not {"Plants", "Places", "Provinces", "Named Rivers", "Lantern Slide Sets"} & names
    assert {heading.id for heading in model.used} < {heading.id for heading in model.headings}


def test_companions_exist_and_come_along() -> None:
    names = {heading.concept.name() for heading in topic_model().used}
    for name, companions in companion_names().items():
        assert {name, *companions} <= names
        assert name not in companions
    model = topic_model()
    rng = random.Random(3)
    drawn = [model.draw_labels(model.draw_topics(rng), rng) for _ in range(6000)]
    named = [{heading.concept.name() for heading in labels} for labels in drawn]
    shepherded = [labels for labels in named if "Shearing" in labels]
    assert sum("Wool" in labels for labels in shepherded) > 0.6 * len(shepherded) > 5


def test_broader_headings_and_companions_are_implied() -> None:
    by_name = {heading.concept.name(): heading for heading in demo_headings()}
    names = ("Late Blight", "Potatoes", "Fungal Diseases", "Oysters")
    implied = topic_model().implied([by_name[name] for name in names])
    assert implied == {by_name["Potatoes"].id, by_name["Fungal Diseases"].id}
