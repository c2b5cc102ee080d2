"""Plots of results/peers.md: quality against training time, throughput and collection size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labelkin.plots.drawing import save_figure

_OURS, _PEERS = "#0072B2", "#D55E00"
_MARKS = "os^DvPX"
# A line from a name to its point, if the name stands further above or below it than this.
_LEADER, _NEAR = {"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}, 8
# Left, below, right, above.
Box = tuple[float, float, float, float]


def draw_points(
    points: Mapping[str, tuple[float, float]],
    ours: Sequence[str],
    labels: tuple[str, str],
    path: Path,
) -> None:
    """A named point per system, with a logarithmic x."""
    figure, axes = _figure(labels)
    axes.set_xscale("log")
    beside = _beside(points)
    for name, place in points.items():
        colour = _OURS if name in ours else _PEERS
        axes.plot(*place, marker="o", color=colour, linestyle="none")
        axes.annotate(
            name,
            place,
            (6, beside[name]),
            textcoords="offset points",
            fontsize=8,
            va="center",
            color=colour,
            arrowprops=_LEADER | {"color": colour} if abs(beside[name]) > _NEAR else None,
        )
    axes.margins(x=0.25, y=0.08)
    save_figure(figure, path)


def _beside(points: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """How far above its point each name stands: names must not meet, nor cover other points."""
    places = _places(points)
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in places.values()]
    shifts: dict[str, float] = {}
    for name, (x, y) in sorted(places.items(), key=lambda one: one[1][1]):
        for shift in sorted(range(-60, 61, 4), key=abs):
            box = (x + 5, y + shift - 4, x + 5 + 5 * len(name), y + shift + 4)
            if not any(_meet(box, other) for other in taken):
                break
        shifts[name] = shift
        taken.append(box)
    return shifts


def _places(points: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """About where the points are drawn, in points of the figure."""
    logs = [math.log(x) for x, _ in points.values()]
    heights = [y for _, y in points.values()]
    wide, high = (max(max(one) - min(one), 1e-9) for one in (logs, heights))
    return {
        name: (350 * (math.log(x) - min(logs)) / wide, 260 * (y - min(heights)) / high)
        for name, (x, y) in points.items()
    }


def _meet(first: Box, second: Box) -> bool:
    return (
        first[0] < second[2]
        and second[0] < first[2]
        and first[1] < second[3]
        and second[1] < first[3]
    )


def draw_growth(
    lines: Mapping[str, Mapping[int, float]],
    ours: Sequence[str],
    labels: tuple[str, str],
    path: Path,
) -> None:
    """A line per system over the number of training records."""
    figure, axes = _figure(labels)
    axes.set_xscale("log")
    for number, (name, values) in enumerate(lines.items()):
        sizes = sorted(values)
        axes.plot(
            sizes,
            [values[size] for size in sizes],
            marker=_MARKS[number % len(_MARKS)],
            color=_OURS if name in ours else _PEERS,
            label=name,
        )
    ticks = sorted({size for values in lines.values() for size in values})
    axes.set_xticks(ticks, [f"{size:,}" for size in ticks])
    axes.minorticks_off()
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    save_figure(figure, path)


def _figure(labels: tuple[str, str]) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.8), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel=labels[0], ylabel=labels[1])
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    return figure, axes
