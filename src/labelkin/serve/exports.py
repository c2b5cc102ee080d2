"""Files as answers: written to disk first, so that an answer is whole or an error."""

from __future__ import annotations

import asyncio
import io
import re
import tempfile
from collections.abc import AsyncIterator, Callable
from typing import IO, Any
from urllib.parse import quote

from starlette.background import BackgroundTask
from starlette.responses import StreamingResponse

from labelkin.serve.streams import JSON_LINES

MEDIA_TYPES = {
    "jsonl": JSON_LINES,
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "annif-tsv": "text/tab-separated-values; charset=utf-8",
}
_EXTENSIONS = {"annif-tsv": "tsv"}
_SCHEMAS = {"json": {"type": "array", "items": {"$ref": "#/components/schemas/Record"}}}
_CHUNK = 65_536
_NOT_PLAIN = re.compile(r"[^\w.-]+", re.ASCII)


def described(*formats: str) -> dict[int | str, dict[str, Any]]:
    """The answer of an export, for its description."""
    content = {
        MEDIA_TYPES[one].partition(";")[0]: {"schema": _SCHEMAS.get(one, {"type": "string"})}
        for one in formats
    }
    return {200: {"description": "A file in the format asked for.", "content": content}}


def written(write: Callable[[IO[str]], object]) -> IO[bytes]:
    """A temporary file with what `write` writes, at its beginning."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the answer closes it
    try:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="\n")
        write(text)
        text.flush()
        text.detach()
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


class ExportResponse(StreamingResponse):
    """Sends a file to be saved; `name` has no extension."""

    def __init__(self, file: IO[bytes], name: str, format: str) -> None:
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        whole = f"{name}.{_EXTENSIONS.get(format, format)}"
        plain = _NOT_PLAIN.sub("_", whole)
        disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(whole, safe='')}"
        super().__init__(
            _chunks(file),
            headers={"Content-Disposition": disposition, "Content-Length": str(size)},
            media_type=MEDIA_TYPES[format],
            background=BackgroundTask(file.close),
        )


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    try:
        while chunk := await asyncio.to_thread(file.read, _CHUNK):
            yield chunk
    finally:
        file.close()
