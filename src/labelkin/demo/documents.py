"""The documents of the demonstration collection."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from labelkin.corpus.document import Document
from labelkin.demo.headings import Heading
from labelkin.demo.texts import Writer
from labelkin.demo.topics import Topic, TopicModel, topic_model

FIRST_YEAR, LAST_YEAR = 1978, 2024

_DISTRACTORS = 3
_NEAR_DISTRACTOR = 0.6


def demo_documents(count: int = 4000, seed: int = 0) -> Iterator[Document]:
    """Documents labelled with the ids of `demo_concepts(seed)`.

    Each document has its own random generator, seeded by `seed` and its number, so that a
    shorter collection is the beginning of a longer one.
    """
    model = topic_model(seed)
    for number in range(1, count + 1):
        yield _document(number, model, random.Random(f"labelkin-demo/document/{seed}/{number}"))


def _document(number: int, model: TopicModel, rng: random.Random) -> Document:
    topics = model.draw_topics(rng)
    labels = model.draw_labels(topics, rng)
    distractors = draw_distractors(model, topics[0], labels, rng)
    year = round(rng.triangular(FIRST_YEAR, LAST_YEAR, LAST_YEAR - 5))
    writer = Writer(rng, year, topics[0].scene_words)
    title, body = writer.write(labels, distractors, model.implied(labels))
    return Document(
        id=f"demo-{number:05d}",
        title=title,
        body=body,
        language="en",
        metadata={
            "year": year,
            "journal": rng.choice(topics[0].journals),
        },
        labels=tuple(sorted(heading.id for heading in labels)),
    )


def draw_distractors(
    model: TopicModel, topic: Topic, labels: Sequence[Heading], rng: random.Random
) -> list[Heading]:
    """Headings that the document does not carry, most of them from its own topic."""
    carried = {heading.id for heading in labels}
    chosen: dict[str, Heading] = {}
    while len(chosen) < _DISTRACTORS:
        near = rng.random() < _NEAR_DISTRACTOR
        heading = rng.choice(topic.headings if near else model.headings)
        if heading.id not in carried:
            chosen[heading.id] = heading
    return list(chosen.values())
