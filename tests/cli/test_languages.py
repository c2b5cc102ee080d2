from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]

VOCABULARY = (
    "id\tname_en\tname_de\tname_fi\tbroader\n"
    "V1\tBread\tBrot\tleipä\t\nV2\tRye bread\tRoggenbrot\t\tV1\nV3\tOats\tHafer\tkaura\t\n"
)
ENGLISH = "The river carries more water in the spring than anybody had thought"
GERMAN = "Der Fluss führt im Frühling mehr Wasser, als man gedacht hatte"
FINNISH = "Joessa on keväällä enemmän vettä kuin kukaan osasi odottaa"


@pytest.fixture
def rivers(run: Run, tmp_path: Path) -> str:
    """A collection with names in three languages and texts in English and German."""
    (tmp_path / "v.tsv").write_text(VOCABULARY)
    texts = [(f"e{n}", f"{ENGLISH} {n}", "en") for n in range(3)]
    texts += [(f"d{n}", f"{GERMAN} {n}", "de") for n in range(3)]
    lines = [
        json.dumps({"id": i, "title": title, "language": tag, "labels": ["V1", "V3"]})
        for i, title, tag in texts
    ]
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    assert run("init", "c", "--vocab", "v.tsv").exit_code == 0
    assert run("add", "c", "c.jsonl").exit_code == 0
    return "c"


def set_language(code: str) -> None:
    path = Path("c/labelkin.toml")
    before, section, rest = path.read_text().partition("[vocabulary]")
    changed = re.sub('language = ".*"', f'language = "{code}"', rest, count=1)
    path.write_text(before + section + changed)


def test_the_setting_and_the_option(run: Run, rivers: str) -> None:
    assert run("vocab", "tree", rivers).stdout == "Bread\n  Rye bread\nOats\n"
    set_language("de")
    assert run("vocab", "tree", rivers).stdout == "Brot\n  Roggenbrot\nHafer\n"
    assert "Brot" in run("suggest", rivers, "--title", ENGLISH).stdout
    # No Finnish name: English.
    shown = run("vocab", "tree", rivers, "--language", "fin").stdout
    assert shown == "kaura\nleipä\n  Rye bread\n"
    result = run("suggest", rivers, "--title", ENGLISH, "--language", "fi", "--json")
    names = {one["name"] for one in json.loads(result.stdout)[0]["suggestions"]}
    assert names == {"leipä", "kaura"}


def test_all_languages(run: Run, rivers: str) -> None:
    found = json.loads(run("vocab", "search", rivers, "oats", "--language", "all", "--json").stdout)
    names = {"en": "Oats", "de": "Hafer", "fi": "kaura"}
    assert found == [
        {
            "id": "V3",
            "name": "Oats / Hafer / kaura",
            "names": names,
            "matched": "Oats",
            "language": "en",
        }
    ]
    assert "Rye bread / Roggenbrot\n" in run("vocab", "tree", rivers, "--language", "all").stdout
    run("annotate", rivers, "c.jsonl", "-o", "a.jsonl", "--language", "all")
    first = json.loads(Path("a.jsonl").read_text().splitlines()[0])
    assert names in [one["names"] for one in first["suggestions"]]
    run("annotate", rivers, "c.jsonl", "-o", "a.csv", "--language", "all")
    with Path("a.csv").open() as file:
        assert "Oats / Hafer / kaura" in {row["name"] for row in csv.DictReader(file)}
    found = json.loads(run("suggest", rivers, "--title", ENGLISH, "--json").stdout)
    assert "names" not in found[0]["suggestions"][0]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("xx-not-a-language", "'xx-not-a-language' is not a language code"),
        ("germn", "'germn' is not a language code"),
        ("sv", "'sv' is the language of no heading's name"),
    ],
)
def test_unknown_codes_are_refused(code: str, reason: str, run: Run, rivers: str) -> None:
    for command in (
        ("vocab", "show", rivers, "V1"),
        ("vocab", "search", "v.tsv", "bread"),
        ("vocab", "tree", rivers),
        ("vocab", "stats", rivers),
        ("suggest", rivers, "--title", "x"),
        ("annotate", rivers, "c.jsonl", "-o", "out.jsonl"),
    ):
        result = run(*command, "--language", code)
        assert result.exit_code == 1
        assert result.stderr == f"error: {reason}; there are names in de 3, en 3, fi 2\n"
    assert not Path("out.jsonl").exists()


def test_a_wrong_setting(run: Run, rivers: str) -> None:
    set_language("sv")
    result = run("vocab", "tree", rivers)
    assert (result.exit_code, result.stdout) == (1, "")
    assert (
        "vocabulary.language in labelkin.toml: 'sv' is the language of no heading" in result.stderr
    )
    set_language("Elvish")
    result = run("vocab", "tree", rivers)
    assert "vocabulary.language = 'Elvish'" in result.stderr


def test_a_vocabulary_without_english(run: Run, tmp_path: Path) -> None:
    (tmp_path / "v.tsv").write_text("id\tname_de\tname_fi\nV1\tBrot\t\nV2\tHafer\tkaura\n")
    assert run("vocab", "tree", "v.tsv").stdout == "Brot\nHafer\n"
    assert run("init", "c", "--vocab", "v.tsv").exit_code == 0
    assert run("vocab", "tree", "c").stdout == "Brot\nHafer\n"


def test_texts_in_a_language_that_the_collection_lacks(
    run: Run, rivers: str, tmp_path: Path
) -> None:
    warning = (
        "is in a language that the collection has hardly any documents in: fi 1 "
        "(it has de 3, en 3); expect poor headings"
    )
    result = run("suggest", rivers, "--title", FINNISH)
    assert result.stderr.count("warning:") == 1
    assert f"warning: 1 text {warning}" in result.stderr
    assert "warning" not in run("suggest", rivers, "--title", GERMAN).stderr
    texts = [
        {"id": "1", "title": FINNISH, "labels": ["V1"]},
        {"id": "2", "title": ENGLISH, "labels": ["V1"]},
        {"id": "3", "title": GERMAN, "labels": ["V1"], "language": "de"},
        {"id": "4", "title": "Brot", "labels": ["V1"]},
    ]
    (tmp_path / "new.jsonl").write_text("\n".join(map(json.dumps, texts)))
    for command in (
        ("annotate", rivers, "new.jsonl", "-o", "out.jsonl"),
        ("eval", rivers, "new.jsonl"),
        ("compare", rivers, "new.jsonl", "--methods", "knn"),
    ):
        result = run(*command)
        assert result.exit_code == 0
        assert result.stderr.count("warning:") == 1, command
        assert f"warning: 1 text of 4 {warning}" in result.stderr


def test_no_warning_without_documents_or_with_a_fixed_language(run: Run, tmp_path: Path) -> None:
    (tmp_path / "v.tsv").write_text(VOCABULARY)
    assert run("init", "c", "--vocab", "v.tsv").exit_code == 0
    options = ("--method", "lexical", "--title", FINNISH)
    assert "warning" not in run("suggest", "c", *options).stderr
    document = {"id": "1", "title": ENGLISH, "labels": ["V1"]}
    (tmp_path / "c.jsonl").write_text(json.dumps(document))
    assert run("add", "c", "c.jsonl").exit_code == 0
    assert "1 text is in a language" in run("suggest", "c", *options).stderr
    assert run("init", "fixed", "--vocab", "v.tsv", "--language", "en").exit_code == 0
    assert run("add", "fixed", "c.jsonl").exit_code == 0
    assert "warning" not in run("suggest", "fixed", *options).stderr


@pytest.mark.parametrize(
    ("text", "loads"),
    [
        ("The storage of wheat in the barns of a village is what this is about. " * 2, False),
        ("Weizenlagerung in Scheunen", True),
        ("Storage of wheat", True),
    ],
)
def test_a_long_english_text_needs_no_detection(
    run: Run, demo: str, monkeypatch: pytest.MonkeyPatch, text: str, loads: bool
) -> None:
    import labelkin.corpus.language as language

    config = Path(demo) / "labelkin.toml"
    config.write_text(config.read_text().replace('\nlanguage = "en"', '\nlanguage = "auto"', 1))
    asked: list[str] = []
    detect = language.detect_language

    def detected(content: str, *arguments: object) -> str | None:
        asked.append(content)
        return detect(content, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(language, "detect_language", detected)
    result = run("suggest", demo, "--text", text)
    assert result.exit_code == 0, result.stderr
    assert bool(asked) == loads
