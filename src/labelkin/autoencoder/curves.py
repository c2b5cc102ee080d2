"""The course of training as a picture."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from labelkin.atomic import atomic_file

logger = logging.getLogger(__name__)

# Okabe and Ito's colours, which colour-blind readers can tell apart.
_BLUE, _ORANGE, _GREEN = "#0072B2", "#D55E00", "#009E73"


def draw_curves(history: list[dict[str, float]], path: Path) -> None:
    """Losses and MiF by epoch as a PNG; without matplotlib the CSV beside it must do."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        logger.warning("matplotlib is not installed; %s is not drawn", path.name)
        return
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    losses, scores = figure.subplots(1, 2)
    _plot(losses, history, "loss", "training", _BLUE, "-")
    _plot(losses, history, "validation_loss", "validation", _ORANGE, "--")
    losses.set_ylabel("loss per document")
    _plot(scores, history, "MiF", "reconstruction", _BLUE, "-")
    _plot(scores, history, "predicted_MiF", "from 20 neighbours", _GREEN, "--")
    scores.set_ylabel("MiF at 0.5, label sets kept aside")
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
