from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from labelkin.corpus import Document
from labelkin.represent import TermCache


class Words:
    """A kind of term that counts how often it is asked."""

    name = "words"

    def __init__(self, version: str = "1") -> None:
        self.version = version
        self.asked = 0

    def extract(self, documents: Sequence[Document]) -> list[list[str]]:
        self.asked += len(documents)
        return [document.text.split() for document in documents]


DOCUMENTS = [Document("1", "a b"), Document("2", "c"), Document("3", "a b"), Document("4")]
TERMS = [["a", "b"], ["c"], ["a", "b"], []]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "terms.sqlite"


@pytest.fixture
def cache(path: Path) -> Iterator[TermCache]:
    made = TermCache(path)
    yield made
    made.close()


def test_no_text_is_analysed_twice(cache: TermCache, path: Path) -> None:
    words = Words()
    assert cache.terms(words, DOCUMENTS) == TERMS
    assert words.asked == 3
    assert cache.terms(words, DOCUMENTS) == TERMS
    again = TermCache(path)
    assert again.terms(words, DOCUMENTS) == TERMS
    again.close()
    assert words.asked == 3


def test_language_title_and_version_matter(cache: TermCache) -> None:
    words = Words()
    cache.terms(words, [Document("1", "a b")])
    cache.terms(words, [Document("1", "a b", language="de")])
    cache.terms(words, [Document("1", body="a b")])
    assert words.asked == 3
    newer = Words("2")
    cache.terms(newer, [Document("1", "a b")])
    assert newer.asked == 1


def test_nothing_is_kept_unless_wanted(cache: TermCache) -> None:
    words = Words()
    for _ in range(2):
        assert cache.terms(words, DOCUMENTS, store=False) == TERMS
    assert words.asked == 6


def test_a_damaged_file_is_no_obstacle(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database at all" * 100)
    cache = TermCache(path)
    assert cache.terms(Words(), DOCUMENTS) == TERMS
    cache.close()
    assert "terms are not cached" in caplog.messages[0]
    assert not path.exists()


def test_without_permission_to_write(path: Path) -> None:
    cache = TermCache(path, read_only=True)
    assert cache.terms(Words(), DOCUMENTS) == TERMS
    assert not path.exists()


def test_an_entry_that_cannot_be_read_is_made_anew(cache: TermCache, path: Path) -> None:
    words = Words()
    cache.terms(words, DOCUMENTS)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE terms SET terms = x'00'")
    connection.commit()
    connection.close()
    assert cache.terms(words, DOCUMENTS) == TERMS
    assert words.asked == 6
