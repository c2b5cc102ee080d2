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

from labelkin import Correction, Document, Indexer, Settings
from labelkin.store.config import CONFIG_NAME, RECIPES, update_config

FIXTURES = Path(__file__).parent / "fixtures"
VERSIONS = sorted(path.name.removesuffix(".tar.gz") for path in FIXTURES.glob("*.tar.gz"))


@pytest.fixture(params=VERSIONS)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict]:
    with tarfile.open(FIXTURES / f"{request.param}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    expected = json.loads((FIXTURES / f"{request.param}.json").read_text(encoding="utf-8"))
    return tmp_path / "collection", expected


@pytest.fixture
def papers(kept: tuple[Path, dict]) -> tuple[Path, dict]:
    """A kept collection that finds neighbours as all versions did until 0.1."""
    update_config(kept[0] / CONFIG_NAME, {"neighbours": RECIPES["paper"]["neighbours"]})
    return kept


def queries(expected: dict) -> list[Document]:
    return [
        Document(one["id"], one["title"], one["body"], language="en") for one in expected["queries"]
    ]


def test_there_is_a_kept_collection() -> None:
    assert VERSIONS


@pytest.mark.parametrize("method", ["knn", "lexical", "label-ae", "mix", "mix-ranked", "rerank"])
def test_the_same_suggestions(papers: tuple[Path, dict], method: str) -> None:
    path, expected = papers
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


def test_the_index_is_used_as_it_is(papers: tuple[Path, dict]) -> None:
    path, expected = papers

    def files() -> set[str]:
        return {file.name for file in path.glob("indexes/terms-*/*") if file.suffix != ".lock"}

    before = files()
    with Indexer.open(path) as indexer:
        assert indexer.build() == 0
        indexer.suggest(queries(expected), settings=Settings())
    assert files() == before


def test_without_the_keys_of_later_versions_the_defaults_apply(kept: tuple[Path, dict]) -> None:
    path, expected = kept
    (before,) = path.glob("indexes/terms-*")
    assert "heading_weight" not in (path / CONFIG_NAME).read_text(encoding="utf-8")
    with Indexer.open(path) as indexer:
        assert indexer.config.neighbours.heading_weight > 0
        # The index is replaced once.
        assert indexer.build() == 180
        assert indexer.build() == 0
        for method in indexer.usable_methods():
            settings = Settings.from_config(indexer.config, method)
            assert len(indexer.suggest(queries(expected), settings=settings)) == len(
                expected["queries"]
            )
    (after,) = path.glob("indexes/terms-*")
    assert after != before


def test_a_reranker_trained_with_the_former_search_says_how_to_adapt_it(
    kept: tuple[Path, dict], caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("lightgbm", reason="needs the extra `rerank`")
    path, expected = kept
    model = path / "models" / "rerank" / "model.json"
    content = json.loads(model.read_text(encoding="utf-8"))
    content.pop("checksum", None)
    with Indexer.open(path) as indexer:
        # What versions after 0.1 record in a model.
        recorded = indexer.search().settings_fingerprint() | {"engine": "bm25"}
        model.write_text(json.dumps(content | {"neighbours": recorded}), encoding="utf-8")
        caplog.clear()
        settings = Settings.from_config(indexer.config, "rerank")
        for _ in range(2):
            assert any(indexer.suggest(queries(expected), settings=settings))
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "other settings of the search by stems (engine: 'bm25', now 'bm25, terms by" in line
    assert f"`labelkin train {path} --only rerank` adapts it" in line


def test_documents_can_be_added_and_trained_on(kept: tuple[Path, dict]) -> None:
    pytest.importorskip("lightgbm", reason="needs the extra `rerank`")
    from labelkin import RerankTrainingSettings

    path, _ = kept
    with Indexer.open(path) as indexer:
        some = next(iter(indexer.documents()))
        words = "Barns of quixotic windmills"
        indexer.add([Document("new", words, language="en", labels=some.labels)])
        near = indexer.neighbours([Document("", words, language="en")], k=1)
        assert near[0][0].id == "new"
        settings = RerankTrainingSettings(documents=25, rounds=3, linear=False, threads=1)
        # The autoencoder of 0.1 does not record which documents it has not seen.
        report = indexer.train_reranker(settings=settings)
        assert "autoencoder" not in report.info.groups


def test_headings_can_be_corrected(kept: tuple[Path, dict]) -> None:
    path, _ = kept
    with Indexer.open(path) as indexer:
        some, other, *_ = indexer.documents()
        new = Correction(some.id, other.labels, revision="2024-03-05")
        assert indexer.correct([new]).corrected == 1
        shown = indexer.show(some.id, 3)
        assert shown is not None
        assert shown.document.title == some.title
        assert (shown.document.revision, shown.unresolved) == ("2024-03-05", [])
        assert {*shown.document.labels} == {*other.labels}
        assert [one.id for one in shown.neighbours if one.id == some.id] == []
        assert indexer.correct([replace(new, revision="2024-03-04")]).stale == 1
        assert indexer.check().is_sound


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
