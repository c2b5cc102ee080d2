"""The provenance of a report's figures: command, version, commit, data, models, machine."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelkin._version import __version__

if TYPE_CHECKING:
    from labelkin.experiments.models import ModelStage
    from labelkin.experiments.plan import Plan

_LATEST = 5
_NOTICEABLE = 0.01


@cache
def commit() -> str:
    """The commit of the checkout that labelkin runs from; empty for an installed package."""
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def training_facts(stage: ModelStage) -> dict[str, Any]:
    """How a label autoencoder was trained, and whether its losses were still falling."""
    info, history = stage.info(), stage.history()
    if info is None:
        return {}
    training = info.training
    facts: dict[str, Any] = {
        "layers": info.architecture.sizes,
        "labels": len(info.labels),
        "parameters": info.architecture.trainable_parameters(len(info.labels)),
        "documents": info.data["documents"],
        "held_out": info.data["held_out"],
        "epochs": training["epochs"],
        "best_epoch": training["best_epoch"],
        "seconds": training["seconds"],
        "stopped_by": training["stopped"],
        "reconstruction_MiF": round(training["best"]["MiF"], 4),
        "settings": dict(info.settings),
        "versions": dict(info.versions),
    }
    for loss in ("loss", "validation_loss"):
        losses = [entry[loss] for entry in history if loss in entry]
        facts[f"{loss}_by_epoch"] = [round(value, 3) for value in losses]
        facts[f"{loss}_still_falling"] = is_falling(losses)
    return facts


def is_falling(losses: Sequence[float]) -> bool:
    """Whether the last five epochs have lowered a loss by more than one per cent."""
    before = losses[:-_LATEST]
    return not before or min(losses[-_LATEST:]) < (1 - _NOTICEABLE) * min(before)


def provenance(plan: Plan, command: str) -> dict[str, Any]:
    """The content of provenance.json: how the figures of a grid were made.

    A row's record in results.csv is the fingerprint of the stage that measured it.
    """
    from labelkin.experiments.runner import read_journal

    journal = read_journal(plan.work)
    grid = plan.grid
    return {
        "grid": grid.name,
        "command": command,
        "version": __version__,
        "commit": commit(),
        "seed": grid.seed,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "collections": [
            {
                "documents": stage.record().get("documents"),
                "concepts": stage.record().get("concepts"),
                "digests": stage.inputs,
            }
            for stage in plan.collections.values()
        ],
        "files": [grid.collection.vocabulary, *grid.collection.documents, *grid.splits.values()],
        "representations": {
            name: part.model_dump(exclude_defaults=True)
            for name, part in grid.representations.items()
        },
        "indexes": [
            {"name": name, "size": size, **stage.record().get("found_with", {})}
            for (size, name), stage in plan.indexes.items()
        ],
        "fusions": [
            {"representation": name, "size": size, **stage.record()}
            for (size, name), stage in plan.fusions.items()
        ],
        "models": [
            {"name": name, "size": size, "record": stage.fingerprint, **training_facts(stage)}
            for (size, name), stage in plan.models.items()
        ],
        "stages": {
            stage.fingerprint: {
                "kind": stage.kind,
                "subject": stage.subject,
                "inputs": stage.inputs,
                "needs": [needed.fingerprint for needed in stage.needs],
                **{
                    key: journal[stage.fingerprint][key]
                    for key in ("seconds", "finished", "version", "commit", "cores")
                    if stage.fingerprint in journal
                },
            }
            for stage in plan.stages
        },
    }
