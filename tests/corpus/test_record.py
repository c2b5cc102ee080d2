from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelkin.corpus.record import (
    RecordError,
    correction_from_record,
    document_from_record,
    has_text,
    lift_title,
)

JSON_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
KNOWN_KEYS = st.sampled_from(
    "id pmid title abstract text labels subjects language fields metadata label_names x "
    "revision".split()
)


@given(st.dictionaries(KNOWN_KEYS, JSON_VALUE) | JSON_VALUE)
def test_any_json_gives_a_document_or_a_reason(record: Any) -> None:
    try:
        document = document_from_record(record)
    except RecordError as error:
        assert str(error)
        return
    assert document.id == document.id.strip() != ""
    assert document.text
    assert len(set(document.labels)) == len(document.labels)
    assert set(document.label_names) <= set(document.labels)
    json.dumps(document.metadata)


def test_names_of_other_sources() -> None:
    document = document_from_record(
        {
            "pmid": 12,
            "title": "T",
            "abstractText": "A",
            "meshMajor": ["Humans", "Humans", " Mice "],
            "journal": "J",
            "year": "",
        }
    )
    assert (document.id, document.body) == ("12", "A")
    assert document.labels == ("Humans", "Mice")
    assert document.metadata == {"journal": "J"}


def test_further_texts_become_fields() -> None:
    document = document_from_record(
        {"id": "1", "abstract": "short", "text": "long", "fields": {"toc": "chapters", "x": ""}}
    )
    assert document.body == "short"
    assert document.fields == {"text": "long", "toc": "chapters"}
    assert document.text == "short\nlong\nchapters"


def test_labels_as_objects_and_bracketed_uris() -> None:
    document = document_from_record(
        {
            "id": "1",
            "text": "x",
            "subjects": [{"uri": "<http://e.org/1>", "label": "One"}, {"label": "Two"}, "<u:3>"],
        }
    )
    assert document.labels == ("http://e.org/1", "Two", "u:3")
    assert document.label_names == {"http://e.org/1": "One"}


def test_labels_in_one_cell() -> None:
    document = document_from_record({"id": "1", "text": "x", "labels": "Rye, wild | Oats||"})
    assert document.labels == ("Rye, wild", "Oats")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"title": "x"}, "no id"),
        ({"id": " ", "title": "x"}, "no id"),
        ({"id": "a\nb", "title": "x"}, "the id 'a.nb' has a line break, tab or other control"),
        ({"id": "a\tb", "title": "x"}, "has a line break, tab or other control"),
        ({"id": "a\x00", "title": "x"}, "has a line break, tab or other control"),
        ({"id": "a\ud800", "title": "x"}, "has a line break, tab or other control"),
        ({"id": "a\u2028b", "title": "x"}, "has a line break, tab or other control"),
        ({"id": ["a"], "title": "x"}, "the id is a list"),
        ({"id": "1"}, "no text"),
        ({"id": "1", "title": " ", "abstract": None}, "no text"),
        ({"id": "1", "title": ["x"]}, '"title" is a list'),
        ({"id": "1", "title": "x", "labels": {"a": 1}}, "labels are an object, not a list"),
        ({"id": "1", "title": "x", "labels": [["a"]]}, "a label is a list"),
        ({"id": "1", "title": "x", "fields": "y"}, '"fields" is a string, not an object'),
        ([], "a list where a record was expected"),
    ],
)
def test_reasons(record: Any, reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        document_from_record(record)


def test_repaired_labels_and_languages_are_reported() -> None:
    notes: list[str] = []
    record = {"id": "1", "title": "x", "labels": ["Hum\x00ans"], "language": "Klingonish"}
    document = document_from_record(record, note=notes.append)
    assert document.labels == ("Humans",)
    assert document.language is None
    assert [note.split(" ")[0] for note in notes] == ["control", "'Klingonish'"]


@pytest.mark.parametrize("identifier", ["a  b", " a", "a ", "a\u00a0b", "ä", "a\u0308", "\u202ea"])
def test_ids_are_kept_as_they_are(identifier: str) -> None:
    assert document_from_record({"id": identifier, "title": "x"}).id == identifier


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b"])
@pytest.mark.parametrize("key", ["title", "abstract", "note"])
def test_nuls_and_lone_surrogates_are_reported(key: str, text: str) -> None:
    notes: list[str] = []
    document_from_record({"id": "1", "title": "x", key: text}, note=notes.append)
    assert notes == [f'NUL characters or lone surrogates in "{key}" were replaced by spaces']


def test_a_form_feed_is_not_worth_a_report() -> None:
    notes: list[str] = []
    document = document_from_record({"id": "1", "title": "page\x0cbreak"}, note=notes.append)
    assert (document.title, notes) == ("page break", [])


@pytest.mark.parametrize(
    "record",
    [
        {"labels": ["b", {"id": "a", "name": "A", "major": True}], "major_labels": []},
        {"labels": ["b", "a"], "major_labels": ["a"]},
        {"labels": "b|a", "major_labels": "a"},
    ],
)
def test_major_labels(record: Any) -> None:
    document = document_from_record({"id": "1", "title": "x", **record})
    assert (document.labels, document.major_labels) == (("b", "a"), ("a",))


def test_a_major_label_that_is_no_label_is_reported() -> None:
    notes: list[str] = []
    record = {"id": "1", "title": "x", "labels": ["b"], "major_labels": ["a", "b"]}
    assert document_from_record(record, note=notes.append).major_labels == ("b",)
    assert notes == ["the major label 'a' is not among the labels and was ignored"]


def test_lift_title() -> None:
    lifted = lift_title({"text": "x", "metadata": {"title": "T", "year": 1999}})
    assert lifted == {"text": "x", "title": "T", "metadata": {"year": 1999}}


@given(st.dictionaries(KNOWN_KEYS, JSON_VALUE))
def test_any_record_without_a_text_gives_a_correction_or_a_reason(record: Any) -> None:
    if has_text(record):
        return
    try:
        correction = correction_from_record(record)
    except RecordError as error:
        assert str(error)
        return
    assert correction.id == correction.id.strip() != ""
    assert correction.labels or [] in record.values()


def test_a_correction() -> None:
    notes: list[str] = []
    record = {
        "id": 3,
        "title": " ",
        "abstract": None,
        "subjects": [{"uri": "u", "label": "U", "major": True}, "x"],
        "revision": "2024/03/05",
        "year": 1999,
        "fields": {},
    }
    assert not has_text(record)
    correction = correction_from_record(record, note=notes.append, where="f, line 1")
    assert (correction.id, correction.labels, correction.major_labels) == ("3", ("u", "x"), ("u",))
    assert correction.label_names == {"u": "U"}
    assert (correction.revision, correction.where) == ("2024-03-05", "f, line 1")
    assert notes == ["without a text, only labels are stored; ignored: year"]
    assert correction_from_record({"id": "1", "labels": []}).labels == ()


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"labels": ["x"]}, "no id"),
        ({"id": "1"}, "neither a text nor labels"),
        ({"id": "1", "labels": None}, "neither a text nor labels"),
        ({"id": "1", "labels": ""}, "neither a text nor labels"),
        ({"id": "1", "labels": " "}, "the labels are blank"),
        ({"id": "1", "labels": ["", " "]}, "the labels are blank"),
        ({"id": "1", "labels": 5}, "labels are a number"),
    ],
)
def test_reasons_against_a_correction(record: Any, reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        correction_from_record(record)


@pytest.mark.parametrize("value", ["x", 0, False, [], {"a": "b"}])
@pytest.mark.parametrize("key", ["title", "text", "fields"])
def test_a_text_of_the_wrong_kind_makes_no_correction(key: str, value: Any) -> None:
    assert has_text({"id": "1", "labels": [], key: value})


def test_revisions() -> None:
    notes: list[str] = []
    record = {"id": "1", "title": "T", "revision": "draft", "date_revised": "2024-03-05", "n": 1}
    document = document_from_record(record, note=notes.append)
    assert document.revision == "2024-03-05"
    assert document.metadata == {"revision": "draft", "n": 1}
    assert notes == [
        "'draft' in \"revision\" is neither a date nor a version number: not a revision"
    ]
    assert document_from_record({"id": "1", "title": "T", "revision": 3}).revision == "3"
    assert document_from_record({"id": "1", "title": "T", "revision": ""}).revision is None
