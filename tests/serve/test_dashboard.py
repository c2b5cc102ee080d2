from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

pytest.importorskip("fastapi", reason="needs the extra `serve`")
pytest.importorskip("lightgbm", reason="needs the extra `rerank`")

from starlette.testclient import TestClient

from labelkin import Indexer
from labelkin.client import Client
from labelkin.demo import demo_concepts, demo_documents
from labelkin.exceptions import ServiceError
from labelkin.messages import Dashboard, LatentMapMessage, as_json
from labelkin.plots import latent
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.serve.app import create_app
from labelkin.serve.service import Service
from labelkin.serve.settings import TOKEN_VARIABLE, ServiceSettings
from labelkin.vocab import Vocabulary

from ..plots.plot_data import save_autoencoder

TOKEN = "the token"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
PLACE = "/api/v1/collections/demo"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection with a reranker, and without a label autoencoder."""
    path = tmp_path_factory.mktemp("dashboard") / "c"
    with Indexer.create(path, Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(200, 0))
        indexer.train_reranker(settings=RerankTrainingSettings(rounds=5, linear=False, threads=1))
    return path


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "c")


@pytest.fixture
def service(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    settings = ServiceSettings(collections={"demo": path}, concurrency=2)
    with TestClient(create_app(Service(settings))) as client:
        yield client


def record(number: int) -> dict[str, object]:
    document = list(demo_documents(number + 1, 0))[number]
    return {"id": document.id, "title": document.title, "labels": list(document.labels)}


def test_a_collection_in_figures(service: TestClient, path: Path) -> None:
    answer = service.get(f"{PLACE}/dashboard")
    assert answer.status_code == 200
    found = answer.json()
    with Indexer.open(path) as indexer:
        info = indexer.info()
        evaluation = indexer.latest_evaluation()
    assert evaluation is not None
    assert found["documents"] == 200
    assert found["concepts"] == info.concepts
    assert found["concepts_used"] == info.labels_used == found["frequencies"]["at_least"]["1"]
    assert found["languages"] == {"en": 200}
    assert found["per_document"] == {
        "mean": pytest.approx(info.labels_per_document_mean, abs=1e-4),
        "median": info.labels_per_document_median,
        "max": info.labels_per_document_max,
    }
    points = found["frequencies"]["points"]
    assert points[0][0] == 1
    assert points[-1][0] == info.labels_used
    assert [documents for _, documents in points] == sorted((d for _, d in points), reverse=True)
    assert set(found["frequencies"]["at_least"]) == {"1000", "100", "10", "1"}
    assert found["evaluation"]["source"] == "training"
    assert found["evaluation"]["method"] == "rerank"
    assert found["evaluation"]["at"] == evaluation[1].at.isoformat()
    assert found["evaluation"]["measures"] == found["evaluation"]["methods"]["rerank"]
    assert set(found["evaluation"]["methods"]) == {"rerank", "votes"}
    bins = found["reliability"]["bins"]
    assert list(bins[0]) == ["from", "to", "score", "precision", "count"]
    assert bins[0]["from"] == 0
    assert 0 <= found["reliability"]["ece"] < 0.2
    assert {"accept", "review", "documents"} < set(found["reliability"])
    models = service.get(PLACE).json()["models"]
    assert found["models"] == models
    assert [model["name"] for model in models] == ["rerank"]


def test_figures_follow_the_collection(service: TestClient) -> None:
    before = service.get(f"{PLACE}/dashboard").json()
    body = record(250) | {"title": "New", "text": "Something new."}
    assert service.post(f"{PLACE}/documents", json=body, headers=BEARER).status_code == 200
    after = service.get(f"{PLACE}/dashboard").json()
    assert after["documents"] == 201
    assert after["generation"] > before["generation"]
    assert after["models"][0]["added"] == 1


def test_figures_are_computed_once_per_state(
    service: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from labelkin.serve import dashboard

    calls: list[int] = []
    original = dashboard.heading_frequencies
    monkeypatch.setattr(
        dashboard, "heading_frequencies", lambda counts: calls.append(1) or original(counts)
    )
    assert service.get(f"{PLACE}/dashboard").json() == service.get(f"{PLACE}/dashboard").json()
    assert len(calls) == 1


def test_saving_an_evaluation_needs_the_token(service: TestClient, path: Path) -> None:
    asked = {"documents": [record(230), record(231)], "methods": ["knn"], "measures": ["MiF"]}
    assert service.post(f"{PLACE}/evaluate", json=asked).status_code == 200
    refused = service.post(f"{PLACE}/evaluate?save=true", json=asked)
    assert refused.status_code == 401
    assert not (path / "evaluation.json").exists()
    with Indexer.open(path) as indexer:
        trained = indexer.latest_evaluation()
    assert trained is not None
    answer = service.post(f"{PLACE}/evaluate?save=true", json=asked, headers=BEARER)
    assert answer.status_code == 200
    found = service.get(f"{PLACE}/dashboard").json()["evaluation"]
    assert (found["source"], found["documents"], found["method"]) == ("eval", 2, "knn")
    assert found["measures"]["MiF"] == pytest.approx(
        answer.json()["reports"][0]["measures"]["MiF"], abs=1e-6
    )
    with Indexer.open(path) as indexer:
        # An evaluation before the training is not the latest.
        indexer.save_evaluation(replace(trained[1], at=trained[1].at - timedelta(days=1)))
    assert service.get(f"{PLACE}/dashboard").json()["evaluation"]["source"] == "training"


def test_old_models_have_no_figures(service: TestClient, path: Path) -> None:
    description = path / "models" / "rerank" / "model.json"
    content = json.loads(description.read_text())
    del content["checksum"], content["evaluation"], content["calibration"]["reliability"]
    description.write_text(json.dumps(content))
    found = service.get(f"{PLACE}/dashboard").json()
    assert found["evaluation"] is None
    assert found["reliability"] is None
    assert found["models"][0]["usable"] is True


def test_without_models(service: TestClient, path: Path) -> None:
    shutil.rmtree(path / "models" / "rerank")
    found = service.get(f"{PLACE}/dashboard").json()
    assert (found["evaluation"], found["reliability"], found["models"]) == (None, None, [])
    missing = service.get(f"{PLACE}/latent")
    assert missing.status_code == 404
    assert "labelkin train" in missing.json()["detail"]
    assert str(path) not in missing.text


def test_an_empty_collection(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "empty"):
        pass
    settings = ServiceSettings(collections={"demo": tmp_path / "empty"})
    with TestClient(create_app(Service(settings))) as client:
        found = client.get(f"{PLACE}/dashboard").json()
    assert found["per_document"] == {"mean": 0.0, "median": 0.0, "max": 0}
    assert found["frequencies"]["points"] == []


def test_the_map_of_the_headings(service: TestClient, path: Path) -> None:
    save_autoencoder(path, [concept.id for concept in demo_concepts(0)])
    found = service.get(f"{PLACE}/latent?limit=50").json()
    assert len(found["points"]) == 50
    assert list(found["points"][0]) == ["id", "name", "x", "y", "branch", "documents"]
    counts = [point["documents"] for point in found["points"]]
    assert counts == sorted(counts, reverse=True)
    assert sum(branch["count"] for branch in found["branches"]) == 50
    assert {point["branch"] for point in found["points"]} == {
        branch["id"] for branch in found["branches"]
    }
    concept = service.get(f"{PLACE}/concepts/{found['points'][0]['id']}").json()
    assert concept["documents"] == counts[0]
    assert concept["name"] == found["points"][0]["name"]
    for wrong in ("limit=0", "limit=3001", "limit=x", "language=xx"):
        assert service.get(f"{PLACE}/latent?{wrong}").status_code == 422


def test_other_requests_do_not_wait_for_the_map(
    service: TestClient, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three requests for the map, and only two threads for requests."""
    save_autoencoder(path, [concept.id for concept in demo_concepts(0)])
    started, finish = threading.Event(), threading.Event()
    original = latent.plane_layout

    def slow(vectors: object) -> object:
        started.set()
        assert finish.wait(30)
        return original(vectors)  # type: ignore[arg-type]

    monkeypatch.setattr(latent, "plane_layout", slow)
    answers: list[httpx.Response] = []
    threads = [
        threading.Thread(target=lambda: answers.append(service.get(f"{PLACE}/latent")))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    assert started.wait(30)
    try:
        assert service.get(f"{PLACE}/concepts?query=a").status_code == 200
        assert not answers
    finally:
        finish.set()
        for thread in threads:
            thread.join()
    assert [answer.status_code for answer in answers] == [200] * 3
    assert len({answer.text for answer in answers}) == 1


def test_the_client(service: TestClient, path: Path) -> None:
    class Transport(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            answer = service.request(
                request.method,
                request.url.raw_path.decode(),
                content=request.read(),
                headers=dict(request.headers),
            )
            return httpx.Response(answer.status_code, content=answer.content)

    with Client("http://service", token=TOKEN, transport=Transport()) as client:
        client.evaluate("demo", [record(230)], methods=["knn"], save=True)
        found = client.dashboard("demo")
        assert found.evaluation is not None
        assert found.evaluation.source == "eval"
        assert found.reliability is not None
        assert found.reliability.bins[0].start == 0
        with pytest.raises(ServiceError, match="no label autoencoder"):
            client.latent("demo")
        save_autoencoder(path, [concept.id for concept in demo_concepts(0)])
        assert len(client.latent("demo", limit=7).points) == 7


def test_the_description(service: TestClient) -> None:
    paths = service.get("/api/v1/openapi.json").json()["paths"]
    place = "/api/v1/collections/{collection}"
    assert "404" in paths[f"{place}/latent"]["get"]["responses"]
    schemas = service.get("/api/v1/openapi.json").json()["components"]["schemas"]
    for message in (Dashboard, LatentMapMessage):
        (example,) = schemas[message.__name__]["examples"]
        assert as_json(message.model_validate(example)) == example
    assert "security" not in paths[f"{place}/dashboard"]["get"]
    assert {} in paths[f"{place}/evaluate"]["post"]["security"]
