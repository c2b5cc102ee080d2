"""Running services for tests: in a thread of this process, or as processes of their own."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
import uvicorn

from labelkin import Indexer
from labelkin.demo import demo_concepts, demo_documents
from labelkin.serve.app import create_app
from labelkin.serve.server import PatientProtocol, listening_socket
from labelkin.serve.service import Service
from labelkin.serve.settings import TOKEN_VARIABLE, ServiceSettings
from labelkin.vocab import Concept, Vocabulary

TOKEN = "a token: with a colon"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
# What a URL gives a meaning of its own, in ids of concepts and of documents.
ODD_IDS = (
    "http://example.org/a?b=c&d#e",
    "with space/and slash",
    "100%2F",
    "a%20b",
    "Ärger mit 😀",
    "a;b=c,d+e",
    "..",
    ".",
    "../../etc/passwd",
    "trailing/",
)
ODD_CONCEPTS = tuple(
    Concept(identifier, {"en": f"Oddity {number}", "de": f"Sonderling {number}"})
    for number, identifier in enumerate(ODD_IDS)
)
TEXT = "Notes on honeybee breeding and potato storage"


def make_small(path: Path, documents: int = 60) -> Path:
    """A collection without models: fast to make and to load."""
    vocabulary = Vocabulary([*demo_concepts(0), *ODD_CONCEPTS])
    with Indexer.create(path, vocabulary, language="en") as indexer:
        indexer.add(demo_documents(documents, 0))
        # Writes the caches that a service would write when it starts.
        indexer.warm_up(indexer.usable_methods())
    return path


def eventually(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "not within the time"
        time.sleep(0.01)


def checksums(folder: Path) -> dict[str, str]:
    """The checksum of every file below a folder.

    Without what SQLite puts beside an open database: shared memory, and a log if it is empty.
    """
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
        and not file.name.endswith("-shm")
        and (file.stat().st_size or not file.name.endswith("-wal"))
    }


def complaints(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Warnings and errors in the log; the level of other lines depends on the tests before."""
    return [one for one in caplog.records if one.levelno >= logging.WARNING]


class Running:
    """A service at a port of this machine; `http` calls it with the token."""

    def __init__(self, port: int, service: Service | None = None) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._service = service
        self.http = httpx.Client(base_url=self.url, headers=BEARER, timeout=30.0)

    @property
    def service(self) -> Service:
        """The service itself, if it runs in this process."""
        assert self._service is not None
        return self._service

    def wait(self) -> None:
        """Wait until all models are loaded."""
        eventually(lambda: self.http.get("/api/v1/ready").status_code == 200, 60.0)

    def connect(self) -> socket.socket:
        """A connection of its own, for what HTTP clients do not send."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20.0)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def raw(self, request: bytes) -> bytes:
        """Everything that comes back for these bytes until the connection is closed.

        Ask for `Connection: close` in a valid request.
        """
        with self.connect() as connection:
            try:
                connection.sendall(request)
                return received(connection)
            except ConnectionError:
                return b""


def received(connection: socket.socket) -> bytes:
    """What comes until the other end closes the connection."""
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
    return b"".join(parts)


def head(method: str, path: str, *headers: str) -> bytes:
    """The head of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


@contextmanager
def running(
    paths: Mapping[str, Path], *, token: str = TOKEN, wait: bool = True, **settings: Any
) -> Iterator[Running]:
    """Serve collections from a thread, by the real server."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(TOKEN_VARIABLE, token)
        service = Service(ServiceSettings(collections=dict(paths), **settings))
    protocol = type("Protocol", (PatientProtocol,), {"seconds": service.settings.slow_seconds})
    config = uvicorn.Config(
        create_app(service),
        http=protocol,
        ws="none",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    with listening_socket("127.0.0.1", 0) as listening:
        thread = Thread(target=server.run, args=([listening],), name="server")
        thread.start()
        eventually(lambda: server.started or not thread.is_alive())
        live = Running(listening.getsockname()[1], service)
        try:
            with live.http:
                if wait:
                    live.wait()
                yield live
        finally:
            server.should_exit = True
            thread.join()


class Spawned(Running):
    """`labelkin serve` as a process of its own."""

    def __init__(self, process: subprocess.Popen[str], port: int, log: Path) -> None:
        super().__init__(port)
        self.process = process
        self.log = log


@contextmanager
def spawned(*arguments: object, log: Path, token: str = TOKEN) -> Iterator[Spawned]:
    """Run `labelkin serve …` at any free port; `log` receives what it writes."""
    command = [sys.executable, "-m", "labelkin", "serve", *map(str, arguments), "--port", "0"]
    with log.open("a+", encoding="utf-8") as output:
        began = output.tell()
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, TOKEN_VARIABLE: token},
            text=True,
        )
    try:
        address = re.compile(r"Serving .* at http://[^ ]+:(\d+) ")

        def announced() -> re.Match[str] | None:
            assert process.poll() is None, log.read_text(encoding="utf-8")
            return address.search(log.read_text(encoding="utf-8")[began:])

        eventually(announced, 60.0)
        match = announced()
        assert match is not None
        service = Spawned(process, int(match[1]), log)
        with service.http:
            service.wait()
            yield service
    finally:
        process.kill()
        process.wait()


Serve = Callable[..., AbstractContextManager[Running]]


def copied(path: Path, folder: Path) -> Path:
    """A copy of a collection that a test may change."""
    return shutil.copytree(path, folder / path.name)
