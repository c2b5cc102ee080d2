"""A collection in figures, and the map of its headings."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Response

from labelkin.exceptions import ModelError, ModelNotFoundError
from labelkin.messages import (
    Dashboard,
    EvaluationMessage,
    FrequenciesMessage,
    LatentMapMessage,
    PerDocument,
    ReliabilityMessage,
)
from labelkin.plots.frequencies import heading_frequencies
from labelkin.plots.latent import MOST_HEADINGS
from labelkin.serve.answers import answered, as_text, problems
from labelkin.serve.catalogue import ServedCollection
from labelkin.serve.concepts import Language
from labelkin.serve.problems import ProblemError
from labelkin.serve.service import CollectionOf, Service, ServiceOf
from labelkin.serve.status import models_of

router = APIRouter(tags=["dashboard"])


@router.get("/dashboard", response_model=Dashboard, responses=problems(404, 422, 429, 503))
async def show_dashboard(service: ServiceOf, served: CollectionOf) -> Response:
    """A collection in figures: documents, how often headings are used, the latest evaluation."""

    def work() -> Dashboard:
        bands = served.settings("rerank").rerank
        state = (served.snapshot.generation(), served.models_state(), bands)
        return served.facts.get(("dashboard", *state), lambda: _dashboard(service, served))

    return answered(await service.run(work))


@router.get("/latent", response_model=LatentMapMessage, responses=problems(404, 422, 429, 503))
async def show_latent(
    service: ServiceOf,
    served: CollectionOf,
    limit: Annotated[
        int, Query(ge=1, le=MOST_HEADINGS, description="At most this many, the most frequent.")
    ] = 2000,
    language: Language = None,
) -> Response:
    """A map of the most frequent headings: those that go together are near each other.

    The first request after a training takes some seconds.
    """

    def work() -> str:
        shown = served.language(language)
        key = ("latent", served.snapshot.generation(), served.models_state(), limit, shown)
        try:
            # The answer is long: it is kept as it is sent.
            return served.facts.get(
                key,
                lambda: as_text(LatentMapMessage.of(served.indexer.latent_map(limit, shown))),
            )
        except ModelNotFoundError:
            raise ProblemError(
                404, "no label autoencoder has been trained; run `labelkin train`"
            ) from None

    await service.loaded()
    return Response(await service.gate.run_apart(work), media_type="application/json")


def _dashboard(service: Service, served: ServedCollection) -> Dashboard:
    snapshot, indexer = served.snapshot, served.indexer
    sizes = np.delete(snapshot.label_sets().sizes(), snapshot.tombstones())
    frequencies = heading_frequencies(snapshot.label_frequencies())
    evaluation = indexer.latest_evaluation()
    try:
        reliability = indexer.reliability()
    except ModelError:
        # There is no reranker, or none that can be used: `models` says why.
        reliability = None
    return Dashboard(
        documents=snapshot.count(),
        concepts=snapshot.generation().next_column,
        concepts_used=frequencies.headings,
        generation=snapshot.generation().number,
        languages={one or "unknown": count for one, count in snapshot.languages().items()},
        per_document=PerDocument(
            mean=round(float(sizes.mean()), 4) if len(sizes) else 0.0,
            median=float(np.median(sizes)) if len(sizes) else 0.0,
            max=int(sizes.max(initial=0)),
        ),
        frequencies=FrequenciesMessage(
            points=list(frequencies.points),
            at_least={str(step): count for step, count in frequencies.at_least.items()},
            once=frequencies.once,
        ),
        evaluation=None if evaluation is None else EvaluationMessage.of(*evaluation),
        reliability=None if reliability is None else ReliabilityMessage.of(reliability),
        models=models_of(service, served),
    )
