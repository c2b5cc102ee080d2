"""The manifest that marks a folder as a collection and names the version that wrote it."""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from labelkin._version import __version__
from labelkin.atomic import atomic_text
from labelkin.exceptions import (
    CollectionDamagedError,
    CollectionNotFoundError,
    CollectionTooNewError,
)
from labelkin.layout import DATABASE_NAME, FORMAT
from labelkin.layout import MANIFEST_NAME as MANIFEST_NAME

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """What every version of labelkin must be able to read about a collection."""

    uid: str
    created: str
    created_by: str
    format: str = FORMAT
    format_version: int = FORMAT_VERSION


def new_manifest() -> Manifest:
    """A manifest with an identity of its own."""
    return Manifest(
        uid=uuid.uuid4().hex,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        created_by=f"labelkin {__version__}",
    )


def write_manifest(manifest: Manifest, folder: Path) -> None:
    """Write `manifest` into `folder` atomically."""
    with atomic_text(folder / MANIFEST_NAME) as file:
        json.dump(asdict(manifest), file, indent=2)
        file.write("\n")


def read_manifest(folder: Path) -> Manifest:
    """The manifest of `folder`, checked for a format that this version understands."""
    path = folder / MANIFEST_NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        if (folder / DATABASE_NAME).is_file():
            raise _unusable(folder, "missing") from None
        raise CollectionNotFoundError(
            f"{folder}: no labelkin collection here; {_next_step(folder)}"
        ) from None
    except (OSError, ValueError) as error:
        raise _unusable(folder, f"cannot be read ({error})") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _unusable(folder, "not the manifest of a labelkin collection")
    version = content.get("format_version")
    if not isinstance(version, int) or version < 1:
        raise _unusable(folder, f"format_version is {version!r}, not a number")
    if version > FORMAT_VERSION:
        raise CollectionTooNewError(
            f"{folder}: format {version} was written by {content.get('created_by')}, this labelkin "
            f"reads up to {FORMAT_VERSION}; upgrade with `pip install --upgrade labelkin`"
        )
    try:
        return Manifest(**{name: content[name] for name in Manifest.__dataclass_fields__})
    except KeyError as error:
        raise _unusable(folder, f"{error} is missing") from error


def _unusable(folder: Path, reason: str) -> CollectionDamagedError:
    """The error for a lost manifest: only the format version and an id that can be replaced."""
    path = folder / MANIFEST_NAME
    if (folder / DATABASE_NAME).is_file():
        return CollectionDamagedError(
            f"{path}: {reason}; the documents are in {DATABASE_NAME}: "
            f"`labelkin doctor {folder} --repair` writes a new manifest"
        )
    return CollectionDamagedError(
        f"{path}: {reason}, and there is no {DATABASE_NAME}; restore the folder from a backup"
    )


def _next_step(folder: Path) -> str:
    if folder.exists() and not folder.is_dir():
        return "it is a file: name the folder of a collection"
    if folder.is_dir() and any(folder.iterdir()):
        return "name its folder, or make one elsewhere with `labelkin init FOLDER`"
    return f"make one with `labelkin init {folder}`"
