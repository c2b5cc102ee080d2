"""Open files of this process, as the system lists them."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

_LIST = Path("/proc/self/fd")


def open_files(folder: Path, ending: str = "") -> int:
    """How many descriptors point to files in `folder` with this ending; skips without /proc.

    SQLite keeps the descriptor of a closed connection's main file for its next
    connection as long as another connection to it is open in the same process,
    but closes that of the log ("-wal") with its connection.
    """
    if not _LIST.is_dir():
        pytest.skip("needs /proc")
    gc.collect()
    count = 0
    for descriptor in _LIST.iterdir():
        try:
            target = str(descriptor.readlink())
        except FileNotFoundError:
            # The descriptor that lists the folder itself.
            continue
        count += target.startswith(str(folder.resolve())) and target.endswith(ending)
    return count
