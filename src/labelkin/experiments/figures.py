"""Draws the figures of a report as PNG and SVG, with the paper's values as hollow marks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from labelkin.atomic import atomic_file
from labelkin.exceptions import MissingExtraError
from labelkin.experiments.cases import cut_text
from labelkin.experiments.content import growth
from labelkin.experiments.outcome import Line, Outcome
from labelkin.experiments.published import best_published
from labelkin.experiments.scaling import fit

# Okabe and Ito's colours, which colour-blind readers can tell apart.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")
_PAPER: dict[str, Any] = {
    "linestyle": "none",
    "marker": "D",
    "markerfacecolor": "white",
    "markeredgecolor": "#000000",
    "markersize": 6,
    "label": "paper",
    "zorder": 5,
}
_MARKERS = "osv^"
_DPI = 160
# Shorter bars have no room for their value.
_NARROW = 0.12
_LABELLED = ("MiF", "MiP", "MiR")
_OVERVIEW = ("MiF", "P@5", "nDCG@10")


def draw_figures(outcome: Outcome, sizes: dict[int, int], folder: Path) -> list[str]:
    """Draw the figures that the grid has rows for and return their names."""
    draw: dict[str, Callable[[], Any | None]] = {
        "representations": lambda: _representations(outcome),
        "autoencoders": lambda: _autoencoders(outcome),
        "scaling": lambda: _scaling(outcome, sizes),
    }
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for name, draw_figure in draw.items():
        figure = draw_figure()
        if figure is not None:
            _save(figure, folder / name)
            names.append(name)
    return names


def _representations(outcome: Outcome) -> Any | None:
    """Bars by representation, for basic k-NN at the chosen k."""
    tables = [table for table in outcome.grid.tables if table.method == "knn"]
    lines = [line for table in tables for line in outcome.choices(table.name)]
    names = [outcome.named(line) for line in lines]
    return _bar_chart(outcome, names, lines, _OVERVIEW, 0.45)


def _autoencoders(outcome: Outcome) -> Any | None:
    """MiF, MiP and MiR of each label autoencoder, threshold and representation."""
    names, lines = [], []
    for table in outcome.grid.tables:
        if table.paper and table.method != "knn":
            for representation, cut in product(table.representations, table.cuts):
                text = "" if cut == "count" else cut_text(cut)
                same = outcome.of(table.name, representation=representation, threshold=text)
                lines.append(outcome.best(same))
                names.append(f"{table.name} {text} {outcome.named(lines[-1])}")
    return _bar_chart(outcome, names, lines, _LABELLED, 0.38)


def _bar_chart(
    outcome: Outcome,
    names: Sequence[str],
    lines: Sequence[Line],
    measures: Sequence[str],
    inches: float,
) -> Any | None:
    """A panel per measure with a bar per row and split; `inches` is the height of a row."""
    grid = outcome.grid
    shown = [measure for measure in measures if measure in grid.measures]
    if len(grid.collection.sizes) > 1 or len(lines) < 2 or not shown:
        return None
    figure = _figure(8.0, 0.9 + inches * len(lines))
    panels = np.atleast_1d(figure.subplots(1, len(shown), sharey=True))
    places = np.arange(len(lines))
    for axes, measure in zip(panels, shown, strict=True):
        _bars(axes, places, lines, grid.report_on, measure)
        _paper_marks(axes, places, [_paper_at_best(outcome, line, measure) for line in lines])
        axes.set_title(measure, fontsize=11)
        axes.set_xlim(0, None)
    panels[0].set_yticks(places, names)
    panels[0].set_ylim(len(lines) - 0.4, -0.6)
    _finish(figure, panels)
    return figure


def _scaling(outcome: Outcome, sizes: dict[int, int]) -> Any | None:
    """Measured points, fitted curves, and the paper's values.

    Extrapolations are dashed for the curve that predicts the largest size better, and dotted for
    the other.
    """
    grid = outcome.grid
    if grid.scaling is None:
        return None
    figure = _figure(8.0, 3.8)
    panels = np.atleast_1d(figure.subplots(1, len(grid.report_on), sharey=True))
    smallest, measured = min(sizes.values()), max(sizes.values())
    near = np.geomspace(smallest, measured, 50)
    far = np.geomspace(measured, grid.scaling.documents, 50)
    for axes, split in zip(panels, grid.report_on, strict=True):
        for (table, wanted), colour, marker in zip(
            grid.scaling.tables.items(), _COLOURS, _MARKERS, strict=False
        ):
            points = growth(outcome, table, split, sizes)
            look = {"color": colour, "zorder": 4}
            axes.plot(*zip(*points, strict=True), marker, label=table, **look)
            better, other = (fitted.curve for fitted in fit(*zip(*points, strict=True)))
            axes.plot(near, better.at(near), "-", linewidth=1.2, **look)
            axes.plot(far, better.at(far), "--", linewidth=1.2, **look)
            axes.plot(far, other.at(far), ":", linewidth=1.2, **look)
            value = best_published(grid.choose_by, **wanted)[grid.choose_by]
            mark = {
                "marker": marker,
                "markeredgecolor": colour,
                "markerfacecolor": "none",
                # Larger, so that marks at the same place stay visible inside.
                "markersize": 11 if marker == "o" else 7,
                "label": f"{table}, paper",
            }
            axes.plot([grid.scaling.documents], [value], **{**_PAPER, **mark})
        axes.set_xscale("log")
        axes.set_title(split, fontsize=11)
        axes.set_xlabel("training documents")
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    panels[0].set_ylabel(grid.choose_by)
    _finish(figure, panels)
    return figure


def _figure(width: float, height: float) -> Any:
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtraError("figures need matplotlib; pip install 'labelkin[train]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def _bars(
    axes: Any, places: Any, lines: Sequence[Line], splits: Sequence[str], measure: str
) -> None:
    height = 0.8 / len(splits)
    for number, split in enumerate(splits):
        offset = (number - (len(splits) - 1) / 2) * height
        values = [line.values[split][measure] for line in lines]
        axes.barh(places + offset, values, height * 0.92, color=_COLOURS[number], label=split)
        colour = "white" if number == 0 else "black"
        for place, value in zip(places + offset, values, strict=True):
            axes.annotate(
                f"{value:.3f}", (0, place), (3, 0), textcoords="offset points", va="center",
                fontsize=6.5, color=colour if value > _NARROW else "black",
            )  # fmt: skip


def _paper_marks(axes: Any, places: Any, values: Sequence[float | None]) -> None:
    known = [(value, place) for value, place in zip(values, places, strict=True) if value]
    if known:
        axes.plot(*zip(*known, strict=True), **_PAPER)


def _paper_at_best(outcome: Outcome, line: Line, measure: str) -> float | None:
    """The paper's value at the paper's own best k (and weighting) of the same configuration."""
    row, grid = line.row, outcome.grid
    same = outcome.of(row.table, representation=row.group.representation, threshold=row.threshold)
    known = [other.paper for other in same if grid.choose_by in other.paper]
    if not known:
        return None
    return max(known, key=lambda values: values[grid.choose_by]).get(measure)


def _finish(figure: Any, panels: Any) -> None:
    """Add one legend below the panels and remove unneeded frame lines."""
    entries: dict[str, Any] = {}
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=9)
        handles, names = axes.get_legend_handles_labels()
        entries |= dict(zip(names, handles, strict=True))
    figure.legend(
        entries.values(), entries.keys(), loc="outside lower center", ncols=len(entries),
        frameon=False, fontsize=9,
    )  # fmt: skip


def _save(figure: Any, path: Path) -> None:
    """Write PNG and SVG without dates and versions: equal figures give equal bytes."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    with atomic_file(path.with_suffix(".png")) as file:
        canvas: Any = FigureCanvasAgg(figure)
        figure.set_dpi(_DPI)
        canvas.print_png(file, metadata={"Software": None})
    with (
        mpl.rc_context({"svg.hashsalt": path.name, "svg.fonttype": "none"}),
        atomic_file(path.with_suffix(".svg")) as file,
    ):
        vector: Any = FigureCanvasSVG(figure)
        vector.print_svg(file, metadata={"Date": None})
