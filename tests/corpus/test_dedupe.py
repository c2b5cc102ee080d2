from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labelkin.corpus import Document, read_corpus, write_corpus
from labelkin.corpus import dedupe as dedupe_module
from labelkin.corpus.dedupe import Duplicates, find_duplicates
from labelkin.exceptions import InputError

from .test_near_duplicates import jaccard
from .test_split import DOCUMENTS

LONG = "a report on the yield of rye and oats in cold and wet fields of the north"


def found(documents: list[Document], folder: Path, **options: Any) -> Duplicates:
    write_corpus(documents, folder / "c.jsonl")
    return find_duplicates(read_corpus(folder / "c.jsonl", format="jsonl"), **options)


def kept_ids(documents: list[Document], folder: Path, **options: Any) -> list[str]:
    return [document.id for document in found(documents, folder, **options).documents()]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    documents=DOCUMENTS,
    threshold=st.sampled_from([0.4, 0.8, 1.0]),
    keep=st.sampled_from(["first", "newest"]),
)
def test_what_is_kept(
    documents: list[Document], threshold: float, keep: str, tmp_path: Path
) -> None:
    duplicates = found(documents, tmp_path, threshold=threshold, keep=keep)
    kept = list(duplicates.documents())
    assert kept == [document for document in documents if document in kept]
    # No two of those kept are the same, and each that was removed is the same as one kept.
    alike = [
        one.title == other.title or (threshold < 1 and jaccard(one.title, other.title) >= threshold)
        for one in documents
        for other in kept
        if one is not other and one != other
    ]
    pairs = [(one, other) for one in documents for other in kept if one != other]
    same = {
        (one.id, other.id) for (one, other), is_same in zip(pairs, alike, strict=True) if is_same
    }
    ids = {document.id for document in kept}
    assert not [pair for pair in same if pair[0] in ids]
    for document in documents:
        assert document.id in ids or any(pair[0] == document.id for pair in same)
    report = duplicates.report
    assert (report.read, report.kept) == (len(documents), len(kept))
    assert report.removed == report.same_id + report.same_text + report.similar


def test_first_and_newest(tmp_path: Path) -> None:
    documents = [
        Document("1", LONG, revision="2020-03-05"),
        Document("2", LONG + " again", revision="2021-01-01"),
        Document("3", LONG + " twice", revision="2020-11-01"),
        Document("4", "other"),
        Document("4", "another text of the same record"),
    ]
    assert kept_ids(documents, tmp_path) == ["1", "4"]
    newest = found(documents, tmp_path, keep="newest")
    assert [one.title for one in newest.documents()] == [
        LONG + " again",
        "another text of the same record",
    ]
    assert newest.report.to_json() == {
        "read": 5,
        "kept": 2,
        "removed": 3,
        "removed_same_id": 1,
        "removed_same_text": 0,
        "removed_similar": 2,
        "groups": 2,
        "largest_group": 3,
        "groups_across_files": 0,
    }


def test_a_year_among_dates(tmp_path: Path) -> None:
    """The record that `add` would keep, whatever the order; in groups of numbers it is a number."""
    other = "Quite different words about another thing of which nobody has heard anything so far"
    documents = [
        Document("1", LONG, revision="2019-05-01"),
        Document("2", LONG + " again", revision="2023"),
        Document("3", other, revision="10000"),
        Document("4", other + " again", revision="9999"),
    ]
    for records in (documents, documents[::-1]):
        newest = found(records, tmp_path, keep="newest")
        assert {one.revision for one in newest.documents()} == {"2023", "10000"}


def test_a_chain_is_not_one_document(tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(30)]
    texts = [" ".join(words[start : start + 20]) for start in (0, 2, 4)]
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    # Each is like the next one; the first and the last differ by more.
    assert kept_ids(documents, tmp_path, threshold=0.8) == ["0", "2"]


def test_labels_are_merged_on_request(tmp_path: Path) -> None:
    documents = [
        Document("1", "same", labels=("b", "a"), major_labels=("a",), label_names={"a": "A"}),
        Document(
            "2", "Same", labels=("c", "a"), major_labels=("c",), label_names={"c": "C", "a": "x"}
        ),
        Document("3", "SAME", labels=("d",)),
        Document("4", "else", labels=("e",)),
    ]
    duplicates = found(documents, tmp_path)
    assert list(duplicates.documents()) == [documents[0], documents[3]]
    merged, _ = duplicates.documents(merge_labels=True)
    assert merged.labels == ("b", "a", "c", "d")
    assert merged.major_labels == ("a", "c")
    assert merged.label_names == {"a": "A", "c": "C"}


def test_members_of_groups_and_their_files(tmp_path: Path) -> None:
    write_corpus([Document("1", LONG), Document("2", "x y")], tmp_path / "train.jsonl")
    write_corpus(
        [Document("3", "X, Y"), Document("4", LONG + " too"), Document("5", "z")],
        tmp_path / "test.jsonl",
    )
    duplicates = find_duplicates(read_corpus(tmp_path / "train.jsonl", tmp_path / "test.jsonl"))
    assert duplicates.report.across_files == 2
    assert [
        (one.group, one.id, one.reason, Path(one.file_name).name) for one in duplicates.members()
    ] == [
        (1, "1", "", "train.jsonl"),
        (2, "2", "", "train.jsonl"),
        (2, "3", "same text", "test.jsonl"),
        (1, "4", "similar", "test.jsonl"),
    ]
    similar = [one.similarity for one in duplicates.members() if one.id == "4"]
    assert similar == [pytest.approx(jaccard(LONG, LONG + " too"))]


def test_standard_input_has_no_second_pass() -> None:
    with pytest.raises(InputError, match="standard input: can be read only once"):
        find_duplicates(read_corpus("-"))


def test_unknown_preference(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="known: first, newest"):
        found([Document("1", "x")], tmp_path, keep="oldest")


def test_a_revision_is_newer_than_a_year_and_a_date_than_a_number() -> None:
    documents = [
        Document("5", LONG),
        Document("1", LONG, metadata={"year": "Vol. 3, 1998"}),
        Document("3", LONG, revision="2.10"),
        Document("2", LONG, revision="7"),
        Document("6", LONG, revision="2022"),
        Document("4", LONG, revision="2023-05"),
    ]
    dates = [dedupe_module._Date.of(one) for one in documents]
    assert sorted(dates, key=lambda one: one.age(among_dates=True)) == dates
