from __future__ import annotations

from typing import Any, cast

import pytest

from labelkin import Indexer
from labelkin.exceptions import ConfigError
from labelkin.scoring.requested import requested_settings
from labelkin.scoring.settings import Settings
from labelkin.store.config import Config
from labelkin.store.models import Models


def requested(method: str | None = None, **options: Any) -> Settings:
    # Models are needed for `review` alone.
    return requested_settings(Config(), cast("Models", None), method, **options)


def test_what_is_not_asked_for_is_as_configured() -> None:
    assert requested() == Settings.from_config(Config())
    assert requested("lexical").method == "lexical"


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("bayes", {}, "no method 'bayes'; known: knn"),
        ("lexical", {"k": 5}, "k is not for the method lexical"),
        ("lexical", {"weighting": "square"}, "weighting is not for the method lexical"),
        ("knn", {"weighting": "none"}, "no weighting 'none'; known:"),
        ("knn", {"accept": 0.9}, "accept and review are for the method rerank"),
        ("knn", {"review": 0.5}, "accept and review are for the method rerank"),
        ("rerank", {"accept": 0.4, "review": 0.6}, "accept 0.4 is lower than review 0.6"),
    ],
)
def test_what_does_not_fit_is_refused(method: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        requested(method, **options)
    assert message in str(raised.value)


def test_lenient_leaves_out_what_is_for_other_methods() -> None:
    options = {"accept": 0.9, "review": 0.5, "lenient": True}
    assert requested("knn", **options) == requested("knn")
    assert requested("lexical", k=5, **options).method == "lexical"


def test_messages_name_arguments_as_the_caller_does() -> None:
    with pytest.raises(ConfigError, match="--accept and --review are for"):
        requested("knn", accept=0.9, named=lambda name: f"--{name}")


def test_a_higher_review_raises_accept() -> None:
    settings = requested("rerank", review=0.99, limit=10)
    assert settings.rerank.accept == settings.rerank.review == 0.99


def test_exclude_adds_and_include_replaces() -> None:
    config = Config.model_validate({"suggest": {"include": ["A"], "exclude": ["B"]}})
    settings = requested_settings(config, cast("Models", None), include=["C"], exclude=["D"])
    assert (settings.include, settings.exclude) == (("C",), ("B", "D"))


def test_k_is_not_for_a_joint_autoencoder(trained_indexer: Indexer) -> None:
    pytest.importorskip("torch", reason="needs the extra `train`")
    models = trained_indexer.runtime.models
    for option, value in (("k", 5), ("weighting", "square")):
        asked: dict[str, Any] = {option: value}
        with pytest.raises(ConfigError, match=rf"^{option} is not for .* always looks at 60"):
            requested_settings(Config(), models, "label-ae", **asked)
        requested_settings(Config(), models, "label-ae", lenient=True, **asked)
        requested_settings(Config(), models, "mix", **asked)
        # A count is that of the k nearest.
        by_count = Config.model_validate({"label_ae": {"count": "mean"}})
        requested_settings(by_count, models, "label-ae", **asked)
