"""Who may see the desk of a collection: drafts are people's own, so reading needs the token too."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from labelkin.serve.answers import problems
from labelkin.serve.service import Service

READ = problems(401, 403, 404, 422, 429, 503)
WRITE = problems(400, 401, 403, 404, 408, 413, 415, 422, 429, 503, 507)


async def desk_reader_of(request: Request) -> Service:
    """The service, if the request has the token; else a problem. Also of a read-only service."""
    service: Service = request.app.state.service
    service.access.check_token(request.headers, "access to work lists and verdicts")
    return service


DeskReaderOf = Annotated[Service, Depends(desk_reader_of)]
