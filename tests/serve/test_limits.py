"""Limits, time-outs, request ids and the access log."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from labelkin.serve import suggestions

from ..served import TEXT, TOKEN, Running, complaints, eventually, head
from .conftest import Start

SUGGEST = "/api/v1/collections/demo/suggest"
ACCESS = "labelkin.access"
DOCUMENTS = "/api/v1/collections/demo/documents"
FORM = "Content-Type: application/x-www-form-urlencoded"
JSON = "Content-Type: application/json"
LINES = "Content-Type: application/x-ndjson"


def chunked(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("path", "kind", "answer_type"),
    [
        ("/v1/projects/demo/suggest", FORM, "text/plain"),
        ("/v1/projects/demo/suggest-batch", JSON, "text/plain"),
        ("//v1/projects/demo/learn", JSON, "text/plain"),
        (SUGGEST, JSON, "application/problem+json"),
        (DOCUMENTS, JSON, "application/problem+json"),
        # As it is JSON in any spelling, it is no stream.
        (DOCUMENTS, "Content-Type: Application/JSON", "application/problem+json"),
        (f"{DOCUMENTS}/a", JSON, "application/problem+json"),
        ("/nothing", JSON, "application/problem+json"),
    ],
)
def test_bodies_that_are_too_large(
    start: Start, small: Path, path: str, kind: str, answer_type: str
) -> None:
    service = start(small, max_body=1000)
    method = "PUT" if path.endswith("/a") else "POST"
    access = f"Authorization: Bearer {TOKEN}"
    announced = head(method, path, kind, access, "Connection: close", "Content-Length: 1001")
    unannounced = head(
        method, path, kind, access, "Connection: close", "Transfer-Encoding: chunked"
    ) + chunked(b'"' + b"x" * 1100 + b'"')
    for request in (announced, unannounced):
        if path == "/nothing" and request is unannounced:
            continue  # Nothing reads it.
        top, _, body = service.raw(request).partition(b"\r\n\r\n")
        assert top.startswith(b"HTTP/1.1 413 "), top
        assert f"content-type: {answer_type}".encode() in top
        assert b"1000 bytes" in body


def test_bodies_of_the_largest_size(start: Start, small: Path) -> None:
    service = start(small, max_body=1000)
    body = b"text=" + b"x" * 995
    headers = (FORM, "Connection: close", "Content-Length: 1000")
    answer = service.raw(head("POST", "/v1/projects/demo/suggest", *headers) + body)
    assert answer.startswith(b"HTTP/1.1 200 OK")


def test_long_texts_and_many_documents(start: Start, small: Path) -> None:
    service = start(small, max_characters=100, max_documents=2)
    for body, part in (
        ({"documents": [{"title": "x"}, {"title": "x" * 101}]}, "document 2 has 101 characters"),
        ({"documents": [{"title": "x"}] * 3}, "3 documents; send at most 2"),
    ):
        answer = service.http.post(SUGGEST, json=body)
        assert answer.status_code == 413
        assert part in answer.json()["detail"]
    answer = service.http.post("/v1/projects/demo/suggest", data={"text": "x" * 101})
    assert answer.status_code == 413
    assert answer.headers["content-type"].startswith("text/plain")


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Suggestions of labelkin's own API wait for this event."""
    free, real = Event(), suggestions.suggested

    def suggested(*arguments: Any) -> Any:
        assert free.wait(20.0)
        return real(*arguments)

    monkeypatch.setattr(suggestions, "suggested", suggested)
    return free


def ask(service: Running, answers: list[int]) -> Thread:
    """Ask for a suggestion from a thread; its status is appended."""
    body = {"documents": [{"title": TEXT}]}
    thread = Thread(
        target=lambda: answers.append(service.http.post(SUGGEST, json=body).status_code)
    )
    thread.start()
    return thread


def test_a_full_queue(start: Start, small: Path, blocked: Event) -> None:
    service = start(small, concurrency=1, queue=1)
    gate, statuses = service.service.gate, []
    threads = [ask(service, statuses), ask(service, statuses)]
    eventually(lambda: gate.waiting == 1)
    refused = [
        service.http.post(SUGGEST, json={"documents": [{"title": TEXT}]}),
        service.http.post("/v1/projects/demo/suggest", data={"text": TEXT}),
        service.http.get(DOCUMENTS),
    ]
    for answer in refused:
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert answer.headers["content-type"] == "application/problem+json"
    # What needs no thread is answered.
    for path in ("/api/v1/health", "/api/v1/ready", "/v1/projects/demo", "/metrics"):
        assert service.http.get(path).status_code == 200
    blocked.set()
    for thread in threads:
        thread.join()
    assert statuses == [200, 200]
    eventually(lambda: (gate.running, gate.waiting) == (0, 0))


def test_no_answer_in_time(start: Start, small: Path, blocked: Event) -> None:
    service = start(small, concurrency=2, timeout_seconds=0.2)
    answer = service.http.post(SUGGEST, json={"documents": [{"title": TEXT}]})
    assert answer.status_code == 503
    assert "0.2 seconds" in answer.json()["detail"]
    assert service.service.gate.running == 1
    blocked.set()
    eventually(lambda: service.service.gate.running == 0)


def test_too_many_requests_of_one_client(start: Start, small: Path, blocked: Event) -> None:
    service = start(small, client_requests=2)
    statuses: list[int] = []
    threads = [ask(service, statuses), ask(service, statuses)]
    active = service.service.metrics.active._value
    eventually(lambda: active.get() == 2)
    assert service.http.get("/api/v1/health").status_code == 200
    refused = service.http.get("/api/v1/version")
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "1"
    assert refused.headers["content-type"] == "application/problem+json"
    blocked.set()
    for thread in threads:
        thread.join()
    eventually(lambda: active.get() == 0)
    assert service.http.get("/api/v1/health").status_code == 200
    assert 'labelkin_refused_requests_total{limit="429"} 1.0' in service.http.get("/metrics").text


@pytest.mark.parametrize(
    ("path", "kind"), [("/v1/projects/demo/suggest", FORM), (SUGGEST, JSON), (DOCUMENTS, LINES)]
)
def test_a_body_that_stalls(
    start: Start, small: Path, path: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    service = start(small, slow_seconds=0.3)
    access = f"Authorization: Bearer {TOKEN}"
    answer = service.raw(head("POST", path, kind, access, "Content-Length: 100") + b"{")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in answer
    assert b"no part of the body came for 0.3 seconds" in answer
    assert not complaints(caplog)


@pytest.mark.parametrize("body", [b"text=a", b'{"documents": ['])
def test_a_client_that_goes_away_while_it_sends(
    start: Start, small: Path, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    service = start(small)
    path, kind = (SUGGEST, JSON) if b"{" in body else ("/v1/projects/demo/suggest", FORM)
    active = service.service.metrics.active._value
    with service.connect() as connection:
        connection.sendall(head("POST", path, kind, "Content-Length: 100") + body)
        eventually(lambda: active.get() == 1)
    eventually(lambda: active.get() == 0)
    assert not complaints(caplog)
    assert service.http.get("/api/v1/health").status_code == 200


def test_request_ids(live: Running) -> None:
    assert re.fullmatch(r"[0-9a-f]{16}", live.http.get("/api/v1/health").headers["x-request-id"])
    given = live.http.get("/nothing", headers={"X-Request-Id": "my-id.1"})
    assert given.headers["x-request-id"] == "my-id.1"
    assert given.json()["instance"] == "urn:labelkin:request:my-id.1"
    for bad in ("with space", "x" * 65, "<script>"):
        answer = live.http.get("/api/v1/health", headers={"X-Request-Id": bad})
        assert answer.headers["x-request-id"] != bad
    assert live.http.get("/v1/").headers["x-content-type-options"] == "nosniff"


def test_the_access_log_has_a_line_per_request_and_no_text(
    live: Running, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "Confidential-Report"
    # Lines of requests before these may still come.
    mine = [{"X-Request-Id": f"mine-{number}"} for number in range(5)]
    stream = {"Content-Type": "application/x-ndjson"}
    bad = {"documents": [{"title": 5, "x": secret}]}
    concepts = "/api/v1/collections/demo/concepts"
    with caplog.at_level(logging.INFO, ACCESS):
        live.http.post("/v1/projects/demo/suggest", data={"text": secret}, headers=mine[0])
        live.http.post(SUGGEST, json={"documents": [{"title": secret}]}, headers=mine[1])
        live.http.post(SUGGEST, json=bad, headers=mine[2])
        live.http.get(concepts, params={"query": secret}, headers=mine[3])
        live.http.post(
            "/api/v1/collections/demo/annotate",
            content=json.dumps({"title": secret, "labels": 5}),
            headers={**stream, **mine[4]},
        )
        eventually(lambda: "mine-4" in caplog.text)
    logged = [json.loads(one.getMessage()) for one in caplog.records if one.name == ACCESS]
    lines = [one for one in logged if one["request"].startswith("mine-")]
    assert [(one["method"], one["status"]) for one in lines] == [
        ("POST", 200),
        ("POST", 200),
        ("POST", 422),
        ("GET", 200),
        ("POST", 200),
    ]
    for one in lines:
        assert set(one) == {
            "time",
            "request",
            "client",
            "method",
            "path",
            "status",
            "milliseconds",
            "received",
            "sent",
        }
    assert lines[0]["received"] == len(f"text={secret}")
    assert secret not in caplog.text
    assert TOKEN not in caplog.text


def test_without_an_access_log(start: Start, small: Path, caplog: pytest.LogCaptureFixture) -> None:
    service = start(small, access_log=False)
    with caplog.at_level(logging.INFO, ACCESS):
        service.http.get("/v1/")
        service.http.get("/v1/")
    assert not [one for one in caplog.records if one.name == ACCESS]
