"""What is known of a peer on a data set: one JSON file, written whole after every step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .datasets import write_json
from .meter import CommandError


class Results:
    """The outcomes of steps by name, with the settings that each was done with."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._steps: dict[str, dict[str, Any]] = {}
        if path.exists():
            self._steps = json.loads(path.read_text())

    def step(self, name: str, settings: object, action: Callable[[], object]) -> Any:
        """The outcome of `action`; it is not repeated if it was done with the same settings.

        A step that fails is remembered with its reason, and tried again the next time.
        """
        settings = json.loads(json.dumps(settings))
        known = self._steps.get(name)
        if known is not None and known["settings"] == settings and "outcome" in known:
            return known["outcome"]
        try:
            outcome = action()
        except CommandError as error:
            self._save(name, {"settings": settings, "failed": str(error)})
            raise
        self._save(name, {"settings": settings, "outcome": outcome})
        return self._steps[name]["outcome"]

    def failed(self, name: str, reason: str) -> None:
        """Remember that a step has failed."""
        self._save(name, {"settings": None, "failed": reason})

    def forget_other(self, name: str, settings: object) -> None:
        """Drop a step that was done with other settings."""
        known = self._steps.get(name)
        if known is not None and known["settings"] != json.loads(json.dumps(settings)):
            del self._steps[name]
            write_json(self.path, self._steps)

    def outcome(self, name: str) -> Any:
        """What a step has given; None if it was not done."""
        return self._steps.get(name, {}).get("outcome")

    def names(self, kind: str) -> list[str]:
        """What steps of a kind, such as `scores`, have given an outcome for."""
        found = (step.partition(" ") for step, one in self._steps.items() if "outcome" in one)
        return [name for first, _, name in found if first == kind]

    def failures(self) -> dict[str, str]:
        """The reasons of the steps that failed, by name."""
        return {name: one["failed"] for name, one in self._steps.items() if "failed" in one}

    def update(self, other: Results) -> None:
        """Take the steps of other results, in place of those of the same names."""
        for name, content in other._steps.items():
            self._save(name, content)

    def _save(self, name: str, content: object) -> None:
        self._steps[name] = json.loads(json.dumps(content))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path, self._steps)
