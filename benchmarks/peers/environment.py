"""A virtual environment per peer, with pinned packages."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .datasets import write_json
from .meter import CommandError, last_line

STAMP = "installed.json"


def installed(folder: Path, installs: Sequence[Sequence[str]]) -> list[str]:
    """Make the environment unless it is there; all packages with their versions.

    `installs` are the arguments of `pip install`, one call after another. CommandError if a
    package cannot be installed.
    """
    wanted = [list(one) for one in installs]
    stamp = folder / STAMP
    if stamp.exists() and (content := json.loads(stamp.read_text()))["installs"] == wanted:
        frozen: list[str] = content["frozen"]
        return frozen
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    log = folder.with_name(f"{folder.name}.log")
    log.write_bytes(b"")
    _run([sys.executable, "-m", "venv", str(folder)], log)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    for arguments in wanted:
        # Wheels first: a package that has to be compiled takes long or fails.
        _run([*pip, "install", "--quiet", "--prefer-binary", *arguments], log)
    done = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True)
    frozen = done.stdout.split()
    write_json(stamp, {"installs": wanted, "frozen": frozen})
    return frozen


def _run(command: list[str], log: Path) -> None:
    with log.open("ab") as output:
        done = subprocess.run(command, stdout=output, stderr=output, check=False)
    if done.returncode:
        shown = " ".join(command[command.index("-m") + 1 :])
        raise CommandError(f"{shown} failed: {last_line(log)}; see {log.name}")
