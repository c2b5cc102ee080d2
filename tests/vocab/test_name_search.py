from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelkin.demo import demo_concepts
from labelkin.vocab import Concept, Vocabulary
from labelkin.vocab.name_search import NameSearch, without_accents
from labelkin.vocab.names import name_key

LETTERS = st.sampled_from(
    ["a", "b", "A", " ", "é", "e", "\u0301", ",", "ß", "ﬁ", "中", "\ud800", "\n"]
)
NAMES = st.text(LETTERS, min_size=1, max_size=7)
CONCEPTS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(["en", "de", "fi"]), NAMES, max_size=2),
        st.dictionaries(st.sampled_from(["en", "de"]), st.lists(NAMES, max_size=3), max_size=2),
    ),
    max_size=12,
)


def all_names(concept: Concept) -> Iterator[str]:
    yield from concept.names.values()
    for names in concept.synonyms.values():
        yield from names


def compared_one_by_one(vocabulary: Vocabulary, query: str) -> list[tuple[Concept, str]]:
    """The definition: every name compared with the query, exact, prefix, word, other."""
    wanted = name_key(query)
    hits = []
    for column, concept in enumerate(vocabulary):
        best = None
        for name in all_names(concept):
            key = name_key(name)
            if wanted not in key:
                continue
            rank = 0 if key == wanted else 1 if key.startswith(wanted) else 3
            rank = 2 if rank == 3 and f" {wanted}" in key else rank
            if best is None or (rank, len(name)) < best[:2]:
                best = (rank, len(name), column, name)
        if best is not None:
            hits.append(best)
    return [(vocabulary[column], name) for _, _, column, name in sorted(hits)]


def made(content: list[tuple[dict[str, str], dict[str, list[str]]]]) -> Vocabulary:
    return Vocabulary(
        Concept(f"#{number}", names, {tag: tuple(more) for tag, more in synonyms.items()})
        for number, (names, synonyms) in enumerate(content)
    )


@given(CONCEPTS, NAMES)
def test_the_same_as_comparing_every_name(
    content: list[tuple[dict[str, str], dict[str, list[str]]]], query: str
) -> None:
    vocabulary = made(content)
    if not name_key(query):
        return
    expected = compared_one_by_one(vocabulary, query)
    hits = vocabulary.search(query, limit=99)
    assert hits[: len(expected)] == expected
    # What follows matches without accents only.
    bare = without_accents(name_key(query))
    found = {concept.id for concept, _ in expected}
    others = [
        concept
        for concept in vocabulary
        if concept.id not in found
        and any(bare and bare in without_accents(name_key(name)) for name in all_names(concept))
    ]
    assert {concept.id for concept, _ in hits[len(expected) :]} == {one.id for one in others}
    assert vocabulary.search_page(query, 0, 2).total == len(hits)


def test_all_beginnings_of_the_names_of_a_vocabulary() -> None:
    vocabulary = Vocabulary(demo_concepts(0))
    names = [name for concept in vocabulary for name in all_names(concept)]
    queries = {name[begin : begin + size] for name in names[::7] for begin, size in TYPED}
    for query in sorted(queries):
        if query.strip():
            expected = compared_one_by_one(vocabulary, query)
            assert vocabulary.search(query, limit=len(expected)) == expected, query


TYPED = [(0, 1), (0, 2), (0, 3), (0, 6), (0, 99), (2, 2), (4, 4), (1, 99)]


def test_pages_follow_one_another() -> None:
    vocabulary = Vocabulary(demo_concepts(0))
    whole = vocabulary.search_page("a", 0, 10_000)
    assert whole.total == len(whole.hits) > 50
    pages = [vocabulary.search_page("a", offset, 7) for offset in range(0, whole.total + 20, 7)]
    assert [hit for page in pages for hit in page.hits] == whole.hits
    assert {page.total for page in pages} == {whole.total}
    assert vocabulary.search_page("a", 5, 0).hits == []
    assert vocabulary.search_page("a", -3, 4).hits == whole.hits[:4]
    assert vocabulary.search("a", 3, 2) == [(hit.concept, hit.name) for hit in whole.hits[2:5]]


CODED = Vocabulary(
    [
        Concept("http://v/p12", {"en": "Wheat", "fi": "vehnä"}, notations=("C10.5",)),
        Concept("http://v/p13", {"en": "Rye"}, {"sv": ("p12 råg",)}, ("C10.6", "p12")),
        Concept("D0042", {"en": "C10.5 and C10.6"}),
        Concept("nameless", {}),
    ]
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("D0042", [("D0042", "D0042", None)]),
        (" d0042 ", [("D0042", "D0042", None)]),
        (
            "C10.5",
            [("http://v/p12", "C10.5", None), ("D0042", "C10.5 and C10.6", "en")],
        ),
        (
            "p12",
            [
                ("http://v/p12", "p12", None),
                ("http://v/p13", "p12", None),
            ],
        ),
        (
            "http://v/p13",
            [("http://v/p13", "http://v/p13", None)],
        ),
        ("nameless", [("nameless", "nameless", None)]),
        ("VEHN", [("http://v/p12", "vehnä", "fi")]),
        ("vehna", [("http://v/p12", "vehnä", "fi")]),
        ("rag", [("http://v/p13", "p12 råg", "sv")]),
        ("ryé", [("http://v/p13", "Rye", "en")]),
        ("\u0301", []),
    ],
)
def test_codes_come_first_and_accents_matter_least(
    query: str, expected: list[tuple[str, str, str | None]]
) -> None:
    page = CODED.search_page(query)
    assert [(hit.concept.id, hit.name, hit.language) for hit in page.hits] == expected
    assert page.total == len(expected)
    both = [CODED.search_page(query, offset, 1).hits for offset in range(len(expected) + 1)]
    assert [hit for hits in both for hit in hits] == page.hits


def test_accents_count_where_there_are_some() -> None:
    vocabulary = Vocabulary([Concept("1", {"fr": "pâte"}), Concept("2", {"fr": "pate"})])
    assert [concept.id for concept, _ in vocabulary.search("pate")] == ["2", "1"]
    assert [concept.id for concept, _ in vocabulary.search("pâte")] == ["1", "2"]


@pytest.mark.parametrize("query", ["", "  \n"])
def test_an_empty_query_gives_all_concepts_in_their_order(query: str) -> None:
    page = CODED.search_page(query, 0, 3)
    assert page.total == 4
    assert [(hit.name, hit.language) for hit in page.hits] == [
        ("Wheat", "en"),
        ("Rye", "en"),
        ("C10.5 and C10.6", "en"),
    ]
    (last,) = CODED.search_page(query, 3, 9).hits
    assert (last.name, last.language) == ("nameless", None)


def test_an_empty_vocabulary() -> None:
    assert Vocabulary().search_page("a") == Vocabulary().search_page("") == NameSearch([]).page("x")
    assert Vocabulary().search_page("a").total == 0


def test_a_new_concept_is_found() -> None:
    vocabulary = Vocabulary([Concept("1", {"en": "Rye"})])
    assert vocabulary.search("oat") == []
    vocabulary.add(Concept("2", {"en": "Oats"}))
    assert [concept.id for concept, _ in vocabulary.search("oat")] == ["2"]
    larger = vocabulary.extended([Concept("3", {"en": "Oatmeal"})])
    assert [concept.id for concept, _ in larger.search("oat")] == ["2", "3"]
    assert vocabulary.search_page("oat").total == 1


def test_threads_share_one_search() -> None:
    vocabulary = Vocabulary(demo_concepts(0))
    expected = compared_one_by_one(Vocabulary(demo_concepts(0)), "wheat")
    results: list[object] = []

    def ask() -> None:
        results.append([(one.id, name) for one, name in vocabulary.search("wheat", 10_000)])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[(one.id, name) for one, name in expected]] * 8
