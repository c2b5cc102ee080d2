from __future__ import annotations

import random
import re
from collections import Counter
from itertools import chain
from string import Formatter

import pytest

from labelkin.demo.headings import Heading, demo_headings
from labelkin.demo.lexicon import OUTLINES, frames
from labelkin.demo.texts import LONGEST, Manner, Writer, choose_manner, mention
from labelkin.demo.topics import REALMS

SLOTTED = (
    *frames.GENERAL,
    *frames.PASSING,
    *frames.SCENES,
    *frames.TITLES,
    *chain.from_iterable(frames.NAMED.values()),
    *chain.from_iterable(frames.WORDED.values()),
)
FREE = (*frames.LEADS, *frames.TAILS, *frames.FILLERS)


@pytest.fixture
def headings() -> dict[str, Heading]:
    return {heading.concept.name(): heading for heading in demo_headings()}


def write(labels: list[Heading], distractors: list[Heading], number: int) -> tuple[str, str]:
    writer = Writer(random.Random(number), 2001, ("hoof care", "gravel paths", "dough rise"))
    return writer.write(labels, distractors)


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("Maize", {}, (0.50, 0.25, 0.25, 0.0)),
        ("Maize", {"implied": True}, (0.25, 0.10, 0.20, 0.45)),
        ("Maize", {"leading": True}, (0.67, 0.33, 0.0, 0.0)),
        ("Ellmark", {"implied": True}, (0.71, 0.29, 0.0, 0.0)),
    ],
)
def test_manners(
    headings: dict[str, Heading],
    name: str,
    options: dict[str, bool],
    expected: tuple[float, ...],
) -> None:
    rng = random.Random(0)
    counts = Counter(choose_manner(headings[name], rng, **options) for _ in range(5000))
    shares = [counts[manner] / 5000 for manner in Manner]
    assert shares == pytest.approx(expected, abs=0.03)
    assert all((share == 0) == (one == 0) for share, one in zip(shares, expected, strict=True))


def test_headings_without_synonyms_are_never_shown_by_one() -> None:
    bare = next(heading for heading in demo_headings() if not heading.said_synonyms)
    rng = random.Random(0)
    assert Manner.SYNONYM not in {choose_manner(bare, rng) for _ in range(500)}


def test_mention(headings: dict[str, Heading]) -> None:
    rng = random.Random(0)
    wheat = headings["Wheat, Winter"]
    assert mention(wheat, Manner.NAME, rng).phrase == "winter wheat"
    assert mention(headings["Maize"], Manner.SYNONYM, rng).phrase.lower() in {"zea mays", "corn"}
    worded = mention(wheat, Manner.WORDS, rng).phrase
    assert 2 <= sum(word in worded for word in wheat.topic_words) <= 3


def test_texts_are_sentences(headings: dict[str, Heading]) -> None:
    labels = [headings[name] for name in ("Wheat", "Slugs", "Ploughing", "Brennick", "Surveys")]
    distractors = [headings[name] for name in ("Lobsters", "Perry", "Fog")]
    for number in range(200):
        title, body = write(labels, distractors, number)
        assert title[0].isupper()
        assert not title.endswith(".")
        assert not re.search(r"[{}~]|  | [,.]|\.\.|\bthe the\b", f"{title} {body}")
        for one in re.split(r"(?<=\.) ", body):
            assert one[0].isupper()
            assert one.endswith(".")
            assert len(one.split()) >= 3


def test_no_frame_is_used_twice_in_a_body(headings: dict[str, Heading]) -> None:
    labels = [headings[name] for name in ("Brennick", "Skellow", "Hexley", "Dykeham", "Quillow")]
    for number in range(100):
        _, body = write(labels, [], number)
        assert all(body.count(frame.partition("{x}")[0] or "-") <= 1 for frame in frames.NAMED["G"])


def test_distractors_are_named_in_most_texts_and_never_more_than_three(
    headings: dict[str, Heading],
) -> None:
    distractors = [headings[name] for name in ("Lobsters", "Mead", "Haymaking")]
    counts = Counter(
        sum(
            heading.said in write([headings["Yews"]], distractors, number)[1].lower()
            for heading in distractors
        )
        for number in range(400)
    )
    assert set(counts) == {0, 1, 2, 3}
    assert counts[0] < 120


def test_years_in_the_text_lie_before_the_publication(headings: dict[str, Heading]) -> None:
    for number in range(200):
        text = " ".join(write([headings["Wheat"], headings["Slugs"]], [], number))
        assert all(1960 < int(year) < 2001 for year in re.findall(r"\b[12]\d{3}\b", text))


def test_length_is_bounded_even_with_many_labels(headings: dict[str, Heading]) -> None:
    labels = list(headings.values())[40:52]
    lengths = [len(write(labels, labels[:3], number)[1].split()) for number in range(200)]
    assert max(lengths) <= LONGEST + 40


def test_frames_have_their_slots() -> None:
    for frame in SLOTTED:
        slots = [slot for _, slot, _, _ in Formatter().parse(frame) if slot is not None]
        assert slots.count("x") == 1, frame
        assert set(slots) <= {"x", "n", "year", "later"}, frame
    for text in FREE:
        slots = [slot for _, slot, _, _ in Formatter().parse(text) if slot is not None]
        assert set(slots) <= {"n", "year", "later"}, text


def test_slots_never_stand_before_a_verb_that_shows_number() -> None:
    inflected = re.compile(r"^(?:[^{]*, )?\{x\} (is|are|was|were|has|have|does|do)\b")
    for frame in SLOTTED:
        if frame not in frames.SCENES:  # those always list two words
            assert not inflected.search(frame), frame


def test_frames_are_many_different_and_cover_all_categories() -> None:
    everything = (*SLOTTED, *FREE)
    assert len(set(everything)) == len(everything) > 200
    assert set(frames.NAMED) == set(OUTLINES)
    assert set(frames.JOURNALS) == {*REALMS, "any"}


def test_frames_mention_no_heading() -> None:
    terms = "|".join(
        re.escape(said.lower())
        for heading in demo_headings()
        if heading.concept.broader
        for said in (heading.said, *heading.said_synonyms)
    )
    named = re.compile(rf"\b(?:{terms})\b")
    assert not [frame for frame in (*SLOTTED, *FREE) if named.search(frame.lower())]
