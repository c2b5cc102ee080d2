"""The OpenAPI description, and the routes by which requests are counted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from labelkin.corpus.document import Document
from labelkin.indexer import Indexer
from labelkin.serve.app import create_app
from labelkin.serve.service import Service
from labelkin.serve.settings import ServiceSettings

if TYPE_CHECKING:
    from starlette.testclient import TestClient


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    from starlette.testclient import TestClient

    path = tmp_path_factory.mktemp("serve") / "small"
    with Indexer.create(path, language="en") as indexer:
        indexer.add([Document("1", "On wheat", labels=("Wheat",))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABELKIN_TOKEN", "secret")
        service = Service(
            ServiceSettings(collections={"small": path}, max_documents=2, access_log=False)
        )
    with TestClient(create_app(service)) as client:
        yield client


def test_the_description_lists_every_endpoint(client: TestClient) -> None:
    answer = client.get("/api/v1/openapi.json")
    assert answer.status_code == 200, answer.text
    paths = answer.json()["paths"]
    own = {path.partition("{collection}")[2] for path in paths if "{collection}" in path}
    assert own >= {"", "/suggest", "/annotate", "/documents", "/concepts", "/tree"}
    assert {"/v1/projects/{project_id}/suggest", "/v1/detect-language"} <= paths.keys()


def test_requests_are_counted_by_whole_routes(client: TestClient) -> None:
    body = {"documents": [{"title": "wheat"}]}
    assert client.post("/api/v1/collections/small/suggest", json=body).status_code == 200
    assert client.get("/api/v1/collections/small/documents/1").status_code == 200
    figures = client.get("/metrics").text
    counted = set(re.findall(r'labelkin_requests_total\{method="\w+",route="([^"]*)"', figures))
    prefix = "/api/v1/collections/{collection}"
    assert counted >= {f"{prefix}/suggest", f"{prefix}/documents/{{identifier:path}}"}


def test_streams_have_any_number_of_documents(client: TestClient) -> None:
    lines = "".join(f'{{"id": "{number}", "title": "On oats"}}\n' for number in range(3))
    headers = {"Content-Type": "application/x-ndjson", "Authorization": "Bearer secret"}
    answer = client.post("/api/v1/collections/small/documents", content=lines, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.json()["added"] + answer.json()["replaced"] == 3
