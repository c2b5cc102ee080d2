from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier, Event
from typing import ClassVar, Self
from weakref import WeakSet

import numpy as np
import pytest

from labelkin.atomic import atomic_text
from labelkin.autoencoder.model import LabelModel
from labelkin.exceptions import CollectionError, ModelNotFoundError
from labelkin.store.models import DESCRIPTION, Models

from .tiny_model import tiny_model

_opened: list[str] | None = None


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _opened is not None:
        _opened.append(str(arguments[0]))


# A hook stays for the life of the process; it only counts inside `counted_files`.
sys.addaudithook(_audit)


@contextmanager
def counted_files() -> Iterator[list[str]]:
    """The names of all files that are opened meanwhile."""
    global _opened
    _opened = names = []
    try:
        yield names
    finally:
        _opened = None


class ToyModel:
    """A model that is nothing but its description, and counts how often it is loaded."""

    folder_name = "toy"
    loaded: ClassVar[list[str]] = []
    alive: ClassVar[WeakSet[ToyModel]] = WeakSet()
    seconds: ClassVar[float] = 0.0

    def __init__(self, checksum: str) -> None:
        self.checksum = checksum
        self.is_closed = False
        self.alive.add(self)

    @classmethod
    def checksum_of(cls, folder: Path) -> str:
        try:
            return str(json.loads((folder / DESCRIPTION).read_text())["checksum"])
        except FileNotFoundError as error:
            raise ModelNotFoundError(f"{folder}: no model") from error

    @classmethod
    def load(cls, folder: Path) -> Self:
        checksum = cls.checksum_of(folder)
        time.sleep(cls.seconds)
        cls.loaded.append(checksum)
        return cls(checksum)

    def close(self) -> None:
        self.is_closed = True


def kind(name: str) -> type[ToyModel]:
    return type(f"Toy{name}", (ToyModel,), {"folder_name": name})


@pytest.fixture(autouse=True)
def _fresh() -> None:
    ToyModel.loaded.clear()
    ToyModel.seconds = 0.0


@pytest.fixture
def models(tmp_path: Path) -> Iterator[Models]:
    with Models(tmp_path / "models") as made:
        yield made


@pytest.fixture
def train(tmp_path: Path) -> Callable[..., None]:
    def write(checksum: str, name: str = "toy") -> None:
        folder = tmp_path / "models" / name
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_text(folder / DESCRIPTION) as file:
            json.dump({"checksum": checksum}, file)

    return write


def test_no_model(models: Models) -> None:
    assert not models.has(ToyModel)
    assert models.find(ToyModel) is None
    with pytest.raises(ModelNotFoundError):
        models.get(ToyModel)
    with pytest.raises(ModelNotFoundError):
        models.checksum(ToyModel)


def test_a_model_that_is_trained_later_is_found(models: Models, train: Callable[..., None]) -> None:
    assert models.find(ToyModel) is None
    train("a")
    assert models.has(ToyModel)
    model = models.find(ToyModel)
    assert model is not None
    assert model.checksum == models.checksum(ToyModel) == "a"


def test_threads_that_ask_at_once_load_a_model_once(
    models: Models, train: Callable[..., None]
) -> None:
    train("a")
    ToyModel.seconds = 0.05
    barrier = Barrier(16)

    def ask() -> ToyModel:
        barrier.wait()
        return models.get(ToyModel)

    with ThreadPoolExecutor(16) as pool:
        results = [future.result() for future in [pool.submit(ask) for _ in range(16)]]
    assert len({id(model) for model in results}) == 1
    assert ToyModel.loaded == ["a"]


def test_looking_up_a_loaded_model_opens_no_file(
    models: Models, train: Callable[..., None]
) -> None:
    train("a")
    with counted_files() as names:
        model = models.get(ToyModel)
    assert any(name.endswith(DESCRIPTION) for name in names)
    with counted_files() as names:
        for _ in range(100):
            assert models.get(ToyModel) is model
            assert models.find(ToyModel) is model
            assert models.checksum(ToyModel) == "a"
            assert models.has(ToyModel)
    assert names == []


def test_a_retrained_model_takes_the_place_of_the_old_one(
    models: Models, train: Callable[..., None]
) -> None:
    train("a")
    before = models.get(ToyModel)
    train("b")
    after = models.get(ToyModel)
    assert (before.checksum, after.checksum) == ("a", "b")
    assert models.get(ToyModel) is after
    assert ToyModel.loaded == ["a", "b"]
    # What was cached with the old one is dropped.
    assert before.is_closed
    assert not after.is_closed


def test_a_replaced_model_can_still_be_used(tmp_path: Path) -> None:
    from scipy.sparse import csr_matrix

    folder = tmp_path / "models" / LabelModel.folder_name
    sets = csr_matrix(np.eye(3, dtype=np.float32))
    with Models(tmp_path / "models") as models:
        tiny_model(folder, ["A", "B", "C"], seed=0)
        before = models.get(LabelModel)
        expected = before.decode(before.encode(sets))
        tiny_model(folder, ["A", "B", "C"], seed=1)
        after = models.get(LabelModel)
        assert after.checksum != before.checksum
        assert np.array_equal(before.decode(before.encode(sets)), expected)
        assert not np.array_equal(after.decode(after.encode(sets)), expected)
    # Also by a request that has begun before closing.
    assert np.array_equal(before.decode(before.encode(sets)), expected)


def test_a_replaced_model_that_was_not_used_before_can_be_used(tmp_path: Path) -> None:
    from scipy.sparse import csr_matrix

    before = tiny_model(tmp_path / "m", ["A", "B", "C"], seed=0)
    tiny_model(tmp_path / "m", ["A", "B", "C"], seed=1)
    assert before.encode(csr_matrix(np.eye(3, dtype=np.float32))).shape == (3, 4)


def test_a_model_that_is_written_again_unchanged_is_not_loaded_again(
    models: Models, train: Callable[..., None]
) -> None:
    train("a")
    model = models.get(ToyModel)
    train("a")
    assert models.get(ToyModel) is model
    assert ToyModel.loaded == ["a"]


def test_a_deleted_model_is_not_found(
    models: Models, train: Callable[..., None], tmp_path: Path
) -> None:
    train("a")
    models.get(ToyModel)
    (tmp_path / "models" / "toy" / DESCRIPTION).unlink()
    assert not models.has(ToyModel)
    assert models.find(ToyModel) is None


def test_a_retrained_model_is_picked_up_while_threads_use_it(
    models: Models, train: Callable[..., None]
) -> None:
    train("0")
    done = Event()

    def use() -> list[int]:
        numbers = []
        while not done.is_set():
            numbers.append(int(models.get(ToyModel).checksum))
        return [*numbers, int(models.get(ToyModel).checksum)]

    with ThreadPoolExecutor(4) as pool:
        users = [pool.submit(use) for _ in range(4)]
        try:
            for number in range(1, 30):
                train(str(number))
                time.sleep(0.002)
        finally:
            done.set()
        for user in users:
            numbers = user.result()
            assert numbers == sorted(numbers)
            assert numbers[-1] == 29


def test_only_the_latest_model_of_each_kind_stays_in_memory(
    models: Models, train: Callable[..., None]
) -> None:
    kinds = [kind(f"m{number}") for number in range(3)]
    for number in range(8):
        for one in kinds:
            train(f"v{number}", one.folder_name)
            models.get(one)
    gc.collect()
    assert sorted((model.folder_name, model.checksum) for model in ToyModel.alive) == [
        ("m0", "v7"),
        ("m1", "v7"),
        ("m2", "v7"),
    ]
    held = models.get(kinds[0])
    train("v8", "m0")
    models.get(kinds[0])
    gc.collect()
    # One that somebody uses stays for as long.
    assert len(ToyModel.alive) == 4
    del held
    gc.collect()
    assert len(ToyModel.alive) == 3


def test_closing_closes_all_models(
    models: Models, train: Callable[..., None], tmp_path: Path
) -> None:
    train("a")
    train("b", "other")
    loaded = [models.get(ToyModel), models.get(kind("other"))]
    models.close()
    assert [model.is_closed for model in loaded] == [True, True]
    loaded.clear()
    gc.collect()
    assert len(ToyModel.alive) == 0
    with pytest.raises(CollectionError, match="closed"):
        models.get(ToyModel)


def test_a_model_that_cannot_be_loaded_is_tried_again(
    models: Models, train: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train("a")
    with monkeypatch.context() as patch:
        patch.setattr(ToyModel, "load", classmethod(lambda cls, folder: 1 / 0))
        with pytest.raises(ZeroDivisionError):
            models.get(ToyModel)
    assert models.get(ToyModel).checksum == "a"


def test_a_description_of_the_same_size_and_time_is_noticed(
    models: Models, train: Callable[..., None], tmp_path: Path
) -> None:
    train("a")
    assert models.get(ToyModel).checksum == "a"
    path = tmp_path / "models" / "toy" / DESCRIPTION
    status = path.stat()
    train("b")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    # It is another file.
    assert models.get(ToyModel).checksum == "b"
