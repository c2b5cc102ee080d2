"""Which records are the same document: ids are kept, texts are recognised, records counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from labelkin.corpus import Deletion, Document, read_corpus, write_corpus
from labelkin.demo import demo_concepts, demo_documents
from labelkin.evaluate import evaluate, parse_measure
from labelkin.exceptions import InputError
from labelkin.indexer import Indexer
from labelkin.store.config import update_config
from labelkin.store.held_out import choose_held_out
from labelkin.vocab import Vocabulary

Write = Callable[[str, str | bytes], Path]

DOCUMENTS = 300


def as_tsv(documents: list[Document]) -> str:
    return "".join(
        f"{one.title} ¤ {' '.join(one.body.split())}\t{' '.join(f'<{x}>' for x in one.labels)}\n"
        for one in documents
    )


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return list(demo_documents(DOCUMENTS))


@pytest.fixture
def indexer(tmp_path: Path, documents: list[Document]) -> Indexer:
    made = Indexer.create(tmp_path / "c", Vocabulary(demo_concepts()), language="en")
    yield made
    made.close()


def test_a_line_inserted_at_the_top_of_a_tsv_adds_one_document(
    indexer: Indexer, documents: list[Document], write: Write
) -> None:
    lines = as_tsv(documents[:50])
    assert indexer.add(read_corpus(write("a.tsv", lines))).added == 50
    first = as_tsv(documents[50:51])
    report = indexer.add(read_corpus(write("a.tsv", first + lines)))
    assert (report.added, report.unchanged, report.replaced) == (1, 50, 0)


def test_a_renamed_copy_of_a_tsv_holds_the_same_documents(
    indexer: Indexer, documents: list[Document], write: Write
) -> None:
    indexer.add(read_corpus(write("a.tsv", as_tsv(documents[:50]))))
    report = indexer.add(read_corpus(write("b.tsv.gz", as_tsv(documents[:50]))))
    assert (report.added, report.unchanged) == (0, 50)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "Rye\t<u:1>\nOats\t<u:1>\nRye\t<u:2>\nRye\t<u:3>\n"),
        ("a.csv", "title,labels\nRye,u:1\nOats,u:1\nRye,u:2\nRye,u:3\n"),
        (
            "a.jsonl",
            "".join(
                json.dumps({"text": text, "subjects": [{"uri": uri}]}) + "\n"
                for text, uri in (("Rye", "u:1"), ("Oats", "u:1"), ("Rye", "u:2"), ("Rye", "u:3"))
            ),
        ),
    ],
)
def test_repeats_of_a_text_are_numbered(write: Write, name: str, content: str) -> None:
    ids = [document.id for document in read_corpus(write(name, content)).documents()]
    rye, oats = ids[:2]
    assert rye.startswith("text-") and rye != oats
    assert ids == [rye, oats, f"{rye}-2", f"{rye}-3"]


def test_ids_from_texts_ignore_white_space_and_composition(write: Write) -> None:
    tsv = write("a.tsv", "Brötchen ¤ aus  Roggen\t<u:1>\n")
    record = {"text": "Bro\u0308tchen\naus Roggen", "subjects": []}
    other = write("b.jsonl", json.dumps(record) + "\n")
    (first,), (second,) = read_corpus(tsv).documents(), read_corpus(other).documents()
    assert first.id == second.id


def test_evaluation_recognises_texts_under_other_ids(
    indexer: Indexer, documents: list[Document], write: Write, tmp_path: Path
) -> None:
    """Without leave-one-out a document's own labels are its best neighbour's."""
    measures = [parse_measure("MiF")]

    def quality(path: Path) -> float:
        texts = list(read_corpus(path).documents())
        assert all(indexer.known(texts))
        return evaluate(indexer.evaluate(texts), measures)["MiF"]

    write_corpus(documents, tmp_path / "ids.jsonl")
    indexer.add(read_corpus(tmp_path / "ids.jsonl"))
    by_id = quality(tmp_path / "ids.jsonl")
    under_other_ids = [
        {"id": f"other-{place}", "title": one.title, "abstract": one.body, "labels": one.labels}
        for place, one in enumerate(documents)
    ]
    other = write("other.jsonl", "".join(json.dumps(one) + "\n" for one in under_other_ids))
    assert quality(other) == pytest.approx(by_id, abs=1e-12)
    assert quality(write("c.tsv", as_tsv(documents))) == pytest.approx(by_id, abs=1e-12)


@pytest.mark.parametrize("representation", ["stems", "lsa", "stems,lsa"])
def test_copies_of_a_text_are_no_neighbours_in_an_evaluation(
    indexer: Indexer, documents: list[Document], representation: str
) -> None:
    copies = [
        Document(f"copy-{number}", documents[0].title, documents[0].body, labels=("LK0005",))
        for number in range(40)
    ]
    indexer.add([*documents, *copies])
    text = Document("new", documents[0].title, documents[0].body)
    rows = {row for known in indexer.snapshot().known_rows([text]) for row in known}
    assert len(rows) == 41
    queries = indexer.queries([text], 20, representation=representation, without_copies=True)
    near = queries.neighbours(20).rows
    assert near.shape == (1, 20) and (near >= 0).all()
    assert not rows & {*near.ravel().tolist()}
    # Suggestions for a new record are meant to profit from a copy.
    near = indexer.queries([text], 20, representation=representation).neighbours(20).rows
    assert {*near.ravel().tolist()} <= rows


def test_copies_of_held_out_documents_are_held_out_too(
    indexer: Indexer, documents: list[Document]
) -> None:
    copies = [
        Document(f"copy of {one.id}", one.title, one.body, language="en", labels=one.labels)
        for one in documents
    ]
    indexer.add([*documents, *copies])
    held_out = choose_held_out(
        indexer.snapshot(), documents=50, statistics_documents=10_000, seed=0
    )
    (fold,) = held_out.folds
    assert len(fold.rows) == 50
    partners = (fold.rows + DOCUMENTS) % (2 * DOCUMENTS)
    assert {*held_out.unseen.tolist()} == {*fold.rows.tolist(), *partners.tolist()}
    assert not np.intersect1d(fold.copies, fold.rows).size


@pytest.mark.parametrize("batch_size", [1, 2, 3, 100])
def test_every_record_is_accounted_for(
    tmp_path: Path, vocabulary: Vocabulary, write: Write, batch_size: int
) -> None:
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        indexer.add([Document("old", "x", language="en"), Document("same", "y", language="en")])
        config = indexer.collection.path / "labelkin.toml"
        update_config(config, {"documents": {"batch_size": batch_size}})
    records = [
        {"id": "old", "title": "other"},
        {"id": "same", "title": "y"},
        {"id": "a", "title": "1"},
        {"id": "a\nb", "title": "2"},
        {"id": "a", "title": "3"},
        {"id": "b", "title": "4"},
        {"id": "a", "title": "5"},
        {"id": "b", "title": "4"},
        {"title": "no id"},
        {"id": "old", "title": "again"},
    ]
    lines = "".join(json.dumps({**record, "language": "en"}) + "\n" for record in records)
    corpus = read_corpus(write("a.jsonl", lines))
    with Indexer.open(tmp_path / "c") as indexer:
        report = indexer.add(corpus)
        stored = {document.id: document.title for document in indexer.documents()}
    read = corpus.report
    assert stored == {"old": "again", "same": "y", "a": "5", "b": "4"}
    assert (read.read, read.skipped, read.documents) == (10, 2, 8)
    assert (report.added, report.replaced, report.unchanged, report.duplicates) == (2, 1, 1, 4)
    assert read.read == report.documents + read.skipped
    assert sorted(report.duplicate_ids) == ["a", "b", "old"]


def test_a_document_that_is_deleted_in_the_same_batch_is_accounted_for(
    tmp_path: Path, vocabulary: Vocabulary
) -> None:
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        report = indexer.add([Document("a", "x"), Deletion("a"), Document("b", "y")])
        assert (report.added, report.duplicates, report.removed) == (1, 1, 0)
        assert [document.id for document in indexer.documents()] == ["b"]


@pytest.mark.parametrize("identifier", ["a\nb", "a\tb", "a\ud800", "a\x00"])
def test_ids_that_cannot_be_kept_are_refused(
    tmp_path: Path, vocabulary: Vocabulary, identifier: str
) -> None:
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        indexer.add([Document("a b", "x"), Document("a?", "y"), Document("a", "z")])
        with pytest.raises(InputError, match="has a line break, tab or other control character"):
            indexer.add([Document(identifier, "x")])
        assert indexer.remove([identifier]).missing == (identifier,)
        assert indexer.document(identifier) is None
        assert indexer.collection.count() == 3


LABELS = ("V3", "Unheard-of", "V1", "Other", "V2")


@pytest.mark.parametrize("major", [(), ("V1",), ("Unheard-of", "V2"), LABELS])
def test_order_and_major_labels_survive_the_collection(
    tmp_path: Path, vocabulary: Vocabulary, major: tuple[str, ...]
) -> None:
    document = Document("a", "x", language="en", labels=LABELS, major_labels=major)
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        indexer.add([document])
        stored = indexer.document("a")
        assert stored is not None
        assert (stored.labels, stored.major_labels) == (LABELS, major)
        assert indexer.add([document]).unchanged == 1
        write_corpus(indexer.documents(), tmp_path / "out.jsonl")
    (read,) = read_corpus(tmp_path / "out.jsonl").documents()
    assert (read.labels, read.major_labels) == (LABELS, major)


def test_another_order_is_another_record(tmp_path: Path, vocabulary: Vocabulary) -> None:
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        indexer.add([Document("a", "x", language="en", labels=("V1", "V2"))])
        report = indexer.add([Document("a", "x", language="en", labels=("V2", "V1"))])
        assert report.replaced == 1


def test_a_label_that_occurs_twice_keeps_its_first_place(
    tmp_path: Path, vocabulary: Vocabulary
) -> None:
    labels = ("V3", "Bread", "V2", "V1")
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        indexer.add([Document("a", "x", labels=labels, major_labels=("V1",))])
        stored = indexer.document("a")
        assert stored is not None
        assert (stored.labels, stored.major_labels) == (("V3", "V1", "V2"), ("V1",))


def test_a_string_to_remove_is_one_id(tmp_path: Path, vocabulary: Vocabulary) -> None:
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        indexer.add([Document("ab", "x"), Document("a", "y")])
        assert indexer.remove("ab").removed == 1
        assert [document.id for document in indexer.documents()] == ["a"]


def test_a_text_that_hundreds_of_documents_have_identifies_none(
    tmp_path: Path, vocabulary: Vocabulary
) -> None:
    common = "Annual report"
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        indexer.add(Document(f"d{number}", common, language="en") for number in range(600))
        snapshot = indexer.snapshot()
        assert snapshot.known_rows([Document("new", common)]) == [frozenset()]
        assert snapshot.known_rows([Document("d3", common)]) == [frozenset({3})]


def test_documents_with_the_same_text_share_their_rows(
    tmp_path: Path, vocabulary: Vocabulary
) -> None:
    """A set for each of many documents would be as large as the copies are many, squared."""
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        documents = [Document(f"d{number}", "Report", language="en") for number in range(100)]
        indexer.add(documents)
        known = indexer.snapshot().known_rows(documents)
    assert len({id(rows) for rows in known}) == 1


def test_the_language_of_each_text_is_detected_once(tmp_path: Path, vocabulary: Vocabulary) -> None:
    from labelkin.corpus import language

    language._ranked.cache_clear()
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        indexer.add(
            Document(str(number), f"The story of bread, part {number}") for number in range(9)
        )
    assert language._ranked.cache_info().misses == 9
