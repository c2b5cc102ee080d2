"""The collections that are served, and the projects that Annif's clients see in them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from urllib.parse import quote

from labelkin.closing import Closing
from labelkin.evaluate.stored import EVALUATION_NAME
from labelkin.exceptions import (
    CollectionNotFoundError,
    ConfigError,
    LabelkinError,
)
from labelkin.indexer import Indexer
from labelkin.layout import is_collection
from labelkin.memo import Memo
from labelkin.scoring.methods import METHODS
from labelkin.scoring.settings import Settings
from labelkin.serve.problems import ProblemError, busy
from labelkin.store.config import CONFIG_NAME, read_config
from labelkin.store.folder import file_signature
from labelkin.store.models import DESCRIPTION
from labelkin.store.snapshot import Snapshot
from labelkin.vocab.concept import ALL_LANGUAGES

logger = logging.getLogger(__name__)

# Between the name of a collection and that of a method in a project's id.
METHOD_MARK = ":"
_MOST_MEMOS = 8
_NOT_IN_URLS = "/\\?#%"


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a method could not be loaded, and the state of its models then."""

    problem: str
    models: str


class ServedCollection(Closing):
    """One open collection under the name that the service gives it."""

    def __init__(self, name: str, indexer: Indexer, representations: Sequence[str] = ()) -> None:
        self.name = name
        self.indexer = indexer
        self._representations = representations
        self._failures: dict[str, _Failure] = {}
        #: What was computed for a state of the collection and its models.
        self.facts = Memo(_MOST_MEMOS)

    def close(self) -> None:
        """Close the collection."""
        self.indexer.close()

    @property
    def snapshot(self) -> Snapshot:
        """The current state; after the first request this opens and reads nothing."""
        return self.indexer.snapshot()

    def settled(self) -> int:
        """The latest generation, once requests see it; for the thread that has written."""
        generation = self.indexer.collection.generation().number
        self.indexer.require(generation)
        self.indexer.snapshot()
        return generation

    def require(self, generation: int | None) -> None:
        """Let the calling thread see this generation or a later one; a 422 if there is none."""
        if generation is None:
            return
        self.indexer.require(generation)
        if self.snapshot.generation().number < generation:
            # Another process builds the index; requests without this wish get the state before.
            raise busy(f"{self.name} does not show generation {generation} yet; try again")

    def warm_up(self) -> None:
        """Load everything that requests with any of the methods need.

        A method that cannot be loaded is recorded and left to the requests that ask for it.
        """
        for method in self.indexer.usable_methods():
            state = self._models_state(method)
            try:
                METHODS[method].check_installed()
                self.indexer.warm_up([method])
            except LabelkinError as error:
                self._failures[method] = _Failure(str(error), state)
                logger.warning("%s: %s cannot be used: %s", self.name, method, error)
        for representation in self._representations:
            try:
                self.indexer.search(representation)
            except LabelkinError as error:
                state = self._models_state(representation)
                self._failures[representation] = _Failure(str(error), state)
                logger.warning("%s: %s cannot be used: %s", self.name, representation, error)
        snapshot = self.snapshot
        if snapshot.generation().next_column:
            # So that the first correction and the first search by name do not wait for it.
            snapshot.vocabulary.search("a", limit=1)
        self.vocabulary_languages()

    def vocabulary_languages(self) -> Mapping[str, int]:
        """How many concepts have a name in each language, the most frequent first."""
        snapshot = self.snapshot
        key = ("languages", snapshot.vocabulary_state.key)
        return self.facts.get(key, lambda: dict(snapshot.names_by_language().most_common()))

    def heading_language(self) -> str:
        """The language in which names are shown: labelkin.toml's, else English, else any."""
        languages = self.vocabulary_languages()
        wanted = self.indexer.config.vocabulary.language
        if wanted in languages or wanted == "all":
            return wanted
        return "en" if "en" in languages or not languages else next(iter(languages))

    def language(self, asked: str | None) -> str:
        """The language to show names in, for a request that may ask for one."""
        if asked is None:
            return self.heading_language()
        if asked != ALL_LANGUAGES and asked not in self.vocabulary_languages():
            known = ", ".join(self.vocabulary_languages()) or "none"
            raise ProblemError(422, f"no heading has a name in {asked!r}; known: {known}")
        return asked

    def check_representation(self, asked: str | None) -> None:
        """Refuse a representation that the service was not started with.

        Its index would be built by the request, its model read from any path or
        downloaded.
        """
        own = self.indexer.config.representation.name
        usable = list(dict.fromkeys(_parts(",".join((own, *self._representations)))))
        for part in _parts(asked or ""):
            if part not in usable:
                raise ProblemError(
                    422,
                    f"no representation {part!r} here; there are {', '.join(usable)}; others need "
                    "`labelkin serve --representation NAME`",
                )

    def documents_with(self) -> Callable[[str], int]:
        """A function from ids of concepts to the numbers of documents that carry them."""
        snapshot = self.snapshot
        frequencies, columns = self.indexer.label_frequencies(), snapshot.columns_by_id()

        def count(identifier: str) -> int:
            column = columns.get(identifier, len(frequencies))
            return int(frequencies[column]) if column < len(frequencies) else 0

        return count

    def text_language(self) -> str:
        """The language of most documents."""
        config = self.indexer.config.collection.language
        if config != "auto":
            return config
        snapshot = self.snapshot
        # Counting takes long in a large collection, and the most frequent language hardly changes.
        key = ("language", snapshot.generation().next_row.bit_length())
        counts = self.facts.get(key, snapshot.language_counts)
        return counts.most_common(1)[0][0] if counts else self.heading_language()

    def problems(self) -> dict[str, str]:
        """The methods that could not be loaded, and why; one that was trained again is left out."""
        problems = {}
        for method, failure in list(self._failures.items()):
            if self._models_state(method) == failure.models:
                problems[method] = failure.problem
            else:
                self._failures.pop(method, None)
        return problems

    def is_trained(self, method: str) -> bool:
        """Whether a method can suggest something."""
        snapshot, models = self.snapshot, self.indexer.runtime.models
        needs_documents = METHODS[method].depth(self.settings(method)) > 0
        return (
            all(models.has(kind) for kind in METHODS[method].required_models())
            and method not in self.problems()
            and snapshot.generation().next_column > 0
            and (not needs_documents or snapshot.count() > 0)
        )

    def _models_state(self, method: str) -> str:
        """Changes when a model of a method is trained again; no model is loaded."""
        try:
            return METHODS[method].models_checksum(self.indexer.runtime.models)
        except LabelkinError as error:
            return str(error)

    def models_state(self) -> str:
        """Changes when a model is trained again or an evaluation is stored; reads nothing."""
        folder = self.indexer.runtime.models.folder
        files = [*sorted(folder.glob(f"*/{DESCRIPTION}")), folder.parent / EVALUATION_NAME]
        return repr([(file.parent.name, file_signature(file)) for file in files])

    def settings(self, method: str | None = None) -> Settings:
        """The settings of labelkin.toml."""
        return Settings.from_config(self.indexer.config, method)

    def modified(self) -> datetime | None:
        """When documents or models have changed last."""
        snapshot = self.snapshot
        key = ("modified", snapshot.generation())
        times = [self.facts.get(key, lambda: (snapshot.modified(),))[0]]
        folder = self.indexer.runtime.models.folder
        for description in folder.glob(f"*/{DESCRIPTION}"):
            try:
                seconds = description.stat().st_mtime
            except OSError:
                continue
            times.append(datetime.fromtimestamp(int(seconds), UTC))
        return max((time for time in times if time is not None), default=None)


@dataclass(frozen=True, slots=True)
class Project:
    """A collection with a method, as Annif's clients see it.

    Without a method of its own, it has the one of labelkin.toml.
    """

    collection: ServedCollection
    given: str | None = None

    @property
    def id(self) -> str:
        """The name of the collection, with the method if it is given."""
        name = self.collection.name
        return name if self.given is None else f"{name}{METHOD_MARK}{self.given}"

    @property
    def method(self) -> str:
        """The method that the project suggests with."""
        return self.given or self.collection.indexer.config.suggest.method

    @property
    def title(self) -> str:
        """What the project is called."""
        name = self.collection.indexer.config.collection.name or self.collection.name
        return f"{name} ({self.method})"

    @property
    def is_trained(self) -> bool:
        """Whether the project can suggest something."""
        return self.collection.is_trained(self.method)


class Catalogue(Closing):
    """All collections that are served, by name. Opens them; `load` makes them ready."""

    def __init__(
        self,
        paths: Mapping[str, Path],
        *,
        read_only: bool = False,
        representations: Sequence[str] = (),
    ) -> None:
        self._collections: dict[str, ServedCollection] = {}
        self._loaded = Event()
        try:
            for name, path in paths.items():
                indexer = Indexer.open(path, read_only=read_only, follow=True)
                self._collections[name] = ServedCollection(name, indexer, representations)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close all collections."""
        for collection in self._collections.values():
            collection.close()

    def load(self) -> None:
        """Load all models; requests wait for this. A collection that fails stops no other one."""
        for collection in self:
            try:
                collection.warm_up()
            except Exception:
                logger.exception("%s: not everything could be loaded", collection.name)
        self._loaded.set()

    @property
    def is_loaded(self) -> bool:
        """Whether everything has been loaded."""
        return self._loaded.is_set()

    def __iter__(self) -> Iterator[ServedCollection]:
        return iter(self._collections.values())

    def without_paths(self, text: str) -> str:
        """A message with the names of collections for their paths, which clients must not see."""
        for collection in self:
            path = collection.indexer.collection.path
            for shown in (str(path.resolve()), str(path)):
                text = text.replace(shown, collection.name)
        return text

    def collection(self, name: str) -> ServedCollection:
        """The collection with this name; a 404 if there is none."""
        try:
            return self._collections[name]
        except KeyError:
            known = ", ".join(self._collections)
            raise ProblemError(404, f"no collection {name!r}; there are {known}") from None

    def projects(self) -> list[Project]:
        """A project for each collection, and one for each method that it can use."""
        return [
            project
            for collection in self
            for project in (
                Project(collection),
                *(Project(collection, one) for one in collection.indexer.usable_methods()),
            )
        ]

    def project(self, identifier: str) -> Project:
        """The project with this id; a 404 if there is none."""
        collection = self._collections.get(identifier)
        if collection is not None:
            return Project(collection)
        name, mark, method = identifier.rpartition(METHOD_MARK)
        collection = self._collections.get(name)
        if mark and collection is not None and method in METHODS:
            return Project(collection, method)
        raise ProblemError(404, f"Project '{identifier}' not found", title="Project not found")


def served_paths(collections: Sequence[str]) -> dict[str, Path]:
    """Collections by the names that they are served under.

    Each is a path, NAME=PATH, or a folder of collections, which stands for all of them. By
    default a collection has the name that labelkin.toml gives it, else that of its folder.
    """
    paths: dict[str, Path] = {}
    for name, path in _named_paths(collections):
        if not _is_url_part(name):
            raise ConfigError(
                f"{name!r} cannot be part of a URL; give the collection another name: "
                f"labelkin serve NAME={path}"
            )
        if name in paths:
            raise ConfigError(
                f"{paths[name]} and {path} are both called {name}; give one another name: "
                f"labelkin serve NAME={path}"
            )
        paths[name] = path
    return paths


def _named_paths(collections: Sequence[str]) -> Iterator[tuple[str, Path]]:
    for given in collections:
        name, mark, rest = given.partition("=")
        path = Path(rest if mark and not Path(given).exists() else given)
        if path == Path(given):
            name = ""
        if is_collection(path):
            yield name or _own_name(path), path
            continue
        inside = [] if name else _collections_in(path)
        if not inside:
            raise CollectionNotFoundError(
                f"{path}: there is no collection, nor a folder of collections; see `labelkin init`"
            )
        yield from ((_own_name(one), one) for one in inside)


def _collections_in(folder: Path) -> list[Path]:
    return sorted(filter(_is_served, folder.iterdir())) if folder.is_dir() else []


def _is_served(path: Path) -> bool:
    """Whether a folder in a folder is served; others, such as lost+found, need not be readable."""
    try:
        return is_collection(path)
    except OSError:
        return False


def _parts(representations: str) -> list[str]:
    return [part.strip() for part in representations.split(",") if part.strip()]


def _own_name(path: Path) -> str:
    """The name of labelkin.toml if it is short for URLs, not a title that would be escaped."""
    name = read_config(path / CONFIG_NAME, needed=False).collection.name.strip()
    return name if name and quote(name, safe="") == name else path.resolve().name


def _is_url_part(name: str) -> bool:
    return bool(name) and name.isprintable() and not any(mark in name for mark in _NOT_IN_URLS)
