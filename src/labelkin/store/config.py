"""labelkin.toml: every setting of a collection, declared once with its meaning."""

from __future__ import annotations

import difflib
import json
import textwrap
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from labelkin.atomic import atomic_text
from labelkin.corpus.language import normalise_language
from labelkin.exceptions import ConfigError

CONFIG_NAME = "labelkin.toml"


class Section(BaseModel):
    """A table of labelkin.toml; keys it does not declare are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class CollectionSection(Section):
    """The collection as a whole."""

    name: str = Field(default="", description="What people call this collection.")
    language: str = Field(
        default="auto",
        description="Language of documents that do not state their own, as an ISO 639 code; "
        '"auto" detects it from each text.',
    )

    @field_validator("language")
    @classmethod
    def _known_language(cls, tag: str) -> str:
        code = tag if tag == "auto" else normalise_language(tag)
        if code is None:
            raise ValueError("no language code; give one such as 'en', or 'auto'")
        return code


class DocumentsSection(Section):
    """How documents are taken in."""

    max_characters: int = Field(
        default=200_000,
        ge=1_000,
        description="Longer titles, abstracts and text fields are cut here, with a notice.",
    )
    batch_size: int = Field(
        default=1_000,
        ge=1,
        le=20_000,
        description="Documents stored in one transaction: what a crash can cost at most.",
    )


class LabelsSection(Section):
    """How the headings of documents meet the vocabulary."""

    unknown: Literal["report", "keep"] = Field(
        default="report",
        description='Labels that the vocabulary lacks: "report" lists them and leaves them out '
        '(they stay with the document as text); "keep" makes each a new concept.',
    )


class RepresentationSection(Section):
    """What stands for a document when documents are compared."""

    name: str = Field(
        default="stems",
        description='Kinds of terms, joined with "+". Known: "stems" (words without stop words, '
        'stemmed in the document\'s language) and, from a spaCy model, "lemmas", "nps" (noun '
        'phrases), "deps" (dependencies), "ners" (named entities), "keywords" (TextRank), "multi" '
        '(ners+nps+keywords), "all" (everything). Or a vector: "lsa", "wordllama", or the name or '
        "path, with a slash in it, of a sentence-transformers model. Several of these joined with "
        '"," are searched one by one and fused.',
    )
    title_weight: int = Field(
        default=1, ge=1, le=20, description="How many times the words of a title count."
    )
    spacy_model: str = Field(
        default="en_core_web_sm",
        description="The spaCy model that lemmas, nps, deps, ners and keywords come from, by name "
        "or path; it must be installed. All documents go through it, whatever their language.",
    )
    processes: int = Field(
        default=0,
        ge=0,
        description="Processes that analyse many documents with spaCy; 0 takes one per core.",
    )


class DenseSection(Section):
    """How vectors are made and searched, for representations that are vectors."""

    metric: Literal["l2", "cosine", "ip"] = Field(
        default="l2",
        description='What is near: "l2" Euclidean distance x, given out as x / (1 + x); '
        '"cosine" given out as (1 - cos) / 2; "ip" inner product, given out as (1 - q.v / m) / 2 '
        "with m the largest product that q could have.",
    )
    index: Literal["flat", "ivf-sq8", "hnsw"] = Field(
        default="flat",
        description='How faiss searches: "flat" compares with every vector; the others are '
        "approximate, for collections of more than about 500,000 documents.",
    )
    normalise: bool = Field(default=True, description="Bring every vector to length 1.")
    max_length: int = Field(
        default=0,
        ge=0,
        description="Tokens of a text that an encoder reads; 0 leaves it to the model.",
    )
    dimensions: int = Field(
        default=256, ge=2, le=4096, description="How many numbers a vector of lsa has."
    )
    batch_size: int = Field(
        default=500,
        ge=1,
        le=20_000,
        description="Documents encoded and stored at a time: what an interruption costs at most.",
    )


class FusionSection(Section):
    """How neighbours of several representations, joined with ",", become one list."""

    method: Literal["rank", "distance"] = Field(
        default="rank",
        description='"rank" adds weight / (rank_constant + rank) over the lists (reciprocal rank '
        'fusion); "distance" takes the weighted mean of the distances, each stretched from 0 for '
        "the nearest of its list to 1 for the farthest, and 1 where a list lacks a document.",
    )
    weights: list[float] = Field(
        default=[],
        description="A weight for each representation, in the order in which they are named; "
        "empty counts all the same. `labelkin tune` finds them.",
    )
    rank_constant: float = Field(
        default=60.0, ge=0.0, description="What keeps the first ranks from deciding alone."
    )
    depth: int = Field(
        default=100,
        ge=1,
        le=10_000,
        description="How many neighbours of each representation are fused, k at least.",
    )

    @field_validator("weights")
    @classmethod
    def _no_negative_weight(cls, weights: list[float]) -> list[float]:
        if any(weight < 0 for weight in weights) or (weights and not sum(weights)):
            raise ValueError("weights are 0 or more, and not all 0")
        return weights


class NeighboursSection(Section):
    """How similar documents are found."""

    k: int = Field(default=20, ge=1, le=10_000, description="How many neighbours to look for.")
    distance: Literal["self", "top"] = Field(
        default="self",
        description='What a score is measured against to become a distance in [0, 1]: "self" is '
        'what the text itself would score (an identical document is at 0), "top" the score of '
        "the nearest neighbour.",
    )
    distance_floor: float = Field(
        default=0.0, ge=0.0, le=1.0, description="The smallest distance that is given out."
    )
    max_query_terms: int = Field(
        default=0,
        ge=0,
        description="Search with this many of a text's most informative terms only; 0 takes all.",
    )
    threads: int = Field(
        default=0, ge=0, description="Threads that search a batch; 0 takes one per core."
    )


class SuggestSection(Section):
    """How headings are suggested."""

    method: Literal["knn", "label-ae", "mix", "mix-ranked", "lexical", "rerank"] = Field(
        default="knn",
        description='How headings are decided: "knn" lets neighbours vote, "label-ae" decodes '
        'their average in the latent space, "mix" gives the label-AE\'s headings first and fills '
        'up with votes, "mix-ranked" joins both scores, "lexical" gives headings that the text '
        'names, "rerank" weighs all of these and more. All but "knn" and "lexical" need '
        "`labelkin train`.",
    )
    weighting: Literal["majority", "difference", "square"] = Field(
        default="majority",
        description='What a neighbour\'s vote weighs: "majority" 1, "difference" 1 - d, '
        '"square" 1/d^2 with d not below 0.05.',
    )
    count: Literal["mean", "weighted", "none"] = Field(
        default="mean",
        description="How many headings: the rounded mean of the neighbours' numbers, that mean "
        "weighted as the votes are, or as many as pass the threshold.",
    )
    threshold: float = Field(
        default=0.0, ge=0.0, le=1.0, description="Headings with a lower score are not given."
    )
    limit: int = Field(default=0, ge=0, description="At most this many headings; 0 for no limit.")
    include: list[str] = Field(
        default=[],
        description="Suggest nothing but these: concepts by id or name, tree numbers or notations "
        "with all below them, schemes. Empty allows everything.",
    )
    exclude: list[str] = Field(default=[], description="Never suggest these; as in include.")


class LabelAeSection(Section):
    """How the label autoencoder suggests headings."""

    k: int = Field(default=20, ge=1, le=10_000, description="How many neighbours are averaged.")
    weighting: Literal["majority", "difference", "square"] = Field(
        default="difference", description="What a neighbour weighs in the average."
    )
    distance: Literal["self", "top"] = Field(
        default="self", description="What distances are measured against; as in neighbours."
    )
    count: Literal["mean", "weighted", "none"] = Field(
        default="none",
        description="How many headings: the neighbours' mean number, or as many as pass the "
        "threshold.",
    )
    threshold: float = Field(
        default=0.5, ge=0.0, le=1.0, description="Headings with a lower score are not given."
    )


class MixSection(Section):
    """How `mix-ranked` joins votes and label autoencoder."""

    share: float = Field(
        default=0.2,
        ge=0.0,
        le=1.0,
        description="The label-AE's share of the score; the rest is the votes'.",
    )
    count: Literal["mean", "weighted", "none"] = Field(
        default="none",
        description="How many headings: as the voting neighbours have, or as many as pass the "
        "threshold.",
    )
    threshold: float = Field(
        default=0.25, ge=0.0, le=1.0, description="Headings with a lower score are not given."
    )


class LexicalSection(Section):
    """How `lexical` suggests headings that a text names."""

    threshold: float = Field(
        default=0.4, ge=0.0, le=1.0, description="Headings with a lower score are not given."
    )


class RerankSection(Section):
    """How the reranker is learned, and how its list is cut."""

    documents: int = Field(
        default=6000,
        ge=0,
        description="Documents taken out of the collection to learn from, at most one in seven.",
    )
    rounds: int = Field(default=300, ge=1, description="How many trees.")
    linear: bool = Field(
        default=False,
        description="Also train a linear classifier per heading, as one more signal; needs the "
        "extra linear.",
    )
    linear_cost: float = Field(
        default=1.0, gt=0.0, description="What errors cost the linear classifiers (C)."
    )
    count: Literal["expected-f", "none"] = Field(
        default="none",
        description='How many headings: "expected-f" as many as maximise the F that a document '
        'can expect, "none" as many as pass the threshold.',
    )
    threshold: float = Field(
        default=0.3,
        ge=0.0,
        le=1.0,
        description="Headings with a lower score are not given; `labelkin train` sets it.",
    )
    accept: float = Field(
        default=0.9,
        ge=0.0,
        le=1.0,
        description="How often headings must be right to be marked as accepted.",
    )
    review: float = Field(
        default=0.5,
        ge=0.0,
        le=1.0,
        description="How often headings must be right, accepted ones among them, to be shown.",
    )


class TrainingSection(Section):
    """How the label autoencoder is trained."""

    preset: str = Field(
        default="auto",
        description='Layer sizes: "auto" fits them to the collection, "small" (1024/256/64), '
        '"medium" (2048/512/128) and "large" (4096/1024/128) are the paper\'s, or three sizes.',
    )
    activation: Literal["linear", "relu", "tanh"] = Field(
        default="linear", description="What follows the embedding layer."
    )
    dropout: float = Field(
        default=0.2, ge=0.0, lt=1.0, description="Share of hidden values dropped in training."
    )
    epochs: int = Field(default=15, ge=1, description="At most this many rounds.")
    batch_size: int = Field(
        default=256, ge=2, description="Documents in a step; fewer in small collections."
    )
    learning_rate: float = Field(
        default=0.002, gt=0.0, description="Adam's highest rate; it warms up and falls in a cosine."
    )
    warm_up: int = Field(
        default=200,
        ge=0,
        description="Steps until the rate is at its highest, or a tenth of all steps.",
    )
    patience: int = Field(
        default=5, ge=0, description="Stop after this many rounds without gain; 0 never stops."
    )
    held_out: float = Field(
        default=0.02, ge=0.0, le=0.5, description="Share of documents kept aside, at most 2000."
    )
    min_frequency: int = Field(
        default=1, ge=1, description="Headings that fewer documents carry are not learned."
    )
    sampled_outputs: int = Field(
        default=3500,
        ge=0,
        description="Headings besides a step's own for which the loss is computed, where there "
        "are far more: the most frequent ones and a sample of the others. 0 takes all.",
    )
    averages: bool = Field(
        default=True,
        description="Also learn from the averages of documents' neighbours, as they occur in "
        "prediction; false is the paper's way.",
    )
    averaged_documents: int = Field(
        default=50_000, ge=0, description="For at most this many documents."
    )
    seed: int = Field(default=0, ge=0, description="Same data and seed, same model.")
    precision: Literal["auto", "float32", "mixed"] = Field(
        default="auto", description='"auto" mixes bfloat16 in on CUDA devices.'
    )


class Config(Section):
    """All of labelkin.toml."""

    collection: CollectionSection = CollectionSection()
    documents: DocumentsSection = DocumentsSection()
    labels: LabelsSection = LabelsSection()
    representation: RepresentationSection = RepresentationSection()
    dense: DenseSection = DenseSection()
    fusion: FusionSection = FusionSection()
    neighbours: NeighboursSection = NeighboursSection()
    suggest: SuggestSection = SuggestSection()
    label_ae: LabelAeSection = LabelAeSection()
    mix: MixSection = MixSection()
    lexical: LexicalSection = LexicalSection()
    rerank: RerankSection = RerankSection()
    training: TrainingSection = TrainingSection()


def read_config(path: Path) -> Config:
    """The settings in `path`; missing keys have their defaults, unknown ones are errors."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    try:
        return Config.model_validate(table)
    except ValidationError as error:
        raise ConfigError(f"{path}: {_explain(error.errors()[0])}") from error


def write_config(config: Config, path: Path) -> None:
    """Write all settings with their documentation as comments."""
    with atomic_text(path) as file:
        file.write(to_toml(config))


def update_config(path: Path, changes: Mapping[str, Mapping[str, Any]]) -> None:
    """Change values in labelkin.toml, section by section; comments stay as they are."""
    import tomlkit

    text = tomlkit.parse(path.read_text(encoding="utf-8"))
    for section, values in changes.items():
        table: Any = text.setdefault(section, tomlkit.table())
        table.update(values)
    with atomic_text(path) as file:
        file.write(tomlkit.dumps(text))
    read_config(path)


def to_toml(config: Config) -> str:
    """The commented text of labelkin.toml."""
    lines = ["# Settings of this labelkin collection. Every key is optional.", ""]
    for section_name in Config.model_fields:
        section: Section = getattr(config, section_name)
        lines += [f"# {(type(section).__doc__ or '').strip()}", f"[{section_name}]"]
        for name, field in type(section).model_fields.items():
            default = _toml_value(field.default)
            about = f"{field.description}{_choices(field.annotation)} Default: {default}"
            lines += [f"# {line}" for line in textwrap.wrap(about, 86)]
            lines.append(f"{name} = {_toml_value(getattr(section, name))}")
        lines.append("")
    return "\n".join(lines)


def _choices(annotation: Any) -> str:
    if get_origin(annotation) is not Literal:
        return ""
    return f" One of {', '.join(map(_toml_value, get_args(annotation)))}."


def _toml_value(value: object) -> str:
    # JSON's strings, numbers and booleans are TOML's as well.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _explain(error: Any) -> str:
    place = [str(part) for part in error["loc"]]
    if error["type"] == "extra_forbidden":
        known: Iterable[str] = Config.model_fields
        if len(place) > 1:
            known = type(getattr(Config(), place[0])).model_fields
        close = difflib.get_close_matches(place[-1], known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(known)}"
        return f"unknown key {'.'.join(place)!r}; {hint}"
    return f"{'.'.join(place)} = {error['input']!r}: {error['msg'][0].lower()}{error['msg'][1:]}"
