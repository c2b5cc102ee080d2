"""Tasks that executors run, and what each executor must have to run them."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelkin._version import __version__
from labelkin.exceptions import ClusterError

_LENGTH = 16
_checked: set[Environment] = set()


def digest(*values: Any) -> str:
    """A name for what depends on some values, which JSON can hold, and on labelkin's version."""
    content = json.dumps([__version__, *values], sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.blake2b(content.encode(), digest_size=_LENGTH).hexdigest()


class Task(ABC):
    """Computes `output`, a file or folder in the workspace; what is there is whole."""

    output: Path

    @property
    def characters(self) -> int:
        """How much text Spark sends with it."""
        return 0

    @property
    def workspace(self) -> Path:
        """The folder that all machines share; outputs are in its folders by kind."""
        return self.output.parents[1]

    @abstractmethod
    def run(self) -> None:
        """Write the output atomically. Two executors may do so at the same time."""

    def is_done(self) -> bool:
        """Whether the output is there."""
        return self.output.exists()


@dataclass(frozen=True, slots=True)
class Environment:
    """What driver and executors must have in common.

    `probe` is a file in the workspace, and `content` what the driver has written to it.
    """

    labelkin: str
    spark: str
    probe: Path
    content: str

    @classmethod
    def of_driver(cls, probe: Path, content: str) -> Environment:
        """What the executors must have, by what is installed here."""
        return cls(__version__, _spark_version(), probe, content)

    def check(self) -> None:
        """Raise ClusterError if this executor differs from the driver; looked at once."""
        if self in _checked:
            return
        host = socket.gethostname()
        if __version__ != self.labelkin:
            raise ClusterError(
                f"the executor on {host} has labelkin {__version__}, the driver {self.labelkin}; "
                "install the same version on all machines"
            )
        spark = _spark_version()
        if _minor(spark) != _minor(self.spark):
            raise ClusterError(
                f"the executor on {host} runs Spark {spark}, the driver {self.spark}; install "
                f"pyspark {spark} beside labelkin, or upgrade the cluster"
            )
        try:
            content = self.probe.read_text(encoding="utf-8")
        except OSError:
            content = ""
        if content != self.content:
            raise not_shared(self.probe.parent, host)
        _checked.add(self)


def not_shared(folder: Path, host: str) -> ClusterError:
    """The error of an executor or a driver that does not see what another has written."""
    return ClusterError(
        f"{folder}: {host} does not see the files of the other machines there; put [cluster] "
        "folder in labelkin.toml on a file system that all of them share at the same path"
    )


def perform(environment: Environment, task: Task) -> None:
    """Run a task on an executor, unless another attempt has finished it."""
    environment.check()
    try:
        if not task.is_done():
            task.run()
    except FileNotFoundError as error:
        if not lies_within(error, environment.probe.parent):
            raise
        raise not_shared(Path(os.fsdecode(error.filename)), socket.gethostname()) from error


def lies_within(error: FileNotFoundError, folder: Path) -> bool:
    """Whether the missing file is one of a folder."""
    if error.filename is None:
        return False
    return Path(os.fsdecode(error.filename)).resolve().is_relative_to(folder.resolve())


def _spark_version() -> str:
    import pyspark

    return str(pyspark.__version__)


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]
