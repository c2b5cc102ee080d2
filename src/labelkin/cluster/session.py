"""A connection to Spark: starts it, runs tasks on it, and tells how far they are."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

from labelkin.closing import Closing
from labelkin.cluster.failures import explained, no_master
from labelkin.cluster.sizes import WAVE, taken
from labelkin.cluster.task import Environment, Task, not_shared, perform
from labelkin.exceptions import ClusterError, MissingExtraError
from labelkin.store.config import ClusterSection

# Called with the tasks that are finished, and all of them.
TaskProgress = Callable[[int, int], None]

INSTALL = "pip install 'labelkin[spark]'"
_OLDEST_JAVA = 17
_MASTER = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|spark://.+|k8s://.+|yarn")
_YARN_FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
# Spark tries a task again on a cluster, but by default not on one machine.
_RETRIED = re.compile(r"local\[(\d+|\*)\]$")
_ATTEMPTS = 4
_POLL_SECONDS = 0.2
# How long a network file system may take to show what another machine has written: NFS keeps
# up to 60 s in mind that a file is not there.
_VISIBLE_SECONDS = 90.0
_ENDING_SECONDS = 30
# Where an executor may use no more than its Java part and this, which is for Python: 1 GB a core.
_IN_CONTAINERS = ("yarn", "k8s://")
_OVERHEAD = "spark.executor.memoryOverhead"
# Java's first errors go to the standard output.
_STREAMS = (1, 2)
# Spark holds the tasks that wait, with their documents.
_DRIVER_MEMORY = "2g"


def check_installed() -> None:
    """Raise MissingExtraError if there is no pyspark, or no Java that can run it."""
    for module in ("pyspark", "pyarrow", "numba"):
        if find_spec(module) is None:
            raise MissingExtraError(f"--on needs {module}: {INSTALL}")
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java") if home is None else shutil.which(str(Path(home) / "bin" / "java"))
    remedy = f"install Java {_OLDEST_JAVA} or newer (apt-get install openjdk-17-jre-headless)"
    if java is None:
        place = "" if home is None else f" in JAVA_HOME, {home}"
        raise MissingExtraError(f"--on needs Java, and there is none{place}; {remedy}")
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    version = re.search(r'version "(?:1\.)?(\d+)', shown.stderr + shown.stdout)
    if version is not None and int(version[1]) < _OLDEST_JAVA:
        raise MissingExtraError(f"{java} is Java {version[1]}, too old for Spark; {remedy}")


def check_master(master: str) -> None:
    """Raise ClusterError for what is no master, and for YARN that nothing here says where it is."""
    if not _MASTER.fullmatch(master):
        raise no_master(master)
    if master == "yarn" and not any(os.environ.get(name) for name in _YARN_FOLDERS):
        raise ClusterError(
            "yarn: neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set; set one of them to the folder "
            "with the cluster's yarn-site.xml"
        )


class Session(Closing):
    """A Spark application. `folder` is shared by all machines; its `spark.log` is Spark's."""

    def __init__(self, master: str, settings: ClusterSection, folder: Path) -> None:
        check_installed()
        check_master(master)
        self._master = master
        self._python = settings.python or sys.executable
        self._patience = settings.patience
        self._log = folder / "spark.log"
        self._groups = count()
        probe = folder / "probe"
        content = f"{os.getpid()} {time.time_ns()}"
        probe.write_text(content, encoding="utf-8")
        self._environment = Environment.of_driver(probe, content)
        self._folder = folder
        try:
            with _output_to(self._log):
                self._context = self._started(settings)
        except Exception as error:
            raise self._explained(error, starting=True) from error

    def _started(self, settings: ClusterSection) -> Any:
        import pyspark
        from pyspark import SparkConf, SparkContext

        if home := os.environ.get("SPARK_HOME"):
            # The settings of another Spark hold, but its Java part may not fit this pyspark.
            os.environ.setdefault("SPARK_CONF_DIR", str(Path(home) / "conf"))
        os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
        options = {
            "spark.master": self._master,
            "spark.app.name": "labelkin",
            "spark.executor.memory": settings.executor_memory,
            "spark.driver.memory": _DRIVER_MEMORY,
            "spark.ui.showConsoleProgress": "false",
            # Tells a crash from a lack of memory.
            "spark.python.worker.faulthandler.enabled": "true",
        }
        # The option spark.pyspark.python is for spark-submit alone.
        os.environ["PYSPARK_PYTHON"] = self._python
        if self._master.startswith("local"):
            # Nothing of it is for other machines.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            options |= dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), "127.0.0.1")
            options["spark.driver.memory"] = settings.executor_memory
            self._master = _RETRIED.sub(rf"local[\1,{_ATTEMPTS}]", self._master)
            options["spark.master"] = self._master
        for option in settings.options:
            name, _, value = option.partition("=")
            options[name] = value
        if self._master.startswith(_IN_CONTAINERS) and not any(
            name.startswith(_OVERHEAD) for name in options
        ):
            options[_OVERHEAD] = f"{options.get('spark.executor.cores', 1)}g"
        conf = SparkConf().setAll(list(options.items()))
        return SparkContext(conf=conf)

    def close(self) -> None:
        """End the application, and the Java process with it: another one has its own log."""
        from pyspark import SparkContext

        gateway: Any = SparkContext._gateway
        with suppress(Exception):
            self._context.stop()
        SparkContext._gateway = SparkContext._jvm = None
        with suppress(Exception):
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait(_ENDING_SECONDS)

    @property
    def address(self) -> str | None:
        """The address of Spark's own pages about the application."""
        with self._failures_explained():
            address: str | None = self._context.uiWebUrl
        return address

    @property
    def slots(self) -> int:
        """About how many tasks can run at the same time."""
        with self._failures_explained():
            return int(self._context.defaultParallelism)

    def run(self, tasks: Sequence[Task], progress: TaskProgress | None = None) -> None:
        """Run the tasks whose output is missing; all outputs are there when this returns."""
        missing = [task for task in tasks if not task.is_done()]
        before = len(tasks) - len(missing)

        def show(done: int) -> None:
            if progress is not None:
                progress(before + done, len(tasks))

        show(0)
        waiting = iter(missing)
        while wave := taken(waiting, len(missing), WAVE, lambda task: task.characters):
            self._run_wave(wave, show)
            before += len(wave)
            show(0)

    def _run_wave(self, tasks: Sequence[Task], show: Callable[[int], None]) -> None:
        """Run tasks that Spark can have all at a time."""
        job = _Job(self._context, tasks, self._environment, f"labelkin-{next(self._groups)}")
        job.start()
        at_work, finished = time.monotonic(), 0
        try:
            while job.is_alive():
                job.join(_POLL_SECONDS)
                active, done = job.state()
                if active or done > finished:
                    at_work, finished = time.monotonic(), done
                elif time.monotonic() - at_work > self._patience:
                    verb = "gone on" if finished else "begun"
                    raise ClusterError(
                        f"{self._master}: no executor has {verb} within {self._patience} s; has it "
                        "workers with free cores and memory? ([cluster] executor_memory, patience)"
                    )
                show(done)
        finally:
            job.cancel()
        if job.error is not None:
            raise self._explained(job.error) from job.error
        self._check_visible(tasks)

    def _check_visible(self, tasks: Sequence[Task]) -> None:
        """Raise ClusterError if what executors have written is not to be seen here."""
        deadline = time.monotonic() + _VISIBLE_SECONDS
        for task in tasks:
            while not task.is_done():
                if time.monotonic() > deadline:
                    raise not_shared(task.output.parent, "this machine")
                with suppress(OSError):
                    # Has the file system ask again.
                    any(task.output.parent.iterdir())
                time.sleep(_POLL_SECONDS)

    @contextmanager
    def _failures_explained(self) -> Iterator[None]:
        """Have what Java answers become one line; the application may have been removed."""
        try:
            yield
        except Exception as error:
            raise self._explained(error) from error

    def _explained(self, error: BaseException, *, starting: bool = False) -> Exception:
        return explained(error, self._master, self._python, self._log, starting=starting)


class _Job(Thread):
    """One job of Spark, in a thread, so that it can be watched and cancelled."""

    def __init__(
        self, context: Any, tasks: Sequence[Task], environment: Environment, group: str
    ) -> None:
        super().__init__(name=group, daemon=True)
        self._context = context
        self._tasks = tasks
        self._environment = environment
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self._context.setJobGroup(self.name, self.name, interruptOnCancel=False)
            spread = self._context.parallelize(self._tasks, len(self._tasks))
            spread.foreach(partial(perform, self._environment))
        except Exception as error:
            self.error = error

    def state(self) -> tuple[int, int]:
        """How many tasks are running, and how many are finished."""
        active = done = 0
        with suppress(Exception):
            tracker = self._context.statusTracker()
            for number in tracker.getJobIdsForGroup(self.name):
                job = tracker.getJobInfo(number)
                for stage in () if job is None else job.stageIds:
                    info = tracker.getStageInfo(stage)
                    if info is not None:
                        active += info.numActiveTasks
                        done += info.numCompletedTasks
        return active, done

    def cancel(self) -> None:
        """Have Spark drop what is still waiting or running."""
        if self.is_alive():
            with suppress(Exception):
                self._context.cancelJobGroup(self.name)


@contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """Let processes that are started in the block print to a file, not to the terminal."""
    sys.stdout.flush()
    sys.stderr.flush()
    before = {stream: os.dup(stream) for stream in _STREAMS}
    with log.open("wb") as file:
        for stream in _STREAMS:
            os.dup2(file.fileno(), stream)
    try:
        yield
    finally:
        for stream, copy in before.items():
            os.dup2(copy, stream)
            os.close(copy)
