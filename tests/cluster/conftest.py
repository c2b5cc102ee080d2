"""A real standalone cluster on loopback: a master and two workers, each a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from labelkin.cluster.session import INSTALL, check_installed
from labelkin.exceptions import MissingExtraError

_SECONDS = 60
_ENVIRONMENT = {
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_NO_DAEMONIZE": "1",
}
OPTIONS = (
    "spark.driver.host=127.0.0.1",
    "spark.driver.bindAddress=127.0.0.1",
    "spark.executor.cores=1",
    "spark.ui.enabled=true",
)


@pytest.fixture(autouse=True)
def needs_arrow() -> None:
    if find_spec("pyarrow") is None or find_spec("numba") is None:
        pytest.skip(f"needs the extra `spark`: {INSTALL}")


@pytest.fixture(scope="session")
def spark() -> None:
    """Skips without Java and pyspark, with the line that installs them."""
    try:
        check_installed()
    except MissingExtraError as error:
        pytest.skip(str(error))


@dataclass
class Standalone:
    """A master with its workers; `folder` has their logs."""

    folder: Path
    master: str = ""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, name: str, arguments: Sequence[str], before: Sequence[str] = ()) -> Path:
        """Start a part of Spark; the file that it prints to."""
        import pyspark

        home = Path(pyspark.__file__).parent
        log = self.folder / f"{name}-{len(self.processes)}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*before, str(home / "bin" / "spark-class"), *arguments],
                stdout=file,
                stderr=file,
                env={**os.environ, **_ENVIRONMENT, "SPARK_HOME": str(home)},
                start_new_session=True,
            )
        self.processes.append(process)
        return log

    def start_master(self) -> None:
        options = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        log = self.start("master", ["org.apache.spark.deploy.master.Master", *options])
        self.master = _waited(log, r"(spark://127\.0\.0\.1:\d+)")

    def start_worker(self, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        options = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
        place = self.folder / f"work-{len(self.processes)}"
        kind = "org.apache.spark.deploy.worker.Worker"
        log = self.start("worker", [kind, *options, "-d", str(place), self.master], before)
        _waited(log, r"(Successfully registered with master)")
        return self.processes[-1]

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a process with all that it has started, executors included."""
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for process in reversed(self.processes):
            if process.poll() is None:
                self.kill(process)


def _waited(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        if match := re.search(pattern, log.read_text(errors="replace")):
            return match[1]
        time.sleep(0.1)
    raise AssertionError(log.read_text(errors="replace"))


@pytest.fixture
def new_cluster(spark: None, tmp_path: Path) -> Iterator[Standalone]:
    """A master without workers."""
    cluster = Standalone(tmp_path)
    try:
        cluster.start_master()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def standalone(spark: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A master and two workers, with one core and 1 GB each."""
    cluster = Standalone(tmp_path_factory.mktemp("spark"))
    try:
        cluster.start_master()
        cluster.start_worker()
        cluster.start_worker()
        yield cluster
    finally:
        cluster.stop()


def with_packages(packages: Path) -> str:
    """Where Python finds modules: in this folder as well."""
    return os.pathsep.join(filter(None, (str(packages), os.environ.get("PYTHONPATH"))))


def begin(*arguments: str | Path, packages: Path | None = None) -> subprocess.Popen[str]:
    """Start a command of labelkin."""
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    if packages is not None:
        environment["PYTHONPATH"] = with_packages(packages)
    return subprocess.Popen(
        [sys.executable, "-m", "labelkin", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def labelkin(*arguments: str | Path, code: int = 0, packages: Path | None = None) -> str:
    """Run a command of labelkin; what it prints as messages."""
    process = begin(*arguments, packages=packages)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == code, errors
    return errors


def printed_json(*arguments: str | Path) -> Any:
    """Run a command of labelkin with --json; what it prints."""
    process = begin(*arguments, "--json")
    output, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    return json.loads(output)
