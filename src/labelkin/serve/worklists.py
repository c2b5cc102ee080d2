"""Files of records: read without storing anything, or gone through as work lists."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import IO, Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response

from labelkin.corpus.document import Document
from labelkin.corpus.writers import write_documents
from labelkin.desk import Desk, Heading, WorkItem, WorkList
from labelkin.desk.rows import document_of, document_text
from labelkin.exceptions import LabelkinError
from labelkin.messages import (
    PositionRequest,
    ReadAnswer,
    Record,
    Status,
    WorkItemDetails,
    WorkItemMessage,
    WorkItemPage,
    WorkItemRequest,
    WorkItemSaved,
    WorkListMessage,
    WorkListPage,
    WorkListRemoved,
)
from labelkin.serve.answers import answered, problems
from labelkin.serve.catalogue import ServedCollection
from labelkin.serve.concepts import Offset
from labelkin.serve.desks import READ, WRITE, DeskReaderOf
from labelkin.serve.exports import ExportResponse, described, written
from labelkin.serve.problems import ProblemError
from labelkin.serve.service import CollectionOf, Service, ServiceOf, WriterOf
from labelkin.serve.uploads import BODY, FileName, Upload, identified, uploaded

router = APIRouter(tags=["work lists"])
PlaceOf = Annotated[int, Path(ge=1, le=2**53, description="The number of a record, from 1.")]
ListId = Annotated[str, Path(max_length=100, description="The id of a work list.")]
ExportFormat = Literal["jsonl", "json", "csv", "annif-tsv"]
# Records of an upload that are stored at a time.
_STORED = 500


@router.post(
    "/read",
    response_model=ReadAnswer,
    responses=problems(404, 408, 413, 422, 429, 503, 507),
    openapi_extra=BODY,
)
async def read(
    service: ServiceOf, request: Request, served: CollectionOf, name: FileName = ""
) -> Response:
    """Read the records of a file; nothing is stored.

    A plain text is one record. Labels that the vocabulary has get its ids and names.
    """
    settings = service.settings
    async with uploaded(request, name, settings.max_body) as upload:

        def work() -> ReadAnswer:
            if not upload.is_small():
                raise ProblemError(
                    413, f"{upload.name}: too large when unpacked; make a work list of it"
                )
            documents = upload.documents(settings.max_characters)
            # As they would be stored: without what JSON cannot hold.
            kept = [
                document_of(document_text(document))
                for document in islice(documents, settings.max_documents)
            ]
            total = len(kept) + sum(1 for _ in documents)
            report = upload.report
            return ReadAnswer(
                records=[Record.of(document) for document in identified(served, kept)],
                total=total,
                truncated=total > len(kept),
                skipped=report.left_out,
                notes=report.repaired,
            )

        return answered(await service.run(work))


@router.post(
    "/worklists",
    status_code=201,
    response_model=WorkListMessage,
    responses=WRITE,
    openapi_extra=BODY,
)
async def create_worklist(
    service: WriterOf, request: Request, served: CollectionOf, name: FileName = ""
) -> Response:
    """Make a work list of all records of a file, however many.

    The file is stored as a whole or not at all.
    """
    await service.loaded()
    async with uploaded(request, name, service.settings.max_body) as upload:
        return answered(await _stored(service, served, upload), 201)


async def _stored(service: Service, served: ServedCollection, upload: Upload) -> WorkListMessage:
    """Store the records of a file, a batch at a time; other requests have their turn between."""
    documents = upload.documents(service.settings.max_characters)
    batch = await service.gate.patient(lambda: _batch(served, documents))
    if not batch:
        first = upload.report.left_out[:1]
        problem = f"{first[0].where}: {first[0].problem}" if first else "no records in it"
        raise ProblemError(422, f"{upload.name}: no record can be read; {problem}")
    lists = served.indexer.desk.worklists
    writer = await service.gate.patient(lambda: lists.begin(upload.name))
    try:
        while batch:
            batch = await service.gate.patient(_step(writer.append, served, documents, batch))
        unreadable = [(one.where, one.problem) for one in upload.report.left_out]
        finished = await service.gate.patient(lambda: writer.finish(unreadable))
    except BaseException:
        # What cannot be removed now is removed before a later upload.
        with suppress(LabelkinError):
            await asyncio.to_thread(writer.discard)
        raise
    return WorkListMessage.of(finished)


def _step(
    append: Callable[[list[Document]], None],
    served: ServedCollection,
    documents: Iterator[Document],
    batch: list[Document],
) -> Callable[[], list[Document]]:
    def work() -> list[Document]:
        append(batch)
        return _batch(served, documents)

    return work


def _batch(served: ServedCollection, documents: Iterator[Document]) -> list[Document]:
    return identified(served, list(islice(documents, _STORED)))


@router.get("/worklists", response_model=WorkListPage, responses=READ)
async def list_worklists(service: DeskReaderOf, served: CollectionOf) -> Response:
    """All work lists, the newest first."""

    def work() -> WorkListPage:
        lists = served.indexer.desk.worklists
        return WorkListPage(worklists=[WorkListMessage.of(one) for one in lists])

    return answered(await service.run(work))


@router.get("/worklists/{identifier}", response_model=WorkListMessage, responses=READ)
async def get_worklist(service: DeskReaderOf, served: CollectionOf, identifier: ListId) -> Response:
    """One work list with the number of its records by status."""
    return answered(
        await service.run(lambda: WorkListMessage.of(_list(served.indexer.desk, identifier)))
    )


@router.delete("/worklists/{identifier}", response_model=WorkListRemoved, responses=WRITE)
async def remove_worklist(service: WriterOf, served: CollectionOf, identifier: ListId) -> Response:
    """Remove a work list with all its drafts; documents of the collection stay."""

    def work() -> WorkListRemoved:
        desk = served.indexer.desk
        worklist = _list(desk, identifier)
        if not desk.worklists.remove(identifier):
            raise _missing(identifier)
        return WorkListRemoved(removed=worklist.total)

    return answered(await service.run(work))


@router.get("/worklists/{identifier}/items", response_model=WorkItemPage, responses=READ)
async def list_items(
    service: DeskReaderOf,
    served: CollectionOf,
    identifier: ListId,
    status: Annotated[Status | None, Query(description="Only records with it.")] = None,
    offset: Offset = 0,
    limit: Annotated[int, Query(ge=1, le=1000, description="At most this many.")] = 100,
) -> Response:
    """The records of a work list in their order, without their texts."""

    def work() -> WorkItemPage:
        desk = served.indexer.desk
        worklist = _list(desk, identifier)
        items = desk.worklists.items(identifier, offset=offset, limit=limit, status=status)
        return WorkItemPage(
            total=worklist.total if status is None else worklist.counts[status],
            offset=offset,
            items=[
                WorkItemMessage.model_validate(
                    {"place": one.place, "id": one.id, "title": one.title, "status": one.status}
                )
                for one in items
            ],
        )

    return answered(await service.run(work))


@router.get("/worklists/{identifier}/items/{place}", response_model=WorkItemDetails, responses=READ)
async def get_item(
    service: DeskReaderOf, served: CollectionOf, identifier: ListId, place: PlaceOf
) -> Response:
    """One record of a work list, its draft, and its final headings."""
    return answered(await service.run(lambda: _details(served.indexer.desk, identifier, place)))


@router.put("/worklists/{identifier}/items/{place}", response_model=WorkItemSaved, responses=WRITE)
async def put_item(
    service: WriterOf,
    served: CollectionOf,
    identifier: ListId,
    place: PlaceOf,
    asked: WorkItemRequest,
) -> Response:
    """Store the status, the draft and the final headings of a record.

    Also moves the position of the list to it.
    """
    given: dict[str, Any] = {}
    if "draft" in asked.model_fields_set:
        given["draft"] = asked.draft
    if "labels" in asked.model_fields_set:
        given["labels"] = (
            None
            if asked.labels is None
            else [Heading(one.id, one.name, one.major) for one in asked.labels]
        )

    def work() -> WorkItemSaved:
        desk = served.indexer.desk
        if not desk.worklists.update(identifier, place, asked.status, **given):
            raise _no_place(_list(desk, identifier), place)
        item = _item(desk, identifier, place)
        return WorkItemSaved(
            place=place,
            status=asked.status,
            updated=item.updated,
            worklist=WorkListMessage.of(_list(desk, identifier)),
        )

    return answered(await service.run(work))


@router.put("/worklists/{identifier}/position", response_model=WorkListMessage, responses=WRITE)
async def move(
    service: WriterOf, served: CollectionOf, identifier: ListId, asked: PositionRequest
) -> Response:
    """Move the position of a work list: the place to go on at."""

    def work() -> WorkListMessage:
        desk = served.indexer.desk
        worklist = _list(desk, identifier)
        if not desk.worklists.move(identifier, asked.position):
            raise _no_place(worklist, asked.position)
        return WorkListMessage.of(_list(desk, identifier))

    return answered(await service.run(work))


@router.get(
    "/worklists/{identifier}/export",
    response_class=Response,
    responses={**described("jsonl", "json", "csv", "annif-tsv"), **READ},
)
async def export_worklist(
    service: DeskReaderOf,
    served: CollectionOf,
    identifier: ListId,
    format: Annotated[ExportFormat, Query(description="The format of the file.")] = "jsonl",
) -> Response:
    """All records of a work list with their final headings; `status` is in their metadata.

    A record without final headings has those that it came with.
    """
    await service.loaded()
    desk = served.indexer.desk
    worklist = await service.gate.patient(lambda: _list(desk, identifier))

    def write(file: IO[str]) -> None:
        items = desk.worklists.items_with_records(identifier)
        if write_documents((one.labelled() for one in items), file, format) != worklist.total:
            # Removed meanwhile: better no file than a part of it.
            raise _missing(identifier)

    file = await service.gate.patient(lambda: written(write))
    return ExportResponse(file, worklist.name.partition(".")[0] or "worklist", format)


def _details(desk: Desk, identifier: str, place: int) -> WorkItemDetails:
    item = _item(desk, identifier, place)
    assert item.document is not None  # noqa: S101
    return WorkItemDetails.of(item, item.document)


def _item(desk: Desk, identifier: str, place: int) -> WorkItem:
    item = desk.worklists.item(identifier, place)
    if item is None:
        raise _no_place(_list(desk, identifier), place)
    return item


def _list(desk: Desk, identifier: str) -> WorkList:
    worklist = desk.worklists.get(identifier)
    if worklist is None:
        raise _missing(identifier)
    return worklist


def _missing(identifier: str) -> ProblemError:
    return ProblemError(404, f"no work list {identifier!r}")


def _no_place(worklist: WorkList, place: int) -> ProblemError:
    return ProblemError(404, f"no place {place} in the work list; it has {worklist.total}")
