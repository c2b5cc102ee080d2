"""The page for indexers: files that come with the package, with a strict security policy."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from fastapi import APIRouter, Request, Response

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


def _route(path: str, content: bytes, media_type: str) -> None:
    """Serve a file at a path, and at no other: `/v1` must still lead to `/v1/`."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {**_HEADERS, "ETag": tag}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers={**headers, "Content-Type": media_type})

    router.add_api_route(path, answer)


for _file in (files("labelkin.serve") / "page").iterdir():
    _media_type = _MEDIA_TYPES.get("." + _file.name.rpartition(".")[2])
    if _media_type is not None:
        _path = "/" if _file.name == _INDEX else f"/{_file.name}"
        _route(_path, _file.read_bytes(), _media_type)
