"""A thousand malformed requests: each is refused, and the service is as it was."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ..served import TEXT, Running, head

BASE = "/api/v1/collections/demo"
VERBS = ("suggest", "compare", "explain", "neighbours", "evaluate")
FORM = "application/x-www-form-urlencoded"
VALUES: list[Any] = [
    None,
    True,
    -1,
    2**70,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "\ud800",
    "\x00",
    "x" * 10_000,
    [],
    [[]],
    {},
    {"\ud800": "\ud800"},
    {"": {"": {}}},
]
BROKEN_JSON = [
    b"",
    b"{",
    b"[",
    b'{"documents": [}',
    b"nul",
    b"'a'",
    b'{"a": 1}{"b": 2}',
    b"\xff\xfe\x00",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"9" * 10_000,
    b'"' + b"x" * 100_000,
    b'{"documents": [{"title": "\\u12"}]}',
]
PATHS = [
    "/..",
    "/../../etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/v1/%2e%2e/%2e%2e/etc/passwd",
    "/v1/projects/../../../etc/passwd",
    "/v1/projects/..%2f..%2fetc%2fpasswd",
    f"{BASE}/documents/../../../../etc/passwd",
    f"{BASE}/documents/%2e%2e%2f%2e%2e%2fmanifest.json",
    f"{BASE}/concepts/..%2f..%2f..%2flabelkin.toml",
    "/api/v1/collections/../collections/../..",
    "/api/v1/collections/%2e%2e",
    "/api/v1/collections/..%5c..%5cetc",
    "/api/v1/collections/demo%00",
    "/api/v1/collections/demo%2fdocuments",
    "/static/../../etc/passwd",
    "/%00",
    "/%ff%fe",
    "/%zz",
    "/v1/projects/%F0%9F%98%80",
    "/" + "a/" * 2000,
    "/v1/projects/" + "x" * 20_000,
    "/.git/config",
    "/v1/projects?%ff=%zz&a=b&a=c&=",
]
BROKEN_HTTP = [
    b"\r\n\r\n\r\n\r\nx\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1 extra\r\n\r\n",
    b"BREW /v1/ HTTP/1.1\r\n\r\n",
    b"CONNECT example.org:443 HTTP/1.1\r\n\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /v1/ HTTP/1.1\r\nNo colon\r\n\r\n",
    b"GET /v1/ HTTP/1.1\r\nBad\x00Name: x\r\n\r\n",
    b"GET /v1/ HTTP/1.1\r\nName: bad\x00value\r\n\r\n",
    b"POST /v1/ HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"POST /v1/ HTTP/1.1\r\nContent-Length: 1e3\r\n\r\n",
    b"POST /v1/ HTTP/1.1\r\nContent-Length: " + b"9" * 40 + b"\r\n\r\n",
    b"POST /v1/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    b"POST /v1/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"POST /v1/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /v1/ HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\nx",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"\x00" * 100,
    b"SSH-2.0-OpenSSH_9.0\r\n",
    b"GET /v1/ HTTP/1.1\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
]


def request(method: str, path: str, body: bytes = b"", kind: str = "", *headers: str) -> bytes:
    lines = [*headers, "Connection: close", f"Content-Length: {len(body)}"]
    if kind:
        lines.append(f"Content-Type: {kind}")
    return head(method, path, *lines) + body


def wrong_body(rng: random.Random) -> bytes:
    """A JSON body of which one part at least cannot be right."""
    right: dict[str, Any] = {"documents": [{"title": TEXT}], "document": {"title": TEXT}}
    wrong = rng.choice(("documents", "document", "limit", "k", "methods", "language", "\ud800"))
    body = {**right, "headings": ["Potatoes"], wrong: rng.choice(VALUES), "no such key": 1}
    return json.dumps(body).encode()


def malformed(seed: int) -> Iterator[bytes]:
    """Malformed requests without end."""
    rng = random.Random(seed)
    kinds = ("application/json", FORM, "text/plain", "application/x-ndjson", "", "\xff", "/;=")
    verb = lambda: f"{BASE}/{rng.choice(VERBS)}"  # noqa: E731
    makers = [
        lambda: request("POST", verb(), rng.choice(BROKEN_JSON), "application/json"),
        lambda: request("POST", verb(), wrong_body(rng), "application/json"),
        lambda: request("POST", verb(), json.dumps(rng.choice(VALUES)).encode(), kinds[0]),
        lambda: request("POST", verb(), wrong_body(rng), rng.choice(kinds[1:])),
        lambda: request(
            "POST", "/v1/projects/demo/suggest-batch", rng.choice(BROKEN_JSON), kinds[0]
        ),
        lambda: request("POST", "/v1/projects/demo/suggest-batch", rng.randbytes(50), kinds[0]),
        lambda: request("POST", "/v1/projects/demo/suggest", b"limit=" + rng.randbytes(9), FORM),
        lambda: request("POST", "/v1/detect-language", wrong_body(rng), kinds[0]),
        lambda: request("GET", rng.choice(PATHS)),
        lambda: request(rng.choice(("DELETE", "PATCH", "PUT", "TRACE", "LOCK")), "/v1/projects"),
        lambda: request(
            "PUT", f"{BASE}/documents/a", wrong_body(rng), kinds[0], "Authorization: x"
        ),
        lambda: request("POST", verb(), b"{}", kinds[0], "Content-Encoding: gzip", "Expect: x"),
        lambda: request("GET", f"{BASE}/concepts?limit={rng.choice(('-1', 'x', '9' * 40, 'NaN'))}"),
        lambda: rng.choice(BROKEN_HTTP),
        lambda: rng.randbytes(200) + b"\r\n\r\n",
    ]
    while True:
        yield rng.choice(makers)()


def health(live: Running) -> list[Any]:
    return [
        live.http.post("/v1/projects/demo/suggest", data={"text": TEXT}).json(),
        live.http.get("/api/v1/ready").json(),
        live.http.get(BASE).json(),
    ]


@pytest.mark.parametrize("seed", [0])
def test_a_thousand_malformed_requests(
    live: Running, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    before = health(live)
    requests = [one for one, _ in zip(malformed(seed), range(1000), strict=False)]
    with caplog.at_level(logging.WARNING), ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(live.raw, requests))
    closed = 0
    for sent, answer in zip(requests, answers, strict=True):
        if not answer:
            closed += 1
            continue
        status = int(answer.split(b" ", 2)[1])
        # A path with dots in it may lead to something that is there, a query may be ignored.
        if sent.startswith(b"GET ") and status in (200, 307):
            assert b"root:" not in answer
            continue
        assert 400 <= status < 500, (sent[:300], answer[:500])
        assert b"Traceback" not in answer
    assert closed < 100
    assert not [one for one in caplog.records if one.exc_info or one.levelno >= logging.ERROR]
    assert health(live) == before


def test_no_path_leads_to_a_file(live: Running) -> None:
    for path in PATHS:
        answer = live.raw(request("GET", path))
        assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 307", b"HTTP/1.1 200")), path
        assert b"root:" not in answer
        assert b"labelkin-collection" not in answer
