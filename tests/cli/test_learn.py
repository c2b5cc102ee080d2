"""`labelkin learn`, and older records given to `labelkin add`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Run


def headings(run: Run, identifier: str) -> list[str]:
    shown = json.loads(run("show", "c", identifier, "--neighbours", 0, "--json").stdout)
    return [label["name"] or label["id"] for label in shown["labels"]]


def lines(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.mark.usefixtures("collection")
def test_learn_changes_headings_and_says_what_it_did(run: Run) -> None:
    Path("k.jsonl").write_text(
        lines(
            {"id": "1", "labels": ["Oats", "Bread"]},
            {"id": "2", "labels": []},
            {"id": "4", "title": "On bread", "labels": ["Loaf"], "language": "en"},
        )
    )
    result = run("learn", "c", "k.jsonl")
    assert (result.exit_code, result.stdout) == (0, "")
    first, second, third = result.stderr.splitlines()
    assert first == "Read 3 records, skipped 0, 0 without labels."
    assert second.startswith("1 added, 2 corrected in ")
    assert second.endswith("; 4 in the collection.")
    assert third == "1 document has no headings any more: 2"
    assert headings(run, "1") == ["Oats", "Bread"]
    assert headings(run, "2") == []
    assert headings(run, "4") == ["Bread"]
    assert "On rye" in run("show", "c", "1").stdout


@pytest.mark.usefixtures("collection")
def test_ids_that_are_not_stored_are_named_with_their_lines(run: Run) -> None:
    Path("k.csv").write_text("id,labels\n9,Oats\n1,Oats\n8,Bread\n7,\n")
    result = run("learn", "c", "k.csv")
    assert result.exit_code == 3
    assert "k.csv, line 5: neither a text nor labels" in result.stderr
    assert result.stderr.splitlines()[-3:] == [
        "2 records were left out:",
        "  k.csv, line 2: 9: not in the collection",
        "  k.csv, line 4: 8: not in the collection",
    ]
    assert headings(run, "1") == ["Oats"]
    report = json.loads(run("learn", "c", "k.csv", "--json").stdout)
    assert (report["missing"], report["unchanged"], report["corrections"]) == (2, 1, 3)
    assert report["left_out"][0] == {
        "id": "9",
        "problem": "not in the collection",
        "where": "k.csv, line 2",
    }


@pytest.mark.usefixtures("collection")
def test_a_spreadsheet_with_titles_loses_neither_texts_nor_headings(run: Run) -> None:
    whole = {"title": "On rye", "abstract": "A long text.", "labels": ["Oats"], "language": "en"}
    Path("whole.jsonl").write_text(lines(*({**whole, "id": f"w{n}"} for n in range(4))))
    run("add", "c", "whole.jsonl")
    Path("k.csv").write_text(
        "id,title,labels\nw0,On rye,Bread\nw1,On rye,\nw2,On rye,[]\n2,Oats,Bread\nn,New,\n"
    )
    result = run("learn", "c", "k.csv")
    assert result.exit_code == 0
    _, counts, *rest = result.stderr.splitlines()
    assert counts.startswith("1 added, 1 replaced, 2 corrected in ")
    assert rest == [
        "1 document has no headings any more: w2",
        "2 records have a title only: headings were taken, and texts left as they are stored.",
        "1 record was left out:",
        '  k.csv, line 3: w1: no labels; "labels": [] removes all headings',
    ]
    assert [headings(run, f"w{n}") for n in range(3)] == [["Bread"], ["Oats"], []]
    assert "A long text." in run("show", "c", "w0").stdout
    # A title is replaced by another, and a new document is stored without labels.
    assert json.loads(run("show", "c", "2", "--json").stdout)["title"] == "Oats"
    assert headings(run, "n") == []
    assert run("learn", "c", "k.csv", "--strict").exit_code == 3
    Path("k.jsonl").write_text(
        lines({**whole, "id": "w3", "abstract": "Other.", "labels": []}, {**whole, "id": "w1"})
    )
    report = json.loads(run("learn", "c", "k.jsonl", "--json").stdout)
    assert (report["replaced"], report["cleared_ids"], report["texts_kept"]) == (1, ["w3"], 0)


@pytest.mark.usefixtures("collection")
def test_older_records_are_left_out(run: Run) -> None:
    new = {"id": "1", "title": "On rye", "labels": ["Oats"], "revision": "2024-05-01"}
    Path("new.jsonl").write_text(lines(new))
    Path("old.jsonl").write_text(lines({**new, "labels": ["Bread"], "revision": "2023-01-01"}))
    Path("k.jsonl").write_text(lines({"id": "1", "labels": [], "revision": "2023-01-02"}))
    assert run("add", "c", "new.jsonl").exit_code == 0
    for verb, name, revision in (
        ("add", "old.jsonl", "2023-01-01"),
        ("learn", "k.jsonl", "2023-01-02"),
    ):
        result = run(verb, "c", name)
        assert result.exit_code == 0
        assert result.stderr.splitlines()[-3:] == [
            "1 record was left out:",
            f"  {name}, line 1: 1: revision {revision}, older than 2024-05-01 in the collection",
            "--take-older stores older records all the same.",
        ]
        assert run(verb, "c", name, "--strict").exit_code == 3
        assert headings(run, "1") == ["Oats"]
    assert run("learn", "c", "k.jsonl", "--take-older").exit_code == 0
    assert headings(run, "1") == []
    assert "Revision  2023-01-02\n" in run("show", "c", "1").stdout


@pytest.mark.usefixtures("collection")
def test_many_records_left_out_are_not_all_printed(run: Run) -> None:
    Path("k.jsonl").write_text(lines(*({"id": f"x{n}", "labels": ["Oats"]} for n in range(50))))
    result = run("learn", "c", "k.jsonl")
    assert result.stderr.count("not in the collection\n") == 20
    assert result.stderr.endswith("  and 30 more; --json lists the first thousand\n")


@pytest.mark.usefixtures("collection")
def test_labels_of_another_vocabulary_are_refused(run: Run) -> None:
    record = {"id": "1", "labels": [f"Nonsense {number}" for number in range(20)]}
    Path("k.jsonl").write_text(lines(record))
    result = run("learn", "c", "k.jsonl")
    assert result.exit_code == 1
    assert "none of the first 20 labels is in the vocabulary" in result.stderr
    assert headings(run, "1") == ["Bread, Rye", "Wheat"]
    assert run("learn", "c", "k.jsonl", "--keep-unknown").exit_code == 0
    assert len(headings(run, "1")) == 20


@pytest.mark.usefixtures("collection")
def test_show(run: Run) -> None:
    record = {
        "id": "5",
        "title": "Oats and rye",
        "abstract": "A text.",
        "fields": {"notes": "More."},
        "labels": [{"id": "D000003", "major": True}, {"id": "X9", "name": "Spelt"}],
        "year": 1999,
        "revision": 3,
        "language": "en",
    }
    Path("d.jsonl").write_text(lines(record))
    run("add", "c", "d.jsonl")
    shown = run("show", "c", "5")
    assert shown.exit_code == 0
    text, table, near = shown.stdout.split("\n\n", 1)[0], *shown.stdout.split("\n\n")[-2:]
    assert [line.split(maxsplit=1) for line in text.splitlines()] == [
        ["Id", "5"],
        ["Title", "Oats and rye"],
        ["Language", "en"],
        ["Revision", "3"],
        ["year", "1999"],
    ]
    assert "\nA text.\n\nnotes: More.\n" in shown.stdout
    assert [line.split() for line in table.splitlines()] == [
        ["heading", "name"],
        ["D000003", "Oats", "major"],
        ["X9", "Spelt", "not", "in", "the", "vocabulary"],
    ]
    assert near.splitlines()[0].split() == ["distance", "id", "title", "headings"]
    assert {line.split()[1] for line in near.splitlines()[1:]} == {"1", "2"}


@pytest.mark.usefixtures("collection")
def test_show_as_json_and_its_number_of_neighbours(run: Run) -> None:
    shown = json.loads(run("show", "c", "1", "--json").stdout)
    assert (shown["id"], shown["title"], shown["revision"]) == ("1", "On rye", None)
    assert [(one["id"], one["resolved"]) for one in shown["labels"]] == [
        ("D000002", True),
        ("Wheat", False),
    ]
    assert "1" not in [one["id"] for one in shown["neighbours"]]
    assert json.loads(run("show", "c", "1", "--neighbours", 0, "--json").stdout)["neighbours"] == []
    assert run("show", "c", "3").stderr == "No other labelled document shares a term with it.\n"
    assert "No headings." in run("show", "c", "3", "--neighbours", 0).stdout


@pytest.mark.usefixtures("collection")
def test_show_what_is_not_there(run: Run) -> None:
    result = run("show", "c", "nobody")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "error: no document 'nobody' in c; `labelkin corpus convert c -o documents.csv` lists "
        "the ids\n"
    )
    assert run("show", "c", "1", "--neighbours", -1).exit_code == 2
