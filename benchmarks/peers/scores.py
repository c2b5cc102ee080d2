"""How good a system's rankings are: its cut chosen on dev, then all measures of every part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import cuts
from .cuts import Cut
from .data_folder import DataFolder
from .datasets import DATA_SETS
from .label_sets import LabelSets

if TYPE_CHECKING:
    from labelkin import Document, Vocabulary
    from labelkin.evaluate import Evaluation, Hierarchy

# Beyond the default ones.
MEASURES = ("PSP@5", "hF")
BAND_MEASURES = ("MiF", "MaF", "R@10")
# As in the paper and in labelkin's own k-NN.
NEIGHBOURS = 20
_BATCH = 500


def write_counts(data: DataFolder, collection: Path | None) -> None:
    """Count the labels of the neighbours of every held-out record.

    Without a collection of the training records, one is made beside the data.
    """
    from labelkin import Indexer, read_corpus
    from labelkin.scoring.cut import expected_counts

    folder = collection or _made_collection(data)
    with Indexer.open(folder) as indexer:
        label_sets = indexer.snapshot().label_sets()
        for part in _held_out(data):
            documents = list(read_corpus(data.file(part, "jsonl"), texts=True).documents())
            counts = []
            for batch in _batches(documents):
                near = indexer.queries(batch, NEIGHBOURS).neighbours(NEIGHBOURS)
                equal = np.ones(near.rows.shape)
                counts.append(expected_counts(near, equal, label_sets))
            np.save(data.path / f"counts-{part}.npy", np.concatenate(counts))


def _made_collection(data: DataFolder) -> Path:
    import shutil

    from labelkin import Indexer, read_corpus

    data_set, folder = DATA_SETS[data.name], data.path / "collection"
    shutil.rmtree(folder, ignore_errors=True)
    vocabulary = data_set.read_vocabulary()
    with Indexer.create(folder, vocabulary, language=data_set.language) as indexer:
        documents = read_corpus(data.file("train", "jsonl")).documents()
        indexer.add(documents, keep_unknown=data_set.keeps_unknown)
        indexer.build()
    return folder


def _batches(documents: list[Document]) -> list[list[Document]]:
    return [documents[first : first + _BATCH] for first in range(0, len(documents), _BATCH)]


def _held_out(data: DataFolder) -> list[str]:
    return [part for part in data.sizes if part != "train"]


class Scorer:
    """Measures rankings of the parts of a data set."""

    def __init__(self, data: DataFolder) -> None:
        self._data = data
        self._vocabulary: Vocabulary = DATA_SETS[data.name].read_vocabulary()
        self._train = data.label_sets("train")
        # By the number of labels: they take seconds to make.
        self._hierarchies: dict[int, Hierarchy] = {}

    def scores(
        self, rankings: Mapping[str, LabelSets], *, sees_dev: bool = False
    ) -> dict[str, Any]:
        """The cuts of a system with rankings of some parts, and its measures of each part.

        Without dev nothing can be chosen: the whole lists are measured. Of dev, a system that
        `sees_dev` has only those records that it was not trained on.
        """
        chosen: tuple[Cut, ...] = (Cut("whole list"),)
        unseen = np.arange(1, len(rankings["dev"]), 2) if sees_dev else None
        if "dev" in rankings:
            chosen = self.chosen(rankings["dev"], unseen)
        parts = {
            part: self.measured(part, one, chosen, unseen if part == "dev" else None)
            for part, one in rankings.items()
        }
        for name, (part, left_out) in DATA_SETS[self._data.name].subsets().items():
            if part in rankings:
                ids = self._data.ids(part)
                kept = np.array([place for place, one in enumerate(ids) if one not in left_out])
                parts[name] = self.measured(part, rankings[part], chosen, kept)
        return {"cuts": cuts.as_json(chosen), "parts": parts}

    def chosen(
        self, ranking: LabelSets, kept: npt.NDArray[np.int64] | None = None
    ) -> tuple[Cut, ...]:
        """The cuts of a system by its ranking of dev, or of some of it, the best first."""
        dev, counts = self.evaluation("dev", ranking), self._counts("dev")
        if kept is not None:
            dev, counts = dev.taken(kept), counts[kept]
        return cuts.choose(dev.gold, dev.predicted, counts)

    def measured(
        self,
        part: str,
        ranking: LabelSets,
        chosen: Sequence[Cut],
        kept: npt.NDArray[np.int64] | None = None,
    ) -> dict[str, Any]:
        """All measures after the best cut, those of bands, and MiF after every cut."""
        from dataclasses import replace

        from labelkin.evaluate import DEFAULT_MEASURES, evaluate, evaluate_bands, parse_measure

        whole = self.evaluation(part, ranking)
        counts = self._counts(part)
        by_cut, evaluations = {}, []
        for cut in chosen:
            predicted = cut.of(whole.predicted, counts)
            evaluation = replace(whole, predicted=predicted, ranked=whole.predicted)
            if kept is not None:
                evaluation = evaluation.taken(kept)
            evaluations.append(evaluation)
            by_cut[cut.kind] = parse_measure("MiF").value(evaluation)
        best = evaluations[0]
        measures = [*DEFAULT_MEASURES, *map(parse_measure, MEASURES)]
        bands = [parse_measure(name) for name in BAND_MEASURES]
        return {
            "records": best.documents,
            "measures": evaluate(best, measures),
            "bands": evaluate_bands(best, bands),
            "by_cut": by_cut,
        }

    def evaluation(self, part: str, ranking: LabelSets) -> Evaluation:
        """Gold labels and ranking of a part, with what its measures need."""
        from labelkin.evaluate import Evaluation

        # Labels that the data set does not have can only be wrong.
        width = max(len(self._data.labels), int(ranking.columns.max(initial=-1)) + 1)
        return Evaluation(
            self._data.label_sets(part).matrix(width),
            ranking.ranking(),
            training_frequencies=np.bincount(self._train.columns, minlength=width),
            training_documents=len(self._train),
            hierarchy=self._hierarchy(width),
        )

    def _hierarchy(self, width: int) -> Hierarchy:
        from labelkin.evaluate.gold import hierarchy_of

        if width not in self._hierarchies:
            self._hierarchies[width] = hierarchy_of(self._vocabulary, width)
        return self._hierarchies[width]

    def _counts(self, part: str) -> npt.NDArray[np.int64]:
        counts: npt.NDArray[np.int64] = np.load(self._data.path / f"counts-{part}.npy")
        return counts
