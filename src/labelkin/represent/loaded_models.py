"""Models that are loaded from disk once and shared by all threads."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

Model = TypeVar("Model")


class LoadedModels(Generic[Model]):
    """A cache of at most `size` models, each loaded on first use with `load(*key)`.

    The least recently used model is dropped first. Threads that ask for the same
    model at the same time load it once; a load does not block other models.
    """

    def __init__(self, load: Callable[..., Model], size: int) -> None:
        self._load = load
        self._size = size
        self._lock = Lock()
        self._entries: OrderedDict[tuple[Hashable, ...], _Entry[Model]] = OrderedDict()

    def get(self, *key: Hashable) -> Model:
        """The model, for libraries whose models are safe to call from several threads."""
        with self.use(*key) as model:
            return model

    @contextmanager
    def use(self, *key: Hashable) -> Iterator[Model]:
        """The model, held by one thread at a time; others wait."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            if len(self._entries) > self._size:
                self._entries.popitem(last=False)
        with entry.lock:
            if entry.model is None:
                entry.model = self._load(*key)
            yield entry.model


class _Entry(Generic[Model]):
    """A model, None until it is loaded, and the lock of the thread that uses it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.model: Model | None = None


def folder_checksum(name: str) -> str:
    """A checksum of the names, sizes and modification times of a model folder's files.

    Empty for a name that is not a folder, such as one of the Hugging Face hub.
    """
    folder = Path(name)
    if not folder.is_dir():
        return ""
    checksum = hashlib.blake2b(digest_size=4)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        state = path.stat()
        line = f"{path.relative_to(folder)} {state.st_size} {state.st_mtime_ns}\n"
        checksum.update(line.encode("utf-8", "replace"))
    return checksum.hexdigest()
