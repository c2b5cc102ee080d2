"""PECOS XR-Linear: a label tree of hierarchical k-means with linear classifiers.

Settings are the defaults of `pecos.xmc.xlinear.train`. The systems with a 3 in their names average
three trees of different seeds, as Omikuji has three.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .label_sets import LabelSets
from .peer import TOP, FeaturePeer

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_BEAM = 10
_TREE = {"nr_splits": 16, "max_leaf_size": 100}
_CLASSIFIERS = {"negative_sampling_scheme": "tfn", "threshold": 0.1}


class Pecos(FeaturePeer):
    """libpecos, without what its transformers need."""

    name = "pecos"
    installs = (
        ("numpy==1.26.4", "scipy==1.13.1", "scikit-learn==1.7.2", "PyStemmer==3.1.0"),
        # XR-Linear needs neither torch nor transformers.
        ("--no-deps", "libpecos==1.2.8"),
    )
    variants: ClassVar = {
        "pecos-xr-linear": {"features": "words", "seeds": [0], **_TREE, **_CLASSIFIERS},
        "pecos-xr-linear-log": {"features": "logs", "seeds": [0], **_TREE, **_CLASSIFIERS},
        "pecos-xr-linear-3": {"features": "words", "seeds": [0, 1, 2], **_TREE, **_CLASSIFIERS},
        "pecos-xr-linear-3-log": {"features": "logs", "seeds": [0, 1, 2], **_TREE, **_CLASSIFIERS},
    }
    evaluates = True

    def fit(
        self,
        settings: Mapping[str, Any],
        rows: csr_matrix[Any],
        labels: csr_matrix[Any],
        model: Path,
        threads: int,
    ) -> None:
        """Cluster the labels by their records' features, then train a classifier per node."""
        from pecos.xmc import Indexer, LabelEmbeddingFactory
        from pecos.xmc.xlinear.model import XLinearModel

        rows, labels = rows.astype(np.float32), labels.astype(np.float32)
        embedded = LabelEmbeddingFactory.create(labels, rows, method="pifa", threads=threads)
        for seed in settings["seeds"]:
            clusters = Indexer.gen(
                embedded,
                indexer_type="hierarchicalkmeans",
                seed=seed,
                threads=threads,
                **{key: settings[key] for key in _TREE},
            )
            trained = XLinearModel.train(
                rows,
                labels,
                C=clusters,
                threads=threads,
                **{key: settings[key] for key in _CLASSIFIERS},
            )
            trained.save(str(model / f"tree-{seed}"))

    def rank(
        self, settings: Mapping[str, Any], model: Path, rows: csr_matrix[Any], threads: int
    ) -> LabelSets:
        """The mean of the trees' scores; a label that a tree does not rank has 0 there."""
        from pecos.xmc.xlinear.model import XLinearModel

        seeds = settings["seeds"]
        # One tree needs no more than it ranks; a mean needs what others may rank.
        top = TOP if len(seeds) == 1 else 2 * TOP
        total = None
        for seed in seeds:
            tree = XLinearModel.load(str(model / f"tree-{seed}"), is_predict_only=True)
            scores = tree.predict(rows, beam_size=_BEAM, only_topk=top, threads=threads)
            total = scores if total is None else total + scores
        assert total is not None
        return LabelSets.from_matrix(total / len(seeds), TOP)

    def evaluate(self, gold: LabelSets, ranking: LabelSets, width: int) -> dict[str, float]:
        """The measures of `pecos.utils.smat_util`."""
        from pecos.utils.smat_util import Metrics

        measured = Metrics.generate(gold.matrix(width), ranking.matrix(width), topk=5)
        return {"P@1": float(measured.prec[0]), "P@5": float(measured.prec[4])}
