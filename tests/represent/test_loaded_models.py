from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from labelkin.represent.loaded_models import LoadedModels, folder_checksum


def test_threads_load_a_model_once() -> None:
    loaded: list[str] = []

    def load(name: str) -> object:
        loaded.append(name)
        time.sleep(0.02)
        return object()

    models = LoadedModels(load, size=2)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(models.get, ["a", "b"] * 8))
    assert sorted(loaded) == ["a", "b"]
    assert len(set(map(id, results))) == 2


def test_one_thread_at_a_time_uses_a_model() -> None:
    models = LoadedModels(lambda name: [name], size=1)
    users: list[int] = []

    def use(number: int) -> int:
        with models.use("a"):
            users.append(number)
            time.sleep(0.002)
            together = len(users)
            users.remove(number)
        return together

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(use, range(20))) == {1}


def test_a_model_does_not_wait_for_another() -> None:
    models = LoadedModels(lambda name: name, size=2)
    with models.use("a"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(models.get, "b").result(timeout=10) == "b"


def test_the_least_recently_used_model_is_dropped() -> None:
    loaded: list[str] = []
    models = LoadedModels(lambda name: loaded.append(name) or name, size=2)
    for name in "abacab":
        models.get(name)
    assert loaded == ["a", "b", "c", "b"]


def test_a_failed_load_is_tried_again() -> None:
    answers = iter([ValueError("damaged"), "model"])

    def load() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    models = LoadedModels(load, size=1)
    with pytest.raises(ValueError, match="damaged"):
        models.get()
    assert models.get() == "model"


def test_checksum_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"12")
    before = folder_checksum(str(tmp_path))
    assert folder_checksum(str(tmp_path)) == before
    os.utime(tmp_path / "weights", (1, 1))
    assert folder_checksum(str(tmp_path)) != before
    assert folder_checksum("organisation/model") == ""
