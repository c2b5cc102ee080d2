from __future__ import annotations

import builtins
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("lightgbm", reason="needs the extra `rerank`")

Run = Callable[..., Result]
SMALL = ("--preset", "8", "--epochs", 2, "--device", "cpu")


@pytest.fixture
def demo(run: Run) -> str:
    """A collection of 300 documents, whose rerankers have few trees."""
    from labelkin import Indexer
    from labelkin.corpus import write_corpus
    from labelkin.demo import demo_concepts, demo_documents
    from labelkin.vocab import Vocabulary

    documents = list(demo_documents(360, 0))
    with Indexer.create("demo", Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(documents[:300])
    write_corpus(documents[300:], Path("held.jsonl"))
    write_corpus(documents[290:330], Path("overlapping.jsonl"))
    config = Path("demo/labelkin.toml")
    config.write_text(
        config.read_text()
        .replace("rounds = 300", "rounds = 10")
        .replace("linear = true", "linear = false")
    )
    return "demo"


def configured() -> dict[str, Any]:
    return tomllib.loads(Path("demo/labelkin.toml").read_text())


def without(monkeypatch: pytest.MonkeyPatch, name: str, error: Exception) -> None:
    """Let importing a module fail."""
    usual = builtins.__import__

    def importing(module: str, *rest: Any, **more: Any) -> Any:
        if module.partition(".")[0] == name:
            raise error
        return usual(module, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", importing)


def test_everything_by_default(run: Run, demo: str) -> None:
    done = run("train", demo, *SMALL)
    assert done.exit_code == 0, done.stderr
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Training on 300 documents with ")
    assert lines[1].startswith("  label autoencoder: 258 documents, at most 2 epochs")
    assert lines[2].startswith("  reranker: 126 documents held out of all statistics in 3 folds; ")
    assert lines[-1] == "The default method is now rerank instead of knn (labelkin.toml)."
    facts = {line.split("  ")[0] for line in done.stdout.splitlines()}
    assert facts >= {"Layers", "Candidates", "MiF", "Calibration error", "Accept", "Review"}
    assert "autoencoder" in done.stdout.split("Signals")[1].splitlines()[0]
    assert configured()["suggest"]["method"] == "rerank"
    value = json.loads(run("eval", demo, "held.jsonl", "--measures", "MiF", "--json").stdout)
    asked = run("eval", demo, "held.jsonl", "--measures", "MiF", "--json", "--method", "rerank")
    assert value == json.loads(asked.stdout)

    again = run("train", demo, "--only", "rerank", "--tune", "overlapping.jsonl", "--json")
    assert again.exit_code == 0, again.stderr
    assert "Skipping 10 documents to tune on: in the collection itself" in again.stderr
    assert "held out of all statistics in 3 folds and 30 given" in again.stderr
    assert again.stderr.splitlines()[-1] == "The default method is still rerank."
    content = json.loads(again.stdout)
    assert (content["label_ae"], content["method"]) == (None, "rerank")
    trained = content["rerank"]
    assert (trained["held_out"], trained["given"], trained["calibrated_on"]) == (126, 30, 6)
    assert "autoencoder" in trained["groups"]
    assert trained["threshold"] == configured()["rerank"]["threshold"]
    files = Path("demo/models/rerank").iterdir()
    assert trained["bytes"] == sum(path.stat().st_size for path in files)

    alone = run("train", demo, *SMALL, "--only", "label-ae")
    assert "The reranker was trained with the previous label autoencoder" in alone.stderr
    assert run("add", demo, "held.jsonl").exit_code == 0
    updated = run("train", demo, "--update", "--epochs", 1)
    assert updated.exit_code == 0, updated.stderr
    assert "The reranker was trained with the label autoencoder as it was before" in updated.stderr


def test_linear(run: Run, demo: str) -> None:
    done = run("train", demo, "--only", "rerank", "--linear", "--json")
    assert done.exit_code == 0, done.stderr
    assert "linear" in json.loads(done.stdout)["rerank"]["groups"]
    assert list(Path("demo/models/rerank").glob("linear-*.safetensors"))


def test_encoder(run: Run, demo: str) -> None:
    pytest.importorskip("faiss", reason="needs the extra `dense`")
    done = run("train", demo, "--only", "rerank", "--encoder", "lsa", "--json")
    assert done.exit_code == 0, done.stderr
    lines = done.stderr.splitlines()
    assert "held out of all statistics in 3 folds, vectors by lsa; less than a minute" in lines[1]
    assert lines[3] == "Encoding documents and names comes on top, unless it has been done."
    trained = json.loads(done.stdout)["rerank"]
    assert trained["groups"][-1] == "vectors"
    assert trained["settings"]["encoder"] == "lsa"
    asked = run("suggest", demo, "held.jsonl", "--explain", "--json")
    assert asked.exit_code == 0, asked.stderr
    assert '"meaning"' in asked.stdout
    info = run("info", demo)
    assert "cannot be used" not in info.stdout

    run("add", demo, "held.jsonl")
    built = run("build", demo, "--json")
    assert json.loads(built.stdout)["added"] == 60
    record = next(Path("demo/indexes").glob("vectors-*/labelkin.json"))
    assert json.loads(record.read_text().splitlines()[0])["count"] == 360

    run("build", demo, "--representation", "lsa", "--relearn")
    skipped = run("build", demo)
    assert skipped.exit_code == 0
    assert skipped.stderr.startswith("Skipping the vectors of the reranker: demo/models/rerank: ")
    assert "now lsa" in skipped.stderr
    compared = run("compare", demo, "held.jsonl", "--measures", "MiF", "--json")
    assert compared.exit_code == 0, compared.stderr
    assert "Skipping rerank: demo/models/rerank: trained with vectors of lsa" in compared.stderr
    assert run("compare", demo, "held.jsonl", "--methods", "knn,rerank").exit_code == 1

    without = run("train", demo, "--only", "rerank", "--json")
    assert "vectors" not in json.loads(without.stdout)["rerank"]["groups"]
    assert run("build", demo).stderr.startswith("Nothing to do")


def test_encoder_of_the_settings(run: Run, demo: str) -> None:
    pytest.importorskip("faiss", reason="needs the extra `dense`")
    config = Path("demo/labelkin.toml")
    assert 'encoder = ""' in config.read_text()
    config.write_text(config.read_text().replace('encoder = ""', 'encoder = "lsa"'))
    done = run("train", demo, "--only", "rerank", "--json")
    assert json.loads(done.stdout)["rerank"]["groups"][-1] == "vectors"
    without = run("train", demo, "--only", "rerank", "--encoder", "", "--json")
    assert "vectors" not in json.loads(without.stdout)["rerank"]["groups"]


@pytest.mark.parametrize("name", ["stems", "lsa,wordllama", "bert"])
def test_no_encoder(run: Run, demo: str, name: str) -> None:
    failed = run("train", demo, "--only", "rerank", "--encoder", name)
    assert (failed.exit_code, failed.stderr.count("\n")) == (1, 1)
    assert f"no encoder '{name}'; known: lsa, wordllama, and sentence-transformers" in failed.stderr


def test_no_better_than_votes(run: Run, demo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from labelkin import training

    usual = training.train_reranker

    def worse(*rest: Any, **more: Any) -> Any:
        return replace(usual(*rest, **more), votes=0.99)

    monkeypatch.setattr(training, "train_reranker", worse)
    done = run("train", demo, "--only", "rerank")
    assert done.exit_code == 0, done.stderr
    assert done.stderr.splitlines()[-1].startswith("No better than votes on held-out documents")
    assert done.stderr.endswith("against 0.9900): the default method is still knn.\n")
    assert configured()["suggest"]["method"] == "knn"


def test_too_few_documents_for_a_reranker(run: Run, demo: str) -> None:
    identifiers = [f"demo-{number:05}" for number in range(101, 301)]
    assert run("remove", demo, *identifiers).exit_code == 0
    done = run("train", demo, *SMALL)
    assert done.exit_code == 0, done.stderr
    assert done.stderr.startswith("Skipping the reranker: 100 documents with labels are too few")
    assert not Path("demo/models/rerank/model.json").exists()
    failed = run("train", demo, "--only", "rerank")
    assert (failed.exit_code, failed.stderr.count("\n")) == (1, 1)
    assert "too few to train a reranker on" in failed.stderr


def test_without_lightgbm(run: Run, demo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    error = OSError("libgomp.so.1: cannot open shared object file")
    without(monkeypatch, "lightgbm", error)
    done = run("train", demo, *SMALL)
    assert done.exit_code == 0, done.stderr
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Skipping the reranker: LightGBM cannot be loaded (libgomp.so.1")
    assert lines[0].endswith("apt-get install libgomp1")
    assert "label autoencoder: 300 documents" in done.stderr
    assert configured()["suggest"]["method"] == "knn"


def test_without_torch(run: Run, demo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from labelkin.exceptions import MissingExtraError

    def missing() -> None:
        raise MissingExtraError("training needs torch: pip install 'labelkin[train]'")

    monkeypatch.setattr("labelkin.autoencoder.fitting.check_torch", missing)
    done = run("train", demo)
    assert done.exit_code == 0, done.stderr
    expected = "Skipping the label autoencoder: training needs torch: pip install 'labelkin[train]'"
    assert done.stderr.splitlines()[0] == expected
    assert configured()["suggest"]["method"] == "rerank"

    without(monkeypatch, "lightgbm", ModuleNotFoundError("lightgbm"))
    failed = run("train", demo)
    assert (failed.exit_code, failed.stderr.count("\n")) == (1, 1)
    assert "labelkin[train]" in failed.stderr
    assert "labelkin[rerank]" in failed.stderr


def test_documents_to_tune_on_must_be_new(run: Run, demo: str) -> None:
    run("corpus", "convert", demo, "-o", "all.jsonl")
    failed = run("train", demo, "--tune", "all.jsonl")
    assert failed.exit_code == 1
    assert "no document to tune on" in failed.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--only", "label-ae", "--linear"), "are for the reranker"),
        (("--only", "label-ae", "--tune", "held.jsonl"), "are for the reranker"),
        (("--only", "label-ae", "--encoder", "lsa"), "are for the reranker"),
        (("--only", "rerank", "--epochs", 3), "are for the label autoencoder"),
        (("--only", "rerank", "--resume"), "are for the label autoencoder"),
        (("--only", "mix"), "--only"),
    ],
)
def test_what_does_not_go_together(
    run: Run, demo: str, options: tuple[object, ...], message: str
) -> None:
    failed = run("train", demo, *options)
    assert failed.exit_code == 2
    assert message in " ".join(failed.stderr.replace("│", " ").split())


def test_cuts_are_chosen_written_and_reported(run: Run, demo: str) -> None:
    done = run("train", demo, *SMALL)
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("method "))
    table = [line.strip().split(maxsplit=2) for line in lines[first : first + 5]]
    assert table[0] == ["method", "MiF", "cut"]
    assert [row[0] for row in table[1:]] == ["knn", "label-ae", "mix", "mix-ranked"]
    assert table[1][2] == "count mean"
    assert (
        "Cuts of label-ae, mix and mix-ranked chosen on 42 held-out documents (labelkin.toml).\n"
    ) in done.stderr
    values = {method: value for method, value, _ in table[1:]}
    remark = f"label-ae is below knn on these documents: MiF {values['label-ae']} against "
    assert remark + values["knn"] in done.stderr
    assert "mix is below" not in done.stderr
    chosen = configured()
    assert chosen["label_ae"]["threshold"] < 0.5
    text = Path("demo/labelkin.toml").read_text()
    assert text.count("# labelkin train chose ") == 6

    # By hand: kept, and reported.
    assert chosen["mix"]["share"] != 0.6
    share = f"share = {chosen['mix']['share']}"
    Path("demo/labelkin.toml").write_text(text.replace(share, "share = 0.6"))
    again = run("train", demo, *SMALL, "--json")
    assert again.exit_code == 0, again.stderr
    assert "Set by hand in [mix] and kept for mix-ranked: share 0.6.\n" in again.stderr
    cuts = json.loads(again.stdout)["cuts"]
    assert cuts["documents"] == 42
    assert cuts["methods"]["mix-ranked"]["share"] == 0.6
    assert cuts["methods"]["mix-ranked"]["kept"] == ["share"]
    assert cuts["methods"]["label-ae"]["kept"] == []
    assert "label-ae" in cuts["below_knn"]
    assert configured()["mix"]["share"] == 0.6


def test_too_few_documents_to_choose_cuts_on(run: Run, demo: str) -> None:
    before = Path("demo/labelkin.toml").read_text()
    done = run("train", demo, *SMALL, "--only", "label-ae")
    assert done.exit_code == 0, done.stderr
    assert (
        "The cuts of label-ae, mix and mix-ranked stay as they are: 6 documents held out, which "
        "are too few to choose them on; `labelkin tune --write` chooses them on other documents."
    ) in done.stderr
    assert Path("demo/labelkin.toml").read_text() == before
    adopted = run("train", demo, "--from", demo, "--epochs", 0, "--only", "label-ae", "--json")
    assert "stay as they are: the model is adopted as it is; `labelkin tune" in adopted.stderr
    assert json.loads(adopted.stdout)["cuts"] is None


def test_cuts_on_the_documents_that_the_autoencoder_validated_with(run: Run, demo: str) -> None:
    config = Path("demo/labelkin.toml")
    config.write_text(config.read_text().replace("held_out = 0.02", "held_out = 0.1"))
    done = run("train", demo, *SMALL, "--only", "label-ae", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["cuts"]["documents"] == 30
    assert configured()["label_ae"]["threshold"] < 0.5


def test_a_file_that_is_edited_meanwhile(
    run: Run, demo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from labelkin import training

    usual = training.choose_cuts

    def edited(*rest: Any) -> Any:
        Path("demo/labelkin.toml").write_text("[mix\n")
        return usual(*rest)

    monkeypatch.setattr(training, "choose_cuts", edited)
    Path("demo/labelkin.toml").write_text("[training]\nheld_out = 0.1\n")
    done = run("train", demo, *SMALL, "--only", "label-ae")
    assert done.exit_code == 0, done.stderr
    assert "mix-ranked stay as they are: demo/labelkin.toml: not valid TOML: " in done.stderr
    assert Path("demo/labelkin.toml").read_text() == "[mix\n"
    assert Path("demo/models/label-ae/model.json").exists()
