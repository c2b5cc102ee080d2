"""The files of the page: their types, the security policy, and nothing from elsewhere."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from ..served import Running

FOLDER = files("labelkin.serve") / "page"
NAMES = sorted(file.name for file in FOLDER.iterdir())
ADDRESS = re.compile(r"""https?://[^\s"'`)]+""")


@pytest.mark.parametrize("name", ["", *(name for name in NAMES if name != "index.html")])
def test_files_have_their_types_and_a_strict_policy(live: Running, name: str) -> None:
    answer = live.http.get(f"/{name}")
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'")
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    kinds = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    expected = kinds.get(name.rpartition(".")[2], "text/html")
    assert answer.headers["content-type"].startswith(expected)
    again = live.http.get(f"/{name}", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_loaded_from_elsewhere(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    known = ("http://www.w3.org/2000/svg", "https://pubmed.ncbi.nlm.nih.gov/")
    others = [one for one in ADDRESS.findall(text) if not one.startswith(known)]
    assert [one for one in others if "\\" not in one] == []
    assert "innerHTML" not in text
    assert not re.search(r"\bon\w+=|style=|javascript:", text)


def test_other_addresses_are_as_before(live: Running) -> None:
    assert live.http.get("/v1").status_code == 307
    assert live.http.get("/nothing").status_code == 404
    assert live.http.get("/../pyproject.toml").status_code == 404


def test_both_languages_have_all_texts() -> None:
    text = (FOLDER / "texts.js").read_text(encoding="utf-8")
    english, german = text.split("  de: {")
    keys = re.compile(r"(?:^|[ {,])(\w+): \"", re.MULTILINE)
    named = set(keys.findall(english))
    assert len(named) > 100
    assert named == set(keys.findall(german.partition("};")[0]))
