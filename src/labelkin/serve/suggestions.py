"""Headings for documents, their reasons, and how well methods do: `/api/v1/collections/NAME/…`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from labelkin.corpus.document import Document
from labelkin.evaluate import DEFAULT_MEASURES, evaluate, parse_measure
from labelkin.evaluate.gold import unknown_labels
from labelkin.evaluate.stored import EvaluationSummary
from labelkin.exceptions import ConfigError, ModelMismatchError
from labelkin.messages import (
    Asked,
    CompareAnswer,
    CompareRequest,
    ConceptRef,
    DocumentNeighbours,
    DocumentSuggestions,
    EvaluateRequest,
    EvaluationReport,
    ExplainAnswer,
    ExplainRequest,
    MethodReport,
    MethodSuggestions,
    NeighbourMessage,
    NeighboursAnswer,
    NeighboursRequest,
    SuggestAnswer,
    SuggestionMessage,
    SuggestRequest,
)
from labelkin.scoring.requested import requested_settings
from labelkin.scoring.settings import Settings
from labelkin.scoring.suggestion import Suggestion
from labelkin.serve.answers import answered, problems
from labelkin.serve.catalogue import ServedCollection
from labelkin.serve.problems import ProblemError
from labelkin.serve.records import Records, query
from labelkin.serve.service import CollectionOf, ServiceOf

router = APIRouter(tags=["suggestions"])
_PROBLEMS = problems(400, 404, 408, 413, 415, 422, 429, 503)


@router.post("/suggest", response_model=SuggestAnswer, responses=_PROBLEMS)
async def suggest(service: ServiceOf, served: CollectionOf, asked: SuggestRequest) -> Response:
    """Suggest headings for documents, with the evidence for each.

    A document whose id is in the collection is not its own evidence.
    """
    documents = [query(record) for record in asked.documents]
    service.check_texts(documents)

    def answer_to(batch: Sequence[Document]) -> SuggestAnswer:
        return suggested(served, batch, asked, settings_of(served, asked, asked.method))

    def answers_to(batch: Sequence[Document]) -> list[SuggestAnswer]:
        answer = answer_to(batch)
        return [answer.model_copy(update={"results": [one]}) for one in answer.results]

    await service.loaded()
    if len(documents) > 1:
        answer = await service.gate.run(lambda: answer_to(documents))
    else:
        # What the answer depends on besides the document.
        key = ("suggest", served.name, asked.model_dump_json(exclude={"documents"}))
        answer = await service.gate.run_together(key, documents[0], answers_to)
    service.metrics.documents.labels(served.name, answer.method).inc(len(documents))
    return answered(answer)


@router.post("/compare", response_model=CompareAnswer, responses=_PROBLEMS)
async def compare(service: ServiceOf, served: CollectionOf, asked: CompareRequest) -> Response:
    """Suggest headings for a document with several methods side by side."""
    document = query(asked.document)
    service.check_texts([document])

    def work() -> CompareAnswer:
        served.require(asked.generation)
        language = served.language(asked.language)
        methods = asked.methods
        if methods is None:
            methods = [one for one in served.indexer.usable_methods() if served.is_trained(one)]
        # What does not apply to one of the methods is ignored there.
        settings = [settings_of(served, asked, one, lenient=True) for one in dict.fromkeys(methods)]
        answers = served.indexer.answers(
            [document],
            settings,
            representation=asked.representation,
            fold=asked.fold_broader,
            explain=asked.signals,
        )
        return CompareAnswer(
            generation=served.snapshot.generation().number
            if not answers
            else answers[0].generation,
            results=[
                MethodSuggestions(
                    method=one.method,
                    suggestions=_messages(
                        served,
                        answer.suggestions[0] if document.text.strip() else [],
                        asked,
                        language,
                    ),
                )
                for one, answer in zip(settings, answers, strict=True)
            ],
        )

    return answered(await service.run(work))


@router.post("/explain", response_model=ExplainAnswer, responses=_PROBLEMS)
async def explain(service: ServiceOf, served: CollectionOf, asked: ExplainRequest) -> Response:
    """Why some headings are or are not suggested for a document: rank, score and evidence."""
    document = query(asked.document)
    service.check_texts([document])

    def work() -> ExplainAnswer:
        language = served.language(asked.language)
        settings = settings_of(served, asked, asked.method)
        wanted = [served.snapshot.vocabulary.find(heading) for heading in asked.headings]
        explained = served.indexer.explain(
            document,
            [concept.id for concept in wanted],
            settings=settings,
            representation=asked.representation,
        )
        ranked = {one.concept.id for one in explained}
        return ExplainAnswer(
            method=settings.method,
            headings=_messages(served, explained, asked, language),
            unranked=[ConceptRef.of(one, language) for one in wanted if one.id not in ranked],
        )

    return answered(await service.run(work))


@router.post("/neighbours", response_model=NeighboursAnswer, responses=_PROBLEMS)
async def neighbours(
    service: ServiceOf, served: CollectionOf, asked: NeighboursRequest
) -> Response:
    """The most similar indexed documents with their distances and headings."""
    documents = [query(record) for record in asked.documents]
    service.check_texts(documents)

    def work() -> NeighboursAnswer:
        served.require(asked.generation)
        served.check_representation(asked.representation)
        language = served.language(asked.language)
        near = served.indexer.neighbours(
            documents, asked.k, representation=asked.representation, terms=asked.terms
        )
        return NeighboursAnswer(
            results=[
                DocumentNeighbours(
                    id=document.id or None,
                    neighbours=[NeighbourMessage.of(one, language) for one in of_document],
                )
                for document, of_document in zip(documents, near, strict=True)
            ]
        )

    return answered(await service.run(work))


@router.post(
    "/evaluate", response_model=EvaluationReport, responses=_PROBLEMS | problems(401, 403, 507)
)
async def evaluate_methods(
    request: Request,
    service: ServiceOf,
    served: CollectionOf,
    asked: EvaluateRequest,
    save: Annotated[
        bool, Query(description="Store the values for the dashboard; needs the token.")
    ] = False,
) -> Response:
    """Measure methods on documents that have headings."""
    if save:
        service.access.check(request.headers)
    records = Records()
    documents = records.documents(
        (f"document {number}", record.model_dump(exclude_unset=True))
        for number, record in enumerate(asked.documents, start=1)
    )
    service.check_texts(documents)
    labelled = [document for document in documents if document.labels]
    if not labelled:
        raise ProblemError(422, "no document with labels to evaluate on")
    measures = [parse_measure(name) for name in asked.measures or ()] or DEFAULT_MEASURES

    def work() -> EvaluationReport:
        served.require(asked.generation)
        served.check_representation(asked.representation)
        indexer = served.indexer
        methods = asked.methods or [indexer.config.suggest.method]
        settings = [settings_of(served, None, one) for one in dict.fromkeys(methods)]
        evaluations = indexer.compare(labelled, settings, representation=asked.representation)
        values = {
            one.method: evaluate(evaluation, measures)
            for one, evaluation in zip(settings, evaluations, strict=True)
        }
        if save:
            indexer.save_evaluation(EvaluationSummary.now(len(labelled), values))
        return EvaluationReport(
            documents=len(labelled),
            without_labels=len(documents) - len(labelled),
            known=sum(indexer.known(labelled)),
            unresolved=dict(unknown_labels(labelled, served.snapshot.vocabulary)),
            reports=[
                MethodReport(
                    method=method,
                    measures={
                        name: None if math.isnan(value) else float(value)
                        for name, value in of_method.items()
                    },
                )
                for method, of_method in values.items()
            ],
        )

    return answered(await service.run(work))


def settings_of(
    served: ServedCollection, asked: Asked | None, method: str | None, *, lenient: bool = False
) -> Settings:
    """The settings that a request asks for; a 503 if the method has not been trained."""
    given: dict[str, Any] = {}
    if asked is not None:
        served.require(asked.generation)
        served.check_representation(asked.representation)
        given = asked.model_dump(
            include={
                "k",
                "weighting",
                "limit",
                "threshold",
                "accept",
                "review",
                "include",
                "exclude",
            }
        )
    indexer = served.indexer
    settings = requested_settings(
        indexer.config, indexer.runtime.models, method, lenient=lenient, **given
    )
    method_used, models = settings.implementation, indexer.runtime.models
    method_used.check_installed()
    for kind in method_used.required_models():
        models.get(kind)
    if asked is not None and asked.representation is not None:
        try:
            method_used.check_representation(models, asked.representation)
        except ModelMismatchError as error:
            # Not a fault of the model: the request asks for something else.
            raise ConfigError(str(error)) from error
    return settings


def suggested(
    served: ServedCollection, documents: Sequence[Document], asked: Asked, settings: Settings
) -> SuggestAnswer:
    """What is suggested for documents; nothing for those without a text."""
    language = served.language(asked.language)
    with_text = [document for document in documents if document.text.strip()]
    answer = served.indexer.answer(
        with_text,
        settings=settings,
        representation=asked.representation,
        fold=asked.fold_broader,
        explain=asked.signals,
    )
    suggestions = iter(answer.suggestions)
    return SuggestAnswer(
        generation=answer.generation,
        method=settings.method,
        results=[
            DocumentSuggestions(
                id=document.id or None,
                title=document.title,
                suggestions=_messages(
                    served, next(suggestions) if document.text.strip() else [], asked, language
                ),
            )
            for document in documents
        ],
    )


def _messages(
    served: ServedCollection, suggestions: Sequence[Suggestion], asked: Asked, language: str
) -> list[SuggestionMessage]:
    count = served.documents_with()
    return [
        SuggestionMessage.from_suggestion(
            one,
            language,
            evidence=asked.evidence,
            carriers=asked.carriers,
            documents=count(one.concept.id),
        )
        for one in suggestions
    ]
