"""Folders that hold a model."""

from __future__ import annotations

import hashlib
from pathlib import Path


def folder_digest(name: str) -> str:
    """What tells one state of a folder from another: names, sizes and times of its files.

    Nothing for a name that is no folder.
    """
    folder = Path(name)
    if not folder.is_dir():
        return ""
    digest = hashlib.blake2b(digest_size=4)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        state = path.stat()
        line = f"{path.relative_to(folder)} {state.st_size} {state.st_mtime_ns}\n"
        digest.update(line.encode("utf-8", "replace"))
    return digest.hexdigest()
