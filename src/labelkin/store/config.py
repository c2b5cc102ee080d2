"""labelkin.toml: every setting of a collection, declared once with its meaning."""

from __future__ import annotations

import difflib
import json
import logging
import textwrap
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo

from labelkin.atomic import atomic_text
from labelkin.corpus.language import normalise_language
from labelkin.exceptions import ConfigError
from labelkin.registry import installed, loaded
from labelkin.store.folder import file_signature
from labelkin.store.locks import FileLock, beside
from labelkin.vocab.concept import ALL_LANGUAGES

logger = logging.getLogger(__name__)

CONFIG_NAME = "labelkin.toml"
# What all libraries that train accept.
LARGEST_SEED = 2**31 - 1
_PATIENCE_SECONDS = 10.0
# Begins the comment behind a value that a training has chosen; the value follows.
_CHOSEN = "labelkin train chose "


class Section(BaseModel):
    """A table of labelkin.toml; keys it does not declare are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class CollectionSection(Section):
    """The collection as a whole."""

    name: str = Field(default="", description="A name for this collection.")
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
            raise ValueError("not a language code; use one such as 'en', or 'auto'")
        return code


class DocumentsSection(Section):
    """How documents are stored."""

    max_characters: int = Field(
        default=200_000,
        ge=1_000,
        description="Longer titles, abstracts and text fields are cut to this length and reported.",
    )
    batch_size: int = Field(
        default=1_000,
        ge=1,
        le=20_000,
        description="Documents per transaction; a crash loses at most this many.",
    )


class LabelsSection(Section):
    """How the labels of documents are matched with the vocabulary."""

    unknown: Literal["report", "keep"] = Field(
        default="report",
        description='Labels that the vocabulary lacks: "report" lists and ignores them (they stay '
        'with the document as text); "keep" makes each one a new concept.',
    )


class VocabularySection(Section):
    """How headings are shown."""

    language: str = Field(
        default="auto",
        description="Language of heading names, as an ISO 639 code; a heading without a name in it "
        'is shown in English or any other. "auto" is English, or the language with the most names '
        'if none is in English. "all" shows all languages.',
    )

    @field_validator("language")
    @classmethod
    def _known_language(cls, tag: str) -> str:
        code = tag if tag in ("auto", ALL_LANGUAGES) else normalise_language(tag)
        if code is None:
            raise ValueError("not a language code; use one such as 'en', 'auto' or 'all'")
        return code


class RepresentationSection(Section):
    """How documents are represented when they are compared."""

    name: str = Field(
        default="stems",
        description='Kinds of terms, joined with "+". Known: "stems" (words without stop words, '
        'stemmed in the document\'s language) and, from a spaCy model, "lemmas", "nps" (noun '
        'phrases), "deps" (dependencies), "ners" (named entities), "keywords" (TextRank), "multi" '
        '(ners+nps+keywords), "all" (everything). Or an encoder: "lsa", "wordllama", or a '
        "sentence-transformers model, by a name or path that contains a slash. Several of these "
        'joined with "," are searched separately and fused.',
    )
    title_weight: int = Field(
        default=1,
        ge=1,
        le=20,
        description="How many times the words of a title count in a document; for queries see "
        "title_weight in neighbours.",
    )
    spacy_model: str = Field(
        default="en_core_web_sm",
        description="The spaCy model for lemmas, nps, deps, ners and keywords, by name or path; it "
        "must be installed. It analyses all documents, whatever their language.",
    )
    processes: int = Field(
        default=0,
        ge=0,
        description="Processes that analyse documents with spaCy; 0 uses one per core.",
    )


class DenseSection(Section):
    """How dense vectors are computed and searched."""

    metric: Literal["l2", "cosine", "ip"] = Field(
        default="l2",
        description='The distance: "l2" is x / (1 + x) for the Euclidean distance x; "cosine" is '
        '(1 - cos) / 2; "ip" is (1 - q.v / m) / 2 for the inner product q.v, with m the largest '
        "product that q can have.",
    )
    index: Literal["flat", "ivf-sq8", "hnsw"] = Field(
        default="flat",
        description='How faiss searches: "flat" compares with every vector; the others are '
        "approximate, for collections of more than about 500,000 documents.",
    )
    normalise: bool = Field(default=True, description="Scale every vector to length 1.")
    max_length: int = Field(
        default=0,
        ge=0,
        description="Tokens that an encoder reads of a text; 0 uses the model's own limit.",
    )
    dimensions: int = Field(
        default=256, ge=2, le=4096, description="Dimensions of the vectors of lsa."
    )
    batch_size: int = Field(
        default=500,
        ge=1,
        le=20_000,
        description="Documents per batch of encoding; an interruption loses at most one batch.",
    )


class FusionSection(Section):
    """How neighbours of several representations, joined with ",", become one list."""

    method: Literal["rank", "distance"] = Field(
        default="rank",
        description='"rank" adds weight / (rank_constant + rank) over the lists (reciprocal rank '
        'fusion); "distance" takes the weighted mean of the distances, scaled in each list from '
        "0 for the nearest to 1 for the farthest, and 1 for documents that a list lacks.",
    )
    weights: list[float] = Field(
        default=[],
        description="A weight for each representation, in the order of their names; empty weighs "
        "all equally. `labelkin tune` chooses them.",
    )
    rank_constant: float = Field(
        default=60.0, ge=0.0, description="Larger values give the first ranks less weight."
    )
    depth: int = Field(
        default=100,
        ge=1,
        le=10_000,
        description="How many neighbours of each representation are fused; at least k.",
    )

    @field_validator("weights")
    @classmethod
    def _no_negative_weight(cls, weights: list[float]) -> list[float]:
        if any(weight < 0 for weight in weights) or (weights and not sum(weights)):
            raise ValueError("weights must be 0 or more, and not all 0")
        return weights


class NeighboursSection(Section):
    """How similar documents are found."""

    k: int = Field(default=20, ge=1, le=10_000, description="How many neighbours to find.")
    distance: Literal["self", "top"] = Field(
        default="self",
        description="A distance in [0, 1] is 1 - score / reference. The reference is the score "
        'that the text itself would have ("self"; an identical document is at 0) or the score '
        'of the nearest neighbour ("top").',
    )
    distance_floor: float = Field(
        default=0.0, ge=0.0, le=1.0, description="Smaller distances are raised to this."
    )
    term_frequency: Literal["log", "once"] = Field(
        default="log",
        description='The weight of a term that occurs n times in the text to search with: "log" '
        '1 + ln(n), "once" 1.',
    )
    title_weight: int = Field(
        default=3,
        ge=1,
        le=20,
        description="How many times a term in the title of that text counts in n.",
    )
    heading_weight: float = Field(
        default=1.5,
        ge=0.0,
        le=20.0,
        description="The weight of the words in the names of a document's headings, against those "
        "of its text; 0 searches in texts only.",
    )
    max_query_terms: int = Field(
        default=0,
        ge=0,
        description="Search with only this many of a text's most informative terms; 0 uses all.",
    )
    threads: int = Field(
        default=0, ge=0, description="Threads that search a batch; 0 uses one per core."
    )
    engine: str = Field(
        default="tantivy",
        description="The engine that indexes terms and ranks documents.",
    )
    bulk: bool = Field(
        default=True,
        description="Search large batches with a second index, which answers several times as many "
        "queries. It is built when that saves time, and needs numba (labelkin[bulk]).",
    )


# Settings under a name, for `labelkin init --recipe` and for grids of experiments.
RECIPES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    # Ribadas-Pena, Cao and Darriba (2022): each term of a text once, documents by their texts.
    "paper": {
        "neighbours": {
            "k": 20,
            "distance": "self",
            "term_frequency": "once",
            "title_weight": 1,
            "heading_weight": 0.0,
        },
        "suggest": {"method": "knn", "weighting": "majority", "count": "mean", "threshold": 0.0},
        "training": {"recipe": "paper"},
    },
}


class SuggestSection(Section):
    """How headings are suggested."""

    method: str = Field(
        default="knn",
        description='The method: "knn" lets neighbours vote, "label-ae" decodes their average in '
        'the latent space, "mix" takes the headings of label-ae first and then those with the '
        'most votes, "mix-ranked" combines both scores, "lexical" suggests headings that the '
        'text names, "rerank" combines all of these and more. All but "knn" and "lexical" need '
        "`labelkin train`.",
    )
    weighting: Literal["majority", "difference", "square"] = Field(
        default="majority",
        description='The weight of a neighbour\'s vote: "majority" 1, "difference" 1 - d, '
        '"square" 1/d^2 with d at least 0.05.',
    )
    count: Literal["mean", "weighted", "none"] = Field(
        default="mean",
        description="How many headings to suggest: the mean number of the neighbours, that mean "
        "weighted like the votes, or all that reach the threshold.",
    )
    threshold: float = Field(
        default=0.0, ge=0.0, le=1.0, description="Headings with a lower score are not suggested."
    )
    limit: int = Field(default=0, ge=0, description="At most this many headings; 0 for no limit.")
    include: list[str] = Field(
        default=[],
        description="Suggest only these: concepts by id or name with everything below them, "
        "tree numbers or notations with everything below them, or the members of schemes and "
        "groups. Empty allows everything.",
    )
    exclude: list[str] = Field(default=[], description="Never suggest these; as in include.")


class LabelAeSection(Section):
    """How the label autoencoder suggests headings."""

    k: int = Field(
        default=20,
        ge=1,
        le=10_000,
        description="How many neighbours are averaged; the joint autoencoder looks at 60.",
    )
    weighting: Literal["majority", "difference", "square"] = Field(
        default="difference",
        description="The weight of a neighbour in the average; the joint one learns weights.",
    )
    distance: Literal["self", "top"] = Field(
        default="self", description="The reference of distances; as in neighbours."
    )
    count: Literal["mean", "weighted", "none"] = Field(
        default="none",
        description="How many headings to suggest: the mean number of the neighbours, or all that "
        "reach the threshold; `labelkin train` sets this.",
    )
    threshold: float = Field(
        default=0.5,
        ge=0.0,
        le=1.0,
        description="Headings with a lower score are not suggested; `labelkin train` sets this.",
    )


class MixSection(Section):
    """How `mix` and `mix-ranked` combine votes and label autoencoder."""

    leading: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description="mix: headings that the label autoencoder scores this high come first; 0 "
        "takes those that label-ae suggests. `labelkin train` sets this.",
    )
    share: float = Field(
        default=0.2,
        ge=0.0,
        le=1.0,
        description="mix-ranked: the share of the label autoencoder in the score; votes have the "
        "rest. `labelkin train` sets this.",
    )
    count: Literal["mean", "weighted", "none"] = Field(
        default="none",
        description="mix-ranked: how many headings to suggest: the mean number of the neighbours, "
        "or all that reach the threshold; `labelkin train` sets this.",
    )
    threshold: float = Field(
        default=0.25,
        ge=0.0,
        le=1.0,
        description="mix-ranked: headings with a lower score are not suggested; `labelkin train` "
        "sets this.",
    )


class LexicalSection(Section):
    """How `lexical` suggests headings that a text names."""

    threshold: float = Field(
        default=0.4, ge=0.0, le=1.0, description="Headings with a lower score are not suggested."
    )


class RerankSection(Section):
    """How the reranker is trained, and where it cuts its list."""

    documents: int = Field(
        default=18_000,
        ge=0,
        description="Documents to train the reranker on. They are held out of all statistics, at "
        "most one document in seven at a time.",
    )
    rounds: int = Field(default=300, ge=1, description="Number of trees.")
    linear: bool = Field(
        default=True,
        description="Train two linear classifiers per heading as well: better suggestions, but "
        "more than half of the time and most of the model's size.",
    )
    linear_cost: float = Field(
        default=1.0, gt=0.0, description="The cost of errors (C) of the linear classifiers."
    )
    encoder: str = Field(
        default="",
        description='An encoder whose vectors of texts and names are a signal as well: "lsa", '
        '"wordllama", or a sentence-transformers model, by a name or path that contains a slash. '
        "Empty for none. It takes effect when the reranker is trained.",
    )
    count: Literal["expected-f", "none"] = Field(
        default="none",
        description='How many headings to suggest: "expected-f" as many as maximise the expected '
        'F of a document, "none" all that reach the threshold.',
    )
    threshold: float = Field(
        default=0.3,
        ge=0.0,
        le=1.0,
        description="Headings with a lower score are not suggested; `labelkin train` sets this.",
    )
    accept: float = Field(
        default=0.9,
        ge=0.0,
        le=1.0,
        description='The precision that headings need to be marked "accept".',
    )
    review: float = Field(
        default=0.5,
        ge=0.0,
        le=1.0,
        description="The precision that headings need to be shown, accepted ones included.",
    )

    @field_validator("review")
    @classmethod
    def _not_above_accept(cls, review: float, info: ValidationInfo) -> float:
        if review > info.data.get("accept", 1.0):
            raise ValueError(f"larger than accept, which is {info.data['accept']}")
        return review


class JointSection(Section):
    """The joint label autoencoder: its size, and how it is trained beyond [training]."""

    latent: int = Field(
        default=0,
        ge=0,
        le=10_000,
        description="Dimensions of the latent space; 0 fits them to the collection.",
    )
    dropout: float = Field(
        default=0.5, ge=0.0, lt=1.0, description="Dropout rate of the hidden layer."
    )
    epochs: int = Field(
        default=0,
        ge=0,
        description="Maximum number of epochs; 0 fits it: 8, and more for few documents.",
    )
    learning_rate: float = Field(
        default=0.001,
        gt=0.0,
        description="Adam's peak rate, after a warm-up and before a cosine decay.",
    )
    warm_up: int = Field(
        default=100,
        ge=0,
        description="Steps until the peak learning rate, at most a tenth of all steps.",
    )
    min_frequency: int = Field(
        default=2,
        ge=1,
        description="Headings that fewer documents have are scored by votes and names alone.",
    )
    sampled_outputs: int = Field(
        default=20_000,
        ge=0,
        description="With many more headings than this, compute the loss of a step for its own "
        "headings and about this many others. 0 uses all headings.",
    )
    documents: int = Field(
        default=100_000, ge=2, description="Train on at most this many documents."
    )
    terms: int = Field(
        default=100_000, ge=0, description="Read at most this many words, the most frequent ones."
    )


class TrainingSection(Section):
    """How the label autoencoder is trained."""

    recipe: Literal["joint", "paper"] = Field(
        default="joint",
        description='"joint" predicts headings from neighbours, their votes and the text; '
        '"paper" decodes averages of label sets. Keys that [joint] has as well are for "paper".',
    )
    preset: str = Field(
        default="auto",
        description='Layer sizes: "auto" fits them to the collection; "small" (1024/256/64), '
        '"medium" (2048/512/128) and "large" (4096/1024/128) are those of the paper; or three '
        "sizes.",
    )
    activation: Literal["linear", "relu", "tanh"] = Field(
        default="linear", description="Activation of the embedding layer."
    )
    dropout: float = Field(
        default=0.2, ge=0.0, lt=1.0, description="Dropout rate of the hidden layers."
    )
    epochs: int = Field(default=15, ge=1, description="Maximum number of epochs.")
    batch_size: int = Field(
        default=256, ge=2, description="Documents per step; fewer in small collections."
    )
    learning_rate: float = Field(
        default=0.002,
        gt=0.0,
        description="Adam's peak rate, after a warm-up and before a cosine decay.",
    )
    warm_up: int = Field(
        default=200,
        ge=0,
        description="Steps until the peak learning rate, at most a tenth of all steps.",
    )
    patience: int = Field(
        default=5, ge=0, description="Stop after this many epochs without improvement; 0 never."
    )
    held_out: float = Field(
        default=0.02,
        ge=0.0,
        le=0.5,
        description="Share of documents held out for validation, at most 2000 documents.",
    )
    min_frequency: int = Field(
        default=1, ge=1, description="Leave out headings that fewer documents have."
    )
    sampled_outputs: int = Field(
        default=3500,
        ge=0,
        description="Compute the loss of a step for its own headings and about this many others: "
        "the most frequent ones and a sample of the rest. 0 uses all headings.",
    )
    averages: bool = Field(
        default=True,
        description="Also train on averages of documents' neighbours, as in prediction; false "
        "trains as in the paper.",
    )
    averaged_documents: int = Field(
        default=50_000, ge=0, description="Average the neighbours of at most this many documents."
    )
    seed: int = Field(
        default=0,
        ge=0,
        le=LARGEST_SEED,
        description="The same data and seed give the same model.",
    )
    precision: Literal["auto", "float32", "mixed"] = Field(
        default="auto",
        description='"auto" uses bfloat16 mixed precision on CUDA, and for the joint network on '
        "processors that have it.",
    )


class ClusterSection(Section):
    """How work is divided on a Spark cluster, for commands with --on."""

    folder: str = Field(
        default="",
        description="A folder on a file system that all machines of the cluster share, at the same "
        "path. Empty is cache/.cluster in the collection, which must then be on such a file "
        "system.",
    )
    python: str = Field(
        default="",
        description="The Python on the workers that has labelkin installed; empty is the path of "
        "the one that runs the command.",
    )
    executor_memory: str = Field(
        default="1g",
        pattern=r"^[1-9][0-9]*[kmgtKMGT]$",
        description="Memory of the Java part of an executor; Python needs its own beside it.",
    )
    part_rows: int = Field(
        default=10_000,
        ge=1,
        description="Rows of the collection per task when texts are analysed.",
    )
    shard_rows: int = Field(
        default=100_000, ge=1, description="Rows per shard of the index that executors search."
    )
    queries: int = Field(
        default=2_000, ge=1, description="Texts per task when neighbours are searched."
    )
    patience: int = Field(
        default=60,
        ge=1,
        description="Seconds to wait for executors: a job in which no task runs for so long ends, "
        "at its start or later.",
    )
    options: list[str] = Field(
        default=[],
        description='Options of Spark, as "spark.executor.cores=4"; they take precedence.',
    )

    @field_validator("options")
    @classmethod
    def _pairs(cls, options: list[str]) -> list[str]:
        for one in options:
            name, sign, _ = one.partition("=")
            if not name.startswith("spark.") or not sign:
                raise ValueError(f"{one!r} is no option of Spark; write spark.NAME=VALUE")
        return options


class Config(Section):
    """All of labelkin.toml.

    `extensions` holds the sections of methods and signals from other packages, by name.
    """

    collection: CollectionSection = CollectionSection()
    documents: DocumentsSection = DocumentsSection()
    labels: LabelsSection = LabelsSection()
    vocabulary: VocabularySection = VocabularySection()
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
    joint: JointSection = JointSection()
    cluster: ClusterSection = ClusterSection()
    extensions: dict[str, SerializeAsAny[Section]] = Field(default={}, exclude=True)


def with_recipe(config: Config, name: str) -> Config:
    """The settings with those of a recipe."""
    recipe = RECIPES.get(name)
    if recipe is None:
        raise ConfigError(f"no recipe {name!r}; known: {', '.join(RECIPES)}")
    sections = {
        section: getattr(config, section).model_copy(update=dict(values))
        for section, values in recipe.items()
    }
    return config.model_copy(update=sections)


def read_config(path: Path, *, needed: bool = True) -> Config:
    """The settings in `path`; missing keys have their defaults, unknown ones are errors.

    A file that is missing altogether is an error if it is `needed`.
    """
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path}: not a file; remove it, then the defaults apply")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        if needed:
            raise ConfigError(f"{path}: missing") from error
        text = ""
        _note_defaults(path, "missing")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    else:
        if not text.strip():
            _note_defaults(path, "empty")
    return parse_config(text, path)


def _note_defaults(path: Path, reason: str) -> None:
    logger.info(
        "%s: %s; using the defaults (method %s); `labelkin doctor %s --repair` writes them",
        path,
        reason,
        Config().suggest.method,
        path.parent,
    )


def parse_config(text: str, path: Path) -> Config:
    """The settings in the text of a labelkin.toml; `path` is for messages."""
    try:
        # Editors on Windows put a byte order mark before the text.
        table = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: not valid TOML: nested too deeply") from error
    sections = extension_sections()
    try:
        if "extensions" in table:
            raise ConfigError(f"{path}: unknown key 'extensions'")
        others = {name: table.pop(name, {}) for name in sections}
        config = Config.model_validate(table)
        extensions = {
            name: section.model_validate(others[name]) for name, section in sections.items()
        }
    except ValidationError as error:
        raise ConfigError(f"{path}: {_explain(error.errors()[0])}") from error
    return config.model_copy(update={"extensions": extensions}) if extensions else config


def extension_sections() -> dict[str, type[Section]]:
    """The sections that methods and signals of other packages declare, by name."""
    sections = {}
    for group in ("labelkin.methods", "labelkin.signals"):
        for name in installed(group):
            try:
                section = getattr(loaded(group, name), "section", None)
            except ConfigError as error:
                logger.warning("%s", error)
                continue
            if name in Config.model_fields:
                logger.warning("ignoring the section of %r: labelkin has one of that name", name)
            elif section is not None:
                sections[name] = section
    return sections


class WatchedConfig:
    """The settings in a file, read again when the file changes.

    An invalid file is reported once; the last valid settings stay in use.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = (file_signature(path), read_config(path, needed=False))

    def current(self) -> Config:
        """The settings as the file has them now."""
        signature, config = self._read
        now = file_signature(self._path)
        if now != signature:
            try:
                config = read_config(self._path)
            except ConfigError as error:
                logger.warning("%s; keeping the previous settings", error)
            self._read = (now, config)
        return config


def write_config(config: Config, path: Path) -> None:
    """Write all settings with their documentation as comments."""
    with atomic_text(path) as file:
        file.write(to_toml(config))


def update_config(
    path: Path, changes: Mapping[str, Mapping[str, Any]], *, chosen: bool = False
) -> None:
    """Change values in labelkin.toml, section by section; comments stay as they are.

    Values that a training has `chosen` get a comment that says so, by which
    `set_by_hand` knows them again. A value that is not valid is refused, and the
    file stays as it was.
    """
    import tomlkit

    with FileLock(beside(path, "write")) as lock:
        lock.take(_PATIENCE_SECONDS)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            text = to_toml(Config())
        try:
            document = tomlkit.parse(text)
        except tomlkit.exceptions.TOMLKitError as error:
            raise ConfigError(f"{path}: not valid TOML: {error}") from error
        for section, values in changes.items():
            table: Any = document.setdefault(section, tomlkit.table())
            for name, value in values.items():
                item = tomlkit.item(value)
                if name in table and _chosen_value(table[name]) is not None:
                    # The comment belonged to the value that is replaced.
                    table[name].trivia.comment = table[name].trivia.comment_ws = ""
                if chosen and not isinstance(table, tomlkit.items.InlineTable):
                    item.comment(f"{_CHOSEN}{_toml_value(value)}")
                if name not in table and isinstance(table, tomlkit.items.Table):
                    _append(table, section, name, item)
                else:
                    table[name] = item
        text = tomlkit.dumps(document)
        parse_config(text, path)
        with atomic_text(path) as file:
            file.write(text)


def _append(table: Any, section: str, name: str, item: Any) -> None:
    """Add a key after the last one, before the comment that introduces the next section."""
    import tomlkit

    body, after = table.value.body, []
    while body and body[-1][0] is None:
        after.append(body.pop())
    declared = type(getattr(Config(), section, None))
    if issubclass(declared, Section) and name in declared.model_fields:
        for line in _documentation(declared.model_fields[name]):
            table.add(tomlkit.comment(line))
    table[name] = item
    body.extend(reversed(after))


def set_by_hand(path: Path, section: str, names: Iterable[str]) -> frozenset[str]:
    """The keys of a section whose values are neither their defaults nor chosen by a training.

    A value with a comment of the user's own behind it is set by hand, whatever it is.
    """
    import tomlkit

    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return frozenset()
    config = parse_config(text, path)
    table: Any = tomlkit.parse(text).get(section, {})
    present = getattr(config, section)
    by_hand = set()
    for name in names:
        if name not in table:
            continue
        value, chosen = getattr(present, name), _chosen_value(table[name])
        is_default = value == type(present).model_fields[name].default
        has_comment = chosen is None and bool(_comment(table[name]))
        if has_comment or not (is_default or chosen == _toml_value(value)):
            by_hand.add(name)
    return frozenset(by_hand)


def _comment(item: Any) -> str:
    """The comment behind a value; true and false have none."""
    trivia = getattr(item, "trivia", None)
    return "" if trivia is None else str(trivia.comment).lstrip("# ")


def _chosen_value(item: Any) -> str | None:
    """The value that a training chose for a key, by its comment; None if no training did."""
    comment = _comment(item)
    return comment.removeprefix(_CHOSEN) if comment.startswith(_CHOSEN) else None


def to_toml(config: Config) -> str:
    """The commented text of labelkin.toml."""
    lines = ["# Settings of this labelkin collection. Every key is optional.", ""]
    for section_name in Config.model_fields:
        if section_name == "extensions":
            continue
        section: Section = getattr(config, section_name)
        lines += [f"# {(type(section).__doc__ or '').strip()}", f"[{section_name}]"]
        for name, field in type(section).model_fields.items():
            lines += [f"# {line}" for line in _documentation(field)]
            lines.append(f"{name} = {_toml_value(getattr(section, name))}")
        lines.append("")
    return "\n".join(lines)


def _documentation(field: FieldInfo) -> list[str]:
    """What a key means, its choices and its default, in short lines."""
    default = _toml_value(field.default)
    return textwrap.wrap(f"{field.description}{_choices(field.annotation)} Default: {default}", 86)


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
        known: Iterable[str] = [one for one in Config.model_fields if one != "extensions"]
        if len(place) > 1:
            known = type(getattr(Config(), place[0])).model_fields
        close = difflib.get_close_matches(place[-1], known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(known)}"
        return f"unknown key {'.'.join(place)!r}; {hint}"
    if error["type"] in ("model_type", "dict_type") and len(place) == 1:
        return f"{place[0]} = {error['input']!r}: a section; write [{place[0]}] and its keys below"
    message = error["msg"].removeprefix("Value error, ")
    return f"{'.'.join(place)} = {error['input']!r}: {message[0].lower()}{message[1:]}"
