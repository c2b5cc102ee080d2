"""Annif's API: each case was answered by Annif 1.4.3, whose statuses and keys are expected here.

Where labelkin differs on purpose, the case says so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from ..served import BEARER, TEXT, TOKEN, Running, eventually, head
from .conftest import Start

PROJECT = "/v1/projects/demo"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}
PROBLEM = "application/problem+json"
PROJECT_KEYS = {
    "project_id",
    "name",
    "language",
    "backend",
    "vocab",
    "vocab_language",
    "is_trained",
    "modification_time",
}
VOCAB_KEYS = {"vocab_id", "languages", "size", "loaded"}


def check_problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == PROBLEM
    problem: dict[str, Any] = answer.json()
    assert problem["status"] == status
    assert problem["type"] == "about:blank"
    assert problem["title"]
    assert problem["detail"]
    return problem


def check_results(results: list[dict[str, Any]], most: int = 10) -> None:
    assert len(results) <= most
    scores = [one["score"] for one in results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert len({one["uri"] for one in results}) == len(results)
    assert all(set(one) == {"uri", "label", "notation", "score"} for one in results)


# Paths that are answered.


def test_info(live: Running) -> None:
    answer = live.http.get("/v1/")
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"title", "version"}


@pytest.mark.parametrize("path", ["/v1", "/v1/projects/", f"{PROJECT}/", "/v1/vocabs/"])
def test_a_slash_too_many_or_too_few_leads_to_the_right_path(live: Running, path: str) -> None:
    answer = live.http.get(path)
    assert answer.status_code == 307
    assert live.http.get(path, follow_redirects=True).status_code == 200


@pytest.mark.parametrize("path", ["//v1/", "//v1/projects", "///v1/projects/demo", "//v1/vocabs"])
def test_double_slashes(live: Running, path: str) -> None:
    """Annif answers 500; clients with a base URL that ends in a slash send this."""
    answer = live.raw(head("GET", path, "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 200 OK")


def test_suggest_with_double_slash_and_with_trailing_slash(live: Running) -> None:
    body = f"text={quote(TEXT)}&limit=1".encode()
    headers = (
        f"Content-Length: {len(body)}",
        "Connection: close",
        f"Content-Type: {FORM['Content-Type']}",
    )
    answer = live.raw(head("POST", "//v1/projects/demo/suggest", *headers) + body)
    assert answer.startswith(b"HTTP/1.1 200 OK")
    redirected = live.http.post(f"{PROJECT}/suggest/", data={"text": TEXT}, follow_redirects=True)
    check_results(redirected.json()["results"])


def test_projects_are_collections_with_methods(live: Running) -> None:
    projects = {one["project_id"]: one for one in live.http.get("/v1/projects").json()["projects"]}
    assert {"demo", "demo:knn", "demo:lexical", "small", "empty"} <= set(projects)
    for identifier, project in projects.items():
        assert set(project) == PROJECT_KEYS
        assert set(project["vocab"]) == VOCAB_KEYS
        assert set(project["backend"]) == {"backend_id"}
        assert live.http.get(f"/v1/projects/{identifier}").json() == project
    assert projects["demo"]["backend"]["backend_id"] == "knn"
    assert projects["demo"]["vocab"]["languages"] == ["de", "en"]
    assert projects["demo"]["is_trained"] is True
    assert projects["demo"]["modification_time"].endswith("+00:00")
    assert projects["empty"]["is_trained"] is False
    assert projects["empty"]["vocab"]["loaded"] is False


def test_vocabs(live: Running) -> None:
    vocabs = live.http.get("/v1/vocabs").json()["vocabs"]
    assert [one["vocab_id"] for one in vocabs] == ["demo", "small", "empty"]
    assert all(set(one) == VOCAB_KEYS for one in vocabs)


@pytest.mark.parametrize(
    "path", ["nothere", "demo:nothere", "nothere:knn", "demo:", ":knn", "DEMO", "a%20b", "%00"]
)
def test_unknown_projects(live: Running, path: str) -> None:
    problem = check_problem(live.http.get(f"/v1/projects/{path}"), 404)
    assert problem["title"] == "Project not found"
    check_problem(live.http.post(f"/v1/projects/{path}/suggest", data={"text": "x"}), 404)


@pytest.mark.parametrize("path", ["/v1/nothing", "/nothing", f"{PROJECT}/analyze", "/v1/ui/"])
def test_paths_that_are_not_there(live: Running, path: str) -> None:
    check_problem(live.http.get(path), 404)


@pytest.mark.parametrize("path", ["/v1/", PROJECT, "/v1/projects"])
def test_head_is_get_without_the_body(live: Running, path: str) -> None:
    answer = live.http.head(path)
    assert answer.status_code == 200
    assert answer.content == b""
    assert answer.headers["content-length"] == live.http.get(path).headers["content-length"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("OPTIONS", "/v1/projects", "GET"),
        ("OPTIONS", f"{PROJECT}/suggest", "POST"),
        ("GET", f"{PROJECT}/suggest", "POST"),
        ("DELETE", PROJECT, "GET"),
        ("POST", "/v1/projects", "GET"),
        ("PUT", f"{PROJECT}/learn", "POST"),
        ("GET", "/v1/detect-language", "POST"),
    ],
)
def test_wrong_methods(live: Running, method: str, path: str, allowed: str) -> None:
    answer = live.http.request(method, path)
    check_problem(answer, 405)
    assert allowed in answer.headers["allow"]


def test_no_page_of_another_origin_may_use_it(live: Running) -> None:
    """On purpose: Annif lets all origins in. `--cors` lists those that may."""
    preflight = {"Origin": "http://x.example", "Access-Control-Request-Method": "POST"}
    assert live.http.options(f"{PROJECT}/suggest", headers=preflight).status_code == 405
    answer = live.http.get(PROJECT, headers={"Origin": "http://x.example"})
    assert "access-control-allow-origin" not in answer.headers


# suggest


def test_suggest(live: Running) -> None:
    answer = live.http.post(f"{PROJECT}/suggest", data={"text": TEXT})
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"results"}
    check_results(answer.json()["results"])
    assert len(answer.json()["results"]) == 10
    assert answer.json()["results"][0]["uri"].startswith("LK")


def test_every_method_suggests_as_its_project(live: Running) -> None:
    projects = live.http.get("/v1/projects").json()["projects"]
    trained = [one["project_id"] for one in projects if one["is_trained"]]
    assert len(trained) >= 4
    for project in trained:
        answer = live.http.post(
            f"/v1/projects/{project}/suggest", data={"text": TEXT, "limit": 100}
        )
        check_results(answer.json()["results"], 100)
        assert answer.json()["results"], project


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ("limit=3", 200),
        ("limit=0", 200),
        ("limit=1000", 200),
        ("limit=2147483647", 200),
        ("limit=99999999999999999999", 400),
        ("limit=-1", 400),
        ("limit=abc", 400),
        ("limit=2.0", 400),
        ("limit=2.5", 400),
        ("limit=1e1", 400),
        ("limit=", 400),
        ("limit=1&limit=2", 400),
        ("threshold=0.3", 200),
        ("threshold=1", 200),
        ("threshold=1.01", 400),
        ("threshold=-0.1", 400),
        ("threshold=abc", 400),
        ("threshold=", 400),
        # On purpose: Annif answers with nothing.
        ("threshold=nan", 400),
        ("threshold=inf", 400),
        ("language=en", 200),
        ("language=de", 200),
        ("language=", 200),
        ("language=xx", 400),
        ("language=EN", 400),
        ("metadata_title=x&project=y&anything=z", 200),
        ("metadata_a=x&metadata_a=y", 200),
        ("text=dogs", 200),
    ],
)
def test_fields_of_the_form(live: Running, fields: str, status: int) -> None:
    body = f"text={quote(TEXT)}&{fields}"
    answer = live.http.post(f"{PROJECT}/suggest", content=body, headers=FORM)
    if status == 200:
        assert answer.status_code == 200, answer.text
        check_results(answer.json()["results"], 2000)
    else:
        check_problem(answer, status)


def test_what_the_fields_do(live: Running) -> None:
    def suggest(**fields: Any) -> list[dict[str, Any]]:
        answer = live.http.post(f"{PROJECT}/suggest", data={"text": TEXT, **fields})
        results: list[dict[str, Any]] = answer.json()["results"]
        return results

    best = suggest()
    assert suggest(limit=3) == best[:3]
    assert suggest(limit=0) == []
    assert suggest(threshold=0.2) == [one for one in best if one["score"] >= 0.2]
    german = suggest(language="de")
    assert [one["uri"] for one in german] == [one["uri"] for one in best]
    assert [one["label"] for one in german] != [one["label"] for one in best]
    # Repeated texts are parts of one text.
    twice = live.http.post(
        f"{PROJECT}/suggest", content=b"text=honeybee&text=potato+storage", headers=FORM
    )
    once = live.http.post(f"{PROJECT}/suggest", data={"text": "honeybee,potato storage"})
    assert twice.json() == once.json()


@pytest.mark.parametrize(
    "body",
    [
        b"text=malaria & children 50% + mice = x&y&limit=1",
        b"text=malaria %zz %ff %&limit=1",
        b"text=malaria \xff\xfe&limit=1",
        b"text=malaria%00x&limit=1",
        b"text=malaria%ED%A0%80&limit=1",
        b"text=a;b;c&limit=1",
        "text=grüße 😀&limit=1".encode(),
        b"text=&limit=1",
        b"text=+++&limit=1",
        b"&&&text=x&=&limit=1&",
        b"text=" + b"%" * 5000 + b"&limit=1",
    ],
)
def test_bodies_as_clients_send_them(live: Running, body: bytes) -> None:
    """Unencoded text, bytes that are not UTF-8 (a 500 in Annif) and the like are no errors."""
    answer = live.http.post(f"{PROJECT}/suggest", content=body, headers=FORM)
    assert answer.status_code == 200, answer.text
    check_results(answer.json()["results"], 1)


@pytest.mark.parametrize("text", ["", "   ", "\n", "\x00"])
def test_nothing_is_suggested_for_an_empty_text(live: Running, text: str) -> None:
    answer = live.http.post(f"{PROJECT}/suggest", data={"text": text})
    assert answer.json() == {"results": []}


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        (FORM, b"limit=3", 400),
        (FORM, b"", 400),
        ({}, b"", 400),
        (JSON, b'{"text": "malaria"}', 415),
        ({"Content-Type": "text/plain"}, b"malaria", 415),
        ({"Content-Type": "multipart/form-data; boundary=x"}, b"--x--", 415),
        ({}, b"text=x", 415),
        ({"Content-Type": FORM["Content-Type"] + "; charset=UTF-8"}, b"text=malaria", 200),
        ({"Content-Type": "Application/X-WWW-Form-Urlencoded"}, b"text=malaria", 200),
        ({**FORM, "Accept": "text/html"}, b"text=malaria", 200),
    ],
)
def test_media_types_of_suggest(
    live: Running, headers: dict[str, str], body: bytes, status: int
) -> None:
    answer = live.http.post(f"{PROJECT}/suggest", content=body, headers=headers)
    if status == 200:
        assert answer.status_code == 200
    else:
        check_problem(answer, status)


def test_the_query_is_not_the_form(live: Running) -> None:
    answer = live.http.post(f"{PROJECT}/suggest?limit=1&foo=1", data={"text": TEXT})
    assert len(answer.json()["results"]) == 10


def test_titles_are_found_where_annif_has_them(live: Running) -> None:
    def suggest(**fields: str) -> Any:
        return live.http.post(f"{PROJECT}/suggest", data=fields).json()

    assert suggest(text="Potato storage ¤ In cellars.") == suggest(
        text="In cellars.", metadata_title="Potato storage"
    )


@pytest.mark.parametrize("project", ["empty", "small:label-ae", "small:rerank"])
def test_untrained(live: Running, project: str) -> None:
    form = live.http.post(f"/v1/projects/{project}/suggest", data={"text": "x"})
    assert check_problem(form, 503)["title"] == "Service unavailable"
    url = f"/v1/projects/{project}/suggest-batch"
    check_problem(live.http.post(url, json={"documents": [{"text": "x"}]}), 503)
    assert live.http.post(url, json={"documents": []}).json() == []


# suggest-batch

ONE = {"documents": [{"text": "potato storage"}]}


@pytest.mark.parametrize(
    ("query", "body", "status"),
    [
        ("limit=2", ONE, 200),
        ("limit=0", ONE, 200),
        ("limit=-1", ONE, 400),
        ("limit=abc", ONE, 400),
        ("limit=", ONE, 400),
        ("threshold=0.5", ONE, 200),
        ("threshold=2", ONE, 400),
        # On purpose: Annif answers with nothing.
        ("threshold=nan", ONE, 400),
        ("language=de", ONE, 200),
        ("language=", ONE, 200),
        ("language=xx", ONE, 400),
        ("foo=1", ONE, 200),
        ("", {"documents": []}, 200),
        ("", {"documents": [{"text": ""}]}, 200),
        ("", {"documents": [{"text": "x", "metadata": {"title": "x"}}]}, 200),
        ("", {"documents": [{"text": "x", "document_id": "a"}] * 2}, 200),
        ("", {"documents": [{"text": "x", "x": 1}], "y": 2}, 200),
        ("", {"documents": [{"text": "x", "metadata": {"year": 1999}}]}, 400),
        ("", {"documents": [{"text": 5}]}, 400),
        ("", {"documents": [{"text": None}]}, 400),
        ("", {"documents": [{"document_id": "a"}]}, 400),
        ("", {"documents": [{"text": "x", "document_id": 5}]}, 400),
        ("", {"documents": [{"text": "x", "document_id": None}]}, 400),
        ("", {"documents": "x"}, 400),
        ("", {}, 400),
        ("", [{"text": "x"}], 400),
        ("", None, 400),
    ],
)
def test_batches(live: Running, query: str, body: Any, status: int) -> None:
    url = f"{PROJECT}/suggest-batch?{query}"
    answer = live.http.post(url, content=json.dumps(body), headers=JSON)
    if status != 200:
        check_problem(answer, status)
        return
    assert answer.headers["content-type"] == "application/json"
    assert len(answer.json()) == len(body["documents"])
    for one, document in zip(answer.json(), body["documents"], strict=True):
        assert set(one) == {"document_id", "results"}
        assert one["document_id"] == document.get("document_id")
        check_results(one["results"])


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        (JSON, b'{"documents":', 400),
        (JSON, b"", 400),
        (JSON, b"\xff", 400),
        (FORM, b"text=x", 415),
        ({"Content-Type": "application/vnd.x+json"}, json.dumps(ONE).encode(), 415),
        ({"Content-Type": "application/json; charset=utf-8"}, json.dumps(ONE).encode(), 200),
    ],
)
def test_media_types_of_batches(
    live: Running, headers: dict[str, str], body: bytes, status: int
) -> None:
    answer = live.http.post(f"{PROJECT}/suggest-batch", content=body, headers=headers)
    if status == 200:
        assert answer.status_code == 200
    else:
        check_problem(answer, status)


def test_a_batch_is_what_its_documents_are_alone(live: Running) -> None:
    """On purpose: Annif takes at most 32 documents."""
    texts = [f"{TEXT} in {year}" for year in range(1960, 2060)]
    documents = [{"text": text, "document_id": text} for text in texts]
    url = f"{PROJECT}/suggest-batch?limit=5"
    answers = live.http.post(url, json={"documents": documents}).json()
    assert [one["document_id"] for one in answers] == texts
    for text, answer in list(zip(texts, answers, strict=True))[::20]:
        alone = live.http.post(f"{PROJECT}/suggest", data={"text": text, "limit": 5}).json()
        assert [one["uri"] for one in alone["results"]] == [one["uri"] for one in answer["results"]]


def test_too_many_documents_in_a_batch(start: Start, small: Path) -> None:
    service = start(small, max_documents=3)
    documents = [{"text": "x"}] * 4
    answer = service.http.post(f"{PROJECT}/suggest-batch", json={"documents": documents})
    assert answer.status_code == 413
    assert answer.headers["content-type"].startswith("text/plain")
    assert "at most 3" in answer.text


# learn


def learn_document(text: str = "Zeppelin hangars", **rest: Any) -> dict[str, Any]:
    return {"text": text, "subjects": [{"uri": "LK0005", "label": "x"}], **rest}


@pytest.mark.parametrize(
    ("body", "status", "stored"),
    [
        ([learn_document("Airship sheds")], 204, 1),
        ([learn_document("Balloon halls", document_id="x", metadata={"a": "b"})], 204, 1),
        ([learn_document("Kites", subjects=[{"uri": "http://example.org/zzz"}])], 204, 1),
        ([learn_document("Gliders", subjects=[])], 204, 1),
        ([{"text": "a fox"}], 204, 0),
        ([{"subjects": [{"uri": "LK0005"}]}], 204, 0),
        ([learn_document("  ")], 204, 0),
        ([], 204, 0),
        ([learn_document(subjects=[{"label": "fox"}])], 400, 0),
        (learn_document(), 400, 0),
        ([learn_document(metadata={"year": 5})], 400, 0),
        ([5], 400, 0),
        (None, 400, 0),
    ],
)
def test_learn(writable: Running, body: Any, status: int, stored: int) -> None:
    before = writable.service.catalogue.collection("demo").snapshot.count()
    answer = writable.http.post(f"{PROJECT}/learn", content=json.dumps(body), headers=JSON)
    if status == 204:
        assert answer.status_code == 204, answer.text
        assert answer.content == b""
    else:
        check_problem(answer, status)
    assert writable.service.catalogue.collection("demo").snapshot.count() == before + stored


def test_learning_again_replaces(writable: Running) -> None:
    for label in ("LK0005", "LK0028"):
        body = [learn_document(subjects=[{"uri": label}], document_id="d")]
        assert writable.http.post(f"{PROJECT}/learn", json=body).status_code == 204
    stored = writable.http.get("/api/v1/collections/demo/documents/d").json()
    assert [one["id"] for one in stored["labels"]] == ["LK0028"]


def test_learning_needs_the_token(live: Running) -> None:
    for authorization in ("", "Bearer wrong"):
        answer = live.http.post(
            f"{PROJECT}/learn", json=[learn_document()], headers={"Authorization": authorization}
        )
        assert check_problem(answer, 403)["title"] == "Learning not allowed"


def test_errors_of_learn_come_in_annifs_order(live: Running) -> None:
    unknown = "/v1/projects/nothere/learn"
    check_problem(live.http.post(unknown, json=[learn_document()]), 404)
    check_problem(live.http.post(unknown, json={}), 400)
    check_problem(live.http.post(f"{PROJECT}/learn", data={"text": "x"}), 415)


# detect-language


@pytest.mark.parametrize(
    ("body", "best"),
    [
        (
            {"text": "The quick brown fox jumped over the dog", "languages": ["en", "fi", "sv"]},
            "en",
        ),
        ({"text": "The quick brown fox", "languages": ["en"]}, "en"),
        ({"text": "Der schnelle braune Fuchs springt", "languages": ["en", "de"]}, "de"),
        ({"text": "Der schnelle braune Fuchs springt", "languages": ["en", "fi"]}, None),
        ({"text": "", "languages": ["en", "fi"]}, None),
        ({"text": "the dog and the fox were here", "languages": ["en", "en"]}, "en"),
        # On purpose: codes in capitals are known too.
        ({"text": "the dog and the fox were here", "languages": ["EN"]}, "EN"),
    ],
)
def test_detect_language(live: Running, body: Any, best: str | None) -> None:
    answer = live.http.post("/v1/detect-language", json=body)
    results = answer.json()["results"]
    assert results[0]["language"] == best
    assert all(set(one) == {"language", "score"} for one in results)
    scores = [one["score"] for one in results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert None in [one["language"] for one in results]


@pytest.mark.parametrize(
    "body",
    [
        {"text": "x", "languages": []},
        {"text": "x", "languages": ["en", "fi", "sv", "de", "fr", "es"]},
        {"text": "the dog", "languages": ["en", "xx"]},
        {"text": "x", "languages": ["engl"]},
        {"text": "x", "languages": ["e"]},
        {"text": "x", "languages": "en"},
        {"text": 1, "languages": ["en"]},
        {"languages": ["en"]},
        {"text": "x"},
        [],
    ],
)
def test_detect_language_refuses(live: Running, body: Any) -> None:
    check_problem(live.http.post("/v1/detect-language", json=body), 400)


def test_detect_language_takes_no_form(live: Running) -> None:
    check_problem(live.http.post("/v1/detect-language", data={"text": "x"}), 415)


# The client of PyPI, and the order of requests of Annif's http backend.


def test_annif_client(writable: Running) -> None:
    annif_client = pytest.importorskip("annif_client", reason="annif-client is not installed")
    from urllib.parse import quote as quoted

    client = annif_client.AnnifClient(
        f"http://any:{quoted(TOKEN, safe='')}@127.0.0.1:{writable.port}/v1/"
    )
    assert client.api_info["title"]
    assert {one["project_id"] for one in client.projects} >= {"demo", "demo:knn"}
    assert client.get_project("demo")["is_trained"] is True
    check_results(client.suggest("demo", TEXT, limit=5), 5)
    batch = client.suggest_batch("demo", [{"text": TEXT, "document_id": "a"}], limit=3)
    assert batch[0]["document_id"] == "a"
    document = learn_document("Zeppelin hangars of the north")
    client.learn("demo", [document])
    suggested = client.suggest("demo", "Zeppelin hangars", limit=100)
    assert "LK0005" in {one["uri"] for one in suggested}
    assert client.detect_language("The quick brown fox jumped", ["en", "fi"])["results"]


def test_a_project_shows_that_it_was_changed(writable: Running) -> None:
    before = writable.http.get(PROJECT).json()["modification_time"]

    def is_later() -> bool:
        body = [learn_document(f"Zeppelin {TEXT}", document_id="d", metadata={"n": before})]
        writable.http.post(f"{PROJECT}/learn", json=body, headers=BEARER)
        after = writable.http.get(PROJECT).json()["modification_time"]
        writable.http.delete("/api/v1/collections/demo/documents/d")
        return bool(after > before)

    eventually(is_later)
