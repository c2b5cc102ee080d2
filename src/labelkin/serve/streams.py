"""JSON Lines in both directions at once, for any number of lines in bounded memory."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import IO

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from labelkin.serve.problems import ProblemError
from labelkin.serve.records import media_type

logger = logging.getLogger(__name__)

JSON_LINES = "application/x-ndjson"
_MEDIA_TYPES = (JSON_LINES, "application/jsonl", "application/jsonlines", "application/json-lines")
# Results that the client has not taken yet go to disk beyond this size.
_IN_MEMORY = 1_000_000
_CHUNK = 65_536
# Long lines make smaller batches.
_BATCH_BYTES = 4_000_000


def is_json_lines(request: Request) -> bool:
    """Whether the body of a request is JSON Lines."""
    return media_type(request) in _MEDIA_TYPES


Lines = list[tuple[int, str]]


async def line_batches(
    request: Request, longest: int, most: int, *, eager: bool
) -> AsyncIterator[Lines]:
    """The lines of a body with their numbers, up to `most` at a time; blank ones are left out.

    `eager` batches do not wait for more than has arrived: a client may wait for
    the answer to a line before it sends the next one. A line of more than
    `longest` bytes is a 413.
    """
    batch: Lines = []
    rest, number, size = b"", 0, 0
    async for chunk in request.stream():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            number += 1
            if len(line) > longest:
                if batch:
                    yield batch
                raise _too_long(number, longest)
            if line.strip():
                batch.append((number, line.decode("utf-8", "replace")))
                size += len(line)
            if len(batch) >= most or size >= _BATCH_BYTES:
                yield batch
                batch, size = [], 0
        is_too_long = len(rest) > longest
        if batch and (eager or is_too_long):
            yield batch
            batch, size = [], 0
        if is_too_long:
            raise _too_long(number + 1, longest)
    if rest.strip():
        batch.append((number + 1, rest.decode("utf-8", "replace")))
    if batch:
        yield batch


def _too_long(number: int, longest: int) -> ProblemError:
    return ProblemError(413, f"line {number} is longer than {longest} bytes; shorten the text")


class LinesResponse(Response):
    """Sends lines while the body of the request is still being received.

    Many clients send everything before they read anything. So `produce` never
    waits for the client to read: what it writes is held in a temporary file.
    An answer that cannot be finished gets a last line with the error and is not
    ended: the server closes the connection, so that nobody takes it for a whole one.
    """

    def __init__(self, produce: Callable[[Callable[[bytes], None]], Awaitable[None]]) -> None:
        super().__init__(media_type=JSON_LINES)
        # Its length is not known yet.
        del self.headers["content-length"]
        self._produce = produce

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Answer the request."""
        start = {
            "type": "http.response.start",
            "status": self.status_code,
            "headers": self.raw_headers,
        }
        await send(start)
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
            spool = _Spool(file)
            producer = asyncio.create_task(self._produce_to(spool))
            try:
                while chunk := await spool.next():
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                is_whole = await producer
            finally:
                producer.cancel()
        if is_whole:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _produce_to(self, spool: _Spool) -> bool:
        """Write all lines; False if that failed."""
        try:
            await self._produce(spool.write)
        except (ClientDisconnect, HTTPException):
            return False
        except Exception:
            logger.exception("a stream failed")
            spool.write(b'{"error": "an error of labelkin; its log has the details"}\n')
            return False
        finally:
            spool.end()
        return True


class _Spool:
    """Bytes that are written at one end of a file and read at the other."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._written = 0
        self._read = 0
        self._is_complete = False
        self._news = asyncio.Event()

    def write(self, chunk: bytes) -> None:
        """Append bytes."""
        self._file.seek(self._written)
        self._file.write(chunk)
        self._written += len(chunk)
        self._news.set()

    def end(self) -> None:
        """Nothing more will be written."""
        self._is_complete = True
        self._news.set()

    async def next(self) -> bytes:
        """The next bytes; waits for them, and returns none at the end."""
        while self._read == self._written and not self._is_complete:
            self._news.clear()
            await self._news.wait()
        self._file.seek(self._read)
        chunk = self._file.read(_CHUNK)
        self._read += len(chunk)
        if self._read == self._written:
            # Everything was taken: the file can start over.
            self._file.seek(0)
            self._file.truncate()
            self._read = self._written = 0
        return chunk
