"""Stages: steps of an experiment whose results are kept under a fingerprint of their inputs."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelkin._version import __version__
from labelkin.atomic import atomic_text

if TYPE_CHECKING:
    from labelkin.experiments.workshop import Workshop

Progress = Callable[[int, int, str], None]


class Stage(ABC):
    """One step. Its result is at `path`, which names kind, subject and fingerprint.

    The fingerprint is of the settings, the fingerprints of the stages that it
    needs and labelkin's version. Stages in `after` go first where both are to be
    carried out, because that saves work. `expected` is roughly how many seconds
    it takes on one core: the proportions serve to tell how long a run will take.
    """

    kind: str

    def __init__(
        self, work: Path, subject: str, inputs: Mapping[str, Any], needs: tuple[Stage, ...] = ()
    ) -> None:
        self.work = work
        self.subject = subject
        self.inputs = dict(inputs)
        self.needs = needs
        self.after: tuple[Stage, ...] = ()
        self.expected = 1.0

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything that the result depends on."""
        content = {
            "kind": self.kind,
            "version": __version__,
            "inputs": self.inputs,
            "needs": sorted(stage.fingerprint for stage in self.needs),
        }
        text = json.dumps(content, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()

    @property
    def title(self) -> str:
        """What people read."""
        return f"{self.kind}: {self.subject}"

    @property
    def path(self) -> Path:
        """Where the result is, or will be."""
        name = "".join(c if c.isalnum() or c in "+." else "-" for c in self.subject)
        return self.work / self.kind / f"{name}-{self.fingerprint}{self._suffix}"

    _suffix = ".json"

    @abstractmethod
    def is_done(self) -> bool:
        """Whether the result is there, whole, and what the inputs ask for."""

    @abstractmethod
    def run(self, workshop: Workshop, progress: Progress) -> None:
        """Make the result, or go on with one that was begun."""


class NoteStage(Stage):
    """A stage whose result is a JSON file, or is described by one."""

    @property
    def note_path(self) -> Path:
        """Where the JSON file is."""
        return self.path

    def note(self) -> dict[str, Any]:
        """The JSON file's content; nothing if there is none, or a damaged one."""
        try:
            content = json.loads(self.note_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def write_note(self, content: Mapping[str, Any]) -> None:
        """Write the JSON file, which says that the stage is done."""
        self.note_path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_text(self.note_path) as file:
            json.dump(content, file, ensure_ascii=False, indent=1)
            file.write("\n")

    def is_done(self) -> bool:
        """Whether the JSON file is there."""
        return bool(self.note())
