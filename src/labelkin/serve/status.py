"""The service itself: health, readiness, version, figures, and what it serves."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Response

from labelkin._version import __version__
from labelkin.inspection import model_states
from labelkin.messages import (
    CollectionDetails,
    CollectionList,
    CollectionMessage,
    Health,
    MethodMessage,
    Readiness,
    VersionMessage,
)
from labelkin.scoring.methods import METHODS
from labelkin.serve.answers import answered, problems
from labelkin.serve.catalogue import Project, ServedCollection
from labelkin.serve.metrics import MEDIA_TYPE
from labelkin.serve.service import CollectionOf, Service, ServiceOf

router = APIRouter(prefix="/api/v1", tags=["service"])


@router.get("/health", response_model=Health)
async def health() -> Response:
    """Whether the process answers."""
    return answered(Health(status="ok"))


@router.get(
    "/ready",
    response_model=Readiness,
    responses={503: {"model": Readiness, "description": "Models are being loaded."}},
)
async def ready(service: ServiceOf) -> Response:
    """Whether all models are loaded; before that, other requests wait."""
    if not service.catalogue.is_loaded:
        return answered(Readiness(status="loading", problems={}), 503)
    failed = {
        Project(collection, method).id: service.catalogue.without_paths(problem)
        for collection in service.catalogue
        for method, problem in collection.problems().items()
    }
    return answered(Readiness(status="ready", problems=failed))


@router.get("/version", response_model=VersionMessage)
async def version() -> Response:
    """The version of labelkin."""
    return answered(VersionMessage(name="labelkin", version=__version__))


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {
            "description": "In Prometheus's text format.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }
    },
)
async def metrics(service: ServiceOf) -> Response:
    """Figures for Prometheus; also at /metrics."""
    content = await asyncio.to_thread(service.metrics.exposition)
    return Response(content, headers={"content-type": MEDIA_TYPE})


@router.get("/collections", response_model=CollectionList, responses=problems(429, 503))
async def list_collections(service: ServiceOf) -> Response:
    """All collections that are served."""
    return answered(
        await service.run(
            lambda: CollectionList(
                collections=[_collection(service, one) for one in service.catalogue]
            )
        )
    )


@router.get(
    "/collections/{collection}",
    response_model=CollectionDetails,
    responses=problems(404, 422, 429, 503),
)
async def show_collection(service: ServiceOf, served: CollectionOf) -> Response:
    """One collection: documents, languages, methods, models, settings."""

    def work() -> CollectionDetails:
        config = served.indexer.config
        return CollectionDetails(
            **_collection(service, served).model_dump(),
            representation=config.representation.name,
            models=models_of(service, served),
            settings=config.model_dump(
                mode="json",
                include={"suggest", "neighbours", "label_ae", "mix", "lexical", "rerank"},
            ),
        )

    return answered(await service.run(work))


def models_of(service: Service, served: ServedCollection) -> list[dict[str, Any]]:
    """The models of a collection, whether they can be used, and what has changed since."""
    return [
        {
            "name": state.name,
            "usable": state.is_usable,
            "problem": service.catalogue.without_paths(state.problem),
            "documents": state.documents,
            "added": state.added,
            "removed": state.removed,
            "unknown_headings": state.unknown_headings,
            "unknown": list(state.unknown),
            "headings_without_row": state.headings_without_row,
            "outdated": state.is_outdated,
            "reason": state.reason,
        }
        for state in model_states(served.snapshot)
    ]


def _collection(service: Service, served: ServedCollection) -> CollectionMessage:
    snapshot, modified = served.snapshot, served.modified()
    method = served.indexer.config.suggest.method
    return CollectionMessage(
        name=served.name,
        documents=snapshot.count(),
        concepts=snapshot.generation().next_column,
        languages={one or "unknown": count for one, count in snapshot.languages().items()},
        vocabulary_languages=dict(served.vocabulary_languages()),
        generation=snapshot.generation().number,
        modified=None if modified is None else modified.isoformat(),
        writable=service.access.allows_writing and not snapshot.read_only,
        method=method,
        methods=[_method(service, served, name) for name in METHODS.names()],
    )


def _method(service: Service, served: ServedCollection, name: str) -> MethodMessage:
    usable = served.is_trained(name)
    problem = "" if usable else served.problems().get(name, "not trained; run `labelkin train`")
    return MethodMessage(
        name=name,
        project=Project(served, name).id,
        usable=usable,
        problem=service.catalogue.without_paths(problem),
    )
