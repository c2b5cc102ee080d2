"""The terms of a collection's documents, extracted by executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from labelkin.atomic import atomic_file
from labelkin.cluster.collection_files import BATCH, CollectionFiles, read_documents
from labelkin.cluster.records import with_failures_named
from labelkin.cluster.session import Session, TaskProgress
from labelkin.cluster.task import Task, digest
from labelkin.cluster.workspace import Workspace
from labelkin.corpus.document import Document
from labelkin.exceptions import ClusterError
from labelkin.represent.cache import TermCache, text_checksum
from labelkin.represent.kind import TermKind
from labelkin.represent.representation import Representation, make_representation
from labelkin.store.config import RepresentationSection

# Rows, checksums of texts, and by kind the terms of each.
TermBatch = tuple[list[int], list[bytes], dict[str, list[list[str]]]]


def no_cache() -> TermCache:
    """A cache that holds nothing: on executors, texts are analysed once anyway."""
    return TermCache(Path("no cache"), read_only=True)


@dataclass(frozen=True, slots=True)
class AnalysisSettings:
    """What executors need to analyse texts as the driver would."""

    name: str
    section: str
    versions: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, representation: Representation, section: RepresentationSection) -> AnalysisSettings:
        """The settings of a representation; an executor analyses with one process."""
        alone = section.model_copy(update={"processes": 1})
        versions = tuple(sorted(representation.versions().items()))
        return cls(representation.name, alone.model_dump_json(), versions)

    def representation(self) -> Representation:
        """The representation; ClusterError if it has other versions here."""
        section = RepresentationSection.model_validate_json(self.section)
        made = make_representation(self.name, section)
        for kind, version in self.versions:
            if (here := made.versions()[kind]) != version:
                raise ClusterError(
                    f"an executor would extract other {kind} ({here}) than the driver ({version}); "
                    "install the same packages and models on all machines"
                )
        return made


@dataclass(frozen=True, slots=True)
class TermsTask(Task):
    """Extracts the terms of the documents in a file."""

    output: Path
    documents: Path
    analysis: AnalysisSettings

    def run(self) -> None:
        """Write a Parquet file: row, checksum of the text, and a list of terms per kind."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        kinds = self.analysis.representation().kinds
        strings = pa.list_(pa.string())
        schema = pa.schema(
            [
                ("row", pa.int64()),
                ("text", pa.binary(16)),
                *((kind.name, strings) for kind in kinds),
            ]
        )
        cache = no_cache()

        def terms_of(documents: list[Document]) -> dict[str, list[list[str]]]:
            return cache.terms(kinds, documents, store=False)

        with atomic_file(self.output) as file, pq.ParquetWriter(file, schema) as writer:
            for rows, documents, _ in read_documents(self.documents):
                terms = with_failures_named(terms_of, documents, self.workspace)
                checksums = [text_checksum(document) for document in documents]
                columns = {"row": rows, "text": checksums, **terms}
                writer.write_batch(pa.RecordBatch.from_pydict(columns, schema=schema))


def extract_terms(
    session: Session,
    workspace: Workspace,
    files: CollectionFiles,
    analysis: AnalysisSettings,
    progress: TaskProgress | None = None,
) -> tuple[Path, ...]:
    """The files with the terms of each of the collection's files."""
    kind = f"terms-{digest(analysis.versions)[:8]}"
    folder = workspace.part(kind)
    outputs = tuple(folder / f"{name}.parquet" for name in files.digests)
    tasks = [
        TermsTask(output, path, analysis) for output, path in zip(outputs, files.paths, strict=True)
    ]
    session.run(tasks, progress)
    workspace.sweep(kind, outputs)
    return outputs


def read_terms(path: Path, kinds: Sequence[str]) -> Iterator[TermBatch]:
    """The terms in a file, a batch at a time."""
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        for batch in pq.ParquetFile(file).iter_batches(BATCH):
            columns = batch.to_pydict()
            yield columns["row"], columns["text"], {kind: columns[kind] for kind in kinds}


def take_back(
    paths: Sequence[Path],
    kinds: Sequence[TermKind],
    cache: TermCache,
    progress: TaskProgress | None = None,
) -> int:
    """Add the terms that executors have extracted to a cache; how many texts there were."""
    texts = 0
    names = [kind.name for kind in kinds]
    for done, path in enumerate(paths, start=1):
        for _, checksums, terms in read_terms(path, names):
            texts += len(checksums)
            for kind in kinds:
                cache.add(kind, dict(zip(checksums, terms[kind.name], strict=True)))
        if progress is not None:
            progress(done, len(paths))
    return texts
