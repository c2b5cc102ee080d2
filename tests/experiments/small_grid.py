"""A grid with every kind of stage that runs in seconds, and an observer that prints nothing."""

from __future__ import annotations

from pathlib import Path

from labelkin.corpus import write_corpus
from labelkin.demo import demo_concepts, demo_documents
from labelkin.experiments.grid import read_grid
from labelkin.experiments.plan import Plan
from labelkin.experiments.stage import Stage

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

[[claims]]
text = "Dense neighbours are better"
better = { table = "basic", representation = "dense" }
worse = { table = "basic", representation = "stems" }

[[claims]]
text = "A mix is better"
better = { table = "ranked", representation = "stems" }
worse = { table = "basic", representation = "stems" }
paper = false

[quick]
sizes = [60]
split_documents = 10
minutes = 0.01
"""


class Silent:
    """Prints nothing and records the stages; `stop_at` interrupts a kind of stage."""

    def __init__(self, stop_at: str = "") -> None:
        self.begun: list[str] = []
        self.left: list[float] = []
        self.stop_at = stop_at

    def begin(self, stage: Stage, number: int, total: int, seconds_left: float) -> None:
        self.begun.append(stage.title)
        self.left.append(seconds_left)
        assert number == len(self.begun) <= total

    def progress(self, done: int, total: int, note: str) -> None:
        if self.stop_at and self.begun[-1].startswith(self.stop_at):
            raise KeyboardInterrupt

    def end(self, stage: Stage, seconds: float) -> None:
        assert stage.is_done()


def plan_of(grid: str | Path, work: Path, data: Path, *, quick: bool = False) -> Plan:
    return Plan(read_grid(str(grid), quick=quick), work, data)


def write_data(folder: Path) -> None:
    """The files of the grid: 160 training documents and 20 of each split."""
    folder.mkdir(exist_ok=True)
    documents = list(demo_documents(200, 0))
    write_corpus(documents[:160], folder / "train.jsonl")
    write_corpus(documents[160:180], folder / "dev.jsonl")
    write_corpus(documents[180:], folder / "test.jsonl")
    lines = ["ui\tname\ttree_numbers\tentry_terms"]
    lines += [f"{c.id}\t{c.name('en')}\t{'|'.join(c.notations)}\t" for c in demo_concepts(0)]
    (folder / "vocabulary.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
