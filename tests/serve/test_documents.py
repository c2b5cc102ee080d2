"""Stored documents: get, add, replace, correct, remove."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from ..served import ODD_IDS, Running
from .conftest import Start

BASE = "/api/v1/collections/demo"
LINES = {"Content-Type": "application/x-ndjson"}
JSON = {"Content-Type": "application/json"}


def url(identifier: str) -> str:
    return f"{BASE}/documents/{quote(identifier, safe='').replace('.', '%2E')}"


def labels(service: Running, identifier: str) -> list[str]:
    answer = service.http.get(url(identifier))
    assert answer.status_code == 200, answer.text
    return [one["id"] for one in answer.json()["labels"]]


def test_pages_have_every_document_once(live: Running) -> None:
    ids: list[str] = []
    after: str | None = ""
    while after is not None:
        page = live.http.get(f"{BASE}/documents", params={"after": after, "limit": 37}).json()
        ids += [one["id"] for one in page["documents"]]
        after = page["next"]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids) == live.http.get(BASE).json()["documents"]


RECORDS: list[dict[str, Any]] = [
    {"title": "Plain", "labels": ["LK0005"]},
    {
        "title": "Everything — 😀",
        "abstract": "Two\nlines.",
        "fields": {"notes": "More text."},
        "language": "en",
        "labels": [{"id": "LK0005", "major": True}, "LK0006", {"id": "zzz", "name": "Unknown"}],
        "year": 1999,
        "nested": {"a": [1, 2.5, None, True, {"b": "c"}]},
    },
    {"text": "Only a text"},
    {"title": "Not finite", "n": float("nan"), "m": float("inf")},
    {"title": "lone \ud800 surrogate", "extra": "a \ud800", "labels": ["\ud800", "LK0005"]},
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: next(iter(record.values()))[:8])
def test_what_is_read_can_be_written_back(writable: Running, record: dict[str, Any]) -> None:
    identifier = f"d{RECORDS.index(record)}"
    put = writable.http.put(url(identifier), content=json.dumps(record), headers=JSON)
    assert put.status_code == 200, put.text
    assert put.json()["added"] == 1
    stored = writable.http.get(url(identifier))
    assert stored.status_code == 200, stored.text
    again = writable.http.put(url(identifier), content=stored.content, headers=JSON)
    assert again.status_code == 200, again.text
    assert (again.json()["unchanged"], again.json()["replaced"]) == (1, 0), stored.text
    assert writable.http.get(url(identifier)).json() == stored.json()
    other = writable.http.post(f"{BASE}/documents", content=stored.content, headers=JSON)
    assert other.json()["unchanged"] == 1


@pytest.mark.parametrize("identifier", ODD_IDS)
def test_ids_with_characters_that_mean_something_in_urls(
    writable: Running, identifier: str
) -> None:
    put = writable.http.put(url(identifier), json={"title": "Zeppelins", "labels": ["LK0005"]})
    assert put.json()["ids"] == [identifier]
    assert writable.http.get(url(identifier)).json()["id"] == identifier
    assert writable.http.patch(url(identifier), json={"labels": ["LK0006"]}).status_code == 200
    assert labels(writable, identifier) == ["LK0006"]
    assert writable.http.delete(url(identifier)).json()["removed"] == 1
    assert writable.http.get(url(identifier)).status_code == 404


def test_a_blank_id_is_not_replaced_by_another_one(writable: Running) -> None:
    put = writable.http.put(url(" "), json={"title": "Zeppelins", "labels": []})
    assert put.status_code == 422
    assert "blank" in put.json()["detail"]


def test_a_correction_keeps_the_text(start: Start) -> None:
    writable = start()
    before = writable.http.get(url("demo-00001")).json()
    answer = writable.http.patch(
        url("demo-00001"), json={"labels": [{"id": "LK0005", "major": True}, "Potato Storage"]}
    )
    assert answer.json()["corrected"] == 1
    after = writable.http.get(url("demo-00001")).json()
    assert [(one["id"], one["major"]) for one in after.pop("labels")] == [
        ("LK0005", True),
        ("LK0031", False),
    ]
    del before["labels"]
    assert after == before
    for blank in ([" "], ["", {"id": ""}]):
        refused = writable.http.patch(url("demo-00001"), json={"labels": blank})
        assert refused.status_code == 422
        assert refused.json()["detail"] == 'the labels are blank; "labels": [] removes all headings'
    assert labels(writable, "demo-00001") == ["LK0005", "LK0031"]
    assert writable.http.patch(url("demo-00001"), json={"labels": []}).status_code == 200
    assert labels(writable, "demo-00001") == []


def test_adding_reports_what_was_not_stored(writable: Running) -> None:
    records = [
        {"id": "a", "title": "One", "labels": ["LK0005", "nowhere"]},
        {"id": "b", "labels": ["LK0005"]},
        {"id": "c", "title": "One again"},
        {"title": "Without an id"},
        {"id": "demo-00001", "title": "Another"},
    ]
    report = writable.http.post(f"{BASE}/documents", json=records).json()
    assert report["skipped"] == [
        {"where": "document 2", "problem": report["skipped"][0]["problem"]}
    ]
    assert "no text" in report["skipped"][0]["problem"]
    assert report["replaced"] >= 1
    assert report["unresolved"] == {"nowhere": 1}
    assert len(report["ids"]) == 4
    assert "demo-00001" in report["ids"]
    assert all(writable.http.get(url(one)).status_code == 200 for one in report["ids"])


def test_a_stream_of_documents(writable: Running) -> None:
    def lines() -> Any:
        for number in range(2500):
            yield json.dumps({"id": f"s{number}", "title": f"Zeppelin {number}"}).encode() + b"\n"
            if number % 500 == 0:
                yield b"\n{broken\n"

    answer = writable.http.post(f"{BASE}/documents", content=lines(), headers=LINES)
    report = answer.json()
    assert report["added"] == 2500
    assert len(report["ids"]) == 1000
    assert [one["where"] for one in report["skipped"]] == [
        f"line {500 * round_ + 2 * round_ + 3}" for round_ in range(5)
    ]
    assert writable.http.get(url("s2499")).status_code == 200


@pytest.mark.parametrize(
    ("method", "identifier", "body", "status"),
    [
        ("GET", "nothere", None, 404),
        ("GET", "\x00", None, 404),
        ("DELETE", "nothere", None, 404),
        ("PATCH", "nothere", {"labels": []}, 404),
        ("PATCH", "demo-00001", {}, 422),
        ("PATCH", "demo-00001", {"labels": "LK0005"}, 422),
        ("PATCH", "demo-00001", {"labels": [5]}, 422),
        ("PATCH", "demo-00001", {"labels": [{"id": {"a": 1}}]}, 422),
        ("PATCH", "demo-00001", {"labels": [], "title": "x"}, 422),
        ("PUT", "a", {"id": "b", "title": "x"}, 422),
        ("PUT", "a", {"labels": ["LK0005"]}, 422),
        ("PUT", "a", {"title": 5}, 422),
        ("PUT", "a", [], 422),
        ("PUT", "a\nb", {"title": "x"}, 404),
        ("PUT", "a", {"title": "x", "labels": [{"id": [1]}]}, 422),
    ],
)
def test_errors_of_one_document(
    writable: Running, method: str, identifier: str, body: Any, status: int
) -> None:
    before = writable.http.get(url("demo-00001")).json()
    rest = {} if body is None else {"json": body}
    answer = writable.http.request(method, url(identifier), **rest)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert writable.http.get(url("demo-00001")).json() == before


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        (JSON, b"{", 400),
        (JSON, b"5", 422),
        (JSON, b"[5]", 422),
        (JSON, b'[{"title": 5}]', 422),
        (JSON, b"[]", 200),
        ({"Content-Type": "text/plain"}, b"{}", 415),
        ({}, b'{"title": "x"}', 415),
        ({"Content-Type": "Application/JSON; charset=utf-8"}, b'{"title": "x"}', 200),
        (LINES, b"", 200),
        (LINES, b"{\n", 200),
    ],
)
def test_bodies_of_adding(
    writable: Running, headers: dict[str, str], body: bytes, status: int
) -> None:
    answer = writable.http.post(f"{BASE}/documents", content=body, headers=headers)
    assert answer.status_code == status, answer.text


def test_a_document_with_its_neighbours(live: Running) -> None:
    plain = live.http.get(url("demo-00001")).json()
    assert "neighbours" not in plain
    shown = live.http.get(url("demo-00001"), params={"neighbours": 4}).json()
    near = shown.pop("neighbours")
    assert shown == plain
    assert len(near) == 4
    assert "demo-00001" not in [one["id"] for one in near]
    distances = [one["distance"] for one in near]
    assert distances == sorted(distances)
    assert all(heading["name"] for one in near for heading in one["headings"])
    german = live.http.get(url("demo-00001"), params={"neighbours": 1, "language": "de"}).json()
    assert german["labels"] != plain["labels"]
    assert [one["id"] for one in german["labels"]] == [one["id"] for one in plain["labels"]]
    for wrong in ({"neighbours": -1}, {"neighbours": 1, "representation": "wordllama"}):
        assert live.http.get(url("demo-00001"), params=wrong).status_code == 422


def test_learning_corrects_many_documents_at_once(writable: Running) -> None:
    records = [{"id": f"l{number}", "title": f"Airship {number}"} for number in range(3)]
    writable.http.post(f"{BASE}/documents", json=records)
    learnt = [
        {"id": "l0", "labels": ["LK0005"]},
        {"id": "l1", "labels": []},
        {"id": "nobody", "labels": ["LK0005"]},
        {"id": "l2"},
        {"id": "l3", "title": "Airship 3", "labels": ["LK0006"]},
    ]
    answer = writable.http.post(f"{BASE}/learn", json=learnt)
    assert answer.status_code == 200, answer.text
    report = answer.json()
    assert (report["corrected"], report["added"], report["cleared"]) == (1, 1, 0)
    assert report["missing"] == ["nobody"]
    assert [one["where"] for one in report["skipped"]] == ["document 4", "document 3"]
    assert report["skipped"][1]["problem"] == "not in the collection"
    assert labels(writable, "l0") == ["LK0005"]
    lines = b"".join(
        json.dumps({"id": f"l{number}", "labels": ["LK0007"]}).encode() + b"\n"
        for number in range(3)
    )
    streamed = writable.http.post(f"{BASE}/learn", content=lines, headers=LINES).json()
    assert (streamed["corrected"], streamed["generation"]) == (3, report["generation"] + 1)
    assert labels(writable, "l2") == ["LK0007"]
    cleared = writable.http.post(f"{BASE}/learn", json={"id": "l0", "labels": []}).json()
    assert (cleared["corrected"], cleared["cleared"]) == (1, 1)
    # Whole documents are needed elsewhere.
    plain = writable.http.post(f"{BASE}/documents", json={"id": "l1", "labels": []}).json()
    assert "no text" in plain["skipped"][0]["problem"]


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    ("method", "path", "body", "lines"),
    [
        ("PUT", "/documents/rev", {"title": "Old"}, False),
        ("PATCH", "/documents/rev", {"labels": []}, False),
        ("POST", "/documents", {"id": "rev", "title": "Old"}, False),
        ("POST", "/documents", {"id": "rev", "title": "Old"}, True),
        ("POST", "/learn", {"id": "rev", "labels": []}, False),
        ("POST", "/learn", {"id": "rev", "labels": []}, True),
    ],
)
def test_an_older_record_is_a_conflict(
    writable: Running, method: str, path: str, body: Any, lines: bool, force: bool
) -> None:
    new = {"title": "New", "labels": ["LK0005"], "revision": "2024-05-01"}
    writable.http.put(url("rev"), params={"take_older": True}, json=new)
    before = writable.http.get(url("rev")).json()
    assert before["revision"] == "2024-05-01"
    content = json.dumps({**body, "revision": "2023-05-01"})
    params = {"take_older": "true"} if force else {}
    answer = writable.http.request(
        method, BASE + path, content=content, params=params, headers=LINES if lines else JSON
    )
    after = writable.http.get(url("rev")).json()
    if force:
        assert answer.status_code == 200, answer.text
        assert (after["revision"], after["labels"]) == ("2023-05-01", [])
        return
    assert answer.status_code == 409, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = "revision 2023-05-01, older than 2024-05-01 in the collection"
    assert answer.json()["detail"] == (
        f"document 'rev': {problem}; take_older=true stores it all the same"
    )
    assert answer.json()["errors"][0]["problem"] == problem
    assert after == before


def test_an_older_record_among_others_is_skipped(writable: Running) -> None:
    records = [{"id": one, "title": "Airship", "revision": 3} for one in ("ra", "rb")]
    writable.http.post(f"{BASE}/documents", json=records)
    records[0].update(revision=2, title="Balloon")
    records[1].update(revision=4, title="Balloon")
    report = writable.http.post(f"{BASE}/documents", json=records).json()
    assert (report["stale"], report["replaced"]) == (1, 1)
    assert report["skipped"] == [
        {"where": "document 1", "problem": "revision 2, older than 3 in the collection"}
    ]
    assert writable.http.get(url("ra")).json()["title"] == "Airship"
    assert writable.http.patch(url("ra"), json={"labels": [], "revision": "x"}).status_code == 422
