"""The trained models of a collection: whether they can be used, and how old they are.

Descriptions are read, and large files are only looked at: whether they are there and
complete. `integrity` reads and verifies everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.model import MODEL_NAME, LabelModel
from labelkin.exceptions import LabelkinError, ModelMismatchError, TrainingError
from labelkin.neighbours.search import representation_names
from labelkin.neighbours.vector_searcher import check_faiss
from labelkin.represent.encoder import encoder_version
from labelkin.rerank.features import check_groups
from labelkin.rerank.model import RERANK_NAME, check_files, known_columns, reranker_info
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.store.models import DESCRIPTION
from labelkin.store.snapshot import Snapshot

LSA_NAME = "lsa"
# Training again pays when this share of the documents has changed, or when so many of the headings
# that new documents carry are unknown; a heading of fewer documents cannot be learned yet.
_WORTH_DOCUMENTS = 0.1
_WORTH_OCCURRENCES = 0.02
_LEARNABLE = 5
# So many unknown headings are named.
_NAMED = 5
_TRAINED = {MODEL_NAME: "torch", RERANK_NAME: "lightgbm"}


@dataclass(frozen=True, slots=True)
class ModelState:
    """One model, what it was trained on, and what has changed since.

    `documents` are those it was trained on. What is not recorded is None: models of
    earlier versions record less. Documents whose headings only have other names do not count
    as changed. `unknown_headings` are carried by documents that were added since, and the model
    does not know them; `unknown` names the most frequent ones. `unknown_share` is the share of
    such headings, if at least five of these documents carry them, among all that they carry.
    `headings_without_row` are in use, but so rare or new that the label autoencoder has no
    output for them: votes and names suggest them.
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
    unknown: tuple[str, ...] = ()
    unknown_share: float | None = None
    headings_without_row: int | None = None

    @property
    def changed_share(self) -> float | None:
        """How many documents were added or removed for each that it was trained on.

        A replaced document is added and removed, and counts once.
        """
        if not self.documents or self.added is None or self.removed is None:
            return None
        return max(self.added, self.removed) / self.documents

    @property
    def reason(self) -> str:
        """Why training again would pay; empty if it would not."""
        if not self.is_usable:
            return ""
        changed, unknown = self.changed_share or 0.0, self.unknown_share or 0.0
        if changed >= _WORTH_DOCUMENTS:
            return f"{changed:.0%} of the documents have changed since"
        if unknown >= _WORTH_OCCURRENCES:
            return f"it does not know {unknown:.1%} of the headings that new documents carry"
        return ""

    @property
    def is_outdated(self) -> bool:
        """Whether so much has changed that training again would pay."""
        return bool(self.reason)


@dataclass(frozen=True, slots=True)
class Staleness:
    """Whether a new training would pay, and why or why not, in one line."""

    is_stale: bool
    reason: str


def staleness(
    snapshot: Snapshot,
    names: Sequence[str] = (MODEL_NAME, RERANK_NAME),
    *,
    given: int = 0,
) -> Staleness:
    """Whether training the models with these names would pay.

    It does if one is missing that can be trained here, cannot be used, does not record what it
    was trained on, or is outdated. A reranker that cannot be trained on the collection
    and `given` further documents is never stale.
    """
    states = {state.name: state for state in model_states(snapshot)}
    facts = []
    for name in names:
        state = states.get(name)
        if state is None and find_spec(_TRAINED[name]) is None:
            continue
        reason = " has not been trained yet" if state is None else _reason(state)
        if reason:
            problem = ""
            if name == RERANK_NAME:
                problem = _obstacle(snapshot, given)
            if not problem:
                return Staleness(True, f"{name}{reason}")
            facts.append(f"{name} cannot be trained: {problem}")
        elif state is not None:
            facts.append(
                f"{name}: {state.changed_share or 0.0:.1%} of the documents have changed (it pays "
                f"from {_WORTH_DOCUMENTS:.0%}), {state.unknown_share or 0.0:.1%} of the headings "
                f"of new ones are unknown (from {_WORTH_OCCURRENCES:.0%})"
            )
    return Staleness(False, "; ".join(facts) or "nothing that could be trained here")


def _reason(state: ModelState) -> str:
    """Why training a model again would pay, to follow its name; empty if it would not."""
    if not state.is_usable:
        return f" cannot be used: {state.problem}"
    if state.changed_share is None:
        return " does not record what it was trained on"
    return f": {state.reason}" if state.reason else ""


def _obstacle(snapshot: Snapshot, given: int) -> str:
    """Why no reranker can be trained on the collection; empty if one can."""
    try:
        RerankTrainingSettings.from_config(snapshot.config).held_out(snapshot, given)
    except TrainingError as error:
        return str(error)
    return ""


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
    known = np.zeros(snapshot.generation().next_column, dtype=np.bool_)
    known[[by_id[label] for label in model.info.labels if label in by_id]] = True
    return replace(
        _since(ModelState(MODEL_NAME, is_usable=True), snapshot, state, known),
        documents=model.info.data.get("documents"),
        headings=len(model.info.labels),
        headings_without_row=int(np.count_nonzero(snapshot.label_frequencies()[~known])),
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
    return replace(
        _since(ModelState(RERANK_NAME, is_usable=True), snapshot, state, known_columns(folder)),
        documents=info.training.get("documents"),
        headings=snapshot.generation().next_column,
        representation=representation_names(info.neighbours),
    )


def _lsa(folder: Path, snapshot: Snapshot) -> ModelState:  # noqa: ARG001
    from labelkin.represent.lsa import check_lsa

    check_lsa(folder)
    return ModelState(LSA_NAME, is_usable=True)


def _since(
    model: ModelState,
    snapshot: Snapshot,
    state: Mapping[str, Any] | None,
    known: npt.NDArray[np.bool_],
) -> ModelState:
    """What has changed since the generation that a model was trained on, if that is known.

    `known` tells for each column whether the model knows the heading; it may be shorter.
    """
    if not state or not snapshot.knows(state["generation"], state["token"]):
        return model
    changes = snapshot.changes_since(state["generation"])
    carried = changes.label_frequencies
    is_unknown = carried > 0
    is_unknown[: len(known)] &= ~known[: len(carried)]
    unknown = np.flatnonzero(is_unknown)
    unknown = unknown[np.argsort(-carried[unknown], kind="stable")]
    learnable = int(carried[unknown[carried[unknown] >= _LEARNABLE]].sum())
    named = unknown[:_NAMED].tolist()
    concepts = snapshot.concepts(named)
    return replace(
        model,
        added=changes.added,
        removed=changes.removed,
        unknown_headings=len(unknown),
        unknown=tuple(concepts[column].name() for column in named),
        unknown_share=learnable / max(int(carried.sum()), 1),
    )
