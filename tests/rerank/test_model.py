from __future__ import annotations

import io
import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix  # noqa: TID253

from labelkin.evaluate.stored import EvaluationSummary
from labelkin.exceptions import (
    ModelDamagedError,
    ModelMismatchError,
    ModelNotFoundError,
    ModelTooNewError,
)
from labelkin.represent.term_columns import TermColumns
from labelkin.rerank import model as module
from labelkin.rerank.calibration import Bin, Calibration
from labelkin.rerank.features import Knowledge
from labelkin.rerank.headings import Headings
from labelkin.rerank.matrices import HalfMatrix, matrix_arrays, to_arrays
from labelkin.rerank.model import (
    RerankInfo,
    RerankModel,
    RerankParts,
    check_files,
    reranker_info,
    save_reranker,
    verify_reranker,
)
from labelkin.rerank.ranker import Ranker, fit_ranker
from labelkin.rerank.signals import feature_names
from labelkin.rerank.signals.linear import LinearScorer, LinearScorers
from labelkin.rerank.statistics import LabelStatistics, log_ratios
from labelkin.store.models import Models

WIDTH, TERMS = 4, 3
WORDS = ["ba", "ba fä", "fä"]
GROUPS = ("frequency", "document")


def matrix(rows: int, columns: int, seed: int):
    return csr_matrix(np.random.default_rng(seed).random((rows, columns), dtype=np.float32))


def features(seed: int) -> np.ndarray:
    names = feature_names(GROUPS)
    return np.random.default_rng(seed).random((400, len(names)), dtype=np.float32)


@cache
def ranker(seed: int = 0) -> Ranker:
    known = features(seed)
    return fit_ranker(known, known[:, 0] > 0.5, feature_names(GROUPS), rounds=5, seed=seed)


def parts(seed: int = 0) -> RerankParts:
    random = np.random.default_rng(seed)
    terms = TermColumns.of(WORDS, random.random(TERMS).astype(np.float32))
    statistics = LabelStatistics(
        7,
        random.random(WIDTH).astype(np.float32),
        matrix(WIDTH, WIDTH, seed),
        matrix(TERMS, WIDTH, seed),
        matrix(TERMS, WIDTH, seed + 1),
        random.random(WIDTH * WIDTH).astype(np.float32),
        random.random(TERMS * WIDTH).astype(np.float32),
        random.random((3, WIDTH)).astype(np.float32),
        random.random((3, WIDTH)).astype(np.float32),
    )
    headings = Headings(
        matrix(TERMS, WIDTH, seed),
        random.random(WIDTH).astype(np.float32),
        random.random(WIDTH).astype(np.float32),
        matrix(WIDTH, WIDTH, seed),
        matrix(WIDTH, WIDTH, seed).T.tocsr(),
        matrix(TERMS, 6, seed),
        random.random(6).astype(np.float32),
        np.array([0, 0, 1, 2, 3, 3]),
    )
    stems, wording = (
        LinearScorer(
            HalfMatrix.of(matrix(TERMS, 2, one)), np.ones(2, dtype=np.float32), np.array([1, 3])
        )
        for one in (seed, seed + 2)
    )
    linear = LinearScorers(stems, wording, terms)
    knowledge = Knowledge(statistics, headings, terms, GROUPS, {"linear": linear})
    return RerankParts(ranker(seed), knowledge, WORDS)


INFO = RerankInfo(
    groups=GROUPS,
    calibration=Calibration(
        (0.1, 0.9), (0.2, 0.8), (0.5,) * 101, 0.5, 0.01, 20, (Bin(0.2, 0.3, 0.21, 0.25, 9),)
    ),
    training={"documents": 7},
    versions={"labelkin": "0"},
    state={"generation": 1, "token": "abc"},
    evaluation=EvaluationSummary.now(20, {"rerank": {"MiF": 0.5}, "votes": {"MiF": 0.4}}),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_reranker(tmp_path / "rerank", INFO, parts(), "A card.\n")
    return tmp_path / "rerank"


def test_models_of_earlier_versions_have_no_figures(folder):
    description = folder / "model.json"
    content = json.loads(description.read_text())
    del content["checksum"], content["evaluation"], content["calibration"]["reliability"]
    description.write_text(json.dumps(content))
    info = reranker_info(folder)
    assert info.evaluation is None
    assert info.calibration.reliability == ()
    assert info.calibration.error == INFO.calibration.error


def test_everything_comes_back(folder):
    model, saved = RerankModel(folder), parts()
    assert model.info == reranker_info(folder) == INFO
    np.testing.assert_array_equal(
        model.ranker.scores(features(1)), saved.ranker.scores(features(1))
    )
    found, expected = model.knowledge, saved.knowledge
    assert found.groups == expected.groups
    assert found.terms.columns(WORDS).tolist() == [0, 1, 2]
    np.testing.assert_array_equal(found.terms.is_single, expected.terms.is_single)
    np.testing.assert_array_equal(found.terms.idf, expected.terms.idf)
    for one, other in (
        (found.statistics, expected.statistics),
        (found.headings, expected.headings),
    ):
        arrays, saved_arrays = to_arrays(one), to_arrays(other)
        assert {*arrays} == {*saved_arrays}
        for name, array in saved_arrays.items():
            np.testing.assert_array_equal(arrays[name], array, err_msg=name)
    assert {*found.fitted} == {"linear"}
    assert found.fitted["linear"].stems.columns.tolist() == [1, 3]
    assert found.fitted["linear"].terms.columns(WORDS).tolist() == [0, 1, 2]
    for one, other in zip(
        found.fitted["linear"].wording.arrays().items(),
        expected.fitted["linear"].wording.arrays().items(),
        strict=True,
    ):
        assert one[0] == other[0]
        np.testing.assert_array_equal(one[1], other[1], err_msg=one[0])


def in_format_2(folder: Path, some: RerankParts) -> None:
    """Write a model as versions before format 3 did."""
    save_reranker(folder, INFO, some, "A card.\n")
    statistics = module._statistics_arrays(some.knowledge)
    for name in ("together", "speaking"):
        del statistics[f"statistics/{name}_logs"]
    stored = {
        "names": some.knowledge.headings.names,
        "all_names": some.knowledge.headings.all_names,
    }
    for name, matrix in stored.items():
        statistics |= matrix_arrays(f"headings/{name}", matrix.T.tocsr())
    for name in [name for name in statistics if name.startswith("headings/narrower")]:
        del statistics[name]
    linear = {
        "words": np.frombuffer(some.knowledge.terms.names, dtype=np.uint8),
        "idf": some.knowledge.terms.idf,
    }
    for name in ("stems", "wording"):
        scorer = getattr(some.knowledge.fitted["linear"], name)
        weights = scorer.weights.rows(np.arange(TERMS)).T.tocsr()
        linear |= {
            f"{name}/data": weights.data.astype(np.float16),
            f"{name}/indices": weights.indices.astype(np.int32),
            f"{name}/indptr": weights.indptr.astype(np.int64),
            f"{name}/terms": np.array(TERMS),
            f"{name}/shifts": scorer.shifts,
            f"{name}/columns": scorer.columns,
        }
    files = json.loads((folder / "model.json").read_text())["files"]
    (folder / files.pop("trees")).unlink()
    for name, arrays in (("statistics", statistics), ("linear", linear)):
        (folder / files[name]).unlink()
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        content = buffer.getvalue()
        files[name] = f"{name}-{module._checksum(content).hexdigest()}.npz"
        (folder / files[name]).write_bytes(content)
    changed(folder, format_version=2, files=files, checksums="gone")


def test_a_model_of_format_2_is_read(tmp_path):
    some = parts()
    # What format 2 does not store is computed.
    counted = some.knowledge.statistics
    logs = {
        f"{name}_logs": log_ratios(getattr(counted, name), counted.frequencies, counted.documents)
        for name in ("together", "speaking")
    }
    statistics = replace(counted, **logs)
    some = replace(some, knowledge=replace(some.knowledge, statistics=statistics))
    in_format_2(tmp_path / "old", some)
    check_files(tmp_path / "old")
    verify_reranker(tmp_path / "old")
    save_reranker(tmp_path / "new", INFO, some, "A card.\n")
    old, new = RerankModel(tmp_path / "old"), RerankModel(tmp_path / "new")
    for one, other in (
        (old.knowledge.statistics, new.knowledge.statistics),
        (old.knowledge.headings, new.knowledge.headings),
    ):
        arrays = to_arrays(one)
        for name, array in to_arrays(other).items():
            np.testing.assert_array_equal(arrays[name], array, err_msg=name)
    for name in ("stems", "wording"):
        arrays = getattr(old.knowledge.fitted["linear"], name).arrays()
        for key, array in getattr(new.knowledge.fitted["linear"], name).arrays().items():
            np.testing.assert_array_equal(arrays[key], array, err_msg=key)
    np.testing.assert_array_equal(old.ranker.scores(features(1)), new.ranker.scores(features(1)))


def test_arrays_are_mapped_not_read(folder):
    knowledge = RerankModel(folder).knowledge
    for array in (
        knowledge.statistics.together.data,
        knowledge.statistics.evidence.indices,
        knowledge.headings.all_names.data,
        knowledge.fitted["linear"].stems.weights.halves,
    ):
        assert not array.flags.owndata
        assert not array.flags.writeable


def test_a_loaded_model_outlives_its_files(folder):
    model = RerankModel(folder)
    text = model.ranker.text
    save_reranker(folder, INFO, parts(1), "Another card.\n")
    assert model.ranker.text == text
    assert model.ranker.contributions(features(1)[:2]).shape[0] == 2


@pytest.mark.parametrize("part", ["ranker", "statistics"])
def test_a_training_while_the_model_is_loaded(tmp_path, monkeypatch, part):
    """The files that were verified are deleted: the new model is loaded."""
    folder = tmp_path / "rerank"
    save_reranker(folder, INFO, parts(), "x")
    verify, trained = module._File.verify, []

    def verify_then_train(self, *arguments, **options):
        path = verify(self, *arguments, **options)
        if self.part == part and not trained:
            trained.append(part)
            save_reranker(folder, INFO, parts(1), "x")
        return path

    monkeypatch.setattr(module._File, "verify", verify_then_train)
    model = Models(tmp_path).get(RerankModel)
    assert trained
    assert model.checksum == RerankModel.checksum_of(folder)


def test_without_a_fitted_signal_and_without_terms(tmp_path):
    some = parts()
    nothing = TermColumns.of([], np.zeros(0, dtype=np.float32))
    knowledge = replace(some.knowledge, terms=nothing, fitted={})
    save_reranker(tmp_path, INFO, RerankParts(some.ranker, knowledge, []), "")
    model = RerankModel(tmp_path)
    assert model.knowledge.fitted == {}
    assert len(model.knowledge.terms) == 0


def test_a_larger_vocabulary(folder):
    model = RerankModel(folder)
    assert model.knowledge_for(WIDTH) is model.knowledge
    wide = model.knowledge_for(WIDTH + 2)
    assert model.knowledge_for(WIDTH + 2) is wide
    assert wide.statistics.width == len(wide.headings.weights) == WIDTH + 2
    assert wide.fitted is model.knowledge.fitted


def test_the_same_parts_have_the_same_bytes(folder, tmp_path):
    save_reranker(tmp_path / "again", INFO, parts(), "A card.\n")
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted(path.name for path in (tmp_path / "again").iterdir())
    for name in names:
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    assert RerankModel.checksum_of(folder) == RerankModel.checksum_of(tmp_path / "again")


def test_a_new_model_replaces_the_old(folder):
    before = RerankModel.checksum_of(folder)
    (folder / "reliability.png").write_bytes(b"")
    save_reranker(folder, INFO, parts(1), "Another card.\n")
    assert RerankModel.checksum_of(folder) != before
    assert len([*folder.glob("*-*")]) == 5
    assert (folder / "reliability.png").exists()
    RerankModel(folder)


@pytest.mark.parametrize("after", range(7))
def test_a_kill_between_files_leaves_the_old_model(folder, monkeypatch, after):
    before = RerankModel.checksum_of(folder)
    raw = RerankModel(folder).ranker.scores(features(1))
    written = []

    def dying(write):
        def kept(path, *given, **more):
            if len(written) == after:
                raise KeyboardInterrupt
            written.append(path)
            return write(path, *given, **more)

        return kept

    monkeypatch.setattr(module, "atomic_file", dying(module.atomic_file))
    monkeypatch.setattr(module, "atomic_text", dying(module.atomic_text))
    with pytest.raises(KeyboardInterrupt):
        save_reranker(folder, INFO, parts(1), "Another card.\n")
    monkeypatch.undo()
    assert RerankModel.checksum_of(folder) == before
    np.testing.assert_array_equal(RerankModel(folder).ranker.scores(features(1)), raw)
    save_reranker(folder, INFO, parts(1), "Another card.\n")
    assert len([*folder.glob("*-*")]) == 5


def refused(folder: Path, kind: type[Exception]) -> str:
    with pytest.raises(kind) as caught:
        RerankModel(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert str(folder) in message
    return message


def test_no_model(tmp_path):
    assert "labelkin train" in refused(tmp_path / "none", ModelNotFoundError)


@pytest.mark.parametrize("name", ["ranker", "trees", "terms", "statistics", "linear"])
@pytest.mark.parametrize("damage", ["missing", "cut", "changed", "empty", "a folder"])
def test_damaged_files(folder, name, damage):
    (path,) = folder.glob(f"{name}-*")
    content = path.read_bytes()
    path.unlink()
    if damage == "a folder":
        path.mkdir()
    elif damage != "missing":
        middle = len(content) // 2
        path.write_bytes(
            {
                "cut": content[:middle],
                "changed": content[:middle]
                + bytes([content[middle] ^ 0xFF])
                + content[middle + 1 :],
                "empty": b"",
            }[damage]
        )
    assert "train the reranker again" in refused(folder, ModelDamagedError)


def changed(folder: Path, **changes: object) -> None:
    path = folder / "model.json"
    content = json.loads(path.read_text())
    content.update(changes)
    # Written by hand: the checksum is gone, as in files of earlier versions.
    content.pop("checksum", None)
    path.write_text(json.dumps({k: v for k, v in content.items() if v != "gone"}))


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "3", '"text"', "{}", "\xff"])
def test_a_damaged_description(folder, content):
    (folder / "model.json").write_bytes(content.encode("latin-1"))
    refused(folder, ModelDamagedError)


@pytest.mark.parametrize(
    "change",
    [
        {"format_version": "one"},
        {"format_version": "gone"},
        {"files": "gone"},
        {"files": []},
        {"files": {}},
        {"files": {"statistics": "statistics-1.npz"}},
        {"calibration": {}},
        {"calibration": None},
        {"groups": 3},
        {"state": {}},
        {"state": None},
    ],
)
def test_a_description_that_lacks_something(folder, change):
    changed(folder, **change)
    refused(folder, ModelDamagedError)


def test_a_newer_format(folder):
    changed(folder, format_version=module.FORMAT_VERSION + 1)
    assert "update labelkin" in refused(folder, ModelTooNewError)


def test_trees_over_other_features(folder):
    check_files(folder)
    changed(folder, groups=["frequency"])
    assert "another version" in refused(folder, ModelMismatchError)
    # `labelkin info` says so too, without loading the trees.
    with pytest.raises(ModelMismatchError, match="another version of labelkin"):
        check_files(folder)


def test_a_signal_that_is_not_installed(folder):
    changed(folder, groups=["frequency", "magic"])
    with pytest.raises(ModelMismatchError, match="the signal 'magic', which is not installed"):
        RerankModel(folder)


def test_pickled_arrays_are_not_read(tmp_path):
    folder = tmp_path / "rerank"
    in_format_2(folder, parts())
    (path,) = folder.glob("statistics-*")
    with np.load(path) as arrays:
        content = dict(arrays)
    content["idf"] = np.array([{"a": 1}], dtype=object)
    with path.open("wb") as file:
        np.savez(file, **content)
    checksum = module._checksum(path.read_bytes()).hexdigest()
    shutil.move(path, folder / f"statistics-{checksum}.npz")
    files = json.loads((folder / "model.json").read_text())["files"]
    changed(folder, files={**files, "statistics": f"statistics-{checksum}.npz"})
    assert "allow_pickle" in refused(folder, ModelDamagedError)
