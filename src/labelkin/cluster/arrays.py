"""Folders of arrays that appear whole, with checksums, and are mapped into memory."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from typing import Any

from labelkin.atomic import atomic_text, sync_folder
from labelkin.checksums import BlockChecksums, read_sealed, sealed
from labelkin.exceptions import ClusterError
from labelkin.neighbours.array_file import Checksums, sync_files

_RECORD = "record.json"
_verified: set[Path] = set()


def publish_arrays(
    folder: Path, write: Callable[[Path], tuple[Checksums, Mapping[str, Any]]]
) -> None:
    """Have `write` fill a new folder, which then gets its name.

    It returns the checksums of the files, and what is to be recorded with them.
    """
    temporary = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    try:
        checksums, values = write(temporary)
        files = {name: one.to_json() for name, one in checksums.items()}
        with atomic_text(temporary / _RECORD) as file:
            file.write(sealed({"files": files, **values}))
        sync_files(temporary)
        try:
            temporary.rename(folder)
        except OSError:
            # Another attempt of the same task was first.
            if not folder.exists():
                raise
        sync_folder(folder.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def array_record(folder: Path, used: Container[str] | None = None) -> dict[str, Any]:
    """What is recorded of a folder; its files are verified, each once in a process.

    Compiled code has to trust them. `used` are those that will be used, None for all.
    """
    try:
        record = read_sealed(folder / _RECORD)
        for name, checksums in record["files"].items():
            if (used is None or name in used) and folder / name not in _verified:
                BlockChecksums.from_json(checksums).verify(folder / name)
                _verified.add(folder / name)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ClusterError(
            f"{folder}: damaged ({error}); delete it and run the same command again"
        ) from error
    return record
