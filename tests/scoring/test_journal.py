from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from labelkin import Document
from labelkin.exceptions import CollectionBusyError
from labelkin.scoring.journal import Journal

DOCUMENTS = [Document(f"d{n}", f"Title {n}") for n in range(5)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal with the results of three documents."""
    found = tmp_path / "journal"
    with Journal(found, {"k": 20}) as journal:
        assert list(journal.resume(iter(DOCUMENTS))) == DOCUMENTS
        journal.append((document, {"id": document.id}) for document in DOCUMENTS[:3])
    return found


def test_results_are_reused(path: Path) -> None:
    with Journal(path, {"k": 20}) as journal:
        assert list(journal.resume(iter(DOCUMENTS))) == DOCUMENTS[3:]
        assert journal.done == 3
        assert [record["id"] for record in journal.records()] == ["d0", "d1", "d2"]


def test_other_settings_count_for_nothing(path: Path) -> None:
    with Journal(path, {"k": 30}) as journal:
        assert list(journal.resume(iter(DOCUMENTS))) == DOCUMENTS
    assert not path.exists()


def broken() -> Iterator[Document]:
    raise KeyboardInterrupt
    yield


@pytest.mark.parametrize("settings", [{"k": 20}, {"k": 30}])
def test_a_run_that_fails_before_its_first_document_costs_nothing(
    path: Path, settings: dict[str, int]
) -> None:
    before = path.read_bytes()
    with Journal(path, settings) as journal:
        assert list(journal.resume(iter([]))) == []
    with pytest.raises(KeyboardInterrupt), Journal(path, settings) as journal:
        journal.resume(broken())
    assert path.read_bytes() == before


def test_one_without_results_is_removed(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", {}) as journal:
        journal.resume(iter(DOCUMENTS))
        assert (tmp_path / "j").exists()
    assert not (tmp_path / "j").exists()


def test_damage_costs_what_follows_it(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"\x00damage\n", *lines[3:]]))
    with Journal(path, {"k": 20}) as journal:
        assert list(journal.resume(iter(DOCUMENTS))) == DOCUMENTS[1:]


def test_only_one_has_it(path: Path) -> None:
    with Journal(path, {"k": 20}), pytest.raises(CollectionBusyError, match="another process"):
        Journal(path, {"k": 20})
