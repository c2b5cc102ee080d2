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


def revised(revision: str | None, label: str = "V2", identifier: str = "r") -> Document:
    return Document(identifier, "Rye", language="en", labels=(label,), revision=revision)


def revision_of(indexer: Indexer, identifier: str = "r") -> str | None:
    document = indexer.document(identifier)
    assert document is not None
    return document.revision


REVISED_AT = "2024-01-01T10:00:00"


@pytest.mark.parametrize("batch_size", [1000, 1])
@pytest.mark.parametrize(
    ("items", "labels", "revision", "stale"),
    [
        ([revised("2024-01-02")], ("V2",), "2024-01-02", 0),
        ([revised("2024-01-01")], ("V2",), "2024-01-01", 0),
        ([revised("2023-12-31")], ("V1",), "2024-01-01", 1),
        ([revised(None)], ("V2",), "2024-01-01", 0),
        ([revised("7")], ("V2",), "2024-01-01", 0),
        ([revised("2024")], ("V2",), "2024-01-01", 0),
        ([revised("2024-01"), revised("2023-12-31", "V3")], ("V2",), "2024-01-01", 1),
        ([revised("2.3"), revised("2023-12-31", "V3")], ("V2",), "2024-01-01", 1),
        ([revised("2024-01-01T10:00"), revised("2024-01-01", "V3")], ("V3",), REVISED_AT, 0),
        ([Correction("r", ("V3",), revision="2024")], ("V3",), "2024-01-01", 0),
        ([Correction("r", ("V3",), revision="2024-01-02")], ("V3",), "2024-01-02", 0),
        ([Correction("r", ("V3",), revision="2023-12-31")], ("V1",), "2024-01-01", 1),
        ([Correction("r", ("V3",))], ("V3",), "2024-01-01", 0),
        ([revised("2024-01-03"), revised("2024-01-02", "V3")], ("V2",), "2024-01-03", 1),
        ([revised("2023-01-01"), revised("2024-01-02", "V3")], ("V3",), "2024-01-02", 1),
        ([revised("2024-01-03"), revised(None, "V3")], ("V3",), "2024-01-03", 0),
        (
            [revised("2024-01-03"), Correction("r", ("V3",), revision="2024-01-02")],
            ("V2",),
            "2024-01-03",
            1,
        ),
        (
            [Correction("r", ("V3",), revision="2024-01-03"), revised("2024-01-02")],
            ("V3",),
            "2024-01-03",
            1,
        ),
        ([Deletion("r"), revised("2024-01-02")], ("V2",), "2024-01-02", 0),
        ([Deletion("r"), revised("2024-01-01"), revised("2024-02")], ("V2",), "2024-02", 1),
    ],
)
def test_an_older_record_is_left_out(
    indexer: Indexer,
    batch_size: int,
    items: list[Document | Correction | Deletion],
    labels: tuple[str, ...],
    revision: str,
    stale: int,
) -> None:
    update_config(
        indexer.collection.path / "labelkin.toml", {"documents": {"batch_size": batch_size}}
    )
    indexer.add([revised("2024-01-01", "V1")])
    report = indexer.add(items)
    assert (labels_of(indexer, "r"), revision_of(indexer)) == (labels, revision)
    assert report.stale == len(report.left_out) == stale
    # The next one is compared with what is stored now.
    assert indexer.add([revised("2022-01-01")]).stale == 1
    assert indexer.check().is_sound


@pytest.mark.parametrize("batch_size", [1, 100])
def test_a_deleted_record_does_not_come_back_unless_it_is_newer(
    indexer: Indexer, batch_size: int
) -> None:
    update_config(
        indexer.collection.path / "labelkin.toml", {"documents": {"batch_size": batch_size}}
    )
    base = [revised("2023-05-01"), Document("plain", "Without a revision")]
    withdrawn = [Deletion("r"), Deletion("plain"), Deletion("unknown")]
    report = indexer.add([*base, *withdrawn, *base])
    # Of what has no revision nobody can tell.
    assert (indexer.document("r"), report.stale) == (None, 1)
    assert indexer.document("plain") is not None
    (left_out,) = report.left_out
    assert left_out.problem == (
        "revision 2023-05-01, no newer than 2023-05-01, which its source has deleted"
    )
    before = indexer.collection.generation()
    for older in ("2023-05-01", "2022", "2023-05"):
        assert indexer.add([revised(older)]).stale == 1
    assert indexer.collection.generation() == before
    assert indexer.correct([Correction("r", ("V3",), revision="2024")]).missing == 1
    assert indexer.add([revised("2023-05-02")]).added == 1
    # It is there again: what is no newer is unchanged, what is older is left out as ever.
    assert indexer.add([revised("2023-05-02")]).unchanged == 1
    indexer.add([Deletion("r")])
    assert indexer.add([revised("2023-05-02")]).stale == 1
    assert indexer.add([revised("2023-05-01")], take_older=True).added == 1
    # Who removes a document may add it again.
    indexer.remove(["r"])
    assert indexer.add([revised("2023-05-01")]).added == 1
    assert indexer.check().is_sound


def test_a_report_of_an_older_record_has_its_place_and_both_revisions(indexer: Indexer) -> None:
    indexer.add([revised("3")])
    before = indexer.collection.generation()
    item = Correction("r", ("V1",), revision="2.9", where="c.jsonl, line 7")
    missing = Correction("nobody", ("V1",), where="c.jsonl, line 8")
    report = indexer.correct([item, missing])
    assert [(one.where, one.id, one.problem) for one in report.left_out] == [
        ("c.jsonl, line 7", "r", "revision 2.9, older than 3 in the collection"),
        ("c.jsonl, line 8", "nobody", "not in the collection"),
    ]
    assert indexer.collection.generation() == before


def test_an_older_record_can_be_taken_all_the_same(indexer: Indexer) -> None:
    indexer.add([revised("3")])
    report = indexer.correct([Correction("r", ("V1",), revision="2")], take_older=True)
    assert (report.corrected, report.stale) == (1, 0)
    assert (labels_of(indexer, "r"), revision_of(indexer)) == (("V1",), "2")
    assert indexer.add([revised("1", "V3")], take_older=True).replaced == 1
    assert revision_of(indexer) == "1"
    indexer.add([revised("2020-01-12")], take_older=True)
    assert revision_of(indexer) == "2020-01-12"


def test_an_unchanged_record_with_a_newer_revision_keeps_its_row(indexer: Indexer) -> None:
    indexer.add([revised("1")])
    row = indexer.collection.rows_of(["r"])
    before = indexer.snapshot()
    assert counts(indexer.add([revised("4")])) == {"unchanged": 1}
    assert indexer.collection.rows_of(["r"]) == row
    # Snapshots follow, and those taken before stay as they are.
    document, old = indexer.snapshot().document("r"), before.document("r")
    assert document is not None
    assert old is not None
    assert (old.revision, document.revision) == ("1", "4")
    assert counts(indexer.correct([Correction("r", ("V2",), revision="5")])) == {"unchanged": 1}
    assert indexer.add([revised("4", "V3")]).stale == 1
    generation = indexer.collection.generation()
    assert counts(indexer.add([revised("5"), revised(None)])) == {"unchanged": 1, "duplicates": 1}
    assert indexer.collection.generation() == generation
    assert indexer.build() > 0
    assert indexer.check().is_sound


def test_a_correction_to_no_headings_is_counted(indexer: Indexer) -> None:
    report = indexer.correct([Correction("d1"), Correction("d3")])
    assert counts(report) == {"corrected": 1, "unchanged": 1}
    assert (report.cleared, report.cleared_ids) == (1, ["d1"])
    assert labels_of(indexer, "d1") == ()


@pytest.mark.parametrize("batch_size", [1000, 1])
def test_a_title_alone_replaces_no_body(indexer: Indexer, batch_size: int) -> None:
    update_config(
        indexer.collection.path / "labelkin.toml", {"documents": {"batch_size": batch_size}}
    )
    whole = Document("x", "Rye", "A text", language="en", labels=("V1",), revision="2")
    title = Document("x", "Other", labels=("V2",), lacks=("body",))
    nothing = Document("x", "Other", lacks=("body", "labels"))
    report = indexer.add([title, whole, title, nothing])
    assert (report.texts_kept, report.unlabelled) == (1, 1)
    assert report.left_out[0].id == "x"
    document = indexer.document("x")
    assert document is not None
    assert (document.title, document.body, document.labels) == ("Rye", "A text", ("V2",))
    assert document.revision == "2"
    # Without the body it is as any other document.
    report = indexer.add([Deletion("x"), title, title])
    assert (report.texts_kept, labels_of(indexer, "x")) == (0, ("V2",))
    assert indexer.check().is_sound


def test_many_older_records_are_counted_and_some_are_listed(indexer: Indexer) -> None:
    many = 2500
    indexer.add(revised("2", identifier=str(number)) for number in range(many))
    report = indexer.add(revised("1", "V3", str(number)) for number in range(many))
    assert (report.stale, report.documents, len(report.left_out)) == (many, many, 1000)


def test_a_revision_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="revision is 'draft'; give a date such as '2024-03-05'"):
        Document("x", "text", revision="draft")
    with pytest.raises(InputError, match="correction 'x': revision is 'draft'"):
        Correction("x", revision="draft")
    assert Document("x", "text", revision="v2").revision == "2"
