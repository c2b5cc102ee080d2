"""The page for indexers: files that come with the package, with a strict security policy."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.resources import files

from fastapi import APIRouter, Request, Response

from labelkin.serve.problems import ProblemError

router = APIRouter(include_in_schema=False)

_INDEX = "index.html"
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEADERS = {
    # Nothing from elsewhere, nothing inline: what comes from data can never become code.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@lru_cache(maxsize=1)
def _files() -> dict[str, tuple[bytes, str, str]]:
    """The content, media type and tag of each file, by name."""
    found = {}
    for file in (files("labelkin.serve") / "page").iterdir():
        suffix = "." + file.name.rpartition(".")[2]
        if suffix in _MEDIA_TYPES:
            content = file.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
            found[file.name] = (content, _MEDIA_TYPES[suffix], tag)
    return found


@router.get("/")
async def index(request: Request) -> Response:
    """The page."""
    return await file(request, _INDEX)


@router.get("/{name}")
async def file(request: Request, name: str) -> Response:
    """One of the files of the page."""
    if name not in _files():
        raise ProblemError(404, "Not Found")
    content, media_type, tag = _files()[name]
    headers = {**_HEADERS, "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, headers={**headers, "Content-Type": media_type})
