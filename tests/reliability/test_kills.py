"""Twenty kills over all kinds of work; `make soak` does five hundred."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ..serve.processes import HAS_PROC
from .__main__ import run_kills
from .kills import KINDS, Kill, kill_many
from .records import read, write

pytest.importorskip("fastapi", reason="needs the extra `serve`")
pytest.importorskip("faiss", reason="needs the extra `dense`")
pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("lightgbm", reason="needs the extra `rerank`")

KILLS = {kind: 1 if kind in ("train", "serve") else 3 for kind in KINDS}


def test_a_run_continues_or_starts_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = tmp_path / "kills.jsonl"
    rows = [{"kind": kind, "stored": ""} for kind in ("add", "add", "learn")]
    write(results, rows)
    asked: list[tuple[dict[str, int], int]] = []

    def kill(counts: dict[str, int], *_: object, seed: int) -> list[Kill]:
        asked.append((counts, seed))
        return []

    monkeypatch.setattr("tests.reliability.__main__.kill_many", kill)
    assert run_kills(4, ["add", "remove"], results) == 0
    assert read(results) == rows
    assert run_kills(4, ["add", "remove"], results, again=True) == 0
    assert read(results) == rows[2:]
    # At other moments than before in either case.
    assert asked == [({"add": 0, "remove": 2}, 3), ({"add": 2, "remove": 2}, 3)]


@pytest.mark.skipif(not HAS_PROC, reason="needs /proc")
def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    kills = kill_many(KILLS, tmp_path, lambda _: None)
    assert [kill.problem for kill in kills if kill.problem] == []
    assert Counter(kill.kind for kill in kills) == Counter(KILLS)
    assert sum(kill.is_hit for kill in kills) > 5
    assert sum(kill.compared for kill in kills) > 1000
