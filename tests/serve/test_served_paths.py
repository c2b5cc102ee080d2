from __future__ import annotations

from pathlib import Path

import pytest

from labelkin.exceptions import CollectionNotFoundError, ConfigError
from labelkin.indexer import Indexer
from labelkin.layout import is_collection
from labelkin.serve.catalogue import served_paths
from labelkin.store.config import CONFIG_NAME, update_config


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

    monkeypatch.setattr("labelkin.serve.catalogue.is_collection", guarded)
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


def test_two_collections_cannot_have_one_name(tmp_path: Path) -> None:
    make(tmp_path / "a" / "mesh")
    make(tmp_path / "b" / "mesh")
    with pytest.raises(ConfigError, match="both called mesh"):
        served_paths([str(tmp_path / "a"), str(tmp_path / "b")])
