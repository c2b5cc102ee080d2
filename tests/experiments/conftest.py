from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from labelkin.corpus import write_corpus
from labelkin.demo import demo_concepts, demo_documents

GRID = """
title = "A generated collection"
ks = [3, 5]
measures = ["MiF", "MiP", "MiR", "P@5", "P@10", "nDCG@5", "nDCG@10"]
choose_on = "dev"
report_on = ["test"]

[collection]
vocabulary = "vocabulary.tsv"
documents = ["train.jsonl"]
language = "en"

[splits]
dev = "dev.jsonl"
test = "test.jsonl"

[representations.stems]
uses = "stems"

[representations.dense]
uses = "lsa"
stand_in = "lsa stands in for SPECTER"

[representations.hybrid]
fuses = ["stems", "dense"]

[models.tiny]
preset = "32/16/8"
epochs = 2
averages = false

[[tables]]
name = "basic"
title = "Basic k-NN"
method = "knn"
representations = ["stems", "dense", "hybrid"]
ks = [5, 10]
paper = "basic"

[[tables]]
name = "medium"
title = "Label autoencoder"
method = "label-ae"
model = "tiny"
cuts = [0.50, 0.75]
representations = ["dense"]
weightings = ["difference", "square"]
paper = "medium"

[[tables]]
name = "mix-medium"
title = "Mix"
method = "mix"
model = "tiny"
cuts = [0.50]
representations = ["stems"]
weightings = ["square"]
also = [{ representation = "stems", cut = 0.50, weighting = "square", k = 4 }]

[[tables]]
name = "ranked"
title = "Ranked mix"
method = "mix-ranked"
model = "tiny"
cuts = ["count", 0.25]
shares = [0.2, 0.5]
representations = ["stems"]
weightings = ["difference"]

[details]
baseline = "basic"
samples = 20
bands = [{ name = "frequent", minimum = 10 }, { name = "rare", maximum = 9 }]

[quick]
sizes = [60]
split_documents = 10
minutes = 0.01
"""


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated collection as files: 160 documents to learn from, 20 of each split."""
    folder = tmp_path_factory.mktemp("data")
    documents = list(demo_documents(200, 0))
    write_corpus(documents[:160], folder / "train.jsonl")
    write_corpus(documents[160:180], folder / "dev.jsonl")
    write_corpus(documents[180:], folder / "test.jsonl")
    lines = ["ui\tname\ttree_numbers\tentry_terms"]
    lines += [f"{c.id}\t{c.name('en')}\t{'|'.join(c.notations)}\t" for c in demo_concepts(0)]
    (folder / "vocabulary.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def grid_file(tmp_path: Path) -> Path:
    """A small grid with every kind of stage."""
    path = tmp_path / "small.toml"
    path.write_text(GRID, encoding="utf-8")
    return path


@pytest.fixture
def changed_grid(tmp_path: Path) -> Callable[..., str]:
    """Write the small grid with one text replaced by another; the path."""

    def change(old: str, new: str, name: str = "changed") -> str:
        assert old in GRID
        path = tmp_path / f"{name}.toml"
        path.write_text(GRID.replace(old, new, 1), encoding="utf-8")
        return str(path)

    return change
