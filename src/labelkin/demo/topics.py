"""The latent topics that decide which headings occur together.

A topic belongs to a realm (field, garden, river, ...). It draws a few groups of headings of that
realm, mostly from different categories, and prefers some headings of each with Zipf-like weights;
it also has its own rate for each check tag. A document has one topic or two, and adds companions of
its headings (`lexicon.companions`), relatives in the hierarchy and a few headings drawn from all.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from labelkin.demo.headings import Heading, demo_headings
from labelkin.demo.lexicon.companions import COMPANIONS
from labelkin.demo.lexicon.frames import JOURNALS

REALMS = ("field", "garden", "orchard", "forest", "stock", "river", "coast", "village")
TOPICS_PER_REALM = 10

CHECK_TAGS: Mapping[str, float] = {
    "Ellmark": 0.16,
    "Field Studies": 0.14,
    "Seasons": 0.12,
    "Comparative Studies": 0.08,
    "Historical Studies": 0.08,
    "Surveys": 0.07,
    "Laboratory Studies": 0.06,
    "Lowlands": 0.05,
    "Long-Term Studies": 0.05,
    "Statistics": 0.05,
}
"""Headings that many documents carry whatever their topic, with their mean rate."""

LABEL_COUNTS: Mapping[int, int] = {
    2: 5,
    3: 9,
    4: 14,
    5: 18,
    6: 17,
    7: 13,
    8: 9,
    9: 6,
    10: 4,
    11: 3,
    12: 2,
}
"""The weight of each number of labels; the mean is about 6."""

NEVER_USED = 0.06
SECOND_TOPIC = 0.08
FROM_FIRST_TOPIC = 0.65
FROM_RELATIVES = 0.05
WITH_COMPANION = 0.9
FROM_ANYWHERE = 0.05

_GROUP_WEIGHTS = (1.0, 0.5, 0.25)
_GROUP_SIZE = 9
# How much likelier headings with companions are than others.
_STAPLE = 6
_PLACE_WEIGHT = 0.15
_STUDY_WEIGHT = 0.06
_STEEPNESS = 2.4
_SAME_CATEGORY = 0.3
# How much likelier groups are whose headings belong together.
_LINKED = 20
_TAG_SPREAD = 0.3
_POPULARITY_OFFSET = 5
_POPULARITY_STEEPNESS = 0.7


@dataclass(frozen=True, slots=True)
class Topic:
    """The headings that documents of one topic carry, and their journals."""

    realm: str
    headings: tuple[Heading, ...]
    cumulative: tuple[float, ...]
    check_tags: tuple[tuple[Heading, float], ...]
    scene_words: tuple[str, ...]
    journals: tuple[str, ...]


class TopicModel:
    """Draws topics and label sets from distributions that the seed determines."""

    def __init__(self, headings: Sequence[Heading], seed: int) -> None:
        rng = random.Random(f"labelkin-demo/topics/{seed}")
        by_name = {heading.concept.name(): heading for heading in headings}
        tags = [(by_name[name], rate) for name, rate in CHECK_TAGS.items()]
        self.headings = tuple(heading for heading in headings if not heading.structural)
        self._tag_ids = frozenset(heading.id for heading, _ in tags)
        self._companions = {
            by_name[name].id: tuple(by_name[one] for one in names)
            for name, names in companion_names().items()
        }
        staples = frozenset(self._companions).union(
            one.id for companions in self._companions.values() for one in companions
        )
        self.used = tuple(
            heading
            for heading in self.headings
            if rng.random() >= NEVER_USED or heading.id in self._tag_ids | staples
        )
        self._draws = tuple(accumulate(_STAPLE if one.id in staples else 1 for one in self.used))
        self._relatives = _relatives(headings, {heading.id for heading in self.used})
        groups: dict[tuple[str, str], list[Heading]] = {}
        for heading in self.used:
            if heading.id not in self._tag_ids:
                groups.setdefault((heading.group.name, heading.category), []).append(heading)
        links = _group_links(headings, self._companions)
        ranks = list(range(1, TOPICS_PER_REALM * len(REALMS) + 1))
        rng.shuffle(ranks)
        popularity = [(rank + _POPULARITY_OFFSET) ** -_POPULARITY_STEEPNESS for rank in ranks]
        leanings = [_leanings(rate, popularity, rng) for _, rate in tags]
        self._popularity = tuple(accumulate(popularity))
        self.topics = tuple(
            _make_topic(
                REALMS[number % len(REALMS)],
                list(groups.values()),
                staples,
                links,
                tuple((tag, rates[number]) for (tag, _), rates in zip(tags, leanings, strict=True)),
                rng,
            )
            for number in range(len(ranks))
        )

    def draw_topics(self, rng: random.Random) -> list[Topic]:
        """One topic, or two of which the first is the main one."""
        count = 2 if rng.random() < SECOND_TOPIC else 1
        return rng.choices(self.topics, cum_weights=self._popularity, k=count)

    def draw_labels(self, topics: Sequence[Topic], rng: random.Random) -> list[Heading]:
        """Distinct headings, those of the topics before the check tags."""
        count = rng.choices(list(LABEL_COUNTS), list(LABEL_COUNTS.values()))[0]
        tags = [heading for heading, rate in topics[0].check_tags if rng.random() < rate]
        tags = tags[: count - 1]
        chosen: dict[str, Heading] = {}
        while len(chosen) + len(tags) < count:
            heading = self._draw_one(topics, chosen, rng)
            if heading.id in self._tag_ids:
                continue
            chosen[heading.id] = heading
            for companion in self._companions.get(heading.id, ()):
                if len(chosen) + len(tags) < count and rng.random() < WITH_COMPANION:
                    chosen.setdefault(companion.id, companion)
        return [*chosen.values(), *tags]

    def implied(self, labels: Sequence[Heading]) -> frozenset[str]:
        """The ids of those labels that are broader than another or its companion."""
        expected = {
            one for heading in labels for one in (*heading.concept.broader, *self._beside(heading))
        }
        return frozenset(heading.id for heading in labels if heading.id in expected)

    def _beside(self, heading: Heading) -> Iterator[str]:
        return (companion.id for companion in self._companions.get(heading.id, ()))

    def _draw_one(
        self, topics: Sequence[Topic], chosen: Mapping[str, Heading], rng: random.Random
    ) -> Heading:
        chance = rng.random()
        if chosen and chance < FROM_RELATIVES:
            relatives = self._relatives[rng.choice(list(chosen))]
            if relatives:
                return rng.choice(relatives)
        elif chance > 1 - FROM_ANYWHERE:
            return rng.choices(self.used, cum_weights=self._draws)[0]
        topic = topics[0 if rng.random() < FROM_FIRST_TOPIC else -1]
        return rng.choices(topic.headings, cum_weights=topic.cumulative)[0]


def companion_names() -> dict[str, list[str]]:
    """The names of each heading's companions."""
    lines = (line.partition(": ") for line in COMPANIONS.split("\n") if line)
    return {name: names.split("; ") for name, _, names in lines}


@lru_cache(maxsize=4)
def topic_model(seed: int = 0) -> TopicModel:
    """The topic model behind `demo_documents(..., seed)`."""
    return TopicModel(demo_headings(seed), seed)


def _make_topic(
    realm: str,
    groups: Sequence[Sequence[Heading]],
    staples: AbstractSet[str],
    links: Mapping[str, AbstractSet[str]],
    check_tags: tuple[tuple[Heading, float], ...],
    rng: random.Random,
) -> Topic:
    fitting = [group for group in groups if {realm, "any"} & set(group[0].group.realms)]
    things = _choose_things(
        [group for group in fitting if group[0].category not in "GH"], links, rng
    )
    place = rng.choice([group for group in fitting if group[0].category == "G"])
    study = rng.choice([group for group in fitting if group[0].category == "H"])
    weights: dict[str, float] = {}
    chosen: dict[str, Heading] = {}
    for group, weight in zip(
        [*things, place, study], [*_GROUP_WEIGHTS, _PLACE_WEIGHT, _STUDY_WEIGHT], strict=True
    ):
        # Weighted sampling without replacement (Efraimidis and Spirakis 2006).
        keys = [rng.random() ** (1 / (_STAPLE if one.id in staples else 1)) for one in group]
        order = sorted(range(len(group)), key=lambda place: -keys[place])
        members = [group[place] for place in order[:_GROUP_SIZE]]
        for rank, heading in enumerate(members, start=1):
            chosen[heading.id] = heading
            weights[heading.id] = weights.get(heading.id, 0.0) + weight / rank**_STEEPNESS
    words = (word for group in things for word in group[0].group.words)
    return Topic(
        realm=realm,
        headings=tuple(chosen.values()),
        cumulative=tuple(accumulate(weights.values())),
        check_tags=check_tags,
        scene_words=tuple(dict.fromkeys(words)),
        journals=JOURNALS[realm] + JOURNALS["any"],
    )


def _choose_things(
    groups: Sequence[Sequence[Heading]],
    links: Mapping[str, AbstractSet[str]],
    rng: random.Random,
) -> list[Sequence[Heading]]:
    """As many groups as there are weights, mostly linked and of different categories."""
    chosen: list[Sequence[Heading]] = []
    while len(chosen) < len(_GROUP_WEIGHTS):
        linked = {one for group in chosen for one in links.get(group[0].group.name, ())}
        weights = [
            min(len(group), _GROUP_SIZE) * (_LINKED if group[0].group.name in linked else 1)
            for group in groups
        ]
        group = rng.choices(groups, weights)[0]
        categories = {other[0].category for other in chosen}
        if group[0].category not in categories or (
            group not in chosen and rng.random() < _SAME_CATEGORY
        ):
            chosen.append(group)
    return chosen


def _group_links(
    headings: Sequence[Heading], companions: Mapping[str, Sequence[Heading]]
) -> dict[str, set[str]]:
    """Groups by name with those that hold their companions and broader headings."""
    by_id = {heading.id: heading for heading in headings}
    links: dict[str, set[str]] = {}
    for heading in headings:
        broader = [by_id[one] for one in heading.concept.broader]
        for other in (*broader, *companions.get(heading.id, ())):
            links.setdefault(heading.group.name, set()).add(other.group.name)
            links.setdefault(other.group.name, set()).add(heading.group.name)
    return links


def _leanings(rate: float, popularity: Sequence[float], rng: random.Random) -> list[float]:
    """Each topic's rate of a check tag: the mean rate, moved towards 0 or towards 1.

    Random topics that together make up `rate` of all documents get the higher value, so that
    the mean rate holds for every seed.
    """
    order = list(range(len(popularity)))
    total = sum(popularity)
    rng.shuffle(order)
    leanings = [rate - _TAG_SPREAD * rate] * len(order)
    mass = 0.0
    for number in order:
        mass += popularity[number] / total
        if mass > rate:
            break
        leanings[number] = rate + _TAG_SPREAD * (1 - rate)
    return leanings


def _relatives(headings: Sequence[Heading], used: set[str]) -> dict[str, tuple[Heading, ...]]:
    """Parents, children and siblings of each heading that are in use."""
    by_id = {heading.id: heading for heading in headings}
    children: dict[str, list[str]] = {}
    for heading in headings:
        for parent in heading.concept.broader:
            children.setdefault(parent, []).append(heading.id)
    relatives: dict[str, tuple[Heading, ...]] = {}
    for heading in headings:
        near = [*heading.concept.broader, *children.get(heading.id, ())]
        for parent in heading.concept.broader:
            near.extend(children[parent])
        relatives[heading.id] = tuple(
            by_id[other] for other in dict.fromkeys(near) if other in used and other != heading.id
        )
    return relatives
