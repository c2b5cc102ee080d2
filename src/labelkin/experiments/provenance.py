"""Where figures come from: version, commit, data, models, machine."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path


@cache
def commit() -> str:
    """The commit of the checkout that labelkin runs from; nothing for an installed one."""
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
