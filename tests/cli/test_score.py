from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

Run = Callable[..., Result]
MEASURES = ("--measures", "MiF,P@5,EBF,MaF", "--json")


def measured(result: Result) -> dict[str, float]:
    """The values of `eval` or `score`, with the bounds of their intervals beside them."""
    values: dict[str, Any] = json.loads(result.stdout)
    for name, bounds in values.pop("intervals").items():
        values |= {f"{name} {bound}": value for bound, value in bounds.items()}
    return values


def test_score_equals_eval(run: Run, demo: str) -> None:
    measures = ("--measures", "MiF,hF,LCA-P,LCA-F(distance=9)", "--json")
    expected = measured(run("eval", demo, "held.jsonl", *measures))
    Path("p.json").write_text(run("suggest", demo, "held.jsonl", "--json").stdout)
    scored = run("score", "held.jsonl", "p.json", *measures, "--vocab", demo)
    assert measured(scored) == pytest.approx(expected)
    without = run("score", "held.jsonl", "p.json", *measures)
    assert (without.exit_code, without.stderr.count("\n")) == (1, 1)
    assert "--vocab" in without.stderr


@pytest.fixture
def by_name(run: Run, demo: str) -> str:
    """Documents of held.jsonl with the names of their headings for labels."""
    named = []
    for line in Path("held.jsonl").read_text().splitlines()[:30]:
        record = json.loads(line)
        shown = (run("vocab", "show", demo, label, "--json") for label in record["labels"])
        labels = [json.loads(concept.stdout)["names"]["en"] for concept in shown]
        named.append({**record, "labels": labels})
    Path("named.jsonl").write_text("".join(json.dumps(record) + "\n" for record in named))
    return "named.jsonl"


@pytest.mark.parametrize("output", ["o.jsonl", "o.csv", "o.tsv", "o.json", "o.npz"])
def test_what_annotate_writes_can_be_scored(run: Run, demo: str, output: str) -> None:
    expected = measured(run("eval", demo, "held.jsonl", *MEASURES))
    assert run("annotate", demo, "held.jsonl", "-o", output).exit_code == 0
    for options in ((), ("--vocab", demo)):
        scored = run("score", "held.jsonl", output, *MEASURES, *options)
        assert measured(scored) == pytest.approx(expected)
        assert ("matched by position" in scored.stderr) == (output == "o.tsv")


@pytest.mark.parametrize("output", ["o.jsonl", "o.csv", "o.tsv", "o.json", "o.npz"])
def test_gold_labels_by_name(run: Run, demo: str, by_name: str, output: str) -> None:
    expected = measured(run("eval", demo, by_name, *MEASURES))
    assert expected["MiF"] > 0.25
    assert run("annotate", demo, by_name, "-o", output).exit_code == 0
    with_vocabulary = run("score", by_name, output, *MEASURES, "--vocab", demo)
    assert measured(with_vocabulary) == pytest.approx(expected)
    without = run("score", by_name, output, *MEASURES)
    if output in ("o.jsonl", "o.csv"):
        # These name their headings.
        assert measured(without) == pytest.approx(expected)
    else:
        assert json.loads(without.stdout)["MiF"] == 0
        assert "none of its labels is a gold label" in without.stderr
        assert "--vocab SOURCE matches ids with names" in without.stderr


def test_documents_without_ids_and_titles(run: Run, demo: str) -> None:
    records = [json.loads(line) for line in Path("held.jsonl").read_text().splitlines()]
    lines = (
        f"{' '.join(one['abstract'].split())}\t{' '.join(f'<{i}>' for i in one['labels'])}\n"
        for one in records
    )
    Path("gold.tsv").write_text("".join(lines))
    measures = ("--measures", "MiF,EBF", "--json")
    expected = measured(run("eval", demo, "gold.tsv", *measures))
    assert run("annotate", demo, "gold.tsv", "-o", "o.tsv").exit_code == 0
    scored = run("score", "gold.tsv", "o.tsv", *measures)
    assert measured(scored) == pytest.approx(expected)


def test_several_files_side_by_side(run: Run, demo: str) -> None:
    assert run("annotate", demo, "held.jsonl", "-o", "one.jsonl").exit_code == 0
    assert run("annotate", demo, "held.jsonl", "-o", "two.csv", "--limit", 1).exit_code == 0
    files = ("held.jsonl", "one.jsonl", "two.csv")
    values: dict[str, Any] = json.loads(run("score", *files, *MEASURES).stdout)
    assert list(values) == ["one.jsonl", "two.csv", "compared_with", "p", "intervals"]
    for name in files[1:]:
        alone = json.loads(run("score", "held.jsonl", name, *MEASURES).stdout)
        assert values["intervals"][name] == alone.pop("intervals")
        assert values[name] == pytest.approx(alone)
    assert values["p"]["two.csv"]["MiF"] < 0.05
    table = run("score", *files, "--measures", "MiF", "--per-label", "l.tsv")
    assert f"{values['two.csv']['MiF']:.4f} −" in table.stdout
    assert "differs from one.jsonl" in table.stdout
    assert "--per-label needs a single file" in table.stderr
    assert not Path("l.tsv").exists()


def test_files_of_one_name_are_told_apart(run: Run) -> None:
    Path("g.tsv").write_text("d1\tA\t1\n")
    for folder in ("a", "b"):
        Path(folder).mkdir()
        Path(folder, "p.tsv").write_text("d1\tA\t1\n")
    Path("b", "q.tsv").write_text("d1\tB\t1\n")
    files = ("g.tsv", "a/p.tsv", "b/p.tsv", "b/q.tsv")
    values = json.loads(run("score", *files, *MEASURES).stdout)
    assert list(values)[:3] == ["a/p.tsv", "b/p.tsv", "q.tsv"]
    Path("p").write_text("d1\tA\t1\n")
    values = json.loads(run("score", "g.tsv", "p", "b/q.tsv", *MEASURES).stdout)
    assert values["./p"]["MiF"] == 1


def test_names_per_label(run: Run, demo: str) -> None:
    assert run("annotate", demo, "held.jsonl", "-o", "p.jsonl").exit_code == 0
    given = json.loads(Path("p.jsonl").read_text().splitlines()[0])["suggestions"][0]
    for options in ((), ("--vocab", demo)):
        files = ("held.jsonl", "p.jsonl", "--per-label", "l.tsv")
        assert run("score", *files, *options).exit_code == 0
        header, *rows = [line.split("\t") for line in Path("l.tsv").read_text().splitlines()]
        assert header[:2] == ["label", "name"]
        assert {row[0]: row[1] for row in rows}[given["id"]] == given["name"]


def test_propensities_come_from_a_collection(run: Run, demo: str) -> None:
    measures = ("--measures", "PSP@5,PSnDCG@3", "--json")
    expected = measured(run("eval", demo, "held.jsonl", *measures))
    assert run("annotate", demo, "held.jsonl", "-o", "p.jsonl", "--limit", 5).exit_code == 0
    scored = run("score", "held.jsonl", "p.jsonl", *measures, "--vocab", demo)
    assert measured(scored) == pytest.approx(expected)
    without = run("score", "held.jsonl", "p.jsonl", *measures)
    assert without.exit_code == 1
    assert "a collection to `score` with --vocab" in without.stderr


def test_repeated_documents_are_reported(run: Run) -> None:
    Path("g.jsonl").write_text('{"id": "d1", "labels": ["A"]}\n{"id": "d1", "labels": ["B"]}\n')
    Path("p.tsv").write_text("d1\tB\n")
    result = run("score", "g.jsonl", "p.tsv", "--measures", "MiF", "--json")
    assert json.loads(result.stdout)["MiF"] == 1.0
    assert "g.jsonl: 1 document more than once; the last counts." in result.stderr


def test_score_tells_who_is_missing(run: Run) -> None:
    Path("g.tsv").write_text("d1\tA\t1\nd2\tB\t1\n")
    Path("p.tsv").write_text("d1\tA\t1\nd3\tB\t1\n")
    result = run("score", "g.tsv", "p.tsv", "--measures", "MiP,MiR", "--json")
    values = json.loads(result.stdout)
    assert (values["MiP"], values["MiR"]) == (1.0, 0.5)
    assert "p.tsv: 1 document without predictions: d2" in result.stderr
    assert "p.tsv: 1 document without gold labels: d3" in result.stderr


def test_an_unknown_measure(run: Run) -> None:
    result = run("score", "g.tsv", "p.tsv", "--measures", "MiG")
    assert result.exit_code == 1
    assert "MiG" in result.stderr


@pytest.mark.shared
def test_nlms_own_indexer(run: Run, shared_data: Path) -> None:
    folder = shared_data / "mesh47k"
    files = (folder / "l1000.json.gz", folder / "l1000-mti.tsv.gz")
    values = json.loads(run("score", *files, "--measures", "MiF,P@5", "--json").stdout)
    del values["intervals"]
    assert values == {"MiF": pytest.approx(0.386, abs=5e-4), "P@5": pytest.approx(0.593, abs=5e-4)}
