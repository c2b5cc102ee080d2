"""What `labelkin train` shows: the plan, progress bars and results."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelkin.autoencoder.architecture import JointArchitecture
from labelkin.cli.console import (
    bytes_text,
    counted,
    print_facts,
    print_message,
    print_table,
    seconds_text,
)
from labelkin.cli.progress import Stages
from labelkin.training_plan import TrainingObserver

if TYPE_CHECKING:
    from labelkin.autoencoder.fitting import AutoencoderReport
    from labelkin.autoencoder.model import ModelInfo
    from labelkin.autoencoder.training import TrainingProgress
    from labelkin.cuts import Cut, CutReport
    from labelkin.rerank.fitting import RerankReport
    from labelkin.store.config import RerankSection
    from labelkin.training_plan import TrainingPlan, TrainingReport


class TrainingOutput(TrainingObserver):
    """Prints the progress of a training; without `show`, no results."""

    def __init__(self, targets: RerankSection, *, show: bool = True) -> None:
        self._targets = targets
        self._show = show
        self._stack = ExitStack()
        self._stages = self._stack.enter_context(Stages())

    def close(self) -> None:
        """Remove the last progress bar."""
        self._stack.close()

    def planned(self, report: TrainingReport) -> None:
        """Print what is skipped and what will be done."""
        for name, reason in report.skipped:
            print_message(f"Skipping the {name}: {reason}")
        print_plan(report.plan)

    def stage(self, name: str, done: int, total: int) -> None:
        """Move the bar of a stage."""
        self._stages.at(name, total).update(done, f"{done:,} of {total:,}")

    def epoch(self, progress: TrainingProgress) -> None:
        """Move the bar of the autoencoder: epoch, loss, MiF of held-out label sets, speed."""
        score = "" if progress.last is None else f", MiF {progress.last['MiF']:.3f}"
        self._stages.at("Training", 1000).update(
            round(1000 * progress.share),
            f"epoch {progress.epoch}/{progress.epochs}, loss {progress.loss:.2f}{score}, "
            f"{progress.documents_per_second:,.0f}/s",
        )

    def trained_label_ae(self, report: AutoencoderReport) -> None:
        """Print how good the autoencoder is."""
        self._stages.close()
        if self._show:
            print_label_ae(report)

    def chose_cuts(self, report: CutReport) -> None:
        """Print the cuts, and which methods are worse than votes."""
        self._stages.close()
        if self._show:
            print_cuts(report)
        print_cut_remarks(report)

    def left_cuts(self, reason: str) -> None:
        """Print why the cuts are as they were."""
        self._stages.close()
        print_message(
            f"The cuts of label-ae, mix and mix-ranked stay as they are: {reason}; "
            "`labelkin tune --write` chooses them on other documents."
        )

    def trained_reranker(self, report: RerankReport) -> None:
        """Print how good the reranker is."""
        self._stages.close()
        if self._show:
            print_reranker(report, self._targets)


def print_plan(plan: TrainingPlan) -> None:
    """What will be trained, on what, and about how long it takes."""
    documents = counted(plan.documents, "document")
    print_message(f"Training on {documents} with {counted(plan.headings, 'heading')}:")
    if plan.label_ae is not None:
        line = "adopted as it is"
        if plan.label_ae.epochs:
            kind = "label set" if plan.label_ae.recipe == "paper" else "document"
            label_sets = counted(plan.documents - plan.unseen, kind)
            epochs = counted(plan.label_ae.epochs, "epoch")
            line = f"{label_sets}, at most {epochs}; {_about(plan.label_ae_seconds())}"
        print_message(f"  label autoencoder: {line}")
    if plan.rerank is not None:
        given = f" and {plan.given:,} given" if plan.given else ""
        linear = ", linear classifiers" if plan.rerank.linear else ""
        vectors = f", vectors by {plan.rerank.encoder}" if plan.rerank.encoder else ""
        folds = f" in {plan.folds} folds" if plan.folds > 1 else ""
        print_message(
            f"  reranker: {counted(plan.held_out, 'document')} held out of all statistics{folds}"
            f"{given}{linear}{vectors}; {_about(plan.rerank_seconds())}"
        )
    if plan.label_ae_seconds() + plan.rerank_seconds():
        print_message("The times are rough estimates for two cores; a busy machine takes longer.")
        if plan.rerank is not None and plan.rerank.encoder:
            print_message("Encoding documents and names comes on top, unless it has been done.")


def print_outcome(report: TrainingReport) -> None:
    """Print the default method of the collection after the training."""
    rerank, before = report.rerank, report.method_before
    if report.outdated_reranker:
        print_message(
            "The reranker was trained with the previous label autoencoder; "
            "`labelkin train` trains both."
        )
    if rerank is None:
        return
    if rerank.score <= rerank.votes:
        print_message(
            f"No better than votes on held-out documents ({rerank.score:.4f} against "
            f"{rerank.votes:.4f}): the default method is still {before}."
        )
    elif before == "rerank":
        print_message("The default method is still rerank.")
    else:
        print_message(f"The default method is now rerank instead of {before} (labelkin.toml).")


def print_label_ae(report: AutoencoderReport) -> None:
    """What was trained, and how good it is on held-out label sets."""
    info = report.info
    architecture, training, best = info.architecture, info.training, report.validation
    facts = [
        ("Layers", _layers(info)),
        ("Parameters", f"{architecture.trainable_parameters(len(info.labels)):,}"),
    ]
    if not best:
        print_facts(facts)
        print_message(f"Adopted as it is: {report.folder}.")
        return
    facts += [
        ("Epochs", f"{training['epochs']}, best {training['best_epoch']}"),
        ("Stopped by", training["stopped"]),
    ]
    if "threshold" in best:
        documents = counted(info.data["held_out"], "held-out document")
        facts.append(("Prediction", f"MiF {best['MiF']:.4f} at its best cut, {documents}"))
    else:
        facts.append(("Reconstruction", f"MiF {best['MiF']:.4f} of held-out label sets, at 0.5"))
    if "predicted_MiF" in best:
        facts.append(("Prediction", f"MiF {best['predicted_MiF']:.4f} from 20 neighbours, at 0.5"))
    print_facts(facts)
    print_message(f"Trained in {seconds_text(training['seconds'])}: {report.folder}.")


def print_cuts(report: CutReport) -> None:
    """How good each method is at its cut, votes first."""
    rows = [(cut.method, f"{cut.score:.4f}", _cut_text(cut)) for cut in (report.knn, *report.cuts)]
    print_table("", [("method", False), ("MiF", True), ("cut", False)], rows)


def print_cut_remarks(report: CutReport) -> None:
    """Print on how many documents cuts were chosen, what was kept, and what is below votes."""
    documents = counted(report.documents, "held-out document")
    print_message(f"Cuts of label-ae, mix and mix-ranked chosen on {documents} (labelkin.toml).")
    for cut in report.cuts:
        if cut.kept:
            kept = ", ".join(_value_text(cut, name) for name in cut.values if name in cut.kept)
            print_message(f"Set by hand in [{cut.section}] and kept for {cut.method}: {kept}.")
    for cut in report.cuts:
        if cut.method in report.below_knn:
            print_message(
                f"{cut.method} is below knn on these documents: MiF {cut.score:.4f} against "
                f"{report.knn.score:.4f}."
            )


def _cut_text(cut: Cut) -> str:
    """A cut in words; values that cut nothing are left out."""
    idle = {"count": "none", "threshold": 0.0}
    names = [name for name, value in cut.values.items() if value != idle.get(name)]
    return ", ".join(_value_text(cut, name) for name in names) or "none"


def _value_text(cut: Cut, name: str) -> str:
    value = cut.values[name]
    if name == "leading" and not value:
        return "leading as label-ae"
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def _layers(info: ModelInfo) -> str:
    architecture, headings = info.architecture, counted(len(info.labels), "heading")
    if isinstance(architecture, JointArchitecture):
        words = counted(architecture.terms, "word")
        return f"{architecture.sizes} over {headings} and {words}"
    return f"{architecture.sizes} over {headings}"


def print_reranker(report: RerankReport, targets: RerankSection) -> None:
    """What was trained, how good it is on held-out documents, and the bars of the bands."""
    training, calibration = report.info.training, report.info.calibration
    documents = training["held_out"] + training["given"]
    given = f" and {training['given']:,} given" if training["given"] else ""
    print_facts(
        [
            ("Signals", ", ".join(report.info.groups)),
            ("Statistics", f"over {counted(training['documents'], 'document')}"),
            ("Trained on", f"{training['held_out']:,} held out of these{given}"),
            (
                "Candidates",
                f"{training['candidates'] / max(documents, 1):.0f} a document, with "
                f"{training['candidate_recall']:.1%} of its headings",
            ),
            (
                "MiF",
                f"{report.score:.4f} at {report.threshold:.3f} on "
                f"{counted(calibration.documents, 'held-out document')}; votes {report.votes:.4f}",
            ),
            ("Calibration error", f"{calibration.error:.4f}"),
            ("Accept", _bar(report, targets.accept)),
            ("Review", _bar(report, targets.review)),
        ]
    )
    size = bytes_text(_folder_bytes(report.folder))
    print_message(f"Trained in {seconds_text(training['seconds'])}: {report.folder}, {size}.")


def report_as_json(report: TrainingReport, targets: RerankSection) -> dict[str, Any]:
    """The results as a JSON object."""
    return {
        "label_ae": label_ae_as_json(report.label_ae),
        "cuts": None if report.cuts is None else _cuts_as_json(report.cuts),
        "rerank": None if report.rerank is None else _reranker_as_json(report.rerank, targets),
        "method": report.method,
        "skipped": dict(report.skipped),
    }


def _cuts_as_json(report: CutReport) -> dict[str, Any]:
    methods = {
        cut.method: {"MiF": cut.score, **cut.values, "kept": sorted(cut.kept)}
        for cut in (report.knn, *report.cuts)
    }
    return {"documents": report.documents, "methods": methods, "below_knn": report.below_knn}


def label_ae_as_json(report: AutoencoderReport | None) -> dict[str, Any] | None:
    """What was trained as a JSON object; None if nothing was."""
    if report is None:
        return None
    return report.info.to_json() | {"labels": len(report.info.labels)}


def _reranker_as_json(report: RerankReport, targets: RerankSection) -> dict[str, Any]:
    calibration = report.info.calibration
    return {
        "groups": list(report.info.groups),
        **report.info.training,
        "calibrated_on": calibration.documents,
        "MiF": report.score,
        "MiF_votes": report.votes,
        "threshold": report.threshold,
        "calibration_error": calibration.error,
        "accept": calibration.threshold(targets.accept),
        "review": calibration.threshold(targets.review),
        "bytes": _folder_bytes(report.folder),
    }


def _bar(report: RerankReport, precision: float) -> str:
    bar = report.info.calibration.threshold(precision)
    if bar > 1:
        return f"nothing: no score is right {precision:.0%} of the time"
    return f"scores from {bar:.2f}, right {precision:.0%} of the time"


def _folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


def _about(seconds: float) -> str:
    if seconds < 50:
        return "less than a minute"
    return f"about {max(round(seconds / 60), 1)} min"
