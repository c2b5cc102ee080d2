"""Learning the reranker under progress bars, and what is said of it afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelkin.cli.console import bytes_text, counted, print_facts, seconds_text, tell
from labelkin.cli.progress import Stages
from labelkin.cli.train_label_ae import is_first

if TYPE_CHECKING:
    from labelkin.corpus import Document
    from labelkin.indexer import Indexer
    from labelkin.rerank.fitting import LearningReport
    from labelkin.rerank.settings import LearningSettings
    from labelkin.store.config import RerankSection
    from labelkin.store.held_out import HeldOut


def read_tuning(
    indexer: Indexer, files: Sequence[Path], format: str | None = None
) -> list[Document]:
    """The documents with labels in `files` that are not in the collection.

    Those that are would be counted in the statistics that they are to check.
    """
    from labelkin.corpus import read_corpus
    from labelkin.exceptions import InputError

    if not files:
        return []
    documents = [d for d in read_corpus(*files, format=format).documents() if d.labels]
    known = indexer.collection.rows_of([document.id for document in documents])
    if known and is_first():
        tell(
            f"{counted(len(known), 'document')} to tune on left out: in the collection itself, "
            "whose statistics know the headings."
        )
    fresh = [document for document in documents if document.id not in known]
    if not fresh:
        raise InputError("no document to tune on: none has labels and is not in the collection")
    return fresh


def train_reranker(
    indexer: Indexer,
    settings: LearningSettings,
    documents: Sequence[Document] = (),
    representation: str | None = None,
    *,
    held_out: HeldOut | None = None,
) -> LearningReport:
    """Learn under progress bars."""
    with Stages() as stages:
        return indexer.train_reranker(
            documents,
            settings,
            representation=representation,
            held_out=held_out,
            progress=lambda stage, done, total: stages.at(stage, total).update(
                done, f"{done:,} of {total:,}"
            ),
        )


def print_reranker(report: LearningReport, targets: RerankSection) -> None:
    """What was learned, how good it is on documents kept aside, and where the bars are."""
    training, calibration = report.info.training, report.info.calibration
    documents = training["taken_out"] + training["given"]
    given = f" and {training['given']:,} given" if training["given"] else ""
    facts = [
        ("Signals", ", ".join(report.info.groups)),
        ("Statistics", f"over {counted(training['documents'], 'document')}"),
        ("Learned from", f"{training['taken_out']:,} taken out of these{given}"),
        (
            "Candidates",
            f"{training['candidates'] / max(documents, 1):.0f} a document, with "
            f"{training['candidate_recall']:.1%} of its headings",
        ),
        (
            "MiF",
            f"{report.score:.4f} at {report.threshold:.3f} on "
            f"{counted(calibration.documents, 'document')} kept aside; votes {report.votes:.4f}",
        ),
        ("Calibration error", f"{calibration.error:.4f}"),
        ("Accept", _bar(report, targets.accept)),
        ("Review", _bar(report, targets.review)),
    ]
    print_facts(facts)
    size = bytes_text(folder_bytes(report.folder))
    tell(f"Learned in {seconds_text(training['seconds'])}: {report.folder}, {size}.")


def _bar(report: LearningReport, precision: float) -> str:
    bar = report.info.calibration.threshold(precision)
    if bar > 1:
        return f"nothing: no score is right {precision:.0%} of the time"
    return f"scores from {bar:.2f}, right {precision:.0%} of the time"


def tell_adopted(report: LearningReport, before: str, *, is_better: bool) -> None:
    """Whether `rerank` is the default method now."""
    if is_better and before == "rerank":
        tell("The default method stays rerank.")
    elif is_better:
        tell(f"The default method is rerank now, no longer {before} (labelkin.toml).")
    else:
        tell(
            f"No better than votes on the documents kept aside ({report.score:.4f} against "
            f"{report.votes:.4f}): the default method stays {before}."
        )


def reranker_as_json(report: LearningReport, targets: RerankSection) -> dict[str, Any]:
    """The same facts for programs."""
    calibration = report.info.calibration
    return {
        "groups": list(report.info.groups),
        **report.info.training,
        "kept_aside": calibration.documents,
        "MiF": report.score,
        "MiF_votes": report.votes,
        "threshold": report.threshold,
        "calibration_error": calibration.error,
        "accept": calibration.threshold(targets.accept),
        "review": calibration.threshold(targets.review),
        "bytes": folder_bytes(report.folder),
    }


def folder_bytes(folder: Path) -> int:
    """The size of all files in a folder."""
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
