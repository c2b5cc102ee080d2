"""Trains a label autoencoder with torch; running a trained model needs NumPy only.

Every epoch ends with a validation on held-out label sets; the weights with the
best MiF there become the model. A checkpoint is written every few minutes: a
training that was killed and resumed ends with the same weights.
"""

from __future__ import annotations

import csv
import ctypes
import hashlib
import json
import math
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from labelkin.atomic import atomic_text
from labelkin.autoencoder.architecture import AnyArchitecture
from labelkin.autoencoder.checkpoint import CheckpointFolder, Position
from labelkin.autoencoder.joint_task import JointTask
from labelkin.autoencoder.optimisation import Optimiser, Schedule
from labelkin.autoencoder.origin import Origin
from labelkin.autoencoder.task import PaperTask, Task
from labelkin.autoencoder.training_data import TrainingData, batches, steps_of
from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.autoencoder.workers import Workers, find_device
from labelkin.exceptions import TrainingError

Ending = Literal["epochs", "time", "no gain"]
Integers = npt.NDArray[np.int64]

_CHECKPOINT_SECONDS = 180.0
_REPORT_SECONDS = 0.5
_SMALL_NETWORK = 5_000_000


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """How far training has come; `last` is the history entry of the last finished epoch."""

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    documents_per_second: float
    share: float
    last: dict[str, float] | None


Watcher = Callable[[TrainingProgress], None]


@dataclass(frozen=True)
class TrainedNetwork:
    """The best weights and the course of their training."""

    architecture: AnyArchitecture
    tensors: dict[str, npt.NDArray[Any]]
    history: list[dict[str, float]]
    best_epoch: int
    seconds: float
    stopped: Ending


class Trainer:
    """One training run; log and checkpoint are in `folder`."""

    def __init__(
        self,
        data: TrainingData,
        settings: TrainingSettings,
        folder: Path,
        origin: Origin | None = None,
        *,
        is_alone: bool = False,
        is_resumable: bool = True,
    ) -> None:
        self.data = data
        self.is_resumable = is_resumable
        self.settings = settings
        self.origin = origin
        self.device = find_device(settings.device)
        self.workers = Workers() if is_alone else Workers.from_environment(self.device)
        torch.manual_seed(settings.seed)
        self.task = make_task(data, settings, self.device, origin)
        self.network = self.task.network
        self.architecture = self.task.architecture
        self.optimiser = Optimiser(
            self.network, lazy=self.task.lazy_tables, fast=self.task.fast_tables
        )
        documents = len(self.task.rows)
        self._steps = steps_of(documents, settings.batch_size)
        if documents // self._steps < 2 * self.workers.count:
            raise TrainingError(
                f"{documents} documents are too few for {self.workers.count} processes"
            )
        self.schedule = Schedule(
            settings.learning_rate, min(settings.warm_up, settings.epochs * self._steps // 10)
        )
        self.position = Position()
        self.log = folder / "training.csv"
        self.checkpoints = CheckpointFolder(folder / "checkpoint", self._fingerprint())
        self._watcher: Watcher | None = None
        self._interruptions = _Interruptions()
        self._seconds_before = 0.0
        self._started = self._saved = self._reported = time.monotonic()

    def resume(self) -> None:
        """Restore the state of the checkpoint in the folder."""
        self.position, state = self.checkpoints.load()
        self.task.restore(state)
        self.network.load_state_dict(_part("network", state))
        self.optimiser.load(_part("optimiser", state))

    def run(self, watcher: Watcher | None = None) -> TrainedNetwork:
        """Train to the end; the checkpoint stays until `forget` is called.

        SIGINT takes effect between two steps, after the state is saved.
        """
        self._watcher = watcher
        self._started = self._saved = time.monotonic()
        self._seconds_before = self.position.seconds
        with _Interruptions() as interruptions, _threads_for(self.network), _reused_memory():
            self._interruptions = interruptions
            while (ending := self._ending()) is None:
                self._train_epoch()
                self._end_epoch()
        best = self.checkpoints.best() if self.workers.is_first else {}
        return TrainedNetwork(
            self.architecture,
            {name: tensor.numpy() for name, tensor in best.items()} | self.task.constants(),
            self.position.history,
            self.position.best_epoch,
            self.position.seconds,
            ending,
        )

    def _ending(self) -> Ending | None:
        """The reason why training ends now; None while it continues."""
        position, settings = self.position, self.settings
        if position.epoch >= settings.epochs:
            return "epochs"
        if settings.patience and position.epoch - position.gained >= settings.patience:
            return "no gain"
        return "time" if position.history and self._time_is_up() else None

    def _time_is_up(self) -> bool:
        limit = self.settings.minutes * 60
        return bool(limit) and self.workers.broadcast(time.monotonic() - self._started) >= limit

    def forget(self) -> None:
        """Delete the checkpoint and leave the process group."""
        if self.workers.is_first:
            self.checkpoints.remove()
        self.workers.close()

    def _train_epoch(self) -> None:
        """Train for the rest of the epoch, or until the time limit."""
        position, settings = self.position, self.settings
        first, entered = position.step, time.monotonic()
        self.network.train()
        epoch = batches(self.task.rows, position.epoch, settings.batch_size, settings.seed)
        ahead = self._prepared(islice(epoch, first, None))
        for number, (size, batch) in enumerate(ahead, start=first):
            if position.step and self._time_is_up():
                return
            loss = self._step(batch, self.schedule.rate(position.steps, self._share()))
            position.loss_sum += loss
            position.step, position.steps = number + 1, position.steps + 1
            now = time.monotonic()
            is_last = number + 1 == self._steps
            if self._watcher is not None and (is_last or now - self._reported > _REPORT_SECONDS):
                self._reported = now
                speed = (number + 1 - first) * size / max(now - entered, 1e-9)
                self._watcher(self._progress(loss, speed))
            if self._interruptions.requested:
                if not self.is_resumable:
                    raise KeyboardInterrupt
                self._save()
                raise KeyboardInterrupt("interrupted; `labelkin train … --resume` continues")
            if now - self._saved > _CHECKPOINT_SECONDS:
                self._save()

    def _prepared(self, batches: Iterable[Integers]) -> Iterator[tuple[int, Any]]:
        """How many documents each batch has, and its input, which is made one step ahead."""
        with ThreadPoolExecutor(1) as pool:
            waiting: tuple[int, Future[Any]] | None = None
            for rows in batches:
                started = (len(rows), pool.submit(self.task.prepare, self.workers.share(rows)))
                if waiting is not None:
                    yield waiting[0], waiting[1].result()
                waiting = started
            if waiting is not None:
                yield waiting[0], waiting[1].result()

    def _step(self, batch: Any, rate: float) -> float:
        """Train on one batch; returns the loss."""
        position = self.position
        random = np.random.default_rng((self.settings.seed, position.epoch, position.step))
        # Seeds dropout by step and process, so that a resumed training is the same.
        torch.manual_seed(int(random.integers(2**62)) + self.workers.rank)
        with self._autocast():
            loss = self.task.loss(batch, self.workers, random)
        value = float(loss.detach())
        if not math.isfinite(value):
            retry = "train --resume" if self.checkpoints.exists() else "train again"
            raise TrainingError(
                f"the loss is {value} in epoch {position.epoch + 1}, step {position.step + 1}; "
                f"lower learning_rate in labelkin.toml and {retry}"
            )
        loss.backward()  # type: ignore[no-untyped-call]
        self.workers.average_gradients(self.network)
        self.optimiser.step(rate)
        return value

    def _end_epoch(self) -> None:
        """Validate, save the state and, if they are the best, the weights; write the log."""
        position = self.position
        self.workers.share_buffers(self.network)
        self.task.end_epoch()
        entry: dict[str, float] = {
            "epoch": position.epoch + 1,
            "steps": position.steps,
            "loss": position.loss_sum / max(position.step, 1),
        }
        if self.workers.is_first:
            self.network.train(False)
            with torch.no_grad():
                entry |= self.task.validate()
        loss = self.workers.broadcast(entry.get("validation_loss", 0.0))
        score = self.workers.broadcast(entry.get("validation_score", 0.0))
        position.seconds = self._seconds()
        entry["seconds"] = round(position.seconds, 1)
        position.epoch, position.step, position.loss_sum = position.epoch + 1, 0, 0.0
        position.history.append(entry)
        if not math.isfinite(loss):
            raise TrainingError(
                f"the validation loss is {loss} after epoch {position.epoch}; "
                "lower learning_rate in labelkin.toml and train again"
            )
        if position.is_best(loss, score) and self.workers.is_first:
            self.checkpoints.save_best(position, self.network.state_dict())
        position.record(loss, score)
        self._save()
        if self.workers.is_first:
            _write_log(self.log, position.history)

    def _save(self) -> None:
        """Write a checkpoint; only the first process does."""
        if not self.workers.is_first:
            return
        state = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        state |= {f"optimiser.{key}": value for key, value in self.optimiser.tensors().items()}
        state |= self.task.state()
        self.position.seconds = self._seconds()
        self.checkpoints.save(self.position, state)
        self._saved = time.monotonic()

    def _seconds(self) -> float:
        """The training time, including that before a resume."""
        return self._seconds_before + time.monotonic() - self._started

    def _share(self) -> float:
        """The share of the training that is done, by steps or by time, whichever is larger."""
        share = self.position.steps / (self.settings.epochs * self._steps)
        if self.settings.minutes:
            share = max(share, (time.monotonic() - self._started) / (self.settings.minutes * 60))
        return min(share, 1.0)

    def _progress(self, loss: float, speed: float) -> TrainingProgress:
        position, settings = self.position, self.settings
        return TrainingProgress(
            epoch=position.epoch + 1,
            epochs=settings.epochs,
            step=position.step,
            steps=self._steps,
            loss=loss,
            documents_per_second=speed,
            share=self._share(),
            last=position.history[-1] if position.history else None,
        )

    def _autocast(self) -> AbstractContextManager[Any]:
        precision = self.settings.precision
        if precision == "mixed" or (precision == "auto" and self._has_fast_halves()):
            return torch.autocast(self.device.type, dtype=torch.bfloat16)
        return nullcontext()

    def _has_fast_halves(self) -> bool:
        """Whether to use bfloat16: on CUDA, and for the joint network on CPUs that have it."""
        if self.device.type == "cpu":
            is_supported = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
            return self.settings.recipe == "joint" and bool(is_supported())
        return self.device.type == "cuda"

    def _fingerprint(self) -> str:
        """A fingerprint of the settings and data that a resumed training must share."""
        settings = asdict(self.settings)
        for changeable in ("device", "minutes", "epochs", "patience", "learning_rate", "warm_up"):
            del settings[changeable]
        parts = [settings, self.data.fingerprint(), self.workers.count]
        if self.origin is not None:
            parts.append(self.origin.model.checksum)
        content = json.dumps(parts)
        return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def make_task(
    data: TrainingData,
    settings: TrainingSettings,
    device: torch.device,
    origin: Origin | None = None,
) -> Task:
    """The task of the settings' recipe; training starts from `origin` if there is one."""
    kind = JointTask if settings.recipe == "joint" else PaperTask
    return kind(data, settings, device, origin)


class _Interruptions:
    """Delays SIGINT: the first sets `requested`, a second raises KeyboardInterrupt.

    Has no effect outside the main thread, where signal handlers cannot be set.
    """

    def __init__(self) -> None:
        self.requested = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, *_: object) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


@contextmanager
def _threads_for(network: nn.Module) -> Iterator[None]:
    """Use one thread for a small network, where several would mostly wait for each other."""
    before = torch.get_num_threads()
    if sum(weight.numel() for weight in network.parameters()) < _SMALL_NETWORK:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# The parameters of glibc's mallopt, and their usual values.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_USUAL_THRESHOLD = 128 * 1024
_LARGEST_BLOCK = 1 << 30


@contextmanager
def _reused_memory() -> Iterator[None]:
    """Let glibc reuse the memory of large arrays, such as gradients, from step to step.

    By default it returns them to the system, which clears every page again at the
    next step: a fifth of the time of a joint training. Afterwards the thresholds are
    fixed at glibc's defaults. Other C libraries are left as they are.
    """
    try:
        library = ctypes.CDLL(None)
        set_option, trim = library.mallopt, library.malloc_trim
    except (OSError, AttributeError, TypeError):
        yield
        return
    set_option(_MMAP_THRESHOLD, _LARGEST_BLOCK)
    set_option(_TRIM_THRESHOLD, _LARGEST_BLOCK)
    try:
        yield
    finally:
        set_option(_MMAP_THRESHOLD, _USUAL_THRESHOLD)
        set_option(_TRIM_THRESHOLD, _USUAL_THRESHOLD)
        trim(0)


def _part(name: str, state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names start with `name.`, without this prefix."""
    return {
        key.removeprefix(f"{name}."): value
        for key, value in state.items()
        if key.startswith(f"{name}.")
    }


def _write_log(path: Path, history: list[dict[str, float]]) -> None:
    with atomic_text(path) as file:
        table = csv.DictWriter(file, list(history[-1]), restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(history)
