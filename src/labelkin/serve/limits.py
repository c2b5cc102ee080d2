"""What surrounds every request: its id, limits, time-outs, the access log and the figures.

Written against ASGI itself, not as middleware of the framework: streams in both
directions must pass through without being collected.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import time
from collections import Counter
from datetime import UTC, datetime

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from labelkin.serve.problems import ProblemError, response_to
from labelkin.serve.service import Service

access_logger = logging.getLogger("labelkin.access")

# Routes whose bodies are streams: their lines are limited, not the whole.
_STREAMS = re.compile(r"/api/v1/collections/[^/]+/(annotate|documents|learn)/*")
# A route whose body is a file, which goes to disk, whatever its type.
_UPLOADS = re.compile(r"/api/v1/collections/[^/]+/worklists/*")
# Those who watch the service must not be kept out by those who use it.
_ALWAYS = ("/api/v1/health", "/api/v1/ready", "/api/v1/metrics", "/metrics")
_LEADING_SLASHES = re.compile(r"^/{2,}")
_REQUEST_ID = re.compile(r"[\w.:-]{1,64}")
_UNMATCHED = "unmatched"
_COLLECTION = "{collection}"
_PREFIX = f"/api/v1/collections/{_COLLECTION}"
# In the log: the client closed the connection.
_CLOSED = 499


class Limits:
    """An ASGI application around another one."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service
        self._clients: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        _tidy_path(scope)
        exchange = _Exchange(scope, receive, send, self._service)
        client = scope["client"][0] if scope.get("client") else ""
        self._clients[client] += 1
        self._service.metrics.active.inc()
        try:
            most = self._service.settings.client_requests
            if most and self._clients[client] > most and scope["path"] not in _ALWAYS:
                await exchange.refuse(
                    ProblemError(
                        429,
                        f"more than {most} requests of this client are under way; wait for some "
                        "of them",
                        headers={"Retry-After": "1"},
                    )
                )
            else:
                await exchange.run(self._app)
        finally:
            self._service.metrics.active.dec()
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]
            exchange.finish()


def _tidy_path(scope: Scope) -> None:
    """Take `//v1` for `/v1`: base URLs of some clients end in a slash."""
    scope["path"] = _LEADING_SLASHES.sub("/", scope["path"])


class _Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, service: Service) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._service = service
        self._started = time.perf_counter()
        self._status = 0
        self._received = 0
        self._sent = 0
        self._is_received = False
        self._route = _UNMATCHED
        headers = dict(scope["headers"])
        self._id = _given_id(headers.get(b"x-request-id", b"")) or secrets.token_hex(8)
        length = headers.get(b"content-length", b"")
        self._length = int(length) if length.isdigit() else 0
        is_stream = scope["method"] == "POST" and _STREAMS.fullmatch(scope["path"]) is not None
        is_upload = scope["method"] == "POST" and _UPLOADS.fullmatch(scope["path"]) is not None
        is_unlimited = is_upload or (is_stream and not _is_json(headers))
        self._most = None if is_unlimited else service.settings.max_body
        scope.setdefault("state", {})["request_id"] = self._id

    async def run(self, app: ASGIApp) -> None:
        """Answer by `app`."""
        if self._most is not None and self._length > self._most:
            await self.refuse(self._too_large())
            return
        scope = self._scope
        if scope["method"] == "HEAD":
            # The server leaves out the body, because it knows the method that was asked for.
            scope = {**scope, "method": "GET"}
        try:
            await app(scope, self._counted_receive, self._counted_send)
        except ClientDisconnect:
            self._status = _CLOSED
        except Exception:
            # It was logged and answered, or the answer is broken off: the server closes it.
            if not self._status:
                raise
        finally:
            self._route = _route(scope)

    async def refuse(self, problem: ProblemError) -> None:
        """Answer with a problem."""
        self._service.metrics.refused.labels(str(problem.status_code)).inc()
        response = response_to(problem, self._scope["path"], self._id)
        await response(self._scope, self._receive, self._counted_send)

    def _too_large(self) -> ProblemError:
        return ProblemError(
            413, f"the body is larger than {self._most} bytes; send less, or a stream of documents"
        )

    async def _counted_receive(self) -> Message:
        seconds = self._service.settings.slow_seconds
        if self._is_received:
            # Waiting for the end of the connection, not for a part of the body.
            return await self._receive()
        try:
            async with asyncio.timeout(seconds):
                message = await self._receive()
        except TimeoutError:
            raise ProblemError(
                408,
                f"no part of the body came for {seconds:g} seconds",
                headers={"Connection": "close"},
            ) from None
        self._received += len(message.get("body", b""))
        if self._most is not None and self._received > self._most:
            raise self._too_large()
        self._is_received = not message.get("more_body", False)
        return message

    async def _counted_send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = list(message.get("headers", ()))
            headers.append((b"x-request-id", self._id.encode("ascii")))
            headers.append((b"x-content-type-options", b"nosniff"))
            message = {**message, "headers": headers}
        self._sent += len(message.get("body", b""))
        await self._send(message)

    def finish(self) -> None:
        """Count and log the request."""
        seconds = time.perf_counter() - self._started
        metrics = self._service.metrics
        metrics.requests.labels(self._route, self._scope["method"], str(self._status)).inc()
        metrics.seconds.labels(self._route).observe(seconds)
        if self._service.settings.access_log:
            access_logger.info(
                json.dumps(
                    {
                        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                        "request": self._id,
                        "client": self._scope["client"][0] if self._scope.get("client") else None,
                        "method": self._scope["method"],
                        "path": self._scope["path"],
                        "status": self._status,
                        "milliseconds": round(seconds * 1000, 1),
                        "received": self._received,
                        "sent": self._sent,
                    },
                    ensure_ascii=True,
                )
            )


def _route(scope: Scope) -> str:
    """The whole route: that of a router within a router lacks the prefix of the outer one."""
    path = str(getattr(scope.get("route"), "path", _UNMATCHED))
    if "collection" in scope.get("path_params", {}) and _COLLECTION not in path:
        return _PREFIX + path
    return path


def _is_json(headers: dict[bytes, bytes]) -> bool:
    given = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    return given == b"application/json"


def _given_id(value: bytes) -> str:
    text = value.decode("ascii", "replace")
    return text if _REQUEST_ID.fullmatch(text) else ""
