"""Health, readiness, version, and the description of collections."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from labelkin import __version__
from labelkin.serve.catalogue import ServedCollection

from ..served import TEXT, Running, copied, eventually
from .conftest import Start

BASE = "/api/v1/collections/demo"


def test_health_and_version(live: Running) -> None:
    assert live.http.get("/api/v1/health").json() == {"status": "ok"}
    assert live.http.get("/api/v1/version").json() == {"name": "labelkin", "version": __version__}
    assert live.http.get("/api/v1/ready").json() == {"status": "ready", "problems": {}}


def test_requests_wait_until_models_are_loaded(
    start: Start, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, real = Event(), ServedCollection.warm_up

    def warm_up(self: ServedCollection) -> None:
        assert load.wait(20.0)
        real(self)

    monkeypatch.setattr(ServedCollection, "warm_up", warm_up)
    service = start(small, wait=False)
    ready = service.http.get("/api/v1/ready")
    assert (ready.status_code, ready.json()["status"]) == (503, "loading")
    assert service.http.get("/api/v1/health").status_code == 200
    assert "labelkin_ready 0.0" in service.http.get("/metrics").text
    calls: list[Callable[[], Any]] = [
        lambda: service.http.post("/v1/projects/demo/suggest", data={"text": TEXT}),
        lambda: service.http.post(f"{BASE}/suggest", json={"documents": [{"title": TEXT}]}),
        lambda: service.http.get("/v1/projects"),
        lambda: service.http.get(BASE),
    ]
    with ThreadPoolExecutor(len(calls)) as threads:
        answers = [threads.submit(call) for call in calls]
        eventually(lambda: service.service.metrics.active._value.get() == len(calls))
        assert not any(one.done() for one in answers)
        load.set()
        assert [one.result().status_code for one in answers] == [200] * len(calls)
    assert service.http.get("/api/v1/ready").status_code == 200


def test_requests_do_not_wait_for_ever(
    start: Start, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = Event()
    monkeypatch.setattr(ServedCollection, "warm_up", lambda _: load.wait(20.0))
    service = start(small, wait=False, timeout_seconds=0.2)
    answer = service.http.get("/v1/projects")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    load.set()


@pytest.mark.parametrize("damage", ["garbage", "empty", "gone"])
@pytest.mark.parametrize("kind", ["label-ae", "rerank"])
def test_a_damaged_model_costs_only_its_methods(
    start: Start, trained: Path, tmp_path: Path, kind: str, damage: str
) -> None:
    path = copied(trained, tmp_path)
    model = path / "models" / kind
    if not model.is_dir():
        pytest.skip(f"needs a trained {kind}")
    for file in model.iterdir():
        if file.name == "model.json":
            continue
        if damage == "gone":
            file.unlink() if file.is_file() else shutil.rmtree(file)
        elif file.is_file():
            file.write_bytes(b"garbage" if damage == "garbage" else b"")
    service = start(path)
    ready = service.http.get("/api/v1/ready").json()
    assert ready["status"] == "ready"
    assert f"demo:{kind}" in ready["problems"]
    (message,) = [one for one in service.http.get(BASE).json()["methods"] if one["name"] == kind]
    assert message["usable"] is False
    assert message["problem"]
    body = {"documents": [{"title": TEXT}], "method": kind}
    refused = service.http.post(f"{BASE}/suggest", json=body)
    assert refused.status_code == 503
    assert service.http.get(f"/v1/projects/demo:{kind}").json()["is_trained"] is False
    url = f"/v1/projects/demo:{kind}/suggest"
    assert service.http.post(url, data={"text": TEXT}).status_code == 503
    for method in ("knn", "lexical"):
        answer = service.http.post(f"/v1/projects/demo:{method}/suggest", data={"text": TEXT})
        assert answer.json()["results"]


def test_a_model_that_is_mended_is_used_again(start: Start, trained: Path, tmp_path: Path) -> None:
    path = copied(trained, tmp_path)
    model = path / "models" / "rerank"
    if not model.is_dir():
        pytest.skip("needs the extra `rerank`")
    model.rename(tmp_path / "aside")
    service = start(path)
    url = "/v1/projects/demo:rerank"
    assert service.http.get(url).json()["is_trained"] is False
    (tmp_path / "aside").rename(model)
    eventually(lambda: service.http.get(url).json()["is_trained"])
    answer = service.http.post(f"{url}/suggest", data={"text": TEXT})
    assert answer.json()["results"]


def test_collections(live: Running) -> None:
    listed = live.http.get("/api/v1/collections").json()["collections"]
    assert [one["name"] for one in listed] == ["demo", "small", "empty"]
    for one in listed:
        details = live.http.get(f"/api/v1/collections/{one['name']}").json()
        assert {key: details[key] for key in one} == one
        assert details["settings"]["suggest"]["method"] == one["method"]
        assert [method["project"] for method in one["methods"] if method["name"] == "knn"] == [
            f"{one['name']}:knn"
        ]
    assert listed[0]["documents"] == 400
    assert listed[0]["languages"] == {"en": 400}
    assert live.http.get("/api/v1/collections/nothere").status_code == 404
