"""Latent vectors of all stored documents: a derived store.

    models/label-ae/latents.json      which model, up to which row and generation
    models/label-ae/latents-….f16     a vector per row in float16, memory-mapped

Rows are never reused, so vectors are only ever appended. The description is
replaced atomically after them; leftovers of a crash are overwritten. Compacting writes
another file without the vectors of removed documents, which begins with their rows.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.atomic import atomic_text
from labelkin.autoencoder.columns import LabelColumns
from labelkin.autoencoder.model import LabelModel
from labelkin.checksums import (
    SMALL,
    BlockChecksums,
    ChecksumError,
    ChecksumWriter,
    MappedFile,
    listed_name,
    read_sealed,
    sealed,
)
from labelkin.exceptions import (
    CollectionBusyError,
    CollectionFullError,
    CollectionReadOnlyError,
)
from labelkin.store.derived import (
    BuildProgress,
    DerivedStore,
    SnapshotDamagedError,
    SnapshotOutdatedError,
    StoreDamagedError,
    StoreState,
)
from labelkin.store.folder import file_signature
from labelkin.store.label_sets import LabelSets
from labelkin.store.locks import FileLock
from labelkin.store.reader import Reader

logger = logging.getLogger(__name__)

_CHUNK = 4096
_COMPARED = 200
# Of float16, and of sums in another order.
_TOLERANCE = 0.01
_PATIENCE = 10.0
# Fewer new vectors are faster to compute than to write.
_WORTH_WRITING = 256

# In files, of the rows that were dropped.
_ROW_TYPE = np.dtype("<i8")
_HALF = np.dtype(np.float16).itemsize

Halves = npt.NDArray[np.float16]


def verify_latents(folder: Path, reader: Reader) -> bool:
    """Raise StoreDamagedError if stored vectors are damaged; whether checksums are recorded."""
    description = folder / "latents.json"
    try:
        content = read_sealed(description)
        path = folder / _file_name(content)
        recorded = content.get("checksums")
        if recorded is not None:
            BlockChecksums.from_json(recorded).verify(path)
        elif content["rows"] and path.stat().st_size % content["rows"]:
            raise StoreDamagedError(f"{path}: not as long as {description.name} says")
        state = content["generation"], content["token"]
        if not (reader.knows(*state) or reader.is_outdated(*state)):
            raise StoreDamagedError(
                f"{description}: built from a state that the database does not have"
            )
        _compare_some(folder, content, reader)
    except ChecksumError as error:
        raise StoreDamagedError(str(error)) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreDamagedError(f"{description}: {error}") from error
    return recorded is not None


def _compare_some(folder: Path, content: dict[str, Any], reader: Reader) -> None:
    """Raise StoreDamagedError if vectors are not those of their documents' labels.

    A sample is compared; vectors of another model are never used.
    """
    model = LabelModel.load(folder)
    end = min(content["rows"], reader.generation().next_row)
    if content["model"] != model.checksum or not end:
        return
    size = _file_bytes(content, model.latent)
    file = np.memmap(folder / _file_name(content), np.uint8, "r", shape=(size,))
    stored = _StoredLatents.of_file(file, content, model.latent)
    by_id = reader.columns_by_id()
    columns = np.array([by_id.get(label, -1) for label in model.info.labels], dtype=np.int64)
    rows = np.unique(np.linspace(0, end - 1, _COMPARED).astype(np.int64))
    since = np.array(reader.removed_since(), dtype=np.int64)
    rows = rows[~(np.isin(rows, reader.tombstones()) | np.isin(rows, since))]
    if np.isin(rows, stored.dropped).any():
        raise StoreDamagedError(f"{folder}: lacks latent vectors of stored documents")
    matrix = LabelColumns(columns, len(by_id)).matrix(reader.label_sets(), rows)
    expected = model.encode(matrix)
    is_same = np.isclose(stored.of(rows), expected, rtol=_TOLERANCE, atol=_TOLERANCE).all(axis=1)
    if not is_same.all():
        row = int(rows[np.argmin(is_same)])
        raise StoreDamagedError(
            f"{folder}: the latent vector of row {row} is not that of its labels"
        )


def compact_latents(folder: Path, reader: Reader) -> int:
    """Drop the vectors of removed documents; how many there were. Others may read meanwhile.

    Vectors of another model or of another history are left to the next use, which replaces
    them.
    """
    description = folder / "latents.json"
    with _writing(folder, reader):
        try:
            content = read_sealed(description)
            if not content["rows"] or not reader.knows(content["generation"], content["token"]):
                return 0
            recorded = content.get("checksums")
            latent = LabelModel.load(folder).latent
            file = MappedFile(
                folder / _file_name(content),
                None if recorded is None else BlockChecksums.from_json(recorded),
                _file_bytes(content, latent),
            )
            file.verify(0, len(file.bytes))
            stored = _StoredLatents.of_file(file.bytes, content, latent)
        except FileNotFoundError:
            return 0
        except ChecksumError as error:
            raise StoreDamagedError(str(error)) from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreDamagedError(f"{description}: {error}") from error
        removed = reader.tombstones()
        dropped = np.union1d(stored.dropped, removed[removed < len(stored)])
        count = len(dropped) - len(stored.dropped)
        if not count:
            # What a killed compaction has left.
            _delete_others(folder, _file_name(content))
            return 0
        # Under a name of its own: others have the old file mapped, and a crash leaves it.
        content["file"] = f"latents-{secrets.token_hex(4)}-{content['model']}.f16"
        content["dropped"] = len(dropped)
        # Readers of earlier states then know that they may see documents without a vector.
        generation = reader.generation()
        content |= {"generation": generation.number, "token": generation.token}
        kept = np.setdiff1d(np.arange(len(stored)), dropped)
        with (folder / content["file"]).open("wb") as new:
            writer = ChecksumWriter(new)
            writer.write(dropped.astype(_ROW_TYPE).tobytes())
            for start in range(0, len(kept), _CHUNK):
                writer.write(stored.of(kept[start : start + _CHUNK]).tobytes())
            new.flush()
            os.fsync(new.fileno())
        _write_description(description, content, writer.checksums())
        return count


def _file_name(content: dict[str, Any]) -> str:
    """The file of the vectors that a description describes."""
    return listed_name(content.get("file") or f"latents-{content['model']}.f16")


def _file_bytes(content: dict[str, Any], latent: int) -> int:
    """How long the file is, at least."""
    dropped = int(content.get("dropped", 0))
    if not 0 <= dropped <= content["rows"]:
        raise ValueError("drops more rows than it has")
    return dropped * _ROW_TYPE.itemsize + (int(content["rows"]) - dropped) * latent * _HALF


def _write_description(path: Path, content: dict[str, Any], checksums: BlockChecksums) -> None:
    """Put new vectors into effect, and delete those of other files."""
    with atomic_text(path) as text:
        text.write(sealed({**content, "checksums": checksums.to_json()}))
    _delete_others(path.parent, _file_name(content))


def _delete_others(folder: Path, name: str) -> None:
    """Delete all vectors but those in the file with this name."""
    for other in folder.glob("latents-*.f16"):
        if other.name != name:
            other.unlink(missing_ok=True)


@contextmanager
def _writing(folder: Path, reader: Reader) -> Iterator[None]:
    """Keep other processes from writing the vectors."""
    with FileLock(folder / ".latents.lock") as lock:
        if not lock.take(_PATIENCE):
            raise CollectionBusyError(
                f"{reader.path}: another process is writing latent vectors; try again later"
            )
        yield


@dataclass(frozen=True, slots=True)
class _StoredLatents:
    """The vectors of a file by row; `dropped` rows, ascending, have none."""

    dropped: npt.NDArray[np.int64]
    vectors: Halves

    @classmethod
    def of_file(
        cls, content: npt.NDArray[np.uint8], description: dict[str, Any], latent: int
    ) -> _StoredLatents:
        """What the mapped bytes of a file hold."""
        start = int(description.get("dropped", 0)) * _ROW_TYPE.itemsize
        vectors = content[start:].view(np.float16).reshape(-1, latent)
        return cls(content[:start].view(_ROW_TYPE).astype(np.int64), vectors)

    def __len__(self) -> int:
        return len(self.dropped) + len(self.vectors)

    def before(self, end: int) -> _StoredLatents:
        """Those of the rows before `end`."""
        dropped = self.dropped[: np.searchsorted(self.dropped, end)]
        return _StoredLatents(dropped, self.vectors[: max(end - len(dropped), 0)])

    def places(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The place of each row's vector in the file, −1 for dropped ones."""
        if not len(self.dropped):
            return rows
        before = np.searchsorted(self.dropped, rows)
        nearest = self.dropped[np.minimum(before, len(self.dropped) - 1)]
        return np.where(nearest == rows, -1, rows - before)

    def of(self, rows: npt.NDArray[np.int64]) -> Halves:
        """The vectors of rows; zeros for dropped ones, which belong to no document."""
        places = self.places(rows)
        if not len(self.dropped):
            return self.vectors[places]
        vectors = np.zeros((len(rows), self.vectors.shape[1]), dtype=np.float16)
        vectors[places >= 0] = self.vectors[places[places >= 0]]
        return vectors


class Latents:
    """Latent vectors by row, for one state of a collection."""

    def __init__(
        self,
        stored: _StoredLatents,
        rest: Halves,
        corrected: tuple[npt.NDArray[np.int64], Halves] | None = None,
        verify: Callable[[npt.NDArray[np.int64]], None] | None = None,
    ) -> None:
        self._stored = stored
        self._verify = verify
        self._rest = rest
        self._corrected = corrected

    def __len__(self) -> int:
        return len(self._stored) + len(self._rest)

    def rest_from(self, first: int) -> Halves:
        """The vectors from row `first` on that are in memory."""
        if first < len(self._stored):
            return self._rest[:0]
        return self._rest[first - len(self._stored) :]

    def of(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """The vectors of `rows`, which may hold a row several times."""
        flat = rows.ravel()
        vectors = np.empty((len(flat), self._rest.shape[1]), dtype=np.float32)
        is_stored = flat < len(self._stored)
        if self._verify is not None:
            self._verify(self._stored.places(flat[is_stored]))
        vectors[is_stored] = self._stored.of(flat[is_stored])
        vectors[~is_stored] = self._rest[flat[~is_stored] - len(self._stored)]
        if self._corrected is not None:
            known, corrections = self._corrected
            places = np.minimum(np.searchsorted(known, flat), len(known) - 1)
            is_corrected = known[places] == flat
            vectors[is_corrected] = corrections[places[is_corrected]]
        return vectors.reshape(*rows.shape, vectors.shape[1])


class LatentStore(DerivedStore):
    """The latent vectors of a collection under one model."""

    noun = "latent vectors"

    def __init__(self, model: LabelModel, columns: LabelColumns) -> None:
        super().__init__(model.folder)
        self._model = model
        self.columns = columns
        self._description = model.folder / "latents.json"
        self._stored = self._none_stored()
        self._file: MappedFile | None = None
        self._latest: tuple[StoreState, Latents] | None = None

    def at(self, reader: Reader) -> Latents:
        """The vectors of all rows that the reader sees; the missing ones are encoded.

        They are written unless they are few, another process holds the lock
        for long, or the folder cannot be written to.
        """
        with self.lock:
            label_sets = reader.label_sets()
            try:
                self.check_sound()
                self.state = self.read_state(reader)
                self._check_history(reader)
            except SnapshotOutdatedError:
                return self._at_earlier(reader)
            except StoreDamagedError as error:
                self.report_damage(str(error), logging.WARNING)
                self.start_over()
            if label_sets.rows - len(self._stored) >= _WORTH_WRITING and not reader.read_only:
                try:
                    self.catch_up(reader)
                except (CollectionBusyError, CollectionReadOnlyError, CollectionFullError) as error:
                    logger.warning("%s; the latent vectors are not written", error)
            first = len(self._stored)
            known = self._encoded_before(reader, first)
            new = self._encoded(label_sets, first + len(known), label_sets.rows)
            rest = np.concatenate((known, new)) if len(new) else known
            latents = Latents(self._stored, rest, verify=self._verifier())
            self._latest = (StoreState.of(reader.generation()), latents)
            return latents

    def _at_earlier(self, reader: Reader) -> Latents:
        """The vectors for a state that the store is ahead of.

        Documents removed since then may have been encoded without their labels.
        """
        label_sets = reader.label_sets()
        stored = self._stored.before(label_sets.rows)
        removed = np.array(sorted(reader.removed_since()), dtype=np.int64)
        removed = removed[removed < len(stored)]
        corrected = None
        if len(removed):
            vectors = self._model.encode(self.columns.matrix(label_sets, removed))
            corrected = (removed, vectors.astype(np.float16))
        rest = self._encoded(label_sets, len(stored), label_sets.rows)
        return Latents(stored, rest, corrected, self._verifier())

    def _verifier(self) -> Callable[[npt.NDArray[np.int64]], None] | None:
        """Verifies the vectors in some places of the file, before they are read."""
        file = self._file
        if file is None:
            return None
        first = len(self._stored.dropped) * _ROW_TYPE.itemsize

        def verify(places: npt.NDArray[np.int64]) -> None:
            try:
                file.verify_items(first, self._size, places[places >= 0])
            except ChecksumError as error:
                self.report_damage(str(error), logging.WARNING)
                raise SnapshotDamagedError(f"{error}; try again") from error

        return verify

    def _encoded_before(self, reader: Reader, first: int) -> Halves:
        """The vectors from row `first` on that an earlier state has encoded in memory."""
        if self._latest is None:
            return self._nothing()
        state, latents = self._latest
        if not reader.knows(state.generation, state.token):
            return self._nothing()
        return latents.rest_from(first)

    def read_state(self, reader: Reader) -> StoreState:
        """What the description says; nothing if it belongs to another model."""
        while True:
            before = file_signature(self._description)
            try:
                return self._read_state(reader)
            except StoreDamagedError:
                # Another process may have replaced both files meanwhile.
                if file_signature(self._description) == before:
                    raise

    def _read_state(self, reader: Reader) -> StoreState:  # noqa: ARG002
        self._stored, before = self._none_stored(), self._file
        try:
            content = read_sealed(self._description)
            if content["model"] != self._model.checksum or not content["rows"]:
                return StoreState()
            recorded = content.get("checksums")
            checksums = None if recorded is None else BlockChecksums.from_json(recorded)
            size = _file_bytes(content, self._model.latent)
            path = self.folder / _file_name(content)
            if before is None or before.path != path or not before.is_current(checksums, size):
                file = MappedFile(path, checksums, size)
                if len(file.bytes) <= SMALL:
                    file.verify(0, len(file.bytes))
                self._file = before = file
            # The rows that were dropped; where there are none, nothing is read.
            before.verify(0, int(content.get("dropped", 0)) * _ROW_TYPE.itemsize)
            self._stored = _StoredLatents.of_file(before.bytes, content, self._model.latent)
            return StoreState(content["generation"], content["token"], content["rows"])
        except FileNotFoundError:
            return StoreState()
        except ChecksumError as error:
            raise StoreDamagedError(str(error)) from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreDamagedError(f"{self._description}: {error}") from error

    def apply(self, reader: Reader, progress: BuildProgress | None) -> int:  # noqa: ARG002
        """Append the vectors of the rows that are missing."""
        label_sets, generation = reader.label_sets(), reader.generation()
        first, end = len(self._stored), label_sets.rows
        description: dict[str, Any] = {
            "model": self._model.checksum,
            "rows": end,
            "generation": generation.number,
            "token": generation.token,
        }
        path = self.folder / _file_name(description)
        before: BlockChecksums | None = None
        if first and self._file is not None:
            path, size = self._file.path, len(self._file.bytes)
            if len(self._stored.dropped):
                description |= {"file": path.name, "dropped": len(self._stored.dropped)}
            before = self._file.checksums or BlockChecksums.of_file(path, size)
        else:
            # Start a new file if nothing is reused: others may have the old one mapped.
            path.unlink(missing_ok=True)
        with path.open("wb" if before is None else "r+b") as file:
            file.seek(0 if before is None else before.size)
            writer = ChecksumWriter(file, before)
            for start in range(first, end, _CHUNK):
                vectors = self._encoded(label_sets, start, min(start + _CHUNK, end))
                writer.write(vectors.tobytes())
            file.flush()
            os.fsync(file.fileno())
        _write_description(self._description, description, writer.checksums())
        self.state = self.read_state(reader)
        return end - first

    def apply_in_memory(self, reader: Reader) -> int:  # noqa: ARG002
        """Nothing to do: `at` encodes what is missing."""
        return 0

    def start_over(self) -> None:
        """Forget all vectors; `apply` writes a new file."""
        self._stored = self._none_stored()
        self._file = None
        self.state = StoreState()

    @contextmanager
    def exclusive(self, reader: Reader) -> Iterator[None]:
        """Keep other processes from writing the vectors."""
        with _writing(self._model.folder, reader):
            yield

    def _encoded(self, label_sets: LabelSets, first: int, end: int) -> Halves:
        vectors = np.empty((max(end - first, 0), self._model.latent), dtype=np.float16)
        for start in range(0, len(vectors), _CHUNK):
            part = slice(start, min(start + _CHUNK, len(vectors)))
            rows = np.arange(first + part.start, first + part.stop)
            vectors[part] = self._model.encode(self.columns.matrix(label_sets, rows))
        return vectors

    @property
    def _size(self) -> int:
        """The bytes of a vector."""
        return self._model.latent * _HALF

    def _none_stored(self) -> _StoredLatents:
        return _StoredLatents(np.empty(0, dtype=np.int64), self._nothing())

    def _nothing(self) -> Halves:
        return np.empty((0, self._model.latent), dtype=np.float16)
