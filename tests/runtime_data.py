"""A small collection with all models, for tests of the runtime."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from labelkin import Document, Indexer, RerankTrainingSettings, Settings, TrainingSettings
from labelkin.autoencoder.training_settings import paper_settings
from labelkin.demo import demo_concepts, demo_documents
from labelkin.exceptions import MissingExtraError
from labelkin.vocab import Concept, Vocabulary

DOCUMENTS = 400
QUERIES = 12


# Small networks of either recipe.
JOINT = TrainingSettings(preset="16", epochs=4, batch_size=32, device="cpu")
PAPER = paper_settings(preset="32/24/16", epochs=4, batch_size=32, device="cpu")


def make_trained(
    path: Path, further: Sequence[Concept] = (), label_ae: TrainingSettings = JOINT
) -> list[str]:
    """A collection with all models that can be trained here; the methods that it can use."""
    vocabulary = Vocabulary([*demo_concepts(0), *further])
    with Indexer.create(path, vocabulary, language="en") as indexer:
        indexer.add(demo_documents(DOCUMENTS, 0))
        rerank = RerankTrainingSettings(documents=50, rounds=20, linear=False, threads=1)
        held_out = rerank.held_out(indexer.snapshot())
        with suppress(MissingExtraError):
            indexer.train_label_ae(label_ae, held_out=held_out)
        with suppress(MissingExtraError):
            indexer.train_reranker(settings=rerank, held_out=held_out)
        return indexer.usable_methods()


def fresh_documents(count: int = QUERIES) -> list[Document]:
    """Generated documents that are not in the collection, without labels."""
    made = list(demo_documents(DOCUMENTS + count, 0))[DOCUMENTS:]
    return [Document("", one.title, one.body, language="en") for one in made]


def variants(indexer: Indexer, methods: list[str]) -> list[Settings]:
    """Settings of all methods with different limits, thresholds and lists."""
    label = next(iter(indexer.documents())).labels[0]
    settings = [Settings.from_config(indexer.config, method) for method in methods]
    return [
        varied
        for one in settings
        for varied in (
            one,
            one.changed(limit=3),
            one.changed(limit=9),
            one.changed(threshold=0.2),
            one.changed(exclude=(label,)),
            one.changed(include=("A",), limit=5),
        )
    ]


def signature(suggestions: list) -> list:
    """What must be equal of two answers: headings, scores, and the documents behind them."""
    return [
        (
            one.concept.id,
            round(one.score, 4),
            one.votes,
            [carrier.id for carrier in one.carriers[:3]] if one.votes else [],
            [naming.words for naming in one.named],
        )
        for one in suggestions
    ]


def descriptors() -> int:
    """How many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def mapped_files(folder: Path) -> list[str]:
    """Files below a folder that are mapped into memory."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return sorted({line.split(maxsplit=5)[-1] for line in lines if str(folder.resolve()) in line})


def resident_bytes() -> int:
    """The memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


HAS_PROC = sys.platform == "linux" and Path("/proc/self/fd").is_dir()
