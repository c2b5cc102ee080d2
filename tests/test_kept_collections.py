"""Collections and models of earlier versions still open and answer as they did.

tests/fixtures/collection-VERSION.tar.gz is a small generated collection with a
label autoencoder and a reranker, made by that version; the .json beside it has
the suggestions that the version gave. Add a pair when a format changes.
"""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from labelkin import Document, Indexer, Settings

FIXTURES = Path(__file__).parent / "fixtures"
VERSIONS = sorted(path.name.removesuffix(".tar.gz") for path in FIXTURES.glob("*.tar.gz"))


@pytest.fixture(params=VERSIONS)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict]:
    with tarfile.open(FIXTURES / f"{request.param}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    expected = json.loads((FIXTURES / f"{request.param}.json").read_text(encoding="utf-8"))
    return tmp_path / "collection", expected


def queries(expected: dict) -> list[Document]:
    return [
        Document(one["id"], one["title"], one["body"], language="en") for one in expected["queries"]
    ]


def test_there_is_a_kept_collection() -> None:
    assert VERSIONS


@pytest.mark.parametrize("method", ["knn", "lexical", "label-ae", "mix", "mix-ranked", "rerank"])
def test_the_same_suggestions(kept: tuple[Path, dict], method: str) -> None:
    path, expected = kept
    if method == "rerank":
        pytest.importorskip("lightgbm", reason="needs the extra `rerank`")
    with Indexer.open(path) as indexer:
        assert indexer.collection.count() == 180
        answered = indexer.suggest(
            queries(expected), settings=Settings.from_config(indexer.config, method)
        )
        for suggestions, before in zip(answered, expected["suggestions"][method], strict=True):
            assert [one.concept.id for one in suggestions] == [label for label, _ in before]
            for one, (_, score) in zip(suggestions, before, strict=True):
                assert one.score == pytest.approx(score, abs=1e-4)


def test_the_index_is_used_as_it_is(kept: tuple[Path, dict]) -> None:
    path, expected = kept

    def files() -> set[str]:
        return {file.name for file in path.glob("indexes/terms-*/*") if file.suffix != ".lock"}

    before = files()
    with Indexer.open(path) as indexer:
        assert indexer.build() == 0
        indexer.suggest(queries(expected), settings=Settings())
    assert files() == before


def test_documents_can_be_added_and_trained_on(kept: tuple[Path, dict]) -> None:
    pytest.importorskip("lightgbm", reason="needs the extra `rerank`")
    from labelkin import RerankTrainingSettings

    path, _ = kept
    with Indexer.open(path) as indexer:
        some = next(iter(indexer.documents()))
        indexer.add([Document("new", "Barns once more", language="en", labels=some.labels)])
        near = indexer.neighbours([Document("", "Barns once more", language="en")], k=1)
        assert near[0][0].id == "new"
        settings = RerankTrainingSettings(documents=25, rounds=3, threads=1)
        # The autoencoder of 0.1 does not record which documents it has not seen.
        report = indexer.train_reranker(settings=settings)
        assert "autoencoder" not in report.info.groups


def test_texts_are_recognised(kept: tuple[Path, dict], monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 0.1 stored no checksums of texts: they are computed, and stored when possible."""
    path, _ = kept
    with monkeypatch.context() as patch:
        # As if the folder could not be written to.
        patch.setattr("labelkin.store.collection.Collection.upgrade", lambda self: None)
        with Indexer.open(path) as indexer:
            documents = list(indexer.documents())
            copies = [replace(document, id=f"copy of {document.id}") for document in documents]
            known = indexer.snapshot().known_rows(copies)
            assert all(known)
    with Indexer.open(path) as indexer:
        assert list(indexer.documents()) == documents
        assert indexer.snapshot().known_rows(copies) == known
        missing = "SELECT count(*) FROM documents WHERE text_checksum IS NULL"
        assert indexer.collection.database.query(missing) == [(0,)]
        assert indexer.add(copies[:1]).added == 1
        assert indexer.add(documents).unchanged == len(documents)
