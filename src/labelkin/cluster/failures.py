"""What Spark reports, as one line that says what to do."""

from __future__ import annotations

import re
from pathlib import Path

from labelkin import exceptions
from labelkin.exceptions import ClusterError, LabelkinError, MissingExtraError, WrongKindError
from labelkin.wording import shortened

# An error that labelkin has raised on an executor: the last line of a Python traceback.
_OWN = re.compile(r"labelkin\.exceptions\.(\w+): (.+)")
_MODULE = re.compile(r"No module named '([\w.]+)'")
# What Python's fault handler writes; `Aborted` may as well be for lack of memory.
_CRASH = re.compile(r"Fatal Python error: (Segmentation fault|Illegal instruction|Bus error)")
_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_PYTHON_ERROR = re.compile(r"^(\w+(?:\.\w+)*(?:Error|Exception|Interrupt)): (.*)$", re.MULTILINE)
# What Java has raised, in the words of Py4J: `An error occurred while calling X.` comes before it.
_JAVA_KIND = r"(?:[\w.$]+(?:Error|Exception): )?"
_JAVA_ERROR = re.compile(rf"^: {_JAVA_KIND}(.+)$", re.MULTILINE)
_TASK_ERROR = re.compile(
    rf"most recent failure: .*?\(TID \d+\)(?: \([^)]*\))?: {_JAVA_KIND}(.+)$", re.MULTILINE
)
# The last words of a Java process that does not start.
_LOGGED_ERROR = re.compile(
    r'^(?:Exception in thread "[^"]*" |Error occurred during initialization of VM\n|Error: )'
    rf"{_JAVA_KIND}(.+)$",
    re.MULTILINE,
)
_NO_JAVA = "JAVA_GATEWAY_EXITED"
# Memory of a Java process, and what else a machine or a container has too little of.
_HEAP = re.compile(r"Java heap space|GC overhead limit|(?:code|status:?) 52\b")
_IN_EXECUTOR = re.compile("most recent failure|[Ll]ost executor|ExecutorLostFailure")
_LEAST_HEAP = ("INVALID_DRIVER_MEMORY", "INVALID_EXECUTOR_MEMORY")
_MEMORY = (
    "OutOfMemoryError",
    "MemoryError",
    "Cannot allocate memory",
    "Python worker exited unexpectedly",
    "exit code 137",
    "exited with code 137",
    "code 137 (",
    "Container killed",
    "std::bad_alloc",
    # The system's loader, where a compiled module finds no room.
    "failed to map segment from shared object",
    "cannot create shared object descriptor",
    "cannot map zero-fill pages",
    "can't start new thread",
)
_MORE_OVERHEAD = (
    " or, on YARN and Kubernetes, more memory (spark.executor.memoryOverhead), in the options of "
    "[cluster] in labelkin.toml"
)
_OTHER_VERSION = (
    "does not exist in the JVM",
    "'JavaPackage' object is not callable",
    "InvalidClassException",
    "local class incompatible",
    "StreamCorruptedException",
    "NoClassDefFoundError",
    "NoSuchMethodError",
)
_NO_MASTER_URL = ("Could not parse Master URL", "Invalid master URL")
_NO_ANSWER = (
    "All masters are unresponsive",
    "Connection refused",
    "Failed to connect to",
    "UnknownHostException",
)
_STOPPED = ("stopped SparkContext", "SparkContext was shut down", "Master removed our application")
_TRACEBACK = "Traceback (most recent call last)"
_LOG_BYTES = 200_000


def explained(
    error: BaseException, master: str, python: str, log: Path, *, starting: bool = False
) -> LabelkinError:
    """The error to raise for one of Spark's; `log` is what its Java part has printed.

    `starting` is whether Spark was being started: it has finished nothing then.
    """
    text = str(error)
    if own := _OWN.findall(text):
        name, message = own[-1]
        return _raised_again(name, message, master)
    kept = "" if starting else "; finished parts are kept: run the same command again"
    if missing := _MODULE.search(text):
        module = missing[1].split(".")[0]
        what = "'labelkin[spark]' there" if module == "labelkin" else "there what is installed here"
        return ClusterError(
            f"{master}: the Python of the workers, {python}, has no {module}; install {what}, or "
            "name another Python in labelkin.toml ([cluster] python)"
        )
    if program := _PROGRAM.search(text):
        return ClusterError(
            f"{master}: the workers have no {program[1]}; name the Python that has labelkin there "
            "in labelkin.toml ([cluster] python)"
        )
    if "PYTHON_VERSION_MISMATCH" in text or "different minor version" in text:
        return ClusterError(
            f"{master}: the Python of the workers, {python}, is of another version than that of "
            "the driver; use the same minor version (3.11, 3.12, …) on all machines"
        )
    is_local = master.startswith("local")
    if any(sign in text for sign in _LEAST_HEAP):
        return ClusterError(
            f"{master}: {shortened(_reason(text, ''), 200)} Raise executor_memory in [cluster] of "
            "labelkin.toml, or spark.driver.memory in its options"
        )
    if _HEAP.search(text):
        if is_local or _IN_EXECUTOR.search(text):
            return ClusterError(
                f"{master}: the Java part of an executor ran out of memory; raise executor_memory "
                f"in [cluster] of labelkin.toml{kept}"
            )
        return ClusterError(
            f"{master}: the Java part of the driver ran out of memory; raise spark.driver.memory "
            f"in the options of [cluster] in labelkin.toml{kept}"
        )
    if crash := _CRASH.search(text):
        return ClusterError(
            f"{master}: Python has crashed on a worker ({crash[1]}), in a compiled package; "
            f"install there what is installed here, for the worker's processor (see {log}){kept}"
        )
    if any(sign in text for sign in _MEMORY):
        fewer = "--on local[1]" if is_local else "spark.executor.cores"
        more = "" if is_local else _MORE_OVERHEAD
        return ClusterError(
            f"{master}: an executor ran out of memory, which Python needs for each core; give it "
            f"fewer cores ({fewer}){more}{kept}"
        )
    if any(sign in text for sign in _NO_MASTER_URL):
        return no_master(master)
    printed = _end_of(log)
    # What Spark has printed says nothing of an error in Python.
    logged = text if _TRACEBACK in text else f"{text}\n{printed}"
    if any(sign in logged for sign in _OTHER_VERSION):
        return ClusterError(
            f"{master}: runs another version of Spark than the pyspark here, {_version()}; install "
            f"the cluster's version of pyspark, or upgrade the cluster (see {log})"
        )
    # Later Spark complains of connections whenever a worker is lost.
    if starting and any(sign in logged for sign in _NO_ANSWER):
        return ClusterError(
            f"{master}: no answer from a Spark {_version()} there; is the master running, and can "
            f"it reach this machine? (see {log})"
        )
    if any(sign in text for sign in _STOPPED):
        return ClusterError(f"{master}: the cluster has ended the job (see {log}){kept}")
    what = "Spark does not start" if starting else "the job failed"
    reason = shortened(_reason(text, printed), 200)
    return ClusterError(f"{master}: {what}: {reason} (see {log}){kept}")


def _raised_again(name: str, message: str, master: str) -> LabelkinError:
    """An error that labelkin has raised on an executor."""
    kind: type[LabelkinError] = getattr(exceptions, name, ClusterError)
    if kind is WrongKindError:
        return ClusterError(message)
    if kind is MissingExtraError:
        # Here, the extra may well be installed.
        message = f"on a worker of {master}: {message}"
    return kind(message)


def no_master(master: str) -> ClusterError:
    """The error for what Spark does not take as a master."""
    return ClusterError(
        f"{master!r} is no master of Spark; give local[*], spark://HOST:PORT, yarn or "
        "k8s://HOST:PORT"
    )


def _reason(text: str, printed: str) -> str:
    """The line of an error, or of what Spark has printed, that says what is wrong."""
    if errors := _PYTHON_ERROR.findall(text):
        kind, message = errors[-1]
        return f"{kind}: {message}"
    if match := _TASK_ERROR.search(text) or _JAVA_ERROR.search(text):
        return match[1]
    if _NO_JAVA in text and (reasons := _LOGGED_ERROR.findall(printed)):
        return str(reasons[-1])
    return text.strip().partition("\n")[0]


def _end_of(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(log.stat().st_size - _LOG_BYTES, 0))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _version() -> str:
    import pyspark

    return str(pyspark.__version__)
