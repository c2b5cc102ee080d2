"""What a request opens, and what is left open."""

from __future__ import annotations

import gc
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from labelkin import Document, Indexer, Settings

from .runtime_data import (
    HAS_PROC,
    descriptors,
    fresh_documents,
    make_trained,
    mapped_files,
    variants,
)

pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("lightgbm", reason="needs the extra `rerank`")
pytestmark = pytest.mark.skipif(not HAS_PROC, reason="needs /proc to count open files")

_counting: list[list[str]] = []


def _watch(event: str, arguments: tuple) -> None:
    if event in ("open", "sqlite3.connect", "os.listdir", "os.scandir"):
        for events in _counting:
            events.append(f"{event} {arguments[0]}")


sys.addaudithook(_watch)


@contextmanager
def opened_files() -> Iterator[list[str]]:
    """The files that Python code opens within the block."""
    events: list[str] = []
    _counting.append(events)
    try:
        yield events
    finally:
        _counting.remove(events)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    path = tmp_path_factory.mktemp("files") / "c"
    return path, make_trained(path)


def test_a_warm_request_with_other_settings_opens_nothing(trained) -> None:
    path, methods = trained
    texts = fresh_documents()
    with Indexer.open(path) as indexer:
        asked = variants(indexer, methods)
        indexer.warm_up(methods)
        before, maps = descriptors(), mapped_files(path)
        with opened_files() as events:
            for number, settings in enumerate(asked):
                changed = settings.changed(limit=number % 7 + 1, threshold=number / 100)
                indexer.suggest(texts[1:2], settings=changed, explain=number % 2 == 0)
        assert events == []
        assert descriptors() == before
        assert mapped_files(path) == maps


def test_models_are_loaded_once_although_documents_are_added(trained, tmp_path) -> None:
    shutil.copytree(trained[0], tmp_path / "c")
    (text,) = fresh_documents(1)
    with Indexer.open(tmp_path / "c") as indexer:
        settings = Settings.from_config(indexer.config, "rerank")
        # The first new document needs the encoder, which is mapped then.
        for name in ("first", "second"):
            indexer.suggest([text], settings=settings)
            indexer.add([Document(name, "Barns", language="en", labels=("LK0005",))])
            with opened_files() as events:
                indexer.suggest([text], settings=settings)
        models = [event for event in events if "/models/" in event and "latents" not in event]
        assert models == []


@pytest.mark.parametrize("follow", [False, True])
def test_everything_is_closed(trained, tmp_path, follow: bool) -> None:
    shutil.copytree(trained[0], tmp_path / "c")
    texts = fresh_documents()
    gc.collect()
    before = descriptors()
    indexer = Indexer.open(tmp_path / "c", follow=follow)
    for settings in variants(indexer, trained[1]):
        indexer.suggest(texts[:2], settings=settings, explain=True)
    indexer.add([Document("one more", "Barns", language="en", labels=("LK0005",))])
    indexer.suggest(texts[:1])
    indexer.remove(["one more"])
    indexer.suggest(texts)
    indexer.info()
    indexer.close()
    gc.collect()
    assert descriptors() == before
    assert mapped_files(tmp_path / "c") == []


def test_a_closed_indexer_says_so(trained) -> None:
    from labelkin import LabelkinError

    indexer = Indexer.open(trained[0])
    indexer.close()
    calls: list[Callable[[], object]] = [
        lambda: indexer.suggest(fresh_documents(1)),
        lambda: indexer.document("demo-00001"),
        lambda: indexer.add([Document("x", "y")]),
    ]
    for call in calls:
        with pytest.raises(LabelkinError, match="closed"):
            call()
