"""Corrections that count at the next request, whoever sends it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import httpx

from ..served import BEARER, Running
from .conftest import Start

BASE = "/api/v1/collections/demo"
LABELS = ("LK0005", "LK0006")


def test_corrections_count_at_the_next_request_of_anyone(start: Start) -> None:
    """Each round writes on one connection and asks on another, while another asks all the time."""
    service = start()
    stop = Event()
    rounds = 20

    def load() -> int:
        asked = 0
        with httpx.Client(base_url=service.url, timeout=30.0) as http:
            while not stop.is_set():
                answer = http.post("/v1/projects/demo/suggest", data={"text": "potato storage"})
                assert answer.status_code == 200, answer.text
                asked += 1
        return asked

    def correct(word: str) -> int:
        """Every way to write; after each, a suggestion from another connection must show it."""
        identifier, seen = f"doc-{word}", 0
        with (
            httpx.Client(base_url=service.url, headers=BEARER, timeout=30.0) as writer,
            httpx.Client(base_url=service.url, timeout=30.0) as reader,
        ):
            for number in range(rounds):
                label = LABELS[number % 2]
                if number % 3 == 0:
                    body = {"title": word, "labels": [label]}
                    answer = writer.put(f"{BASE}/documents/{identifier}", json=body)
                elif number % 3 == 1:
                    body = {"labels": [label]}
                    answer = writer.patch(f"{BASE}/documents/{identifier}", json=body)
                else:
                    learnt = {
                        "text": word,
                        "document_id": identifier,
                        "subjects": [{"uri": label}],
                    }
                    answer = writer.post("/v1/projects/demo/learn", json=[learnt])
                assert answer.status_code in (200, 204), answer.text
                if number % 2:
                    results = reader.post(
                        "/v1/projects/demo:knn/suggest", data={"text": word}
                    ).json()["results"]
                    ids = [one["uri"] for one in results]
                else:
                    body = {"documents": [{"title": word}], "method": "knn", "limit": 5}
                    result = reader.post(f"{BASE}/suggest", json=body).json()["results"][0]
                    ids = [one["id"] for one in result["suggestions"]]
                assert ids == [label], (word, number)
                seen += 1
        return seen

    with ThreadPoolExecutor(4) as threads:
        loads = [threads.submit(load)]
        words = ("zeppelin", "dirigible", "montgolfier")
        counts = [threads.submit(correct, word) for word in words]
        try:
            assert sum(one.result() for one in counts) == rounds * len(words)
        finally:
            stop.set()
        assert all(one.result() > 0 for one in loads)


def test_a_removed_document_is_no_evidence_any_more(start: Start) -> None:
    service = start()
    for _ in range(20):
        service.http.put(f"{BASE}/documents/z", json={"title": "zeppelin", "labels": ["LK0005"]})
        body = {"documents": [{"title": "zeppelin"}], "k": 1}
        near = service.http.post(f"{BASE}/neighbours", json=body).json()["results"][0]
        assert [one["id"] for one in near["neighbours"]] == ["z"]
        service.http.delete(f"{BASE}/documents/z")
        near = service.http.post(f"{BASE}/neighbours", json=body).json()["results"][0]
        assert near["neighbours"] == []


def test_answers_name_a_generation_that_has_what_was_written(writable: Running) -> None:
    generation = 0
    for number in range(5):
        report = writable.http.put(
            f"{BASE}/documents/g", json={"title": f"zeppelin {number}", "labels": ["LK0005"]}
        ).json()
        assert report["generation"] > generation
        generation = report["generation"]
        body = {"documents": [{"title": "zeppelin"}], "generation": generation}
        assert writable.http.post(f"{BASE}/suggest", json=body).json()["generation"] >= generation
