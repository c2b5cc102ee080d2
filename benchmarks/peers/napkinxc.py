"""napkinXC: a probabilistic label tree; settings are the defaults of its `PLT`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from .features import PACKAGES
from .label_sets import LabelSets
from .peer import TOP, FeaturePeer

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_SEED = 1


class NapkinXC(FeaturePeer):
    """Its Python binding."""

    name = "napkinxc"
    installs = (("napkinxc==0.7.2", *PACKAGES),)
    variants: ClassVar = {
        "napkinxc-plt": {"features": "words"},
        "napkinxc-plt-log": {"features": "logs"},
    }
    evaluates = True

    def fit(
        self,
        settings: Mapping[str, Any],  # noqa: ARG002
        rows: csr_matrix[Any],
        labels: csr_matrix[Any],
        model: Path,
        threads: int,
    ) -> None:
        """Build the tree by k-means and train a classifier per node."""
        from napkinxc.models import PLT

        PLT(str(model / "tree"), seed=_SEED, threads=threads).fit(rows, labels)

    def rank(
        self,
        settings: Mapping[str, Any],  # noqa: ARG002
        model: Path,
        rows: csr_matrix[Any],
        threads: int,
    ) -> LabelSets:
        """All records in one call."""
        from napkinxc.models import PLT

        tree = PLT(str(model / "tree"), seed=_SEED, threads=threads)
        tree.load()
        ranked = tree.predict_proba(rows, top_k=TOP)
        return LabelSets.from_lists(
            [[label for label, _ in one] for one in ranked],
            [[score for _, score in one] for one in ranked],
        )

    def evaluate(self, gold: LabelSets, ranking: LabelSets, width: int) -> dict[str, float]:  # noqa: ARG002
        """The measures of `napkinxc.metrics`."""
        from napkinxc.metrics import precision_at_k

        precisions = precision_at_k(_lists(gold), _lists(ranking), k=5)
        return {"P@1": float(precisions[0]), "P@5": float(precisions[4])}


def _lists(sets: LabelSets) -> list[list[int]]:
    return [
        sets.columns[sets.starts[place] : sets.starts[place + 1]].tolist()
        for place in range(len(sets))
    ]
