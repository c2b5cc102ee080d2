"""Draws plots with matplotlib, as PNG, SVG or PDF."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labelkin.atomic import atomic_file
from labelkin.exceptions import MissingExtraError
from labelkin.plots.frequencies import STEPS, Frequencies
from labelkin.plots.latent import OTHER, LatentMap
from labelkin.plots.reliability import Reliability

logger = logging.getLogger(__name__)

#: Formats by extension.
FORMATS = {".png": "png", ".svg": "svg", ".pdf": "pdf"}
_DPI = 160
_BLUE, _ORANGE, _GREEN, _GREY = "#0072B2", "#D55E00", "#009E73", "#8a8a8a"
# Okabe and Ito's colours, which colour-blind readers can tell apart; a second dozen of points
# differs by its mark, too.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
_MARKS = "o^"
_NAMED = 70


def draw_frequencies(frequencies: Frequencies, title: str = "") -> Any:
    """Documents per heading by rank, both logarithmic, and how many headings are frequent."""
    figure = _figure(7.5, 4.8)
    axes = figure.subplots()
    ranks = [rank for rank, _ in frequencies.points]
    documents = [count for _, count in frequencies.points]
    axes.loglog(ranks, documents, color=_BLUE, linewidth=2)
    axes.fill_between(ranks, documents, 0.8, color=_BLUE, alpha=0.12, linewidth=0)
    total = max(frequencies.headings, 1)
    axes.set_xlim(0.9, total * 1.25)
    axes.set_ylim(0.8, max(documents, default=1) * 2)
    for step in STEPS[:-1]:
        count = frequencies.at_least[step]
        if count:
            _mark(axes, count, step, f"{count:,} in at least {step:,} ({count / total:.1%})")
    if once := frequencies.once:
        first = total - once + 1
        _mark(axes, first, 1, f"{once:,} in a single one ({once / total:.1%})")
    axes.set(xlabel="rank of the heading", ylabel="documents that carry it")
    _plain_ticks(axes)
    _finish(axes, title or "Documents per heading", f"{total:,} headings are used")
    return figure


def draw_reliability(reliability: Reliability, title: str = "") -> Any:
    """Scores against the share that is right, with the bands, above the numbers of headings."""
    figure = _figure(6.0, 6.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    _draw_bands(above, reliability)
    ideal = {"color": _GREY, "linestyle": "--", "linewidth": 1, "zorder": 2}
    above.plot([0, 1], [0, 1], label="as many right as the score says", **ideal)
    scores = [one.score for one in reliability.bins]
    shares = [one.precision for one in reliability.bins]
    above.vlines(scores, scores, shares, color=_ORANGE, linewidth=2, zorder=3)
    above.plot(scores, shares, marker="o", color=_BLUE, markersize=6, linewidth=1.5, zorder=4)
    above.legend(loc="lower right", frameon=False, fontsize=8.5)
    above.set(ylabel="share of headings that is right", xlim=(0, 1), ylim=(0, 1.02))
    for one in reliability.bins:
        middle = (one.start + one.end) / 2
        below.bar(middle, one.count, (one.end - one.start) * 0.9, color=_BLUE, alpha=0.7)
        below.annotate(
            _short(one.count), (middle, one.count), (0, 2), textcoords="offset points",
            ha="center", fontsize=7.5,
        )  # fmt: skip
    below.set(xlabel="score", ylabel="headings", yscale="log")
    counts = [one.count for one in reliability.bins]
    below.set_ylim(0.8, max(counts, default=1) * 8)
    below.spines[["top", "right"]].set_visible(False)
    _finish(
        above,
        title or "Reliability of the scores",
        f"expected calibration error {reliability.error:.4f}, {reliability.documents:,} documents",
    )
    return figure


def _draw_bands(axes: Any, reliability: Reliability) -> None:
    """The scores at which headings are shown and accepted."""
    for name, bar, colour in (
        ("review", reliability.review, _GREY),
        ("accept", reliability.accept, _GREEN),
    ):
        if bar is not None:
            axes.axvspan(bar, 1, color=colour, alpha=0.1, linewidth=0)
            axes.axvline(bar, color=colour, linewidth=1.5, linestyle=":")
            axes.annotate(
                f"{name} from {bar:.2f}", (bar, 1), (4, 0), textcoords="offset points",
                rotation=90, fontsize=9, color="#333333", va="top",
            )  # fmt: skip


def draw_latent(latent: LatentMap, title: str = "") -> Any:
    """The headings as points by branch, the most frequent with their names."""
    height = max((point.y for point in latent.points), default=1.0)
    figure = _figure(12.0, 1.0 + 8.8 * max(height, 0.6))
    axes = figure.subplots()
    most = max((point.documents for point in latent.points), default=1)
    looks = {
        branch.id: {"color": _COLOURS[number % 6], "marker": _MARKS[number // 6 % 2]}
        for number, branch in enumerate(latent.branches)
    } | {OTHER: {"color": "#bbbbbb", "marker": "."}}
    for branch in latent.branches:
        inside = [point for point in latent.points if point.branch == branch.id]
        axes.scatter(
            [point.x for point in inside],
            [point.y for point in inside],
            s=[_size(point.documents, most) for point in inside],
            alpha=0.75,
            linewidths=0,
            label=f"{_wrapped(branch.name)} ({branch.count:,})",
            zorder=1 if branch.id == OTHER else 2,
            **looks[branch.id],
        )
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_aspect("equal")
    axes.spines[:].set_visible(False)
    axes.margins(0.02, 0.04)
    if latent.branches:
        legend = figure.legend(
            loc="outside right upper", frameon=False, fontsize=9, title="branch (headings)"
        )
        for handle in legend.legend_handles:
            handle.set_sizes([36])
            handle.set_alpha(1)
    _finish(
        axes,
        title or "Map of the headings",
        f"the {len(latent.points):,} most frequent; near each other if they go together",
    )
    _name_points(figure, axes, latent)
    return figure


def _name_points(figure: Any, axes: Any, latent: LatentMap) -> None:
    """Write the names of the most frequent headings wherever there is room."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)
    with _without_warnings():
        figure.draw_without_rendering()
    # What follows must not move the axes that the names were placed in.
    figure.set_layout_engine("none")
    with _without_warnings():
        _place_names(axes, latent, canvas.get_renderer())


def _size(documents: int, most: int) -> float:
    """The area of a mark in square points; its width grows with the fourth root."""
    return 6 + 90 * math.sqrt(documents / max(most, 1))


def _place_names(axes: Any, latent: LatentMap, renderer: Any) -> None:
    frame = axes.get_window_extent()
    most = max((point.documents for point in latent.points), default=1)
    taken: list[Any] = []
    for point in sorted(latent.points, key=lambda one: (-one.documents, one.id)):
        above = _size(point.documents, most) ** 0.5 / 2 + 1.5
        text = axes.annotate(
            _shortened(point.name), (point.x, point.y), (0, above), textcoords="offset points",
            ha="center", fontsize=7.5, color="#111111", zorder=5, parse_math=False,
            bbox={"facecolor": "white", "alpha": 0.6, "linewidth": 0, "pad": 0},
        )  # fmt: skip
        box = text.get_window_extent(renderer)
        side = "left" if box.x0 < frame.x0 else "right" if box.x1 > frame.x1 else "center"
        text.set_horizontalalignment(side)
        box = text.get_window_extent(renderer)
        if box.y1 > frame.y1 or any(box.padded(2).overlaps(other) for other in taken):
            text.remove()
        else:
            taken.append(box)
        if len(taken) >= _NAMED:
            return


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format of the extension; equal figures give equal bytes."""
    import matplotlib as mpl

    kind = FORMATS[path.suffix.lower()]
    nothing: dict[str, dict[str, Any]] = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    }
    settings: dict[Any, Any] = {
        "svg.hashsalt": "labelkin",
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
    }
    with (
        _without_warnings() as missing,
        mpl.rc_context(settings),
        atomic_file(path) as file,
    ):
        figure.savefig(file, format=kind, dpi=_DPI, metadata=nothing[kind])
    if missing and kind != "svg":
        logger.warning(
            "%s: some characters are in none of the fonts and are drawn as boxes; "
            "a .svg keeps them as text",
            path,
        )


@contextmanager
def _without_warnings() -> Iterator[list[Any]]:
    """Collect the warnings about characters that the fonts lack, one for each of them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def check_matplotlib() -> None:
    """Raise MissingExtraError if there is no matplotlib, before anything expensive is done."""
    try:
        import matplotlib.figure  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError("plots need matplotlib; pip install 'labelkin[train]'") from error


def _figure(width: float, height: float) -> Any:
    check_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _mark(axes: Any, rank: int, documents: int, text: str) -> None:
    """Mark a point of the curve, with a text below the curve, or beside it at its beginning."""
    axes.vlines(rank, 0.8, documents, color=_GREY, linestyle=":", linewidth=1)
    axes.plot([rank], [documents], marker="o", color=_ORANGE, markersize=6)
    has_room = axes.transAxes.inverted().transform(axes.transData.transform((rank, 1)))[0] > 0.4
    below = (-7, -11 if documents > 1 else 5)
    axes.annotate(
        text, (rank, documents), below if has_room else (8, 4), textcoords="offset points",
        ha="right" if has_room else "left", va="baseline", fontsize=9,
    )  # fmt: skip


def _plain_ticks(axes: Any) -> None:
    """1,000 rather than 10³."""
    from matplotlib.ticker import FuncFormatter

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _finish(axes: Any, title: str, below: str) -> None:
    axes.set_title(f"{_escaped(title)}\n", fontsize=12, loc="left", fontweight="bold")
    axes.annotate(
        below, (0, 1), (0, 6), xycoords="axes fraction", textcoords="offset points", fontsize=9.5,
        color="#444444",
    )  # fmt: skip
    axes.spines[["top", "right"]].set_visible(False)


def _short(count: int) -> str:
    return f"{count:,}" if count < 10_000 else f"{count / 1000:,.0f}k"


def _shortened(name: str) -> str:
    return name if len(name) <= 32 else f"{name[:30].rstrip()}…"


def _wrapped(name: str) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(_escaped(name), 30)[:3])


def _escaped(name: str) -> str:
    """A name in which no `$` begins a formula."""
    return name.replace("$", r"\$")
