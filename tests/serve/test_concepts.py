"""The vocabulary: search in pages, one concept, the tree."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from ..served import ODD_IDS, Running, head

BASE = "/api/v1/collections/demo"


def get(live: Running, path: str, **parameters: Any) -> Any:
    answer = live.http.get(f"{BASE}/{path}", params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(
    ("query", "limit"), [("", 100), ("stor", 3), ("o", 250), ("sonderling", 2)]
)
def test_pages_add_up(live: Running, query: str, limit: int) -> None:
    total = get(live, "concepts", query=query, limit=1)["total"]
    ids: list[str] = []
    while page := get(live, "concepts", query=query, limit=limit, offset=len(ids))["concepts"]:
        ids += [one["id"] for one in page]
    assert len(ids) == total > 0
    assert len(set(ids)) == total


def test_all_concepts_are_found(live: Running) -> None:
    assert get(live, "concepts", limit=1)["total"] == live.http.get(BASE).json()["concepts"]


def test_hits_say_which_name_matched(live: Running) -> None:
    (hit,) = get(live, "concepts", query="Sonderling 3")["concepts"]
    assert hit["id"] == "a%20b"
    assert hit["name"] == "Oddity 3"
    assert (hit["matched"], hit["matched_language"]) == ("Sonderling 3", "de")
    german = get(live, "concepts", query="Oddity 3", language="de")["concepts"][0]
    assert german["name"] == "Sonderling 3"
    prefix = get(live, "concepts", query="potat", limit=100)["concepts"]
    assert prefix[0]["name"].startswith("Potat")
    assert prefix[0]["documents"] > 0


def test_beyond_the_last_page(live: Running) -> None:
    page = get(live, "concepts", query="potat", offset=2**53)
    assert page["concepts"] == []
    assert page["total"] > 0


@pytest.mark.parametrize("identifier", ODD_IDS)
def test_ids_with_characters_that_mean_something_in_urls(live: Running, identifier: str) -> None:
    path = f"{BASE}/concepts/{quote(identifier, safe='')}"
    answer = live.raw(head("GET", path, "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert get(live, "tree", concept=identifier)["concept"]["id"] == identifier


def test_one_concept(live: Running) -> None:
    by_id = get(live, "concepts/LK0031")
    assert by_id["name"] == "Potato Storage"
    assert by_id["names"]["en"] == "Potato Storage"
    assert "LK0028" in {one["id"] for one in by_id["broader"]}
    assert by_id["documents"] > 0
    for other in ("Potato Storage", "potato storage", by_id["notations"][0]):
        assert get(live, f"concepts/{quote(other, safe='')}") == by_id
    narrower = {one["id"] for one in get(live, "concepts/LK0028")["narrower"]}
    assert "LK0031" in narrower
    names = get(live, "concepts/LK0028")["names"]
    assert get(live, "concepts/LK0028", language="de")["name"] == names["de"] != names["en"]
    replaced = get(live, "concepts/LK1079")
    assert replaced["deprecated"] is True
    assert replaced["replaced_by"] == ["LK1059"]


def test_the_tree_leads_to_every_concept_below_the_top(live: Running) -> None:
    top = get(live, "tree", limit=1000)
    assert top["concept"] is None
    assert len(top["children"]) == top["total"]
    below = get(live, "tree", concept="LK0028", limit=1000)
    assert below["concept"]["narrower"] == below["total"] == len(below["children"])
    for path in below["paths"]:
        assert path[-1]["id"] == "LK0028"
        assert path[0]["id"] in {one["id"] for one in top["children"]}
    pages = [get(live, "tree", limit=5, offset=offset) for offset in range(0, top["total"], 5)]
    assert [one for page in pages for one in page["children"]] == top["children"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"concepts?query={'x' * 1001}", 422),
        ("concepts?limit=0", 422),
        ("concepts?limit=1001", 422),
        ("concepts?limit=x", 422),
        ("concepts?offset=-1", 422),
        ("concepts?language=xx", 422),
        ("concepts/nope", 404),
        ("concepts/%00", 404),
        ("concepts/", 404),
        ("tree?concept=nope", 404),
        ("tree?concept=", 404),
        ("tree?language=xx", 422),
        ("tree/", 307),
    ],
)
def test_errors(live: Running, path: str, status: int) -> None:
    answer = live.http.get(f"{BASE}/{path}")
    assert answer.status_code == status
    if status >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
