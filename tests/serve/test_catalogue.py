"""Names of collections, projects, and collections that are served."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from labelkin.exceptions import CollectionNotFoundError, ConfigError, LabelkinError
from labelkin.serve.catalogue import Catalogue, served_paths
from labelkin.serve.problems import ProblemError
from labelkin.store.config import CONFIG_NAME, update_config

from ..served import TEXT, copied
from .conftest import Start


def test_names(small: Path, tmp_path: Path) -> None:
    path = copied(small, tmp_path)
    assert served_paths([str(path)]) == {"demo": path}
    assert served_paths([f"other={path}", str(path)]) == {"other": path, "demo": path}
    update_config(path / CONFIG_NAME, {"collection": {"name": "own name"}})
    assert served_paths([str(path)]) == {"own name": path}
    odd = tmp_path / "a=b"
    shutil.copytree(path, odd)
    assert served_paths([str(odd)]) == {"own name": odd}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            ["{}", "{}"],
            ConfigError,
            "both called demo; give one another name: labelkin serve NAME=",
        ),
        (["a/b={}"], ConfigError, "cannot be part of a URL"),
        (["a%b={}"], ConfigError, "cannot be part of a URL"),
        (["a\nb={}"], ConfigError, "cannot be part of a URL"),
        (["{}/nothere"], CollectionNotFoundError, "there is no collection; see `labelkin init`"),
        (["x={}/nothere"], CollectionNotFoundError, "there is no collection"),
        ([""], CollectionNotFoundError, "there is no collection"),
    ],
)
def test_names_that_cannot_be(
    small: Path, given: list[str], error: type[LabelkinError], message: str
) -> None:
    with pytest.raises(error) as raised:
        served_paths([one.format(small) for one in given])
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_projects(small: Path) -> None:
    with Catalogue({"demo": small, "with:mark": small}) as catalogue:
        catalogue.load()
        ids = [one.id for one in catalogue.projects()]
        assert ids == [
            "demo",
            "demo:knn",
            "demo:lexical",
            "with:mark",
            "with:mark:knn",
            "with:mark:lexical",
        ]
        for identifier in ids:
            project = catalogue.project(identifier)
            assert project.id == identifier
            assert project.is_trained
        assert not catalogue.project("demo:rerank").is_trained
        for unknown in ("", ":", "demo:", "demo:nope", "with", "mark:knn", "knn"):
            with pytest.raises(ProblemError) as raised:
                catalogue.project(unknown)
            assert raised.value.status_code == 404


def test_languages_and_representations(small: Path) -> None:
    with Catalogue({"demo": small}) as catalogue:
        collection = catalogue.collection("demo")
        assert set(collection.vocabulary_languages()) == {"de", "en"}
        assert collection.language(None) == collection.heading_language() == "en"
        assert collection.language("de") == "de"
        assert collection.text_language() == "en"
        for allowed in (None, "stems", " stems , stems"):
            collection.check_representation(allowed)
        for refused in ("lsa", "stems,lsa", "a/b"):
            with pytest.raises(ProblemError, match="--representation"):
                collection.check_representation(refused)


def test_representations_that_the_service_was_started_with(start: Start) -> None:
    service = start(representations=("lsa", "nothing"))
    url = "/api/v1/collections/demo/suggest"
    for representation in ("lsa", "stems,lsa"):
        body = {"documents": [{"title": TEXT}], "representation": representation}
        answer = service.http.post(url, json=body)
        assert answer.json()["results"][0]["suggestions"], representation
    assert "demo:nothing" in service.http.get("/api/v1/ready").json()["problems"]


def test_a_collection_that_cannot_be_opened_leaves_none_open(small: Path, tmp_path: Path) -> None:
    path = copied(small, tmp_path)
    (path / "documents.sqlite").write_bytes(b"garbage" * 1000)
    with pytest.raises(LabelkinError):
        Catalogue({"good": small, "bad": path})
