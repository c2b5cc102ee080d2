"""The application: all routes, their description, and what surrounds them."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Thread
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from labelkin._version import __version__
from labelkin.messages import Problem, Record
from labelkin.serve import (
    annif,
    concepts,
    dashboard,
    documents,
    static,
    status,
    suggestions,
    verdicts,
    worklists,
)
from labelkin.serve.limits import Limits
from labelkin.serve.problems import ProblemError, install
from labelkin.serve.records import media_type
from labelkin.serve.service import Service

logger = logging.getLogger(__name__)

_ABOUT = (
    "Subject headings for documents, learned from documents that are already indexed, with the "
    "reasons for each. `/v1` is Annif's API, `/api/v1` labelkin's own. Errors are "
    "`application/problem+json`. Writing needs `Authorization: Bearer TOKEN`."
)
_OPENAPI = "/api/v1/openapi.json"
# Routes that take other bodies than JSON.
_OTHER_TYPES = ("/annotate", "/documents", "/learn", "/read", "/worklists")


def create_app(service: Service) -> ASGIApp:
    """The application that serves a service; models are loaded when it starts."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loader = Thread(target=_load, args=(service,), name="labelkin-loader", daemon=True)
        loader.start()
        try:
            yield
        finally:
            loader.join()
            service.close()

    app = FastAPI(
        title="labelkin",
        version=__version__,
        description=_ABOUT,
        openapi_url=_OPENAPI,
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service = service
    collections = APIRouter(
        prefix="/api/v1/collections/{collection}", dependencies=[Depends(_json_only)]
    )
    for part in (suggestions, concepts, documents, dashboard, worklists, verdicts):
        collections.include_router(part.router)
    # Routes are tried in this order: the busiest first.
    app.include_router(annif.router)
    app.include_router(collections)
    app.include_router(status.router)
    app.add_api_route("/metrics", status.metrics, include_in_schema=False)
    app.include_router(static.router)
    install(app)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    if service.settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(service.settings.origins),
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["X-Request-Id", "Retry-After"],
        )
    return Limits(app, service)


def _load(service: Service) -> None:
    started = time.perf_counter()
    service.catalogue.load()
    logger.info("ready after %.1f s", time.perf_counter() - started)


async def _json_only(request: Request) -> None:
    """Refuse bodies that are not JSON, where nothing else is expected."""
    if request.method not in ("POST", "PUT", "PATCH"):
        return
    given = media_type(request)
    is_stream = request.scope["path"].rstrip("/").endswith(_OTHER_TYPES)
    if given != "application/json" and not is_stream:
        raise ProblemError(415, f"the body is {given or 'of no type'}; send application/json")


def _described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description, with the messages that routes refer to by name."""
    if app.openapi_schema:
        return app.openapi_schema
    schema = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    schemas = schema["components"]["schemas"]
    for message in (Problem, Record):
        schemas[message.__name__] = message.model_json_schema(
            ref_template="#/components/schemas/{model}"
        )
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schema["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "password": {"type": "http", "scheme": "basic"},
    }
    for path in schema["paths"].values():
        for method, operation in path.items():
            _replace_validation_error(operation)
            if "401" in operation["responses"] or operation["operationId"].startswith("learn"):
                operation["security"] = [{"token": []}, {"password": []}]
                if operation["operationId"].startswith("evaluate"):
                    # Only to store the values.
                    operation["security"].append({})
            if method in ("get", "delete"):
                operation["responses"].pop("415", None)
    app.openapi_schema = schema
    return schema


def _replace_validation_error(operation: dict[str, Any]) -> None:
    """Leave out the 422 of the framework where ours is not described: a 400 of Annif's API."""
    described = operation["responses"].get("422", {}).get("content", {})
    if "application/json" in described:
        del operation["responses"]["422"]
