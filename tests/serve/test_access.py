"""Who may write, and that nobody else changes a byte."""

from __future__ import annotations

import base64
import itertools
from pathlib import Path
from typing import Any

import httpx
import pytest

from labelkin.serve.access import Access
from labelkin.serve.problems import ProblemError

from ..served import BEARER, TEXT, TOKEN, Running, checksums, copied, running
from .conftest import Start

DOCUMENTS = "/api/v1/collections/demo/documents"
RECORD = {"title": "Zeppelin hangars", "labels": ["LK0005"]}
LINES = {"Content-Type": "application/x-ndjson"}
LEARNT = [{"text": "Zeppelin hangars", "subjects": [{"uri": "LK0005"}]}]
# Every endpoint that writes.
WRITES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", DOCUMENTS, {"json": RECORD}),
    ("POST", DOCUMENTS, {"json": [RECORD, RECORD]}),
    ("POST", DOCUMENTS, {"content": b'{"title": "Hangars"}\n', "headers": LINES}),
    ("PUT", f"{DOCUMENTS}/demo-00001", {"json": RECORD}),
    ("PUT", f"{DOCUMENTS}/new", {"json": RECORD}),
    ("PATCH", f"{DOCUMENTS}/demo-00001", {"json": {"labels": ["LK0005"]}}),
    ("DELETE", f"{DOCUMENTS}/demo-00001", {}),
    ("POST", "/v1/projects/demo/learn", {"json": LEARNT}),
    ("POST", "/v1/projects/demo:knn/learn", {"json": LEARNT}),
]


def basic(password: str, user: str = "any") -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


WRONG = [
    None,
    "",
    "Bearer",
    "Bearer ",
    "Bearer wrong",
    f"Bearer {TOKEN}x",
    f"Bearer {TOKEN[:-1]}",
    TOKEN,
    f"Token {TOKEN}",
    basic("wrong"),
    basic(""),
    basic("", TOKEN),
    "Basic !!!",
    "Basic " + base64.b64encode(b"\xff\xfe").decode(),
    "Basic ",
]


@pytest.mark.parametrize("token", [TOKEN, "simple", "Schlüssel-😀"])
def test_the_token_counts_as_bearer_and_as_password(token: str) -> None:
    access = Access(token)
    for given in (f"Bearer {token}", f"bearer  {token} ", basic(token), basic(token, "")):
        # As the framework reads the bytes of a header.
        as_read = given.encode().decode("latin-1")
        assert access.has_token({"authorization": as_read}), given
        access.check({"authorization": as_read})


@pytest.mark.parametrize("given", WRONG)
def test_anything_else_does_not(given: str | None) -> None:
    headers = {} if given is None else {"authorization": given}
    assert not Access(TOKEN).has_token(headers)
    with pytest.raises(ProblemError) as raised:
        Access(TOKEN).check(headers)
    assert raised.value.status_code == 401
    assert raised.value.headers == {"WWW-Authenticate": 'Bearer realm="labelkin"'}


@pytest.mark.parametrize("given", [*WRONG, "Bearer ", basic("")])
def test_without_a_token_nothing_is_the_token(given: str | None) -> None:
    headers = {} if given is None else {"authorization": given}
    assert not Access("").has_token(headers)
    with pytest.raises(ProblemError, match="LABELKIN_TOKEN"):
        Access("").check(headers)


def test_read_only_refuses_the_token_too() -> None:
    assert not Access(TOKEN, read_only=True).allows_writing
    with pytest.raises(ProblemError, match="read-only"):
        Access(TOKEN, read_only=True).check({"authorization": f"Bearer {TOKEN}"})


READS: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/v1/projects", {}),
    ("POST", "/v1/projects/demo/suggest", {"data": {"text": TEXT}}),
    ("GET", "/api/v1/collections/demo", {}),
    ("GET", DOCUMENTS, {}),
    ("GET", "/api/v1/collections/demo/concepts", {"params": {"query": "pot"}}),
    ("GET", "/api/v1/collections/demo/tree", {}),
    ("GET", "/metrics", {}),
    *(
        ("POST", f"/api/v1/collections/demo/{verb}", {"json": body})
        for verb, body in (
            ("suggest", {"documents": [{"title": TEXT}]}),
            ("neighbours", {"documents": [{"title": TEXT}], "terms": 3}),
            ("compare", {"document": {"title": TEXT}}),
            ("explain", {"document": {"title": TEXT}, "headings": ["Potatoes"]}),
            ("evaluate", {"documents": [{"title": TEXT, "labels": ["Potatoes"]}]}),
        )
    ),
]
# None of these was built: a request must not build it, nor load a model from anywhere.
OTHERS = ["lsa", "stems,lsa", "lemmas", "all", "stems+lemmas", "some/model", "/etc/passwd", "./x"]


@pytest.mark.parametrize(
    ("how", "statuses"),
    [({"token": ""}, {403}), ({}, {401, 403}), ({"read_only": True}, {403})],
    ids=["no token", "wrong token", "read-only"],
)
def test_nothing_on_disk_changes(
    small: Path, tmp_path: Path, how: dict[str, Any], statuses: set[int]
) -> None:
    path = copied(small, tmp_path)
    before = checksums(path)
    headers = BEARER if how else {"Authorization": "Bearer wrong"}
    with running({"demo": path}, **how) as service:
        for round_ in range(3):
            for method, url, rest in WRITES:
                rest = {**rest, "headers": {**headers, **rest.get("headers", {})}}
                answer = service.http.request(method, url, **rest)
                assert answer.status_code in statuses, (round_, method, url, answer.text)
                assert answer.headers["content-type"] == "application/problem+json"
            for method, url, rest in READS:
                assert service.http.request(method, url, **rest).status_code == 200, url
            for verb, other in itertools.product(("suggest", "neighbours"), OTHERS):
                body = {"documents": [{"title": TEXT}], "representation": other}
                answer = service.http.post(f"/api/v1/collections/demo/{verb}", json=body)
                assert answer.status_code == 422, (other, answer.text)
    assert checksums(path) == before


def test_every_write_works_with_the_token(writable: Running) -> None:
    for method, url, rest in WRITES:
        answer = writable.http.request(method, url, **rest)
        assert answer.status_code in (200, 204), (method, url, answer.text)


def test_a_password_in_the_url_is_enough(writable: Running) -> None:
    def put(password: str) -> httpx.Response:
        return writable.http.put(f"{DOCUMENTS}/new", json=RECORD, auth=("any", password))

    assert put(TOKEN).status_code == 200
    refused = put("wrong")
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Bearer")


def test_the_service_says_whether_it_can_be_written(start: Start, small: Path) -> None:
    service = start(small, token="")
    (collection,) = service.http.get("/api/v1/collections").json()["collections"]
    assert collection["writable"] is False
