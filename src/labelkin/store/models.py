"""Trained models: loaded once per checksum and shared by all threads."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Protocol, Self, TypeVar

from labelkin._version import __version__
from labelkin.closing import Closing
from labelkin.exceptions import (
    CollectionBusyError,
    CollectionError,
    ModelDamagedError,
    ModelNotFoundError,
)
from labelkin.memo import Memo
from labelkin.store.folder import file_signature
from labelkin.store.locks import FileLock

DESCRIPTION = "model.json"
TRAINING_LOCK = ".training.lock"


class Model(Protocol):
    """A kind of model that a collection can have. Instances never change.

    `folder_name` is the folder below models/.
    """

    folder_name: str

    @classmethod
    def checksum_of(cls, folder: Path) -> str:
        """Changes whenever the model in `folder` does; ModelNotFoundError if there is none."""
        ...

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the model."""
        ...

    def close(self) -> None:
        """Drop what is cached with the model; requests that still use it go on."""
        ...


Loaded = TypeVar("Loaded", bound=Model)


class Models(Closing):
    """The models of one collection: the latest of each kind.

    A lookup compares the signature of the description's file, so it opens no
    file unless the model has been trained again. Requests that use the
    previous model keep it until they end.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._loaded = Memo()
        self._lock = Lock()
        self._checksums: dict[str, tuple[Hashable, str]] = {}
        self._is_closed = False

    def close(self) -> None:
        """Drop all models; their files are closed when the last request has ended."""
        self._is_closed = True
        for key in self._loaded.keys():  # noqa: SIM118 - not a dictionary
            model: Model | None = self._loaded.peek(key)
            if model is not None:
                model.close()
        self._loaded.clear()

    def has(self, kind: type[Model]) -> bool:
        """Whether a model of this kind has been trained."""
        return (self.folder / kind.folder_name / DESCRIPTION).is_file()

    def checksum(self, kind: type[Model]) -> str:
        """The checksum of the model that is on disk now."""
        folder = self.folder / kind.folder_name
        signature = file_signature(folder / DESCRIPTION)
        with self._lock:
            known = self._checksums.get(kind.folder_name)
        if known is not None and signature is not None and known[0] == signature:
            return known[1]
        checksum = kind.checksum_of(folder)
        with self._lock:
            self._checksums[kind.folder_name] = (signature, checksum)
        return checksum

    def get(self, kind: type[Loaded]) -> Loaded:
        """The model of a kind; ModelNotFoundError if none has been trained."""
        folder = self.folder / kind.folder_name
        checksum = self.checksum(kind)
        try:
            model = self._load(kind, folder, checksum)
        except ModelDamagedError:
            # A training may have replaced the files while they were read.
            if self.checksum(kind) == checksum:
                raise
            checksum = self.checksum(kind)
            model = self._load(kind, folder, checksum)
        if self.checksum(kind) == checksum:
            self._drop_others(kind, checksum)
        return model

    def _load(self, kind: type[Loaded], folder: Path, checksum: str) -> Loaded:
        if self._is_closed:
            raise CollectionError(f"{self.folder.parent}: the collection is closed")
        key = (kind.folder_name, checksum)
        loaded = self._loaded.peek(key)
        if loaded is not None and getattr(loaded, "damage", None):
            # Its files may have been restored since.
            self._loaded.drop(key)
        return self._loaded.get(key, lambda: kind.load(folder))

    def _drop_others(self, kind: type[Model], checksum: str) -> None:
        """Drop earlier models of a kind; requests that still use one keep it."""
        for key in self._loaded.keys():  # noqa: SIM118 - not a dictionary
            if isinstance(key, tuple) and key[0] == kind.folder_name and key[1] != checksum:
                replaced: Model | None = self._loaded.peek(key)
                self._loaded.drop(key)
                if replaced is not None:
                    replaced.close()

    def find(self, kind: type[Loaded]) -> Loaded | None:
        """The model of a kind, None if none has been trained."""
        try:
            return self.get(kind)
        except ModelNotFoundError:
            return None


@contextmanager
def training_lock(folder: Path) -> Iterator[None]:
    """Keep other processes from training the model in `folder`, which is created."""
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / TRAINING_LOCK) as lock:
        if not lock.take():
            raise CollectionBusyError(f"{folder}: another process is training")
        yield


def software_versions(*libraries: str) -> dict[str, str]:
    """The versions of labelkin, Python and some libraries, for a model's description."""
    return {
        "labelkin": __version__,
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in libraries},
    }
