"""Latent vectors of all stored documents: a derived store.

    models/label-ae/latents.json      which model, up to which row and generation
    models/label-ae/latents-….f16     a vector per row in float16, memory-mapped

Rows are never reused, so vectors are only ever appended. The description is
replaced atomically after them; leftovers of a crash are overwritten.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

Halves = npt.NDArray[np.float16]


def verify_latents(folder: Path, reader: Reader) -> bool:
    """Raise StoreDamagedError if stored vectors are damaged; whether checksums are recorded."""
    description = folder / "latents.json"
    try:
        content = read_sealed(description)
        path = folder / f"latents-{content['model']}.f16"
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
    stored = np.memmap(
        folder / f"latents-{model.checksum}.f16",
        np.float16,
        "r",
        shape=(content["rows"], model.latent),
    )
    by_id = reader.columns_by_id()
    columns = np.array([by_id.get(label, -1) for label in model.info.labels], dtype=np.int64)
    rows = np.unique(np.linspace(0, end - 1, _COMPARED).astype(np.int64))
    since = np.array(reader.removed_since(), dtype=np.int64)
    rows = rows[~(np.isin(rows, reader.tombstones()) | np.isin(rows, since))]
    matrix = LabelColumns(columns, len(by_id)).matrix(reader.label_sets(), rows)
    expected = model.encode(matrix)
    is_same = np.isclose(stored[rows], expected, rtol=_TOLERANCE, atol=_TOLERANCE).all(axis=1)
    if not is_same.all():
        row = int(rows[np.argmin(is_same)])
        raise StoreDamagedError(
            f"{folder}: the latent vector of row {row} is not that of its labels"
        )


class Latents:
    """Latent vectors by row, for one state of a collection."""

    def __init__(
        self,
        stored: Halves,
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
            self._verify(flat[is_stored])
        vectors[is_stored] = self._stored[flat[is_stored]]
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
        self._vectors = model.folder / f"latents-{model.checksum}.f16"
        self._stored = self._nothing()
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
        stored = self._stored[: label_sets.rows]
        removed = np.array(sorted(reader.removed_since()), dtype=np.int64)
        removed = removed[removed < len(stored)]
        corrected = None
        if len(removed):
            vectors = self._model.encode(self.columns.matrix(label_sets, removed))
            corrected = (removed, vectors.astype(np.float16))
        rest = self._encoded(label_sets, len(stored), label_sets.rows)
        return Latents(stored, rest, corrected, self._verifier())

    def _verifier(self) -> Callable[[npt.NDArray[np.int64]], None] | None:
        """Verifies the vectors of rows that are about to be read."""
        file = self._file
        if file is None:
            return None

        def verify(rows: npt.NDArray[np.int64]) -> None:
            try:
                file.verify_items(0, self._size, rows)
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
        self._stored, before = self._nothing(), self._file
        try:
            content = read_sealed(self._description)
            if content["model"] != self._model.checksum or not content["rows"]:
                return StoreState()
            shape = (content["rows"], self._model.latent)
            recorded = content.get("checksums")
            checksums = None if recorded is None else BlockChecksums.from_json(recorded)
            size = content["rows"] * self._size
            if before is None or not before.is_current(checksums, size):
                file = MappedFile(self._vectors, checksums, size)
                if len(file.bytes) <= SMALL:
                    file.verify(0, len(file.bytes))
                self._file = before = file
            self._stored = before.bytes.view(np.float16).reshape(shape)
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
        first, end, size = len(self._stored), label_sets.rows, self._size
        # Start a new file if nothing is reused: other processes may have the old one mapped.
        if first == 0:
            self._vectors.unlink(missing_ok=True)
        before = self._file.checksums if first and self._file is not None else None
        if first and before is None:
            before = BlockChecksums.of_file(self._vectors, first * size)
        with self._vectors.open("r+b" if first else "wb") as file:
            file.seek(first * size)
            writer = ChecksumWriter(file, before)
            for start in range(first, end, _CHUNK):
                vectors = self._encoded(label_sets, start, min(start + _CHUNK, end))
                writer.write(vectors.tobytes())
            file.flush()
            os.fsync(file.fileno())
        description: dict[str, Any] = {
            "model": self._model.checksum,
            "rows": end,
            "generation": generation.number,
            "token": generation.token,
            "checksums": writer.checksums().to_json(),
        }
        with atomic_text(self._description) as text:
            text.write(sealed(description))
        for path in self._vectors.parent.glob("latents-*.f16"):
            if path != self._vectors:
                path.unlink(missing_ok=True)
        self.state = self.read_state(reader)
        return end - first

    def apply_in_memory(self, reader: Reader) -> int:  # noqa: ARG002
        """Nothing to do: `at` encodes what is missing."""
        return 0

    def start_over(self) -> None:
        """Forget all vectors; `apply` writes a new file."""
        self._stored = self._nothing()
        self._file = None
        self.state = StoreState()

    @contextmanager
    def exclusive(self, reader: Reader) -> Iterator[None]:
        """Keep other processes from writing the vectors."""
        with FileLock(self._model.folder / ".latents.lock") as lock:
            if not lock.take(_PATIENCE):
                raise CollectionBusyError(
                    f"{reader.path}: another process is writing latent vectors; try again later"
                )
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
        return self._model.latent * np.dtype(np.float16).itemsize

    def _nothing(self) -> Halves:
        return np.empty((0, self._model.latent), dtype=np.float16)
