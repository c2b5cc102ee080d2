"""Annif 1.4.3 with an `http` project that asks a service with Annif's API for its suggestions.

    PYTHONPATH=src python tests/peers/check_annif_http.py http://127.0.0.1:8080/v1/ PROJECT \
        --vocab descriptors.tsv.gz --documents dev.json.gz --env ENV

Makes Annif's environment if it is not there, loads the vocabulary into it under the ids that the
service suggests, and runs `annif show-project`, `suggest`, `index` and `eval` on some of the
documents. Prints the commands and their output, compares the output with what the service itself
answers, and exits with 1 if a check failed.
"""

from __future__ import annotations

import argparse
import csv
import json
import shlex
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from labelkin import Document, Indexer, Vocabulary, read_corpus, read_vocabulary

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / "benchmarks" / "work" / "annif" / "env"
PACKAGE = "annif==1.4.3"
# The id of the project in Annif, and how many suggestions its `http` backend asks for.
PROJECT, ASKED = "labelkin", 100
# Annif prints four decimals of 32-bit scores.
TOLERANCE = 6e-5
SHOWN_LINES = 10
PROJECT_KEYS = {"language", "vocab", "vocab_language", "is_trained", "modification_time"}

Result = dict[str, Any]


class ServiceError(Exception):
    """The service does not answer, or not as Annif does."""


@dataclass(frozen=True)
class Service:
    """A project of the service that Annif will ask."""

    url: str
    project: str

    @property
    def address(self) -> str:
        return f"{self.url.rstrip('/')}/projects/{self.project}"

    def information(self) -> dict[str, Any]:
        information = self._ask(self.address)
        missing = (
            PROJECT_KEYS - information.keys() if isinstance(information, dict) else PROJECT_KEYS
        )
        if missing:
            raise ServiceError(f"{self.address}: the answer has no {', '.join(sorted(missing))}")
        project: dict[str, Any] = information
        return project

    def suggest(self, text: str, limit: int = ASKED, **fields: str) -> list[Result]:
        """What the service itself answers; the request is the one that Annif makes."""
        address = f"{self.address}/suggest"
        answer = self._ask(address, urlencode({"text": text, **fields, "limit": limit}).encode())
        try:
            return [
                {"uri": one["uri"], "label": one["label"], "score": one["score"] + 0.0}
                for one in answer["results"]
            ]
        except (KeyError, TypeError) as error:
            raise ServiceError(f"{address}: not the answer that Annif gives: {error!r}") from error

    def _ask(self, address: str, body: bytes | None = None) -> Any:
        try:
            with urlopen(Request(address, body), timeout=60) as answer:
                return json.load(answer)
        except (OSError, ValueError) as error:
            raise ServiceError(f"{address}: {error}; is the service running?") from error


class Annif:
    """Annif's command line, in a folder of its own."""

    def __init__(self, env: Path, folder: Path) -> None:
        self.program = env / "bin" / "annif"
        self.folder = folder
        self.checks = self.violations = 0

    def run(self, *arguments: object, given: str | None = None) -> str:
        """Standard output of a command, printed with the command; no exit code but 0 is right."""
        words = [str(one) for one in arguments]
        command = shlex.join(["annif", *words]) + (f" < {given}" if given else "")
        print(f"\n$ {command}", flush=True)
        done = subprocess.run(
            [str(self.program), *words],
            cwd=self.folder,
            input=(self.folder / given).read_text(encoding="utf-8") if given else None,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
        for line in lines[:SHOWN_LINES]:
            print(_cut(line))
        if len(lines) > SHOWN_LINES:
            print(f"… {len(lines) - SHOWN_LINES} more lines")
        self.check("exit code 0", done.returncode == 0, done.returncode)
        warned = [line for line in done.stderr.splitlines() if "warning" in line.lower()]
        self.check("no warnings", not warned, warned[:3])
        return done.stdout

    def check(self, what: str, holds: bool, seen: object = None) -> bool:
        self.checks += 1
        self.violations += not holds
        state = "ok" if holds else "VIOLATION"
        print(f"    {state}: {what}" + ("" if holds or seen is None else f"; got {seen!r}"))
        return holds


def _cut(line: str, width: int = 120) -> str:
    return line if len(line) <= width else line[:width] + "…"


def main() -> None:
    """Run all commands; exit with 1 if a check failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url", help="the API, such as http://127.0.0.1:8080/v1/")
    parser.add_argument("project", help="a trained project of the service")
    parser.add_argument(
        "--vocab", type=Path, required=True, help="the project's vocabulary: a file or a collection"
    )
    parser.add_argument(
        "--documents", type=Path, required=True, help="labelled documents: a file or a collection"
    )
    parser.add_argument("--count", type=int, default=40, help="documents to use")
    parser.add_argument("--env", type=Path, default=ENVIRONMENT, help="made if it is not there")
    arguments = parser.parse_args()
    try:
        annif = check(arguments)
    except ServiceError as error:
        sys.exit(f"{error}\n(check_annif_client.py tells more about wrong answers)")
    print(f"\n{annif.checks} checks, {annif.violations} violations")
    sys.exit(1 if annif.violations else 0)


def check(arguments: argparse.Namespace) -> Annif:
    """All commands, one after the other."""
    service = Service(arguments.url, arguments.project)
    information = service.information()
    make_environment(arguments.env)
    vocabulary = vocabulary_of(arguments.vocab)
    documents = labelled(arguments.documents, vocabulary, arguments.count)
    with tempfile.TemporaryDirectory() as folder:
        annif = Annif(arguments.env.absolute(), Path(folder))
        set_up(annif, service, vocabulary, information)
        check_project(annif, information)
        check_suggest(annif, service, documents)
        check_index_folder(annif, service, documents)
        check_index_file(annif, service, documents)
        check_eval(annif, service, documents)
    return annif


def make_environment(env: Path) -> None:
    if (env / "bin" / "annif").exists():
        return
    print(f"installing {PACKAGE} in {env}", flush=True)
    venv.create(env, with_pip=True)
    pip = [str(env / "bin" / "python"), "-m", "pip", "install", "--quiet", PACKAGE]
    subprocess.run(pip, check=True)


def vocabulary_of(path: Path) -> Vocabulary:
    """The vocabulary in a file or of a collection."""
    if not path.is_dir():
        return read_vocabulary(path)
    with Indexer.open(path) as indexer:
        return indexer.vocabulary


def documents_of(path: Path) -> Iterator[Document]:
    """The documents in a file or of a collection."""
    if not path.is_dir():
        yield from read_corpus(path).documents()
        return
    with Indexer.open(path) as indexer:
        yield from indexer.documents()


@dataclass(frozen=True)
class Labelled:
    """A document's text on one line, and the ids of its headings."""

    id: str
    text: str
    title: str
    uris: frozenset[str]


def labelled(path: Path, vocabulary: Vocabulary, count: int) -> list[Labelled]:
    """The first documents that have headings of the vocabulary."""
    documents = (_labelled(one, vocabulary) for one in documents_of(path))
    chosen = list(islice((one for one in documents if one.uris), count))
    if not chosen:
        sys.exit(f"{path}: no document has a heading of the vocabulary")
    return chosen


def _labelled(document: Document, vocabulary: Vocabulary) -> Labelled:
    columns = (vocabulary.resolve(label).column for label in document.labels)
    uris = frozenset(vocabulary[column].id for column in columns if column is not None)
    return Labelled(document.id, " ".join(document.text.split()), document.title, uris)


def set_up(
    annif: Annif, service: Service, vocabulary: Vocabulary, information: dict[str, Any]
) -> None:
    """Annif's configuration, and the vocabulary as its CSV, which has a column per language."""
    language = information["vocab_language"] or information["language"]
    settings = {
        "name": "labelkin over HTTP",
        "language": information["language"],
        "backend": "http",
        "endpoint": f"{service.address}/suggest",
        "vocab": f"subjects({language})",
    }
    lines = [f"[{PROJECT}]", *(f"{key}={value}" for key, value in settings.items()), ""]
    (annif.folder / "projects.cfg").write_text("\n".join(lines), encoding="utf-8")
    print("$ cat projects.cfg", *lines, sep="\n")
    languages = information["vocab"]["languages"]
    with (annif.folder / "subjects.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["uri", *(f"label_{language}" for language in languages)])
        for concept in vocabulary:
            table.writerow([concept.id, *(concept.name(language) for language in languages)])
    annif.run("load-vocab", "subjects", "subjects.csv")
    size = information["vocab"]["size"]
    annif.check("the project has a vocabulary of this size", size == len(vocabulary), size)


def check_project(annif: Annif, information: dict[str, Any]) -> None:
    """Annif reads `is_trained` and `modification_time`, which it shows in local time."""
    shown = (line.partition(":") for line in annif.run("show-project", PROJECT).splitlines())
    fields = {name: value.strip() for name, _, value in shown}
    annif.check("is trained", fields.get("Trained") == "True", fields.get("Trained"))
    changed, seen = information["modification_time"], fields.get("Modification time")
    wanted = "-"
    if changed is not None:
        try:
            wanted = datetime.fromisoformat(changed).astimezone().strftime("%Y-%m-%d %H:%M:%S")
        except (TypeError, ValueError):
            wanted = f"a time, not {changed!r}"
    annif.check("shows the time of the last change", seen == wanted, (seen, wanted))


def check_suggest(annif: Annif, service: Service, documents: Sequence[Labelled]) -> None:
    """A text from standard input, then two files with other settings."""
    for number, document in enumerate(documents[:2], start=1):
        (annif.folder / f"document-{number}.txt").write_text(document.text, encoding="utf-8")
    shown = _rows(annif.run("suggest", PROJECT, given="document-1.txt"))
    check_same(annif, shown, service.suggest(documents[0].text), 10)
    names = [f"document-{number}.txt" for number in range(1, len(documents[:2]) + 1)]
    output = annif.run("suggest", "--limit", 3, "--threshold", 0.05, PROJECT, *names)
    parts = output.split("Suggestions for ")[1:]
    annif.check("a part per file", [part.split("\n")[0] for part in parts] == names)
    for part, document in zip(parts, documents[:2], strict=False):
        check_same(annif, _rows(part), service.suggest(document.text), 3, 0.05)


def check_index_folder(annif: Annif, service: Service, documents: Sequence[Labelled]) -> None:
    """A folder of texts: a table beside each."""
    folder = annif.folder / "texts"
    folder.mkdir()
    for number, document in enumerate(documents[:5], start=1):
        (folder / f"{number}.txt").write_text(document.text, encoding="utf-8")
    annif.run("index", PROJECT, "texts")
    for number, document in enumerate(documents[:5], start=1):
        table = folder / f"{number}.annif"
        if annif.check(f"{number}.annif is there", table.exists()):
            rows = _rows(table.read_text(encoding="utf-8"))
            check_same(annif, rows, service.suggest(document.text), 10)


def check_index_file(annif: Annif, service: Service, documents: Sequence[Labelled]) -> None:
    """A file of documents with metadata, which Annif sends along: more than one of its batches."""
    records = [
        {"document_id": one.id, "text": one.text, "metadata": {"title": one.title}}
        for one in documents
    ]
    _write_lines(annif.folder / "documents.jsonl", records)
    annif.run("index", "--limit", 5, "--no-include-doc", PROJECT, "documents.jsonl")
    path = annif.folder / "documents.annif.jsonl"
    if not annif.check(f"{path.name} is there", path.exists(), sorted(annif.folder.glob("*"))):
        return
    indexed = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    ids = [one["document_id"] for one in indexed]
    annif.check("all documents in their order", ids == [one.id for one in documents], ids)
    differences = []
    for one, document in zip(indexed, documents, strict=False):
        answer = service.suggest(document.text, metadata_title=document.title)
        rows = [(hit["uri"], hit["label"], hit["score"]) for hit in one["results"]]
        differences += [f"{document.id}: {error}" for error in _differences(rows, answer, 5, 0)]
    annif.check("what the service answers", not differences, differences[:3])


def check_eval(annif: Annif, service: Service, documents: Sequence[Labelled]) -> None:
    """Annif's count of correct suggestions beside our own."""
    records = [
        {"document_id": one.id, "text": one.text, "subjects": [{"uri": uri} for uri in one.uris]}
        for one in documents
    ]
    _write_lines(annif.folder / "gold.jsonl", records)
    metrics = ["Precision (doc avg)", "Recall (doc avg)", "NDCG", "Precision@5"]
    metrics += ["True positives", "False positives", "False negatives"]
    options = [word for metric in metrics for word in ("--metric", metric)]
    run = ["eval", "--jobs", 2, *options, "--metrics-file", "metrics.json", PROJECT, "gold.jsonl"]
    annif.run(*run)
    path = annif.folder / "metrics.json"
    if not annif.check("metrics.json is there", path.exists()):
        return
    measured = json.loads(path.read_text(encoding="utf-8"))
    count = measured["Documents_evaluated"]
    annif.check("all documents were evaluated", count == len(documents), count)
    correct = measured["True_positives"]
    bounds = [_hits(service.suggest(one.text), one.uris, 10) for one in documents]
    least, most = sum(low for low, _ in bounds), sum(high for _, high in bounds)
    annif.check(
        f"as many correct suggestions as in the service's answers, {least} to {most}",
        least <= correct <= most and correct > 0,
        correct,
    )
    gold = sum(len(one.uris) for one in documents)
    missed = measured["False_negatives"]
    annif.check("all headings of the documents were known", correct + missed == gold, missed)


def _hits(answer: list[Result], gold: frozenset[str], limit: int) -> tuple[int, int]:
    """Correct ones among the first `limit`: least and most, as ties may fall either way."""
    if len(answer) <= limit:
        hits = sum(one["uri"] in gold for one in answer)
        return hits, hits
    last = answer[limit - 1]["score"]
    above = [one for one in answer if one["score"] > last + TOLERANCE]
    tied = [one for one in answer if abs(one["score"] - last) <= TOLERANCE]
    sure = sum(one["uri"] in gold for one in above)
    right = sum(one["uri"] in gold for one in tied)
    places = limit - len(above)
    return sure + max(0, places - (len(tied) - right)), sure + min(places, right)


Row = tuple[str, str, float]


def _rows(output: str) -> list[Row]:
    """URI, label and score of each line that Annif prints; a notation may be in between."""
    lines = (line.split("\t") for line in output.splitlines() if line.startswith("<"))
    return [(parts[0][1:-1], parts[1], float(parts[-1])) for parts in lines]


def check_same(
    annif: Annif, rows: list[Row], answer: list[Result], limit: int, threshold: float = 0
) -> None:
    errors = _differences(rows, answer, limit, threshold)
    annif.check(f"what the service answers, {len(rows)} suggestions", not errors, errors[:3])


def _differences(rows: list[Row], answer: list[Result], limit: int, threshold: float) -> list[str]:
    """Where Annif's rows are not the first of the answer; ties may come in any order."""
    wanted = [one for one in answer if one["score"] >= threshold][:limit]
    if not wanted:
        return ["the service has no suggestions"]
    if len(rows) != len(wanted):
        return [f"{len(rows)} rows instead of {len(wanted)}"]
    known = {one["uri"]: one for one in answer}
    errors = []
    for (uri, label, score), expected in zip(rows, wanted, strict=True):
        if uri not in known:
            errors.append(f"{uri} is not in the answer")
        elif label != known[uri]["label"]:
            errors.append(f"{uri} is called {label!r}, not {known[uri]['label']!r}")
        elif max(abs(score - one["score"]) for one in (known[uri], expected)) > TOLERANCE:
            errors.append(f"{uri} has {score}, not {expected['score']}")
    return errors


def _write_lines(path: Path, records: Iterable[object]) -> None:
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    path.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
