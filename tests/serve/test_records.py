"""Documents in requests."""

from __future__ import annotations

import pytest

from labelkin.messages import Record
from labelkin.serve.problems import ProblemError
from labelkin.serve.records import Records, query, query_of


def test_queries() -> None:
    document = query(Record(id=5, title="A title", abstract="A text", year=1999))
    assert (document.id, document.title, document.body) == ("5", "A title", "A text")
    assert query(Record()).text.strip() == ""
    assert query(Record(id="a", title=" ")).id == "a"
    with pytest.raises(ProblemError) as raised:
        query_of({"title": "x", "labels": 5})
    assert raised.value.status_code == 422


def test_ids_are_made_up_and_the_same_for_the_same_document() -> None:
    record = {"title": "Zeppelins", "labels": ["LK0005"]}
    first, second = Records(), Records()
    (one,) = first.documents([("document 1", record)])
    (other,) = second.documents([("document 1", record)])
    assert one.id == other.id
    assert first.ids == [one.id]


def test_bad_records_are_listed_up_to_a_number() -> None:
    records = Records()
    bad = [(f"line {number}", {"id": str(number)}) for number in range(3000)]
    assert records.documents([*bad, ("line 3001", {"id": "a", "title": "x"})])[0].id == "a"
    assert records.report.skipped == 3000
    assert len(records.report.left_out) == 1000
    assert records.report.left_out[0].where == "line 0"


def test_lines() -> None:
    records = Records()
    assert records.on_line('{"id": "a"}', "line 1") == [("line 1", {"id": "a"})]
    assert records.on_line("{broken", "line 2") == []
    assert records.report.left_out[0].where == "line 2"
