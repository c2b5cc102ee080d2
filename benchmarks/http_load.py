"""Clients that post texts to a service one after another; a process of its own for benchmarks.

    python benchmarks/http_load.py < plan.json        # prints what it has measured as JSON

Raw sockets and requests that are made before the clock starts: the clients take little of the
processor that they share with the service. What they take is measured too.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

_TICKS = os.sysconf("SC_CLK_TCK")
_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"


@dataclass
class Plan:
    """What to ask, by how many clients, and for how long.

    `body` are the fields of a form (Annif's API) or of a JSON object (labelkin's own); the texts
    are added to them. `pids` are the processes of the service.
    """

    port: int
    path: str
    texts: str
    body: dict[str, Any]
    is_form: bool
    clients: int
    warm_up: float
    seconds: float
    pids: list[int] = field(default_factory=list)
    first: int = 0

    def requests(self) -> list[bytes]:
        """The requests for all texts."""
        return [self._request(title, abstract) for title, abstract in texts_of(Path(self.texts))]

    def _request(self, title: str, abstract: str) -> bytes:
        if self.is_form:
            kind, body = _FORM, urlencode({"text": f"{title} {abstract}", **self.body})
        else:
            document = {"title": title, "abstract": abstract}
            kind, body = _JSON, json.dumps({"documents": [document], **self.body})
        content = body.encode()
        head = (
            f"POST {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n"
            f"Content-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        return head.encode() + content


@dataclass
class Load:
    """A plan at work."""

    plan: Plan
    latencies: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    results: int = 0

    async def run(self) -> dict[str, Any]:
        """Warm up, measure, and wait for the last answers."""
        plan, requests = self.plan, self.plan.requests()
        self._starts = time.perf_counter() + plan.warm_up
        self._ends = self._starts + plan.seconds
        clients = [
            asyncio.create_task(self._client(_turns(requests, plan.first + number, plan.clients)))
            for number in range(plan.clients)
        ]
        await asyncio.sleep(plan.warm_up)
        server, own, started = cpu_seconds(plan.pids), time.process_time(), time.perf_counter()
        await asyncio.sleep(plan.seconds)
        server, own = cpu_seconds(plan.pids) - server, time.process_time() - own
        seconds = time.perf_counter() - started
        await asyncio.gather(*clients)
        latencies = sorted(self.latencies)
        count = len(latencies)
        return {
            "requests": count,
            "errors": len(self.errors),
            "first errors": self.errors[:3],
            "empty": count - self.results,
            "per second": count / seconds,
            **{f"p{share}": 1e3 * percentile(latencies, share) for share in (50, 95, 99)},
            "cpu": 1e3 * server / count if count else 0.0,
            "server cores": server / seconds,
            "client cores": own / seconds,
        }

    async def _client(self, requests: Iterator[bytes]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.plan.port)
        try:
            while time.perf_counter() < self._ends:
                started = time.perf_counter()
                writer.write(next(requests))
                status, body = await _answer(reader)
                ended = time.perf_counter()
                if self._starts <= ended <= self._ends:
                    self.latencies.append(ended - started)
                    # Both kinds of answers have the names of headings.
                    self.results += b'"uri"' in body or b'"score"' in body
                    if status != 200:
                        self.errors.append(f"{status} {body[:200]!r}")
        except (OSError, asyncio.IncompleteReadError) as error:
            self.errors.append(repr(error))
        finally:
            writer.close()


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = next(
        (int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0
    )
    return int(head[9:12]), await reader.readexactly(length)


def _turns(requests: Sequence[bytes], first: int, step: int) -> Iterator[bytes]:
    """Every `step`th request from `first` on, without end."""
    while True:
        yield requests[first % len(requests)]
        first += step


def texts_of(path: Path) -> list[tuple[str, str]]:
    """Titles and abstracts of records in BioASQ's JSON."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        articles = json.load(file)["articles"]
    return [(one.get("title") or "", one.get("abstractText") or "") for one in articles]


def percentile(values: Sequence[float], percent: float) -> float:
    """A percentile of sorted values; 0 of none."""
    return values[min(int(len(values) * percent / 100), len(values) - 1)] if values else 0.0


def cpu_seconds(pids: Sequence[int]) -> float:
    """CPU time that processes have used until now."""
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


if __name__ == "__main__":
    print(json.dumps(asyncio.run(Load(Plan(**json.load(sys.stdin))).run())))
