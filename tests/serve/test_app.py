"""The application as a whole: its description, pages of other origins, and any request at all."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS

from ..served import BEARER, Running
from .conftest import Start

OPENAPI = "/api/v1/openapi.json"
METHODS = ("get", "post", "put", "patch", "delete")
# Not `positive_data_acceptance`: ids, methods, languages and measures are strings in the
# description, but only those of the collection are accepted.
SELECTED = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "negative_data_rejection",
    "unsupported_method",
]


@pytest.fixture(scope="module")
def description(live: Running) -> dict[str, Any]:
    document: dict[str, Any] = live.http.get(OPENAPI).json()
    return document


def operations(description: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path, method, operation)
        for path, item in description["paths"].items()
        for method, operation in item.items()
        if method in METHODS
    ]


def test_the_description_is_complete(description: dict[str, Any]) -> None:
    assert description["openapi"].startswith("3.1")
    known = {(path, method) for path, method, _ in operations(description)}
    assert len(known) >= 25
    own = {path.partition("{collection}")[2] for path, _ in known if "{collection}" in path}
    assert own >= {"", "/suggest", "/annotate", "/documents", "/learn", "/concepts", "/tree"}
    for path, method, operation in operations(description):
        assert operation["description"] or operation["summary"], (path, method)
        for status, answer in operation["responses"].items():
            assert answer["description"], (path, method, status)
            if status.startswith(("4", "5")) and "ready" not in path:
                assert "application/problem+json" in answer["content"], (path, method, status)
        if method in ("put", "patch", "delete"):
            assert operation["security"], path
    assert "HTTPValidationError" not in description["components"]["schemas"]


def test_every_reference_leads_somewhere(description: dict[str, Any]) -> None:
    def check(value: object) -> None:
        if isinstance(value, list):
            for one in value:
                check(one)
        if isinstance(value, dict):
            reference = value.get("$ref")
            if isinstance(reference, str):
                place: Any = description
                for part in reference.removeprefix("#/").split("/"):
                    place = place[part]
            for one in value.values():
                check(one)

    check(description)


def test_it_is_valid_openapi(description: dict[str, Any]) -> None:
    jsonschema_rs = pytest.importorskip("jsonschema_rs")
    schemas = description["components"]["schemas"]
    for name in schemas:
        jsonschema_rs.validator_for(
            {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
        )
    schemathesis.openapi.from_dict(description).validate()


def test_examples_are_valid_and_work(description: dict[str, Any], live: Running) -> None:
    jsonschema_rs = pytest.importorskip("jsonschema_rs")
    components = {"components": description["components"]}
    tried = 0
    for path, method, operation in operations(description):
        content = operation.get("requestBody", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema", {})
        name = schema.get("$ref", "").rpartition("/")[2]
        for example in description["components"]["schemas"].get(name, {}).get("examples", ()):
            jsonschema_rs.validate({**schema, **components}, example)
            if method != "post" or "{collection}" not in path:
                continue
            answer = live.http.post(path.format(collection="demo"), json=example)
            # The vocabulary of this collection has other headings than the examples.
            assert answer.is_success or "unknown in this vocabulary" in answer.text, path
            tried += 1
    assert tried >= 4


def test_errors_outside_of_the_routes_are_problems(live: Running) -> None:
    for method, path in (("GET", "/x"), ("POST", "/"), ("DELETE", OPENAPI), ("GET", "/docs")):
        answer = live.http.request(method, path)
        assert answer.status_code in (404, 405)
        assert answer.headers["content-type"] == "application/problem+json"


def test_listed_origins_may_use_the_service(start: Start, small: Path) -> None:
    service = start(small, origins=("https://example.org",))
    url = "/api/v1/collections/demo/documents/a"

    def preflight(origin: str) -> Any:
        headers = {
            "Origin": origin,
            "Access-Control-Request-Method": "PUT",
            "Access-Control-Request-Headers": "authorization, content-type",
        }
        return service.http.options(url, headers=headers)

    assert preflight("https://example.org").status_code == 200
    assert preflight("https://evil.example").status_code == 400
    for origin, allowed in (("https://example.org", "https://example.org"), ("https://x.y", None)):
        answer = service.http.get("/v1/", headers={"Origin": origin})
        assert answer.headers.get("access-control-allow-origin") == allowed


# Any request at all: a short run of schemathesis on the description, against the live service.


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_any_request_is_answered_as_described(
    description: dict[str, Any], writable: Running, mode: GenerationMode
) -> None:
    document = copy.deepcopy(description)
    # Any line is answered, so streams have tests of their own.
    del document["paths"]["/api/v1/collections/{collection}/annotate"]
    for _, _, operation in operations(document):
        operation.get("requestBody", {}).get("content", {}).pop("application/x-ndjson", None)
        for parameter in operation.get("parameters", ()):
            if parameter["name"] in ("collection", "project_id"):
                parameter["schema"] = {"type": "string", "enum": ["demo"]}
    api = schemathesis.openapi.from_dict(document)
    api.config.update(base_url=writable.url)
    checks = [CHECKS.get_one(name) for name in SELECTED]
    tried = 0
    for result in api.get_all_operations():
        operation = result.ok()

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=6,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def check(case: schemathesis.Case) -> None:
            case.call_and_validate(headers=BEARER, checks=checks)

        try:
            check()
        except Unsatisfiable:
            # It takes nothing that could be wrong.
            continue
        tried += 1
    assert tried >= 20
