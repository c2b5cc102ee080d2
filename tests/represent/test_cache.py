from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from labelkin.corpus import Document
from labelkin.represent import TermCache, TermKind


class Words:
    """An analysis that counts how often it is asked."""

    def __init__(self, version: str = "1") -> None:
        self.version = version
        self.asked = 0

    def kinds(self, *names: str) -> list[TermKind]:
        return [TermKind(name, self.version, self) for name in names]

    def analyse(
        self, documents: Sequence[Document], kinds: Sequence[str]
    ) -> Iterator[list[list[str]]]:
        for document in documents:
            self.asked += 1
            words = document.text.split()
            yield [words if kind == "words" else [word.upper() for word in words] for kind in kinds]


def terms(
    cache: TermCache, words: Words, documents: Sequence[Document], *, store: bool = True
) -> list[list[str]]:
    return cache.terms(words.kinds("words"), documents, store=store)["words"]


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
    assert terms(cache, words, DOCUMENTS) == TERMS
    assert words.asked == 3
    assert terms(cache, words, DOCUMENTS) == TERMS
    again = TermCache(path)
    assert terms(again, words, DOCUMENTS) == TERMS
    again.close()
    assert words.asked == 3


def test_kinds_of_one_analysis_are_extracted_together(cache: TermCache) -> None:
    words = Words()
    capitals = [[word.upper() for word in one] for one in TERMS]
    assert cache.terms(words.kinds("words", "capitals"), DOCUMENTS) == {
        "words": TERMS,
        "capitals": capitals,
    }
    assert words.asked == 3
    more = [*DOCUMENTS, Document("5", "d")]
    assert cache.terms(words.kinds("words"), more)["words"] == [*TERMS, ["d"]]
    assert words.asked == 4
    assert cache.terms(words.kinds("words", "capitals"), more)["capitals"] == [*capitals, ["D"]]
    assert words.asked == 5


def test_what_was_ready_before_an_interruption_is_kept(cache: TermCache) -> None:
    class Interrupted(Words):
        def analyse(
            self, documents: Sequence[Document], kinds: Sequence[str]
        ) -> Iterator[list[list[str]]]:
            yield from super().analyse(documents[:130], kinds)
            raise KeyboardInterrupt

    many = [Document(str(number), f"word{number}") for number in range(200)]
    with pytest.raises(KeyboardInterrupt):
        terms(cache, Interrupted(), many)
    words = Words()
    terms(cache, words, many)
    assert words.asked == 72


def test_language_title_and_version_matter(cache: TermCache) -> None:
    words = Words()
    terms(cache, words, [Document("1", "a b")])
    terms(cache, words, [Document("1", "a b", language="de")])
    terms(cache, words, [Document("1", body="a b")])
    assert words.asked == 3
    newer = Words("2")
    terms(cache, newer, [Document("1", "a b")])
    assert newer.asked == 1


def test_nothing_is_kept_unless_wanted(cache: TermCache) -> None:
    words = Words()
    for _ in range(2):
        assert terms(cache, words, DOCUMENTS, store=False) == TERMS
    assert words.asked == 6


def test_a_damaged_file_is_no_obstacle(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database at all" * 100)
    cache = TermCache(path)
    assert terms(cache, Words(), DOCUMENTS) == TERMS
    cache.close()
    assert "terms are not cached" in caplog.messages[0]
    assert not path.exists()


def test_without_permission_to_write(path: Path) -> None:
    cache = TermCache(path, read_only=True)
    assert terms(cache, Words(), DOCUMENTS) == TERMS
    assert not path.exists()


def test_an_entry_that_cannot_be_read_is_extracted_again(cache: TermCache, path: Path) -> None:
    words = Words()
    terms(cache, words, DOCUMENTS)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE terms SET terms = x'00'")
    connection.commit()
    connection.close()
    assert terms(cache, words, DOCUMENTS) == TERMS
    assert words.asked == 6


def test_a_cache_that_is_only_read(cache: TermCache, path: Path) -> None:
    words = Words()
    terms(cache, words, DOCUMENTS[:1])
    reader = TermCache(path, read_only=True)
    assert terms(reader, words, DOCUMENTS) == TERMS
    assert words.asked == 3
    # Neither terms nor kinds are kept by a reader.
    terms(reader, Words("2"), DOCUMENTS)
    reader.close()
    assert terms(cache, words, DOCUMENTS) == TERMS
    assert words.asked == 5
    cache.close()
    path.write_bytes(b"no database at all" * 100)
    damaged = TermCache(path, read_only=True)
    assert terms(damaged, words, DOCUMENTS[:1]) == TERMS[:1]
    assert path.exists()
    nothing = TermCache(path.with_name("none.sqlite"), read_only=True)
    assert terms(nothing, words, DOCUMENTS[:1]) == TERMS[:1]
