"""What all endpoints share: the collections, the threads that compute, the limits, the token."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from labelkin.closing import Closing
from labelkin.corpus.document import Correction, Document
from labelkin.messages import WriteReport
from labelkin.serve.access import Access
from labelkin.serve.catalogue import Catalogue, ServedCollection
from labelkin.serve.gate import Gate
from labelkin.serve.metrics import Metrics
from labelkin.serve.problems import ProblemError, busy
from labelkin.serve.records import Records
from labelkin.serve.settings import ServiceSettings, token
from labelkin.store.reports import AddReport

Result = TypeVar("Result")

# Between two looks at whether everything is loaded.
_LOOK_SECONDS = 0.05


class Service(Closing):
    """One running service."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.access = Access(token(), settings.read_only)
        self.catalogue = Catalogue(
            settings.collections,
            read_only=settings.read_only,
            representations=settings.representations,
        )
        self.gate = Gate(settings.concurrency, settings.queue, settings.timeout_seconds)
        self.metrics = Metrics(self.catalogue, self.gate)

    def close(self) -> None:
        """End all threads and close all collections."""
        self.gate.close()
        self.catalogue.close()

    async def run(self, work: Callable[[], Result], *, writes: bool = False) -> Result:
        """The result of `work`, from one of the threads, once all models are loaded."""
        await self.loaded()
        return await self.gate.run(work, writes=writes)

    async def look_up(self, work: Callable[[], Result]) -> Result:
        """The result of `work` that takes no time to speak of: it waits for no other request."""
        await self.loaded()
        return await asyncio.to_thread(work)

    async def loaded(self) -> None:
        """Wait until all models are loaded."""
        waited = 0.0
        while not self.catalogue.is_loaded:
            if waited >= self.settings.timeout_seconds:
                raise busy("models are still being loaded; try again in a moment")
            await asyncio.sleep(_LOOK_SECONDS)
            waited += _LOOK_SECONDS

    def check_texts(self, documents: Sequence[Document | Correction], first: int = 1) -> None:
        """Refuse too many documents, and texts that are too long; `first` is for messages."""
        most = self.settings.max_documents
        if len(documents) > most:
            raise ProblemError(
                413,
                f"{len(documents)} documents; send at most {most} at a time, or stream them to "
                "annotate or documents, which have no limit",
            )
        self.check_lengths(documents, first)

    def check_lengths(self, documents: Iterable[Document | Correction], first: int = 1) -> None:
        """Refuse texts that are too long; `first` is the number of the first in messages."""
        longest = self.settings.max_characters
        for number, document in enumerate(documents, start=first):
            if isinstance(document, Document) and len(document.text) > longest:
                raise ProblemError(
                    413,
                    f"document {number} has {len(document.text)} characters; send at most "
                    f"{longest}",
                )

    def write(
        self,
        collection: ServedCollection,
        items: Sequence[Document | Correction],
        records: Records,
        *,
        take_older: bool = False,
    ) -> WriteReport:
        """Store documents or corrections; every request that follows sees them.

        A 409 if all of them are older than what is stored.
        """
        report = collection.indexer.add(items, take_older=take_older)
        refuse_stale(report, len(items))
        generation = collection.settled()
        return WriteReport.of(
            report,
            generation,
            ids=records.ids,
            skipped=records.report.left_out,
            notes=records.report.repaired,
        )


def refuse_stale(report: AddReport, given: int) -> None:
    """Answer with a 409 if something was given and all of it is older than what is stored."""
    if not report.stale or report.stale < given:
        return
    first = report.left_out[0]
    parts = [{"where": one.where, "problem": one.problem} for one in report.left_out]
    more = f" (and {report.stale - 1} more)" if report.stale > 1 else ""
    raise ProblemError(
        409,
        f"document {first.id!r}: {first.problem}{more}; take_older=true stores it all the same",
        parts=parts,
    )


# Coroutines, though they wait for nothing: FastAPI hands plain functions to a thread each time.
async def service_of(request: Request) -> Service:
    """The service that a request is sent to."""
    return _service(request)


async def writer_of(request: Request) -> Service:
    """The service, if the request may write; else a problem."""
    service = _service(request)
    service.access.check(request.headers)
    return service


async def collection_of(request: Request, collection: str) -> ServedCollection:
    """The collection that a request names."""
    return _service(request).catalogue.collection(collection)


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


ServiceOf = Annotated[Service, Depends(service_of)]
WriterOf = Annotated[Service, Depends(writer_of)]
CollectionOf = Annotated[ServedCollection, Depends(collection_of)]
