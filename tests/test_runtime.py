"""One open collection: what a call sees of the changes of its own thread, others and processes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from labelkin import Document, Indexer, Settings, Vocabulary
from labelkin.demo import demo_concepts, demo_documents
from labelkin.exceptions import CollectionBehindError, CollectionBusyError
from labelkin.store.config import CONFIG_NAME, update_config
from labelkin.store.locks import FileLock, beside

NEW = Document("new", "Zeppelin hangars of the north", language="en", labels=("LK0005",))
QUERY = Document("", "Zeppelin hangars", language="en")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "c"
    with Indexer.create(folder, Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(60, 0))
        indexer.build()
    return folder


@pytest.fixture(params=[False, True], ids=["on demand", "follow"])
def indexer(request: pytest.FixtureRequest, path: Path) -> Iterator[Indexer]:
    with Indexer.open(path, follow=request.param) as opened:
        yield opened


def nearest(indexer: Indexer) -> str | None:
    (near,) = indexer.neighbours([QUERY], k=1)
    return near[0].id if near else None


def soon(condition: Callable[[], bool], seconds: float = 10.0) -> float:
    """Wait until something is true; after how many seconds it was."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds
        time.sleep(0.02)
    return time.monotonic() - started


def in_another_process(path: Path, code: str) -> None:
    program = (
        f"from labelkin import Indexer, Document\nwith Indexer.open({str(path)!r}) as i: {code}"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_thread_sees_its_own_writes_at_its_next_call(indexer: Indexer) -> None:
    assert nearest(indexer) is None
    for round_ in range(3):
        indexer.add([NEW])
        assert nearest(indexer) == "new", round_
        indexer.remove(["new"])
        assert nearest(indexer) is None, round_


def test_a_thread_sees_what_another_thread_wrote(indexer: Indexer) -> None:
    nearest(indexer)
    writer = threading.Thread(target=lambda: indexer.add([NEW]))
    writer.start()
    writer.join()
    soon(lambda: nearest(indexer) == "new")


def test_the_writes_of_another_process_are_seen_within_a_second(indexer: Indexer) -> None:
    assert nearest(indexer) is None
    add = (
        "i.add([Document('new', 'Zeppelin hangars of the north', language='en', "
        "labels=('LK0005',))])"
    )
    in_another_process(indexer.collection.path, add)
    assert soon(lambda: nearest(indexer) == "new") < 1.5


def test_an_index_that_another_process_brought_up_to_date_is_used(indexer: Indexer) -> None:
    assert nearest(indexer) is None
    code = (
        "i.add([Document('new', 'Zeppelin hangars of the north', language='en', "
        "labels=('LK0005',))]); i.build()"
    )
    in_another_process(indexer.collection.path, code)
    soon(lambda: nearest(indexer) == "new")


def test_settings_changed_by_others_are_seen(indexer: Indexer) -> None:
    text = next(iter(demo_documents(1, 7)))
    query = Document("", text.title, text.body, language="en")
    assert indexer.suggest([query])[0][0].neighbours == 20
    update_config(indexer.collection.path / CONFIG_NAME, {"neighbours": {"k": 7}})
    soon(lambda: indexer.suggest([query])[0][0].neighbours == 7, seconds=1.5)


def test_settings_that_are_not_valid_change_nothing(indexer: Indexer, caplog) -> None:
    nearest(indexer)
    before = indexer.config
    settings = indexer.collection.path / CONFIG_NAME
    settings.write_text("[neighbours]\nk = 'many'\n", encoding="utf-8")
    time.sleep(0.6)
    assert nearest(indexer) is None
    assert indexer.config == before
    assert caplog.text.count("k = 'many'") == 1


def test_a_snapshot_keeps_its_state(indexer: Indexer) -> None:
    snapshot = indexer.snapshot()
    indexer.add([NEW])
    indexer.remove(["demo-00001"])
    assert snapshot.document("new") is None
    assert snapshot.document("demo-00001") is not None
    assert snapshot.count() == 60
    assert indexer.document("new") is not None


def test_without_the_lock_of_the_index_older_documents_are_found(
    path: Path, monkeypatch, caplog
) -> None:
    from labelkin.store import derived

    monkeypatch.setattr(derived, "WRITER_PATIENCE_SECONDS", 0.1)
    with Indexer.open(path) as indexer:
        before = nearest(indexer)
        (folder,) = (path / "indexes").glob("terms-*")
        with FileLock(beside(folder, "write")) as lock:
            assert lock.take()
            indexer.add([NEW])
            assert nearest(indexer) == before
            assert "without the newest documents" in caplog.text
        soon(lambda: nearest(indexer) == "new")
    with Indexer.open(path) as fresh:
        fresh.add([Document("other", "Zeppelins", language="en", labels=("LK0005",))])
        with FileLock(beside(folder, "write")) as lock:
            assert lock.take()
            with pytest.raises(CollectionBusyError, match="building the index"):
                nearest(fresh)


def test_a_retrained_model_is_used_at_once(path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra `train`")
    from labelkin import TrainingSettings

    settings = TrainingSettings(preset="8", epochs=1, batch_size=16, device="cpu")
    text = next(iter(demo_documents(1, 7)))
    query = Document("", text.title, text.body, language="en")
    asked = Settings(method="label-ae").changed(limit=5)
    with Indexer.open(path) as indexer:
        indexer.train_label_ae(settings)
        first = indexer.models_checksum("label-ae")
        before = [one.score for one in indexer.suggest([query], settings=asked)[0]]
        with Indexer.open(path) as other:
            other.train_label_ae(
                TrainingSettings(preset="8", epochs=1, batch_size=16, device="cpu", seed=5)
            )
        assert indexer.models_checksum("label-ae") != first
        after = [one.score for one in indexer.suggest([query], settings=asked)[0]]
        assert before != after


def test_a_long_add_holds_no_old_state(path: Path, monkeypatch) -> None:
    from labelkin import indexer as module

    monkeypatch.setattr(module, "_MANY", 10)
    with Indexer.open(path) as indexer:
        nearest(indexer)
        held: list[bool] = []
        indexer.add(
            list(demo_documents(100, 3)),
            progress=lambda _: held.append(indexer.runtime._current is not None),
        )
        assert held[-1] is False
        assert nearest(indexer) is None


def test_a_thread_can_require_the_write_of_another(indexer: Indexer) -> None:
    assert nearest(indexer) is None
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(
            lambda: (indexer.add([NEW]), indexer.collection.generation().number)[1]
        ).result()
    indexer.require(written)
    assert nearest(indexer) == "new"
    assert indexer.answer([QUERY]).generation >= written


def test_a_required_write_is_seen_while_the_follower_is_asleep(path: Path, monkeypatch) -> None:
    from labelkin import runtime

    monkeypatch.setattr(runtime, "_POLL_SECONDS", 60.0)
    monkeypatch.setattr(runtime, "_OLDEST_SECONDS", 60.0)
    with Indexer.open(path, follow=True) as indexer:
        assert nearest(indexer) is None
        in_another_process(path, "i.add([Document('new', 'Zeppelin hangars', labels=('LK0005',))])")
        assert nearest(indexer) is None
        indexer.require(indexer.collection.generation().number)
        assert nearest(indexer) == "new"
        # What is required is never taken back.
        indexer.require(1)
        assert nearest(indexer) == "new"


def test_no_answer_is_old_while_the_follower_is_asleep(path: Path, monkeypatch) -> None:
    from labelkin import runtime

    monkeypatch.setattr(runtime, "_POLL_SECONDS", 60.0)
    with Indexer.open(path, follow=True) as indexer:
        assert nearest(indexer) is None
        in_another_process(path, "i.add([Document('new', 'Zeppelin hangars', labels=('LK0005',))])")
        time.sleep(1.0)
        assert nearest(indexer) == "new"


def test_a_generation_that_was_never_reached(indexer: Indexer) -> None:
    reached = indexer.collection.generation().number
    with pytest.raises(CollectionBehindError, match=f"at generation {reached}, not at 999"):
        indexer.require(999)
    # The refused requirement does not hold up the next calls.
    assert indexer.answer([QUERY]).generation == reached
