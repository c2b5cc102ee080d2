"""Files of results with one JSON object per line, which an interrupted run continues."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from labelkin.atomic import atomic_text

RESULTS = Path(__file__).parents[2] / "results" / "reliability"


def read(path: Path) -> list[dict[str, Any]]:
    """All rows; none if there is no such file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Add a row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Replace all rows; a new file takes the place of the old one as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_text(path) as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def keep(test: str, figures: Mapping[str, Any]) -> None:
    """Add the figures of a test to the file that LABELKIN_RESULTS names, if it names one."""
    if path := os.environ.get("LABELKIN_RESULTS"):
        append(Path(path), {"test": test, "python": platform.python_version(), **figures})
