from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from labelkin import Indexer
from labelkin.exceptions import InputError

pytest.importorskip("torch", reason="needs the extra `train`")

Run = Callable[..., Result]
SMALL = ("--preset", "8", "--device", "cpu", "--only", "label-ae")


@pytest.fixture
def demo(run: Run) -> str:
    from labelkin.corpus import write_corpus
    from labelkin.demo import demo_concepts, demo_documents
    from labelkin.store.config import update_config
    from labelkin.vocab import Vocabulary

    documents = list(demo_documents(360, 0))
    with Indexer.create("demo", Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(documents[:300])
    update_config(Path("demo/labelkin.toml"), {"rerank": {"linear": False}})
    write_corpus(documents[300:], Path("held.jsonl"))
    return "demo"


def test_train_and_use(run: Run, demo: str) -> None:
    done = run("train", demo, *SMALL, "--epochs", 3)
    assert done.exit_code == 0, done.stderr
    assert "8 over" in done.stdout
    assert "Trained in" in done.stderr

    values = json.loads(
        run(
            "eval", demo, "held.jsonl", "--method", "label-ae", "--measures", "MiF", "--json"
        ).stdout
    )
    assert list(values) == ["MiF", "intervals"]

    methods = [part for name in ("knn", "mix", "mix-ranked") for part in ("--method", name)]
    compared = run("eval", demo, "held.jsonl", *methods, "--measures", "MiF,P@5", "--json")
    content = json.loads(compared.stdout)
    assert list(content) == ["knn", "mix", "mix-ranked", "compared_with", "p", "intervals"]
    assert set(content["p"]) == {"mix", "mix-ranked"}
    assert 0 < content["p"]["mix"]["MiF"] <= 1
    table = run("eval", demo, "held.jsonl", *methods, "--measures", "MiF,P@5").stdout
    assert table.splitlines()[0].split() == ["measure", "knn", "mix", "mix-ranked"]
    assert "p < 0.05" in table

    for method in ("label-ae", "mix", "mix-ranked"):
        options = ("--method", method, "--threshold", 0, "--limit", 4)
        found = json.loads(run("suggest", demo, "--title", "wheat", *options, "--json").stdout)
        assert len(found[0]["suggestions"]) == 4
        assert {"votes", "neighbours", "carriers", "inferred_from", "named"} == set(
            found[0]["suggestions"][0]["evidence"]
        )
        assert (
            run("annotate", demo, "held.jsonl", "-o", "out.jsonl", "--method", method).exit_code
            == 0
        )
        assert len(Path("out.jsonl").read_text().splitlines()) == 60

    headings = json.loads(Path("demo/models/label-ae/model.json").read_text())["labels"]
    related = json.loads(run("vocab", "related", demo, headings[0], "--json").stdout)
    assert len(related) == 10
    assert run("vocab", "related", demo, headings[0]).stdout.startswith("similarity")


def test_the_default_method_is_a_setting(run: Run, demo: str) -> None:
    assert run("train", demo, *SMALL, "--epochs", 1).exit_code == 0
    config = Path("demo/labelkin.toml")
    config.write_text(config.read_text().replace('method = "knn"', 'method = "mix-ranked"'))
    found = run("eval", demo, "held.jsonl", "--measures", "MiF", "--json").stdout
    asked = run("eval", demo, "held.jsonl", "--measures", "MiF", "--json", "--method", "mix-ranked")
    assert found == asked.stdout


@pytest.mark.parametrize("method", ["label-ae", "mix", "mix-ranked"])
def test_tune(run: Run, demo: str, method: str) -> None:
    assert run("train", demo, *SMALL, "--epochs", 2).exit_code == 0
    done = run("tune", demo, "held.jsonl", "--method", method, "--write", "--json")
    assert done.exit_code == 0, done.stderr
    trials = json.loads(done.stdout)
    assert trials == sorted(trials, key=lambda trial: -trial["MiF"])
    value = json.loads(
        run("eval", demo, "held.jsonl", "--method", method, "--measures", "MiF", "--json").stdout
    )
    assert value["MiF"] == pytest.approx(trials[0]["MiF"], abs=1e-4)


def test_untrained(run: Run, demo: str) -> None:
    failed = run("suggest", demo, "--title", "wheat", "--method", "mix")
    assert failed.exit_code == 1
    assert failed.stderr.count("\n") == 1
    assert "run `labelkin train` first" in failed.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--preset", "gigantic"), "no preset 'gigantic'"),
        (("--device", "cuda"), "no cuda device here"),
        (("--resume",), "nothing to resume"),
    ],
)
def test_what_cannot_be_trained_is_one_line(
    run: Run, demo: str, options: tuple[str, ...], message: str
) -> None:
    if options == ("--device", "cuda"):
        import torch

        if torch.cuda.is_available():
            pytest.skip("there is a CUDA device")
    failed = run("train", demo, *options)
    assert failed.exit_code == 1
    assert message in failed.stderr
    assert "Traceback" not in failed.stderr


def test_start_from_another_collection(run: Run, demo: str) -> None:
    from labelkin.demo import demo_concepts, demo_documents
    from labelkin.vocab import Vocabulary

    assert run("train", demo, *SMALL, "--epochs", 1).exit_code == 0
    with Indexer.create("little", Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(list(demo_documents(340, 0))[300:])
    taken = run("train", "little", "--from", "demo", "--epochs", 0)
    assert taken.exit_code == 0, taken.stderr
    assert "of its headings taken over" in taken.stderr
    assert "Adopted as it is" in taken.stderr
    assert taken.stdout.startswith("Layers      8 over")

    done = run("train", "little", "--from", "demo/models/label-ae", "--epochs", 1, "--json")
    assert done.exit_code == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["rerank"] is None
    label_ae = content["label_ae"]
    assert label_ae["origin"]["model"] in Path("demo/models/label-ae/model.json").read_text()
    assert label_ae["settings"]["preset"] == "8"
    assert run("eval", "little", "held.jsonl", "--method", "label-ae").exit_code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--epochs", 0), "needs --from"),
        (("--from", "demo", "--preset", "small"), "--preset or --from"),
        (("--from", "demo", "--epochs", 0, "--resume"), "trains nothing"),
    ],
)
def test_what_does_not_go_together(
    run: Run, demo: str, options: tuple[object, ...], message: str
) -> None:
    failed = run("train", demo, *options)
    assert failed.exit_code == 2
    assert message in failed.stderr


def test_a_model_that_is_not_there(run: Run, demo: str) -> None:
    failed = run("train", demo, "--from", "nowhere")
    assert failed.exit_code == 1
    assert "nowhere: no model" in failed.stderr.splitlines()[-1]


def test_too_small_a_collection(run: Run) -> None:
    Path("one.jsonl").write_text('{"id": "a", "title": "one text", "labels": ["X"]}\n')
    assert run("init", "tiny").exit_code == 0
    assert run("add", "tiny", "one.jsonl").exit_code == 0
    failed = run("train", "tiny")
    assert failed.exit_code == 1
    assert "training needs at least 2" in failed.stderr


@pytest.mark.parametrize(
    ("recipe", "note"),
    [
        (("--preset", "8"), "headings by votes and names alone: new or too rare."),
        (("--recipe", "paper", "--preset", "16/12/8"), "The label autoencoder lacks 1 heading"),
    ],
    ids=["joint", "paper"],
)
def test_a_note_about_headings_that_the_autoencoder_lacks(
    run: Run, demo: str, recipe: tuple[str, ...], note: str
) -> None:
    trained = run("train", demo, "--only", "label-ae", "--device", "cpu", "--epochs", 1, *recipe)
    assert trained.exit_code == 0, trained.stderr
    headings = set(json.loads(Path("demo/models/label-ae/model.json").read_text())["labels"])
    with Indexer.open(demo) as indexer:
        fresh = next(concept.id for concept in indexer.vocabulary if concept.id not in headings)
    Path("new.jsonl").write_text(json.dumps({"id": "n", "title": "wheat", "labels": [fresh]}))
    assert run("add", demo, "new.jsonl").exit_code == 0
    notes = run("eval", demo, "held.jsonl", "--method", "mix", "--measures", "MiF").stderr
    assert note in notes


def test_an_update(run: Run, demo: str) -> None:
    assert run("train", demo, *SMALL, "--epochs", 1).exit_code == 0
    nothing = run("train", demo, "--update")
    assert nothing.exit_code == 0
    assert "Nothing new" in nothing.stderr
    assert run("add", demo, "held.jsonl").exit_code == 0
    done = run("train", demo, "--update", "--epochs", 1, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["label_ae"]["training"]["epochs"] == 1
    assert "at least 1 epoch" in run("train", demo, "--update", "--epochs", 0).stderr
    refused = run("train", demo, "--update", "--preset", "8")
    assert refused.exit_code == 2
    assert "--update trains as the model was trained" in refused.stderr
    assert run("train", demo, *SMALL, "--recipe", "paper", "--preset", "8/8/4").exit_code == 0
    failed = run("train", demo, "--update")
    assert failed.exit_code == 1
    assert "only a joint label autoencoder" in failed.stderr


def test_training_only_if_it_would_pay(
    run: Run, reranked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = []

    def train(_: Indexer, **settings: object) -> None:
        trained.append(settings)
        raise InputError("no training in this test")

    monkeypatch.setattr(Indexer, "train", train)
    done = run("train", reranked, "--only", "rerank", "--if-stale")
    assert done.exit_code == 0
    assert done.stderr.startswith("Not trained: rerank: 0.0% of the documents have changed")
    assert len(done.stderr.splitlines()) == 1
    done = run("train", reranked, "--only", "rerank", "--if-stale", "--json")
    assert not json.loads(done.stdout)["trained"]
    assert not trained
    assert run("add", reranked, "held.jsonl").exit_code == 0
    done = run("train", reranked, "--only", "rerank", "--if-stale")
    assert "Training, because rerank: 18% of the documents have changed since.\n" in done.stderr
    assert len(trained) == 1
    for other in (("--update",), ("--resume",), ("--from", "m")):
        assert run("train", reranked, "--if-stale", *other).exit_code == 2
