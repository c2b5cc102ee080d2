from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from labelkin import Document, Indexer, registry
from labelkin.exceptions import ConfigError
from labelkin.scoring.method import Method
from labelkin.scoring.methods import METHODS
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import Settings
from labelkin.store.config import Section

from .method_conformance import MethodConformance


class OfCollection(MethodConformance):
    """Methods in a generated collection with small models."""

    @pytest.fixture
    def indexer(self, trained_indexer: Indexer) -> Indexer:
        return trained_indexer

    @pytest.fixture
    def documents(self, new_documents: list[Document]) -> Sequence[Document]:
        return new_documents


def usable(indexer: Indexer, name: str) -> Settings:
    if name not in indexer.usable_methods():
        pytest.skip(f"{name} has no model here")
    return Settings.from_config(indexer.config, name)


@pytest.mark.parametrize("name", [name for name in METHODS.names() if name != "mix"])
class TestMethods(OfCollection):
    @pytest.fixture
    def settings(self, indexer: Indexer, name: str) -> Settings:
        return usable(indexer, name)


class TestMix(OfCollection):
    # The threshold is that of the label autoencoder; votes fill up the list.
    threshold_applies_to_scores = False
    # It fills up to the number of labels that have votes.
    a_large_limit_gives_everything = False

    @pytest.fixture
    def settings(self, indexer: Indexer) -> Settings:
        return usable(indexer, "mix")


class ToySection(Section):
    """Settings of a method from elsewhere."""

    threshold: float = 0.25
    favourites: int = 3


class Toy(Method):
    """The first concepts of the vocabulary, for every text."""

    name = "toy"
    section = ToySection

    def depth(self, settings: Settings) -> int:
        return 0

    def rank(self, queries: Queries, settings: Settings) -> Ranking:
        policy = queries.policy(settings.include, settings.exclude)
        allowed = range(8) if policy is None else (policy.target[:8] >= 0).nonzero()[0].tolist()
        columns = [column for column in range(8) if column in allowed]
        scores = [1 - column / 8 for column in columns]
        return Ranking.from_lists([columns] * len(queries), [scores] * len(queries))


class TestAMethodOfAnotherPackage(OfCollection):
    """What `Method` itself does is enough for a method that only ranks."""

    @pytest.fixture(autouse=True)
    def installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An installed package with an entry point for the method."""
        package = ModuleType("toy_package")
        package.Toy = Toy  # type: ignore[attr-defined]
        points = {"labelkin.methods": {"toy": "toy_package:Toy"}}
        monkeypatch.setitem(sys.modules, "toy_package", package)
        monkeypatch.setattr(registry, "_entry_points", lambda group: points.get(group, {}))

    @pytest.fixture
    def settings(self, indexer: Indexer) -> Settings:
        return Settings.from_config(indexer.config, "toy")

    def test_its_section_is_part_of_the_config(self, indexer: Indexer, settings: Settings) -> None:
        assert METHODS.names()[-1] == "toy"
        assert settings.extensions["toy"] == ToySection()
        assert "toy" in indexer.usable_methods()


def test_models_decide_which_methods_are_usable(trained: Path, tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c") as empty, Indexer.open(trained) as indexer:
        assert empty.usable_methods() == ["knn", "lexical"]
        assert indexer.usable_methods()[0] == "knn"
        assert {*empty.usable_methods()} <= {*indexer.usable_methods()} <= {*METHODS.names()}


def test_names_are_unique_and_known() -> None:
    assert [method.name for method in METHODS] == METHODS.names()
    assert "knn" in METHODS
    assert "magic" not in METHODS
    with pytest.raises(ConfigError, match="no method 'magic'; known: knn, "):
        METHODS["magic"]
