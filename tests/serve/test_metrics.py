"""Figures for Prometheus."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from ..served import TEXT, Running, eventually
from .conftest import Start


def value(service: Running, name: str, **labels: str) -> float:
    text = service.http.get("/metrics").text
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def test_requests_documents_and_writes_are_counted(start: Start) -> None:
    service = start()
    for _ in range(3):
        service.http.post("/v1/projects/demo/suggest", data={"text": TEXT})
    service.http.post("/v1/projects/nothere/suggest", data={"text": TEXT})
    service.http.get("/no/such/path")
    base = "/api/v1/collections/demo"
    service.http.post(f"{base}/suggest", json={"documents": [{"title": TEXT}] * 5})
    service.http.put(f"{base}/documents/a", json={"title": "x"})
    service.http.patch(f"{base}/documents/a", json={"labels": ["LK0005"]})
    service.http.delete(f"{base}/documents/a")
    route = "/v1/projects/{project_id}/suggest"
    requests = "labelkin_requests_total"
    eventually(lambda: value(service, requests, method="DELETE") == 1)
    assert value(service, requests, route=route, status="200") == 3
    assert value(service, requests, route=route, status="404") == 1
    assert value(service, requests, route="unmatched") == 1
    assert value(service, "labelkin_request_seconds_count", route=route) == 4
    assert value(service, "labelkin_suggested_documents_total", method="knn") == 8
    for kind in ("added", "corrected", "removed"):
        assert value(service, "labelkin_written_documents_total", kind=kind) == 1
    assert value(service, "labelkin_ready") == 1
    assert value(service, "labelkin_running_requests") == 0
    assert value(service, "labelkin_collection_documents", collection="demo") == 60
    assert value(service, "labelkin_active_requests") == 1


def test_requests_are_counted_by_whole_routes(live: Running) -> None:
    base, prefix = "/api/v1/collections/small", "/api/v1/collections/{collection}"
    routes = {
        ("POST", f"{base}/suggest"): f"{prefix}/suggest",
        ("GET", f"{base}/documents/1"): f"{prefix}/documents/{{identifier:path}}",
        ("HEAD", f"{base}/documents"): f"{prefix}/documents",
        ("GET", base): prefix,
    }
    for (method, path), route in routes.items():
        labels = {"method": method, "route": route}
        before = value(live, "labelkin_requests_total", **labels)
        live.http.request(method, path)
        eventually(
            lambda before=before, labels=labels: (
                value(live, "labelkin_requests_total", **labels) == before + 1
            )
        )


def test_both_addresses_and_the_media_type(live: Running) -> None:
    for path in ("/metrics", "/api/v1/metrics"):
        answer = live.http.get(path)
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert "labelkin_info{version=" in answer.text


def test_ids_and_texts_make_no_new_series(live: Running) -> None:
    def series() -> int:
        lines = live.http.get("/metrics").text.splitlines()
        return sum(one.startswith("labelkin_requests_total{") for one in lines)

    def ask(number: int) -> None:
        live.http.get(f"/no/{number}")
        live.http.get(f"/api/v1/collections/demo/documents/{number}")
        live.http.get(f"/api/v1/collections/{number}")

    ask(0)
    live.http.get("/metrics")
    before = series()
    for number in range(1, 20):
        ask(number)
    assert series() == before
