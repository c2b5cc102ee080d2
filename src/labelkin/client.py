"""A client of the service: `labelkin serve` from Python, on another machine or in another process.

>>> with Client("http://127.0.0.1:8080") as client:
...     answer = client.suggest("mesh", "Cefuroxime for pneumonia in children")
...     [heading.name for heading in answer.results[0].suggestions]
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from pydantic import BaseModel

from labelkin.closing import Closing
from labelkin.corpus.document import Document
from labelkin.exceptions import MissingExtraError, ServiceError
from labelkin.messages import (
    CollectionDetails,
    CollectionMessage,
    CompareAnswer,
    ConceptHit,
    ConceptMessage,
    ConceptPage,
    Dashboard,
    DecisionMessage,
    DecisionPage,
    DocumentMessage,
    DocumentPage,
    DocumentSuggestions,
    EvaluationReport,
    ExplainAnswer,
    LatentMapMessage,
    NeighboursAnswer,
    ReadAnswer,
    Record,
    StoredDocumentMessage,
    SuggestAnswer,
    Tree,
    VerdictsStored,
    WorkItemDetails,
    WorkItemMessage,
    WorkItemPage,
    WorkItemSaved,
    WorkListMessage,
    WorkListPage,
    WorkListRemoved,
    WriteReport,
    as_json,
)

if TYPE_CHECKING:
    import httpx

Answer = TypeVar("Answer", bound=BaseModel)
# A text, a record as in JSON Lines files, or a document.
Given = str | Mapping[str, Any] | Document

_JSON_LINES = "application/x-ndjson"
_FILE = {"Content-Type": "application/octet-stream"}
_PAGE = 1000
_READY_SECONDS = 0.2


class Client(Closing):
    """Calls the service at a URL; threads may share it.

    `token` is needed to write. What the client has written counts in all
    suggestions, neighbours, evaluations and documents that it gets later, also from
    a service with several processes. Errors of the service are `ServiceError`s.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        *,
        token: str = "",
        timeout: float = 60.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                "the client needs httpx; install it with: pip install 'labelkin[client]'"
            ) from error
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(
            base_url=url.rstrip("/") + "/api/v1/",
            headers=headers,
            timeout=timeout,
            transport=transport,
        )
        self._errors = httpx.HTTPError
        self._generations: dict[str, int] = {}
        self._lock = Lock()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def version(self) -> str:
        """The version of labelkin that answers."""
        return str(self._json("GET", "version")["version"])

    def is_ready(self) -> bool:
        """Whether the service has loaded all models."""
        try:
            return self._http.get("ready").status_code == 200
        except self._errors:
            return False

    def wait(self, seconds: float = 60.0) -> None:
        """Wait until the service is ready; ServiceError if it takes longer."""
        end = time.monotonic() + seconds
        while not self.is_ready():
            if time.monotonic() > end:
                raise ServiceError(f"{self._http.base_url}: not ready within {seconds:g} seconds")
            time.sleep(_READY_SECONDS)

    def collections(self) -> list[CollectionMessage]:
        """All collections that are served."""
        listed = self._json("GET", "collections")["collections"]
        return [CollectionMessage.model_validate(one) for one in listed]

    def collection(self, collection: str) -> CollectionDetails:
        """One collection with its methods, models and settings."""
        return self._get(CollectionDetails, collection, "")

    def suggest(
        self, collection: str, documents: Given | Iterable[Given], **asked: Any
    ) -> SuggestAnswer:
        """Headings for documents; `asked` is as in `messages.SuggestRequest`."""
        records = [_record(document) for document in _listed(documents)]
        return self._post(SuggestAnswer, collection, "suggest", documents=records, **asked)

    def compare(self, collection: str, document: Given, **asked: Any) -> CompareAnswer:
        """What several methods suggest for a document, side by side."""
        record = _record(document)
        return self._post(CompareAnswer, collection, "compare", document=record, **asked)

    def explain(
        self, collection: str, document: Given, headings: Iterable[str], **asked: Any
    ) -> ExplainAnswer:
        """Why some headings are or are not suggested for a document."""
        return self._post(
            ExplainAnswer,
            collection,
            "explain",
            document=_record(document),
            headings=list(headings),
            **asked,
        )

    def neighbours(
        self, collection: str, documents: Given | Iterable[Given], **asked: Any
    ) -> NeighboursAnswer:
        """The most similar indexed documents of each."""
        records = [_record(document) for document in _listed(documents)]
        return self._post(NeighboursAnswer, collection, "neighbours", documents=records, **asked)

    def annotate(
        self, collection: str, documents: Iterable[Given], **asked: Any
    ) -> Iterator[DocumentSuggestions]:
        """Headings for any number of documents, one after another.

        Raises a ServiceError at a document that the service cannot read.
        """
        given = (_line(document) for document in documents)
        parameters = self._seen(collection) | _parameters(asked)
        path = _path(collection, "annotate")
        with (
            self._errors_explained(),
            self._http.stream(
                "POST",
                path,
                content=given,
                params=parameters,
                headers={"Content-Type": _JSON_LINES},
            ) as response,
        ):
            if response.status_code != 200:
                response.read()
                _raise_problem(response)
            for line in response.iter_lines():
                answer = json.loads(line)
                if "error" in answer:
                    where = f"document {answer['line']}: " if "line" in answer else ""
                    raise ServiceError(f"{where}{answer['error']}")
                yield DocumentSuggestions.model_validate(answer)

    def evaluate(
        self, collection: str, documents: Iterable[Given], *, save: bool = False, **asked: Any
    ) -> EvaluationReport:
        """How methods do on documents that have headings; `save` stores it for the dashboard."""
        records = [_record(document) for document in documents]
        path = "evaluate?save=true" if save else "evaluate"
        return self._post(EvaluationReport, collection, path, documents=records, **asked)

    def search(
        self, collection: str, query: str = "", *, language: str | None = None
    ) -> Iterator[ConceptHit]:
        """All concepts with a name that contains the query, the best first."""
        offset, total = 0, 1
        while offset < total:
            page = self.search_page(
                collection, query, offset=offset, limit=_PAGE, language=language
            )
            yield from page.concepts
            offset, total = offset + len(page.concepts), page.total if page.concepts else 0

    def search_page(self, collection: str, query: str = "", **asked: Any) -> ConceptPage:
        """Some of the concepts that a search finds, and how many there are."""
        return self._get(ConceptPage, collection, "concepts", query=query, **asked)

    def concept(
        self, collection: str, identifier: str, *, language: str | None = None
    ) -> ConceptMessage:
        """One concept by id, URI, notation or name."""
        path = f"concepts/{_quoted(identifier)}"
        return self._get(ConceptMessage, collection, path, language=language)

    def tree(self, collection: str, concept: str | None = None, **asked: Any) -> Tree:
        """The place of a concept in the hierarchy, and what is below it."""
        return self._get(Tree, collection, "tree", concept=concept, **asked)

    def dashboard(self, collection: str) -> Dashboard:
        """A collection in figures, with the latest evaluation."""
        return self._get(Dashboard, collection, "dashboard")

    def latent(
        self, collection: str, *, limit: int | None = None, language: str | None = None
    ) -> LatentMapMessage:
        """A map of the most frequent headings; takes some seconds after a training."""
        return self._get(LatentMapMessage, collection, "latent", limit=limit, language=language)

    def document(self, collection: str, identifier: str) -> DocumentMessage:
        """A stored document."""
        path = _document_path(identifier)
        return self._get(DocumentMessage, collection, path, **self._seen(collection))

    def show(
        self, collection: str, identifier: str, neighbours: int = 5, **asked: Any
    ) -> StoredDocumentMessage:
        """A stored document with its nearest neighbours."""
        path, given = _document_path(identifier), {"neighbours": neighbours, **asked}
        return self._get(StoredDocumentMessage, collection, path, **self._seen(collection), **given)

    def documents(self, collection: str) -> Iterator[DocumentMessage]:
        """All stored documents, by id."""
        after: str | None = ""
        while after is not None:
            page = self._get(
                DocumentPage,
                collection,
                "documents",
                after=after,
                limit=_PAGE,
                **self._seen(collection),
            )
            yield from page.documents
            after = page.next

    def add(
        self, collection: str, documents: Given | Iterable[Given], *, take_older: bool = False
    ) -> WriteReport:
        """Store any number of documents; those with known ids are replaced.

        Records that are older than the stored ones are left out, unless
        `take_older`; if all are, that is a ServiceError with the status 409.
        """
        return self._send(collection, "documents", documents, take_older)

    def learn(
        self, collection: str, records: Given | Iterable[Given], *, take_older: bool = False
    ) -> WriteReport:
        """Correct the headings of any number of documents by records with an id and labels.

        Records that have a text are stored as by `add`.
        """
        return self._send(collection, "learn", records, take_older)

    def replace(
        self, collection: str, identifier: str, document: Given, *, take_older: bool = False
    ) -> WriteReport:
        """Store a document under this id."""
        path, asked = _document_path(identifier), _taking(take_older)
        return self._write("PUT", collection, path, json=_record(document), params=asked)

    def correct(
        self,
        collection: str,
        identifier: str,
        labels: Iterable[str | Mapping[str, Any]],
        *,
        revision: str | int | None = None,
        take_older: bool = False,
    ) -> WriteReport:
        """Replace the headings of a stored document; its text stays."""
        path, asked = _document_path(identifier), _taking(take_older)
        body = {"labels": list(labels), "revision": revision}
        return self._write("PATCH", collection, path, json=body, params=asked)

    def remove(self, collection: str, identifier: str) -> WriteReport:
        """Remove a stored document."""
        return self._write("DELETE", collection, _document_path(identifier))

    def read(self, collection: str, name: str, content: bytes | Iterable[bytes]) -> ReadAnswer:
        """The records of a file, read by the service; nothing is stored."""
        answer = self._json(
            "POST", _path(collection, "read"), params={"name": name}, content=content, headers=_FILE
        )
        return ReadAnswer.model_validate(answer)

    def add_worklist(
        self, collection: str, name: str, content: bytes | Iterable[bytes]
    ) -> WorkListMessage:
        """A new work list of the records of a file, however large."""
        answer = self._json(
            "POST",
            _path(collection, "worklists"),
            params={"name": name},
            content=content,
            headers=_FILE,
        )
        return WorkListMessage.model_validate(answer)

    def worklists(self, collection: str) -> list[WorkListMessage]:
        """All work lists, the newest first."""
        return self._get(WorkListPage, collection, "worklists").worklists

    def worklist(self, collection: str, worklist: str) -> WorkListMessage:
        """One work list."""
        return self._get(WorkListMessage, collection, _worklist_path(worklist))

    def remove_worklist(self, collection: str, worklist: str) -> int:
        """Remove a work list with its drafts; how many records it had."""
        answer = self._json("DELETE", _path(collection, _worklist_path(worklist)))
        return WorkListRemoved.model_validate(answer).removed

    def worklist_items(
        self, collection: str, worklist: str, *, status: str | None = None
    ) -> Iterator[WorkItemMessage]:
        """The records of a work list without their texts, in their order."""
        path, offset, total = f"{_worklist_path(worklist)}/items", 0, 1
        while offset < total:
            page = self._get(
                WorkItemPage, collection, path, offset=offset, limit=_PAGE, status=status
            )
            yield from page.items
            offset, total = offset + len(page.items), page.total if page.items else 0

    def worklist_item(self, collection: str, worklist: str, place: int) -> WorkItemDetails:
        """One record of a work list with its draft."""
        return self._get(WorkItemDetails, collection, f"{_worklist_path(worklist)}/items/{place}")

    def save_item(
        self, collection: str, worklist: str, place: int, status: str, **given: Any
    ) -> WorkItemSaved:
        """Store the status of a record; `draft` and `labels` stay unless they are given."""
        path = _path(collection, f"{_worklist_path(worklist)}/items/{place}")
        answer = self._json("PUT", path, json={"status": status, **given})
        return WorkItemSaved.model_validate(answer)

    def move(self, collection: str, worklist: str, position: int) -> WorkListMessage:
        """Move the position of a work list."""
        path = _path(collection, f"{_worklist_path(worklist)}/position")
        return WorkListMessage.model_validate(self._json("PUT", path, json={"position": position}))

    def export_worklist(
        self, collection: str, worklist: str, *, format: str = "jsonl"
    ) -> Iterator[bytes]:
        """All records of a work list with their final headings, as the parts of a file."""
        return self._download(collection, f"{_worklist_path(worklist)}/export", format=format)

    def add_verdicts(
        self,
        collection: str,
        document: Given,
        verdicts: Iterable[Mapping[str, Any]],
        **given: Any,
    ) -> int:
        """Store an indexer's verdicts; the rest is as in `messages.VerdictsRequest`."""
        body = {"document": _record(document), "verdicts": [dict(one) for one in verdicts], **given}
        answer = self._json("POST", _path(collection, "verdicts"), json=body)
        return VerdictsStored.model_validate(answer).stored

    def verdicts(self, collection: str) -> Iterator[DecisionMessage]:
        """All decisions of indexers, the newest first."""
        offset, total = 0, 1
        while offset < total:
            page = self._get(DecisionPage, collection, "verdicts", offset=offset, limit=_PAGE)
            yield from page.decisions
            offset, total = offset + len(page.decisions), page.total if page.decisions else 0

    def export_verdicts(
        self, collection: str, *, format: str = "jsonl", every: bool = False
    ) -> Iterator[bytes]:
        """The latest decisions, or every one, as the parts of a file."""
        asked = {"format": format, "all": "true" if every else None}
        return self._download(collection, "verdicts/export", **asked)

    def _download(self, collection: str, path: str, **asked: Any) -> Iterator[bytes]:
        with (
            self._errors_explained(),
            self._http.stream(
                "GET", _path(collection, path), params=_parameters(asked)
            ) as response,
        ):
            if response.status_code != 200:
                response.read()
                _raise_problem(response)
            yield from response.iter_bytes()

    def _seen(self, collection: str) -> dict[str, Any]:
        """The state of a collection that the client has written, for the requests that follow."""
        generation = self._generations.get(collection)
        return {} if generation is None else {"generation": generation}

    def _send(
        self, collection: str, path: str, records: Given | Iterable[Given], take_older: bool
    ) -> WriteReport:
        """Write any number of records as JSON Lines."""
        return self._write(
            "POST",
            collection,
            path,
            content=(_line(record) for record in _listed(records)),
            headers={"Content-Type": _JSON_LINES},
            params=_taking(take_older),
        )

    def _write(self, method: str, collection: str, path: str, **rest: Any) -> WriteReport:
        answer = self._json(method, _path(collection, path), **rest)
        report = WriteReport.model_validate(answer)
        with self._lock:
            known = self._generations.get(collection, 0)
            self._generations[collection] = max(known, report.generation)
        return report

    def _get(self, kind: type[Answer], collection: str, path: str, **asked: Any) -> Answer:
        answer = self._json("GET", _path(collection, path), params=_parameters(asked))
        return kind.model_validate(answer)

    def _post(self, kind: type[Answer], collection: str, path: str, **body: Any) -> Answer:
        answer = self._json(
            "POST", _path(collection, path), json={**self._seen(collection), **body}
        )
        return kind.model_validate(answer)

    def _json(self, method: str, path: str, **rest: Any) -> Any:
        with self._errors_explained():
            response = self._http.request(method, path, **rest)
        if not response.is_success:
            _raise_problem(response)
        return response.json()

    def _errors_explained(self) -> _ErrorsExplained:
        return _ErrorsExplained(self._errors, str(self._http.base_url))


class _ErrorsExplained:
    """Turns errors of the connection into ServiceErrors."""

    def __init__(self, kind: type[Exception], url: str) -> None:
        self._kind = kind
        self._url = url

    def __enter__(self) -> None:
        return

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, self._kind):
            reason = str(error) or type(error).__name__
            raise ServiceError(
                f"{self._url}: {reason}; is the service running? start it with `labelkin serve`"
            ) from error


def _raise_problem(response: httpx.Response) -> None:
    try:
        detail = str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        detail = response.text[:200] or response.reason_phrase
    raise ServiceError(detail, status=response.status_code)


def _path(collection: str, path: str) -> str:
    return f"collections/{quote(collection, safe='')}" + (f"/{path}" if path else "")


def _document_path(identifier: str) -> str:
    return f"documents/{_quoted(identifier)}"


def _quoted(identifier: str) -> str:
    """An id as the last part of a path; `.` and `..` would lead elsewhere."""
    return quote(identifier, safe="").replace(".", "%2E")


def _worklist_path(identifier: str) -> str:
    return f"worklists/{quote(identifier, safe='')}"


def _parameters(asked: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if value is not None}


def _taking(older: bool) -> dict[str, str]:
    return {"take_older": "true"} if older else {}


def _listed(documents: Given | Iterable[Given]) -> Iterable[Given]:
    if isinstance(documents, str | Mapping | Document):
        return [documents]
    return documents


def _line(document: Given) -> bytes:
    return json.dumps(_record(document), ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _record(document: Given) -> dict[str, Any]:
    """A document as JSON."""
    if isinstance(document, str):
        return {"text": document}
    if not isinstance(document, Document):
        return dict(document)
    return as_json(Record.of(document))
