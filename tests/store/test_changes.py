"""Corrections of stored documents, alone and among documents and deletions."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from labelkin import Correction
from labelkin.corpus import Deletion, Document
from labelkin.exceptions import InputError
from labelkin.indexer import Indexer
from labelkin.store.config import update_config
from labelkin.store.reports import AddReport
from labelkin.vocab import Vocabulary


@pytest.fixture
def indexer(tmp_path: Path, vocabulary: Vocabulary, documents: list[Document]) -> Iterator[Indexer]:
    with Indexer.create(tmp_path / "c", vocabulary) as made:
        made.add(documents)
        yield made


def labels_of(indexer: Indexer, identifier: str) -> tuple[str, ...]:
    document = indexer.document(identifier)
    assert document is not None
    return document.labels


def counts(report: AddReport) -> dict[str, int]:
    """The counts that are not 0."""
    names = ("added", "replaced", "unchanged", "duplicates", "corrected", "missing", "removed")
    return {name: getattr(report, name) for name in names if getattr(report, name)}


def test_a_correction_changes_the_headings_and_nothing_else(indexer: Indexer) -> None:
    document = Document(
        "x",
        "Brot",
        "Ein Text \ud800 mit Lücke",
        fields={"toc": "a\nb"},
        language="de",
        metadata={"year": 1999, "mesh": [{"major": True}]},
        labels=("V1",),
    )
    indexer.add([document])
    before = indexer.document("x")
    report = indexer.correct(
        [Correction("x", ("V3", "Nowhere", "V2"), {"Nowhere": "a name"}, major_labels=("V2",))]
    )
    after = indexer.document("x")
    assert counts(report) == {"corrected": 1}
    assert report.unresolved == {"a name (Nowhere)": 1}
    assert report.labels_resolved == 2
    assert before is not None
    assert after is not None
    for name in ("title", "body", "fields", "language", "metadata"):
        assert getattr(after, name) == getattr(before, name)
    assert after.labels == ("V3", "Nowhere", "V2")
    assert after.label_names["Nowhere"] == "a name"
    assert after.major_labels == ("V2",)
    assert indexer.check().is_sound


def test_the_index_has_the_new_headings_at_once(indexer: Indexer) -> None:
    query = [Document("q", "Baking with rye")]
    assert [one.id for one in indexer.neighbours(query)[0][0].headings] == ["V1", "V2"]
    indexer.correct([Correction("d1", ("V3",))])
    ((near, *others),) = indexer.neighbours(query)
    assert (near.id, [one.id for one in near.headings]) == ("d1", ["V3"])
    assert "d1" not in [one.id for one in others]
    assert indexer.info().documents == 3


def test_an_unchanged_correction_writes_nothing(indexer: Indexer) -> None:
    before = indexer.collection.generation()
    report = indexer.correct([Correction("d1", ("V1", "Bread, Rye"))])
    assert counts(report) == {"unchanged": 1}
    assert indexer.collection.generation() == before


def test_a_correction_equals_storing_the_document_again(indexer: Indexer) -> None:
    indexer.correct([Correction("d1", ("V3",), major_labels=("V3",))])
    stored = indexer.document("d1")
    assert stored is not None
    assert counts(indexer.add([stored])) == {"unchanged": 1}


def test_corrections_of_documents_that_are_not_stored(indexer: Indexer) -> None:
    before = indexer.collection.generation()
    report = indexer.correct(
        [Correction(f"nobody-{number}", ("V1",)) for number in range(30)]
        + [Correction("", ("New",)), Correction("a\nb", ("New",))],
        keep_unknown=True,
    )
    assert counts(report) == {"missing": 32}
    assert len(report.missing_ids) == len({*report.missing_ids}) == 10
    assert "nobody-0" in report.missing_ids
    assert report.new_concepts == 0
    assert indexer.collection.generation() == before


NEW = Document("n", "New", language="en", labels=("V1",))


@pytest.mark.parametrize("batch_size", [1000, 1])
@pytest.mark.parametrize(
    ("items", "labels", "expected"),
    [
        ([NEW, Correction("n", ("V3",))], ("V3",), {"added": 1, "corrected": 1}),
        ([NEW, Correction("n", ("V3",)), Correction("n", ("V2",))], ("V2",), None),
        ([Correction("n", ("V3",)), NEW], ("V1",), {"added": 1, "missing": 1}),
        ([NEW, Deletion("n"), Correction("n", ("V3",))], None, None),
        ([NEW, Deletion("n"), Correction("n", ("V3",)), NEW], ("V1",), None),
        ([Correction("d1", ("V3",)), Deletion("d1")], None, None),
        ([Deletion("d1"), Correction("d1", ("V3",))], None, {"removed": 1, "missing": 1}),
        ([Correction("d1", ("V3",)), Correction("d1", ("V2",))], ("V2",), {"corrected": 2}),
        ([Correction("d1", ("V3",)), Document("d1", "Other", labels=("V2",))], ("V2",), None),
        ([Document("d1", "Other", labels=("V2",)), Correction("d1", ("V3",))], ("V3",), None),
    ],
)
def test_order_with_documents_and_deletions(
    indexer: Indexer,
    batch_size: int,
    items: list[Document | Correction | Deletion],
    labels: tuple[str, ...] | None,
    expected: dict[str, int] | None,
) -> None:
    """The order counts, in one transaction as in several."""
    update_config(
        indexer.collection.path / "labelkin.toml", {"documents": {"batch_size": batch_size}}
    )
    report = indexer.add(items)
    identifier = items[0].id
    assert indexer.config.documents.batch_size == batch_size
    if labels is None:
        assert indexer.document(identifier) is None
    else:
        assert labels_of(indexer, identifier) == labels
    if expected is not None:
        assert counts(report) == expected
    # No item is counted twice.
    assert sum(counts(report).values()) <= len(items)
    titles = [item.title for item in items if isinstance(item, Document)]
    if labels is not None and titles:
        document = indexer.document(identifier)
        assert document is not None
        assert document.title == titles[-1]


def test_a_superseded_correction_is_a_duplicate(indexer: Indexer) -> None:
    report = indexer.add([Correction("d1", ("V3",)), Document("d1", "Other", labels=("V2",))])
    assert counts(report) == {"replaced": 1, "duplicates": 1}
    assert report.duplicate_ids == ["d1"]


def test_a_corrected_document_is_the_newest(indexer: Indexer) -> None:
    indexer.add([Correction("d1", ("V3",)), NEW, Correction("d2", ("V1",))])
    assert [one.id for one in indexer.documents()] == ["d3", "d1", "n", "d2"]


def test_unknown_labels_can_become_concepts(indexer: Indexer) -> None:
    width = len(indexer.vocabulary)
    report = indexer.correct([Correction("d1", ("Sourdough",))], keep_unknown=True)
    assert (report.new_concepts, len(indexer.vocabulary)) == (1, width + 1)
    assert labels_of(indexer, "d1") == ("Sourdough",)


def test_labels_resolve_in_the_language_of_the_stored_document(indexer: Indexer) -> None:
    indexer.add([Document("x", "Brot", language="de", labels=("V1",))])
    indexer.correct([Correction("x", ("Bread",))])
    document = indexer.document("x")
    assert document is not None
    assert (document.language, document.labels) == ("de", ("V1",))


def test_no_text_is_lost_beside_other_writers(tmp_path: Path, vocabulary: Vocabulary) -> None:
    """A correction between reading and writing of another would bring an old text back."""
    with Indexer.create(tmp_path / "c", vocabulary, language="en") as indexer:
        indexer.add([Document("x", "Text 0", labels=("V1",))])
        texts = 40

        def correct() -> None:
            for number in range(texts):
                indexer.correct([Correction("x", ("V2",) if number % 2 else ("V3",))])

        thread = threading.Thread(target=correct)
        thread.start()
        for number in range(1, texts):
            indexer.add([Document("x", f"Text {number}", labels=("V1",))])
            document = indexer.document("x")
            assert document is not None
            assert document.title == f"Text {number}"
        thread.join()
        document = indexer.document("x")
        assert document is not None
        assert document.title == f"Text {texts - 1}"


def test_wrong_values_are_refused(indexer: Indexer) -> None:
    with pytest.raises(InputError, match="correction 'x': labels is 'V1'; give a tuple of strings"):
        Correction("x", "V1")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="not a string"):
        Correction(7)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="is not a Correction"):
        indexer.correct([Document("d1", "text")])  # type: ignore[list-item]
