"""The engines against `engine_conformance`: tantivy, and an exact one in memory."""

from __future__ import annotations

import errno
import json
from collections import Counter
from collections.abc import Collection as Container
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelkin.atomic import atomic_text
from labelkin.demo import demo_documents
from labelkin.exceptions import ConfigError
from labelkin.indexer import Indexer
from labelkin.leftovers import find_leftovers
from labelkin.neighbours.bm25 import FieldStatistics, idf
from labelkin.neighbours.engine import (
    ENGINES,
    EngineSearcher,
    EngineState,
    Hits,
    IndexedDocument,
    TermEngine,
    WeightedTerms,
)
from labelkin.neighbours.tantivy_engine import TantivyEngine
from labelkin.registry import Registry
from labelkin.store.config import CONFIG_NAME, update_config
from labelkin.store.derived import StoreDamagedError, StoreState

from .engine_conformance import FIELDS, TIE, EngineConformance, document, query

Rows = dict[int, dict[str, list[str]]]


class MemoryEngine(TermEngine):
    """All documents in one JSON file, written as a whole."""

    def __init__(self, folder: Path, fields: Mapping[str, str], *, read_only: bool) -> None:
        self._path = folder / "documents.json"
        self._fields = dict(fields)
        self._read_only = read_only
        self._state = StoreState()
        self._rows: Rows = {}
        self._read()

    def close(self) -> None:
        self._rows = {}

    def _read(self) -> None:
        if not self._path.exists():
            return
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise StoreDamagedError(f"{self._path}: {error}") from error
        self._state = StoreState(**content["state"])
        self._rows = {int(row): terms for row, terms in content["rows"].items()}

    def state(self) -> EngineState:
        return EngineState(self._state, None, max(self._rows, default=-1))

    def apply(
        self,
        removed: Iterable[int],
        pages: Iterable[Sequence[IndexedDocument]],
        target: StoreState,
    ) -> None:
        rows = dict(self._rows)
        for row in removed:
            rows.pop(row, None)
        for page in pages:
            rows.update((row, {name: [*words] for name, words in of.items()}) for row, of in page)
        self._rows, self._state = rows, target
        if not self._read_only:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_text(self._path) as file:
                json.dump({"state": asdict(target), "rows": rows}, file)

    def clear(self) -> None:
        self._rows, self._state = {}, StoreState()
        if not self._read_only:
            self._path.unlink(missing_ok=True)

    def searcher(self) -> MemorySearcher:
        return MemorySearcher(self._rows)


class MemorySearcher(EngineSearcher):
    """BM25 by its formula, document by document."""

    def __init__(self, rows: Rows) -> None:
        self._bags = {
            row: {field: Counter(terms) for field, terms in of_row.items()}
            for row, of_row in rows.items()
        }

    def statistics(self, field: str) -> FieldStatistics:
        lengths = [bags.get(field, Counter()).total() for bags in self._bags.values()]
        return FieldStatistics(len(lengths), sum(lengths) / len(lengths) if lengths else 0.0)

    def document_frequencies(self, field: str, terms: Sequence[str]) -> list[int]:
        bags = [bags.get(field, Counter()) for bags in self._bags.values()]
        return [sum(term in bag for bag in bags) for term in terms]

    def nearest(
        self, queries: Sequence[WeightedTerms], k: int, excluded: Sequence[Container[int]]
    ) -> list[Hits]:
        return [
            self._nearest(weighted, k, without)
            for weighted, without in zip(queries, excluded, strict=True)
        ]

    def _nearest(self, weighted: WeightedTerms, k: int, without: Container[int]) -> Hits:
        scores: dict[int, float] = {}
        for field, terms in weighted.items():
            statistics = self.statistics(field)
            frequencies = self.document_frequencies(field, list(terms))
            idfs = {
                term: weight * idf(statistics.documents, frequency)
                for (term, weight), frequency in zip(terms.items(), frequencies, strict=True)
                if frequency
            }
            for row, bags in self._bags.items():
                bag = bags.get(field, Counter())
                added = statistics.contributions(bag, bag.total(), idfs)
                if added and row not in without:
                    scores[row] = scores.get(row, 0.0) + sum(added.values())
        step = TIE * max(scores.values(), default=1.0)
        order = sorted(scores, key=lambda row: (-round(scores[row] / step), row))[:k]
        rows = np.array(order, dtype=np.int64)
        return rows, np.array([scores[row] for row in order], dtype=np.float32)


def open_memory(folder: Path, fields: Mapping[str, str], *, read_only: bool) -> MemoryEngine:
    return MemoryEngine(folder, fields, read_only=read_only)


class TestMemory(EngineConformance):
    def open(
        self, folder: Path, fields: Mapping[str, str], *, read_only: bool = False
    ) -> TermEngine:
        return open_memory(folder, fields, read_only=read_only)


class TestTantivy(EngineConformance):
    def open(
        self, folder: Path, fields: Mapping[str, str], *, read_only: bool = False
    ) -> TermEngine:
        return ENGINES["tantivy"](folder, fields, read_only=read_only)

    def commit_often(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("labelkin.neighbours.tantivy_engine._ROWS_A_COMMIT", 1)

    def test_a_lost_record_shows_as_pending(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write = TantivyEngine._write_record
        monkeypatch.setattr(
            TantivyEngine,
            "_write_record",
            lambda engine, record: write(engine, record) if record.pending else None,
        )
        with self.open(folder, FIELDS) as engine:
            self.apply(engine, [document(row, "rye") for row in range(4)], generation=6)
        with self.open(folder, FIELDS) as again:
            assert again.state() == EngineState(StoreState(), (6, "token 6"), 3)

    def test_an_interrupted_build_has_what_was_committed(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.commit_often(monkeypatch)
        with self.open(folder, FIELDS) as engine, pytest.raises(ZeroDivisionError):
            pages = ([document(row, "rye")] if row < 3 else 1 / 0 for row in range(9))
            engine.apply([], pages, StoreState(1, "token 1", 9))
        with self.open(folder, FIELDS) as again:
            assert again.state() == EngineState(StoreState(1, "token 1", 3), None, 2)
            assert self.rows(again, query("rye")) == [0, 1, 2]

    @pytest.mark.parametrize("name", ["meta.json", "*.term"])
    def test_damage_is_an_error_of_its_own(self, name: str, folder: Path) -> None:
        with self.open(folder, FIELDS) as engine:
            self.apply(engine, [document(row, f"rye w{row}") for row in range(50)])
        for path in folder.glob(name):
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        with self.open(folder, FIELDS) as again, pytest.raises(StoreDamagedError):
            again.state()
            again.searcher().document_frequencies("stems", ["rye"])
            self.rows(again, query("rye"))


class TestPostings(EngineConformance):
    def open(
        self, folder: Path, fields: Mapping[str, str], *, read_only: bool = False
    ) -> TermEngine:
        return ENGINES["postings"](folder, fields, read_only=read_only)

    def commit_often(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("labelkin.neighbours.postings_engine._COMMIT", 1)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine in memory as another package would register it."""
    monkeypatch.setitem(ENGINES._own, "memory", f"{__name__}:open_memory")


def test_engines_are_found_by_name(memory: None, tmp_path: Path) -> None:
    assert ENGINES.names() == ["tantivy", "postings", "memory"]
    assert ENGINES["tantivy"] is TantivyEngine
    with ENGINES["memory"](tmp_path, {}, read_only=True) as engine:
        assert type(engine).__name__ == "MemoryEngine"
    with pytest.raises(
        ConfigError, match="no term engine 'lucene'; known: tantivy, postings, memory"
    ):
        ENGINES["lucene"]


def test_a_registry_of_engines_resolves_functions() -> None:
    own = {"mine": f"{__name__}:open_memory"}
    registry = Registry("labelkin.engines", "term engine", own, factories=True)
    assert registry["mine"].__name__ == "open_memory"
    assert "mine" in registry
    assert "other" not in registry


def test_a_collection_finds_the_same_neighbours_with_either_engine(
    memory: None, tmp_path: Path
) -> None:
    documents = list(demo_documents(140))
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add(documents[:100])
        results = []
        for engine in ("tantivy", "memory"):
            update_config(tmp_path / "c" / CONFIG_NAME, {"neighbours": {"engine": engine}})
            results.append(indexer.neighbour_arrays(documents[90:], 10))
        first, second = results
        assert np.array_equal(first.rows, second.rows)
        assert first.scores == pytest.approx(second.scores, rel=1e-4)
        assert first.own_scores == pytest.approx(second.own_scores, rel=1e-4)
        assert first.duplicates == second.duplicates
        # Each has an index of its own, which follows changes.
        assert len(list((tmp_path / "c" / "indexes").glob("terms-*"))) == 2
        indexer.add(documents[100:])
        indexer.remove([documents[0].id])
        assert indexer.build() <= 40
        copy = [document for document in documents if document.id == documents[120].id]
        near = indexer.neighbours(copy, 5, terms=2)
        assert documents[0].id not in [neighbour.id for neighbour in near[0]]
        assert near[0][0].terms
    with Indexer.open(tmp_path / "c") as again:
        assert again.build() == 0


class KeepingEngine(MemoryEngine):
    """Keeps removed documents, and can do nothing about it."""

    def removed(self) -> int:
        return 1


def open_keeping(folder: Path, fields: Mapping[str, str], *, read_only: bool) -> TermEngine:
    return KeepingEngine(folder, fields, read_only=read_only)


def test_compact_skips_an_engine_that_cannot_be_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENGINES._own, "keeping", f"{__name__}:open_keeping")
    documents = list(demo_documents(20))
    settings = tmp_path / "c" / CONFIG_NAME
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add(documents)
        update_config(settings, {"neighbours": {"engine": "keeping"}})
        found = indexer.neighbour_arrays(documents[:5], 3)
        indexer.remove([documents[19].id])
        report = indexer.compact()
        changes = {one.part.partition("-")[0]: one.change for one in report.parts}
        assert "the engine 'keeping' cannot drop 1 removed document" in changes["indexes/terms"]
        assert changes["indexes/terms"].startswith("skipped: ")
        assert report.is_complete
        assert len(found.rows) == len(indexer.neighbour_arrays(documents[:5], 3).rows)
        # Without the settings, nobody knows which engine an index is of.
        update_config(settings, {"neighbours": {"engine": "tantivy"}})
        changes = {one.part.partition("-")[0]: one.change for one in indexer.compact().parts}
        assert changes["indexes/terms"] == (
            "skipped: not an index of the engine 'tantivy', which labelkin.toml names"
        )


def test_an_unknown_engine_is_an_error(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add(demo_documents(3))
        update_config(tmp_path / "c" / CONFIG_NAME, {"neighbours": {"engine": "lucene"}})
        with pytest.raises(ConfigError, match="no term engine 'lucene'"):
            indexer.neighbour_arrays(list(demo_documents(1)), 3)


def test_only_files_of_committed_segments_are_verified(tmp_path: Path) -> None:
    """A file that another process is writing has no checksum yet."""
    engine = TantivyEngine(tmp_path / "i", FIELDS, read_only=False)
    pages = [[document(row, "wheat oats") for row in range(5)]]
    engine.apply([], pages, StoreState(1, "t", 5))
    engine.apply([2], [], StoreState(2, "u", 5))
    names = [path.name for path, _ in engine._unverified()]
    assert any(name.endswith(".del") for name in names)
    assert any(name.endswith(".idx") for name in names)
    (segment,) = {name.partition(".")[0] for name in names}
    for name in ("0" * 32 + ".idx", f"{segment}.999.del"):
        (tmp_path / "i" / name).write_bytes(b"being written")
    engine.verify()
    assert engine.unverified_bytes() == 0
    again = TantivyEngine(tmp_path / "i", FIELDS, read_only=False)
    for name in names:
        path = tmp_path / "i" / name
        content = path.read_bytes()
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        with pytest.raises(StoreDamagedError, match=name):
            again.verify()
        path.write_bytes(content)
    again.verify()
    engine.close()


@pytest.mark.parametrize("twice", [[5], [5, 5, 150]])
def test_rows_that_an_index_holds_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, twice: list[int]
) -> None:
    monkeypatch.setattr("labelkin.neighbours.tantivy_engine._ROWS_A_COMMIT", 100)
    rows = sorted([*range(230), *twice])
    with TantivyEngine(tmp_path, {"stems": "1"}, read_only=False) as engine:
        assert not len(engine.rows())
        page = [(row, {"stems": ["wheat"]}) for row in rows]
        engine.apply((), [page], StoreState(1, "token", 230))
        if len(twice) == 1:
            assert engine.rows().tolist() == rows
        else:
            with pytest.raises(StoreDamagedError, match="holds rows several times"):
                engine.rows()


def test_no_segment_is_left_over_if_the_list_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add(demo_documents(20, 0))
        indexer.build()
        (folder,) = (tmp_path / "c" / "indexes").glob("terms-*")
        read_text = Path.read_text

        def failing(path: Path, *given: Any, **named: Any) -> str:
            if path == folder / "meta.json":
                raise OSError(errno.EIO, "Input/output error", str(path))
            return read_text(path, *given, **named)

        monkeypatch.setattr(Path, "read_text", failing)
        files = sorted(folder.iterdir())
        with (
            TantivyEngine(folder, {"stems": "1"}, read_only=True) as engine,
            pytest.raises(StoreDamagedError, match="Input/output error"),
        ):
            engine.leftovers()
        assert find_leftovers(indexer.collection, remove=True) == []
        assert sorted(folder.iterdir()) == files
        # Where there is no list, there are no segments either.
        (tmp_path / "new").mkdir()
        with TantivyEngine(tmp_path / "new", {"stems": "1"}, read_only=True) as engine:
            assert engine.leftovers() == []


def test_a_commit_that_was_killed_before_it_was_listed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its list of removed documents has the name that the next commit takes."""
    documents = list(demo_documents(20, 0))
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add(documents)
        indexer.build()
    (folder,) = (tmp_path / "c" / "indexes").glob("terms-*")
    before = {
        path: path.read_bytes()
        for path in (folder / "meta.json", folder / ".managed.json", folder / "labelkin.json")
    }
    with Indexer.open(tmp_path / "c") as indexer:
        indexer.remove([documents[3].id])
        indexer.build()
    (removals,) = folder.glob("*.del")
    for path, content in before.items():
        path.write_bytes(content)
    segments = {path.name for path in folder.glob("*.idx")}
    with Indexer.open(tmp_path / "c") as indexer:
        indexer.build()
        near = indexer.neighbours([documents[3]])[0]
        assert indexer.check().is_sound
    assert documents[3].id not in {one.id for one in near}
    assert removals.exists()
    # Brought up to date, not rebuilt.
    assert {path.name for path in folder.glob("*.idx")} == segments
    assert caplog.records == []
