"""The state of an unfinished training on disk, so that a kill costs minutes and not hours.

checkpoint/
  checkpoint.json             where training is; names the file below
  state-….safetensors         weights, moments and the random state
  best-….safetensors          the weights that validated best so far
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from labelkin.atomic import atomic_file, atomic_text
from labelkin.exceptions import TrainingError
from labelkin.store.folder import empty_folder

_NAME = "checkpoint.json"


@dataclass
class Position:
    """Where training is: the next step of an epoch, what was best, and the record so far."""

    epoch: int = 0
    step: int = 0
    steps: int = 0
    seconds: float = 0.0
    best_loss: float = float("inf")
    best_score: float = -1.0
    best_epoch: int = 0
    gained: int = 0
    lowest_loss: float = float("inf")
    loss_sum: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)

    def is_best(self, loss: float, score: float) -> bool:
        """Whether no epoch had a higher score, or an equal one with as low a loss."""
        return (-score, loss) < (-self.best_score, self.best_loss)

    def note(self, loss: float, score: float) -> None:
        """Take note of how an epoch did.

        One with the lowest loss so far is a gain too: scores of small
        collections stay at zero for a while.
        """
        if self.is_best(loss, score):
            self.best_score, self.best_loss, self.best_epoch = score, loss, self.epoch
            self.gained = self.epoch
        if loss < self.lowest_loss:
            self.lowest_loss, self.gained = loss, self.epoch


class CheckpointFolder:
    """Reads and writes the state of one training; `mark` tells what it depends on."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.folder = folder
        self._mark = mark
        self._best = ""

    def exists(self) -> bool:
        """Whether there is something to go on from."""
        return (self.folder / _NAME).is_file()

    def save(self, position: Position, state: Mapping[str, Tensor]) -> None:
        """Keep the state; the one before is dropped when this one is whole."""
        name = f"state-{position.steps:09d}.safetensors"
        self._write(name, state)
        content = {"mark": self._mark, "state": name, "best": self._best, **asdict(position)}
        with atomic_text(self.folder / _NAME) as file:
            json.dump(content, file)
        self._sweep({_NAME, name, self._best})

    def save_best(self, position: Position, weights: Mapping[str, Tensor]) -> None:
        """Keep the best weights; they count once the next `save` names them."""
        name = f"best-{position.steps:09d}.safetensors"
        self._write(name, weights)
        self._best = name

    def load(self) -> tuple[Position, dict[str, Tensor]]:
        """The last saved state."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        path = self.folder / _NAME
        try:
            content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            mark, name = content.pop("mark"), content.pop("state")
            self._best = content.pop("best")
            if mark != self._mark:
                raise TrainingError(
                    f"{path}: begun with other settings or documents; train without --resume"
                )
            return Position(**content), load_file(self.folder / name)
        except FileNotFoundError as error:
            raise TrainingError(
                f"{self.folder}: nothing to resume; train from the start"
            ) from error
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise TrainingError(f"{path}: {error}; train without --resume") from error

    def best(self) -> dict[str, Tensor]:
        """The weights that validated best."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return load_file(self.folder / self._best)
        except (OSError, SafetensorError) as error:
            raise TrainingError(f"{self.folder / self._best}: {error}; train afresh") from error

    def remove(self) -> None:
        """Drop everything."""
        if self.folder.is_dir():
            # Without its description the rest is no checkpoint, whatever is left of it.
            (self.folder / _NAME).unlink(missing_ok=True)
            empty_folder(self.folder)
            self.folder.rmdir()

    def _write(self, name: str, tensors: Mapping[str, Tensor]) -> None:
        from safetensors.torch import save_file

        self.folder.mkdir(parents=True, exist_ok=True)
        ready = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
        with atomic_file(self.folder / name) as file:
            save_file(ready, file.name)

    def _sweep(self, wanted: set[str]) -> None:
        for path in self.folder.iterdir():
            if path.name not in wanted:
                path.unlink(missing_ok=True)
