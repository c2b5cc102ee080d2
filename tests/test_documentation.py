"""What README and docs tell people to type: commands are run or at least parsed, Python is run."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from labelkin.cli.demo import MEASURES, TEXTS
from labelkin.cli.main import app
from labelkin.demo import demo_concepts, demo_documents
from labelkin.indexer import Indexer
from labelkin.vocab.vocabulary import Vocabulary

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))

# Commands of labelkin that are only parsed, by the beginning, with the reason.
PARSED = {
    "demo": "takes half a minute; .ci/run runs it",
    "train": "takes too long; tests/cli/test_train.py runs it",
    "experiment run": "needs the paper's data; tests/cli/test_experiment.py runs a small grid",
    "compare-representations": "needs a spaCy model; tests/cli/test_representations.py runs it",
    "suggest mesh article.txt --include Neoplasms": "needs MeSH; tests/vocab/test_branches.py",
    "suggest mycollection article.txt --method toy": "needs the package that the page describes",
    "tune mycollection held-out.jsonl --method toy": "needs the package that the page describes",
    "tune decs held-out.json --method mix-ranked": "needs a trained model",
    "eval decs held-out.json --method knn --method mix-ranked": "needs a trained model",
    "neighbours mesh backlog.jsonl": "needs Spark; tests/cluster runs it",
    "build mesh --on": "needs Spark; tests/cluster runs it",
    "annotate mesh backlog.jsonl": "needs Spark; tests/cluster runs it",
    "serve": "runs until it is stopped; tests/serve and the client's example below run it",
}
# Other commands, which are not run.
NOT_RUN = {
    "curl": "network, or a running service; the client's example below makes the same requests",
    "git": "network",
    "unzip": "data from the network",
    "mkdir": "nothing to test",
    "python": "benchmarks/medline_split.py needs data from the network",
    "python3": "a virtual environment; the Makefile makes one in the same way",
    "pip": "network; the extras are checked",
    "make": "runs these tests; the targets are checked",
}


@dataclass(frozen=True)
class Command:
    """A line of a page that is meant to be typed."""

    page: str
    line: int
    text: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text, comments=True)


def commands_in(page: Path) -> Iterator[Command]:
    """The lines after `$` in console blocks, and indented lines that begin with a command."""
    fence = ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("```"):
            fence = "" if fence else line.removeprefix("```") or "text"
        elif fence == "console" and line.startswith("$ "):
            yield Command(page.name, number, line.removeprefix("$ "))
        elif not fence and line.startswith("    "):
            first = line.split()[0]
            if first in {"labelkin", "torchrun", *NOT_RUN}:
                yield Command(page.name, number, line.strip())


COMMANDS = [command for page in PAGES for command in commands_in(page)]


def labelkin_words(command: Command) -> list[str] | None:
    """The arguments of labelkin, also behind torchrun; None for another command."""
    words = command.words
    if words[0] == "torchrun":
        words = words[words.index("-m") + 1 :]
    return words[1:] if words[0] == "labelkin" else None


def parse(words: list[str]) -> None:
    """Parse a command line with the real parser, without running it."""
    group: Any = get_command(app)
    context = group.make_context("labelkin", list(words))
    rest = [*context._protected_args, *context.args]
    while rest:
        name, command, rest = group.resolve_command(context, rest)
        assert command is not None, f"no verb {name}"
        context = command.make_context(name, rest, parent=context)
        if not hasattr(command, "resolve_command"):
            return
        group, rest = command, [*context._protected_args, *context.args]


def reason_to_parse_only(words: list[str]) -> str | None:
    text = " ".join(words)
    return next((why for start, why in PARSED.items() if text.startswith(start)), None)


def test_the_pages_have_commands() -> None:
    assert len(COMMANDS) > 50
    assert {command.page for command in COMMANDS} >= {"README.md", "commands.md", "reranker.md"}


def test_every_command_is_run_or_listed() -> None:
    for command in COMMANDS:
        assert labelkin_words(command) is not None or command.words[0] in NOT_RUN, command


def test_no_list_has_entries_without_a_command() -> None:
    texts = [" ".join(labelkin_words(command) or ()) for command in COMMANDS]
    for start in PARSED:
        assert any(text.startswith(start) for text in texts), start
    assert {command.words[0] for command in COMMANDS} >= set(NOT_RUN)


@pytest.mark.parametrize(
    "command",
    [one for one in COMMANDS if labelkin_words(one) is not None],
    ids=lambda one: f"{one.page}:{one.line}",
)
def test_commands_parse(command: Command) -> None:
    parse(labelkin_words(command) or [])


def test_the_parser_refuses_what_does_not_exist() -> None:
    for wrong in ("sugest c", "suggest c --explian", "vocab shw c x", "vocab show c x y z"):
        with pytest.raises(Exception, match=r".") as refused:
            parse(wrong.split())
        assert type(refused.value).__module__.startswith(("click", "typer")), refused.value


def test_tables_of_commands_name_verbs_and_options_that_exist() -> None:
    """`labelkin add COLLECTION FILES… [--glob PATTERN]` in a table: verb and options exist."""
    group: Any = get_command(app)
    context = group.make_context("labelkin", ["info"], resilient_parsing=True)
    checked = 0
    for page in PAGES:
        for usage in re.findall(r"^\| `labelkin ([^`]*)`", page.read_text("utf-8"), re.MULTILINE):
            verb, *words = re.findall(r"[\w-]+", usage.replace("\\|", " "))
            command = group.get_command(context, verb)
            assert command is not None, usage
            if hasattr(command, "commands"):
                command = command.commands[words[0]]
            known = {
                name
                for parameter in command.params
                for name in (*parameter.opts, *parameter.secondary_opts)
            }
            options = re.findall(r"(?<!\w)(--?[a-z][\w-]*)", usage)
            assert set(options) <= known, usage
            checked += 1
    assert checked > 40


def test_make_targets_and_extras_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for command in COMMANDS:
        if command.words[0] == "make":
            words = {word for word in command.words[1:] if "=" not in word}
            assert words <= targets, command
        if command.words[0] == "pip":
            extras = re.findall(r"\.\[([\w,]+)\]", command.text)
            asked = {one for several in extras for one in several.split(",")}
            assert asked <= set(project["optional-dependencies"]), command


THESAURUS = """\
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix : <http://example.org/> .
"""
NAMES = ("Wheat", "Barns", "Crop Storage", "Oysters", "Storms", "Heart Failure")


def record(number: int, *, prefix: str = "d") -> dict[str, Any]:
    labels = [NAMES[number % len(NAMES)], NAMES[(number + 1) % len(NAMES)]]
    return {
        "id": f"{prefix}{number}",
        "title": f"On {labels[0].lower()} and {labels[1].lower()}",
        "text": f"Notes from {1990 + number} about {labels[0].lower()} of the country.",
        "labels": labels,
        "language": "en",
    }


def pubmed(records: list[dict[str, Any]], first: int) -> str:
    articles = "".join(
        f"<PubmedArticle><MedlineCitation><PMID>{first + number}</PMID><Article>"
        f"<ArticleTitle>{one['title']}</ArticleTitle>"
        f"<Abstract><AbstractText>{one['text']}</AbstractText></Abstract></Article>"
        "<MeshHeadingList>"
        + "".join(
            f'<MeshHeading><DescriptorName UI="D{NAMES.index(label) + 1:06d}" '
            f'MajorTopicYN="N">{label}</DescriptorName></MeshHeading>'
            for label in one["labels"]
        )
        + "</MeshHeadingList></MedlineCitation></PubmedArticle>"
        for number, one in enumerate(records)
    )
    return f"<PubmedArticleSet>{articles}</PubmedArticleSet>"


def bioasq(records: list[dict[str, Any]]) -> str:
    articles = [
        {
            "pmid": one["id"],
            "title": one["title"],
            "abstractText": one["text"],
            "meshMajor": one["labels"],
        }
        for one in records
    ]
    return json.dumps({"articles": articles})


def uris(one: dict[str, Any]) -> list[str]:
    return [f"http://example.org/c{NAMES.index(label)}" for label in one["labels"]]


def annif_tsv(records: list[dict[str, Any]]) -> str:
    """A corpus of Annif: texts with the URIs of their subjects."""
    return "".join(
        f"{one['title']} ¤ {one['text']}\t{' '.join(f'<{uri}>' for uri in uris(one))}\n"
        for one in records
    )


def annif_results(records: list[dict[str, Any]]) -> str:
    """What Annif answers for each document."""
    answers = (
        {"results": [{"uri": uri, "label": "", "score": 0.5} for uri in uris(one)[:1]]}
        for one in records
    )
    return "".join(json.dumps(answer) + "\n" for answer in answers)


def write(path: Path, text: str) -> None:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every file that the pages name, small, and a collection to be copied."""
    folder = tmp_path_factory.mktemp("documentation")
    concepts = "".join(
        f':c{number} a skos:Concept ; skos:prefLabel "{name}"@en .\n'
        for number, name in enumerate(NAMES)
    )
    write(folder / "thesaurus.ttl", THESAURUS + concepts)
    table = ["id\tname\ttree_numbers"]
    table += [f"D{number:06d}\t{name}\tA{number:02d}" for number, name in enumerate(NAMES, 1)]
    write(folder / "decs-vocabulary.tsv", "\n".join(table) + "\n")
    descriptors = "".join(
        f'<DescriptorRecord DescriptorClass="1"><DescriptorUI>D{number:06d}</DescriptorUI>'
        f"<DescriptorName><String>{name}</String></DescriptorName>"
        f"<TreeNumberList><TreeNumber>A{number:02d}</TreeNumber></TreeNumberList>"
        "<ConceptList /></DescriptorRecord>"
        for number, name in enumerate(NAMES, 1)
    )
    write(
        folder / "desc2026.xml",
        f'<?xml version="1.0"?><DescriptorRecordSet LanguageCode="eng">{descriptors}'
        "</DescriptorRecordSet>",
    )
    records = [record(number) for number in range(30)]
    others = [record(number, prefix="n") for number in range(8)]
    for name in ("indexed.jsonl", "indexed-2023.jsonl", "indexed-2024.jsonl.gz"):
        write(folder / name, "".join(json.dumps(one) + "\n" for one in records))
    for name in ("held-out.jsonl", "checked.jsonl"):
        write(folder / name, "".join(json.dumps(one) + "\n" for one in others))
    corrections = [{"id": "d1", "labels": ["Wheat", "Barns"]}, {"id": "d2", "labels": []}]
    write(folder / "corrections.jsonl", "".join(json.dumps(one) + "\n" for one in corrections))
    for name in ("indexed.json", "held-out.json", "l1000.json.gz"):
        write(folder / name, bioasq(records if name == "indexed.json" else others))
    for name in ("new-records.xml.gz", "the-same-indexed.xml.gz"):
        write(folder / name, pubmed(others, 1))
    for name in ("pubmed26n0014.xml.gz", "pubmed20n0014.xml.gz"):
        write(folder / name, pubmed(records, 399290))
    for name in ("new-article.txt", "article.txt"):
        write(folder / name, "Storage of wheat in barns after storms.\n")
    write(folder / "other-tool.tsv", "1\tD000001\t0.9\n2\tD000002\t0.5\n")
    write(folder / "yso-skos.ttl", THESAURUS + concepts)
    write(folder / "train.tsv.gz", annif_tsv(records))
    write(folder / "test.tsv", annif_tsv(others))
    write(folder / "annif.jsonl", annif_results(others))
    (folder / "fulltext").mkdir()
    write(folder / "fulltext" / "a.txt", "Oysters after storms.\n")
    write(folder / "fulltext" / "a.tsv", "<http://example.org/c3>\tOysters\n")
    write(folder / "l1000-mti.tsv.gz", "n1\tD000001\t0.9\nn2\tD000002\t0.5\n")
    runner = CliRunner()
    collection = str(folder / "collection")
    for words in (
        ["init", collection, "--vocab", str(folder / "decs-vocabulary.tsv"), "--language", "en"],
        ["add", collection, str(folder / "indexed.jsonl")],
    ):
        assert runner.invoke(app, words).exit_code == 0
    return folder


def expanded(word: str, folder: Path) -> list[str]:
    """The files that a shell would put for a word with an asterisk."""
    return sorted(path.name for path in folder.glob(word)) if "*" in word else [word]


@pytest.mark.parametrize("page", [page.name for page in PAGES])
def test_commands_run(
    page: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after another in one folder; a collection that the page takes for granted is copied."""
    for file in files.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    shutil.copytree(files / "fulltext", tmp_path / "fulltext")
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    for command in (one for one in COMMANDS if one.page == page):
        words = labelkin_words(command)
        if words is None or reason_to_parse_only(words):
            continue
        words = [name for word in words for name in expanded(word, tmp_path)]
        for known in ("mycollection", "mesh", "decs", "demo"):
            if known in words and words[0] != "init" and not Path(known).exists():
                shutil.copytree(files / "collection", known)
        if words[:2] == ["vocab", "show"]:
            # The page shows a heading of the demo, which is not made here.
            words[-1] = "wheat"
        result = runner.invoke(app, words)
        assert result.exit_code == 0, (command, result.output, result.exception)


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def test_the_python_of_the_readme_runs_twice(files: Path, tmp_path: Path) -> None:
    """It ends with headings by name."""
    (block,) = python_blocks(ROOT / "README.md")
    shutil.copy(files / "thesaurus.ttl", tmp_path)
    shutil.copy(files / "indexed.jsonl", tmp_path)
    for expected in ("30 added", "0 added"):
        result = subprocess.run(
            [sys.executable, "-W", "error", "-c", block],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        first, *lines = result.stdout.splitlines()
        assert first.startswith(expected)
        score, name, *_ = re.split(r" {2,}| (?=\D)", lines[-1], maxsplit=1)
        assert 0 < float(score) <= 1
        assert any(name.startswith(one) for one in NAMES), lines[-1]


def test_the_readme_shows_what_the_demo_prints() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    for text in TEXTS:
        assert f"Headings for {text!r}, by rerank:" in readme
    width = max(map(len, MEASURES))
    for name, meaning in MEASURES.items():
        assert f"{name:<{width}}  {meaning}\n" in readme


def test_the_readme_shows_a_session_early() -> None:
    first_lines = (ROOT / "README.md").read_text("utf-8").splitlines()[:60]
    shown = first_lines.index("$ labelkin demo")
    assert any(line.startswith("  named in the title: ") for line in first_lines[shown:])


SERVICE = ROOT / "docs" / "service.md"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a service with some of the demo's documents, untrained."""
    folder = tmp_path_factory.mktemp("service")
    path = folder / "demo"
    with Indexer.create(path, Vocabulary(demo_concepts()), language="en") as indexer:
        indexer.add(demo_documents(300))
    log = folder / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "labelkin", "serve", str(path), "--port", "0"],
            env={**os.environ, "LABELKIN_TOKEN": "secret"},
            stdout=subprocess.DEVNULL,
            stderr=file,
        )
    try:
        for _ in range(600):
            if address := re.search(r"http://[\d.]+:\d+", log.read_text()):
                break
            time.sleep(0.1)
        assert address, log.read_text()
        yield address.group()
    finally:
        process.terminate()
        process.wait(60)


def test_the_python_of_the_service_page_runs(service: str) -> None:
    (block,) = python_blocks(SERVICE)
    assert "http://127.0.0.1:8080" in block
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", block.replace("http://127.0.0.1:8080", service)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    *_, labels, near, _, found = result.stdout.splitlines()
    assert labels == "['Bread', 'Oats']"
    assert near.startswith("new-1 [")
    assert found == "9 concepts"


def test_the_service_page_lists_every_endpoint(service: str) -> None:
    with urlopen(f"{service}/api/v1/openapi.json", timeout=60) as answer:
        paths = json.load(answer)["paths"]
    replaced = {"{collection}": "NAME", "{identifier}": "ID", "{project_id}": "ID"}
    described = set()
    for path, methods in paths.items():
        for name, placeholder in replaced.items():
            path = path.replace(name, placeholder)
        described |= {(method.upper(), path) for method in methods}
    described.add(("GET", "/api/v1/openapi.json"))
    page = SERVICE.read_text("utf-8")
    assert set(re.findall(r"^\| ([A-Z]+) \| `(/[^`]*)`", page, re.MULTILINE)) == described


def test_the_service_page_lists_every_metric(service: str) -> None:
    with urlopen(f"{service}/metrics", timeout=60) as answer:
        figures = answer.read().decode()
    names = set(re.findall(r"^# TYPE (labelkin_\w+)", figures, re.MULTILINE))
    section = SERVICE.read_text("utf-8").partition("### Metrics")[2].partition("### ")[0]
    listed = set(re.findall(r"`(labelkin_\w+)`", section))
    assert listed == {name for name in names if not name.endswith("_created")}


def verbs() -> Iterator[str]:
    """All verbs of the command line, also those in groups."""
    group: Any = get_command(app)
    context = group.make_context("labelkin", ["info"], resilient_parsing=True)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = getattr(command, "commands", None)
        yield from (f"{name} {one}" for one in inner) if inner else (name,)


@pytest.mark.parametrize("page", ["commands.md", "python.md", "service.md"])
def test_the_tables_have_every_verb(page: str) -> None:
    text = (ROOT / "docs" / page).read_text("utf-8")
    listed = re.findall(r"^\| `labelkin ([a-z-]+(?: [a-z]+)?)", text, re.MULTILINE)
    assert set(verbs()) <= set(listed)


def test_the_service_page_lists_every_option() -> None:
    group: Any = get_command(app)
    context = group.make_context("labelkin", ["info"], resilient_parsing=True)
    options = {
        parameter.secondary_opts[0] if parameter.secondary_opts else parameter.opts[0]
        for parameter in group.get_command(context, "serve").params
        if parameter.param_type_name == "option"
    }
    listed = re.findall(r"^\| `(--[a-z-]+)` \|", SERVICE.read_text("utf-8"), re.MULTILINE)
    assert options - {"--verbose", "--help"} <= set(listed)
