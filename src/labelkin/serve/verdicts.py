"""Verdicts of indexers: stored with what was suggested, exported as evaluation data."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from labelkin.desk import Decision, Verdict
from labelkin.desk.files import WRITERS
from labelkin.messages import (
    DecisionMessage,
    DecisionPage,
    VerdictMessage,
    VerdictsRequest,
    VerdictsStored,
)
from labelkin.serve.answers import answered
from labelkin.serve.catalogue import ServedCollection
from labelkin.serve.concepts import Limit, Offset
from labelkin.serve.desks import READ, WRITE, DeskReaderOf
from labelkin.serve.exports import ExportResponse, described, written
from labelkin.serve.problems import ProblemError
from labelkin.serve.records import Records
from labelkin.serve.service import CollectionOf, WriterOf

router = APIRouter(tags=["verdicts"])


@router.post("/verdicts", status_code=201, response_model=VerdictsStored, responses=WRITE)
async def add_verdicts(service: WriterOf, served: CollectionOf, given: VerdictsRequest) -> Response:
    """Store what an indexer has decided about a document, with what was suggested."""
    records = Records()
    documents = records.documents([("the document", given.document.model_dump(exclude_unset=True))])
    if records.report.left_out:
        raise ProblemError(422, records.report.left_out[0].problem)
    service.check_texts(documents)
    identifier, count = max(
        Counter(one.id for one in given.verdicts).items(),
        key=lambda one: one[1],
        default=("", 0),
    )
    if count > 1:
        raise ProblemError(422, f"{count} verdicts on {identifier!r}; send one for each heading")

    def work() -> VerdictsStored:
        decision = Decision(
            documents[0],
            tuple(_verdict(served, one) for one in given.verdicts),
            given.method,
            given.generation,
            given.seconds,
            given.blind,
        )
        served.indexer.desk.decisions.add(decision)
        return VerdictsStored(stored=len(decision.verdicts))

    return answered(await service.run(work), 201)


def _verdict(served: ServedCollection, given: VerdictMessage) -> Verdict:
    vocabulary = served.snapshot.vocabulary
    name = given.name or ""
    if not name and given.id in vocabulary:
        name = vocabulary.concept(given.id).name(served.heading_language())
    return Verdict(given.id, given.verdict, name, given.score, given.rank, given.band)


@router.get("/verdicts", response_model=DecisionPage, responses=READ)
async def list_verdicts(
    service: DeskReaderOf, served: CollectionOf, offset: Offset = 0, limit: Limit = 20
) -> Response:
    """Decisions with their verdicts, the newest first."""

    def work() -> DecisionPage:
        decisions = served.indexer.desk.decisions
        return DecisionPage(
            total=len(decisions),
            offset=offset,
            decisions=[DecisionMessage.of(one) for one in decisions.page(offset, limit)],
        )

    return answered(await service.run(work))


@router.get(
    "/verdicts/export",
    response_class=Response,
    responses={**described("jsonl", "csv"), **READ},
)
async def export_verdicts(
    service: DeskReaderOf,
    served: CollectionOf,
    format: Annotated[
        Literal["jsonl", "csv"],
        Query(description="A document per line, for `labelkin eval`, or a row per verdict."),
    ] = "jsonl",
    every: Annotated[
        bool, Query(alias="all", description="Also decisions that a later one has replaced.")
    ] = False,
) -> Response:
    """The latest decision about each document as a file, or all decisions."""
    await service.loaded()
    decisions = served.indexer.desk.decisions
    chosen = decisions.all() if every else decisions.latest()
    file = await service.gate.patient(lambda: written(lambda text: WRITERS[format](chosen, text)))
    return ExportResponse(file, f"verdicts-{served.name}", format)
