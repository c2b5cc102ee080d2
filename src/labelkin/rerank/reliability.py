"""The reliability diagram: what scores say against how often they were right."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from labelkin.atomic import atomic_file


def draw_reliability(table: Sequence[tuple[float, float, int]], path: Path) -> bool:
    """Draw rows of mean score, share right and number; False where matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        return False
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="0.7", linestyle="--", label="as it should be")
    means, shares = [row[0] for row in table], [row[1] for row in table]
    axes.plot(means, shares, marker="o", color="#0072B2", label="headings of documents kept aside")
    for mean, share, count in table:
        axes.annotate(f"{count:,}", (mean, share), (6, -10), textcoords="offset points", size=8)
    axes.set(xlabel="score", ylabel="share that is right", xlim=(0, 1), ylim=(0, 1))
    axes.legend(loc="upper left")
    with atomic_file(path) as file:
        figure.savefig(file, format="png", dpi=120)
    return True
