"""The real server: slow clients, shutdown, worker processes, kill -9 under load."""

from __future__ import annotations

import json
import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Event, Lock

import httpx
import pytest

from labelkin.client import Client
from labelkin.exceptions import ConfigError
from labelkin.serve.server import listening_socket

from ..served import BEARER, TEXT, TOKEN, Running, copied, eventually, head, received, spawned
from .conftest import Start

DOCUMENTS = "/api/v1/collections/demo/documents"
ANNOTATE = "/api/v1/collections/demo/annotate"


# Slow and endless clients


@pytest.mark.parametrize(
    "begins",
    [b"", b"GET", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: "],
)
def test_a_head_that_stalls(start: Start, small: Path, begins: bytes) -> None:
    service = start(small, slow_seconds=0.3)
    answer = service.raw(begins)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"did not come in time" in answer


def test_the_head_of_a_second_request_that_stalls(start: Start, small: Path) -> None:
    service = start(small, slow_seconds=0.3)
    with service.connect() as connection:
        connection.sendall(head("GET", "/api/v1/health"))
        first = b""
        while not first.endswith(b"}"):
            first += connection.recv(65_536)
        connection.sendall(b"GET /v1/ HTTP/1.1\r\n")
        assert b"did not come in time" in received(connection)


def test_an_endless_head(live: Running) -> None:
    with live.connect() as connection:
        connection.sendall(b"GET /v1/ HTTP/1.1\r\nHost: x\r\n")
        answer = b""
        try:
            for number in range(10_000):
                connection.sendall(b"X-%d: %s\r\n" % (number, b"x" * 1000))
        except ConnectionError:
            pass
        else:
            pytest.fail("10 MB of headers were read")
        try:
            answer = received(connection)
        except ConnectionError:
            # What it had not read makes the server's system reset the connection.
            return
        assert b"too large" in answer


def test_requests_on_one_connection_after_another_and_at_once(live: Running) -> None:
    requests = head("GET", "/api/v1/health") * 50 + head("GET", "/v1/", "Connection: close")
    assert live.raw(requests).count(b"HTTP/1.1 200 OK") == 51


def test_a_client_that_does_not_read_is_cut_off_and_holds_no_thread(
    start: Start, small: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service = start(small, concurrency=1, slow_seconds=0.5)
    lines = b"".join(
        json.dumps({"title": TEXT, "n": number}).encode() + b"\n" for number in range(2000)
    )
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(20.0)
        connection.connect(("127.0.0.1", service.port))
        headers = ("Content-Type: application/x-ndjson", f"Content-Length: {len(lines)}")
        connection.sendall(head("POST", f"{ANNOTATE}?evidence=1", *headers) + lines)
        metrics = service.service.metrics
        eventually(lambda: metrics.active._value.get() == 1)
        # The only thread is free for others meanwhile.
        answer = service.http.post("/v1/projects/demo/suggest", data={"text": TEXT})
        assert answer.status_code == 200
        eventually(lambda: metrics.active._value.get() == 0)
        with pytest.raises(ConnectionError):
            while connection.recv(65_536):
                pass
            raise ConnectionError
    assert not [one for one in caplog.records if one.exc_info]


def test_a_client_that_sends_for_long_before_it_reads_is_not_cut_off(
    start: Start, small: Path
) -> None:
    """Many clients send a whole stream first, for longer than they may leave answers unread."""
    service = start(small, slow_seconds=1.5)
    parts = [
        b"".join(json.dumps({"id": f"{part}", "title": TEXT}).encode() + b"\n" for _ in range(100))
        for part in range(30)
    ]
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(20.0)
        connection.connect(("127.0.0.1", service.port))
        headers = (
            "Content-Type: application/x-ndjson",
            f"Content-Length: {sum(map(len, parts))}",
            "Connection: close",
        )
        connection.sendall(head("POST", f"{ANNOTATE}?evidence=1", *headers))
        for part in parts:
            connection.sendall(part)
            time.sleep(0.1)
        answer = received(connection)
    assert answer.endswith(b"0\r\n\r\n")
    # A chunk may end within a word.
    body = re.sub(rb"\r\n[0-9a-f]+\r\n", b"", answer)
    assert body.count(b'"suggestions"') == 3000


def test_an_early_answer_does_not_end_later_requests(start: Start, small: Path) -> None:
    """A body that is refused, but sent to its end, leaves the connection as it was."""
    service = start(small, token="", slow_seconds=0.4)
    lines = ("Content-Type: application/x-ndjson", "Content-Length: 4")
    with service.connect() as connection:
        connection.sendall(head("POST", DOCUMENTS, *lines) + b"{}")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 403 ")
        connection.sendall(b"\n\n")
        for _ in range(4):
            time.sleep(0.2)
            connection.sendall(head("GET", "/api/v1/health"))
            assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")


# Sockets


def test_a_port_that_is_taken() -> None:
    with (
        listening_socket("127.0.0.1", 0) as taken,
        pytest.raises(ConfigError, match=r"cannot listen at 127\.0\.0\.1, port \d+: .*--port"),
    ):
        listening_socket("127.0.0.1", taken.getsockname()[1])


@pytest.mark.parametrize("host", ["nowhere.invalid", "192.0.2.1", "not a host", "x" * 70])
def test_an_address_that_cannot_be_had(host: str) -> None:
    with pytest.raises(ConfigError, match="--host"):
        listening_socket(host, 0)


def test_clients_may_connect_as_soon_as_the_address_is_known() -> None:
    with listening_socket("127.0.0.1", 0) as listening:
        socket.create_connection(listening.getsockname(), timeout=5.0).close()


# Processes of their own


def is_closed(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5.0).close()
    except ConnectionRefusedError:
        return True
    return False


def test_running_requests_are_finished_before_the_end(small: Path, tmp_path: Path) -> None:
    with spawned(small, log=tmp_path / "log") as service, service.connect() as connection:
        headers = ("Content-Type: application/x-ndjson", "Transfer-Encoding: chunked")
        line = json.dumps({"title": TEXT}).encode() + b"\n"
        part = f"{len(line):x}\r\n".encode() + line + b"\r\n"
        connection.sendall(head("POST", f"{ANNOTATE}?limit=1", *headers) + part)
        answer = b""
        while TEXT.encode() not in answer:
            answer += connection.recv(65_536)
        service.process.send_signal(signal.SIGTERM)
        eventually(lambda: is_closed(service.port))
        connection.sendall(part + b"0\r\n\r\n")
        answer += received(connection)
        assert answer.count(TEXT.encode()) == 2
        assert answer.endswith(b"0\r\n\r\n")
        assert service.process.wait(20) == 0
    log = (tmp_path / "log").read_text(encoding="utf-8")
    assert "Stopped." in log
    assert "Traceback" not in log
    # One line of JSON for each request, no text, no token.
    lines = [json.loads(one) for one in log.splitlines() if one.startswith("{")]
    assert [one["path"] for one in lines if one["method"] == "POST"] == [ANNOTATE]
    assert TEXT not in log
    assert TOKEN not in log


def test_two_workers_and_a_client_that_sees_what_it_wrote(small: Path, tmp_path: Path) -> None:
    path = copied(small, tmp_path)
    with spawned(path, "--workers", 2, log=tmp_path / "log") as service:
        with Client(service.url, token=TOKEN) as client:
            for number in range(40):
                identifier, label = f"w{number}", ("LK0005", "LK0006")[number % 2]
                client.replace("demo", "one", {"title": f"Zeppelin {number}", "labels": [label]})
                (result,) = client.suggest("demo", "Zeppelin", method="knn", k=1).results
                assert [one.id for one in result.suggestions] == [label], identifier
        metrics = service.http.get("/metrics").text
        # Counted by both processes together.
        assert re.search(r"labelkin_written_documents_total\{.*replaced.*\} 39\.0", metrics)
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(30) == 0
    assert "Traceback" not in (tmp_path / "log").read_text(encoding="utf-8")


def test_every_acknowledged_write_survives_kill_9(small: Path, tmp_path: Path) -> None:
    """Four clients write until the process is killed; the same again after a restart."""
    path, log = copied(small, tmp_path), tmp_path / "log"
    expected: dict[str, list[str] | None] = {}
    lock, numbers = Lock(), count()

    def write(service: Running, stop: Event) -> None:
        """Put, correct or remove documents of one's own; what was answered is expected."""
        with httpx.Client(base_url=service.url, headers=BEARER, timeout=20.0) as http:
            while not stop.is_set():
                number = next(numbers)
                identifier, url = f"k{number}", f"{DOCUMENTS}/k{number}"
                record = {"title": f"Zeppelin {number}", "labels": ["LK0005"]}
                steps = [("PUT", record, ["LK0005"])]
                if number % 3 == 1:
                    steps.append(("PATCH", {"labels": ["LK0006"]}, ["LK0006"]))
                if number % 3 == 2:
                    steps.append(("DELETE", None, None))
                for method, body, outcome in steps:
                    with lock:
                        # Not known while it is under way.
                        expected.pop(identifier, None)
                    try:
                        answer = http.request(method, url, json=body)
                    except httpx.TransportError:
                        return
                    assert answer.status_code == 200, answer.text
                    with lock:
                        expected[identifier] = outcome

    def check(service: Running) -> None:
        for identifier, outcome in expected.items():
            answer = service.http.get(f"{DOCUMENTS}/{identifier}")
            if outcome is None:
                assert answer.status_code == 404, identifier
            else:
                assert [one["id"] for one in answer.json()["labels"]] == outcome, identifier

    for round_ in range(2):
        stop, before = Event(), len(expected)
        with spawned(path, log=log) as service, ThreadPoolExecutor(4) as threads:
            check(service)
            clients = [threads.submit(write, service, stop) for _ in range(4)]
            eventually(lambda before=before: len(expected) > before + 25, 30.0)
            service.process.kill()
            stop.set()
            for client in clients:
                client.result()
        assert round_ or expected
    with spawned(path, log=log) as service:
        check(service)
        near = service.http.post(
            "/api/v1/collections/demo/neighbours",
            json={"documents": [{"title": "Zeppelin"}], "k": 10_000},
        ).json()
    stored = {identifier for identifier, outcome in expected.items() if outcome is not None}
    assert stored <= {one["id"] for one in near["results"][0]["neighbours"]}
    assert "Traceback" not in log.read_text(encoding="utf-8")


def test_an_offer_of_http_2_is_ignored(live: Running) -> None:
    """Java's HTTP client sends one with every request; the body must not be lost for it."""
    body = b"text=" + TEXT.replace(" ", "+").encode()
    answer = live.raw(
        head(
            "POST",
            "/v1/projects/demo/suggest",
            "Connection: Upgrade, HTTP2-Settings, close",
            "Upgrade: h2c",
            "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
            "Content-Type: application/x-www-form-urlencoded",
            f"Content-Length: {len(body)}",
        )
        + body
    )
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert b'"results":[{' in answer
