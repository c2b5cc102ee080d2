"""What makes a folder a collection: the names that everyone may look for."""

from __future__ import annotations

import json
from pathlib import Path

MANIFEST_NAME = "manifest.json"
DATABASE_NAME = "documents.sqlite"
LABELS_NAME = "labels"
DESK_NAME = "desk.sqlite"
FORMAT = "labelkin-collection"
# A manifest is short; other programs' files of this name need not be read whole.
_MOST_BYTES = 1 << 16


def is_collection(path: Path) -> bool:
    """Whether a folder is a collection, also one whose manifest or database is lost or damaged.

    Other programs, too, have a `manifest.json`: it counts beside a database or
    if it names labelkin's format.
    """
    manifest = path / MANIFEST_NAME
    if (path / DATABASE_NAME).is_file() and (manifest.is_file() or (path / LABELS_NAME).is_dir()):
        return True
    try:
        if not manifest.is_file() or manifest.stat().st_size > _MOST_BYTES:
            return False
        content = json.loads(manifest.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("format") == FORMAT
