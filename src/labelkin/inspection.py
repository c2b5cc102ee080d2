"""The trained models of a collection: whether they can be used, and how old they are.

Descriptions are read, and large files are only looked at: whether they are there and
complete. `integrity` reads and verifies everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labelkin.autoencoder.model import MODEL_NAME, LabelModel
from labelkin.exceptions import LabelkinError, ModelMismatchError
from labelkin.neighbours.search import representation_names
from labelkin.neighbours.vector_searcher import check_faiss
from labelkin.represent.encoder import encoder_version
from labelkin.rerank.features import check_groups
from labelkin.rerank.model import RERANK_NAME, check_files, reranker_info
from labelkin.store.models import DESCRIPTION
from labelkin.store.snapshot import Snapshot

LSA_NAME = "lsa"
# Training again may help when this share of the documents, or of the headings in use, is new.
_WORTH_DOCUMENTS = 0.1
_WORTH_HEADINGS = 0.01


@dataclass(frozen=True, slots=True)
class ModelState:
    """One model, what it was trained on, and what has changed since.

    `documents` are those it was trained on. What is not recorded is None: models of
    earlier versions record less. `unknown_headings` are carried by new documents only.
    """

    name: str
    is_usable: bool
    problem: str = ""
    documents: int | None = None
    added: int | None = None
    removed: int | None = None
    unknown_headings: int | None = None
    headings: int | None = None
    representation: str = ""

    @property
    def is_outdated(self) -> bool:
        """Whether so much has changed that training again may help."""
        if not self.is_usable:
            return False
        changed = (self.added or 0) + (self.removed or 0)
        many = self.documents is not None and changed >= max(_WORTH_DOCUMENTS * self.documents, 1)
        new = self.unknown_headings or 0
        return many or new >= max(_WORTH_HEADINGS * (self.headings or 0), 1)


def model_states(snapshot: Snapshot) -> list[ModelState]:
    """The models of a collection, usable or not, by name."""
    folder = snapshot.path / "models"
    states = []
    for name, inspect in (
        (MODEL_NAME, _autoencoder),
        (LSA_NAME, _lsa),
        (RERANK_NAME, _reranker),
    ):
        # A folder that an interrupted training has left has no description.
        if (folder / name / DESCRIPTION).exists():
            try:
                states.append(inspect(folder / name, snapshot))
            except LabelkinError as error:
                states.append(ModelState(name, is_usable=False, problem=str(error)))
    return states


def new_to_models(snapshot: Snapshot, headings: Sequence[str]) -> dict[str, int]:
    """For each usable model that knows headings, how many of these it does not know.

    The reranker knows those that the vocabulary had when it was trained.
    """
    folder = snapshot.path / "models"
    by_id = snapshot.columns_by_id()
    unknown = {}
    for state in model_states(snapshot):
        if not state.is_usable:
            continue
        if state.name == MODEL_NAME:
            known = set(LabelModel.load(folder / MODEL_NAME).info.labels)
        elif state.name == RERANK_NAME:
            trained = reranker_info(folder / RERANK_NAME).state["generation"]
            width = snapshot.entry(trained).next_column
            known = {label for label, column in by_id.items() if column < width}
        else:
            continue
        unknown[state.name] = sum(label not in known for label in headings)
    return unknown


def _autoencoder(folder: Path, snapshot: Snapshot) -> ModelState:
    model = LabelModel.load(folder)
    by_id = snapshot.columns_by_id()
    if not any(label in by_id for label in model.info.labels):
        raise ModelMismatchError(
            f"{folder}: it knows no heading of this vocabulary; run `labelkin train`"
        )
    state = model.info.data.get("state")
    added, removed = _changes(snapshot, state)
    return ModelState(
        MODEL_NAME,
        is_usable=True,
        documents=model.info.data.get("documents"),
        added=added,
        removed=removed,
        unknown_headings=_new_headings(snapshot, state) if state and added is not None else None,
        headings=len(model.info.labels),
    )


def _reranker(folder: Path, snapshot: Snapshot) -> ModelState:
    info = reranker_info(folder)
    check_groups(folder, info.groups)
    check_files(folder)
    state = info.state
    if not snapshot.knows(state["generation"], state["token"]):
        raise ModelMismatchError(
            f"{folder}: trained on another collection, or on a later state of this one; "
            "run `labelkin train`"
        )
    if info.uses_autoencoder:
        try:
            LabelModel.load(folder.parent / MODEL_NAME)
        except LabelkinError as error:
            raise ModelMismatchError(f"it needs the label autoencoder: {error}") from error
    if info.encoder_name:
        check_faiss()
        info.check_encoder(folder, lambda name: encoder_version(name, snapshot))
    added, removed = _changes(snapshot, state)
    return ModelState(
        RERANK_NAME,
        is_usable=True,
        documents=info.training.get("documents"),
        added=added,
        removed=removed,
        unknown_headings=_new_headings(snapshot, state),
        headings=snapshot.generation().next_column,
        representation=representation_names(info.neighbours),
    )


def _lsa(folder: Path, snapshot: Snapshot) -> ModelState:  # noqa: ARG001
    from labelkin.represent.lsa import check_lsa

    check_lsa(folder)
    return ModelState(LSA_NAME, is_usable=True)


def _changes(snapshot: Snapshot, state: Mapping[str, Any] | None) -> tuple[int | None, int | None]:
    """How many documents were added and removed since a generation; None if that is unknown."""
    if not state or not snapshot.knows(state["generation"], state["token"]):
        return None, None
    then = snapshot.entry(state["generation"])
    now = snapshot.generation()
    gone = np.array(snapshot.tombstones_between(then.number, now.number), dtype=np.int64)
    new = now.next_row - then.next_row
    replaced = int(np.count_nonzero(gone >= then.next_row))
    return new - replaced, len(gone) - replaced


def _new_headings(snapshot: Snapshot, state: Mapping[str, Any]) -> int:
    """How many headings only documents carry that were added since a generation."""
    first, end = snapshot.entry(state["generation"]).next_row, snapshot.generation().next_row
    if first == end:
        return 0
    label_sets, width = snapshot.label_sets(), snapshot.generation().next_column
    new = np.setdiff1d(np.arange(first, end), snapshot.tombstones())
    in_new = np.bincount(label_sets.gather(new)[1], minlength=width)
    before = label_sets.frequencies(width, snapshot.tombstones()) - in_new
    return int(np.count_nonzero((in_new > 0) & (before == 0)))
