"""Suggestions with their evidence, methods side by side, explanations, neighbours, measures."""

from __future__ import annotations

from typing import Any

import pytest

from ..runtime_data import fresh_documents
from ..served import TEXT, Running

BASE = "/api/v1/collections/demo"
BODY = "Potato storage in cellars.\nHoneybees — 😀 — and potato storage again."


def post(live: Running, verb: str, **body: Any) -> Any:
    answer = live.http.post(f"{BASE}/{verb}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def usable(live: Running) -> list[str]:
    methods = live.http.get(BASE).json()["methods"]
    return [one["name"] for one in methods if one["usable"]]


def test_evidence_points_at_documents_and_words(live: Running) -> None:
    record = {"id": "q", "title": TEXT, "abstract": BODY}
    (result,) = post(live, "suggest", documents=[record], method="lexical")["results"]
    assert result["id"] == "q"
    places = {"title": TEXT, "body": BODY}
    seen = set()
    for suggestion in result["suggestions"]:
        for naming in suggestion["evidence"]["named"]:
            assert len(naming["spans"]) == naming["count"]
            seen.add(naming["place"])
            for begin, end in naming["spans"]:
                assert places[naming["place"]][begin:end].casefold() == naming["words"].casefold()
    assert seen == {"title", "body"}


def test_evidence_of_neighbours(live: Running) -> None:
    answer = post(live, "suggest", documents=[{"title": TEXT}], method="knn", k=20, limit=5)
    near = post(live, "neighbours", documents=[{"title": TEXT}], k=20)["results"][0]["neighbours"]
    distances = {one["id"]: one["distance"] for one in near}
    assert len(answer["results"][0]["suggestions"]) == 5
    for suggestion in answer["results"][0]["suggestions"]:
        evidence = suggestion["evidence"]
        carriers = evidence["carriers"]
        assert evidence["neighbours"] == 20
        assert 0 < evidence["votes"] == sum(one["carries"] for one in carriers) or evidence[
            "votes"
        ] > len(carriers)
        for carrier in carriers:
            assert carrier["title"]
            assert carrier["distance"] == distances[carrier["id"]]
        assert suggestion["documents"] >= evidence["votes"]
        assert suggestion["reason"]


def test_what_a_request_may_leave_out(live: Running) -> None:
    bare = post(live, "suggest", documents=[{"title": TEXT}], evidence=False, limit=2)
    assert all("evidence" not in one for one in bare["results"][0]["suggestions"])
    few = post(live, "suggest", documents=[{"title": TEXT}], carriers=1, limit=2, method="knn")
    assert [len(one["evidence"]["carriers"]) for one in few["results"][0]["suggestions"]] == [1, 1]
    german = post(live, "suggest", documents=[{"title": TEXT}], language="all", limit=1)
    assert set(german["results"][0]["suggestions"][0]["names"]) == {"de", "en"}


def test_settings_of_a_request(live: Running) -> None:
    def ids(**settings: Any) -> list[str]:
        answer = post(live, "suggest", documents=[{"title": TEXT}], method="knn", **settings)
        return [one["id"] for one in answer["results"][0]["suggestions"]]

    best = ids(limit=10)
    assert ids(limit=3) == best[:3]
    assert ids(limit=0)[:10] == best
    assert len(ids(limit=0)) > 10
    assert best[0] not in ids(limit=10, exclude=[best[0]])
    only = ids(limit=10, include=[best[1]])
    assert only[0] == best[1]
    assert best[0] not in only
    assert ids(limit=10, k=1) != best
    assert ids(limit=10, weighting="square")
    assert ids(limit=10, representation="stems") == best


def test_bands_and_signals_of_the_reranker(live: Running) -> None:
    if "rerank" not in usable(live):
        pytest.skip("needs the extra `rerank`")
    answer = post(live, "suggest", documents=[{"title": TEXT}], method="rerank", signals=True)
    assert answer["method"] == "rerank"
    for one in answer["results"][0]["suggestions"]:
        assert one["band"] in ("accept", "review", "hidden")
        assert one["signals"]
        assert all(isinstance(signal["weight"], float) for signal in one["signals"])


def test_methods_side_by_side_are_what_they_are_alone(live: Running) -> None:
    document = {"title": TEXT, "abstract": BODY}
    together = post(live, "compare", document=document)
    assert [one["method"] for one in together["results"]] == usable(live)
    for result in together["results"]:
        alone = post(live, "suggest", documents=[document], method=result["method"])
        assert alone["generation"] == together["generation"]
        assert alone["results"][0]["suggestions"] == result["suggestions"], result["method"]
    chosen = post(live, "compare", document=document, methods=["lexical", "knn", "lexical"])
    assert [one["method"] for one in chosen["results"]] == ["lexical", "knn"]
    assert post(live, "compare", document=document, methods=[])["results"] == []


def test_many_documents_are_what_they_are_alone(live: Running) -> None:
    records = [{"title": one.title, "abstract": one.body} for one in fresh_documents(8)]
    records.insert(3, {})
    together = post(live, "suggest", documents=records, limit=5)["results"]
    assert together[3]["suggestions"] == []
    for record, result in zip(records, together, strict=True):
        (alone,) = post(live, "suggest", documents=[record], limit=5)["results"]
        assert alone == result


def test_a_stored_document_is_not_its_own_evidence(live: Running) -> None:
    stored = live.http.get(f"{BASE}/documents/demo-00001").json()
    record = {"id": stored["id"], "title": stored["title"], "abstract": stored["body"]}
    near = post(live, "neighbours", documents=[record, {**record, "id": None}], k=1)["results"]
    assert near[0]["neighbours"][0]["id"] != "demo-00001"
    assert near[1]["neighbours"][0]["id"] == "demo-00001"


def test_explain(live: Running) -> None:
    document = {"title": TEXT}
    (result,) = post(live, "suggest", documents=[document], method="knn", limit=3)["results"]
    first = result["suggestions"][0]
    unlikely = "http://example.org/a?b=c&d#e"
    answer = post(
        live, "explain", document=document, headings=[first["name"], unlikely], method="knn"
    )
    assert answer["method"] == "knn"
    explained = {one["id"]: one for one in answer["headings"]}
    assert explained[first["id"]]["rank"] == 1
    assert explained[first["id"]]["score"] == first["score"]
    assert [one["id"] for one in answer["unranked"]] == [unlikely]


def test_neighbours(live: Running) -> None:
    answer = post(live, "neighbours", documents=[{"title": TEXT}, {}], k=5, terms=3)
    near = answer["results"][0]["neighbours"]
    assert len(near) == 5
    distances = [one["distance"] for one in near]
    assert distances == sorted(distances)
    assert all(len(one["terms"]) <= 3 and one["headings"] and one["title"] for one in near)
    assert answer["results"][1]["neighbours"] == []


def test_evaluate(live: Running) -> None:
    page = live.http.get(f"{BASE}/documents", params={"limit": 20}).json()["documents"]
    records = [{"id": one["id"], "title": one["title"], "labels": one["labels"]} for one in page]
    records.append({"title": "Without labels"})
    records.append({"title": "Unknown", "labels": ["nothere"]})
    methods = usable(live)[:2]
    report = post(live, "evaluate", documents=records, methods=methods, measures=["MiF", "P@5"])
    assert report["documents"] == 21
    assert report["without_labels"] == 1
    assert report["known"] == 20
    assert report["unresolved"] == {"nothere": 1}
    assert [one["method"] for one in report["reports"]] == methods
    for one in report["reports"]:
        assert list(one["measures"]) == ["MiF", "P@5"]
        assert all(0 <= value <= 1 for value in one["measures"].values())


DOCUMENT = {"title": "x"}


@pytest.mark.parametrize(
    ("verb", "body", "status", "part"),
    [
        ("suggest", {}, 422, "documents"),
        ("suggest", {"documents": []}, 422, "documents"),
        ("suggest", {"documents": [5]}, 422, "documents.0"),
        ("suggest", {"documents": [{"title": 5}]}, 422, "title"),
        ("suggest", {"documents": [DOCUMENT], "method": "nope"}, 422, "no method 'nope'"),
        ("suggest", {"documents": [DOCUMENT], "unknown": 1}, 422, "unknown"),
        ("suggest", {"documents": [DOCUMENT], "limit": -1}, 422, "limit"),
        ("suggest", {"documents": [DOCUMENT], "limit": 2**60}, 422, "limit"),
        ("suggest", {"documents": [DOCUMENT], "k": 0}, 422, "k"),
        ("suggest", {"documents": [DOCUMENT], "threshold": 1.1}, 422, "threshold"),
        ("suggest", {"documents": [DOCUMENT], "language": "xx"}, 422, "known: en, de"),
        ("suggest", {"documents": [DOCUMENT], "include": ["nope"]}, 422, "nope"),
        ("suggest", {"documents": [DOCUMENT], "accept": 0.5}, 422, "rerank"),
        ("suggest", {"documents": [DOCUMENT], "representation": ""}, 422, "representation"),
        ("suggest", {"documents": [DOCUMENT], "representation": "a/b"}, 422, "--representation"),
        ("suggest", {"documents": [DOCUMENT], "generation": 10**9}, 422, "at generation 1,"),
        ("neighbours", {"documents": [DOCUMENT], "generation": 10**9}, 422, "at generation 1,"),
        ("neighbours", {"documents": [DOCUMENT], "method": "knn"}, 422, "method"),
        ("neighbours", {"documents": [DOCUMENT], "k": 10_001}, 422, "k"),
        ("compare", {"document": DOCUMENT, "methods": ["nope"]}, 422, "no method"),
        ("explain", {"document": DOCUMENT, "headings": []}, 422, "headings"),
        ("explain", {"document": DOCUMENT, "headings": ["nope"]}, 422, "nope"),
        ("evaluate", {"documents": [DOCUMENT]}, 422, "no document with labels"),
        ("evaluate", {"documents": [{**DOCUMENT, "labels": ["a"]}], "measures": ["x"]}, 422, "x"),
        ("evaluate", {"documents": [{**DOCUMENT, "labels": ["a"]}], "methods": ["x"]}, 422, "x"),
    ],
)
def test_errors(live: Running, verb: str, body: Any, status: int, part: str) -> None:
    answer = live.http.post(f"{BASE}/{verb}", json=body)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert part in answer.json()["detail"]
    # Nothing of the machine.
    assert "/tmp" not in answer.text


@pytest.mark.parametrize("verb", ["suggest", "compare", "explain", "neighbours", "evaluate"])
def test_bodies_that_are_not_json(live: Running, verb: str) -> None:
    url = f"{BASE}/{verb}"
    json = {"Content-Type": "application/json"}
    assert live.http.post(url, content=b"{", headers=json).status_code == 400
    assert live.http.post(url, content=b"", headers=json).status_code == 422
    assert live.http.post(url, content=b"{}").status_code == 415
    assert live.http.post(url, data={"text": "x"}).status_code == 415
    assert live.http.post(f"/api/v1/collections/nothere/{verb}", json={}).status_code in (404, 422)


@pytest.mark.parametrize("method", ["label-ae", "mix", "rerank"])
def test_methods_that_are_not_trained(live: Running, method: str) -> None:
    small = "/api/v1/collections/small"
    for verb, body in (
        ("suggest", {"documents": [DOCUMENT], "method": method}),
        ("compare", {"document": DOCUMENT, "methods": ["knn", method]}),
        ("explain", {"document": DOCUMENT, "headings": ["Potatoes"], "method": method}),
    ):
        answer = live.http.post(f"{small}/{verb}", json=body)
        assert answer.status_code == 503, answer.text
        assert "train" in answer.json()["detail"]


def test_an_empty_collection(live: Running) -> None:
    empty = "/api/v1/collections/empty"
    answer = live.http.post(f"{empty}/suggest", json={"documents": [DOCUMENT]})
    assert answer.json()["results"][0]["suggestions"] == []
    assert live.http.post(f"{empty}/compare", json={"document": DOCUMENT}).status_code == 200
