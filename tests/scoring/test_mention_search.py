from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labelkin import Document, Indexer
from labelkin.scoring import name_cache
from labelkin.scoring.mention_search import MentionSearch
from labelkin.scoring.name_cache import name_tables
from labelkin.scoring.name_table import NameTable
from labelkin.vocab import Concept, Vocabulary


def as_if_anew(indexer: Indexer) -> dict[str, NameTable]:
    """The tables as a new process has them, which remembers none."""
    name_cache._latest.clear()
    return name_tables(indexer.collection)


def columns(search: MentionSearch, *documents: Document) -> list[list[int]]:
    mentions = search.find(documents)
    return [part.tolist() for part in np.split(mentions.columns, mentions.starts[1:-1])]


def test_each_document_in_its_language(tmp_path: Path, vocabulary: Vocabulary) -> None:
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        search = MentionSearch(indexer.collection)
        english = Document("e", "Bread and Roggenbrot", language="en")
        german = Document("g", "Bread und Roggenbrot", language="de")
        french = Document("f", "Bread et Brot", language="fr")
        assert columns(search, english, german, german, french) == [[0], [1], [1], [0]]
        assert [*search.namings(german)] == [1]
        assert len(search.find([])) == 0


def test_names_in_a_stray_language_are_not_lost(tmp_path: Path) -> None:
    concepts = [Concept(f"c{n}", {"en": f"Name {n:03}"}) for n in range(50)]
    stray = Concept("s", {"la": "Secale cereale"})
    with Indexer.create(tmp_path / "c", Vocabulary([*concepts, stray])) as indexer:
        assert list(name_tables(indexer.collection)) == ["en"]
        search = MentionSearch(indexer.collection)
        texts = ("Secale cereale and name 007", "Über Secale cereale")
        documents = [
            Document("q", text, language=tag) for text, tag in zip(texts, ("la", "de"), strict=True)
        ]
        assert columns(search, *documents) == [[7, 50], [50]]


def test_a_vocabulary_without_concepts(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c") as indexer:
        assert columns(MentionSearch(indexer.collection), Document("q", "Bread")) == [[]]


def test_tables_are_kept(tmp_path: Path, vocabulary: Vocabulary, monkeypatch) -> None:
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        first = name_tables(indexer.collection)
        assert name_tables(indexer.collection) is first
        assert list(first) == ["en", "de"]
        with monkeypatch.context() as patched:
            patched.setattr(NameTable, "make", None)
            kept = as_if_anew(indexer)
        for language, table in first.items():
            for name, value in vars(table).items():
                np.testing.assert_array_equal(getattr(kept[language], name), value)


def test_tables_follow_the_vocabulary(tmp_path: Path, vocabulary: Vocabulary) -> None:
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        before = len(name_tables(indexer.collection)["en"])
        indexer.add([Document("a", "x", labels=("Sourdough",))], keep_unknown=True)
        names = name_tables(indexer.collection)
        assert sum(map(len, names.values())) > before + 2
        found = columns(MentionSearch(indexer.collection), Document("q", "sourdough"))
        assert found == [[5]]


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut short"])
def test_a_damaged_file_is_made_anew(
    tmp_path: Path, vocabulary: Vocabulary, content: bytes
) -> None:
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        name_tables(indexer.collection)
        path = indexer.collection.path / "cache" / name_cache._NAME
        path.write_bytes(content)
        assert len(as_if_anew(indexer)["en"]) == 9
        assert path.stat().st_size > 1000


def test_nothing_is_written_where_only_reading_is_allowed(
    tmp_path: Path, vocabulary: Vocabulary
) -> None:
    Indexer.create(tmp_path / "c", vocabulary).close()
    with Indexer.open(tmp_path / "c", read_only=True) as indexer:
        assert len(as_if_anew(indexer)["de"]) == 2
    assert not (tmp_path / "c" / "cache" / name_cache._NAME).exists()


def test_the_latest_vocabularies_are_remembered(tmp_path: Path, vocabulary: Vocabulary) -> None:
    for name in "abc":
        with Indexer.create(tmp_path / name, vocabulary) as indexer:
            name_tables(indexer.collection)
    assert len(name_cache._latest) == name_cache._REMEMBERED


def test_the_words_that_name(tmp_path: Path, vocabulary: Vocabulary) -> None:
    text = "Bread. RYE-BREAD and rye  bread; the bread of oats."
    with Indexer.create(tmp_path / "c", vocabulary, language="en") as indexer:
        named = MentionSearch(indexer.collection).namings(Document("q", "Oats and rye", text))
    assert [(n.words, n.place, n.count, n.nested) for n in named[0]] == [
        ("Bread", "body", 2, False),
        ("Bread", "body", 2, True),
    ]
    assert [(n.words, n.count) for n in named[1]] == [("RYE-BREAD", 1), ("rye bread", 1)]
    assert [n.reason for n in named[2]] == [
        "named in the title: 'Oats'",
        "named in the text: 'Oats'",
    ]
    assert named[0][1].reason == "within a longer name in the text: 'Bread'"
