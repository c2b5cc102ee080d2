"""Titles and bodies: sentences that name, suggest or omit the headings of a document."""

from __future__ import annotations

import random
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
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
_REPEAT_TITLE = 0.8
_WORDS_TOO = 0.7
_PADDED_WITH_WORDS = 0.6
_PLACE_IN_TITLE = 0.5
_SUITED_FRAME = 0.5
_PASSING_FRAME = 0.5
_DISTRACTOR_COUNTS = (0, 1, 1, 2, 2, 3)
_SCENE_COUNTS = (0, 1, 1)
_MANY_LABELS = 8


class Manner(Enum):
    """How a text expresses a heading that its document carries."""

    NAME = "name"
    SYNONYM = "synonym"
    WORDS = "topic words"
    ABSENT = "absent"


MANNERS = (0.50, 0.25, 0.25, 0.0)
"""The share of each manner for a heading that nothing but the text explains."""

IMPLIED_MANNERS = (0.25, 0.10, 0.20, 0.45)
"""The same for a heading that follows from another one, which the text may leave out."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A noun phrase for a heading, and what the choice of its sentence depends on."""

    phrase: str
    category: str
    manner: Manner


def choose_manner(
    heading: Heading, rng: random.Random, *, implied: bool = False, leading: bool = False
) -> Manner:
    """Draw how the text of a document with this heading expresses it.

    Places and the headings of the title are always named.
    """
    name, synonym, words, absent = IMPLIED_MANNERS if implied else MANNERS
    if leading or heading.category == "G":
        words = absent = 0.0
    if not heading.said_synonyms:
        name, synonym = name + synonym, 0.0
    return rng.choices(tuple(Manner), (name, synonym, words, absent))[0]


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

    def write(
        self,
        labels: Sequence[Heading],
        distractors: Sequence[Heading],
        implied: AbstractSet[str] = frozenset(),
    ) -> tuple[str, str]:
        """Title and body of a document with these labels.

        The title names the first of them that are not `implied` by others. The distractors are
        headings that the document does not carry: the body names up to three of them, half of
        these in the same way as labels.
        """
        rng = self._rng
        own = [one for one in labels if one.category not in "GH" and one.id not in implied]
        first = own[: rng.choice((1, 2, 2, 3))]
        manners = [
            (one, choose_manner(one, rng, implied=one.id in implied, leading=one in first))
            for one in labels
        ]
        mentions = {
            heading.id: mention(heading, manner, rng)
            for heading, manner in manners
            if manner is not Manner.ABSENT
        }
        leading = [mentions[heading.id] for heading in first]
        if any(" and " in one.phrase for one in leading):
            leading = leading[:1]
        title = self._title(leading, [one for one in mentions.values() if one.category == "G"])
        again = [
            one for one in mentions.values() if one not in leading or self._chance(_REPEAT_TITLE)
        ]
        rng.shuffle(again)
        sentences = [self._mention_sentence(group) for group in self._joined(again)]
        if len(labels) < _MANY_LABELS:
            sentences += [
                self._mention_sentence([mention(heading, Manner.WORDS, rng)])
                for heading, manner in manners
                if manner in (Manner.NAME, Manner.SYNONYM)
                and heading.category != "G"
                and self._chance(_WORDS_TOO)
            ]
        count = min(rng.choice(_DISTRACTOR_COUNTS), 1 if len(labels) > _MANY_LABELS else 3)
        sentences += [self._distractor_sentence(heading) for heading in distractors[:count]]
        sentences += self._scenes()
        rng.shuffle(sentences)
        expressed = [heading for heading, manner in manners if manner is not Manner.ABSENT]
        return title, " ".join(self._padded(sentences, expressed))

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

    def _padded(self, sentences: list[str], labels: Sequence[Heading]) -> list[str]:
        """The sentences, until the body is long enough: more topic words, and fillers."""
        target = self._rng.randint(SHORTEST, LONGEST)
        length = sum(len(one.split()) for one in sentences)
        fillers = self._rng.sample(frames.FILLERS, len(frames.FILLERS))
        wordy = [heading for heading in labels if heading.category != "G"]
        while length < target and fillers:
            if wordy and self._chance(_PADDED_WITH_WORDS):
                again = mention(self._rng.choice(wordy), Manner.WORDS, self._rng)
                text = self._mention_sentence([again])
            else:
                text = sentence(self._with_numbers(fillers.pop()))
            sentences.insert(self._rng.randint(1, len(sentences)), text)
            length += len(text.split())
        return sentences

    def _with_numbers(self, text: str) -> str:
        if "{" not in text:
            return text
        year = self._year - self._rng.randint(3, 35)
        later = self._rng.randint(year + 2, self._year - 1)
        return text.format(n=self._rng.randint(3, 40), year=year, later=later)
