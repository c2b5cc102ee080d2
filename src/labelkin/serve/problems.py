"""Errors as `application/problem+json` (RFC 9457): one line that says what to do."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from labelkin import exceptions as errors
from labelkin.messages import Problem

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
# The first class that an error is an instance of decides.
_STATUSES: tuple[tuple[type[errors.LabelkinError], int], ...] = (
    (errors.CollectionReadOnlyError, 403),
    (errors.CollectionFullError, 507),
    (errors.CollectionBehindError, 422),
    (errors.CollectionError, 503),
    (errors.ModelError, 503),
    (errors.MissingExtraError, 503),
    (errors.LabelkinError, 422),
)
# After a 503 of these, the same request may succeed a little later.
_PASSING = (errors.CollectionBusyError,)
_SHOWN = 100
# The client closed the connection before it had sent everything.
_CLOSED = 499


class ProblemError(HTTPException):
    """An error that becomes an answer; `detail` is its one line."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        title: str = "",
        headers: Mapping[str, str] | None = None,
        parts: Sequence[Mapping[str, str]] = (),
    ) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.title = title
        self.parts = parts


def busy(detail: str) -> ProblemError:
    """A 503 with the advice to try again in a second."""
    return ProblemError(503, detail, headers={"Retry-After": "1"})


def as_problem(error: errors.LabelkinError) -> ProblemError:
    """The answer to a request that labelkin cannot fulfil."""
    if isinstance(error, _PASSING):
        return busy(str(error))
    status = next(status for kind, status in _STATUSES if isinstance(error, kind))
    return ProblemError(status, str(error))


def response_to(problem: HTTPException, path: str, instance: str | None) -> Response:
    """A problem as the answer to a request; Annif's API says in plain text what is too large."""
    headers = dict(problem.headers or {})
    if problem.status_code == 413 and path.startswith("/v1"):
        return PlainTextResponse(str(problem.detail), problem.status_code, headers)
    optional: dict[str, Any] = {}
    if parts := getattr(problem, "parts", ()):
        optional["errors"] = [dict(part) for part in parts]
    if instance is not None:
        optional["instance"] = f"urn:labelkin:request:{instance}"
    message = Problem(
        type="about:blank",
        title=getattr(problem, "title", "") or HTTPStatus(problem.status_code).phrase,
        status=problem.status_code,
        detail=str(problem.detail),
        **optional,
    )
    content = message.model_dump_json(exclude_unset=True)
    return Response(content, problem.status_code, headers, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Make every error of an application a problem."""

    async def on_http(request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            raise error
        path = request.url.path
        if error.status_code == 404 and error.detail == "Not Found":
            shown = path[:_SHOWN]
            error = ProblemError(404, f"there is nothing at {shown}; see /api/v1/openapi.json")
        return response_to(error, path, _request_id(request))

    async def on_labelkin(request: Request, error: Exception) -> Response:
        if not isinstance(error, errors.LabelkinError):
            raise error
        problem = as_problem(error)
        problem.detail = request.app.state.service.catalogue.without_paths(problem.detail)
        return await on_http(request, problem)

    async def on_invalid(request: Request, error: Exception) -> Response:
        if not isinstance(error, RequestValidationError):
            raise error
        return await on_http(request, invalid(request, error.errors()))

    async def on_closed(_: Request, error: Exception) -> Response:
        if not isinstance(error, ClientDisconnect):
            raise error
        # For the log only: nobody reads it.
        return Response(status_code=_CLOSED)

    async def on_failure(request: Request, error: Exception) -> Response:
        # Of a connection that is lost there is nothing to be mended.
        if not isinstance(error, ConnectionError | ClientDisconnect):
            logger.error("request %s failed", _request_id(request), exc_info=error)
        problem = ProblemError(500, "an error of labelkin; the log of the service has the details")
        return response_to(problem, request.url.path, _request_id(request))

    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(errors.LabelkinError, on_labelkin)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(ClientDisconnect, on_closed)
    app.add_exception_handler(Exception, on_failure)


def invalid(request: Request, given: Sequence[Any]) -> ProblemError:
    """The answer to a request whose body or parameters are not as they should be.

    Annif's API says 400, as Annif does.
    """
    parts = [
        {"where": ".".join(map(str, one["loc"])), "problem": str(one["msg"])}
        for one in given[:_SHOWN]
    ]
    status = 400 if request.url.path.startswith("/v1") else 422
    if any(one["type"] == "json_invalid" for one in given):
        status = 400
    first = f"{parts[0]['where']}: {parts[0]['problem']}" if parts else "not a valid request"
    more = f" (and {len(given) - 1} more)" if len(given) > 1 else ""
    return ProblemError(status, first + more, parts=parts)


def _request_id(request: Request) -> str | None:
    identifier = request.scope.get("state", {}).get("request_id")
    return None if identifier is None else str(identifier)
