"""What the service sends and receives, and what `--json` prints: one form for all of them.

Requests refuse unknown keys. A `Record` is a document as corpus files have it: see
`corpus.record` for the names that its parts may have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from labelkin.vocab.concept import ALL_LANGUAGES, Concept

if TYPE_CHECKING:
    from labelkin.corpus.document import Document
    from labelkin.desk import Decision, WorkItem, WorkList
    from labelkin.evaluate.stored import EvaluationSummary
    from labelkin.neighbours.neighbour import Neighbour, StoredDocument
    from labelkin.plots.latent import LatentMap
    from labelkin.plots.reliability import Reliability
    from labelkin.scoring.suggestion import Suggestion
    from labelkin.store.reports import AddReport

# Digits of scores, distances and weights.
_DIGITS = 6
# Counts and ids that fit into JSON's and SQLite's integers alike.
_MOST = 2**53

# Of the key `revision` in a request.
_REVISION = "A date or a version number; a record that is older than the stored one is not stored."

Count = Annotated[int, Field(ge=0, le=_MOST)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Message(BaseModel):
    """A part of an answer. Optional keys that were not set are left out of the JSON."""

    model_config = ConfigDict(frozen=True)


class Request(BaseModel):
    """A body of a request; unknown keys are errors, and so is `true` for a number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Record(BaseModel):
    """A document as JSON Lines files have it; other keys become metadata."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "id": "demo-1",
                    "title": "Cephalosporins for pneumonia in children",
                    "abstract": "Children with pneumonia were given cefuroxime for five days.",
                    "language": "en",
                }
            ]
        },
    )

    id: str | int | None = Field(default=None, description="Its id; the service makes one up.")
    title: str | None = None
    abstract: str | None = None
    text: str | None = Field(default=None, description="The text, if it is not called abstract.")
    language: str | None = Field(default=None, description="A code such as `en`; else detected.")
    labels: list[str | dict[str, Any]] | None = Field(
        default=None,
        description='Its headings: ids, URIs or names, or `{"id", "name", "major"}`.',
    )
    revision: str | int | float | None = Field(default=None, description=_REVISION)

    @classmethod
    def of(cls, document: Document) -> Record:
        """A document as a record; what it does not have is left out."""
        major = set(document.major_labels)
        record: dict[str, Any] = {
            "id": document.id,
            "title": document.title,
            "abstract": document.body,
            "fields": dict(document.fields),
            "language": document.language,
            "metadata": dict(document.metadata),
            "revision": document.revision,
            "labels": [
                {
                    "id": label,
                    **({"name": name} if (name := document.label_names.get(label)) else {}),
                    **({"major": True} if label in major else {}),
                }
                for label in document.labels
            ],
        }
        return cls(**{name: value for name, value in record.items() if value})


class LabelMessage(Message):
    """A heading of a stored document; `name` is empty if neither vocabulary nor source has one."""

    id: str
    name: str = ""
    major: bool = False
    resolved: bool = Field(default=True, description="Whether the vocabulary has it.")


class DocumentMessage(Message):
    """A stored document; it may be sent back to replace the stored one."""

    id: str
    title: str
    body: str
    fields: dict[str, str]
    language: str | None
    metadata: dict[str, Any]
    labels: list[LabelMessage]
    revision: str | None = Field(
        default=None, description="A date or a version number, if its source has one."
    )

    @classmethod
    def of(cls, document: Document, is_known: Callable[[str], bool]) -> DocumentMessage:
        """A document of a collection; `is_known` tells whether the vocabulary has a label."""
        major = set(document.major_labels)
        return cls(
            id=document.id,
            title=document.title,
            body=document.body,
            fields=dict(document.fields),
            language=document.language,
            metadata=dict(document.metadata),
            labels=[
                LabelMessage(
                    id=label,
                    name=document.label_names.get(label, ""),
                    major=label in major,
                    resolved=is_known(label),
                )
                for label in document.labels
            ],
            revision=document.revision,
        )


class DocumentPage(Message):
    """Some documents by id; `next` is the `after` of the page that follows."""

    documents: list[DocumentMessage]
    next: str | None


class ConceptRef(Message):
    """A concept by id and name, with `language=all` also its names by language."""

    id: str
    name: str
    names: dict[str, str] | None = None

    @classmethod
    def of(cls, concept: Concept, language: str) -> ConceptRef:
        """A concept with its name in a language."""
        return cls(**named(concept, language))


class ConceptMessage(ConceptRef):
    """A concept with everything the vocabulary says of it; `documents` carry it."""

    synonyms: dict[str, list[str]]
    notations: list[str]
    broader: list[ConceptRef]
    narrower: list[ConceptRef]
    related: list[ConceptRef]
    deprecated: bool
    replaced_by: list[str]
    documents: int


class ConceptHit(ConceptRef):
    """A concept that a search has found, by which of its names, and how many documents carry it."""

    matched: str
    matched_language: str | None
    notations: list[str]
    deprecated: bool
    documents: int


class ConceptPage(Message):
    """Some of the concepts that a search has found, out of `total`."""

    total: int
    offset: int
    concepts: list[ConceptHit]


class TreeNode(ConceptRef):
    """A concept in the tree: how many are directly below it, and how many documents carry it."""

    narrower: int
    documents: int


class Tree(Message):
    """The place of a concept, or the top of the vocabulary: `children` are those below it.

    `paths` lead from the top to the concept, which is the last of each.
    """

    concept: TreeNode | None
    paths: list[list[ConceptRef]]
    children: list[TreeNode]
    total: int
    offset: int


def named(concept: Concept, language: str) -> dict[str, Any]:
    """Id and name of a concept, with `all` also its names by language."""
    names = {"names": dict(concept.names)} if language == ALL_LANGUAGES else {}
    return {"id": concept.id, "name": concept.name(language), **names}


class CarrierMessage(Message):
    """A similar document behind a heading; `share` is its share of the heading's score."""

    id: str
    title: str
    distance: float
    share: float
    carries: bool
    year: int | None


class NamingMessage(Message):
    """Words of the text that name the heading; `spans` are offsets of all occurrences.

    They count characters (Unicode code points) of the title, or of the text:
    body and further fields, joined by line breaks.
    """

    words: str
    place: Literal["title", "body"]
    count: int
    nested: bool
    before: str
    after: str
    spans: list[tuple[int, int]] = []


class EvidenceMessage(Message):
    """Why a heading is suggested: similar documents, headings it follows from, words."""

    votes: int
    neighbours: int
    carriers: list[CarrierMessage]
    inferred_from: list[ConceptRef]
    named: list[NamingMessage]


class SignalMessage(Message):
    """A kind of evidence, and what it adds to the log odds of a heading."""

    name: str
    weight: float


class SuggestionMessage(ConceptRef):
    """A suggested heading. `documents` is how many of the collection carry it."""

    score: Share
    rank: int
    band: Literal["accept", "review", "hidden"] | None = None
    notations: list[str] | None = None
    documents: int | None = None
    reason: str | None = None
    signals: list[SignalMessage] | None = None
    evidence: EvidenceMessage | None = None

    @classmethod
    def from_suggestion(
        cls,
        suggestion: Suggestion,
        language: str,
        *,
        evidence: bool = True,
        carriers: int | None = None,
        documents: int | None = None,
    ) -> SuggestionMessage:
        """A suggestion with names in a language, with or without the evidence.

        `carriers` is how many of the similar documents are listed, None for all.
        """
        concept = suggestion.concept
        optional: dict[str, Any] = {}
        if suggestion.band is not None:
            optional["band"] = suggestion.band
        if suggestion.signals:
            optional["signals"] = [
                SignalMessage(name=one.name, weight=round(one.weight, 4))
                for one in suggestion.signals
            ]
        if evidence:
            optional["evidence"] = _evidence(suggestion, language, carriers)
        if documents is not None:
            optional |= {
                "documents": documents,
                "notations": list(concept.notations),
                "reason": suggestion.reason_in(language),
            }
        return cls(
            **named(concept, language),
            score=round(suggestion.score, _DIGITS),
            rank=suggestion.rank,
            **optional,
        )


def _evidence(suggestion: Suggestion, language: str, carriers: int | None) -> EvidenceMessage:
    return EvidenceMessage(
        votes=suggestion.votes,
        neighbours=suggestion.neighbours,
        carriers=[
            CarrierMessage(
                id=carrier.id,
                title=carrier.title,
                distance=round(carrier.distance, _DIGITS),
                share=round(carrier.share, _DIGITS),
                carries=carrier.carries,
                year=carrier.year,
            )
            for carrier in suggestion.carriers[:carriers]
        ],
        inferred_from=[ConceptRef.of(concept, language) for concept in suggestion.inferred_from],
        named=[
            NamingMessage(
                words=naming.words,
                place=naming.place,
                count=naming.count,
                nested=naming.nested,
                before=naming.before,
                after=naming.after,
                spans=list(naming.spans),
            )
            for naming in suggestion.named
        ],
    )


class Asked(Request):
    """Settings of one request; what is left out is as in the collection's labelkin.toml."""

    k: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        default=None, description="How many neighbours vote."
    )
    weighting: Literal["majority", "difference", "square"] | None = None
    limit: Count | None = Field(
        default=None,
        description="At most this many headings, 0 for any number; replaces the method's own cut.",
    )
    threshold: Share | None = Field(default=None, description="No heading with a lower score.")
    accept: Share | None = Field(
        default=None, description="Precision for the band accept (method rerank)."
    )
    review: Share | None = Field(
        default=None, description="Precision for the band review (method rerank)."
    )
    include: list[str] | None = Field(
        default=None, description="Only these headings: ids, names, notations, schemes, groups."
    )
    exclude: list[str] | None = Field(default=None, description="Never these headings.")
    representation: str | None = Field(
        default=None,
        description="How documents are compared, e.g. `stems`; one that the service runs with.",
    )
    fold_broader: bool = Field(
        default=False, description="Drop headings that a narrower one implies."
    )
    language: str | None = Field(
        default=None, description="The language of heading names, or `all`."
    )
    evidence: bool = Field(default=True, description="With the evidence for each heading.")
    carriers: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=10, description="At most this many similar documents per heading, nearest first."
    )
    signals: bool = Field(
        default=False, description="With the weights of the reranker's signals; takes longer."
    )
    generation: Count | None = Field(
        default=None,
        description="Answer from this state of the collection or a later one, as in the answer "
        "to a write. Only needed beside `--workers`.",
    )


_EXAMPLE_DOCUMENTS: list[Any] = [{"title": "Cefuroxime for pneumonia in children"}]


class SuggestRequest(Asked):
    """Documents to suggest headings for."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"documents": _EXAMPLE_DOCUMENTS, "limit": 5}]}
    )

    documents: list[Record] = Field(min_length=1)
    method: str | None = Field(default=None, description="E.g. `knn` or `rerank`.")


class CompareRequest(Asked):
    """A document, and the methods to suggest headings with side by side."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"document": _EXAMPLE_DOCUMENTS[0], "methods": ["knn", "lexical"]}]
        }
    )

    document: Record
    methods: list[str] | None = Field(
        default=None, description="All that the collection can use if left out."
    )


class ExplainRequest(Asked):
    """A document, and the headings whose evidence and rank are asked for."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"document": _EXAMPLE_DOCUMENTS[0], "headings": ["Pneumonia"]}]
        }
    )

    document: Record
    headings: list[str] = Field(min_length=1, description="Ids or names.")
    method: str | None = None


class DocumentSuggestions(Message):
    """The headings suggested for one document, the best first."""

    id: str | None
    title: str
    suggestions: list[SuggestionMessage]


class SuggestAnswer(Message):
    """Suggestions for each document, all from one state of the collection."""

    generation: int
    method: str
    results: list[DocumentSuggestions]


class MethodSuggestions(Message):
    """What one method suggests."""

    method: str
    suggestions: list[SuggestionMessage]


class CompareAnswer(Message):
    """What each method suggests for the same document, from one state of the collection."""

    generation: int
    results: list[MethodSuggestions]


class ExplainAnswer(Message):
    """The asked headings with rank, score and evidence; `unranked` cannot be suggested."""

    method: str
    headings: list[SuggestionMessage]
    unranked: list[ConceptRef]


class NeighboursRequest(Request):
    """Documents whose most similar documents are asked for."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"documents": _EXAMPLE_DOCUMENTS, "k": 5, "terms": 3}]}
    )

    documents: list[Record] = Field(min_length=1)
    k: Annotated[int, Field(ge=1, le=10_000)] | None = None
    representation: str | None = None
    terms: Annotated[int, Field(ge=0, le=1000)] = Field(
        default=0, description="How many shared terms to list for each neighbour."
    )
    language: str | None = None
    generation: Count | None = None


class TermMessage(Message):
    """A term that a document shares with a text, and its share of the score.

    The kind is `headings` for a term in the name of one of the document's headings.
    """

    kind: str
    term: str
    share: float


class NeighbourMessage(Message):
    """A similar document with its distance and its headings."""

    id: str
    title: str
    distance: float
    score: float
    headings: list[ConceptRef]
    terms: list[TermMessage] = []

    @classmethod
    def of(cls, neighbour: Neighbour, language: str) -> NeighbourMessage:
        """A neighbour with names in a language."""
        return cls(
            id=neighbour.id,
            title=neighbour.title,
            distance=round(neighbour.distance, _DIGITS),
            score=round(neighbour.score, _DIGITS),
            headings=[ConceptRef.of(concept, language) for concept in neighbour.headings],
            terms=[
                TermMessage(kind=one.kind, term=one.term, share=round(one.share, _DIGITS))
                for one in neighbour.terms
            ],
        )


class StoredDocumentMessage(DocumentMessage):
    """A stored document with its nearest neighbours, if they were asked for."""

    neighbours: list[NeighbourMessage] = []

    @classmethod
    def from_stored(cls, stored: StoredDocument, language: str) -> StoredDocumentMessage:
        """A document of a collection and its neighbours, with names in a language."""
        headings = stored.headings
        names = {label: one.name(language) for label, one in headings.items() if one is not None}
        document = replace(stored.document, label_names={**stored.document.label_names, **names})
        message = DocumentMessage.of(document, lambda label: headings[label] is not None)
        return cls(
            **dict(message),
            neighbours=[NeighbourMessage.of(one, language) for one in stored.neighbours],
        )


class DocumentNeighbours(Message):
    """The neighbours of one document, nearest first."""

    id: str | None
    neighbours: list[NeighbourMessage]


class NeighboursAnswer(Message):
    """The neighbours of each document."""

    results: list[DocumentNeighbours]


class CorrectionRequest(Request):
    """New headings for a stored document; its text stays."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"labels": ["Pneumonia", "Cephalosporins"]}]}
    )

    labels: list[str | dict[str, Any]] = Field(
        description='Ids, URIs or names, or `{"id", "name", "major"}`; replaces all of them.'
    )
    revision: str | int | float | None = Field(default=None, description=_REVISION)


class SkippedRecord(Message):
    """A record with a problem and its place: not stored in `skipped`, repaired in `notes`."""

    where: str
    problem: str


class WriteReport(Message):
    """The outcome of a write; `generation` is the state of the collection that has it."""

    generation: int
    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    duplicates: int = 0
    corrected: int = 0
    cleared: int = Field(default=0, description="Documents that lost all headings.")
    removed: int = 0
    missing: list[str] = []
    stale: int = Field(default=0, description="Records older than the stored ones; not stored.")
    unlabelled: int = Field(
        default=0, description="Corrections with a text but without labels; not stored."
    )
    texts_kept: int = Field(
        default=0, description="Corrections with a title alone; the stored text was kept."
    )
    ids: list[str] = Field(default=[], description="The ids of the first thousand documents.")
    without_labels: int = 0
    labels_resolved: int = 0
    new_concepts: int = 0
    unresolved: dict[str, int] = {}
    ambiguous: dict[str, int] = {}
    cut: list[str] = Field(default=[], description="Documents whose text was too long.")
    skipped: list[SkippedRecord] = []
    notes: list[SkippedRecord] = []

    @classmethod
    def of(
        cls,
        report: AddReport,
        generation: int,
        *,
        ids: Iterable[str] = (),
        skipped: Sequence[SkippedRecord] = (),
        notes: Sequence[SkippedRecord] = (),
    ) -> WriteReport:
        """The report of an `add`."""
        return cls(
            generation=generation,
            added=report.added,
            replaced=report.replaced,
            unchanged=report.unchanged,
            duplicates=report.duplicates,
            corrected=report.corrected,
            cleared=report.cleared,
            removed=report.removed,
            missing=list(report.missing_ids),
            stale=report.stale,
            unlabelled=report.unlabelled,
            texts_kept=report.texts_kept,
            ids=list(ids),
            without_labels=report.without_labels,
            labels_resolved=report.labels_resolved,
            new_concepts=report.new_concepts,
            unresolved=dict(report.unresolved),
            ambiguous=dict(report.ambiguous),
            cut=list(report.cut),
            skipped=[
                *skipped,
                *(SkippedRecord(where=one.where, problem=one.problem) for one in report.left_out),
            ],
            notes=list(notes),
        )


class EvaluateRequest(Request):
    """Documents that have headings, to measure methods on."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "documents": [
                        {"id": "1", "title": "Pneumonia in children", "labels": ["Pneumonia"]}
                    ],
                    "methods": ["knn"],
                    "measures": ["MiF", "P@5"],
                }
            ]
        }
    )

    documents: list[Record] = Field(min_length=1)
    methods: list[str] | None = Field(
        default=None, description="The collection's own method if left out."
    )
    measures: list[str] | None = Field(default=None, description="E.g. `MiF`, `P@5`, `nDCG@10`.")
    representation: str | None = None
    generation: Count | None = None


class MethodReport(Message):
    """The values of measures for one method; null where a measure is not defined."""

    method: str
    measures: dict[str, float | None]


class EvaluationReport(Message):
    """How methods do on documents that have headings.

    `known` documents are in the collection and are searched leave-one-out;
    models may have been trained on them. `unresolved` labels cannot be suggested.
    """

    documents: int
    without_labels: int
    known: int
    unresolved: dict[str, int]
    reports: list[MethodReport]


class MethodMessage(Message):
    """A method, and why it cannot be used if it cannot."""

    name: str
    project: str
    usable: bool
    problem: str = ""


class CollectionMessage(Message):
    """A collection that is served."""

    name: str
    documents: int
    concepts: int
    languages: dict[str, int]
    vocabulary_languages: dict[str, int]
    generation: int
    modified: str | None
    writable: bool
    method: str
    methods: list[MethodMessage]


class CollectionDetails(CollectionMessage):
    """A collection with its models and the settings that requests have by default."""

    representation: str
    models: list[dict[str, Any]]
    settings: dict[str, Any]


class PerDocument(Message):
    """How many headings documents have."""

    mean: float
    median: float
    max: int


class FrequenciesMessage(Message):
    """The long tail: `points` are ranks of headings and numbers of documents that carry them.

    There are at most 200 points. `at_least` maps numbers of documents to numbers of
    headings with so many or more; `once` are the headings of a single document.
    """

    points: list[tuple[int, int]]
    at_least: dict[str, int]
    once: int


class EvaluationMessage(Message):
    """The latest evaluation: of the documents that training held out, or by `eval --save`.

    `measures` are those of `method`, which is also among the `methods`.
    """

    source: Literal["training", "eval"]
    at: str
    documents: int
    method: str
    measures: dict[str, float | None]
    methods: dict[str, dict[str, float | None]]

    @classmethod
    def of(
        cls, source: Literal["training", "eval"], summary: EvaluationSummary
    ) -> EvaluationMessage:
        """A stored evaluation."""
        methods = {method: dict(values) for method, values in summary.methods.items()}
        return cls(
            source=source,
            at=summary.at.isoformat(),
            documents=summary.documents,
            method=summary.method,
            measures=methods[summary.method],
            methods=methods,
        )


class ReliabilityBin(Message):
    """Headings with scores from `from` to `to`: their mean score, and the share that is right."""

    start: Share = Field(alias="from")
    to: Share
    score: Share
    precision: Share
    count: int


class ReliabilityMessage(Message):
    """Whether as many headings are right as the reranker's scores say.

    `ece` is the expected calibration error. `accept` and `review` are the scores
    at which the bands begin; null for a band that no score reaches.
    """

    bins: list[ReliabilityBin]
    ece: float
    accept: Share | None
    review: Share | None
    documents: int

    @classmethod
    def of(cls, reliability: Reliability) -> ReliabilityMessage:
        """The reliability of a reranker."""
        return cls(
            bins=[
                ReliabilityBin(
                    **{"from": one.start},
                    to=one.end,
                    score=round(one.score, _DIGITS),
                    precision=round(one.precision, _DIGITS),
                    count=one.count,
                )
                for one in reliability.bins
            ],
            ece=round(reliability.error, _DIGITS),
            accept=reliability.accept,
            review=reliability.review,
            documents=reliability.documents,
        )


class Dashboard(Message):
    """A collection in figures; `evaluation` and `reliability` are null if nothing was measured."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "documents": 2400,
                    "concepts": 1110,
                    "concepts_used": 870,
                    "generation": 3,
                    "languages": {"en": 2400},
                    "per_document": {"mean": 4.1, "median": 4.0, "max": 9},
                    "frequencies": {
                        "points": [[1, 310], [2, 144], [10, 60], [870, 1]],
                        "at_least": {"1000": 0, "100": 4, "10": 220, "1": 870},
                        "once": 95,
                    },
                    "evaluation": {
                        "source": "training",
                        "at": "2026-03-01T09:30:00+00:00",
                        "documents": 68,
                        "method": "rerank",
                        "measures": {"MiF": 0.71, "P@5": 0.66},
                        "methods": {
                            "rerank": {"MiF": 0.71, "P@5": 0.66},
                            "votes": {"MiF": 0.48, "P@5": 0.5},
                        },
                    },
                    "reliability": {
                        "bins": [
                            {
                                "from": 0.9,
                                "to": 1.0,
                                "score": 0.96,
                                "precision": 0.95,
                                "count": 120,
                            }
                        ],
                        "ece": 0.004,
                        "accept": 0.71,
                        "review": 0.2,
                        "documents": 68,
                    },
                    "models": [
                        {
                            "name": "rerank",
                            "usable": True,
                            "problem": "",
                            "documents": 2400,
                            "added": 12,
                            "removed": 0,
                            "unknown_headings": 1,
                            "unknown": ["Rye Bread"],
                            "headings_without_row": None,
                            "outdated": False,
                            "reason": "",
                        }
                    ],
                }
            ]
        }
    )

    documents: int
    concepts: int
    concepts_used: int
    generation: int
    languages: dict[str, int]
    per_document: PerDocument
    frequencies: FrequenciesMessage
    evaluation: EvaluationMessage | None
    reliability: ReliabilityMessage | None
    models: list[dict[str, Any]]


class LatentPoint(Message):
    """A heading on the map; `branch` is the id of one of the map's branches."""

    id: str
    name: str
    x: Share
    y: Share
    branch: str
    documents: int


class BranchMessage(Message):
    """A branch of the vocabulary, and how many headings of the map are in it.

    Smaller branches are in one whose id is empty.
    """

    id: str
    name: str
    count: int


class LatentMapMessage(Message):
    """The most frequent headings on a plane: near each other if they go together."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "points": [
                        {
                            "id": "D011014",
                            "name": "Pneumonia",
                            "x": 0.42,
                            "y": 0.17,
                            "branch": "C",
                            "documents": 310,
                        }
                    ],
                    "branches": [{"id": "C", "name": "Diseases", "count": 1}],
                }
            ]
        }
    )

    points: list[LatentPoint]
    branches: list[BranchMessage]

    @classmethod
    def of(cls, latent: LatentMap) -> LatentMapMessage:
        """A map of the headings."""
        return cls(
            points=[
                LatentPoint(
                    id=one.id,
                    name=one.name,
                    x=one.x,
                    y=one.y,
                    branch=one.branch,
                    documents=one.documents,
                )
                for one in latent.points
            ],
            branches=[
                BranchMessage(id=one.id, name=one.name, count=one.count) for one in latent.branches
            ],
        )


class CollectionList(Message):
    """All collections that are served."""

    collections: list[CollectionMessage]


class ReadAnswer(Message):
    """The records of a file; nothing was stored.

    `total` counts all readable records of the file; if `truncated`, only the
    first of them are in `records`.
    """

    records: list[Record]
    total: int
    truncated: bool
    skipped: list[SkippedRecord]
    notes: list[SkippedRecord]


Status = Literal["pending", "draft", "done", "skipped"]
Place = Annotated[int, Field(ge=1, le=_MOST)]


class WorkListMessage(Message):
    """A work list: how many of its records have each status, and the place last worked at."""

    id: str
    name: str
    created: str
    total: int
    pending: int
    draft: int
    done: int
    skipped: int
    position: int = Field(description="A place; the first one is 1.")
    unreadable: list[SkippedRecord] = Field(description="Records that could not be read.")

    @classmethod
    def of(cls, worklist: WorkList) -> WorkListMessage:
        """A work list of a desk."""
        return cls(
            id=worklist.id,
            name=worklist.name,
            created=worklist.created,
            total=worklist.total,
            pending=worklist.counts["pending"],
            draft=worklist.counts["draft"],
            done=worklist.counts["done"],
            skipped=worklist.counts["skipped"],
            position=worklist.position,
            unreadable=[
                SkippedRecord(where=where, problem=problem)
                for where, problem in worklist.unreadable
            ],
        )


class WorkListPage(Message):
    """All work lists, the newest first."""

    worklists: list[WorkListMessage]


class WorkListRemoved(Message):
    """How many records were removed with a work list."""

    removed: int


class WorkItemMessage(Message):
    """A record of a work list; `place` is its number in the file, from 1."""

    place: int
    id: str
    title: str
    status: Status


class WorkItemPage(Message):
    """Some records of a work list, out of `total` that have the status asked for."""

    total: int
    offset: int
    items: list[WorkItemMessage]


class HeadingMessage(Request):
    """A final heading of a record; `major` marks a main topic."""

    id: str = Field(min_length=1)
    name: str = ""
    major: bool = False


class WorkItemDetails(Message):
    """A record of a work list with its draft and, once they are chosen, its final headings."""

    place: int
    status: Status
    record: Record
    draft: dict[str, Any] | None
    labels: list[HeadingMessage] | None
    updated: str | None

    @classmethod
    def of(cls, item: WorkItem, document: Document) -> WorkItemDetails:
        """An item of a desk with its document."""
        return cls(
            place=item.place,
            status=item.status,  # type: ignore[arg-type] # the desk knows no others
            record=Record.of(document),
            draft=None if item.draft is None else dict(item.draft),
            labels=None
            if item.labels is None
            else [HeadingMessage(id=one.id, name=one.name, major=one.major) for one in item.labels],
            updated=item.updated,
        )


class WorkItemRequest(Request):
    """The new state of a record; a draft or labels that are left out stay, null removes them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "status": "done",
                    "draft": None,
                    "labels": [{"id": "D011014", "name": "Pneumonia", "major": True}],
                }
            ]
        }
    )

    status: Status
    draft: dict[str, Any] | None = Field(
        default=None, description="Whatever is needed to go on later."
    )
    labels: list[HeadingMessage] | None = Field(
        default=None, description="The final headings, in their order."
    )


class WorkItemSaved(Message):
    """A record's new status, and the counts of its list."""

    place: int
    status: Status
    updated: str | None
    worklist: WorkListMessage


class PositionRequest(Request):
    """The place to go on at."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"position": 1}]})

    position: Place


class VerdictMessage(Request):
    """What an indexer has decided about a heading, and how it was suggested.

    `unneeded` is right but not needed; `added` is the indexer's own heading,
    which was not suggested. The service adds the `name`.
    """

    id: str = Field(min_length=1)
    verdict: Literal["accepted", "rejected", "unneeded", "added"]
    score: Share | None = None
    rank: Place | None = None
    band: Literal["accept", "review", "hidden"] | None = None
    name: str | None = None


class VerdictsRequest(Request):
    """An indexer's decisions about a document, all at once."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "document": {"id": "demo-1", "title": "Cefuroxime for pneumonia in children"},
                    "method": "rerank",
                    "generation": 3,
                    "verdicts": [
                        {
                            "id": "D011014",
                            "verdict": "accepted",
                            "score": 0.93,
                            "rank": 1,
                            "band": "accept",
                        },
                        {"id": "D002648", "verdict": "added"},
                    ],
                    "seconds": 41.5,
                    "blind": False,
                }
            ]
        }
    )

    document: Record
    method: Annotated[str, Field(max_length=100)] | None = None
    generation: Count | None = None
    verdicts: list[VerdictMessage]
    seconds: Annotated[float, Field(ge=0.0, le=1e9)] | None = Field(
        default=None, description="How long the decisions took."
    )
    blind: bool = Field(
        default=False, description="Headings were chosen before the suggestions were shown."
    )


class VerdictsStored(Message):
    """How many verdicts were stored."""

    stored: int


class DecisionMessage(Message):
    """The verdicts on a document at one time."""

    number: int
    document: Record
    time: str
    method: str | None
    generation: int | None
    seconds: float | None
    blind: bool
    verdicts: list[VerdictMessage]

    @classmethod
    def of(cls, decision: Decision) -> DecisionMessage:
        """A decision of a desk."""
        return cls(
            number=decision.number,
            document=Record.of(decision.document),
            time=decision.time,
            method=decision.method,
            generation=decision.generation,
            seconds=decision.seconds,
            blind=decision.blind,
            verdicts=[
                VerdictMessage(
                    id=one.id,
                    verdict=one.verdict,  # type: ignore[arg-type] # the desk knows no others
                    score=one.score,
                    rank=one.rank,
                    band=one.band,  # type: ignore[arg-type]
                    name=one.name,
                )
                for one in decision.verdicts
            ],
        )


class DecisionPage(Message):
    """Some decisions out of `total`, the newest first."""

    total: int
    offset: int
    decisions: list[DecisionMessage]


class Health(Message):
    """Whether the process runs."""

    status: Literal["ok"] = "ok"


class Readiness(Message):
    """Whether all models are loaded; `problems` are methods that cannot be used."""

    status: Literal["ready", "loading"]
    problems: dict[str, str] = {}


class VersionMessage(Message):
    """The version of labelkin."""

    name: Literal["labelkin"] = "labelkin"
    version: str


class Problem(Message):
    """An error (RFC 9457): `detail` says in one line what is wrong and what to do."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    instance: str | None = Field(
        default=None, description="A URN with the id of the request, as in the log."
    )
    errors: list[dict[str, str]] | None = Field(
        default=None, description="Which parts of the request are wrong."
    )


def as_json(message: BaseModel) -> dict[str, Any]:
    """A message as JSON values, without the keys that have not been set."""
    return message.model_dump(mode="json", exclude_unset=True, by_alias=True)
