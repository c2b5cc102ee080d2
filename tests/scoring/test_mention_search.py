from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labelkin import Document, Indexer
from labelkin.scoring import mention_search as module
from labelkin.scoring import name_cache
from labelkin.scoring.mention_search import MentionSearch
from labelkin.scoring.mentions import parts_of
from labelkin.scoring.name_cache import name_tables
from labelkin.scoring.name_table import NameTable
from labelkin.scoring.settings import Settings
from labelkin.store.config import update_config
from labelkin.vocab import Concept, Vocabulary


def columns(search: MentionSearch, *documents: Document) -> list[list[int]]:
    mentions = search.matches(documents).mentions()
    return [part.tolist() for part in np.split(mentions.columns, mentions.starts[1:-1])]


def test_each_document_in_its_language(tmp_path: Path, vocabulary: Vocabulary) -> None:
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        search = MentionSearch(indexer.collection)
        english = Document("e", "Bread and Roggenbrot", language="en")
        german = Document("g", "Bread und Roggenbrot", language="de")
        french = Document("f", "Bread et Brot", language="fr")
        documents = (english, german, german, french)
        assert columns(search, *documents) == [[0], [1], [1], [0]]
        matches = search.matches(documents)
        assert [[*matches.namings(place)] for place in range(4)] == [[0], [1], [1], [0]]
        with pytest.raises(IndexError):
            matches.namings(4)
        assert len(search.matches([]).mentions()) == 0


def test_chunks_give_the_same(
    tmp_path: Path, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ("Rye bread", "nothing", "Oats and bread", "", "Barley")
    documents = [Document(str(n), text, language="en") for n, text in enumerate(texts)]
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        search = MentionSearch(indexer.collection)
        whole = search.matches(documents)
        monkeypatch.setattr(module, "_CHUNK", 2)
        parts = search.matches(documents)
        for name, values in vars(whole.mentions()).items():
            np.testing.assert_array_equal(getattr(parts.mentions(), name), values)
        for place in range(len(documents)):
            assert parts.namings(place) == whole.namings(place)


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


def test_tables_are_cached_on_disk(
    tmp_path: Path, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        first = name_tables(indexer.collection)
        assert list(first) == ["en", "de"]
        with monkeypatch.context() as patched:
            patched.setattr(NameTable, "make", None)
            cached = name_tables(indexer.collection)
        assert list(cached) == ["en", "de"]
        for language, table in first.items():
            for name in ("language", "words", "names", "starts", "columns", "preferred"):
                expected = getattr(table, name)
                np.testing.assert_array_equal(getattr(cached[language], name), expected)
            np.testing.assert_array_equal(cached[language].acronyms, table.acronyms)


def test_tables_follow_the_vocabulary(tmp_path: Path, vocabulary: Vocabulary) -> None:
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        before = len(name_tables(indexer.collection)["en"])
        new = Document("a", "x", language="en", labels=("Sourdough",))
        indexer.add([new], keep_unknown=True)
        assert len(name_tables(indexer.collection)["en"]) == before + 1
        text = Document("q", "sourdough", language="en")
        assert columns(MentionSearch(indexer.collection), text) == [[5]]


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut short"])
def test_a_damaged_cache_is_rebuilt(tmp_path: Path, vocabulary: Vocabulary, content: bytes) -> None:
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        name_tables(indexer.collection)
        path = indexer.collection.path / "cache" / name_cache._NAME
        path.write_bytes(content)
        assert len(name_tables(indexer.collection)["en"]) == 9
        assert path.stat().st_size > 1000


def test_nothing_is_written_to_a_read_only_collection(
    tmp_path: Path, vocabulary: Vocabulary
) -> None:
    Indexer.create(tmp_path / "c", vocabulary).close()
    with Indexer.open(tmp_path / "c", read_only=True) as indexer:
        assert len(name_tables(indexer.collection)["de"]) == 2
    assert not (tmp_path / "c" / "cache" / name_cache._NAME).exists()


def test_states_with_the_same_vocabulary_share_a_search(
    tmp_path: Path, vocabulary: Vocabulary
) -> None:
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        before = indexer.snapshot()
        search = MentionSearch.of(before)
        assert MentionSearch.of(before) is search
        indexer.add([Document("a", "x", labels=("V1",))])
        assert indexer.snapshot() is not before
        assert MentionSearch.of(indexer.snapshot()) is search
        new = Document("b", "x", language="en", labels=("Sourdough",))
        indexer.add([new], keep_unknown=True)
        grown = MentionSearch.of(indexer.snapshot())
        assert grown is not search
        text = Document("q", "sourdough", language="en")
        assert (columns(search, text), columns(grown, text)) == ([[]], [[5]])


def test_the_words_that_name(tmp_path: Path, vocabulary: Vocabulary) -> None:
    text = "Bread. RYE-BREAD and rye  bread; the bread of oats."
    with Indexer.create(tmp_path / "c", vocabulary, language="en") as indexer:
        search = MentionSearch(indexer.collection)
        named = search.matches([Document("q", "Oats and rye", text, language="en")]).namings(0)
    assert [(n.words, n.place, n.count, n.nested) for n in named[0]] == [
        ("Bread", "body", 2, False),
        ("BREAD", "body", 2, True),
    ]
    assert [(n.words, n.count) for n in named[1]] == [("RYE-BREAD", 1), ("rye bread", 1)]
    assert [n.reason for n in named[2]] == [
        "named in the title: 'Oats'",
        "named in the text: 'oats'",
    ]
    assert named[0][1].reason == "within a longer name in the text: 'BREAD'"


@pytest.mark.parametrize(
    ("title", "body", "expected"),
    [
        ("On bread", "", ("On ", "bread", "")),
        ("", "No cake.  Much\nbread, and wine. No tea.", ("", "bread", ", and wine.")),
        ("", "No cake. We like rye-bread! No tea.", ("We like rye-", "bread", "!")),
        ("", "It cost approx. 3 p. a loaf. Bread", ("", "Bread", "")),
        ("", "米。bread。茶", ("", "bread", "。")),
        ("", "x " * 300 + "bread" + " y" * 300, ("x " * 100, "bread", " y" * 100)),
    ],
)
def test_namings_come_with_their_sentence(
    tmp_path: Path, title: str, body: str, expected: tuple[str, str, str]
) -> None:
    vocabulary = Vocabulary([Concept("b", {"en": "Bread"})])
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        document = Document("d", title, body, language="en")
        ((naming, *_),) = MentionSearch(indexer.collection).matches([document]).namings(0).values()
        assert (naming.before, naming.words, naming.after) == expected


def test_the_sentence_is_that_of_the_first_time_outside_longer_names(tmp_path: Path) -> None:
    concepts = [Concept("b", {"en": "Bread"}), Concept("r", {"en": "Rye Bread"})]
    with Indexer.create(tmp_path / "c", Vocabulary(concepts)) as indexer:
        document = Document("d", "", "Rye bread here. Our bread there. Bread again.", language="en")
        namings = MentionSearch(indexer.collection).matches([document]).namings(0)
        outside, inside = namings[0]
        assert (outside.before, outside.words, outside.count) == ("Our ", "bread", 2)
        assert (inside.before, inside.words, inside.nested) == ("Rye ", "bread", True)


def test_spans_are_offsets_into_the_text_that_was_given(tmp_path: Path) -> None:
    concepts = [
        Concept("r", {"en": "Rye bread"}),
        Concept("b", {"en": "Bread"}),
        Concept("c", {"en": "Café"}),
    ]
    document = Document(
        "",
        "ﬁne rye  bread",
        "Bread, cafe\u0301s.\u00a0… A ＲＹＥ bread; bread",
        fields={"toc": "The Café", "notes": "bread"},
        language="en",
    )
    with Indexer.create(tmp_path / "c", Vocabulary(concepts), language="en") as indexer:
        settings = Settings(method="lexical").changed(limit=9)
        (suggestions,) = indexer.suggest([document], settings=settings)
    title, rest = parts_of(document)
    shown = {
        (one.concept.id, naming.place, naming.nested): [rest[a:b] for a, b in naming.spans]
        if naming.place == "body"
        else [title[a:b] for a, b in naming.spans]
        for one in suggestions
        for naming in one.named
    }
    assert shown["r", "title", False] == ["rye  bread"]
    assert shown["b", "title", True] == ["bread"]
    assert shown["r", "body", False] == ["ＲＹＥ bread"]
    assert shown["b", "body", False] == ["Bread", "bread", "bread"]
    assert shown["b", "body", True] == ["bread"]
    cafes = next(one for one in suggestions if one.concept.id == "c").named
    assert {rest[a:b] for one in cafes for a, b in one.spans} == {"Café", "cafe\u0301s"}
    for one in suggestions:
        for naming in one.named:
            assert naming.count == len(naming.spans)
            assert list(naming.spans) == sorted(naming.spans)


def test_spans_in_a_text_that_is_cut(tmp_path: Path, vocabulary: Vocabulary) -> None:
    """What is cut from the body moves the offsets of the fields after it."""
    document = Document(
        "",
        "Oats",
        "bread " + "x" * 2000 + " bread",
        fields={"toc": "ﬁne bread " + "y" * 1500, "notes": "bread"},
        language="en",
    )
    with Indexer.create(tmp_path / "c", vocabulary, language="en") as indexer:
        update_config(tmp_path / "c" / "labelkin.toml", {"documents": {"max_characters": 1000}})
        (suggestions,) = indexer.suggest([document], settings=Settings(method="lexical"))
    _, rest = parts_of(document)
    (spans,) = [
        naming.spans for one in suggestions for naming in one.named if naming.words == "bread"
    ]
    assert spans == ((0, 5), (2017, 2022), (len(rest) - 5, len(rest)))
    assert {rest[begin:end] for begin, end in spans} == {"bread"}
