from __future__ import annotations

import pytest

from labelkin.exceptions import ConfigError
from labelkin.scoring.methods import METHODS
from labelkin.scoring.settings import RERANK_DEPTH, Settings


def test_rerank_always_looks_at_the_same_number_of_neighbours() -> None:
    assert Settings(method="rerank").changed(k=5).k == RERANK_DEPTH


def test_targets_of_the_reranker() -> None:
    usual = Settings(method="rerank")
    changed = usual.changed(accept=0.8, review=0.3)
    assert (changed.rerank.accept, changed.rerank.review) == (0.8, 0.3)
    assert usual.changed(review=0.3).rerank.accept == usual.rerank.accept
    assert usual.changed(threshold=0.2).rerank.threshold == 0.2
    assert usual.changed(limit=3).rerank.threshold == 0


@pytest.mark.parametrize("name", METHODS.names())
def test_the_implementation_is_the_method_of_that_name(name: str) -> None:
    settings = Settings(method=name)
    assert settings.implementation is METHODS[name]
    assert settings.implementation.name == name
    assert settings.k == settings.implementation.depth(settings)


def test_an_unknown_method() -> None:
    with pytest.raises(ConfigError, match="no method 'magic'; known: knn, label-ae, "):
        _ = Settings(method="magic").k


@pytest.mark.parametrize("name", METHODS.names())
def test_lists_and_limit_belong_to_the_request(name: str) -> None:
    usual = Settings(method=name, include=("A",), exclude=("B",))
    changed = usual.changed(limit=3, exclude=("C",))
    assert (changed.limit, changed.include, changed.exclude) == (3, ("A",), ("C",))
    assert changed.implementation.threshold(changed) == 0
    assert changed.changed(threshold=0.4, limit=2).limit == 2


def test_settings_can_be_told_apart_in_a_set() -> None:
    assert len({Settings(), Settings(), Settings(limit=1)}) == 2
