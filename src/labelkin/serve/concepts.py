"""The vocabulary of a collection: search by name, one concept, and the tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated

from fastapi import APIRouter, Query, Response

from labelkin.exceptions import VocabularyError
from labelkin.messages import (
    ConceptHit,
    ConceptMessage,
    ConceptPage,
    ConceptRef,
    Tree,
    TreeNode,
    named,
)
from labelkin.serve.answers import answered, problems
from labelkin.serve.problems import ProblemError
from labelkin.serve.service import CollectionOf, ServiceOf
from labelkin.vocab.concept import Concept
from labelkin.vocab.vocabulary import Vocabulary

router = APIRouter(tags=["vocabulary"])
_PROBLEMS = problems(404, 422, 429, 503)

Language = Annotated[str | None, Query(description="The language of names, or `all`.")]
Offset = Annotated[int, Query(ge=0, le=2**53, description="How many to leave out.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="At most this many.")]


@router.get("/concepts", response_model=ConceptPage, responses=_PROBLEMS)
async def search(
    service: ServiceOf,
    served: CollectionOf,
    query: Annotated[
        str,
        Query(
            max_length=1000,
            description="Part of a name or synonym in any language, an id or a notation; empty "
            "for all concepts.",
            examples=["pneum"],
        ),
    ] = "",
    language: Language = None,
    offset: Offset = 0,
    limit: Limit = 20,
) -> Response:
    """Search concepts by their names: equal ones first, then those that begin with the query."""

    def work() -> ConceptPage:
        shown, count = served.language(language), served.documents_with()
        page = served.snapshot.vocabulary.search_page(query, offset, limit)
        return ConceptPage(
            total=page.total,
            offset=offset,
            concepts=[
                ConceptHit(
                    **named(hit.concept, shown),
                    matched=hit.name,
                    matched_language=hit.language or None,
                    notations=list(hit.concept.notations),
                    deprecated=hit.concept.deprecated,
                    documents=count(hit.concept.id),
                )
                for hit in page.hits
            ],
        )

    return answered(await service.run(work))


@router.get("/concepts/{identifier:path}", response_model=ConceptMessage, responses=_PROBLEMS)
async def concept(
    service: ServiceOf, served: CollectionOf, identifier: str, language: Language = None
) -> Response:
    """One concept by its id, URI, notation or name."""

    def work() -> ConceptMessage:
        shown, count = served.language(language), served.documents_with()
        vocabulary = served.snapshot.vocabulary
        one = _concept(vocabulary, identifier)

        def refs(identifiers: Iterable[str]) -> list[ConceptRef]:
            return [
                ConceptRef.of(vocabulary.concept(other), shown)
                for other in identifiers
                if other in vocabulary
            ]

        return ConceptMessage(
            **named(one, "all") | named(one, shown),
            synonyms={language: list(names) for language, names in one.synonyms.items()},
            notations=list(one.notations),
            broader=refs(vocabulary.broader(one.id)),
            narrower=refs(vocabulary.narrower(one.id)),
            related=refs(one.related),
            deprecated=one.deprecated,
            replaced_by=list(one.replaced_by),
            documents=count(one.id),
        )

    return answered(await service.run(work))


@router.get("/tree", response_model=Tree, responses=_PROBLEMS)
async def tree(
    service: ServiceOf,
    served: CollectionOf,
    concept: Annotated[
        str | None, Query(description="An id or name; the top of the vocabulary if left out.")
    ] = None,
    language: Language = None,
    offset: Offset = 0,
    limit: Limit = 100,
) -> Response:
    """The place of a concept in the hierarchy, and what is directly below it."""

    def work() -> Tree:
        shown, count = served.language(language), served.documents_with()
        vocabulary = served.snapshot.vocabulary
        one = None if concept is None else _concept(vocabulary, concept)
        below = (
            vocabulary.top()
            if one is None
            else [vocabulary.concept(child) for child in vocabulary.narrower(one.id)]
        )
        below = sorted(below, key=lambda child: (child.name(shown).casefold(), child.id))
        return Tree(
            concept=None if one is None else _node(one, vocabulary, shown, count),
            paths=[]
            if one is None
            else [
                [ConceptRef.of(above, shown) for above in path] for path in vocabulary.paths(one.id)
            ],
            children=[
                _node(child, vocabulary, shown, count) for child in below[offset : offset + limit]
            ],
            total=len(below),
            offset=offset,
        )

    return answered(await service.run(work))


def _node(
    concept: Concept, vocabulary: Vocabulary, language: str, count: Callable[[str], int]
) -> TreeNode:
    return TreeNode(
        **named(concept, language),
        narrower=len(vocabulary.narrower(concept.id)),
        documents=count(concept.id),
    )


def _concept(vocabulary: Vocabulary, label: str) -> Concept:
    """The concept with this id, notation or name; a 404 if there is none."""
    try:
        return vocabulary.find(label)
    except VocabularyError as error:
        raise ProblemError(404, str(error)) from None
