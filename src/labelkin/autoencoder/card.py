"""What a model folder shows its readers: a card in Markdown and the training curves."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labelkin.atomic import atomic_file
from labelkin.autoencoder.architecture import AnyArchitecture, JointArchitecture
from labelkin.autoencoder.model import ModelInfo

logger = logging.getLogger(__name__)

# Okabe and Ito's colours, which colour-blind readers can tell apart.
_BLUE, _ORANGE, _GREEN = "#0072B2", "#D55E00", "#009E73"


def model_card(info: ModelInfo) -> str:
    """The README.md of a trained model's folder."""
    data, labels = info.data, len(info.labels)
    trained = labels - info.origin.get("in_no_document", 0)
    versions = ", ".join(f"{name} {number}" for name, number in info.versions.items())
    lines = [
        "# Label autoencoder",
        "",
        *_purpose(info.architecture),
        "",
        "| | |",
        "|---|---|",
        *_layers(info.architecture, labels),
        f"| trainable parameters | {info.architecture.trainable_parameters(labels):,} |",
        *_origin(info),
    ]
    if info.training["epochs"]:
        lines += [
            f"| trained on | {data['documents']:,} label sets, {trained:,} headings, "
            f"{data['labels_seen_once']:,} of them seen once |",
            f"| held out | {data['held_out']:,} label sets |",
            *_training(info),
        ]
    else:
        lines.append("| trained on | not trained further: adopted as it is |")
    lines += [
        f"| seed | {info.seed} |",
        f"| made with | {versions} |",
        "",
        "It can suggest only the headings listed in `model.json`. It decodes headings that occur",
        "a few times only poorly, since a small latent space keeps what many label sets share.",
        "",
        "Load it with `labelkin.autoencoder.model.LabelModel`; weights are safetensors in float32.",
        "",
    ]
    return "\n".join(lines)


def _purpose(architecture: AnyArchitecture) -> Iterator[str]:
    if isinstance(architecture, JointArchitecture):
        yield "Maps sets of headings and texts to one latent space. labelkin adds up the latent"
        yield "vectors of a text and of its most similar documents, decodes the sum into headings,"
        yield "and corrects it for headings that these documents carry or the text names."
    else:
        yield "Maps sets of headings to a small latent space and back. labelkin averages the latent"
        yield "vectors of a text's most similar documents and decodes the average into headings."


def _layers(architecture: AnyArchitecture, labels: int) -> Iterator[str]:
    latent = architecture.latent
    if isinstance(architecture, JointArchitecture):
        yield f"| layers | {labels:,} and {architecture.terms:,} terms – {latent} – {labels:,} |"
        return
    first, second = architecture.first, architecture.second
    yield (
        f"| layers | {labels:,} – {first} – {second} – {latent} – {second} – {first} – {labels:,} |"
    )
    yield f"| embedding | {architecture.activation} |"


def _origin(info: ModelInfo) -> Iterator[str]:
    origin = info.origin
    if origin:
        yield (
            f"| started from | model `{origin['model']}`, trained on "
            f"{origin['data'].get('documents', 0):,} label sets |"
        )
        yield (
            f"| of its headings | {origin['taken_over']:,} taken over, "
            f"{origin['in_no_document']:,} of them in no document of this collection; "
            f"{origin['left_out']:,} left out; {origin['new']:,} new |"
        )


def _training(info: ModelInfo) -> Iterator[str]:
    training, best = info.training, info.training["best"]
    measured = "held out" if info.data["held_out"] else "it was trained on, as none were held out"
    yield (
        f"| epochs | {training['epochs']} (best: {training['best_epoch']}), "
        f"stopped by {training['stopped']} |"
    )
    yield (
        f"| time | {training['seconds'] / 60:.1f} min, {training['processes']} "
        f"{'process' if training['processes'] == 1 else 'processes'} on {training['device']} |"
    )
    if info.architecture.recipe == "joint":
        yield (
            f"| prediction of headings of documents {measured} | MiF {best['MiF']:.4f}, "
            f"MiP {best['MiP']:.4f}, MiR {best['MiR']:.4f} at {best['threshold']:.2f} |"
        )
        return
    yield (
        f"| reconstruction of label sets {measured} | MiF {best['MiF']:.4f}, "
        f"MiP {best['MiP']:.4f}, MiR {best['MiR']:.4f} at 0.5 |"
    )
    if "predicted_MiF" in best:
        yield (
            f"| prediction of the same from 20 neighbours | MiF {best['predicted_MiF']:.4f}, "
            f"MiP {best['predicted_MiP']:.4f}, MiR {best['predicted_MiR']:.4f} at 0.5 |"
        )


def draw_curves(history: list[dict[str, float]], path: Path) -> None:
    """Draw losses and MiF by epoch as a PNG; without matplotlib, only warn."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        logger.warning("matplotlib is not installed; skipping %s", path.name)
        return
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    losses, scores = figure.subplots(1, 2)
    _plot(losses, history, "loss", "training", _BLUE, "-")
    _plot(losses, history, "validation_loss", "validation", _ORANGE, "--")
    losses.set_ylabel("loss per document")
    _plot(scores, history, "MiF", "reconstruction", _BLUE, "-")
    _plot(scores, history, "predicted_MiF", "from 20 neighbours", _GREEN, "--")
    scores.set_ylabel("MiF at 0.5, held-out label sets")
    scores.set_ylim(0, 1)
    for axes in (losses, scores):
        axes.set_xlabel("epoch")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    with atomic_file(path) as file:
        canvas.print_png(file)  # type: ignore[no-untyped-call]


def _plot(
    axes: Any, history: list[dict[str, float]], key: str, name: str, colour: str, style: str
) -> None:
    points = [(entry["epoch"], entry[key]) for entry in history if key in entry]
    if points:
        marker = "o" if len(points) == 1 else ""
        axes.plot(*zip(*points, strict=True), style, color=colour, label=name, marker=marker)
