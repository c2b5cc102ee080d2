"""Streams of documents: JSON Lines in and out at the same time."""

from __future__ import annotations

import asyncio
import json
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labelkin.serve.streams import _Spool

from ..runtime_data import HAS_PROC, resident_bytes
from ..served import TEXT, Running, eventually, head
from .conftest import Start

ANNOTATE = "/api/v1/collections/demo/annotate"
TYPE = "Content-Type: application/x-ndjson"
LINES = {"Content-Type": "application/x-ndjson"}


def line(record: Any) -> bytes:
    return json.dumps(record).encode() + b"\n"


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def answers(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(one) for one in content.splitlines()]


class Reader:
    """Reads the head of a chunked answer, then one line after another."""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rb")

    def status(self) -> int:
        status = int(self._file.readline().split()[1])
        while self._file.readline().strip():
            pass
        return status

    def chunk(self) -> bytes:
        """The next chunk; nothing at the end of the answer or of the connection."""
        size = self._file.readline().strip()
        data = self._file.read(int(size or b"0", 16))
        self._file.readline()
        return data

    def rest(self) -> bytes:
        return b"".join(iter(self.chunk, b""))

    def close(self) -> None:
        self._file.close()


def test_a_line_for_each_line_in_the_same_order(live: Running) -> None:
    def lines() -> Iterator[bytes]:
        for number in range(3000):
            yield b"{broken\n" if number % 100 == 7 else line({"id": f"{number}", "title": TEXT})

    answer = live.http.post(f"{ANNOTATE}?limit=2", content=lines(), headers=LINES)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/x-ndjson"
    results = answers(answer.content)
    assert len(results) == 3000
    for number, one in enumerate(results):
        if number % 100 == 7:
            assert one["line"] == number + 1
            assert "broken JSON" in one["error"]
        else:
            assert one["id"] == f"{number}"
            assert len(one["suggestions"]) == 2


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n\n \n", []),
        (b'{"id": "a", "title": "x"}', ["a"]),
        (b'\n{"id": "a", "title": "x"}\r\n\n{"id": "b"}\n', ["a", "b"]),
        (b'{"id": "\\ud800", "title": "x"}\n5\n{"id": "c", "title": "\\ud800"}', [1, 2, "c"]),
        (b'\xff\n{"id": "b", "title": "\xff"}', [1, "b"]),
        (b"[" * 5000 + b"\n" + b'{"id":' + b"9" * 5000 + b"}\n[]\nnull\n", [1, 2, 3, 4]),
    ],
)
def test_odd_lines(live: Running, content: bytes, expected: list[str | int]) -> None:
    answer = live.http.post(ANNOTATE, content=content, headers=LINES)
    results = answers(answer.content)
    assert [one["line"] if "error" in one else one["id"] for one in results] == expected


def test_answers_are_those_of_suggest(live: Running) -> None:
    asked = {"method": "knn", "limit": 4, "language": "de", "evidence": True}
    streamed = live.http.post(
        ANNOTATE, params=asked, content=line({"title": TEXT}), headers=LINES
    ).json()
    single = live.http.post(
        "/api/v1/collections/demo/suggest", json={"documents": [{"title": TEXT}], **asked}
    ).json()
    assert streamed == single["results"][0]


def test_a_client_may_wait_for_each_answer(live: Running) -> None:
    with live.connect() as connection:
        connection.sendall(head("POST", ANNOTATE, TYPE, "Transfer-Encoding: chunked"))
        reader = Reader(connection)
        for number in range(20):
            connection.sendall(chunk(line({"id": f"{number}", "title": TEXT})))
            if not number:
                assert reader.status() == 200
            assert json.loads(reader.chunk())["id"] == f"{number}"
        connection.sendall(b"0\r\n\r\n")
        assert reader.rest() == b""
        reader.close()


def test_a_client_may_send_everything_before_it_reads(live: Running) -> None:
    body = b"".join(line({"id": f"{number}", "title": TEXT}) for number in range(3000))
    with live.connect() as connection:
        headers = (TYPE, f"Content-Length: {len(body)}")
        # Answers with evidence are far larger than what the sockets hold.
        connection.sendall(head("POST", f"{ANNOTATE}?limit=3&evidence=1", *headers) + body)
        reader = Reader(connection)
        assert reader.status() == 200
        content = reader.rest()
        reader.close()
    assert len(content) > 4_000_000
    assert [one["id"] for one in answers(content)] == [str(number) for number in range(3000)]


@pytest.mark.parametrize("sends", [b"x" * 100_000, b"x" * 100_000 + b"\n", None])
def test_a_stream_that_cannot_go_on_says_so_in_its_last_line(
    start: Start, small: Path, sends: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    """A line that is too long, or a client that stalls: after what came before is answered."""
    service = start(small, max_characters=1000, slow_seconds=0.5)
    with service.connect() as connection:
        connection.sendall(head("POST", ANNOTATE, TYPE, "Transfer-Encoding: chunked"))
        connection.sendall(chunk(line({"id": "a"}) + line({"id": "b"}) + (sends or b"")))
        reader = Reader(connection)
        assert reader.status() == 200
        *results, last = answers(reader.rest())
        reader.close()
    assert [one["id"] for one in results] == ["a", "b"]
    assert last["line"] == 3
    assert ("line 3 is longer" if sends else "no part of the body came") in last["error"]
    # uvicorn logs a line about the answer that was not ended.
    assert not [one for one in caplog.records if one.exc_info]


def test_a_text_that_is_too_long_costs_only_its_line(start: Start, small: Path) -> None:
    service = start(small, max_characters=1000)
    records = [{"id": "a", "title": "x"}, {"id": "b", "title": "x" * 1001}, {"id": "c"}]
    content = b"".join(map(line, records))
    results = answers(service.http.post(ANNOTATE, content=content, headers=LINES).content)
    assert [one.get("id") for one in results] == ["a", None, "c"]
    assert "document 2 has 1001 characters" in results[1]["error"]


def test_a_client_that_goes_away_leaves_nothing_behind(
    start: Start, small: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service = start(small)
    with service.connect() as connection:
        connection.sendall(head("POST", ANNOTATE, TYPE, "Content-Length: 1000000"))
        connection.sendall(line({"title": TEXT}))
        reader = Reader(connection)
        assert reader.status() == 200
        assert reader.chunk()
        reader.close()
    active = service.service.metrics.active
    eventually(lambda: active._value.get() == 0)
    assert not [one for one in caplog.records if one.exc_info]


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        ("limit=-1", LINES, 422),
        ("limit=x", LINES, 422),
        ("threshold=nan", LINES, 422),
        ("method=nope", LINES, 422),
        ("language=xx", LINES, 422),
        ("representation=lsa", LINES, 422),
        ("generation=1000000", LINES, 422),
        ("method=rerank", LINES, 503),
        ("", {"Content-Type": "application/json"}, 415),
        ("", {}, 415),
        ("", {"Content-Type": "application/jsonl"}, 200),
    ],
)
def test_what_is_wrong_with_the_request_is_an_error_before_the_first_line(
    live: Running, query: str, headers: dict[str, str], status: int
) -> None:
    url = f"/api/v1/collections/small/annotate?{query}"
    answer = live.http.post(url, content=line({"title": "x"}), headers=headers)
    assert answer.status_code == status, answer.text
    if status >= 400:
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.skipif(not HAS_PROC, reason="needs /proc")
def test_memory_does_not_grow_with_the_stream(live: Running) -> None:
    padding = "x" * 20_000

    def lines(count: int) -> Iterator[bytes]:
        for number in range(count):
            yield line({"id": str(number), "title": TEXT, "padding": padding})

    def send(count: int) -> None:
        with live.http.stream(
            "POST", f"{ANNOTATE}?limit=1", content=lines(count), headers=LINES
        ) as answer:
            assert sum(1 for _ in answer.iter_lines()) == count

    send(300)
    before = resident_bytes()
    send(3000)
    # 60 MB were sent.
    assert resident_bytes() - before < 30_000_000


def test_the_spool_gives_back_what_was_written() -> None:
    async def main() -> None:
        with tempfile.SpooledTemporaryFile(max_size=1000) as file:
            spool = _Spool(file)
            expected = b"".join(bytes([number % 251]) * number for number in range(400))

            async def write() -> None:
                for number in range(400):
                    spool.write(bytes([number % 251]) * number)
                    if number % 3 == 0:
                        await asyncio.sleep(0)
                spool.end()

            writer = asyncio.create_task(write())
            parts = []
            while part := await spool.next():
                parts.append(part)
            await writer
            assert b"".join(parts) == expected
            assert await spool.next() == b""

    asyncio.run(main())


def test_nothing_is_read_after_the_answer(live: Running) -> None:
    """A refused stream does not break the connection for the next request."""
    body = b"5\r\nhello\r\n0\r\n\r\n"
    first = head("POST", "/v1/projects/nothere/suggest", "Transfer-Encoding: chunked") + body
    answer = live.raw(first + head("GET", "/v1/", "Connection: close"))
    assert answer.count(b"HTTP/1.1 ") == 2
    assert b"HTTP/1.1 200 OK" in answer
