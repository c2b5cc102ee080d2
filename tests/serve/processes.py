"""Servers in processes of their own, and connections to them; needs nothing but Python.

Used by the tests that kill servers, by the load tests, and by benchmarks/serve.py.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

TOKEN = "token-of-the-tests"
HOST = "127.0.0.1"
# Processes, their memory and their descriptors are looked up there.
HAS_PROC = Path("/proc/self/fd").is_dir()
_SERVING = re.compile(r"Serving .* at http://[^:]+:(\d+)")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MEGABYTE = 1e6


class Server:
    """A server in a process of its own; everything it prints goes to a log file.

    `port` is 0 if the server chooses one and prints it as labelkin does.
    """

    def __init__(
        self, command: Sequence[str], log: Path, port: int = 0, ready_path: str = "/api/v1/ready"
    ) -> None:
        self.command = list(command)
        self.log = log
        self.port = port
        self.ready_path = ready_path
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        """Start the process; `wait_until_ready` waits for it."""
        with self.log.open("ab") as log:
            self._begin = log.tell()
            self.process = subprocess.Popen(
                self.command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **(environment or {})},
                # A group of its own, so that nothing of it outlives the test.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def wait_until_ready(self, seconds: float = 120.0) -> None:
        """Wait until the server says that it is ready; fail with its log if it ends."""
        ends = time.monotonic() + seconds
        while not self._is_ready():
            assert self.process is not None
            if self.process.poll() is not None or time.monotonic() > ends:
                state = f"ended with {self.process.poll()}" if self.process.poll() else "not ready"
                raise AssertionError(f"{self.command[:4]}: {state}\n{self.output()[-3000:]}")
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        if not self.port:
            match = _SERVING.search(self.output())
            if match is None:
                return False
            self.port = int(match[1])
        try:
            with Session(self.port, timeout=10) as session:
                return session.ask("GET", self.ready_path).status == 200
        except ConnectionLostError:
            return False

    def output(self) -> str:
        """What the server has printed since it was started."""
        return self.log.read_bytes()[self._begin :].decode("utf-8", "replace")

    def session(self, timeout: float = 120.0) -> Session:
        """A connection to the server."""
        return Session(self.port, timeout=timeout)

    def workers(self) -> list[int]:
        """The processes below the first one that have the command of a Python worker."""
        return [pid for pid in self.pids() if pid != self.pid and b"spawn_main" in _command(pid)]

    def pids(self) -> list[int]:
        """The process and all below it."""
        return process_tree(self.pid)

    def kill(self) -> None:
        """`kill -9` to the first process; what is below it has to notice by itself."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self, seconds: float = 60.0) -> int:
        """Ask the server to end and wait for it; its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(seconds)
        finally:
            self.end()

    def end(self) -> None:
        """Kill whatever is left of the process and its children."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        assert self.process is not None
        self.process.wait()


def labelkin_server(
    collections: Mapping[str, Path], log: Path, *options: str, port: int = 0
) -> Server:
    """`labelkin serve` of some collections, not started yet."""
    named = [f"{name}={path}" for name, path in collections.items()]
    arguments = ["-m", "labelkin", "serve", *named, "--host", HOST, "--port", str(port), *options]
    return Server([sys.executable, *arguments], log, port)


@contextmanager
def serving(
    collections: Mapping[str, Path], log: Path, *options: str, port: int = 0
) -> Iterator[Server]:
    """`labelkin serve` while the block runs, ready, and with writes on."""
    server = labelkin_server(collections, log, *options, port=port)
    server.start({"LABELKIN_TOKEN": TOKEN})
    try:
        server.wait_until_ready()
        yield server
        assert server.stop() == 0, server.output()[-3000:]
    finally:
        server.end()


class ConnectionLostError(Exception):
    """The server has closed the connection, or there is none at all."""


@dataclass(frozen=True)
class Answer:
    """Status and body of an answer."""

    status: int
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Session:
    """One connection that is kept open, for one thread."""

    def __init__(self, port: int, timeout: float = 120.0) -> None:
        self._connection = http.client.HTTPConnection(HOST, port, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def ask(
        self,
        method: str,
        path: str,
        *,
        json_body: Any = None,
        form: Mapping[str, Any] | None = None,
        lines: Sequence[Any] | None = None,
    ) -> Answer:
        """The answer to a request; ConnectionLostError if none comes."""
        headers, body = {"Authorization": f"Bearer {TOKEN}"}, None
        if json_body is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(json_body).encode()
        elif form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            body = urlencode(form).encode()
        elif lines is not None:
            headers["Content-Type"] = "application/x-ndjson"
            body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        try:
            self._connection.request(method, path, body, headers)
            response = self._connection.getresponse()
            return Answer(response.status, response.read())
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise ConnectionLostError(repr(error)) from error


def process_tree(pid: int) -> list[int]:
    """A process and all below it."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = int(_stat(int(folder.name))[1])
            except OSError:
                continue
            parents.setdefault(parent, []).append(int(folder.name))
    tree = [pid]
    for one in tree:
        tree += parents.get(one, ())
    return tree


def cpu_seconds(pids: Sequence[int]) -> float:
    """CPU time that processes have used until now."""
    ticks = [fields for fields in map(_stat_or_none, pids) if fields]
    return sum(int(fields[11]) + int(fields[12]) for fields in ticks) / _TICKS


def resident_megabytes(pids: Sequence[int]) -> float:
    """Resident memory of processes; pages that they share count in each."""
    total = 0
    for pid in pids:
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except OSError:
            continue
    return total * _PAGE / _MEGABYTE


def proportional_megabytes(pids: Sequence[int]) -> float:
    """Memory of processes; each shared page counts once, however many of them share it."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total * 1024 / _MEGABYTE


def open_descriptors(pids: Sequence[int]) -> int:
    """How many files, pipes and connections processes have open."""
    total = 0
    for pid in pids:
        try:
            total += len(list(Path(f"/proc/{pid}/fd").iterdir()))
        except OSError:
            continue
    return total


def is_running(pid: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    fields = _stat_or_none(pid)
    return fields is not None and fields[0] != "Z"


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, which may contain anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _stat_or_none(pid: int) -> list[str] | None:
    try:
        return _stat(pid)
    except OSError:
        return None


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
