"""What Spark reports becomes one line that says what to do."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from labelkin._version import __version__
from labelkin.cluster import session, task
from labelkin.cluster.failures import explained
from labelkin.cluster.session import Session, check_installed, check_master
from labelkin.cluster.task import Environment, Task, perform
from labelkin.exceptions import ClusterError, MissingExtraError, ModelNotFoundError
from labelkin.store.config import ClusterSection

MASTER = "spark://127.0.0.1:7077"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ModuleNotFoundError: No module named 'labelkin.cluster'", "/py, has no labelkin; inst"),
        ("ModuleNotFoundError: No module named 'torch.nn'", "has no torch; install there what is"),
        ('java.io.IOException: Cannot run program "/py": error=2', "the workers have no /py"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different", "another version than that"),
        ("Lost executor 1: Command exited with code 137", "ran out of memory"),
        (
            "Lost executor 1: Command exited with code 52",
            "of an executor ran out of memory; raise ",
        ),
        ("Python worker exited unexpectedly (crashed)", "fewer cores (spark.executor.cores) or"),
        (
            "Python worker exited unexpectedly (crashed): Fatal Python error: Bus error\n",
            "Python has crashed on a worker (Bus error), in a compiled package; install",
        ),
        (
            "Python worker exited unexpectedly (crashed): Fatal Python error: Aborted\n",
            "ran out of memory",
        ),
        (": java.lang.OutOfMemoryError: Java heap space", "of the driver ran out of memory; raise"),
        (
            "Job aborted: most recent failure: Lost task 0.3 in stage 1.0 (TID 7) (a executor 1): "
            "java.lang.OutOfMemoryError: Java heap space",
            "of an executor ran out of memory; raise executor_memory",
        ),
        (
            ": java.lang.X: [INVALID_DRIVER_MEMORY] System memory 1 must be at least 2.",
            "System memory 1 must be at least 2. Raise executor_memory in [cluster]",
        ),
        (
            "ImportError: _pydantic_core.so: failed to map segment from shared object",
            "ran out of memory",
        ),
        ("org.apache.spark.SparkException: Could not parse Master URL: 'x'", "no master of Spark"),
        ("java.io.InvalidClassException: local class incompatible", "runs another version of Spa"),
        ("'JavaPackage' object is not callable", "runs another version of Spark"),
        ("[JAVA] X.isEncryptionEnabled does not exist in the JVM", "runs another version of Spark"),
        ("Cannot call methods on a stopped SparkContext", "has ended the job"),
        ("Traceback\nKeyError: 'x'\n\tat java", "the job failed: KeyError: 'x'"),
    ],
)
def test_one_line(text: str, expected: str, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    error = explained(RuntimeError(text), MASTER, "/py", tmp_path / "spark.log")
    assert isinstance(error, ClusterError)
    assert expected in str(error)
    assert "\n" not in str(error)


# As Py4J words what Java has raised.
_CALLED = "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe."
_ABORTED = (
    f"{_CALLED}\n: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in "
    "stage 1.0 failed 4 times, most recent failure: Lost task 0.3 in stage 1.0 (TID 7) "
)
_TRACE = (
    "\n\tat org.apache.spark.scheduler.DAGScheduler.x(DAGScheduler.scala:1)\nDriver stacktrace:"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"{_ABORTED}(10.0.0.2 executor 1): ExecutorLostFailure (executor 1 exited caused by "
            f"one of the running tasks) Reason: Executor heartbeat timed out after 125 ms{_TRACE}",
            "the job failed: ExecutorLostFailure (executor 1 exited caused by one of the running "
            "tasks) Reason: Executor heartbeat timed out after 125 ms (see",
        ),
        (
            f"{_ABORTED}(10.0.0.2 executor 1): java.io.IOException: No space left on device"
            f"{_TRACE}\nCaused by: java.io.IOException: none",
            "the job failed: No space left on device (see",
        ),
        (
            f"{_ABORTED}(10.0.0.2 executor 1): org.apache.spark.api.python.PythonException: "
            f"Traceback (most recent call last):\n  File …\nKeyError: 'x'\n{_TRACE}",
            "the job failed: KeyError: 'x' (see",
        ),
        (f"{_CALLED}\n: java.lang.NullPointerException{_TRACE}", "java.lang.NullPointerException"),
    ],
)
def test_the_reason_of_a_failed_job(text: str, expected: str, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    log = tmp_path / "spark.log"
    # Of another worker, which was lost.
    log.write_text("WARN TransportClientFactory: Failed to connect to /127.0.0.1:40111")
    error = str(explained(RuntimeError(text), MASTER, "/py", log))
    assert expected in error
    assert error.endswith("finished parts are kept: run the same command again")
    assert "\n" not in error


def test_the_reason_why_spark_does_not_start(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    called = "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext."
    reason = "Must specify the executor container image"
    text = f"{called}\n: org.apache.spark.SparkException: {reason}\n\tat org"
    log = tmp_path / "spark.log"
    error = explained(RuntimeError(text), "k8s://head", "/py", log, starting=True)
    assert str(error) == f"k8s://head: Spark does not start: {reason} (see {log})"


def test_a_master_that_does_not_answer_is_found_in_the_log(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    log = tmp_path / "spark.log"
    log.write_text("ERROR StandaloneSchedulerBackend: All masters are unresponsive! Giving up.")
    error = explained(RuntimeError("stopped SparkContext"), MASTER, "/py", log, starting=True)
    assert "no answer from a Spark" in str(error)


def test_an_error_in_python_is_not_taken_for_a_lost_connection(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    log = tmp_path / "spark.log"
    log.write_text("WARN TransportClientFactory: Failed to connect to /127.0.0.1:40111")
    text = "Traceback (most recent call last):\n  File …\nKeyError: 'no such signal'\n\tat java"
    error = explained(RuntimeError(text), MASTER, "/py", log)
    assert "the job failed: KeyError: 'no such signal'" in str(error)


def test_errors_of_labelkin_keep_their_kind(tmp_path: Path) -> None:
    text = "Traceback\n  File …\nlabelkin.exceptions.ModelNotFoundError: no model; train\n\tat java"
    error = explained(RuntimeError(text), MASTER, "/py", tmp_path / "spark.log")
    assert isinstance(error, ModelNotFoundError)
    assert str(error) == "no model; train"


def test_an_extra_that_a_worker_lacks(tmp_path: Path) -> None:
    text = "Traceback\nlabelkin.exceptions.MissingExtraError: no torch: pip install it\n\tat java"
    error = explained(RuntimeError(text), MASTER, "/py", tmp_path / "spark.log")
    assert isinstance(error, MissingExtraError)
    assert str(error) == f"on a worker of {MASTER}: no torch: pip install it"


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (
            'WARN x\nException in thread "main" org.apache.spark.SparkException: no port\n\tat',
            "Spark does not start: no port (see",
        ),
        (
            "Error occurred during initialization of VM\nToo small maximum heap\n",
            "Spark does not start: Too small maximum heap (see",
        ),
        ("", "Spark does not start: [JAVA_GATEWAY_EXITED] Java gateway process exited"),
    ],
)
def test_a_java_process_that_ends_at_once(printed: str, expected: str, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    log = tmp_path / "spark.log"
    log.write_text(printed)
    text = "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number."
    error = explained(RuntimeError(text), MASTER, "/py", log, starting=True)
    assert expected in str(error)


@pytest.mark.parametrize(
    "master",
    ["local", "local[*]", "local[2,4]", "local-cluster[2,1,1024]", "spark://a:1,b:1", "k8s://a:1"],
)
def test_masters(master: str) -> None:
    check_master(master)


def started(
    master: str, settings: ClusterSection, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """The options that a session starts Spark with."""
    pyspark = pytest.importorskip("pyspark")
    options: dict[str, str] = {}
    monkeypatch.setattr(session, "check_installed", lambda: None)
    monkeypatch.setattr(pyspark, "SparkContext", lambda conf: options.update(conf.getAll()))
    for name in ("PYSPARK_PYTHON", "SPARK_LOCAL_IP", "SPARK_HOME"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    Session(master, settings, folder)
    return options


def test_the_java_part_is_that_of_this_pyspark(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pyspark = pytest.importorskip("pyspark")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "other"))
    monkeypatch.setenv("SPARK_CONF_DIR", "")
    monkeypatch.delenv("SPARK_CONF_DIR")
    started("local[1]", ClusterSection(), tmp_path, monkeypatch)
    assert os.environ["SPARK_HOME"] == str(Path(pyspark.__file__).parent)
    assert os.environ["SPARK_CONF_DIR"] == str(tmp_path / "other" / "conf")


@pytest.mark.parametrize(
    ("master", "options", "expected"),
    [
        ("k8s://a:1", ["spark.executor.cores=4"], "4g"),
        ("k8s://a:1", [], "1g"),
        ("k8s://a:1", ["spark.executor.memoryOverhead=7g"], "7g"),
        ("k8s://a:1", ["spark.executor.memoryOverheadFactor=0.5"], None),
        ("spark://a:1", ["spark.executor.cores=4"], None),
    ],
)
def test_a_container_has_memory_for_python(
    master: str,
    options: list[str],
    expected: str | None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    found = started(master, ClusterSection(options=options), tmp_path, monkeypatch)
    assert found.get("spark.executor.memoryOverhead") == expected


def test_on_one_machine_fewer_cores_are_another_master(tmp_path: Path) -> None:
    error = explained(RuntimeError("MemoryError"), "local[4,4]", "/py", tmp_path / "spark.log")
    assert "fewer cores (--on local[1]); finished parts are kept" in str(error)


@pytest.mark.parametrize("master", ["foo", "head:7077", "local2", "spark://", "yarn-client", ""])
def test_no_master(master: str) -> None:
    with pytest.raises(ClusterError, match="is no master of Spark; give"):
        check_master(master)


def test_yarn_needs_its_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ClusterError, match="neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set"):
        check_master("yarn")
    monkeypatch.setenv("YARN_CONF_DIR", str(tmp_path))
    check_master("yarn")


@pytest.mark.parametrize(
    ("labelkin", "spark", "content", "expected"),
    [
        (__version__, "4.3.0", "seen", None),
        (__version__, "4.3.1", "seen", None),
        (__version__, "4.2.0", "seen", "runs Spark 4.3.0, the driver 4.2.0"),
        ("0.0.1", "4.3.0", "seen", "the driver 0.0.1; install the same version"),
        (__version__, "4.3.0", "not seen", "on a file system that all of them share"),
    ],
)
def test_an_executor_that_differs(
    labelkin: str,
    spark: str,
    content: str,
    expected: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(task, "_spark_version", lambda: "4.3.0")
    (tmp_path / "probe").write_text("seen")
    environment = Environment(labelkin, spark, tmp_path / "probe", content)
    if expected is None:
        environment.check()
    else:
        with pytest.raises(ClusterError, match=expected):
            environment.check()


@dataclass(frozen=True)
class Opens(Task):
    """Opens a file that is not there."""

    output: Path
    file: Path

    def run(self) -> None:
        self.file.open()


def test_only_a_file_of_the_workspace_is_one_that_should_be_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Environment, "check", lambda self: None)
    workspace = tmp_path / "workspace"
    environment = Environment(__version__, "4.3.0", workspace / "probe", "")
    output = workspace / "kind" / "output"
    with pytest.raises(ClusterError, match="does not see the files of the other machines"):
        perform(environment, Opens(output, workspace / "terms" / "a"))
    with pytest.raises(FileNotFoundError, match="elsewhere"):
        perform(environment, Opens(output, tmp_path / "elsewhere"))


def test_an_output_that_a_file_system_shows_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed(folder: Path) -> list[Path]:
        (folder / "output").touch()
        return [folder / "output"]

    monkeypatch.setattr(Path, "iterdir", listed)
    monkeypatch.setattr(session, "_POLL_SECONDS", 0.0)
    task = Opens(tmp_path / "output", tmp_path / "file")
    Session._check_visible(object.__new__(Session), [task])
    task.output.unlink()
    monkeypatch.setattr(Path, "iterdir", lambda folder: [])
    monkeypatch.setattr(session, "_VISIBLE_SECONDS", 0.0)
    with pytest.raises(ClusterError, match="this machine does not see the files"):
        Session._check_visible(object.__new__(Session), [task])


class Idle:
    """A job that has finished some tasks and runs none."""

    error = None

    def __init__(self, done: int) -> None:
        self.done = done
        self.is_cancelled = False

    def start(self) -> None: ...

    def join(self, seconds: float) -> None: ...

    def is_alive(self) -> bool:
        return True

    def state(self) -> tuple[int, int]:
        return 0, self.done

    def cancel(self) -> None:
        self.is_cancelled = True


@pytest.mark.parametrize(("done", "expected"), [(0, "begun"), (3, "gone on")])
def test_the_patience_with_executors(
    done: int, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(MASTER, ClusterSection(), tmp_path, monkeypatch)
    idle = Idle(done)
    monkeypatch.setattr(session, "_Job", lambda *_: idle)
    waiting = Session(MASTER, ClusterSection(patience=1), tmp_path)
    began = time.monotonic()
    with pytest.raises(ClusterError, match=f"no executor has {expected} within 1 s"):
        waiting.run([Opens(tmp_path / "output", tmp_path / "file")])
    assert 1 <= time.monotonic() - began < 20
    assert idle.is_cancelled


class AtOnce(Idle):
    """A job that is finished when it is started."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        super().__init__(len(tasks))
        self.tasks = tasks

    def start(self) -> None:
        for one in self.tasks:
            one.output.touch()

    def is_alive(self) -> bool:
        return False


@dataclass(frozen=True)
class Long(Opens):
    """A task with text."""

    @property
    def characters(self) -> int:
        return 40


def test_spark_has_no_more_text_than_it_can_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[int] = []

    def job(context: object, tasks: Sequence[Task], *_: object) -> AtOnce:
        jobs.append(len(tasks))
        return AtOnce(tasks)

    started(MASTER, ClusterSection(), tmp_path, monkeypatch)
    monkeypatch.setattr(session, "_Job", job)
    monkeypatch.setattr(session, "WAVE", 100)
    shown: list[tuple[int, int]] = []
    several = [Long(tmp_path / str(number), tmp_path) for number in range(8)]
    several[0].output.touch()
    Session(MASTER, ClusterSection(), tmp_path).run(several, lambda *at: shown.append(at))
    assert jobs == [3, 3, 1]
    assert shown == [(1, 8), (4, 8), (7, 8), (8, 8)]


def test_without_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'labelkin\[spark\]'"):
        check_installed()


def test_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(session, "find_spec", lambda name: object())
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingExtraError, match="openjdk-17-jre-headless"):
        check_installed()


def test_an_old_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(session, "find_spec", lambda name: object())
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingExtraError, match="is Java 11, too old"):
        check_installed()


class Removed:
    """The context of an application that the cluster has removed."""

    def __getattr__(self, name: str) -> int:
        raise RuntimeError(
            f"An error occurred while calling o17.{name}.\n: java.lang."
            "IllegalStateException: Cannot call methods on a stopped SparkContext.\n\tat java"
        )


def test_an_application_that_was_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started(MASTER, ClusterSection(), tmp_path, monkeypatch)
    removed = Session(MASTER, ClusterSection(), tmp_path)
    removed._context = Removed()
    for name in ("slots", "address"):
        with pytest.raises(ClusterError, match="the cluster has ended the job") as raised:
            getattr(removed, name)
        assert "\n" not in str(raised.value)
