"""The figures of a report, as PNG and SVG, with the paper's values drawn in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labelkin.atomic import atomic_file
from labelkin.exceptions import MissingExtraError
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
_DPI = 160
_LABELLED = ("MiF", "MiP", "MiR")
_OVERVIEW = ("MiF", "P@5", "nDCG@10")


def draw_figures(outcome: Outcome, sizes: dict[int, int], folder: Path) -> list[str]:
    """Draw what the grid has rows for; the names of the figures."""
    draw: dict[str, Callable[[], Any | None]] = {
        "representations": lambda: _representations(outcome),
        "autoencoders": lambda: _autoencoders(outcome),
        "scaling": lambda: _scaling(outcome, sizes),
    }
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for name, make in draw.items():
        figure = make()
        if figure is not None:
            _save(figure, folder / name)
            names.append(name)
    return names


def _representations(outcome: Outcome) -> Any | None:
    """Bars over representations, for basic k-NN at the k that was chosen."""
    grid = outcome.grid
    if len(grid.collection.sizes) > 1:
        return None
    tables = [table for table in grid.tables if table.method == "knn"]
    lines = [line for table in tables for line in outcome.choices(table.name)]
    if len(lines) < 2:
        return None
    measures = [m for m in _OVERVIEW if m in grid.measures] or grid.measures[:3]
    figure = _figure(8.0, 3.6)
    panels = figure.subplots(1, len(measures), sharey=True)
    places = np.arange(len(lines))
    for axes, measure in zip(np.atleast_1d(panels), measures, strict=True):
        _bars(axes, places, lines, grid.report_on, measure)
        papers = [_paper_at_best(outcome, line, measure) for line in lines]
        _paper_marks(axes, places, papers)
        axes.set_title(measure, fontsize=11)
        axes.set_xlim(0, None)
    first = np.atleast_1d(panels)[0]
    first.set_yticks(places, [outcome.named(line) for line in lines])
    first.invert_yaxis()
    _finish(figure, panels)
    return figure


def _autoencoders(outcome: Outcome) -> Any | None:
    """MiF, MiP and MiR of each label autoencoder, threshold and representation."""
    grid = outcome.grid
    chosen: list[tuple[str, Line]] = []
    if len(grid.collection.sizes) > 1:
        return None
    for table in grid.tables:
        if table.paper and table.method != "knn":
            for name in table.representations:
                for cut in table.cuts:
                    text = "" if cut == "count" else f"{cut:.2f}"
                    line = outcome.best(outcome.of(table.name, representation=name, threshold=text))
                    chosen.append((f"{table.name} {text} {outcome.named(line)}", line))
    if not chosen:
        return None
    measures = [m for m in _LABELLED if m in grid.measures] or grid.measures[:3]
    lines = [line for _, line in chosen]
    figure = _figure(8.0, 1.2 + 0.36 * len(lines))
    panels = figure.subplots(1, len(measures), sharey=True)
    places = np.arange(len(lines))
    for axes, measure in zip(np.atleast_1d(panels), measures, strict=True):
        _bars(axes, places, lines, grid.report_on, measure)
        _paper_marks(axes, places, [_paper_at_best(outcome, line, measure) for line in lines])
        axes.set_title(measure, fontsize=11)
        axes.set_xlim(0, None)
    first = np.atleast_1d(panels)[0]
    first.set_yticks(places, [name for name, _ in chosen])
    first.invert_yaxis()
    _finish(figure, panels)
    return figure


def _scaling(outcome: Outcome, sizes: dict[int, int]) -> Any | None:
    """Points that were measured, the better curve through them, and the paper's values."""
    grid = outcome.grid
    if grid.scaling is None:
        return None
    figure = _figure(8.0, 3.8)
    panels = np.atleast_1d(figure.subplots(1, len(grid.report_on), sharey=True))
    measured = max(sizes.values())
    for axes, split in zip(panels, grid.report_on, strict=True):
        for (table, paper), colour, marker in zip(
            grid.scaling.tables.items(), _COLOURS, "osv^", strict=False
        ):
            points = growth(outcome, table, split, sizes)
            axes.plot(*zip(*points, strict=True), marker, color=colour, label=table, zorder=4)
            curve = fit(*zip(*points, strict=True))[0].curve
            near = np.geomspace(min(sizes.values()), measured, 50)
            far = np.geomspace(measured, grid.scaling.documents, 50)
            axes.plot(near, curve.at(near), "-", color=colour)
            axes.plot(far, curve.at(far), "--", color=colour, alpha=0.8)
            value = best_published(grid.choose_by, **paper)[grid.choose_by]
            mark = {**_PAPER, "marker": {"o": "o", "s": "s", "v": "v"}.get(marker, "D")}
            mark |= {"markeredgecolor": colour, "label": f"{table}, paper", "markersize": 7}
            axes.plot([grid.scaling.documents], [value], **mark)
        axes.set_xscale("log")
        axes.set_title(split, fontsize=11)
        axes.set_xlabel("documents to learn from")
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    panels[0].set_ylabel(grid.choose_by)
    _finish(figure, panels)
    return figure


def _figure(width: float, height: float) -> Any:
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtraError("figures need matplotlib: pip install 'labelkin[train]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def _bars(
    axes: Any, places: Any, lines: Sequence[Line], splits: Sequence[str], measure: str
) -> None:
    height = 0.8 / len(splits)
    for number, split in enumerate(splits):
        offset = (number - (len(splits) - 1) / 2) * height
        values = [line.values[split][measure] for line in lines]
        bars = axes.barh(
            places + offset, values, height * 0.92, color=_COLOURS[number], label=split
        )
        inside = [f"{value:.3f}" if value > 0.1 else "" for value in values]
        dark = _COLOURS[number] == _COLOURS[0]
        axes.bar_label(
            bars, inside, label_type="edge", padding=-26, fontsize=6.5,
            color="white" if dark else "black",
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
    """One legend below, and no more lines than needed."""
    entries: dict[str, Any] = {}
    for axes in np.atleast_1d(panels):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=9)
        handles, names = axes.get_legend_handles_labels()
        entries |= dict(zip(names, handles, strict=True))
    figure.legend(
        entries.values(), entries.keys(), loc="outside lower center", ncols=len(entries),
        frameon=False, fontsize=9,
    )  # fmt: skip


def _save(figure: Any, path: Path) -> None:
    """As PNG and as SVG, the same bytes for the same figure."""
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
        drawn: Any = FigureCanvasSVG(figure)
        drawn.print_svg(file, metadata={"Date": None})
