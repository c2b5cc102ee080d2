"""The model that a training starts from, and its labels matched to those of a collection.

Labels match by concept id. Those that the vocabulary contains keep their rows of
the input table and the output layer. That includes labels that no document of the
collection carries; training does not change their rows, so a small collection
keeps what the model knows of a large vocabulary. Labels that the vocabulary lacks
are left out. The hidden layers are the model's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.architecture import Architecture
from labelkin.autoencoder.columns import Integers, LabelColumns
from labelkin.autoencoder.joint import rare_frequency
from labelkin.autoencoder.model import MODEL_NAME, LabelModel
from labelkin.autoencoder.training_data import TrainingData
from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.exceptions import ModelMismatchError
from labelkin.layout import is_collection

if TYPE_CHECKING:
    from labelkin.vocab.vocabulary import Vocabulary

logger = logging.getLogger(__name__)

_TABLES = ("inputs.weight", "outputs.weight", "outputs.bias")


@dataclass(frozen=True)
class Origin:
    """A model, and the columns of its labels in the vocabulary of a collection."""

    model: LabelModel
    labels: LabelColumns

    @property
    def known(self) -> Integers:
        """The vocabulary columns of the model's labels, without those that the vocabulary lacks."""
        return self.labels.columns[self.labels.columns >= 0]

    def places(self, data: TrainingData) -> Integers:
        """The number of each training label in the model, −1 for a new label."""
        return self.labels.places[data.columns.columns]

    def shaped(self, settings: TrainingSettings) -> TrainingSettings:
        """`settings` with the model's recipe, layer sizes, activation and dropout."""
        shape = self.model.info.architecture
        shaped = replace(settings, recipe=shape.recipe, preset=shape.sizes, dropout=shape.dropout)
        if isinstance(shape, Architecture):
            shaped = replace(shaped, activation=shape.activation)
        return shaped

    def check(self, data: TrainingData, vocabulary: Vocabulary) -> None:
        """Log how the labels match; raise if the model knows no label of the documents."""
        counts, folder = self.counts(data), self.model.folder
        if counts["taken_over"] == counts["in_no_document"]:
            own = self.model.info.labels
            theirs = vocabulary[int(data.columns.columns[0])].id
            raise ModelMismatchError(
                f"{folder}: the documents carry none of its {len(own):,} headings; concept ids "
                f"must match, but look like {theirs!r} here and {own[0]!r} in the model"
            )
        logger.info(
            "%s: %s of its headings taken over (%s of them in no document here), "
            "%s new, %s left out",
            folder,
            *(f"{counts[k]:,}" for k in ("taken_over", "in_no_document", "new", "left_out")),
        )

    def tensors(self, data: TrainingData) -> dict[str, npt.NDArray[Any]]:
        """The initial weights; new labels have output biases at their log-odds.

        In a joint network they score as labels that the model does not know.
        """
        tensors = self.model.tensors()
        places = self.places(data)
        is_new = places < 0
        for name in _TABLES:
            tensors[name] = tensors[name][places]
            tensors[name][is_new] = 0
        tensors["outputs.bias"][is_new] = data.log_odds()[is_new]
        if self.model.is_joint:
            tensors["outputs.bias"][is_new] = tensors["rare"]
            tensors["frequencies"] = tensors["frequencies"][places]
            tensors["frequencies"][is_new] = rare_frequency(self.model)
        return tensors

    def joint_tensors(
        self, data: TrainingData, new: Mapping[str, npt.NDArray[Any]]
    ) -> dict[str, npt.NDArray[Any]]:
        """The initial weights of a joint network; those of `new` where the model has none.

        A label that the model lacks begins as the model scores such labels, or at its
        log-odds if these are higher, and adds nothing to the latent space.
        """
        old = self.model.tensors()
        tensors = {name: value.copy() for name, value in new.items()}
        for name in tensors.keys() - {*_TABLES, "terms.weight", "frequencies"}:
            tensors[name] = old[name]
        places = self.places(data)
        for name in ("inputs.weight", "outputs.weight"):
            tensors[name][places < 0] = 0
        tensors["outputs.bias"] = np.maximum(tensors["outputs.bias"], old["rare"])
        _take_over(tensors, old, _TABLES, places)
        if data.renewed is not None:
            # Labels that are not trained score as before.
            kept = np.where(data.renewed, -1, places)
            _take_over(tensors, old, ("frequencies",), kept)
        if data.texts is not None:
            known = {word: n for n, word in enumerate(self.model.words())}
            words = data.texts.terms.words
            places = np.array([known.get(word, -1) for word in words], dtype=np.int64)
            _take_over(tensors, old, ("terms.weight",), places)
        return tensors

    def counts(self, data: TrainingData) -> dict[str, int]:
        """The numbers of labels taken over, of these in no document, new, and left out."""
        taken = self.places(data) >= 0
        return {
            "taken_over": int(np.count_nonzero(taken)),
            "in_no_document": int(np.count_nonzero(taken & (data.frequencies == 0))),
            "new": int(np.count_nonzero(~taken)),
            "left_out": int(np.count_nonzero(self.labels.columns < 0)),
        }

    def to_json(self, data: TrainingData) -> dict[str, Any]:
        """The entry in `model.json`: the model's checksum and training data, and label counts."""
        info = self.model.info
        before = {"origin": dict(info.origin)} if info.origin else {}
        return {
            "model": self.model.checksum,
            "data": dict(info.data),
            **self.counts(data),
            **before,
        }


def _take_over(
    tensors: dict[str, npt.NDArray[Any]],
    old: Mapping[str, npt.NDArray[Any]],
    names: Iterable[str],
    places: Integers,
) -> None:
    """Replace the rows that a model has, at `places` of its tables; −1 for those that it lacks."""
    known = places >= 0
    for name in names:
        tensors[name][known] = old[name][places[known]]


def find_origin(path: Path, columns_by_id: dict[str, int]) -> Origin:
    """Load the model of a model folder or a collection and match its labels by concept id."""
    inside = path / "models" / MODEL_NAME
    model = LabelModel(inside if is_collection(path) else path)
    columns = [columns_by_id.get(label, -1) for label in model.info.labels]
    return Origin(model, LabelColumns(np.array(columns, dtype=np.int64), len(columns_by_id)))
