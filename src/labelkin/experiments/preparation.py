"""Stages that prepare collections, indexes, neighbours and fused neighbours."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelkin.exceptions import CollectionError, DamagedFileError
from labelkin.experiments.sources import Source, file_checksum
from labelkin.experiments.stage import Progress, RecordStage, Stage
from labelkin.neighbours.neighbours import Neighbours
from labelkin.store.config import CONFIG_NAME, update_config

if TYPE_CHECKING:
    from labelkin.experiments.run_context import RunContext

# Rough estimates of seconds per thousand documents on one core, and of unknown sizes.
_STORING, _INDEXING, _PARSING, _ENCODING, _SEARCHING = 0.3, 0.3, 70.0, 1.5, 5.0
_READING, _FUSING = 5.0, 30.0
_DOCUMENTS, _QUERIES = 43_000, 1_200
_SPACY_KINDS = {"lemmas", "nps", "deps", "ners", "keywords"}
_RANK_CONSTANT = 60.0
_FUSING_K = 20


class CollectionStage(RecordStage):
    """Creates the collection folder and adds the documents of a source."""

    kind = "collection"
    _suffix = ""

    def __init__(
        self,
        work: Path,
        vocabulary: Path,
        source: Source,
        language: str,
        settings: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self.vocabulary = vocabulary
        self.source = source
        self.language = language
        self.settings = settings
        size = f"{source.size:,} documents" if source.size else "all documents"
        inputs = {
            "vocabulary": file_checksum(vocabulary),
            "documents": [file_checksum(path) for path in source.paths],
            "size": source.size,
            "seed": source.seed if source.size else None,
            "language": language,
            "settings": settings,
        }
        super().__init__(work, size, inputs)
        self.expected = _READING + self.count / 1000 * _STORING

    @property
    def count(self) -> int:
        """The number of documents; a rough estimate if all are taken."""
        return self.source.size or _DOCUMENTS

    @property
    def record_path(self) -> Path:
        """The JSON file beside the collection folder."""
        return self.path.with_name(f"{self.path.name}.json")

    def uid(self) -> str:
        """The collection's identity; empty if there is no collection."""
        from labelkin.store.manifest import read_manifest

        try:
            return read_manifest(self.path).uid
        except CollectionError:
            return ""

    def is_done(self) -> bool:
        """Whether the record is of the collection in the folder, with all documents added."""
        uid = self.uid()
        return bool(uid) and self.record().get("collection") == uid

    def run(self, context: RunContext, progress: Progress) -> None:
        """Add the missing documents; unchanged ones are skipped."""
        from labelkin.indexer import Indexer
        from labelkin.vocab.reader import read_vocabulary

        context.close()
        vocabulary = read_vocabulary(self.vocabulary)
        if not self.uid():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            Indexer.create(self.path, vocabulary, language=self.language).close()
        if self.settings:
            update_config(self.path / CONFIG_NAME, self.settings)
        with Indexer.open(self.path) as indexer:
            report = indexer.add(
                self.source.documents(),
                progress=lambda so_far: progress(
                    so_far.documents, self.source.size, f"{so_far.documents:,} documents"
                ),
            )
            count, concepts = indexer.collection.count(), len(indexer.vocabulary)
        if (count, concepts) != (report.documents, len(vocabulary)):
            raise CollectionError(
                f"{self.path}: {count:,} documents and {concepts:,} concepts, but the files have "
                f"{report.documents:,} and {len(vocabulary):,}; remove the folder and run again"
            )
        self.write_record({"collection": self.uid(), "documents": count, "concepts": concepts})


class IndexStage(RecordStage):
    """Builds the index of one representation, inside the collection."""

    kind = "index"

    def __init__(self, work: Path, name: str, collection: CollectionStage) -> None:
        self.name = name
        self.collection = collection
        super().__init__(
            work, f"{name}, {collection.subject}", {"representation": name}, (collection,)
        )
        self.expected = collection.count / 1000 * (_INDEXING + preparation_cost(name))

    def is_done(self) -> bool:
        """Whether the record is of the collection in the folder."""
        uid = self.collection.uid()
        return bool(uid) and self.record().get("collection") == uid

    def run(self, context: RunContext, progress: Progress) -> None:
        """Add the missing documents to the index."""
        indexer = context.indexer(self.collection)
        added = indexer.build(
            self.name, progress=lambda done, total: progress(done, total, f"{done:,} documents")
        )
        fingerprint = indexer.search(self.name).fingerprint()
        indexer.release(self.name)
        self.write_record(
            {"collection": self.collection.uid(), "new": added, "found_with": fingerprint}
        )


class NeighbourStage(Stage):
    """Finds the neighbours of a split by one representation."""

    kind = "neighbours"
    _suffix = ".npz"

    def __init__(self, work: Path, index: IndexStage, split: str, source: Source, k: int) -> None:
        self.index = index
        self.source = source
        self.k = k
        inputs = {
            "documents": [file_checksum(path) for path in source.paths],
            "size": source.size,
            "seed": source.seed if source.size else None,
            "k": k,
        }
        super().__init__(work, f"{split} by {index.subject}", inputs, (index.collection, index))
        self.expected = (
            (source.size or _QUERIES) / 1000 * (_SEARCHING + preparation_cost(index.name))
        )

    def is_done(self) -> bool:
        """Whether the saved neighbours are of the collection in the folder."""
        return _are_of(self.path, self.index.collection)

    def run(self, context: RunContext, progress: Progress) -> None:
        """Search the neighbours of the split's documents and save them."""
        documents = context.documents(self.source)
        progress(0, 0, f"{len(documents):,} documents")
        indexer = context.indexer(self.index.collection)
        neighbours = indexer.neighbour_arrays(
            documents, self.k, representation=self.index.name, store_terms=True
        )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        neighbours.save(self.path)
        indexer.release(self.index.name)


class FusionStage(RecordStage):
    """Chooses fusion method and weights for several representations, on one split."""

    kind = "fusion"

    def __init__(
        self,
        work: Path,
        name: str,
        parts: Sequence[NeighbourStage],
        measure: str,
    ) -> None:
        self.parts = tuple(parts)
        self.measure = measure
        subject = f"{name}, {parts[0].index.collection.subject}"
        super().__init__(work, subject, {"measure": measure, "k": _FUSING_K}, self.parts)
        self.expected = (parts[0].source.size or _QUERIES) / 1000 * _FUSING

    def run(self, context: RunContext, progress: Progress) -> None:
        """Try fusion methods and weights with basic k-NN."""
        from labelkin.evaluate import Evaluation, parse_measure
        from labelkin.evaluate.sweep import sweep_fusion
        from labelkin.scoring.settings import ScorerSettings, Settings

        collection = self.parts[0].index.collection
        best = sweep_fusion(
            Settings(knn=ScorerSettings(k=_FUSING_K)),
            lambda fused: context.queries(collection, fused),
            [context.neighbours(part) for part in self.parts],
            Evaluation.unpredicted(context.gold(collection, self.parts[0].source)),
            parse_measure(self.measure),
            _RANK_CONSTANT,
            lambda done, total: progress(done, total, f"{done} of {total}"),
        )[0]
        if best.fusion is not None:
            self.write_record({**asdict(best.fusion), self.measure: best.value})


class FusedStage(Stage):
    """Fuses the neighbours of a split."""

    kind = "neighbours"
    _suffix = ".npz"

    def __init__(
        self,
        work: Path,
        name: str,
        split: str,
        fusion: FusionStage,
        parts: Sequence[NeighbourStage],
    ) -> None:
        self.fusion = fusion
        self.parts = tuple(parts)
        self.source = parts[0].source
        subject = f"{split} by {name}, {parts[0].index.collection.subject}"
        super().__init__(work, subject, {"k": parts[0].k}, (fusion, *self.parts))

    def is_done(self) -> bool:
        """Whether the saved neighbours are of the collection in the folder."""
        return _are_of(self.path, self.parts[0].index.collection)

    def run(self, context: RunContext, progress: Progress) -> None:  # noqa: ARG002
        """Fuse the neighbours as chosen and save them."""
        from labelkin.neighbours.fusion import fuse

        chosen = self.fusion.record()
        parts = [context.neighbours(part) for part in self.parts]
        k = self.parts[0].k
        fused = fuse(parts, k, tuple(chosen["weights"]), chosen["method"], _RANK_CONSTANT)
        fused.save(self.path)


def preparation_cost(representation: str) -> float:
    """The rough number of seconds that analysing a thousand documents takes."""
    from labelkin.represent.encoder import is_encoder
    from labelkin.represent.representation import kind_names

    if is_encoder(representation):
        return _ENCODING
    if kind_names(representation) & _SPACY_KINDS:
        return _PARSING / (os.cpu_count() or 1)
    return 0.0


def _are_of(path: Path, collection: CollectionStage) -> bool:
    """Whether the neighbours in a file were found in the collection in its folder."""
    try:
        fingerprint: dict[str, Any] = dict(Neighbours.load(path).fingerprint)
    except (OSError, DamagedFileError):
        return False
    uid = collection.uid()
    return bool(uid) and fingerprint.get("collection") == uid
