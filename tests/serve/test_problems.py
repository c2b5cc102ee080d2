"""Errors as problem+json, and what they do not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from labelkin import exceptions as errors
from labelkin.serve import suggestions
from labelkin.serve.problems import ProblemError, as_problem, busy, response_to

from ..served import TEXT, Running, complaints
from .conftest import Start

SUGGEST = "/api/v1/collections/demo/suggest"


@pytest.mark.parametrize(
    ("kind", "status", "retry"),
    [
        (errors.CollectionReadOnlyError, 403, False),
        (errors.CollectionFullError, 507, False),
        (errors.CollectionBehindError, 422, False),
        (errors.CollectionBusyError, 503, True),
        (errors.CollectionError, 503, False),
        (errors.ModelDamagedError, 503, False),
        (errors.MissingExtraError, 503, False),
        (errors.ConfigError, 422, False),
        (errors.VocabularyError, 422, False),
        (errors.InputError, 422, False),
    ],
)
def test_errors_of_labelkin_have_statuses(
    kind: type[errors.LabelkinError], status: int, retry: bool
) -> None:
    problem = as_problem(kind("what is wrong"))
    assert (problem.status_code, problem.detail) == (status, "what is wrong")
    assert ("Retry-After" in (problem.headers or {})) is retry


def test_a_problem_as_an_answer() -> None:
    answer = response_to(busy("wait"), "/api/v1/x", "id-1")
    assert answer.media_type == "application/problem+json"
    assert answer.headers["retry-after"] == "1"
    assert bytes(answer.body) == (
        b'{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"wait",'
        b'"instance":"urn:labelkin:request:id-1"}'
    )
    plain = response_to(ProblemError(413, "too large"), "/v1/projects", "id-1")
    assert (plain.media_type, bytes(plain.body)) == ("text/plain", b"too large")


def test_details_of_a_failure_are_only_in_the_log(
    start: Start, small: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    service = start(small)

    def fail(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(suggestions, "suggested", fail)
    answer = service.http.post(SUGGEST, json={"documents": [{"title": TEXT}]})
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "secret" not in answer.text
    identifier = answer.headers["x-request-id"]
    assert answer.json()["instance"] == f"urn:labelkin:request:{identifier}"
    # Once, with the id and the traceback.
    (record,) = complaints(caplog)
    assert identifier in record.getMessage()
    assert record.exc_info is not None
    assert "secret detail" in caplog.text
    assert TEXT not in caplog.text
    monkeypatch.undo()
    assert service.http.post(SUGGEST, json={"documents": [{"title": TEXT}]}).status_code == 200


def test_what_is_wrong_with_several_parts(live: Running) -> None:
    body = {"documents": [{"title": 5}], "limit": -1, "unknown": True}
    problem = live.http.post(SUGGEST, json=body).json()
    assert {one["where"] for one in problem["errors"]} == {
        "body.limit",
        "body.documents.0.title",
        "body.unknown",
    }
    assert problem["detail"].endswith("(and 2 more)")


def test_long_paths_are_shortened(live: Running) -> None:
    answer = live.http.get("/" + "x" * 5000)
    assert answer.status_code == 404
    assert len(answer.text) < 500
