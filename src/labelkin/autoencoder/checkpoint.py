"""The state of an unfinished training on disk, so that a killed process loses minutes, not hours.

checkpoint/
  checkpoint.json             position and history; names the files below
  state-….safetensors         weights, moments and latent vectors
  best-….safetensors          the weights with the best validation score so far
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from labelkin.atomic import atomic_file, atomic_text
from labelkin.checksums import BlockChecksums, read_sealed, sealed
from labelkin.exceptions import TrainingError
from labelkin.store.folder import empty_folder

_NAME = "checkpoint.json"


@dataclass
class Position:
    """How far training has come: the next step of an epoch, the best epoch, and the history."""

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
        """Whether the score is the highest so far, or equals it with a lower loss."""
        return (-score, loss) < (-self.best_score, self.best_loss)

    def record(self, loss: float, score: float) -> None:
        """Record the validation results of an epoch.

        The lowest loss so far counts as a gain too: scores of small collections
        stay at zero for a while.
        """
        if self.is_best(loss, score):
            self.best_score, self.best_loss, self.best_epoch = score, loss, self.epoch
            self.gained = self.epoch
        if loss < self.lowest_loss:
            self.lowest_loss, self.gained = loss, self.epoch


class CheckpointFolder:
    """Reads and writes the state of one training.

    A state with another `fingerprint` of settings and data cannot be resumed.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder = folder
        self._fingerprint = fingerprint
        self._best = ""
        self._checksums: dict[str, BlockChecksums] = {}

    def exists(self) -> bool:
        """Whether there is a state to resume from."""
        return (self.folder / _NAME).is_file()

    def save(self, position: Position, state: Mapping[str, Tensor]) -> None:
        """Write the state; the previous one is removed once this one is complete."""
        name = f"state-{position.steps:09d}.safetensors"
        self._write(name, state)
        content = {
            "mark": self._fingerprint,
            "state": name,
            "best": self._best,
            "checksums": {one: self._checksums[one].to_json() for one in (name, self._best) if one},
            **asdict(position),
        }
        with atomic_text(self.folder / _NAME) as file:
            file.write(sealed(content))
        self._remove_except({_NAME, name, self._best})

    def save_best(self, position: Position, weights: Mapping[str, Tensor]) -> None:
        """Write the best weights; they take effect with the next `save`, which names them."""
        name = f"best-{position.steps:09d}.safetensors"
        self._write(name, weights)
        self._best = name

    def load(self) -> tuple[Position, dict[str, Tensor]]:
        """The last saved state; TrainingError if there is none that fits."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        path = self.folder / _NAME
        try:
            content = read_sealed(path)
            fingerprint, name = content.pop("mark"), content.pop("state")
            self._best = content.pop("best")
            if fingerprint != self._fingerprint:
                raise TrainingError(
                    f"{path}: started with other settings or documents; train without --resume"
                )
            checksums: dict[str, Any] = content.pop("checksums", {})
            self._checksums = {
                one: BlockChecksums.from_json(value) for one, value in checksums.items()
            }
            for one, recorded in self._checksums.items():
                recorded.verify(self.folder / one)
            return Position(**content), load_file(self.folder / name)
        except FileNotFoundError as error:
            raise TrainingError(
                f"{self.folder}: nothing to resume; train without --resume"
            ) from error
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise TrainingError(f"{path}: {error}; train without --resume") from error

    def best(self) -> dict[str, Tensor]:
        """The weights with the best validation score."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return load_file(self.folder / self._best)
        except (OSError, SafetensorError) as error:
            raise TrainingError(
                f"{self.folder / self._best}: {error}; train without --resume"
            ) from error

    def remove(self) -> None:
        """Delete the folder."""
        if self.folder.is_dir():
            # First the JSON file: without it, leftover files do not count as a checkpoint.
            (self.folder / _NAME).unlink(missing_ok=True)
            empty_folder(self.folder)
            self.folder.rmdir()

    def _write(self, name: str, tensors: Mapping[str, Tensor]) -> None:
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        self.folder.mkdir(parents=True, exist_ok=True)
        ready = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
        with atomic_file(self.folder / name) as file:
            try:
                save_file(ready, file.name)
            except SafetensorError as error:
                raise TrainingError(
                    f"{self.folder / name}: {error}; make room or check the disk, then train again"
                ) from error
            self._checksums[name] = BlockChecksums.of_file(Path(file.name))

    def _remove_except(self, names: set[str]) -> None:
        for path in self.folder.iterdir():
            if path.name not in names:
                path.unlink(missing_ok=True)
