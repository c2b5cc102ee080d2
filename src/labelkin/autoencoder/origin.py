"""The model that a training starts from, and how its labels become those of a collection.

Labels are the same where their concept ids are. What both know is taken over
with its rows of the input table and the output layer; so is what no document
of the collection carries, if the vocabulary has it, and its rows stay as they
are: a small collection is no reason to forget the rest of a large vocabulary.
Labels that the vocabulary lacks are left out. The layers between are the
model's.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.columns import Integers, LabelColumns
from labelkin.autoencoder.model import MODEL_NAME, LabelModel
from labelkin.autoencoder.training_data import TrainingData
from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.exceptions import ModelMismatchError
from labelkin.store.manifest import is_collection

if TYPE_CHECKING:
    from labelkin.vocab.vocabulary import Vocabulary

logger = logging.getLogger(__name__)

_TABLES = ("inputs.weight", "outputs.weight", "outputs.bias")


@dataclass(frozen=True)
class Origin:
    """A model, and where its labels are in the vocabulary of a collection."""

    model: LabelModel
    labels: LabelColumns

    @property
    def known(self) -> Integers:
        """The vocabulary columns of the model's labels."""
        return self.labels.columns[self.labels.columns >= 0]

    def places(self, data: TrainingData) -> Integers:
        """For each label that is to be learned its number in the model, −1 for a new one."""
        return self.labels.places[data.columns.columns]

    def shaped(self, settings: TrainingSettings) -> TrainingSettings:
        """`settings` for the model's layers."""
        shape = self.model.info.architecture
        return replace(
            settings, preset=shape.sizes, activation=shape.activation, dropout=shape.dropout
        )

    def check(self, data: TrainingData, vocabulary: Vocabulary) -> None:
        """Say what becomes of the labels; refuse a model that knows none of the documents'."""
        counts, folder = self.counts(data), self.model.folder
        if counts["taken_over"] == counts["in_no_document"]:
            own = self.model.info.labels
            theirs = vocabulary[int(data.columns.columns[0])].id
            raise ModelMismatchError(
                f"{folder}: the documents carry none of its {len(own):,} headings; their ids must "
                f"be the same, but are such as {theirs!r} here and {own[0]!r} there"
            )
        logger.info(
            "%s: %s of its headings taken over (%s of them in no document here), "
            "%s new ones, %s left out",
            folder,
            *(f"{counts[k]:,}" for k in ("taken_over", "in_no_document", "new", "left_out")),
        )

    def tensors(self, data: TrainingData) -> dict[str, npt.NDArray[Any]]:
        """The weights to begin with.

        The outputs of a new label begin at its log-odds, as in a fresh network.
        """
        tensors = self.model.tensors()
        places = self.places(data)
        is_new = places < 0
        for name in _TABLES:
            tensors[name] = tensors[name][places]
            tensors[name][is_new] = 0
        tensors["outputs.bias"][is_new] = data.log_odds()[is_new]
        return tensors

    def counts(self, data: TrainingData) -> dict[str, int]:
        """How many labels are taken over, how many of these no document carries, and so on."""
        taken = self.places(data) >= 0
        return {
            "taken_over": int(np.count_nonzero(taken)),
            "in_no_document": int(np.count_nonzero(taken & (data.frequencies == 0))),
            "new": int(np.count_nonzero(~taken)),
            "left_out": int(np.count_nonzero(self.labels.columns < 0)),
        }

    def to_json(self, data: TrainingData) -> dict[str, Any]:
        """For `model.json`: which model it was, what it knew, and what became of its labels."""
        info = self.model.info
        before = {"origin": dict(info.origin)} if info.origin else {}
        return {"model": self.model.digest, "data": dict(info.data), **self.counts(data), **before}


def find_origin(path: Path, columns_by_id: dict[str, int]) -> Origin:
    """The model in a model folder or that of a collection, labels matched by concept id."""
    inside = path / "models" / MODEL_NAME
    model = LabelModel(inside if is_collection(path) else path)
    columns = [columns_by_id.get(label, -1) for label in model.info.labels]
    return Origin(model, LabelColumns(np.array(columns, dtype=np.int64), len(columns_by_id)))
