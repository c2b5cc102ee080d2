"""Stages: steps of an experiment whose results are stored by a fingerprint of their inputs."""

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
    from labelkin.experiments.run_context import RunContext

Progress = Callable[[int, int, str], None]


class Stage(ABC):
    """One step. Its result is at `path`, named after kind, subject and fingerprint.

    The fingerprint covers the inputs, the fingerprints of the stages in `needs` and
    labelkin's version. Stages in `after` run earlier if both are to run, because that
    saves work. `expected` is a rough number of seconds on one core; the proportions
    serve to estimate the time that a run takes.
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
        """A fingerprint of everything that the result depends on."""
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
        """Kind and subject, for progress messages."""
        return f"{self.kind}: {self.subject}"

    @property
    def path(self) -> Path:
        """The file or folder of the result."""
        name = "".join(c if c.isalnum() or c in "+." else "-" for c in self.subject)
        return self.work / self.kind / f"{name}-{self.fingerprint}{self._suffix}"

    _suffix = ".json"

    @abstractmethod
    def is_done(self) -> bool:
        """Whether the result exists, is complete and matches the inputs."""

    @abstractmethod
    def run(self, context: RunContext, progress: Progress) -> None:
        """Produce the result, or complete an unfinished one."""


class RecordStage(Stage):
    """A stage whose result is a JSON file, or is described by one."""

    @property
    def record_path(self) -> Path:
        """The path of the JSON file."""
        return self.path

    def record(self) -> dict[str, Any]:
        """The content of the JSON file; empty if it is missing or damaged."""
        try:
            content = json.loads(self.record_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def write_record(self, content: Mapping[str, Any]) -> None:
        """Write the JSON file, which marks the stage as done."""
        self.record_path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_text(self.record_path) as file:
            json.dump(content, file, ensure_ascii=False, indent=1)
            file.write("\n")

    def is_done(self) -> bool:
        """Whether the JSON file exists and is readable."""
        return bool(self.record())
