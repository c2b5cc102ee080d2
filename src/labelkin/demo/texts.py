"""Titles and bodies: sentences that name, suggest or omit the headings of a document."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from labelkin.demo.headings import Heading
from labelkin.demo.lexicon import frames
from labelkin.demo.wording import listed, sentence

SHORTEST, LONGEST = 66, 140
"""Bounds of the number of words to which a body is padded."""

_LEAD = 0.35
_TAIL = 0.35
_JOIN = 0.5
_REPEAT_TITLE = 0.6
_PLACE_IN_TITLE = 0.5
_SUITED_FRAME = 0.5
_PASSING_FRAME = 0.5
_DISTRACTOR_COUNTS = (0, 1, 1, 2, 2, 3)
_SCENE_COUNTS = (2, 2, 3)
_MANY_LABELS = 8


class Manner(Enum):
    """How a text expresses a heading that its document carries."""

    NAME = "name"
    SYNONYM = "synonym"
    WORDS = "topic words"
    ABSENT = "absent"


MANNERS: dict[bool, tuple[float, ...]] = {
    True: (0.39, 0.215, 0.295, 0.10),
    False: (0.52, 0.0, 0.37, 0.11),
}
"""The share of each manner, for headings with and without synonyms; 40/20/30/10 overall."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A noun phrase for a heading, and what the choice of its sentence depends on."""

    phrase: str
    category: str
    manner: Manner


def choose_manner(heading: Heading, rng: random.Random) -> Manner:
    """Draw how the text of a document with this heading expresses it."""
    return rng.choices(tuple(Manner), MANNERS[bool(heading.said_synonyms)])[0]


def mention(heading: Heading, manner: Manner, rng: random.Random) -> Mention:
    """A phrase for the heading, in any manner but `ABSENT`."""
    if manner is Manner.NAME:
        phrase = heading.said
    elif manner is Manner.SYNONYM:
        phrase = rng.choice(heading.said_synonyms)
    else:
        phrase = listed(rng.sample(heading.topic_words, rng.choice((2, 2, 3))))
    return Mention(phrase, heading.category, manner)


class Writer:
    """Writes the text of one document of the given year and topic."""

    def __init__(self, rng: random.Random, year: int, scene_words: Sequence[str]) -> None:
        self._rng = rng
        self._year = year
        self._scene_words = scene_words
        self._frames_used: set[str] = set()

    def write(self, labels: Sequence[Heading], distractors: Sequence[Heading]) -> tuple[str, str]:
        """Title and body of a document with these labels.

        The distractors are headings that the document does not carry: the body names up to three
        of them, half of these in the same way as labels.
        """
        rng = self._rng
        manners = [(heading, choose_manner(heading, rng)) for heading in labels]
        mentions = [
            mention(heading, manner, rng)
            for heading, manner in manners
            if manner is not Manner.ABSENT
        ]
        leading = [one for one in mentions if one.category not in "GH"][: rng.choice((1, 2, 2))]
        title = self._title(leading, [one for one in mentions if one.category == "G"])
        named_again = [one for one in mentions if one not in leading or self._chance(_REPEAT_TITLE)]
        rng.shuffle(named_again)
        sentences = [self._mention_sentence(group) for group in self._joined(named_again)]
        count = min(rng.choice(_DISTRACTOR_COUNTS), 1 if len(labels) > _MANY_LABELS else 3)
        sentences += [self._distractor_sentence(heading) for heading in distractors[:count]]
        sentences += self._scenes()
        rng.shuffle(sentences)
        return title, " ".join(self._padded(sentences))

    def _chance(self, probability: float) -> bool:
        return self._rng.random() < probability

    def _pick(self, choices: Sequence[str]) -> str:
        """A frame that this document has not used yet, if there is one."""
        fresh = [frame for frame in choices if frame not in self._frames_used]
        chosen = self._rng.choice(fresh or choices)
        self._frames_used.add(chosen)
        return chosen

    def _title(self, leading: Sequence[Mention], places: Sequence[Mention]) -> str:
        phrases = [one.phrase for one in leading] or ["an ordinary year"]
        if any(" and " in phrase for phrase in phrases):
            phrases = phrases[:1]
        phrase = listed(phrases)
        named = [one for one in places if one.manner is not Manner.WORDS]
        if named and self._chance(_PLACE_IN_TITLE):
            phrase = f"{phrase} in {named[0].phrase}"
        title = self._rng.choice(frames.TITLES).replace("{x}", phrase)
        return sentence(self._with_numbers(title)).removesuffix(".")

    def _joined(self, mentions: Sequence[Mention]) -> list[list[Mention]]:
        """Group mentions by sentence; named headings of one category may share a sentence."""
        groups: list[list[Mention]] = []
        for one in mentions:
            fitting = [
                group
                for group in groups
                if len(group) < 3
                and group[0].category == one.category
                and Manner.WORDS not in (group[0].manner, one.manner)
            ]
            if fitting and self._chance(_JOIN):
                fitting[0].append(one)
            else:
                groups.append([one])
        return groups

    def _mention_sentence(self, group: Sequence[Mention]) -> str:
        category = group[0].category
        if group[0].manner is Manner.WORDS:
            choices = frames.WORDED.get(category, frames.WORDED[""])
        elif category in "GH" or self._chance(_SUITED_FRAME):
            choices = frames.NAMED[category]
        else:
            choices = frames.GENERAL
        return self._frame_sentence(self._pick(choices), listed([one.phrase for one in group]))

    def _distractor_sentence(self, heading: Heading) -> str:
        one = mention(heading, Manner.NAME, self._rng)
        if self._chance(_PASSING_FRAME):
            return self._frame_sentence(self._pick(frames.PASSING), one.phrase)
        return self._mention_sentence([one])

    def _scenes(self) -> list[str]:
        chosen = self._rng.sample(frames.SCENES, self._rng.choice(_SCENE_COUNTS))
        return [
            self._frame_sentence(frame, listed(self._rng.sample(self._scene_words, 2)))
            for frame in chosen
        ]

    def _frame_sentence(self, frame: str, phrase: str) -> str:
        """The frame as a sentence, sometimes with a lead or a tail if it allows them."""
        text = frame.removesuffix(" ~").replace("{x}", phrase)
        if frame.endswith("~"):
            chance = self._rng.random()
            if chance < _LEAD:
                text = self._rng.choice(frames.LEADS) + text
            elif chance < _LEAD + _TAIL:
                text += self._rng.choice(frames.TAILS)
        return sentence(self._with_numbers(text))

    def _padded(self, sentences: list[str]) -> list[str]:
        """The sentences with fillers inserted at random until the body is long enough."""
        target = self._rng.randint(SHORTEST, LONGEST)
        length = sum(len(one.split()) for one in sentences)
        for filler in self._rng.sample(frames.FILLERS, len(frames.FILLERS)):
            if length >= target:
                break
            text = sentence(self._with_numbers(filler))
            sentences.insert(self._rng.randint(1, len(sentences)), text)
            length += len(text.split())
        return sentences

    def _with_numbers(self, text: str) -> str:
        if "{" not in text:
            return text
        year = self._year - self._rng.randint(3, 35)
        later = self._rng.randint(year + 2, self._year - 1)
        return text.format(n=self._rng.randint(3, 40), year=year, later=later)
