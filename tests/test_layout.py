from __future__ import annotations

import json
from pathlib import Path

import pytest

from labelkin.cli.outputs import check_output
from labelkin.corpus import read_corpus
from labelkin.exceptions import InputError, WrongKindError
from labelkin.indexer import Indexer
from labelkin.layout import is_collection

MANIFEST = json.dumps({"format": "labelkin-collection", "format_version": 1})
FOREIGN = ['{"name": "a web app"}', '{"name": "labelkin-collection"}', "[]", "{", ""]
RECORD = '{"id": "1", "title": "Oats", "labels": ["Oats"]}\n'


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"manifest.json": MANIFEST}, True),
        ({"manifest.json": "{", "documents.sqlite": ""}, True),
        ({"labels/manifest.json": "{}", "documents.sqlite": ""}, True),
        ({"documents.sqlite": ""}, False),
        ({"labels/manifest.json": MANIFEST}, False),
        *(({"manifest.json": content}, False) for content in FOREIGN),
    ],
)
def test_is_collection_means_the_same_everywhere(
    tmp_path: Path, files: dict[str, str], expected: bool
) -> None:
    folder = tmp_path / "folder"
    for name, content in {"a.jsonl": RECORD, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    assert is_collection(folder) is expected
    if expected:
        with pytest.raises(WrongKindError, match="a collection, not a corpus"):
            read_corpus(folder)
        with pytest.raises(InputError, match="inside the collection"):
            check_output(folder / "new.jsonl")
    else:
        assert [one.id for one in read_corpus(folder).documents()] == ["1"]
        check_output(folder / "new.jsonl")


def test_a_collection_below_the_manifest_of_a_web_app(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(FOREIGN[0])
    with Indexer.open_or_create(tmp_path / "c"):
        pass
    assert is_collection(tmp_path / "c")
