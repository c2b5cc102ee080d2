"""Messages as answers."""

from __future__ import annotations

from labelkin.messages import Readiness, SuggestionMessage
from labelkin.serve.answers import answered, problems


def test_keys_that_were_not_set_are_left_out() -> None:
    message = SuggestionMessage(id="a", name="A", score=0.5, rank=1)
    assert bytes(answered(message).body) == b'{"id":"a","name":"A","score":0.5,"rank":1}'
    answer = answered(Readiness(status="loading", problems={}), 503)
    assert (answer.status_code, answer.media_type) == (503, "application/json")


def test_errors_of_an_endpoint_are_described_as_problems() -> None:
    described = problems(404, 503)
    assert list(described) == [404, 503]
    for one in described.values():
        assert one["description"].endswith(".")
        assert list(one["content"]) == ["application/problem+json"]
