"""Stored documents: get, add, correct, replace, remove, and annotate streams of new ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import TypeAdapter, ValidationError

from labelkin.corpus.document import Correction
from labelkin.corpus.json_values import parse_json
from labelkin.corpus.record import BLANK_LABELS, RecordError, labels_of, marked_labels
from labelkin.corpus.revision import parse_revision
from labelkin.exceptions import LabelkinError
from labelkin.messages import (
    Asked,
    CorrectionRequest,
    DocumentMessage,
    DocumentPage,
    Record,
    StoredDocumentMessage,
    WriteReport,
    as_json,
)
from labelkin.scoring.settings import Settings
from labelkin.serve.answers import answered, problems
from labelkin.serve.catalogue import ServedCollection
from labelkin.serve.problems import ProblemError
from labelkin.serve.records import Records, media_type, query_of
from labelkin.serve.service import CollectionOf, Service, ServiceOf, WriterOf, refuse_stale
from labelkin.serve.streams import JSON_LINES, Lines, LinesResponse, is_json_lines, line_batches
from labelkin.serve.suggestions import settings_of, suggested
from labelkin.store.reports import AddReport

router = APIRouter(tags=["documents"])
_READ = problems(404, 422, 429, 503)
_WRITE = problems(400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 503, 507)
# Documents of a stream that are annotated, and that are stored, at a time.
_ANNOTATED = 100
_STORED = 1000
# UTF-8 has up to four bytes per character, and JSON escapes more.
_BYTES_A_CHARACTER = 6
_LINES = {
    "requestBody": {
        "required": True,
        "content": {
            JSON_LINES: {
                "schema": {"type": "string", "format": "binary"},
                "example": '{"id": "1", "title": "Pneumonia in children"}\n',
            }
        },
    }
}
_RECORDS = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "anyOf": [
                        {"$ref": "#/components/schemas/Record"},
                        {"type": "array", "items": {"$ref": "#/components/schemas/Record"}},
                    ]
                }
            },
            JSON_LINES: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
_ONE_OR_MORE: TypeAdapter[Record | list[Record]] = TypeAdapter(Record | list[Record])


GenerationOf = Annotated[
    int | None,
    Query(ge=0, le=2**53, description="Answer from this state of the collection or a later one."),
]
TakeOlder = Annotated[bool, Query(description="Store records also if a newer revision is stored.")]


@router.get("/documents", response_model=DocumentPage, responses=_READ)
async def list_documents(
    service: ServiceOf,
    served: CollectionOf,
    after: Annotated[str, Query(description="The `next` of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
    generation: GenerationOf = None,
) -> Response:
    """Documents in the order of their ids, a page at a time."""

    def work() -> DocumentPage:
        served.require(generation)
        snapshot = served.snapshot
        documents = snapshot.documents_after(after, limit)
        return DocumentPage(
            documents=[
                DocumentMessage.of(document, snapshot.vocabulary.__contains__)
                for document in documents
            ],
            next=documents[-1].id if len(documents) == limit else None,
        )

    return answered(await service.run(work))


@router.get("/documents/{identifier:path}", response_model=StoredDocumentMessage, responses=_READ)
async def get_document(
    service: ServiceOf,
    served: CollectionOf,
    identifier: str,
    neighbours: Annotated[
        int, Query(ge=0, le=10_000, description="How many of the nearest documents to list.")
    ] = 0,
    representation: str | None = None,
    language: str | None = None,
    generation: GenerationOf = None,
) -> Response:
    """One document with its headings and, if asked for, its nearest neighbours."""

    def work() -> DocumentMessage:
        served.require(generation)
        served.check_representation(representation)
        shown = served.language(language)
        stored = served.indexer.show(identifier, neighbours, representation=representation)
        if stored is None:
            raise _missing(identifier)
        message = StoredDocumentMessage.from_stored(stored, shown)
        # One without neighbours can be sent back as it is.
        return message if neighbours else DocumentMessage(**dict(message))

    return answered(await service.run(work))


@router.post("/documents", response_model=WriteReport, responses=_WRITE, openapi_extra=_RECORDS)
async def add_documents(
    service: WriterOf, request: Request, served: CollectionOf, take_older: TakeOlder = False
) -> Response:
    """Store documents; those with a known id are replaced.

    Send one document, a list of them, or JSON Lines without a limit. Records
    that cannot be stored, or are older than the stored ones, are reported and
    skipped; if all of them are older, the answer is a 409.
    """
    return await _stored(service, request, served, Records(), take_older=take_older)


@router.post("/learn", response_model=WriteReport, responses=_WRITE, openapi_extra=_RECORDS)
async def learn(
    service: WriterOf, request: Request, served: CollectionOf, take_older: TakeOlder = False
) -> Response:
    """Correct the headings of stored documents; counts at the next request.

    Send records with an `id` and `labels` as to `documents`: one, a list, or
    JSON Lines. An empty list of labels removes all headings. Records of documents
    that are not stored are reported and skipped; those with a text are stored.
    """
    records = Records(corrections=True)
    return await _stored(service, request, served, records, take_older=take_older)


async def _stored(
    service: Service,
    request: Request,
    served: ServedCollection,
    records: Records,
    *,
    take_older: bool,
) -> Response:
    """Store the records in the body of a request, and answer what became of them."""
    if is_json_lines(request):
        return answered(await _store_stream(service, request, served, records, take_older))
    given = media_type(request)
    if given != "application/json":
        raise ProblemError(
            415, f"the body is {given or 'of no type'}; send application/json or {JSON_LINES}"
        )
    parsed = _parsed(await request.body())
    given_records = parsed if isinstance(parsed, list) else [parsed]
    items = records.items(
        (f"document {number}", record) for number, record in enumerate(given_records, start=1)
    )
    service.check_texts(items)
    report = await service.run(
        lambda: service.write(served, items, records, take_older=take_older), writes=True
    )
    service.metrics.wrote(served.name, report)
    return answered(report)


def _parsed(body: bytes) -> Any:
    """The records of a JSON body as they are; their types are checked."""
    try:
        value = parse_json(body.decode("utf-8", "replace"))
    except RecordError as error:
        raise ProblemError(400, str(error)) from None
    try:
        _ONE_OR_MORE.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if isinstance(part, int))
        raise ProblemError(422, f"record {where or 1}: {first['msg']}") from None
    return value


async def _store_stream(
    service: Service,
    request: Request,
    served: ServedCollection,
    records: Records,
    take_older: bool,
) -> WriteReport:
    """Store the records of JSON Lines, a batch at a time."""
    await service.loaded()
    total, count = AddReport(), 0
    longest = service.settings.max_characters * _BYTES_A_CHARACTER
    async for batch in line_batches(request, longest, _STORED, eager=False):

        def work(batch: Lines = batch) -> tuple[AddReport, int]:
            given = [
                record
                for number, line in batch
                for record in records.on_line(line, f"line {number}")
            ]
            items = records.items(given)
            service.check_lengths(items, batch[0][0])
            return served.indexer.add(items, take_older=take_older), len(items)

        report_of_batch, stored = await service.gate.patient(work, writes=True)
        total.merge(report_of_batch)
        count += stored
    refuse_stale(total, count)
    generation = await service.gate.patient(served.settled, writes=True)
    report = WriteReport.of(
        total,
        generation,
        ids=records.ids,
        skipped=records.report.left_out,
        notes=records.report.repaired,
    )
    service.metrics.wrote(served.name, report)
    return report


@router.put("/documents/{identifier:path}", response_model=WriteReport, responses=_WRITE)
async def put_document(
    service: WriterOf,
    served: CollectionOf,
    identifier: str,
    record: Record,
    take_older: TakeOlder = False,
) -> Response:
    """Store one document under this id, in place of the one that has it."""
    if not identifier.strip():
        raise ProblemError(422, "the id is blank; POST a record without an id to have one made up")
    given = record.model_dump(exclude_unset=True)
    if str(given.get("id") or identifier) != identifier:
        raise ProblemError(422, f"the record's id is {given['id']!r}, not {identifier!r}")
    records = Records()
    documents = records.documents([("the document", {**given, "id": identifier})])
    if records.report.left_out:
        raise ProblemError(422, records.report.left_out[0].problem)
    service.check_texts(documents)
    report = await service.run(
        lambda: service.write(served, documents, records, take_older=take_older), writes=True
    )
    service.metrics.wrote(served.name, report)
    return answered(report)


@router.patch("/documents/{identifier:path}", response_model=WriteReport, responses=_WRITE)
async def correct_document(
    service: WriterOf,
    served: CollectionOf,
    identifier: str,
    correction: CorrectionRequest,
    take_older: TakeOlder = False,
) -> Response:
    """Replace the headings of a document; its text stays. Counts at the next request."""
    try:
        labels, names = labels_of(correction.labels)
        marked = marked_labels(correction.labels)
    except RecordError as error:
        raise ProblemError(422, str(error)) from None
    if not labels and correction.labels:
        raise ProblemError(422, BLANK_LABELS)
    major = tuple(label for label in labels if label in marked)
    revision = parse_revision(correction.revision)
    if correction.revision is not None and revision is None:
        raise ProblemError(
            422, f"the revision {correction.revision!r} is neither a date nor a version number"
        )
    item = Correction(identifier, labels, names, major, revision)
    records = Records()
    report = await service.run(
        lambda: service.write(served, [item], records, take_older=take_older), writes=True
    )
    if report.missing:
        raise _missing(identifier)
    service.metrics.wrote(served.name, report)
    return answered(report)


@router.delete("/documents/{identifier:path}", response_model=WriteReport, responses=_WRITE)
async def remove_document(service: WriterOf, served: CollectionOf, identifier: str) -> Response:
    """Remove one document."""

    def work() -> WriteReport:
        report = served.indexer.remove([identifier])
        if report.missing:
            raise _missing(identifier)
        return WriteReport(generation=served.settled(), removed=report.removed)

    report = await service.run(work, writes=True)
    service.metrics.wrote(served.name, report)
    return answered(report)


@router.post(
    "/annotate",
    status_code=200,
    response_class=LinesResponse,
    responses={
        200: {
            "description": "A line per line of the request, in the same order: suggestions, or "
            '`{"line", "error"}`.',
            "content": {JSON_LINES: {"schema": {"type": "string"}}},
        },
        **problems(404, 408, 413, 415, 422, 429, 503),
    },
    openapi_extra=_LINES,
    tags=["suggestions"],
)
async def annotate(
    service: ServiceOf,
    request: Request,
    served: CollectionOf,
    method: str | None = None,
    limit: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    threshold: Annotated[float | None, Query(ge=0.0, le=1.0)] = None,
    language: str | None = None,
    representation: str | None = None,
    fold_broader: bool = False,
    evidence: bool = False,
    signals: bool = False,
    generation: GenerationOf = None,
) -> Response:
    """Suggest headings for a stream of documents without a limit.

    The body is JSON Lines, a document per line; answers come back as soon as
    they are computed, also while documents are still being sent.
    """
    if not is_json_lines(request):
        raise ProblemError(415, f"the body must be {JSON_LINES}, a document per line")
    asked = Asked(
        limit=limit,
        threshold=threshold,
        language=language,
        representation=representation,
        fold_broader=fold_broader,
        evidence=evidence,
        signals=signals,
        generation=generation,
    )

    def checked_settings() -> Settings:
        served.language(language)
        return settings_of(served, asked, method)

    # Whatever is wrong with the request itself is an error before the first line.
    settings = await service.run(checked_settings)
    longest = service.settings.max_characters * _BYTES_A_CHARACTER

    def answers(batch: Lines) -> bytes:
        parsed = [_query_on(service, line, number) for number, line in batch]
        documents = [one for one in parsed if not isinstance(one, dict)]
        try:
            # Each batch may run on another thread.
            served.require(generation)
            results = iter(suggested(served, documents, asked, settings).results)
        except LabelkinError as error:
            problem = service.catalogue.without_paths(str(error))
            parsed = [{"line": number, "error": problem} for number, _ in batch]
            results = iter(())
        return b"".join(
            _line(one if isinstance(one, dict) else as_json(next(results))) for one in parsed
        )

    async def produce(write: Callable[[bytes], None]) -> None:
        last = 0
        try:
            async for batch in line_batches(request, longest, _ANNOTATED, eager=True):
                write(await service.gate.patient(partial(answers, batch)))
                service.metrics.documents.labels(served.name, settings.method).inc(len(batch))
                last = batch[-1][0]
        except ProblemError as error:
            # The answer has begun already: its last line says why it is broken off.
            write(_line({"line": last + 1, "error": error.detail}))
            raise

    return LinesResponse(produce)


def _line(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer, ensure_ascii=False).encode("utf-8") + b"\n"


def _query_on(service: Service, line: str, number: int) -> Any:
    """The document on a line, or what is wrong with it."""
    try:
        record = parse_json(line)
        if not isinstance(record, dict):
            raise RecordError("a record is an object: {…}")
        document = query_of(record)
        service.check_texts([document], number)
    except (RecordError, ProblemError) as error:
        problem = error.detail if isinstance(error, ProblemError) else str(error)
        return {"line": number, "error": problem}
    return document


def _missing(identifier: str) -> ProblemError:
    return ProblemError(404, f"no document {identifier!r} in the collection")
