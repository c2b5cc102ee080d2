"""No file of a collection can be damaged without identical results or one clear line."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import pytest

from labelkin import Document, Indexer, Settings
from labelkin.exceptions import LabelkinError, ModelDamagedError
from labelkin.integrity import check_collection
from labelkin.store import background

from .runtime_data import PAPER, fresh_documents, make_trained, signature

pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("lightgbm", reason="needs the extra `rerank`")
pytest.importorskip("faiss", reason="needs the extra `dense`")

# Every file of a trained collection that suggestions depend on, and the methods that read it.
# "same" means rebuilt, "error" refused with the remedy.
FILES = {
    "manifest.json": ("either", ("knn",)),
    "labels/manifest.json": ("same", ("knn", "label-ae")),
    "labels/*.starts.npy": ("same", ("knn", "label-ae")),
    "labels/*.columns.npy": ("same", ("knn", "label-ae")),
    "indexes/terms-*/meta.json": ("same", ("knn",)),
    "indexes/terms-*/.managed.json": ("same", ("knn",)),
    "indexes/terms-*/labelkin.json": ("same", ("knn",)),
    "indexes/terms-*/*.fast": ("same", ("knn",)),
    "indexes/terms-*/*.fieldnorm": ("same", ("knn",)),
    "indexes/terms-*/*.idx": ("same", ("knn",)),
    "indexes/terms-*/*.pos": ("same", ("knn",)),
    "indexes/terms-*/*.store": ("same", ("knn",)),
    "indexes/terms-*/*.term": ("same", ("knn",)),
    "indexes/vectors-*/labelkin.json": ("same", ("lsa",)),
    "indexes/vectors-*/*.keys": ("same", ("lsa",)),
    "indexes/vectors-*/*.vectors": ("same", ("lsa",)),
    "cache/names.npz": ("same", ("lexical", "rerank")),
    "cache/terms.sqlite": ("same", ("knn", "lsa")),
    "models/lsa/model.json": ("same", ("lsa",)),
    "models/lsa/*.npz": ("same", ("lsa",)),
    "models/label-ae/model.json": ("error", ("label-ae",)),
    "models/label-ae/weights-*.safetensors": ("error", ("label-ae",)),
    "models/label-ae/latents.json": ("same", ("label-ae", "rerank")),
    "models/label-ae/latents-*.f16": ("same", ("label-ae", "rerank")),
    "models/rerank/model.json": ("error", ("rerank",)),
    "models/rerank/ranker-*.txt": ("error", ("rerank",)),
    "models/rerank/statistics-*.safetensors": ("error", ("rerank",)),
    "models/rerank/terms-*.txt": ("error", ("rerank",)),
    "models/rerank/trees-*.safetensors": ("error", ("rerank",)),
}
# Files for people, and locks. SQLite and the settings have tests of their own.
OTHERS = (
    "documents.sqlite",
    "labelkin.toml",
    "README.md",
    "training.csv",
    "*.png",
    "*.lock",
    "*.write",
    "*.open",
)
METHODS = ("knn", "lsa", "label-ae", "lexical", "rerank")


def answers(folder: Path, methods: Sequence[str] = METHODS, *, read_only: bool = False) -> dict:
    """What a new process suggests."""
    with Indexer.open(folder, read_only=read_only) as indexer:
        return {method: answer(indexer, method) for method in methods}


def answer(indexer: Indexer, method: str) -> list:
    """What is suggested by a method; `lsa` stands for votes by that representation."""
    settings = Settings.from_config(indexer.config, "knn" if method == "lsa" else method)
    suggestions = indexer.suggest(
        fresh_documents(4),
        settings=settings,
        representation="lsa" if method == "lsa" else None,
    )
    return [signature(one) for one in suggestions]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """A trained collection with everything that is derived from it, and its answers."""
    folder = tmp_path_factory.mktemp("integrity") / "c"
    make_trained(folder)
    return folder, answers(folder)


@pytest.fixture
def copied(trained: tuple[Path, dict], tmp_path: Path) -> tuple[Path, dict]:
    folder = shutil.copytree(trained[0], tmp_path / "c")
    return folder, trained[1]


@pytest.fixture(scope="module")
def trained_paper(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """The same with the paper's label autoencoder."""
    folder = tmp_path_factory.mktemp("integrity-paper") / "c"
    make_trained(folder, label_ae=PAPER)
    return folder, answers(folder)


@pytest.fixture
def copied_paper(trained_paper: tuple[Path, dict], tmp_path: Path) -> tuple[Path, dict]:
    folder = shutil.copytree(trained_paper[0], tmp_path / "c")
    return folder, trained_paper[1]


def all_files(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix()


def test_every_file_is_listed(trained: tuple[Path, dict]) -> None:
    for name in all_files(trained[0]):
        known = [one for one in FILES if fnmatch(name, one)]
        others = [one for one in OTHERS if fnmatch(name.rpartition("/")[2], one)]
        assert known or others, name


def damage(path: Path, kind: str) -> None:
    content = bytearray(path.read_bytes())
    if kind == "zeros":
        content[:] = bytes(len(content))
    elif kind == "bit":
        content[len(content) // 2] ^= 4
    else:
        del content[len(content) // 2 :]
    path.write_bytes(content)


@pytest.mark.parametrize("kind", ["zeros", "bit", "cut"])
@pytest.mark.parametrize("pattern", FILES)
def test_damage_is_never_silent(
    pattern: str,
    kind: str,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Only the paper's autoencoder has the latent vectors of documents.
    fixture = "copied_paper" if "latents" in pattern else "copied"
    folder, expected = request.getfixturevalue(fixture)
    paths = list(folder.glob(pattern))
    if not paths:
        pytest.skip("this collection has no such file")
    caplog.set_level(logging.WARNING)
    damage(paths[0], kind)
    outcome, methods = FILES[pattern]
    try:
        results = answers(folder, methods)
    except LabelkinError as error:
        message = str(error)
        assert outcome in ("error", "either"), message
        assert "\n" not in message
        assert paths[0].name in message
        assert any(word in message for word in ("again", "labelkin doctor")), message
        return
    assert outcome in ("same", "either")
    assert results == {method: expected[method] for method in methods}
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) <= 1
    # Rebuilt: nothing is wrong any more.
    caplog.clear()
    assert answers(folder, methods) == results
    assert not caplog.records


LARGE = (
    "labelkin.store.label_sets",
    "labelkin.neighbours.term_index",
    "labelkin.neighbours.vector_file",
    "labelkin.autoencoder.latents",
    "labelkin.autoencoder.model",
)


@pytest.fixture
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are verified as large ones are: in the background, or where they are read."""
    for module in LARGE:
        monkeypatch.setattr(f"{module}.SMALL", 0)


@pytest.mark.usefixtures("everything_is_large")
@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        ("labels/*.columns.npy", "knn"),
        ("indexes/terms-*/*.fieldnorm", "knn"),
        ("indexes/vectors-*/*.vectors", "lsa"),
    ],
)
def test_damage_of_large_files_is_found_in_the_background(
    pattern: str, method: str, copied: tuple[Path, dict], caplog: pytest.LogCaptureFixture
) -> None:
    folder, expected = copied
    (path,) = folder.glob(pattern)
    content = bytearray(path.read_bytes())
    # Not so much that it shows at once.
    content[len(content) // 2 : len(content) // 2 + 9] = bytes(9)
    path.write_bytes(content)
    with Indexer.open(folder) as indexer:
        answer(indexer, method)
        background.finish()
        (record,) = [one for one in caplog.records if one.levelno >= logging.WARNING]
        assert record.levelname == "ERROR"
        assert path.name in record.getMessage()
        assert "rebuilding" in record.getMessage()
        assert answer(indexer, method) == expected[method]
        background.finish()
    caplog.clear()
    assert answers(folder) == expected
    background.finish()
    assert not caplog.records


@pytest.mark.usefixtures("everything_is_large")
def test_nothing_is_found_in_sound_files(copied: tuple[Path, dict], caplog) -> None:
    folder, expected = copied
    with Indexer.open(folder) as indexer:
        assert {method: answer(indexer, method) for method in METHODS} == expected
        background.finish()
        assert {method: answer(indexer, method) for method in METHODS} == expected
    assert not caplog.records


@pytest.mark.usefixtures("everything_is_large")
def test_large_latents_are_verified_where_they_are_read(
    copied_paper: tuple[Path, dict], caplog: pytest.LogCaptureFixture
) -> None:
    folder, expected = copied_paper
    (path,) = folder.glob("models/label-ae/latents-*.f16")
    path.write_bytes(bytes(path.stat().st_size))
    with Indexer.open(folder) as indexer:
        for method in ("label-ae", "rerank"):
            assert answer(indexer, method) == expected[method]
    (record,) = caplog.records
    assert path.name in record.getMessage()
    assert any(path.read_bytes())


@pytest.mark.usefixtures("everything_is_large")
def test_large_weights_are_verified_where_they_are_read(copied: tuple[Path, dict]) -> None:
    folder, _ = copied
    (path,) = folder.glob("models/label-ae/weights-*.safetensors")
    message = f"{path.name}: damaged .* train the model again"
    content = path.read_bytes()
    for place in range(len(content) // 20, len(content), len(content) // 10):
        damaged = bytearray(content)
        damaged[place] ^= 4
        path.write_bytes(damaged)
        (folder / "models" / "label-ae" / "latents.json").unlink(missing_ok=True)
        with (
            Indexer.open(folder) as indexer,
            pytest.raises(ModelDamagedError, match=message),
        ):
            answer(indexer, "label-ae")


@pytest.mark.usefixtures("everything_is_large")
def test_weights_without_checksums_by_block(copied: tuple[Path, dict], caplog) -> None:
    """Those of an earlier version are verified as a whole, in the background."""
    folder, expected = copied
    description = folder / "models" / "label-ae" / "model.json"
    content = json.loads(description.read_text())
    del content["checksum"], content["checksums"]
    description.write_text(json.dumps(content))
    with Indexer.open(folder) as indexer:
        assert answer(indexer, "label-ae") == expected["label-ae"]
        background.finish()
        assert answer(indexer, "label-ae") == expected["label-ae"]
    (path,) = folder.glob("models/label-ae/weights-*.safetensors")
    weights = bytearray(path.read_bytes())
    weights[len(weights) // 2] ^= 4
    path.write_bytes(weights)
    caplog.clear()
    with Indexer.open(folder) as indexer:
        answer(indexer, "label-ae")
        background.finish()
        (record,) = caplog.records
        assert record.levelname == "ERROR"
        with pytest.raises(ModelDamagedError, match="train the model again"):
            answer(indexer, "label-ae")


@pytest.mark.parametrize("pattern", ["labels/*.columns.npy", "indexes/terms-*/*.idx"])
def test_a_reader_that_may_not_write_repairs_nothing(
    pattern: str, copied: tuple[Path, dict]
) -> None:
    folder, expected = copied
    (path,) = folder.glob(pattern)
    damage(path, "zeros")
    assert answers(folder, ["knn"], read_only=True)["knn"] == expected["knn"]
    assert not any(path.read_bytes())


def test_a_read_only_file_system_is_no_damage(tmp_path: Path, mounted) -> None:
    """The terms in the cache have had a write-ahead log, for which SQLite would make a file."""
    with mounted(tmp_path / "small", "size=16m") as mount:
        folder = tmp_path / "small" / "c"
        with Indexer.create(folder, language="en") as indexer:
            indexer.add([Document("d1", "Rye bread", labels=("Rye",)), Document("d2", "Rye")])
            indexer.suggest([Document("", "On rye")])
        mount("remount", "ro")
        report = check_collection(folder)
        assert "cache/terms.sqlite" in {one.part for one in report.findings}
        assert report.problems == []
        mount("remount", "rw")
        path = folder / "cache" / "terms.sqlite"
        path.write_bytes(path.read_bytes()[:100].ljust(path.stat().st_size, b"x"))
        mount("remount", "ro")
        (damaged,) = check_collection(folder).problems
        assert damaged.part == "cache/terms.sqlite"


def test_merged_segments_do_not_hide_damage(copied: tuple[Path, dict], monkeypatch) -> None:
    """Small segments are merged by the next `add`, before the background has looked at them."""
    folder, _ = copied
    monkeypatch.setattr("labelkin.store.label_sets.SMALL", 0)
    monkeypatch.setattr(background, "PAUSE_SECONDS", 60)
    with Indexer.open(folder) as indexer:
        indexer.snapshot()
        (path,) = folder.glob("labels/*.columns.npy")
        damage(path, "bit")
        documents = list(indexer.documents())
        indexer.add([replace(one, id=f"copy {one.id}") for one in documents])
        indexer.remove([f"copy {one.id}" for one in documents])
        assert indexer.check().is_sound
        background.finish()
