"""Names of collections, projects, and collections that are served."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from labelkin.exceptions import CollectionNotFoundError, ConfigError, LabelkinError
from labelkin.indexer import Indexer
from labelkin.layout import is_collection
from labelkin.serve.catalogue import Catalogue, ServedCollection, served_paths
from labelkin.serve.problems import ProblemError
from labelkin.store.config import CONFIG_NAME, update_config

from ..served import TEXT, copied
from .conftest import Start


def make(path: Path, title: str = "") -> Path:
    Indexer.create(path).close()
    if title:
        update_config(path / CONFIG_NAME, {"collection": {"name": title}})
    return path


def test_a_collection_has_the_name_of_its_folder(tmp_path: Path) -> None:
    path = make(tmp_path / "mesh")
    assert served_paths([str(path)]) == {"mesh": path}


def test_a_given_name_comes_first(tmp_path: Path) -> None:
    path = make(tmp_path / "mesh", "decs")
    assert served_paths([str(path)]) == {"decs": path}
    assert served_paths([f"other={path}"]) == {"other": path}


@pytest.mark.parametrize("title", ["labelkin demo", "Größe", "a/b", "50%", "a:b"])
def test_a_title_that_urls_would_have_to_escape_is_no_name(tmp_path: Path, title: str) -> None:
    path = make(tmp_path / "demo", title)
    assert served_paths([str(path)]) == {"demo": path}


def test_a_folder_stands_for_all_collections_in_it(tmp_path: Path) -> None:
    mesh, decs = make(tmp_path / "mesh"), make(tmp_path / "decs")
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "notes.txt").write_text("no collection")
    assert list(served_paths([str(tmp_path)]).items()) == [("decs", decs), ("mesh", mesh)]


def test_what_cannot_be_read_in_a_folder_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make(tmp_path / "mesh")
    (tmp_path / "lost+found").mkdir()

    def guarded(one: Path) -> bool:
        if one.name == "lost+found":
            raise PermissionError(13, "Permission denied", str(one))
        return is_collection(one)

    monkeypatch.setitem(served_paths.__globals__, "is_collection", guarded)
    assert served_paths([str(tmp_path)]) == {"mesh": path}


def test_a_folder_without_collections_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CollectionNotFoundError, match=r"no collection.*labelkin init"):
        served_paths([str(tmp_path)])
    with pytest.raises(CollectionNotFoundError, match="no collection"):
        served_paths([str(tmp_path / "missing")])


def test_a_name_is_for_one_collection(tmp_path: Path) -> None:
    make(tmp_path / "mesh")
    with pytest.raises(CollectionNotFoundError, match="no collection"):
        served_paths([f"all={tmp_path}"])


def test_names_are_given_before_the_path(small: Path, tmp_path: Path) -> None:
    path = shutil.copytree(small, tmp_path / "a=b")
    # A path that is there is no NAME=PATH.
    assert list(served_paths([str(path)]).values()) == [path]
    assert served_paths([f"other={path}"]) == {"other": path}


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
        (["{}/nothere"], CollectionNotFoundError, "there is no collection, nor a folder"),
        (["x={}/nothere"], CollectionNotFoundError, "there is no collection, nor a folder"),
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


def test_a_collection_that_cannot_be_loaded_stops_no_other_one(
    small: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loaded = []

    def warm_up(collection: ServedCollection) -> None:
        if collection.name == "bad":
            raise RuntimeError("out of luck")
        loaded.append(collection.name)

    monkeypatch.setattr(ServedCollection, "warm_up", warm_up)
    with Catalogue({"bad": small, "good": small}) as catalogue:
        catalogue.load()
        assert catalogue.is_loaded
    assert loaded == ["good"]
    assert "bad: not everything could be loaded" in caplog.text
