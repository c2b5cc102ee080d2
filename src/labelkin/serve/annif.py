"""Annif's REST API, version 1, as Annif 1.4.3 answers it: for its clients to use unchanged.

A project is a collection with a method: `NAME`, or `NAME:METHOD`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, Field

from labelkin._version import __version__
from labelkin.corpus.annif import TITLE_MARK
from labelkin.corpus.document import Document
from labelkin.corpus.language import language_shares
from labelkin.corpus.text import clean_text
from labelkin.serve.answers import problems
from labelkin.serve.catalogue import Project, ServedCollection
from labelkin.serve.problems import ProblemError
from labelkin.serve.records import Records, media_type
from labelkin.serve.service import Service, ServiceOf

_LIMIT = 10
_MOST_LANGUAGES = 5
_INTEGER = re.compile(r"[+-]?[0-9]+")
_LARGEST = 2**31 - 1
_FORM = "application/x-www-form-urlencoded"
_JSON = "application/json"
_METADATA = "metadata_"


class ApiInfo(BaseModel):
    """The name and version of the service."""

    title: str
    version: str


class Backend(BaseModel):
    """What a project suggests with: a method of labelkin."""

    backend_id: str


class Vocab(BaseModel):
    """The vocabulary of a collection."""

    vocab_id: str
    languages: list[str]
    size: int
    loaded: bool


class VocabList(BaseModel):
    """All vocabularies."""

    vocabs: list[Vocab]


class ProjectMessage(BaseModel):
    """A collection with a method."""

    project_id: str
    name: str
    language: str
    backend: Backend
    vocab: Vocab
    vocab_language: str
    is_trained: bool
    modification_time: str | None


class ProjectList(BaseModel):
    """All projects."""

    projects: list[ProjectMessage]


class Result(BaseModel):
    """A suggested heading."""

    uri: str
    label: str
    notation: str | None
    score: float


class Results(BaseModel):
    """The suggested headings, best first."""

    results: list[Result]


class DocumentResults(Results):
    """The suggested headings of one document of a batch."""

    document_id: str | None


class BatchDocument(BaseModel):
    """A text; `document_id` is returned with its suggestions."""

    text: str
    document_id: str = ""
    metadata: dict[str, str] = {}


class Batch(BaseModel):
    """Texts to suggest headings for."""

    documents: list[BatchDocument]


class Subject(BaseModel):
    """A right heading."""

    uri: str
    label: str = ""


class LearnDocument(BaseModel):
    """A text with its right headings; one that lacks either is left out, as in Annif."""

    text: str | None = None
    document_id: str = ""
    metadata: dict[str, str] = {}
    subjects: list[Subject] | None = None


class DetectRequest(BaseModel):
    """A text, and the languages that it may be in."""

    text: str
    languages: list[Annotated[str, Field(min_length=2, max_length=3)]] = Field(
        min_length=1, max_length=_MOST_LANGUAGES
    )


class DetectedLanguage(BaseModel):
    """A language with its probability; null stands for any other."""

    language: str | None
    score: float


class DetectedLanguages(BaseModel):
    """Languages, the most probable first."""

    results: list[DetectedLanguage]


def _only(expected: str) -> Any:
    """Refuse a body of another type, as Annif does."""

    async def check(request: Request) -> None:
        given = media_type(request)
        if given == expected or (not given and not _has_body(request)):
            return
        raise ProblemError(
            415, f"Invalid Content-type ({given or 'none'}), expected ['{expected}']"
        )

    return Depends(check)


def _has_body(request: Request) -> bool:
    length = request.headers.get("content-length", "")
    return "transfer-encoding" in request.headers or bool(length.strip("0"))


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of an endpoint; Annif answers a body that is too large in plain text."""
    described = problems(*statuses)
    if 413 in described:
        described[413]["content"]["text/plain"] = {"schema": {"type": "string"}}
    return described


router = APIRouter(prefix="/v1", tags=["Annif's API"])


def _json(message: BaseModel) -> Response:
    return Response(message.model_dump_json(), media_type=_JSON)


@router.get("/", response_model=ApiInfo)
async def show_info() -> Response:
    """The name and version of the service."""
    return _json(ApiInfo(title="labelkin REST API", version=__version__))


@router.get("/projects", response_model=ProjectList, responses=_problems(503))
async def list_projects(service: ServiceOf) -> Response:
    """All projects: each collection, and each with every method that it can use."""
    return _json(
        await service.look_up(
            lambda: ProjectList(
                projects=[project_message(project) for project in service.catalogue.projects()]
            )
        )
    )


@router.get(
    "/projects/{project_id}", response_model=ProjectMessage, responses=_problems(400, 404, 503)
)
async def show_project(service: ServiceOf, project_id: str) -> Response:
    """One project. Annif's http backend asks for this before every suggestion."""
    project = service.catalogue.project(project_id)
    return _json(await service.look_up(lambda: project_message(project)))


@router.get("/vocabs", response_model=VocabList, responses=_problems(503))
async def list_vocabs(service: ServiceOf) -> Response:
    """All vocabularies: one per collection."""
    return _json(
        await service.look_up(
            lambda: VocabList(vocabs=[_vocab(collection) for collection in service.catalogue])
        )
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked for besides the text."""

    limit: int
    threshold: float
    language: str


@router.post(
    "/projects/{project_id}/suggest",
    response_model=Results,
    responses=_problems(400, 404, 408, 413, 415, 429, 503),
    dependencies=[_only(_FORM)],
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                _FORM: {
                    "schema": {
                        "type": "object",
                        "required": ["text"],
                        "properties": {
                            "text": {"type": "string"},
                            "limit": {
                                "type": "integer",
                                "minimum": 0,
                                "maximum": _LARGEST,
                                "default": _LIMIT,
                            },
                            "threshold": {
                                "type": "number",
                                "minimum": 0,
                                "maximum": 1,
                                "default": 0,
                            },
                            "language": {
                                "type": "string",
                                "description": "The language of labels; empty for the default.",
                            },
                        },
                        "additionalProperties": {"type": "string"},
                        "example": {"text": "Cefuroxime for pneumonia in children", "limit": 5},
                    }
                }
            },
        }
    },
)
async def suggest(service: ServiceOf, request: Request, project_id: str) -> Response:
    """Suggest headings for a text."""
    document, asked = _form(await request.body())
    project = service.catalogue.project(project_id)
    (results,) = await _suggested(service, project, [document], asked)
    return _json(Results(results=results))


@router.post(
    "/projects/{project_id}/suggest-batch",
    response_model=list[DocumentResults],
    responses=_problems(400, 404, 408, 413, 415, 429, 503),
    dependencies=[_only(_JSON)],
)
async def suggest_batch(
    service: ServiceOf,
    project_id: str,
    batch: Batch,
    limit: Annotated[int, Query(ge=0, le=_LARGEST)] = _LIMIT,
    threshold: Annotated[float, Query(ge=0.0, le=1.0)] = 0.0,
    language: str = "",
) -> Response:
    """Suggest headings for several texts at a time."""
    project = service.catalogue.project(project_id)
    documents = [_document(one.text, one.metadata) for one in batch.documents]
    asked = _Asked(limit, threshold, language)
    suggested = await _suggested(service, project, documents, asked)
    answers = [
        DocumentResults(results=results, document_id=_given_id(one)).model_dump(mode="json")
        for one, results in zip(batch.documents, suggested, strict=True)
    ]
    return Response(json.dumps(answers), media_type=_JSON)


@router.post(
    "/projects/{project_id}/learn",
    status_code=204,
    response_class=Response,
    responses=_problems(400, 403, 404, 408, 413, 415, 429, 503),
    dependencies=[_only(_JSON)],
)
async def learn(
    service: ServiceOf, request: Request, project_id: str, documents: list[LearnDocument]
) -> Response:
    """Store texts with their right headings, in place of those with the same text or id."""
    project = service.catalogue.project(project_id)
    if not service.access.allows_writing or not service.access.has_token(request.headers):
        raise ProblemError(
            403,
            f"Project '{project_id}' is not configured to allow learning via API without the "
            "token of the service",
            title="Learning not allowed",
        )
    records = Records()
    stored = records.documents(
        (f"document {number}", _record(one))
        for number, one in enumerate(documents, start=1)
        if one.text is not None and one.text.strip() and one.subjects is not None
    )
    service.check_texts(stored)
    if stored:
        collection = project.collection
        report = await service.run(lambda: service.write(collection, stored, records), writes=True)
        service.metrics.wrote(collection.name, report)
    return Response(status_code=204, media_type=_JSON)


@router.post(
    "/detect-language",
    response_model=DetectedLanguages,
    responses=_problems(400, 408, 413, 415, 429, 503),
    dependencies=[_only(_JSON)],
)
async def detect_language(service: ServiceOf, asked: DetectRequest) -> Response:
    """Which of some languages a text is in."""
    service.check_texts([Document("", "", asked.text)])
    shares = await service.gate.run(lambda: language_shares(asked.text, asked.languages))
    if shares is None:
        raise ProblemError(400, "unsupported candidate languages")
    results = [DetectedLanguage(language=one, score=share) for one, share in shares.items()]
    return _json(DetectedLanguages(results=results))


def project_message(project: Project) -> ProjectMessage:
    """A project as Annif describes one."""
    collection = project.collection
    modified = collection.modified()
    return ProjectMessage(
        project_id=project.id,
        name=project.title,
        language=collection.text_language(),
        backend=Backend(backend_id=project.method),
        vocab=_vocab(collection),
        vocab_language=collection.heading_language(),
        is_trained=project.is_trained,
        modification_time=None if modified is None else modified.isoformat(),
    )


def _vocab(collection: ServedCollection) -> Vocab:
    size = collection.snapshot.generation().next_column
    return Vocab(
        vocab_id=collection.name,
        languages=sorted(collection.vocabulary_languages()),
        size=size,
        loaded=size > 0,
    )


def _form(body: bytes) -> tuple[Document, _Asked]:
    """The fields of a form, encoded or not: some clients send the text as it is.

    An unencoded `&` ends the text, as in Annif; nothing of it is an error.
    """
    if not body:
        raise ProblemError(400, "RequestBody is required")
    fields: dict[str, str] = {}
    for key, value in parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True):
        # As Annif joins them: a text may come in parts, a limit may not.
        fields[key] = f"{fields[key]},{value}" if key in fields else value
    if "text" not in fields:
        raise ProblemError(400, "'text' is a required property")
    metadata = {
        key.removeprefix(_METADATA): value
        for key, value in fields.items()
        if key.startswith(_METADATA)
    }
    asked = _Asked(
        limit=_limit(fields.get("limit")),
        threshold=_threshold(fields.get("threshold")),
        language=fields.get("language", ""),
    )
    return _document(fields["text"], metadata), asked


def _limit(given: str | None) -> int:
    if given is None:
        return _LIMIT
    if not _INTEGER.fullmatch(given):
        raise ProblemError(400, "Wrong type, expected 'integer' for requestBody parameter 'limit'")
    # The contract says int32; a number with very many digits is not even read.
    limit = int(given[:20])
    if limit > _LARGEST:
        raise ProblemError(400, f"the limit is greater than the maximum of {_LARGEST} - 'limit'")
    if limit < 0:
        raise ProblemError(400, f"{limit} is less than the minimum of 0 - 'limit'")
    return limit


def _threshold(given: str | None) -> float:
    if given is None:
        return 0.0
    try:
        threshold = float(given)
    except ValueError:
        threshold = math.nan
    if math.isnan(threshold):
        raise ProblemError(
            400, "Wrong type, expected 'number' for requestBody parameter 'threshold'"
        )
    if not 0.0 <= threshold <= 1.0:
        bound = "less than the minimum of 0.0" if threshold < 0 else "greater than 1.0"
        raise ProblemError(400, f"{threshold:g} is {bound} - 'threshold'")
    return threshold


def _document(text: str, metadata: Mapping[str, str]) -> Document:
    """A text of Annif: what precedes ` ¤ ` is the title, else the metadata may have one."""
    title, mark, body = clean_text(text).partition(TITLE_MARK)
    if not mark:
        title, body = clean_text(metadata.get("title", "")), title
    return Document("", title, body)


def _record(document: LearnDocument) -> dict[str, Any]:
    """A document to learn from as corpus files have it."""
    title, mark, body = (document.text or "").partition(TITLE_MARK)
    record: dict[str, Any] = {
        "text": body if mark else document.text,
        "metadata": document.metadata,
        "subjects": [subject.model_dump() for subject in document.subjects or ()],
    }
    if mark:
        record["title"] = title
    if document.document_id:
        record["document_id"] = document.document_id
    return record


def _given_id(document: BatchDocument) -> str | None:
    return document.document_id if "document_id" in document.model_fields_set else None


def _label_language(collection: ServedCollection, asked: str) -> str:
    if not asked:
        return collection.heading_language()
    if asked not in collection.vocabulary_languages():
        raise ProblemError(400, f'language "{asked}" not supported by vocabulary')
    return asked


async def _suggested(
    service: Service, project: Project, documents: Sequence[Document], asked: _Asked
) -> list[list[Result]]:
    """The headings of each document. Single documents of several requests share a batch."""
    service.check_texts(documents)
    await service.loaded()

    def work(batch: Sequence[Document]) -> list[list[Result]]:
        return _results(project, batch, asked)

    if len(documents) == 1:
        key = ("annif", project.id, asked)
        results = [await service.gate.run_together(key, documents[0], work)]
    else:
        results = await service.gate.run(lambda: work(documents))
    service.metrics.documents.labels(project.collection.name, project.method).inc(len(documents))
    return results


def _results(project: Project, documents: Sequence[Document], asked: _Asked) -> list[list[Result]]:
    """The best headings of each document, none with a score below the threshold or 0."""
    collection = project.collection
    language = _label_language(collection, asked.language)
    results: list[list[Result]] = [[] for _ in documents]
    places = [place for place, document in enumerate(documents) if document.text.strip()]
    if documents and not project.is_trained:
        raise ProblemError(
            503, "Couldn't initialize: Project is not trained.", title="Service unavailable"
        )
    if not places or not asked.limit:
        return results
    # Annif's threshold is one of results; that of a method may be one of its parts.
    settings = collection.settings(project.method).changed(limit=asked.limit)
    ranking = collection.indexer.labels([documents[place] for place in places], settings)
    vocabulary = collection.snapshot.vocabulary
    for place, (columns, scores) in zip(places, ranking, strict=True):
        results[place] = [
            Result(
                uri=vocabulary[column].id,
                label=vocabulary[column].name(language),
                notation=next(iter(vocabulary[column].notations), None),
                score=min(score, 1.0),
            )
            for column, score in zip(columns.tolist(), scores.tolist(), strict=True)
            if score > 0.0 and score >= asked.threshold
        ]
    return results
