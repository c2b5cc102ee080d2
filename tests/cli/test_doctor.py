from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tarfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest

from labelkin import Indexer, integrity
from labelkin.integrity import check_collection
from labelkin.neighbours.term_index import stored_index
from labelkin.store.derived import StoreState

from .conftest import Run

FIXTURE = Path(__file__).parents[1] / "fixtures" / "collection-0.1.tar.gz"


def findings(run: Run, *arguments: object) -> tuple[int, dict[str, str], dict]:
    done = run("doctor", *arguments, "--json")
    content = json.loads(done.stdout)
    parts = [one["part"] for one in content["findings"]]
    assert sorted(parts) == sorted({*parts}), "a part is listed twice"
    return done.exit_code, {one["part"]: one["state"] for one in content["findings"]}, content


def test_a_sound_collection(run: Run, collection: Path) -> None:
    with Indexer.open(collection) as indexer:
        indexer.build()
        assert indexer.check().is_sound
    done = run("doctor", collection)
    assert done.exit_code == 0
    assert "Everything is sound." in done.stderr
    code, states, content = findings(run, collection)
    assert code == 0
    assert content["sound"]
    assert {*states.values()} == {"sound"}
    assert {"manifest.json", "labelkin.toml", "documents.sqlite", "labels"} < {*states}
    assert "cache/terms.sqlite" in states
    assert any(part.startswith("indexes/terms-") for part in states)


def test_documents_are_added_meanwhile(run: Run, demo: str) -> None:
    """Everything is compared with one state of the database, whatever is written since."""
    ended, failures = Event(), []

    def add() -> None:
        try:
            with Indexer.open(demo) as indexer:
                documents = list(indexer.documents())[:20]
                batch = 0
                while not ended.is_set():
                    indexer.add([replace(one, id=f"{batch} {one.id}") for one in documents])
                    indexer.remove([f"{batch} {one.id}" for one in documents[:5]])
                    if batch % 3 == 0:
                        indexer.build()
                    batch += 1
        except Exception as error:
            failures.append(error)

    writer = Thread(target=add)
    writer.start()
    try:
        problems = [check_collection(Path(demo)).problems for _ in range(15)]
    finally:
        ended.set()
        writer.join()
    assert not failures
    assert problems == [[]] * len(problems)


def test_an_index_is_filled_after_it_was_opened(
    collection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process commits for the first time between two looks at the index."""
    with Indexer.open(collection) as indexer:
        indexer.build()
    (folder,) = (collection / "indexes").glob("terms-*")
    record, opened = stored_index(folder), integrity._opened_rows
    assert record is not None
    nothing = np.zeros(0, dtype=np.int64), StoreState()
    looks = iter([replace(record, applied=StoreState())])
    monkeypatch.setattr(integrity, "stored_index", lambda _: next(looks, record))
    attempts = iter([nothing])
    monkeypatch.setattr(
        integrity, "_opened_rows", lambda *given: next(attempts, None) or opened(*given)
    )
    assert check_collection(collection).is_sound
    # Nobody has written, and the index is empty all the same.
    monkeypatch.setattr(integrity, "_opened_rows", lambda *_: nothing)
    (problem,) = check_collection(collection).problems
    assert "its files cannot be read" in problem.problem


def test_no_collection(run: Run, tmp_path: Path) -> None:
    done = run("doctor", tmp_path / "nothing")
    assert done.exit_code == 1
    assert done.stderr.startswith("error: ")
    assert "labelkin init" in done.stderr


def test_a_collection_of_an_earlier_version(run: Run, tmp_path: Path) -> None:
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(tmp_path / "old", filter="data")
    (folder,) = (path.parent for path in (tmp_path / "old").rglob("documents.sqlite"))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    code, states, _ = findings(run, folder)
    assert code == 0
    assert states["labels"] == "no checksum"
    assert {*states.values()} == {"sound", "no checksum"}
    assert {path: path.read_bytes() for path in before} == before
    with Indexer.open(folder) as indexer:
        document = next(iter(indexer.documents()))
        indexer.remove([document.id])
        indexer.add([document])
    assert findings(run, folder)[1]["labels"] == "sound"


def test_a_lost_manifest(run: Run, collection: Path) -> None:
    (collection / "manifest.json").unlink()
    assert "doctor" in run("info", collection).stderr
    code, states, content = findings(run, collection)
    assert code == 1
    assert states == {"manifest.json": "damaged", "labelkin.toml": "sound"}
    assert not content["is_complete"]
    code, states, _ = findings(run, collection, "--repair")
    assert code == 0
    assert states["manifest.json"] == "repaired"
    with Indexer.open(collection) as indexer:
        assert [document.id for document in indexer.documents()] == ["1", "2", "3"]
    assert findings(run, collection)[0] == 0


@pytest.mark.parametrize("state", ["missing", "empty"])
def test_missing_settings(run: Run, collection: Path, state: str) -> None:
    (collection / "labelkin.toml").unlink()
    if state == "empty":
        (collection / "labelkin.toml").touch()
    done = run("suggest", collection, "--title", "On rye")
    assert done.exit_code == 0
    assert f"{state}; using the defaults" in done.stderr
    assert findings(run, collection)[1]["labelkin.toml"] == "damaged"
    assert findings(run, collection, "--repair")[1]["labelkin.toml"] == "repaired"
    assert findings(run, collection)[0] == 0


def test_broken_settings(run: Run, collection: Path) -> None:
    (collection / "labelkin.toml").write_text("[neighbours]\nk = many\n")
    for arguments in ((), ("--repair",)):
        code, states, content = findings(run, collection, *arguments)
        assert code == 1
        assert states["labelkin.toml"] == "damaged"
        assert "not valid TOML" in content["findings"][-1]["problem"]
    assert (collection / "labelkin.toml").read_text() == "[neighbours]\nk = many\n"


@pytest.mark.parametrize("content", [b"", b"\0" * 8192, b"not a database " * 1000])
def test_no_database(run: Run, collection: Path, content: bytes) -> None:
    for suffix in ("-wal", "-shm"):
        (collection / f"documents.sqlite{suffix}").unlink(missing_ok=True)
    (collection / "documents.sqlite").write_bytes(content)
    for verb in ("doctor", "info"):
        done = run(verb, collection)
        assert done.exit_code == 1
        assert "backup" in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["labels", "labels/manifest.json"])
def test_something_else_in_place_of_labels(run: Run, collection: Path, name: str) -> None:
    if name == "labels":
        shutil.rmtree(collection / name)
    (collection / name).write_text("[1]")
    code, states, content = findings(run, collection)
    assert (code, states["labels"]) == (1, "damaged")
    (damage,) = [one for one in content["findings"] if one["part"] == "labels"]
    assert damage["problem"].endswith(("not a folder", "manifest.json is not a JSON object"))
    assert findings(run, collection, "--repair")[1]["labels"] == "repaired"
    assert findings(run, collection)[0] == 0


def test_a_database_that_was_cut(run: Run, collection: Path) -> None:
    os.truncate(collection / "documents.sqlite", 5000)
    code, states, content = findings(run, collection)
    assert (code, states["documents.sqlite"]) == (1, "damaged")
    assert not content["is_complete"]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE documents SET title = 'On rice' WHERE id = '1'", "does not match its checksum"),
        ("UPDATE documents SET labels = x'0000' WHERE id = '1'", "does not match its checksum"),
        ("UPDATE documents SET text_checksum = 7 WHERE id = '1'", "has a text that does not match"),
        ("UPDATE documents SET revision = 'new' WHERE id = '1'", "has the revision 'new', neither"),
        ("DELETE FROM documents WHERE id = '2'", "documents are missing"),
        ("INSERT INTO tombstones VALUES (1, 1)", "a tombstone"),
        ("UPDATE concepts SET concept = '{}' WHERE \"column\" = 1", "the concept in column 1"),
        ('DELETE FROM concepts WHERE "column" = 2', "concepts are missing"),
    ],
)
def test_a_database_that_was_tampered_with(
    run: Run, collection: Path, statement: str, problem: str
) -> None:
    with closing(sqlite3.connect(collection / "documents.sqlite")) as connection:
        connection.execute(statement)
        connection.commit()
    code, _, content = findings(run, collection, "--repair")
    assert code == 1
    (damage,) = [one for one in content["findings"] if one["state"] == "damaged"]
    assert damage["part"] == "documents.sqlite"
    assert problem in damage["problem"]
    assert "backup" in damage["remedy"]


@pytest.mark.parametrize(
    "pattern",
    [
        "labels/manifest.json",
        "labels/*.columns.npy",
        "labels/*.starts.npy",
        "indexes/terms-*/*.idx",
        "indexes/terms-*/meta.json",
        "indexes/terms-*/labelkin.json",
        "cache/terms.sqlite",
        "cache/names.npz",
    ],
)
def test_what_is_derived_is_repaired(run: Run, reranked: str, pattern: str) -> None:
    before = run("suggest", reranked, "held.jsonl", "--method", "rerank", "--json").stdout
    (path,) = Path(reranked).glob(pattern)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    code, states, _ = findings(run, reranked)
    if pattern == "cache/terms.sqlite" and code == 0:
        pytest.skip("the bit is in a place that SQLite does not use")
    assert code == 1
    (part,) = [part for part, state in states.items() if state == "damaged"]
    assert pattern.startswith(part.replace(part.partition("-")[2], "*") if "-" in part else part)
    code, states, _ = findings(run, reranked, "--repair")
    assert code == 0
    assert states[part] == "repaired"
    assert findings(run, reranked)[0] == 0
    assert run("suggest", reranked, "held.jsonl", "--method", "rerank", "--json").stdout == before


@pytest.mark.parametrize("name", ["*.idx", "*.store", "*.del", "meta.json"])
def test_a_file_of_an_index_is_missing(run: Run, collection: Path, name: str) -> None:
    with Indexer.open(collection) as indexer:
        indexer.build()
        indexer.remove([next(iter(indexer.documents())).id])
        indexer.build()
    (path,) = collection.glob(f"indexes/terms-*/{name}")
    part = path.parent.relative_to(collection).as_posix()
    path.unlink()
    code, states, report = findings(run, collection)
    assert (code, states[part]) == (1, "damaged")
    (problem,) = [one["problem"] for one in report["findings"] if one["part"] == part]
    assert problem == f"{path}: missing"
    run("backup", collection, collection.with_name("copy"))
    assert not (collection.with_name("copy") / part).exists()
    assert findings(run, collection, "--repair")[1][part] == "repaired"
    assert findings(run, collection)[0] == 0


def test_label_segments_that_differ_from_the_database(run: Run, collection: Path) -> None:
    """As an earlier version could leave them, without checksums."""
    (columns,) = (collection / "labels").glob("*.columns.npy")
    content = bytearray(columns.read_bytes())
    content[-4] ^= 1
    columns.write_bytes(content)
    manifest = collection / "labels" / "manifest.json"
    old = json.loads(manifest.read_text())
    del old["checksum"], old["checksums"]
    manifest.write_text(json.dumps(old))
    code, states, content = findings(run, collection)
    assert (code, states["labels"]) == (1, "damaged")
    assert "is not that of the database" in str(content)
    assert findings(run, collection, "--repair")[0] == 0
    assert findings(run, collection)[1]["labels"] == "sound"


def test_a_damaged_model_must_be_trained_again(run: Run, reranked: str) -> None:
    (path,) = Path(reranked, "models", "rerank").glob("ranker-*.txt")
    path.write_bytes(bytes(path.stat().st_size))
    (columns,) = Path(reranked, "labels").glob("*.columns.npy")
    columns.write_bytes(bytes(columns.stat().st_size))
    code, states, content = findings(run, reranked)
    assert code == 1
    assert states["models/rerank"] == "damaged"
    (damage,) = [one for one in content["findings"] if one["part"] == "models/rerank"]
    assert damage["problem"].endswith("(its checksum does not match)")
    code, states, content = findings(run, reranked, "--repair")
    assert code == 3
    assert states["models/rerank"] == "damaged"
    assert states["labels"] == "repaired"
    assert f"labelkin train {reranked}" in str(content)


@pytest.mark.parametrize(
    ("pattern", "content"),
    [("terms-*.txt", None), ("ranker-*.txt", b""), ("statistics-*.safetensors", b"PK")],
)
def test_info_shows_only_models_that_can_be_used(
    run: Run, reranked: str, pattern: str, content: bytes | None
) -> None:
    assert json.loads(run("info", reranked, "--json").stdout)["models"] == ["rerank"]
    # What an interrupted training leaves.
    Path(reranked, "models", "label-ae").mkdir()
    assert json.loads(run("info", reranked, "--json").stdout)["models"] == ["rerank"]
    path = next(Path(reranked, "models", "rerank").glob(pattern))
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    shown = json.loads(run("info", reranked, "--json").stdout)
    assert shown["models"] == []
    (state,) = shown["model_states"]
    assert not state["is_usable"]
    assert "train the reranker again" in state["problem"]
    shown = run("info", reranked).stdout
    assert "none that can be used" in shown
    assert "cannot be used: " in shown


def test_info_leaves_the_content_of_models_to_check(run: Run, reranked: str) -> None:
    """Reading all of them would take seconds."""
    (path,) = Path(reranked, "models", "rerank").glob("terms-*.txt")
    path.write_bytes(bytes(path.stat().st_size))
    assert json.loads(run("info", reranked, "--json").stdout)["models"] == ["rerank"]
    assert findings(run, reranked)[1]["models/rerank"] == "damaged"


def test_info_says_when_a_model_is_older_than_the_documents(run: Run, reranked: str) -> None:
    assert "since it was trained" not in run("info", reranked).stdout
    with Indexer.open(reranked) as indexer:
        first = next(iter(indexer.documents()))
        indexer.remove([first.id])
    shown = run("info", reranked).stdout
    assert "1 document removed since it was trained" in shown
    assert "may help" not in shown
    assert run("add", reranked, "held.jsonl").exit_code == 0
    shown = run("info", reranked).stdout
    assert "60 documents added, 1 document removed" in shown
    assert "retraining with `labelkin train` may help" in shown
    (state,) = json.loads(run("info", reranked, "--json").stdout)["model_states"]
    assert (state["added"], state["removed"], state["is_outdated"]) == (60, 1, True)
    assert state["representation"] == "stems"


def test_a_copy_is_as_sound_as_the_original(run: Run, reranked: str, tmp_path: Path) -> None:
    shutil.copytree(reranked, tmp_path / "copy")
    assert findings(run, tmp_path / "copy")[0] == 0


def test_an_index_that_another_process_has_open_is_not_deleted(run: Run, collection: Path) -> None:
    with Indexer.open(collection) as indexer:
        indexer.build()
        (path,) = collection.glob("indexes/terms-*/*.idx")
        content = path.read_bytes()
        path.write_bytes(content[:-1] + b"?")
        code, states, report = findings(run, collection, "--repair")
        assert code == 1
        assert "damaged" in states.values()
        assert "another process has it open" in str(report)
    assert path.exists()
    assert findings(run, collection, "--repair")[0] == 0


def test_check_is_another_name(run: Run, collection: Path) -> None:
    for arguments in ((), ("--repair",), ("--json",)):
        named = [run(verb, collection, *arguments) for verb in ("doctor", "check")]
        assert named[0].output == named[1].output
        assert named[0].exit_code == named[1].exit_code == 0


def row_removed(folder: Path) -> None:
    """Take a document out of tantivy's index without a word to anybody."""
    import tantivy

    index = tantivy.Index.open(str(folder))
    writer = index.writer(num_threads=1, heap_size=15_000_000)
    writer.delete_documents_by_term("key", "1")
    writer.commit()
    writer.wait_merging_threads()
    record = json.loads((folder / "labelkin.json").read_text())
    del record["checksum"], record["meta"]
    (folder / "labelkin.json").write_text(json.dumps(record))


def test_an_index_that_lacks_a_document(
    run: Run, collection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labelkin.integrity._ROWS", 1)
    with Indexer.open(collection) as indexer:
        indexer.build()
    (folder,) = collection.glob("indexes/terms-*")
    part = f"indexes/{folder.name}"
    assert f"{part}  sound: 2 documents" in run("doctor", collection).stdout
    row_removed(folder)
    code, states, content = findings(run, collection)
    assert (code, states[part]) == (1, "damaged")
    assert "1 are missing, 0 too many" in str(content)
    assert findings(run, collection, "--repair")[1][part] == "repaired"
    with Indexer.open(collection) as indexer:
        indexer.build()
    assert findings(run, collection)[0] == 0


def test_a_store_that_is_behind_is_sound(run: Run, collection: Path) -> None:
    with Indexer.open(collection) as indexer:
        indexer.build()
        (document,) = [one for one in indexer.documents() if one.id == "2"]
        indexer.add([replace(document, id="4")])
        indexer.remove(["1"])
    done = run("doctor", collection)
    assert done.exit_code == 0
    assert "1 document and 1 removed, 1 row behind the database" in done.stdout


def test_cached_terms_of_other_texts(run: Run, collection: Path) -> None:
    with Indexer.open(collection) as indexer:
        indexer.build()
    with closing(sqlite3.connect(collection / "cache" / "terms.sqlite")) as connection:
        connection.execute("UPDATE terms SET terms = (SELECT max(terms) FROM terms)")
        connection.commit()
    code, states, content = findings(run, collection)
    assert (code, states["cache/terms.sqlite"]) == (1, "damaged")
    assert "are not those of its text" in str(content)
    assert findings(run, collection, "--repair")[0] == 0


def test_leftovers(run: Run, reranked: str) -> None:
    folder = Path(reranked)
    long_ago = 1_700_000_000
    nobody = 1 << 22
    left = [
        f"labels/.manifest.json.{nobody}-0123abcd.part",
        "labels/000000000007-000000000009.starts.npy",
        "indexes/terms-0123abcd/0123456789abcdef0123456789abcdef.idx",
        "indexes/.terms-0123abcd.compact/meta.json",
        "indexes/sample-0123abcd/labelkin.json",
        "models/rerank/statistics-0123456789abcdef0123456789abcdef.safetensors",
    ]
    for name in left:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"something")
        os.utime(folder / name, (long_ago, long_ago))
    # What runs at this moment, and what can be resumed.
    running = folder / f".labelkin.toml.{os.getpid()}-0123abcd.part"
    running.touch()
    # What processes of another container may be writing, and what is not labelkin's.
    others = [
        folder / f"labels/.manifest.json.{nobody}-4567cdef.part",
        folder / "models/lsa/0123456789abcdef.npz",
        folder / "indexes/notes/plan.txt",
        folder / "indexes/terms-other/its-own.bin",
        folder / "indexes/sample-texts/one.txt",
        folder / "indexes/terms-list",
        folder / "indexes/README",
    ]
    for path in others:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"something")
    for path in others[1:]:
        os.utime(path, (long_ago, long_ago))
    checkpoint = folder / "models" / "label-ae" / "checkpoint" / "checkpoint.json"
    checkpoint.parent.mkdir(parents=True)
    checkpoint.touch()
    code, states, content = findings(run, folder)
    assert code == 0
    found = {part for part, state in states.items() if state == "leftover"}
    assert found == {left[0], left[1], left[5], *(str(Path(one).parent) for one in left[2:5])}
    assert states["models/label-ae/checkpoint"] == "sound"
    assert "train demo --resume" in str(content)
    shown = run("doctor", folder)
    assert "LEFTOVER: unfinished files of a compaction; --repair removes it" in shown.stdout
    assert "6 leftovers of killed processes" in shown.stderr
    code, states, _ = findings(run, folder, "--repair")
    assert code == 0
    assert {states[part] for part in found} == {"removed"}
    assert not any((folder / name).exists() for name in left)
    assert all(path.exists() for path in (running, checkpoint, *others))
    run("compact", folder)
    assert all(path.exists() for path in (running, checkpoint, *others))
    assert "leftover" not in findings(run, folder)[1].values()


def test_compact_and_backup(run: Run, demo: str) -> None:
    run("build", demo)
    ids = [json.loads(line)["id"] for line in Path("all.jsonl").read_text().splitlines()]
    assert run("remove", demo, *ids[:50]).exit_code == 0
    assert run("build", demo).exit_code == 0
    done = run("compact", demo)
    assert done.exit_code == 0
    assert "50 removed documents dropped" in done.stdout
    assert "Freed " in done.stderr
    again = json.loads(run("compact", demo, "--json").stdout)
    # The last pages are given back when nobody reads them any more.
    assert {one["part"] for one in again["parts"]} <= {"documents.sqlite"}
    assert "Nothing to do" in run("compact", demo).stderr
    done = run("backup", demo, "copy")
    assert done.exit_code == 0
    assert "Copied 250 documents to copy" in done.stderr
    assert run("backup", demo, "copy").stderr == (
        "error: copy: already exists; choose another name or remove it\n"
    )
    assert json.loads(run("backup", demo, "c.tar", "--json").stdout)["documents"] == 250
    assert findings(run, "copy")[0] == 0
