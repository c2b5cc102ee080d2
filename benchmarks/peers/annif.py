"""Annif's projects through its own command line, on SKOS made from our vocabulary.

The projects are those of benchmarks/annif_projects.py and a neural ensemble of the same sources;
other data sets differ in language, vocabulary and the sources of the ensembles. The neural ensemble
has to be trained on records that its sources have not seen: it takes every second record of dev.
"""

from __future__ import annotations

import configparser
import io
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from benchmarks.annif_projects import (
    MLLM_RECORDS,
    PROJECTS,
    PUNKT_WHEEL,
    install_splitter,
    turtle,
    uri,
)

from .data_folder import DataFolder
from .datasets import DATA_SETS, spread
from .label_sets import LabelSets
from .meter import Command, CommandError
from .peer import TOP, OwnEvaluation, Peer, Place, System

VOCABULARY = "vocabulary"
_NEURAL = """\
[nn_ensemble]
name=Neural ensemble
language=en
backend=nn_ensemble
limit=100
vocab=mesh
sources=omikuji:6,mllm:2,tfidf:1
"""
_NEURAL_NAME, _NEURAL_RECORDS = "nn_ensemble", "every second one of dev"
# Of projects that are not trained on all training records.
_CORPORA = {"mllm": "mllm", _NEURAL_NAME: "seen"}
# By data set, if not those of annif_projects.py. mllm has nothing to train on where texts are in
# German and names in English.
_SOURCES = {"tibkat-en": "omikuji:3,mllm:1", "tibkat-de": "omikuji:3,tfidf:1"}
_LANGUAGES = {"en": "english", "de": "german"}


class Annif(Peer):
    """The projects tfidf, mllm, omikuji and their ensembles."""

    name = "annif"
    installs = (("annif[nn,omikuji]==1.4.3",),)
    note = (
        "mllm is trained on 3,000 records, nn_ensemble on every second record of dev, because its "
        "sources have seen all training records; its cut is chosen on the other half of dev."
    )
    unable: ClassVar = {
        "annif-svc": "Annif's `svc` is for one subject per record: of several it takes one at "
        "random, and it trains a dense classifier for each subject that is left"
    }
    evaluation_note = (
        "It orders equal scores in its own way, and its Precision@5 divides by the number of "
        "suggestions where there are fewer than five, ours by five."
    )

    def systems(self, data: DataFolder) -> Sequence[System]:
        """A system per project."""
        sections = projects(data)
        return [
            System(
                f"annif-{name}",
                _settings(sections[name]),
                (VOCABULARY, *_trainings(sections[name])),
                sees_dev=name == _NEURAL_NAME,
            )
            for name in sections.sections()
        ]

    def equip(self, environment: Path) -> None:
        """The sentence splitter that Annif would download."""
        if not (environment / "nltk_data").is_dir():
            try:
                install_splitter(environment)
            except subprocess.CalledProcessError as error:
                raise CommandError(f"{PUNKT_WHEEL} cannot be downloaded: {error}") from error

    def prepare(self, place: Place) -> None:
        """The corpora, SKOS and configuration."""
        data, text = place.data, io.StringIO()
        projects(data).write(text)
        (place.folder / "projects.cfg").write_text(text.getvalue())
        lines = list(_corpus(data, "train"))
        _write(place.folder / "train.tsv", lines)
        _write(place.folder / "mllm.tsv", spread(lines, MLLM_RECORDS))
        _write(place.folder / "seen.tsv", list(_corpus(data, "dev"))[::2])
        _write(place.folder / "timed.tsv", _corpus(data, data.timed))
        _write(place.folder / "vocabulary.ttl", _skos(data))

    def train(self, place: Place, training: str) -> Sequence[Command]:
        """Load the vocabulary, or train a project."""
        if training == VOCABULARY:
            skos = place.folder / "vocabulary.ttl"
            return [_annif(place, "load-vocab", "--force", _vocabulary(place.data), skos)]
        corpus = place.folder / f"{_CORPORA.get(training, 'train')}.tsv"
        return [_annif(place, "train", "--jobs", str(place.threads), training, corpus)]

    def training_settings(self, place: Place, training: str) -> Mapping[str, Any]:
        """The section of the configuration."""
        sections = projects(place.data)
        settings = _settings(sections[training]) if training in sections else {}
        return settings | ({"records": str(MLLM_RECORDS)} if training == "mllm" else {})

    def predict(
        self, place: Place, system: System, part: str, *, ready: bool = False
    ) -> Command | None:
        """`annif index` of a file with a text per line."""
        if ready:
            return None
        folder = place.output(system.name, part)
        folder.mkdir(parents=True, exist_ok=True)
        options = ["--force", "--limit", str(TOP), "--no-include-doc"]
        output, texts = folder / "results.jsonl", place.data.file(part, "txt")
        return _annif(place, "index", *options, "--output", output, _project(system), texts)

    def read(self, place: Place, system: System, part: str) -> LabelSets:
        """Annif's results, which are in the order of the texts."""
        columns = {uri(label): column for column, label in enumerate(place.data.labels)}
        path = place.output(system.name, part) / "results.jsonl"
        ranked, scores = [], []
        with path.open(encoding="utf-8") as file:
            for line in file:
                results = json.loads(line)["results"]
                ranked.append([columns[one["uri"]] for one in results])
                scores.append([one["score"] for one in results])
        return LabelSets.from_lists(ranked, scores)

    def model_files(self, place: Place, system: System) -> Sequence[Path]:
        """What is in Annif's data folder for the project and its sources, but no training files."""
        data = place.folder / "data"
        folders = [data / "projects" / name for name in system.trainings if name != VOCABULARY]
        return [data / "vocabs"] + [
            path
            for folder in folders
            for path in sorted(folder.rglob("*"))
            if path.is_file() and "train" not in path.name
        ]

    def own_evaluation(self, place: Place, system: System) -> OwnEvaluation | None:
        """`annif eval` of the timed part."""
        names = {"Precision@1": "P@1", "Precision@5": "P@5"}
        metrics = [option for name in names for option in ("--metric", name)]
        output, corpus = place.own_measures(system.name), place.folder / "timed.tsv"
        command = _annif(
            place, "eval", *metrics, "--metrics-file", output, _project(system), corpus
        )
        return OwnEvaluation(place.data.timed, command, names)


def projects(data: DataFolder) -> configparser.ConfigParser:
    """Annif's configuration for a data set."""
    sections = configparser.ConfigParser()
    sections.read_string(f"{PROJECTS}\n{_NEURAL}")
    for name in sections.sections():
        section = sections[name]
        section["language"] = data.language
        # Names of headings are English in both vocabularies.
        section["vocab"] = f"{_vocabulary(data)}(en)"
        if "analyzer" in section:
            section["analyzer"] = f"snowball({_LANGUAGES[data.language]})"
        if "sources" in section:
            section["sources"] = _SOURCES.get(data.name, section["sources"])
    return sections


def _settings(section: configparser.SectionProxy) -> dict[str, str]:
    """A section as settings, with the records that only the neural ensemble is trained on."""
    records = {"records": _NEURAL_RECORDS} if section.name == _NEURAL_NAME else {}
    return dict(section) | records


def _trainings(section: configparser.SectionProxy) -> list[str]:
    """The projects that have to be trained for a project, in order; a plain ensemble is not."""
    sources = section.get("sources", "").split(",") if "sources" in section else []
    own = [] if section["backend"] == "ensemble" else [section.name]
    return [source.partition(":")[0] for source in sources] + own


def _project(system: System) -> str:
    return system.name.removeprefix("annif-")


def _vocabulary(data: DataFolder) -> str:
    """Annif's name of the vocabulary."""
    return data.name.replace("-", "")


def _annif(place: Place, *arguments: str | Path) -> Command:
    """A command of Annif that finds its files."""
    variables = {
        "ANNIF_PROJECTS": str(place.folder / "projects.cfg"),
        "ANNIF_DATADIR": str(place.folder / "data"),
    }
    return Command([place.environment / "bin" / "annif", *arguments], variables, place.folder)


def _corpus(data: DataFolder, part: str) -> Iterator[str]:
    """A part as Annif's TSV: text, tab, URIs; labels that no system can know are left out."""
    sets, known = data.label_sets(part), _known(data)
    for place, text in enumerate(data.texts(part)):
        columns = sets.columns[sets.starts[place] : sets.starts[place + 1]].tolist()
        uris = " ".join(f"<{uri(data.labels[column])}>" for column in columns if column in known)
        yield f"{text}\t{uris}\n"


def _known(data: DataFolder) -> set[int]:
    """The columns of the vocabulary, and of other labels that have training records."""
    concepts = len(DATA_SETS[data.name].read_vocabulary())
    trained = np.unique(data.label_sets("train").columns).tolist()
    return {*range(concepts), *trained}


def _skos(data: DataFolder) -> Iterator[str]:
    """The vocabulary as SKOS; a label that it lacks has its id for a name."""
    vocabulary = DATA_SETS[data.name].read_vocabulary()
    yield from turtle(vocabulary)
    for column in sorted(_known(data)):
        if column >= len(vocabulary):
            label = data.labels[column]
            name = json.dumps(label.rpartition("/")[2], ensure_ascii=False)
            yield f"\n<{uri(label)}> a skos:Concept ;\n  skos:prefLabel {name}@en .\n"


def _write(path: Path, lines: Iterator[str] | Sequence[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(lines)
