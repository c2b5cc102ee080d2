"""Outside knowledge: how near the vector of a text is to documents, headings and their names.

An encoder (`[rerank] encoder`) makes a vector of a text. Three features come
from the nearest documents by these vectors, two from a ridge regression on the
vectors, and two from the vectors of the headings' names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.corpus.document import Document
from labelkin.represent.encoder import Vectors, normalised
from labelkin.rerank.features import Evidence, Features
from labelkin.rerank.pairs import Floats, Integers, Pairs, best_keys
from labelkin.rerank.signal import Arrays, Signal, Values
from labelkin.rerank.signals.votes import NOT_CARRIED, Votes, count_votes
from labelkin.rerank.training_data import TrainingContext

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# How many of the nearest documents vote.
_DEPTH = 60
# Candidates by votes, and as many by the regression.
_BEST = 40
_MIN_DOCUMENTS = 2
# The penalty of the regression, relative to the mean variance of a dimension.
_PENALTY = 0.03
# The score of a heading that the regression does not know.
_UNKNOWN = -1.0
# Documents whose vectors are read at a time to fit, and scored at a time for all headings.
_FITTED = 4000
_CHUNK = 250
_PAIRS = 8000
_NAMES = 2000

Halves = npt.NDArray[np.float16]


class VectorsSignal(Signal):
    """Votes of the nearest by vectors, a regression on vectors, and similarity to names."""

    name = "vectors"
    features = (
        *("vector_votes", "vector_majority20", "vector_first"),
        *("vector_score", "vector_score_rank", "name_similarity", "name_similarity_rank"),
    )
    reason = "meaning"

    def is_available(self, context: TrainingContext) -> bool:
        """Whether the settings name an encoder."""
        return bool(context.settings.encoder)

    def fit(self, context: TrainingContext) -> VectorKnowledge:
        """Fit the regression; the names are encoded once for all folds."""
        names = context.once("vectors of names", lambda: encode_names(context))
        texts, search = context.texts, context.vector_search()
        frequencies = np.bincount(texts.labels.indices, minlength=texts.labels.shape[1])
        columns = np.flatnonzero(frequencies >= _MIN_DOCUMENTS)
        labels = texts.labels[:, columns]

        def chunks() -> Iterable[tuple[Vectors, csr_matrix[Any]]]:
            for start in range(0, len(texts), _FITTED):
                part = slice(start, start + _FITTED)
                yield search.stored_vectors(texts.rows[part]), labels[part]
                context.report("Reading vectors", min(start + _FITTED, len(texts)), len(texts))

        return VectorKnowledge(context.settings.encoder, fit_ridge(chunks(), columns), names)

    def to_arrays(self, fitted: VectorKnowledge) -> Arrays:
        """Weights and vectors of names in half precision."""
        return {
            "encoder": np.frombuffer(fitted.encoder.encode("utf-8"), dtype=np.uint8),
            "weights": fitted.ridge.weights.astype(np.float16),
            "scales": fitted.ridge.scales,
            "shifts": fitted.ridge.shifts,
            "columns": fitted.ridge.columns,
            "names": fitted.names.vectors,
            "named": fitted.names.columns,
        }

    def from_arrays(self, arrays: Arrays) -> VectorKnowledge:
        """The inverse of `to_arrays`."""
        return VectorKnowledge(
            arrays["encoder"].tobytes().decode("utf-8"),
            Ridge(
                arrays["weights"].astype(np.float32),
                arrays["scales"],
                arrays["shifts"],
                arrays["columns"],
            ),
            NameVectors(arrays["names"], arrays["named"]),
        )

    def propose(self, evidence: Evidence) -> Integers:
        """The headings with most votes, and those that the regression scores highest."""
        knowledge: VectorKnowledge = evidence.fitted("vectors")
        votes = _votes(evidence)
        voted = best_keys(votes.keys, votes.values["close8"], evidence.width, _BEST)
        vectors = evidence.queries.vectors(knowledge.encoder)
        return np.concatenate((voted, knowledge.ridge.best(vectors, evidence.width)))

    def values(
        self,
        evidence: Evidence,
        pairs: Pairs,
        features: Features,  # noqa: ARG002
    ) -> Mapping[str, Values]:
        """A low score for headings that the regression does not know; similarity 0 without name."""
        knowledge: VectorKnowledge = evidence.fitted("vectors")
        votes = _votes(evidence)
        places = pairs.places_in(votes.keys)
        vectors = evidence.queries.vectors(knowledge.encoder)
        scores = knowledge.ridge.scores(vectors, pairs)
        similarities = knowledge.names.similarities(vectors, pairs)
        return {
            "vector_votes": pairs.at(places, votes.values["close8"]),
            "vector_majority20": pairs.at(places, votes.values["majority20"]),
            "vector_first": pairs.at(places, votes.values["first"], NOT_CARRIED),
            "vector_score": scores,
            "vector_score_rank": pairs.ranks(scores),
            "name_similarity": similarities,
            "name_similarity_rank": pairs.ranks(similarities),
        }


def _votes(evidence: Evidence) -> Votes:
    knowledge: VectorKnowledge = evidence.fitted("vectors")
    queries = evidence.queries
    return evidence.once(
        "votes by vectors",
        lambda: count_votes(
            queries.neighbours_by(knowledge.encoder, _DEPTH),
            queries.snapshot.label_sets(),
            queries.policy(),
            evidence.width,
        ),
    )


@dataclass(frozen=True, eq=False)
class VectorKnowledge:
    """The name of the encoder, and what was fitted with its vectors."""

    encoder: str
    ridge: Ridge
    names: NameVectors


@dataclass(frozen=True, eq=False)
class Ridge:
    """A linear regression of each heading on the vectors, for the headings in `columns`.

    `weights` (headings × dimensions) have values that half precision can hold;
    `scales` are their sizes.
    """

    weights: Floats
    scales: Floats
    shifts: Floats
    columns: Integers

    def scores(self, vectors: Vectors, pairs: Pairs) -> Floats:
        """The score of each pair; a low one for unknown headings and texts without a vector."""
        places = _places(self.columns, pairs.columns)
        places[~_has_vector(vectors)[pairs.documents]] = -1
        is_known = places >= 0
        at = places[is_known]
        scores = np.full(len(pairs), _UNKNOWN, dtype=np.float32)
        products = _products(self.weights, vectors, at, pairs.documents[is_known])
        scores[is_known] = products * self.scales[at] + self.shifts[at]
        return scores

    def best(self, vectors: Vectors, width: int) -> Integers:
        """Keys of the headings with the highest scores of each text that has a vector."""
        kept = min(_BEST, len(self.columns))
        documents = np.flatnonzero(_has_vector(vectors))
        parts = [np.zeros(0, dtype=np.int64)]
        for start in range(0, len(documents) if kept else 0, _CHUNK):
            part = documents[start : start + _CHUNK]
            scores = vectors[part] @ self.weights.T * self.scales + self.shifts
            best = np.argpartition(-scores, kept - 1, axis=1)[:, :kept]
            parts.append((part[:, None] * width + self.columns[best]).ravel())
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class NameVectors:
    """The vectors of preferred names, of length 1, for the headings in `columns`."""

    vectors: Halves
    columns: Integers

    def similarities(self, vectors: Vectors, pairs: Pairs) -> Floats:
        """The cosine of each pair's text and name; 0 without a name or a vector."""
        places = _places(self.columns, pairs.columns)
        is_known = places >= 0
        similarities = np.zeros(len(pairs), dtype=np.float32)
        similarities[is_known] = _products(
            self.vectors, normalised(vectors), places[is_known], pairs.documents[is_known]
        )
        return similarities


def fit_ridge(chunks: Iterable[tuple[Vectors, csr_matrix[Any]]], columns: Integers) -> Ridge:
    """Fit all headings at once to chunks of vectors and of labels (documents × `columns`).

    W = (Σ (x − m)(x − m)ᵀ + p I)⁻¹ Σ (x − m) yᵀ with the mean m; the score is
    Wᵀ (x − m) + the mean of y. Texts without a vector are left out.
    """
    count, gram, sums, products, totals = 0, *(np.zeros(0) for _ in range(4))
    for vectors, labels in chunks:
        places = np.flatnonzero(_has_vector(vectors))
        known, of_known = vectors[places], labels[places]
        if count == 0:
            dimensions = vectors.shape[1]
            gram, sums = np.zeros((dimensions, dimensions)), np.zeros(dimensions)
            products = np.zeros((len(columns), dimensions), dtype=np.float32)
            totals = np.zeros(len(columns))
        count += len(known)
        gram += known.T @ known
        sums += known.sum(0, dtype=np.float64)
        products += of_known.T @ known
        totals += np.asarray(of_known.sum(0)).ravel()
    if count == 0 or len(columns) == 0:
        nothing = np.zeros(0, dtype=np.float32)
        return Ridge(nothing.reshape(0, len(sums)), nothing, nothing, columns[:0])
    mean = sums / count
    gram -= count * np.outer(mean, mean)
    products -= np.outer(totals, mean).astype(np.float32)
    penalty = max(_PENALTY * np.trace(gram) / len(gram), 1e-9)
    inverse = np.linalg.inv(gram + penalty * np.eye(len(gram)))
    weights: Floats = (products @ inverse.astype(np.float32)).astype(np.float32, copy=False)
    scales = np.maximum(np.abs(weights).max(1), np.float32(1e-30))
    # Rounded as they are saved, so that a saved model scores as it was trained.
    weights = (weights / scales[:, None]).astype(np.float16).astype(np.float32)
    shifts = totals / count - (weights @ mean) * scales
    return Ridge(weights, scales, shifts.astype(np.float32), columns.astype(np.int64))


def encode_names(context: TrainingContext) -> NameVectors:
    """The vectors of the preferred names of all headings that are not deprecated."""
    search, language = context.vector_search(), context.snapshot.usual_language()
    documents, columns = [], []
    for column, concept in enumerate(context.snapshot.vocabulary):
        written_in = concept.name_language(language)
        if written_in is not None and not concept.deprecated:
            documents.append(Document("", concept.names[written_in], language=written_in))
            columns.append(column)
    parts: list[Halves] = []
    for start in range(0, len(documents), _NAMES):
        vectors = search.encoded(documents[start : start + _NAMES])
        parts.append(normalised(vectors).astype(np.float16))
        context.report("Encoding names", start + len(vectors), len(documents))
    parts = parts or [np.zeros((0, 0), dtype=np.float16)]
    return NameVectors(np.concatenate(parts), np.array(columns, dtype=np.int64))


def _has_vector(vectors: Vectors) -> npt.NDArray[np.bool_]:
    """Which texts have a vector; an empty one has zeros."""
    return np.asarray(np.any(vectors != 0, axis=1))


def _places(columns: Integers, wanted: Integers) -> Integers:
    """Where each wanted column is among ascending columns, −1 where it is not."""
    if len(columns) == 0:
        return np.full(len(wanted), -1, dtype=np.int64)
    places = np.minimum(np.searchsorted(columns, wanted), len(columns) - 1)
    return np.where(columns[places] == wanted, places, -1)


def _products(
    matrix: Floats | Halves, vectors: Vectors, places: Integers, documents: Integers
) -> Floats:
    """The product of a line of the matrix and the vector of a document, for each pair."""
    products = np.zeros(len(places), dtype=np.float32)
    for start in range(0, len(places), _PAIRS):
        part = slice(start, start + _PAIRS)
        lines = matrix[places[part]].astype(np.float32, copy=False)
        products[part] = np.einsum("ij,ij->i", lines, vectors[documents[part]])
    return products
