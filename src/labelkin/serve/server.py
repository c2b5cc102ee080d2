"""Runs the application: sockets, worker processes, slow clients, a shutdown without losses."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import re
import signal
import socket
import sys
import tempfile
from contextlib import ExitStack
from threading import Thread
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.supervisors import Multiprocess

from labelkin.exceptions import ConfigError
from labelkin.serve.app import create_app
from labelkin.serve.catalogue import Catalogue
from labelkin.serve.metrics import SHARED_VARIABLE
from labelkin.serve.service import Service
from labelkin.serve.settings import ServiceSettings

logger = logging.getLogger(__name__)

# How worker processes receive the settings.
_SETTINGS_VARIABLE = "LABELKIN_SERVE_SETTINGS"
# The largest head of a request: its first line and headers.
_MOST_HEAD = 65_536
_UPGRADE = re.compile(rb"\r\nUpgrade:(?=[^\r\n]*h2c)", re.IGNORECASE)
# Connections beyond the requests that may wait.
_SPARE_CONNECTIONS = 1000
# Connections that wait to be accepted.
_BACKLOG = 2048
_KEEP_ALIVE_SECONDS = 20
_SHUTDOWN_SECONDS = 30


class PatientProtocol(HttpToolsProtocol):
    """Closes connections whose requests do not begin in time, or begin with too much.

    Also those whose clients do not take their answers, or go on sending what has
    been answered already. uvicorn itself waits for ever in each case.
    """

    seconds = 20.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the head of a request."""
        super().connection_made(transport)
        self._head = 0
        self._has_body = False
        self._is_sending = False
        self._write_timer: asyncio.TimerHandle | None = None
        self._body_timer: asyncio.TimerHandle | None = None
        self._expect_head()

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(self.seconds, self._close_slow)

    def _close_slow(self) -> None:
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            # The answer to the request before is still being sent.
            self._expect_head()
        else:
            self.send_400_response("The head of the request did not come in time.")

    def data_received(self, data: bytes) -> None:
        """Count what is received until the head is complete."""
        self._is_sending = True
        is_first = not self._head
        self._head += len(data)
        if is_first and self.cycle is not None:
            # A further request on the same connection.
            self._head_timer.cancel()
            self._expect_head()
        if is_first and _UPGRADE.search(data):
            # Java's client offers HTTP/2 with every request. A server may ignore that, but the
            # parser would stop there and lose the body.
            head, end, rest = data.partition(b"\r\n\r\n")
            data = _UPGRADE.sub(b"\r\nX-Upgrade:", head) + end + rest
        super().data_received(data)
        if self._head > _MOST_HEAD and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")

    def on_headers_complete(self) -> None:
        """The head has come; bodies have limits of their own."""
        self._head_timer.cancel()
        self._head = -(2**62)
        self._has_body = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The body has come; the next bytes are the head of another request."""
        super().on_message_complete()
        self._head = 0
        self._has_body = False
        _cancel(self._body_timer)
        if self._write_timer is not None:
            # A client that reads nothing before it has sent everything begins now.
            self._expect_reading()

    def on_response_complete(self) -> None:
        """The answer was sent; a client that sends on gets some time to notice."""
        super().on_response_complete()
        if self._has_body:
            self._body_timer = self.loop.call_later(self.seconds, self.transport.close)

    def pause_writing(self) -> None:
        """The client reads more slowly than it is written to: it has some time to catch up."""
        super().pause_writing()
        self._expect_reading()

    def _expect_reading(self) -> None:
        _cancel(self._write_timer)
        self._is_sending = False
        self._write_timer = self.loop.call_later(self.seconds, self._close_unread)

    def _close_unread(self) -> None:
        if self._has_body and self._is_sending and not self.pipeline:
            # It is still sending the body that is being answered, and may read afterwards.
            self._expect_reading()
        else:
            self.transport.abort()

    def resume_writing(self) -> None:
        """The client has caught up."""
        _cancel(self._write_timer)
        self._write_timer = None
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        for timer in (self._head_timer, self._write_timer, self._body_timer):
            _cancel(timer)
        super().connection_lost(exc)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket at an address; ConfigError if it cannot be had. Port 0 is any free one."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with ExitStack() as stack:
            listening = stack.enter_context(socket.socket(family, kind, protocol))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            # From now on clients may connect; they wait until the application has started.
            listening.listen(_BACKLOG)
            # Worker processes share it.
            listening.set_inheritable(True)
            stack.pop_all()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"cannot listen at {host}, port {port}: {reason}; choose others with --host and --port"
        ) from error
    return listening


def worker_app() -> ASGIApp:
    """The application of one worker process."""
    settings = ServiceSettings.model_validate_json(os.environ[_SETTINGS_VARIABLE])
    PatientProtocol.seconds = settings.slow_seconds
    set_up_logging(settings)
    Thread(target=_end_with_parent, name="labelkin-parent", daemon=True).start()
    return create_app(Service(settings))


def _end_with_parent() -> None:
    """Shut down once the parent process has gone: whoever starts it again needs the port."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        logger.warning("the parent process has ended; shutting down")
        signal.raise_signal(signal.SIGTERM)


def run(settings: ServiceSettings, listening: socket.socket) -> None:
    """Serve until a signal ends it; running requests are finished."""
    options: dict[str, Any] = {
        "http": PatientProtocol,
        "ws": "none",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "limit_concurrency": settings.queue + settings.concurrency + _SPARE_CONNECTIONS,
        "timeout_keep_alive": _KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": _SHUTDOWN_SECONDS,
    }
    set_up_logging(settings)
    if settings.workers == 1:
        PatientProtocol.seconds = settings.slow_seconds
        server = uvicorn.Server(uvicorn.Config(create_app(Service(settings)), **options))
        # uvicorn stops at these signals and then sends them again to whoever had them before.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: setattr(server, "should_exit", True))
        server.run([listening])
        return
    # What is wrong with a collection is an error here, not one of workers that start for ever.
    Catalogue(settings.collections, read_only=settings.read_only).close()
    os.environ[_SETTINGS_VARIABLE] = settings.model_dump_json()
    with tempfile.TemporaryDirectory(prefix="labelkin-figures-") as folder:
        os.environ[SHARED_VARIABLE] = folder
        config = uvicorn.Config(
            "labelkin.serve.server:worker_app", factory=True, workers=settings.workers, **options
        )
        Multiprocess(config, [listening]).run()


def set_up_logging(settings: ServiceSettings) -> None:
    """Write the access log to standard output, everything else to standard error."""
    root = logging.getLogger("labelkin")
    if not root.handlers:
        # In a worker process: the command itself has set up its own.
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(f"worker {os.getpid()}: %(message)s"))
        root.addHandler(handler)
    logging.getLogger("labelkin.serve").setLevel(logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    access = logging.getLogger("labelkin.access")
    access.propagate = False
    access.setLevel(logging.INFO)
    if settings.access_log and not access.handlers:
        handler = logging.StreamHandler(sys.stdout)
        handler.setFormatter(logging.Formatter("%(message)s"))
        access.addHandler(handler)


def _is_news(record: logging.LogRecord) -> bool:
    """Leave out what uvicorn says of a stream that was broken off on purpose."""
    return "returned without completing response" not in record.getMessage()
