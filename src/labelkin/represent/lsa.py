"""`lsa`: latent semantic analysis, fitted to the collection itself. Needs no model.

A text is the TF-IDF of its stems (1 + ln tf, smoothed idf, length 1), projected
onto the strongest directions of the collection's own TF-IDF matrix (truncated
SVD, Deerwester et al. 1990). The model is fitted once, on first use; documents
that are added later are projected. `labelkin build --relearn` fits it again.

    models/lsa/model.json          settings, terms, name of the arrays
    models/lsa/XXXX.npz            idf and directions
"""

from __future__ import annotations

import hashlib
import json
import logging
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.atomic import atomic_file, atomic_text
from labelkin.checksums import listed_name
from labelkin.corpus.document import Document
from labelkin.exceptions import MissingExtraError, ModelDamagedError
from labelkin.represent.cache import open_term_cache
from labelkin.represent.encoder import Vectors, normalised
from labelkin.represent.representation import make_representation
from labelkin.store.collection import Collection
from labelkin.store.folder import folder_errors_explained
from labelkin.store.reader import Reader
from labelkin.tensors import npz_arrays

logger = logging.getLogger(__name__)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_FORMAT_VERSION = 1
_NOTE_NAME = "model.json"
_SEED = 0
# Warn when the collection has grown this many times since the model was fitted.
_GROWTH_LIMIT = 10
_ITERATIONS = 4
# Enough documents to fit the directions; more would only take more memory.
_MAX_DOCUMENTS = 200_000
_MAX_TERMS = 100_000
_MIN_DOCUMENT_FREQUENCY = 2
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, RecursionError, zipfile.BadZipFile)


@dataclass(frozen=True)
class LsaModel:
    """Terms, their idf, and the directions that documents are projected onto."""

    terms: tuple[str, ...]
    idf: npt.NDArray[np.float32]
    directions: npt.NDArray[np.float16]
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """A checksum of terms and arrays; vectors carry it as their version."""
        checksum = hashlib.blake2b("\n".join(self.terms).encode(), digest_size=8)
        for array in (self.idf, self.directions):
            checksum.update(np.ascontiguousarray(array).tobytes())
        return checksum.hexdigest()

    def save(self, folder: Path) -> None:
        """Write the model; readers see either the old model or the complete new one."""
        folder.mkdir(parents=True, exist_ok=True)
        arrays = folder / f"{self.fingerprint}.npz"
        with atomic_file(arrays) as file:
            np.savez(file, idf=self.idf, directions=self.directions)
        content = {
            "format_version": _FORMAT_VERSION,
            "fingerprint": self.fingerprint,
            "about": self.about,
            "terms": self.terms,
        }
        with atomic_text(folder / _NOTE_NAME) as text:
            json.dump(content, text, ensure_ascii=False)
        for other in folder.glob("*.npz"):
            if other != arrays:
                other.unlink(missing_ok=True)

    @classmethod
    def load(cls, folder: Path) -> LsaModel | None:
        """The model in `folder`; None if it is missing, damaged or of another format."""
        try:
            note, path = _described(folder)
            arrays = npz_arrays(path)
            model = cls(tuple(note["terms"]), arrays["idf"], arrays["directions"], note["about"])
        except _UNREADABLE:
            return None
        return model if model.fingerprint == note["fingerprint"] else None


def check_lsa(folder: Path) -> None:
    """Raise ModelDamagedError if a file is missing, truncated or of another format.

    The arrays are not read: `LsaModel.load` verifies them.
    """
    try:
        _, path = _described(folder)
        # Their directory is at the end of the file.
        zipfile.ZipFile(path).close()
    except _UNREADABLE as error:
        raise ModelDamagedError(
            f"{folder}: damaged ({error}); the next search by lsa fits it again"
        ) from error


def fitted_version(reader: Reader) -> str:
    """The version of the encoder with the model that the collection has; empty without one."""
    try:
        note, _ = _described(reader.path / "models" / "lsa")
    except _UNREADABLE:
        return ""
    return _version(note["fingerprint"], normalise=reader.config.dense.normalise)


def _version(fingerprint: str, *, normalise: bool) -> str:
    return f"lsa {fingerprint}, normalised {normalise}"


def _described(folder: Path) -> tuple[dict[str, Any], Path]:
    """The content of model.json, and the path of the arrays."""
    note = json.loads((folder / _NOTE_NAME).read_text(encoding="utf-8"))
    if note["format_version"] != _FORMAT_VERSION:
        raise ValueError(f"format {note['format_version']} is not known")
    return note, folder / listed_name(f"{note['fingerprint']}.npz")


class LsaEncoder:
    """Encodes texts with the LSA model of a collection; fits it if there is none."""

    def __init__(self, name: str, collection: Collection) -> None:
        self.name = name
        self._collection = collection
        self._folder = collection.path / "models" / "lsa"
        self._settings = collection.config.dense
        self._stems = make_representation("stems", collection.config.representation).kinds
        self._cache = open_term_cache(collection)
        self._about = {
            "stems": self._stems[0].version,
            "dimensions": self._settings.dimensions,
        }
        self._opened_head = self._head_of_note()
        model = LsaModel.load(self._folder)
        if model is None or not self._about.items() <= model.about.items():
            model = self._fit()
        self._model = model
        self._warn_of_growth()
        self._columns = {term: column for column, term in enumerate(model.terms)}
        self._directions = model.directions.astype(np.float32)
        self.version = _version(model.fingerprint, normalise=self._settings.normalise)

    def is_current(self) -> bool:
        """Whether the collection still has this model; false while it has no terms."""
        if not self._model.terms:
            return False
        head = self._head_of_note()
        if self._collection.database.read_only:
            return head == self._opened_head
        return f'"fingerprint": "{self._model.fingerprint}"' in head

    def close(self) -> None:
        """Close the term cache."""
        self._cache.close()

    def _head_of_note(self) -> str:
        """The beginning of model.json, which holds the fingerprint; empty without a model."""
        try:
            with (self._folder / _NOTE_NAME).open(encoding="utf-8") as file:
                return file.read(200)
        except (OSError, ValueError):
            return ""

    def _warn_of_growth(self) -> None:
        fitted, rows = self._model.about.get("rows"), self._collection.generation().next_row
        if fitted and rows >= _GROWTH_LIMIT * fitted:
            logger.warning(
                "%s: lsa was fitted to %d documents, and the collection now has %d; "
                "run labelkin build --representation lsa --relearn to fit it again",
                self._collection.path,
                fitted,
                rows,
            )

    def encode(self, documents: Sequence[Document]) -> Vectors:
        """The projection of each document."""
        terms = self._cache.terms(self._stems, documents, store=False)["stems"]
        matrix = _weighted(_counts(terms, self._columns), self._model.idf)
        vectors = np.asarray(matrix @ self._directions, dtype=np.float32)
        return normalised(vectors) if self._settings.normalise else vectors

    def relearn(self) -> None:
        """Fit a new model to the collection as it is now; this encoder keeps the old one."""
        self._fit()

    def _fit(self) -> LsaModel:
        end = self._collection.generation().next_row
        step = max(1, -(-end // _MAX_DOCUMENTS))
        terms: list[list[str]] = []
        for page in self._collection.labelled_texts(0, end):
            texts = [document for row, document in page if row % step == 0]
            terms += self._cache.terms(self._stems, texts)["stems"]
        model = fit_lsa(terms, self._settings.dimensions, {**self._about, "rows": end})
        if model.terms and not self._collection.database.read_only:
            with folder_errors_explained(self._collection.path):
                model.save(self._folder)
        return model


def fit_lsa(
    texts: Sequence[Sequence[str]], dimensions: int, about: dict[str, Any] | None = None
) -> LsaModel:
    """Fit a model to texts given as terms; deterministic."""
    frequencies = Counter(chain.from_iterable(map(set, texts)))
    common = [
        (term, count) for term, count in frequencies.items() if count >= _MIN_DOCUMENT_FREQUENCY
    ]
    common.sort(key=lambda pair: (-pair[1], pair[0]))
    terms = tuple(term for term, _ in common[:_MAX_TERMS])
    if not terms:
        empty = np.zeros(0, dtype=np.float32)
        return LsaModel((), empty, empty.reshape(0, 1).astype(np.float16), about or {})
    counts = np.array([count for _, count in common[:_MAX_TERMS]])
    idf = (np.log((1 + len(texts)) / (1 + counts)) + 1).astype(np.float32)
    columns = {term: column for column, term in enumerate(terms)}
    matrix = _weighted(_counts(texts, columns), idf)
    return LsaModel(terms, idf, _directions(matrix, dimensions), about or {})


def _directions(matrix: csr_matrix[Any], dimensions: int) -> npt.NDArray[np.float16]:
    try:
        from sklearn.utils.extmath import randomized_svd
    except ImportError as error:
        raise MissingExtraError(
            "fitting lsa needs scikit-learn; pip install 'labelkin[dense]'"
        ) from error
    rank = min(dimensions, *matrix.shape)
    _, _, directions = randomized_svd(matrix, rank, n_iter=_ITERATIONS, random_state=_SEED)
    return np.ascontiguousarray(directions.T, dtype=np.float16)


def _counts(texts: Iterable[Sequence[str]], columns: dict[str, int]) -> csr_matrix[Any]:
    from scipy.sparse import csr_matrix

    indices: list[int] = []
    values: list[int] = []
    starts = [0]
    for terms in texts:
        counts = Counter(column for term in terms if (column := columns.get(term)) is not None)
        indices += counts.keys()
        values += counts.values()
        starts.append(len(indices))
    data = np.array(values, dtype=np.float32)
    return csr_matrix((data, indices, starts), shape=(len(starts) - 1, len(columns)))


def _weighted(counts: csr_matrix[Any], idf: npt.NDArray[np.float32]) -> csr_matrix[Any]:
    """TF-IDF with rows of length 1; changes `counts` in place."""
    counts.data = (1 + np.log(counts.data)) * idf[counts.indices]
    squares = np.add.reduceat(
        np.append(counts.data**2, 0), np.minimum(counts.indptr[:-1], len(counts.data))
    )
    sizes = np.diff(counts.indptr)
    lengths = np.sqrt(np.where(sizes > 0, squares, 1))
    counts.data /= np.repeat(lengths, sizes).astype(np.float32)
    return counts
