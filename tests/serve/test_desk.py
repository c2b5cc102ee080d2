"""The desk over HTTP: dropped files, work lists that survive restarts, verdicts that eval reads."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("fastapi", reason="needs the extra `serve`")
pytest.importorskip("httpx", reason="needs the extra `client`")

import httpx
from starlette.testclient import TestClient
from typer.testing import CliRunner

from labelkin import Document, Indexer, read_corpus
from labelkin.cli.main import app as command_line
from labelkin.client import Client
from labelkin.desk import WorkItem
from labelkin.desk.worklists import WorkLists
from labelkin.exceptions import ServiceError
from labelkin.serve.app import create_app
from labelkin.serve.service import Service
from labelkin.serve.settings import TOKEN_VARIABLE, ServiceSettings
from labelkin.serve.uploads import safe_name
from labelkin.vocab import Concept, Vocabulary

TOKEN = "a-token"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
API = "/api/v1/collections/c"
CONCEPTS = [
    Concept("http://example.org/1", {"en": "Bread", "de": "Brot"}),
    Concept("http://example.org/2", {"en": "Oats", "de": "Hafer"}),
    Concept("http://example.org/3", {"en": "Barley"}),
]
RECORDS = [
    {"id": "r1", "title": "Baking bread", "abstract": "With rye.", "labels": ["Bread"]},
    {"id": "r2", "title": "<script>alert(1)</script>", "year": "1999"},
    {"id": "r3", "title": "Oats at dawn", "labels": [{"id": "X9", "name": "Unknown"}]},
]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("desk") / "c"
    with Indexer.create(path, Vocabulary(CONCEPTS), language="en") as indexer:
        indexer.add(
            Document(f"{name} {number}", f"On {name} {number}", labels=(name,))
            for number in range(6)
            for name in ("Bread", "Oats", "Barley")
        )
        indexer.warm_up(indexer.usable_methods())
    return path


@pytest.fixture
def collection(original: Path, tmp_path: Path) -> Path:
    return shutil.copytree(original, tmp_path / "c")


Start = Callable[..., TestClient]


@pytest.fixture
def start(collection: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with ExitStack() as stack:

        def enter(token: str = TOKEN, **settings: Any) -> TestClient:
            monkeypatch.setenv(TOKEN_VARIABLE, token)
            service = Service(ServiceSettings(collections={"c": collection}, **settings))
            client = TestClient(create_app(service), raise_server_exceptions=False)
            client.headers.update(BEARER)
            return stack.enter_context(client)

        yield enter


@pytest.fixture
def http(start: Start) -> TestClient:
    return start()


def lines(records: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def read(http: TestClient, name: str, content: bytes, **rest: Any) -> httpx.Response:
    return http.post(f"{API}/read", params={"name": name}, content=content, **rest)


def create(http: TestClient, records: list[dict[str, Any]] = RECORDS) -> dict[str, Any]:
    answer = http.post(f"{API}/worklists", params={"name": "new.jsonl"}, content=lines(records))
    assert answer.status_code == 201, answer.text
    return answer.json()


PUBMED = b"""<?xml version="1.0"?><PubmedArticleSet><PubmedArticle><MedlineCitation>
<PMID>7</PMID><Article><ArticleTitle>Baking bread</ArticleTitle></Article>
<MeshHeadingList><MeshHeading><DescriptorName UI="D1" MajorTopicYN="Y">Bread</DescriptorName>
</MeshHeading></MeshHeadingList></MedlineCitation></PubmedArticle></PubmedArticleSet>"""


@pytest.mark.parametrize(
    ("name", "content", "titles"),
    [
        ("a.jsonl", lines(RECORDS[:2]), ["Baking bread", "<script>alert(1)</script>"]),
        ("a.json", json.dumps(RECORDS[:2]).encode(), ["Baking bread", "<script>alert(1)</script>"]),
        ("a.json", json.dumps(RECORDS[0]).encode(), ["Baking bread"]),
        ("a.xml", PUBMED, ["Baking bread"]),
        ("a.xml.gz", gzip.compress(PUBMED, mtime=0), ["Baking bread"]),
        ("a.csv", b"id,title,labels\nr1,Baking bread,Bread|Oats\n", ["Baking bread"]),
        ("a.tsv", b"id\ttitle\tlabels\nr1\tBaking bread\tBread\n", ["Baking bread"]),
        ("a.jsonl.bz2", bz2.compress(lines(RECORDS[:1])), ["Baking bread"]),
        ("no extension", lines(RECORDS[:1]), ["Baking bread"]),
    ],
)
def test_files_of_all_kinds_are_read(
    http: TestClient, collection: Path, name: str, content: bytes, titles: list[str]
) -> None:
    before = sorted(path.name for path in collection.rglob("*"))
    answer = read(http, name, content)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert [record["title"] for record in body["records"]] == titles
    assert (body["total"], body["truncated"], body["skipped"]) == (len(titles), False, [])
    bread = {"id": "http://example.org/1", "name": "Bread"}
    assert body["records"][0]["labels"][0].items() >= bread.items()
    assert sorted(path.name for path in collection.rglob("*")) == before


def test_a_plain_text_is_one_record_with_the_id_of_its_text(http: TestClient) -> None:
    first, other = (
        read(http, name, "Über Brot.\nZweite Zeile.\n".encode()).json()["records"]
        for name in ("article.txt", "other.txt")
    )
    assert first == other
    assert first[0]["abstract"] == "Über Brot.\nZweite Zeile."
    assert first[0]["id"].startswith("text-")
    # The same id that the service gives a text without one.
    report = http.post(f"{API}/documents", json={"text": first[0]["abstract"]})
    assert report.json()["ids"] == [first[0]["id"]]


def test_reading_needs_no_token_and_takes_any_type(start: Start) -> None:
    http = start(token="", read_only=True)
    del http.headers["Authorization"]
    for kind in (
        "text/plain",
        "application/json",
        "image/png",
        "application/x-www-form-urlencoded",
    ):
        answer = read(http, "a.jsonl", lines(RECORDS), headers={"Content-Type": kind})
        assert answer.status_code == 200, (kind, answer.text)
        assert answer.json()["total"] == 3


def test_bad_records_are_listed_and_many_records_are_cut(start: Start) -> None:
    http = start(max_documents=2, max_characters=100)
    bad = b'{"id": "x"}\n{broken\n'
    long = lines([{"id": "long", "title": "t" * 101}])
    body = read(http, "a.jsonl", lines(RECORDS) + bad + long).json()
    assert [record["id"] for record in body["records"]] == ["r1", "r2"]
    assert (body["total"], body["truncated"]) == (3, True)
    assert [one["where"] for one in body["skipped"]] == ["line 4", "line 5", "record 4"]
    assert "101 characters; at most 100" in body["skipped"][-1]["problem"]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.jsonl", b"", "a.jsonl: the file is empty"),
        ("a.png", b"\x89PNG\r\n\x1a\n\x00\x00", "a.png: "),
        ("a.json", gzip.compress(lines(RECORDS), mtime=0)[:20], "a.json: damaged at its start: "),
        ("a.html", b"<!doctype html><html><body>Sign in</body></html>", "a.html: a web page"),
        ("a.xml", b"<PubmedArticleSet><Pubmed", "a.xml: broken XML after record 0"),
        (
            "marc.xml.gz",
            gzip.compress(b"<collection></collection>", mtime=0),
            "marc.xml.gz: XML, but not",
        ),
        ("../../etc/a.zip", b"PK\x03\x04" + b"\x00" * 50, "a.zip: "),
        (
            "voc.ttl",
            b"@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n:a a skos:Concept .\n",
            "voc.ttl: looks like a vocabulary",
        ),
    ],
)
def test_bad_files_are_one_line_without_paths(
    http: TestClient, name: str, content: bytes, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    for answer in (
        read(http, name, content),
        http.post(f"{API}/worklists", params={"name": name}, content=content),
    ):
        assert answer.status_code == 422, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        detail = answer.json()["detail"]
        assert detail.startswith(problem), detail
        assert "/tmp" not in detail and "labelkin-upload" not in detail and "--force" not in detail
        assert "\n" not in detail
    assert "labelkin-upload" not in caplog.text
    assert http.get(f"{API}/worklists").json() == {"worklists": []}


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("records.jsonl", "records.jsonl"),
        ("../../etc/passwd", "passwd"),
        ("/absolute/a.xml", "a.xml"),
        ("C:\\Users\\me\\a.csv", "a.csv"),
        ("..", "file"),
        ("", "file"),
        ("a/", "a"),
        ("a\x00b\n.txt", "ab.txt"),
        ("Ä" * 300 + ".jsonl", "Ä" * 97 + ".jsonl"),
    ],
)
def test_names_do_no_harm(http: TestClient, name: str, safe: str, tmp_path: Path) -> None:
    assert safe_name(name) == safe
    before = sorted(tmp_path.rglob("*"))
    answer = read(http, name, lines(RECORDS))
    assert answer.status_code == 200 and answer.json()["total"] == 3
    assert sorted(tmp_path.rglob("*")) == before


def test_bombs_and_large_files(start: Start) -> None:
    http = start(max_body=10_000)
    assert read(http, "a.jsonl", lines(RECORDS) * 100).status_code == 413
    bomb = gzip.compress(b"bread " * 100_000, mtime=0)
    answer = read(http, "a.txt.gz", bomb)
    assert len(bomb) < 10_000 and answer.status_code == 413, answer.text
    assert "too large when unpacked" in answer.json()["detail"]
    # A work list takes files of any size, but no text that has to be read as a whole.
    records = [{"id": str(number), "title": f"T {number}"} for number in range(1200)]
    for kind in ("application/json", "application/octet-stream"):
        answer = http.post(
            f"{API}/worklists",
            params={"name": "a.jsonl"},
            content=lines(records),
            headers={"Content-Type": kind},
        )
        assert answer.status_code == 201, answer.text
        assert answer.json()["total"] == 1200
    answer = http.post(f"{API}/worklists", params={"name": "a.txt.gz"}, content=bomb)
    assert answer.status_code == 422


def test_a_work_list_from_upload_to_removal(http: TestClient) -> None:
    made = create(http, [*RECORDS, {"id": "empty"}])
    assert made.pop("id") and made.pop("created")
    assert made == {
        "name": "new.jsonl",
        "total": 3,
        "pending": 3,
        "draft": 0,
        "done": 0,
        "skipped": 0,
        "position": 1,
        "unreadable": [
            {"where": "line 4", "problem": "no text: title and abstract are missing or empty"}
        ],
    }
    newer = create(http)
    first, second = http.get(f"{API}/worklists").json()["worklists"]
    assert first == newer
    path = f"{API}/worklists/{second['id']}"
    assert http.get(path).json() == second
    assert http.get(f"{path}/items", params={"offset": 1, "limit": 1}).json() == {
        "total": 3,
        "offset": 1,
        "items": [
            {
                "place": 2,
                "id": "r2",
                "title": "<script>alert(1)</script>",
                "status": "pending",
            }
        ],
    }
    assert http.get(f"{path}/items/1").json() == {
        "place": 1,
        "status": "pending",
        "record": {
            "id": "r1",
            "title": "Baking bread",
            "abstract": "With rye.",
            "labels": [{"id": "http://example.org/1", "name": "Bread"}],
        },
        "draft": None,
        "labels": None,
        "updated": None,
    }
    draft = {"chosen": [1, {"a": None}], "threshold": 0.25}
    saved = http.put(f"{path}/items/2", json={"status": "draft", "draft": draft}).json()
    assert saved["worklist"]["position"] == 2 and saved["worklist"]["draft"] == 1
    item = http.get(f"{path}/items/2").json()
    assert (item["status"], item["draft"]) == ("draft", draft)
    assert item["updated"] == saved["updated"]
    drafts = http.get(f"{path}/items", params={"status": "draft"}).json()
    assert (drafts["total"], [one["place"] for one in drafts["items"]]) == (1, [2])
    moved = http.put(f"{path}/position", json={"position": 3}).json()
    assert moved["position"] == 3
    assert http.delete(path).json() == {"removed": 3}
    assert http.get(path).status_code == http.delete(path).status_code == 404
    assert http.get(f"{path}/items").status_code == 404
    assert [one["id"] for one in http.get(f"{API}/worklists").json()["worklists"]] == [newer["id"]]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("items/4", {"status": "done"}, 404),
        ("items/0", {"status": "done"}, 422),
        ("items/x", {"status": "done"}, 422),
        ("items/99999999999999999999", {"status": "done"}, 422),
        ("items/1", {"status": "ready"}, 422),
        ("items/1", {"status": "done", "more": 1}, 422),
        ("items/1", {"status": "done", "labels": ["Bread"]}, 422),
        ("items/1", {"status": "done", "labels": [{"id": ""}]}, 422),
        ("items/1", {"status": "draft", "draft": "text"}, 422),
        ("items/1", {}, 422),
        ("position", {"position": 0}, 422),
        ("position", {"position": 4}, 404),
        ("position", {"position": "1"}, 422),
    ],
)
def test_bad_changes_change_nothing(
    http: TestClient, path: str, body: dict[str, Any], status: int
) -> None:
    made = create(http)
    answer = http.put(f"{API}/worklists/{made['id']}/{path}", json=body)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert http.get(f"{API}/worklists/{made['id']}").json() == made


def test_drafts_that_json_cannot_hold(http: TestClient) -> None:
    made = create(http)
    path = f"{API}/worklists/{made['id']}/items/1"
    for draft in ('{"a": NaN}', '{"a": "\\ud800"}', '{"a": ' + "[" * 400 + "]" * 400 + "}"):
        answer = http.put(
            path,
            content='{"status": "draft", "draft": ' + draft + "}",
            headers={"Content-Type": "application/json"},
        )
        assert answer.status_code == 200, answer.text
        assert http.get(path).status_code == 200
    assert http.put(path, content="x", headers={"Content-Type": "text/plain"}).status_code == 415


def test_export_has_all_records_with_final_headings(http: TestClient, tmp_path: Path) -> None:
    made = create(http)
    path = f"{API}/worklists/{made['id']}"
    final = [
        {"id": "http://example.org/3", "name": "Barley", "major": True},
        {"id": "http://example.org/2", "name": "Oats"},
    ]
    http.put(f"{path}/items/1", json={"status": "done", "draft": None, "labels": final})
    http.put(f"{path}/items/2", json={"status": "skipped"})
    expected = [
        ("r1", ("http://example.org/3", "http://example.org/2"), "done"),
        ("r2", (), "skipped"),
        ("r3", ("X9",), "pending"),
    ]
    for kind in ("jsonl", "json", "csv"):
        answer = http.get(f"{path}/export", params={"format": kind})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-disposition"].startswith(
            f'attachment; filename="new.{kind}"'
        )
        file = tmp_path / f"out.{kind}"
        file.write_bytes(answer.content)
        documents = list(read_corpus(file).documents())
        assert [(one.id, one.labels, one.metadata["status"]) for one in documents] == expected, kind
        assert documents[0].major_labels == ("http://example.org/3",)
        assert documents[1].metadata["year"] == "1999"
    answer = http.get(f"{path}/export", params={"format": "annif-tsv"})
    assert answer.text.splitlines()[0] == (
        "Baking bread ¤ With rye.\t<http://example.org/3> <http://example.org/2>"
    )
    assert http.get(f"{path}/export", params={"format": "xml"}).status_code == 422
    assert http.get(f"{API}/worklists/none/export").status_code == 404


def test_an_export_is_whole_or_an_error(http: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    made = create(http)
    whole = WorkLists.items_with_records

    def interrupted(lists: WorkLists, identifier: str) -> Iterator[WorkItem]:
        for item in whole(lists, identifier):
            yield item
            return

    monkeypatch.setattr(WorkLists, "items_with_records", interrupted)
    answer = http.get(f"{API}/worklists/{made['id']}/export")
    assert answer.status_code == 404, answer.text


def test_names_of_exports_are_harmless(http: TestClient) -> None:
    name = 'a"b\r\nX-Evil: 1; ü.jsonl'
    answer = http.post(f"{API}/worklists", params={"name": name}, content=lines(RECORDS))
    export = http.get(f"{API}/worklists/{answer.json()['id']}/export")
    assert "x-evil" not in export.headers
    assert export.headers["content-disposition"] == (
        "attachment; filename=\"a_bX-Evil_1_.jsonl\"; filename*=UTF-8''"
        + quote('a"bX-Evil: 1; ü.jsonl', safe="")
    )


def verdict(http: TestClient, identifier: str, *verdicts: dict[str, Any], **rest: Any) -> Any:
    document = {"id": identifier, "title": "On bread 1 and oats"}
    answer = http.post(
        f"{API}/verdicts", json={"document": document, "verdicts": list(verdicts), **rest}
    )
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_verdicts_are_stored_listed_and_exported(http: TestClient) -> None:
    bread, oats, barley = ({"id": f"http://example.org/{number}"} for number in (1, 2, 3))
    stored = verdict(
        http,
        "e1",
        {**bread, "verdict": "accepted", "score": 0.9, "rank": 1, "band": "accept"},
        {**oats, "verdict": "unneeded", "score": 0.4, "rank": 2, "band": None},
        method="rerank",
        generation=3,
        seconds=12.5,
        blind=True,
    )
    assert stored == {"stored": 2}
    verdict(http, "e1", {**barley, "verdict": "added"}, {**bread, "verdict": "rejected"})
    listed = http.get(f"{API}/verdicts").json()
    assert (listed["total"], listed["offset"]) == (2, 0)
    latest, first = listed["decisions"]
    assert (first["method"], first["generation"], first["seconds"]) == ("rerank", 3, 12.5)
    assert first["blind"] is True and first["time"] < latest["time"]
    assert first["verdicts"][0] == {
        "id": "http://example.org/1",
        "verdict": "accepted",
        "score": 0.9,
        "rank": 1,
        "band": "accept",
        "name": "Bread",
    }
    assert first["document"]["title"] == "On bread 1 and oats"
    page = http.get(f"{API}/verdicts", params={"offset": 1, "limit": 1}).json()
    assert page["decisions"] == [first]
    export = http.get(f"{API}/verdicts/export")
    assert export.headers["content-disposition"].startswith(
        'attachment; filename="verdicts-c.jsonl"'
    )
    (record,) = map(json.loads, export.text.splitlines())
    assert record["labels"] == ["http://example.org/3"]
    both = http.get(f"{API}/verdicts/export", params={"all": "true"}).text.splitlines()
    assert [json.loads(line)["labels"] for line in both] == [
        ["http://example.org/1"],
        ["http://example.org/3"],
    ]
    table = http.get(f"{API}/verdicts/export", params={"all": "true", "format": "csv"})
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert [(row["concept"][-1], row["verdict"], row["score"]) for row in rows] == [
        ("1", "accepted", "0.9"),
        ("2", "unneeded", "0.4"),
        ("3", "added", ""),
        ("1", "rejected", ""),
    ]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"document": {"id": "x"}}, "no text"),
        ({"document": {"title": "T" * 51}}, "characters"),
        ({"verdicts": [{"id": "a", "verdict": "maybe"}]}, "verdict"),
        ({"verdicts": [{"id": "a", "verdict": "added", "score": 2}]}, "score"),
        ({"verdicts": [{"id": "a", "verdict": "added", "rank": 0}]}, "rank"),
        ({"verdicts": [{"id": "a", "verdict": v} for v in ("added", "rejected")]}, "2 verdicts"),
        ({"seconds": -1}, "seconds"),
        ({"blind": "yes"}, "blind"),
        ({"generation": 2**60}, "generation"),
    ],
)
def test_bad_verdicts_are_refused(start: Start, change: dict[str, Any], problem: str) -> None:
    http = start(max_characters=50)
    body = {"document": {"id": "x", "title": "T"}, "verdicts": [], **change}
    answer = http.post(f"{API}/verdicts", json=body)
    assert answer.status_code in (413, 422), answer.text
    assert problem in answer.json()["detail"]
    assert http.get(f"{API}/verdicts").json()["total"] == 0


def test_eval_reads_exported_verdicts(http: TestClient, collection: Path, tmp_path: Path) -> None:
    verdict(http, "e1", {"id": "http://example.org/1", "verdict": "accepted"}, method="knn")
    verdict(http, "e2", {"id": "http://example.org/2", "verdict": "added"}, method="knn")
    (tmp_path / "verdicts.jsonl").write_bytes(http.get(f"{API}/verdicts/export").content)
    command = ["verdicts", str(collection), "-o", str(tmp_path / "again.jsonl")]
    result = CliRunner().invoke(command_line, command)
    assert result.exit_code == 0, result.output
    assert "Wrote 2 decisions" in result.output
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "verdicts.jsonl").read_bytes()
    files = [str(collection), str(tmp_path / "verdicts.jsonl")]
    result = CliRunner().invoke(command_line, ["eval", *files, "--json"])
    assert result.exit_code == 0, result.output
    assert "Evaluated 2 documents with labels" in result.output
    assert '"MiF"' in result.output


PRIVATE = (
    ("GET", "worklists"),
    ("GET", "worklists/x"),
    ("GET", "worklists/x/items"),
    ("GET", "worklists/x/items/1"),
    ("GET", "worklists/x/export"),
    ("GET", "verdicts"),
    ("GET", "verdicts/export"),
)
WRITES = (
    ("POST", "worklists"),
    ("DELETE", "worklists/x"),
    ("PUT", "worklists/x/items/1"),
    ("PUT", "worklists/x/position"),
    ("POST", "verdicts"),
)


@pytest.mark.parametrize(("method", "path"), [*PRIVATE, *WRITES])
def test_everything_else_needs_the_token(
    start: Start, collection: Path, method: str, path: str
) -> None:
    http = start()
    for header in ({"Authorization": "Bearer wrong"}, {"Authorization": ""}):
        answer = http.request(method, f"{API}/{path}", json={}, headers=header)
        assert answer.status_code == 401, answer.text
        assert "token" in answer.json()["detail"]
    answer = start(token="").request(method, f"{API}/{path}", json={}, headers=BEARER)
    assert answer.status_code == 403 and "LABELKIN_TOKEN" in answer.json()["detail"]
    assert not (collection / "desk.sqlite").exists()


def test_read_only_shows_drafts_and_refuses_writes(start: Start, collection: Path) -> None:
    http = start(read_only=True)
    for method, path in WRITES:
        answer = http.request(method, f"{API}/{path}", json={})
        assert answer.status_code == 403, answer.text
    assert http.get(f"{API}/worklists").json() == {"worklists": []}
    assert http.get(f"{API}/verdicts").json()["total"] == 0
    assert not (collection / "desk.sqlite").exists()


def test_a_damaged_desk_does_not_stop_suggestions(start: Start, collection: Path) -> None:
    (collection / "desk.sqlite").write_bytes(b"damaged " * 1000)
    http = start()
    answer = http.get(f"{API}/worklists")
    assert answer.status_code == 503
    detail = answer.json()["detail"]
    assert "desk.sqlite" in detail and "restore it from a backup" in detail
    assert str(collection) not in detail
    answer = http.post(f"{API}/suggest", json={"documents": [{"title": "Bread"}]})
    assert answer.status_code == 200 and answer.json()["results"][0]["suggestions"]


def test_every_endpoint_is_described_with_an_example(http: TestClient) -> None:
    described = http.get("/api/v1/openapi.json").json()
    prefix = "/api/v1/collections/{collection}/"
    paths = {
        path.removeprefix(prefix): operations
        for path, operations in described["paths"].items()
        if re.match(r"read|worklists|verdicts", path.removeprefix(prefix))
    }
    assert sum(len(one) for one in paths.values()) == 13
    for path, operations in paths.items():
        for method, operation in operations.items():
            assert operation["description"], path
            assert ("security" in operation) == (path != "read"), path
            content = operation.get("requestBody", {}).get("content", {})
            for kind, body in content.items():
                if kind == "application/json":
                    name = body["schema"]["$ref"].rpartition("/")[2]
                    assert described["components"]["schemas"][name]["examples"], name
                else:
                    assert body["example"], path
            assert (method in ("post", "put")) == bool(content), path


@contextmanager
def serving(collection: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`labelkin serve` as a process of its own, and its address."""
    command = [sys.executable, "-m", "labelkin", "serve", str(collection), "--port", "0", *options]
    log = collection.parent / f"log-{time.monotonic_ns()}"
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, TOKEN_VARIABLE: TOKEN},
        )
    try:
        end = time.monotonic() + 60
        while (match := re.search(r"at (http://[^ ]+:\d+)", log.read_text())) is None:
            assert process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        yield process, match[1]
    finally:
        # Gently: worker processes end with the one that started them.
        process.terminate()
        process.wait(60)


def test_drafts_and_position_survive_the_death_of_the_service(collection: Path) -> None:
    with (
        serving(collection) as (process, url),
        Client(url, token=TOKEN) as client,
    ):
        client.wait()
        worklist = client.add_worklist("c", "new.jsonl", lines(RECORDS)).id
        client.save_item("c", worklist, 2, "draft", draft={"chosen": ["x"]})
        client.save_item("c", worklist, 1, "done", labels=[{"id": "http://example.org/1"}])
        client.move("c", worklist, 3)
        assert client.add_verdicts("c", "A text", [{"id": "x", "verdict": "added"}]) == 1
        process.send_signal(signal.SIGKILL)
        process.wait()
    with (
        serving(collection, "--workers", "2") as (_, url),
        Client(url, token=TOKEN) as client,
    ):
        client.wait()
        for _ in range(6):
            # Either of the processes may answer.
            assert client.worklist("c", worklist).position == 3
            statuses = [one.status for one in client.worklist_items("c", worklist)]
            assert statuses == ["done", "draft", "pending"]
        assert client.worklist_item("c", worklist, 2).draft == {"chosen": ["x"]}
        for number in range(12):
            client.add_verdicts("c", f"Text {number}", [{"id": "x", "verdict": "rejected"}])
        assert len(list(client.verdicts("c"))) == 13


def test_the_client_covers_the_desk(http: TestClient) -> None:
    class Transport(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            request.read()
            path = request.url.raw_path.decode()
            answer = http.request(
                request.method, path, content=request.content, headers=dict(request.headers)
            )
            return httpx.Response(
                answer.status_code, headers={"content-type": "x"}, content=answer.content
            )

    with Client("http://testserver", token=TOKEN, transport=Transport()) as client:
        assert client.read("c", "a.jsonl", lines(RECORDS)).total == 3
        made = client.add_worklist("c", "a.jsonl", lines(RECORDS))
        assert client.worklists("c") == [made] == [client.worklist("c", made.id)]
        assert [one.place for one in client.worklist_items("c", made.id, status="pending")] == [
            1,
            2,
            3,
        ]
        saved = client.save_item("c", made.id, 1, "skipped")
        assert saved.worklist.skipped == 1
        assert client.worklist_item("c", made.id, 1).status == "skipped"
        exported = b"".join(client.export_worklist("c", made.id)).splitlines()
        assert len(exported) == 3
        assert client.remove_worklist("c", made.id) == 3
        with pytest.raises(ServiceError, match="no work list"):
            list(client.export_worklist("c", made.id))
        for number in (1, 2):
            document = Document("x", "A title", labels=("a",))
            verdicts = [{"id": "x", "verdict": "added", "rank": number}]
            assert client.add_verdicts("c", document, verdicts, method="knn") == 1
        assert [one.verdicts[0].rank for one in client.verdicts("c")] == [2, 1]
        assert len(b"".join(client.export_verdicts("c")).splitlines()) == 1
        both = b"".join(client.export_verdicts("c", format="csv", every=True)).splitlines()
        assert len(both) == 3


@pytest.mark.parametrize(
    "line",
    [
        r'{"id": "1", "title": "half", "more": ["\ud800", {"\udfff": "\ud800"}]}',
        '{"id": "1", "title": "numbers", "more": [NaN, 1e999, 12345678901234567890123]}',
        r'{"id": "1", "title": "names", "labels": [{"id": "a\ud800", "name": "\ud800"}, "b|c"]}',
        '{"id": "1", "title": "nested", "more": ' + "[" * 40 + "]" * 40 + "}",
        r'{"id": "1", "title": "\u0000\u202e", "text": "x", "fields": {"a": "b"}}',
    ],
)
def test_odd_records_come_through_everything(http: TestClient, line: str) -> None:
    answer = read(http, "a.jsonl", line.encode())
    assert answer.status_code == 200 and answer.json()["total"] == 1, answer.text
    made = http.post(f"{API}/worklists", params={"name": "a.jsonl"}, content=line.encode())
    assert made.status_code == 201, made.text
    path = f"{API}/worklists/{made.json()['id']}"
    assert http.get(f"{path}/items/1").status_code == 200
    for kind in ("jsonl", "json", "csv", "annif-tsv"):
        assert http.get(f"{path}/export", params={"format": kind}).status_code == 200
    record = http.get(f"{path}/items/1").json()["record"]
    answer = http.post(f"{API}/verdicts", json={"document": record, "verdicts": []})
    assert answer.status_code == 201, answer.text
    assert http.get(f"{API}/verdicts").status_code == 200
    assert http.get(f"{API}/verdicts/export").status_code == 200
    answer = http.post(
        f"{API}/documents", content=line.encode(), headers={"Content-Type": "application/x-ndjson"}
    )
    assert answer.status_code == 200 and answer.json()["added"] == 1, answer.text
    assert http.get(f"{API}/documents/1").status_code == 200
