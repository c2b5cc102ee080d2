from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]


def test_eval(run: Run, demo: str) -> None:
    result = run("eval", demo, "held.jsonl", "--json", "--measures", "MiF,P@5 hF", "-k", 10)
    values = json.loads(result.stdout)
    assert list(values) == ["MiF", "P@5", "hF", "intervals"]
    assert 0.25 < values["MiF"] < values["hF"] < 1
    assert result.stderr.endswith("Evaluated 100 documents with labels.\n")
    table = run("eval", demo, "held.jsonl", "--per-label", "labels.tsv", "--bands").stdout
    assert "95 % interval" in table
    assert all(band in table for band in ("head", "torso", "tail"))
    assert run("eval", demo, "held.jsonl", "--method", "magic").exit_code == 2
    assert Path("labels.tsv").read_text().startswith("label\tname\tTP\tFP\tFN\tP\tR\tF\ttraining\n")


def test_json_has_the_intervals_of_the_table(run: Run, demo: str) -> None:
    options = ("eval", demo, "held.jsonl", "--measures", "MiF,MaF,P@5")
    values = json.loads(run(*options, "--json").stdout)
    rows = {line.split()[0]: line for line in run(*options).stdout.splitlines()}
    assert list(values["intervals"]) == ["MiF", "P@5"]
    for name, bounds in values["intervals"].items():
        assert f"{bounds['low']:.4f} – {bounds['high']:.4f}" in rows[name]
        assert bounds["low"] < values[name] < bounds["high"]


def test_json_of_several_methods_has_intervals_and_p_values(run: Run, demo: str) -> None:
    methods = ("--method", "knn", "--method", "lexical", "--measures", "MiF", "--json")
    values = json.loads(run("eval", demo, "held.jsonl", *methods).stdout)
    alone = json.loads(run("eval", demo, "held.jsonl", *methods[2:]).stdout)
    assert values["intervals"]["lexical"] == alone["intervals"]
    assert list(values["intervals"]) == ["knn", "lexical"]
    assert 0 < values["p"]["lexical"]["MiF"] <= 1


def test_tune_does_not_sweep_what_it_cannot_write(
    run: Run, demo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from labelkin import Indexer

    def swept(*_: object, **__: object) -> None:
        raise AssertionError("the sweep has begun")

    monkeypatch.setattr(Indexer, "tune", swept)
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    result = run("tune", demo, "held.jsonl", "--write")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "cannot be written to; tune without --write" in result.stderr


def test_labels_outside_the_vocabulary_are_reported(run: Run, demo: str) -> None:
    records = [json.loads(line) for line in Path("held.jsonl").read_text().splitlines()]
    for record in records[:3]:
        record["labels"] += ["Unheard of", "Never"][: 1 + (record is records[0])]
    Path("odd.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    options = ("--measures", "MiR", "--json", "--per-label", "l.tsv")
    result = run("eval", demo, "odd.jsonl", *options)
    assert "2 labels not in the vocabulary, given 4 times, cannot be suggested." in result.stderr
    rows = [line.split("\t") for line in Path("l.tsv").read_text().splitlines()[1:]]
    assert ["Unheard of", "", "0", "0", "3"] in [row[:5] for row in rows]
    right, missed = (sum(int(row[column]) for row in rows) for column in (2, 4))
    assert json.loads(result.stdout)["MiR"] == pytest.approx(right / (right + missed))


def test_nothing_to_evaluate_on(run: Run, demo: str) -> None:
    Path("bare.jsonl").write_text('{"id": "1", "title": "Rye", "language": "en"}\n')
    result = run("eval", demo, "bare.jsonl", "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no document with labels" in result.stderr
    assert run("init", "empty").exit_code == 0
    result = run("eval", "empty", "held.jsonl")
    assert "The collection has no documents yet" in result.stderr
    result = run("tune", "empty", "held.jsonl", "--write")
    assert result.exit_code == 1
    assert "has no documents yet; add" in result.stderr


def test_another_label_separator(run: Run, demo: str) -> None:
    records = [json.loads(line) for line in Path("held.jsonl").read_text().splitlines()]
    rows = (f"{one['id']}\t{one['title']}\t{'/'.join(one['labels'])}\n" for one in records)
    Path("held.tsv").write_text("id\ttitle\tlabels\n" + "".join(rows))
    for verb in ("eval", "compare"):
        separated = run(verb, demo, "held.tsv", "--label-separator", "/", "--measures", "MiF,gold")
        assert "not in the vocabulary" not in separated.stderr
        assert separated.exit_code == 0
    assert "100 labels not in the" in run("eval", demo, "held.tsv").stderr
    trials = run("tune", demo, "held.tsv", "--label-separator", "/", "--json").stdout
    assert json.loads(trials)[0]["MiF"] > 0.1


@pytest.mark.parametrize("option", [("-k", 5), ("--weighting", "square")])
def test_options_of_other_methods(run: Run, demo: str, option: tuple[str, object]) -> None:
    result = run("eval", demo, "held.jsonl", "--method", "lexical", *option)
    assert result.exit_code == 2
    assert f"{option[0]} is not for the method lexical" in result.stderr
    both = ("--method", "knn", "--method", "lexical", "--measures", "MiF")
    assert run("eval", demo, "held.jsonl", *both, *option).exit_code == 0


def test_names_of_measures(run: Run, demo: str) -> None:
    names = "PSP(A=0.6,B=2)@5, MiF  hF(distance=9)"
    values = json.loads(run("eval", demo, "held.jsonl", "--measures", names, "--json").stdout)
    assert list(values) == ["PSP(A=0.6,B=2)@5", "MiF", "hF(distance=9)", "intervals"]
    for wrong, code in (("", 2), (" , ", 2), ("nDCG@99999999999", 1)):
        assert run("eval", demo, "held.jsonl", "--measures", wrong).exit_code == code


def test_bands_as_json(run: Run, demo: str) -> None:
    options = ("--measures", "MiF,P@5", "--bands")
    values = json.loads(run("eval", demo, "held.jsonl", *options, "--json").stdout)
    assert list(values) == ["MiF", "P@5", "bands", "intervals"]
    assert list(values["bands"]) == ["head", "torso", "tail"]
    table = run("eval", demo, "held.jsonl", *options).stdout.split()
    for of_band in values["bands"].values():
        assert list(of_band) == ["MiF", "P@5"]
        assert all(f"{value:.4f}" in table for value in of_band.values())


def test_documents_of_the_collection_are_searched_leave_one_out(run: Run, demo: str) -> None:
    result = run("eval", demo, "all.jsonl", "--measures", "MiF", "--json")
    assert "300 documents in the collection itself, searched leave-one-out." in result.stderr
    assert json.loads(result.stdout)["MiF"] < 0.9


def test_tune(run: Run, demo: str) -> None:
    trials = json.loads(run("tune", demo, "held.jsonl", "--json").stdout)
    assert len(trials) == 396
    result = run("tune", demo, "held.jsonl", "--write", "--measure", "P@5")
    assert "396 settings on 100 documents:" in result.stderr
    assert f"Wrote the best settings to {demo}/labelkin.toml." in result.stderr
    assert run("eval", demo, "held.jsonl").exit_code == 0


@pytest.mark.parametrize("measure", ["hF", "PSP@5", "LCA-F"])
def test_tune_for_any_measure(run: Run, demo: str, measure: str) -> None:
    lines = Path("held.jsonl").read_text().splitlines(keepends=True)
    Path("few.jsonl").write_text("".join(lines[:5]))
    trials = json.loads(run("tune", demo, "few.jsonl", "--measure", measure, "--json").stdout)
    assert trials[0][measure] > trials[-1][measure]


@pytest.mark.parametrize("measure", ["count-error", "predicted", "gold"])
def test_tune_for_what_is_no_goal(run: Run, demo: str, measure: str) -> None:
    before = Path(demo, "labelkin.toml").read_text()
    result = run("tune", demo, "held.jsonl", "--measure", measure, "--write")
    assert result.exit_code == 1
    assert "a higher value is not better" in result.stderr
    assert Path(demo, "labelkin.toml").read_text() == before


def test_tune_leaves_alone_what_it_does_not_choose(run: Run, demo: str) -> None:
    config = Path(demo, "labelkin.toml")
    settings = {
        "limit = 0": "limit = 7",
        'count = "mean"': 'count = "none"',
        "threshold = 0.0": "threshold = 0.123",
    }
    text = config.read_text()
    head, mark, suggest = text.partition("[suggest]")
    for old, new in settings.items():
        assert old in suggest
        suggest = suggest.replace(old, new, 1)
    config.write_text(head + mark + suggest)
    # P@1 does not depend on the cut.
    assert run("tune", demo, "held.jsonl", "--measure", "P@1", "--write").exit_code == 0
    for new in settings.values():
        assert new in config.read_text()
    assert run("tune", demo, "held.jsonl", "--method", "lexical", "--write").exit_code == 0
    assert "limit = 7" in config.read_text()


def test_tune_tells_which_documents_are_in_the_collection(run: Run, demo: str) -> None:
    result = run("tune", demo, "all.jsonl", "--json")
    assert "300 documents in the collection itself, searched leave-one-out." in result.stderr


def test_tune_the_reranker(run: Run, reranked: str) -> None:
    done = run("tune", reranked, "held.jsonl", "--method", "rerank", "--write", "--json")
    assert done.exit_code == 0, done.stderr
    trials = json.loads(done.stdout)
    # Those of the grid, and the threshold that the training chose.
    assert len(trials) == 22
    assert [trial["count"] for trial in trials].count("expected-f") == 1
    assert trials == sorted(trials, key=lambda trial: -trial["MiF"])
    value = json.loads(run("eval", reranked, "held.jsonl", "--measures", "MiF", "--json").stdout)
    assert value["MiF"] == pytest.approx(trials[0]["MiF"], abs=1e-4)


def test_texts_of_the_collection_under_other_ids_are_searched_leave_one_out(
    run: Run, demo: str
) -> None:
    run("corpus", "convert", demo, "-o", "own.jsonl")
    records = [json.loads(line) for line in Path("own.jsonl").read_text().splitlines()]
    others = [{**record, "id": f"other-{record['id']}"} for record in records]
    Path("other.jsonl").write_text("".join(json.dumps(record) + "\n" for record in others))
    options = ("--method", "knn", "--measures", "MiF", "--json")
    expected = json.loads(run("eval", demo, "own.jsonl", *options).stdout)["MiF"]
    result = run("eval", demo, "other.jsonl", *options)
    notice = "300 documents in the collection itself (300 under another id), searched leave-one-out"
    assert notice in result.stderr
    assert json.loads(result.stdout)["MiF"] == pytest.approx(expected, abs=1e-12)
