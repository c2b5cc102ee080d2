"""Omikuji: Parabel and Bonsai, label trees with linear classifiers.

Settings are the defaults of the command line, but for the trees of Bonsai, which are those of the
README's comparison with the original. Weights stay sparse, as in Annif.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from .features import PACKAGES
from .label_sets import LabelSets
from .peer import TOP, FeaturePeer

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_BONSAI = {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3}
_BEAM = 10


class Omikuji(FeaturePeer):
    """The Python binding; training reads a file in the format of the repository."""

    name = "omikuji"
    installs = (("omikuji==0.5.2", *PACKAGES),)
    variants: ClassVar = {
        "omikuji-bonsai": {"features": "words", **_BONSAI},
        "omikuji-bonsai-log": {"features": "logs", **_BONSAI},
        "omikuji-parabel": {"features": "words"},
        "omikuji-bonsai-pairs": {"features": "pairs", **_BONSAI},
    }
    note = "The binding has no evaluation of its own."

    def fit(
        self,
        settings: Mapping[str, Any],
        rows: csr_matrix[Any],
        labels: csr_matrix[Any],
        model: Path,
        threads: int,
    ) -> None:
        """Write the training file, train and remove the file."""
        import omikuji

        parameters = omikuji.Model.default_hyper_param()
        for name, value in settings.items():
            if name != "features":
                setattr(parameters, name, value)
        file = model / "train.txt"
        write_records(rows, labels, file)
        trained = omikuji.Model.train_on_data(str(file), parameters, threads)
        trained.save(str(model / "trees"))
        file.unlink()

    def rank(
        self,
        settings: Mapping[str, Any],  # noqa: ARG002
        model: Path,
        rows: csr_matrix[Any],
        threads: int,
    ) -> LabelSets:
        """One call per record: the binding has no batches."""
        import omikuji

        loaded = omikuji.Model.load(str(model / "trees"))
        loaded.init_prediction_thread_pool(threads)
        columns, scores = [], []
        for row in range(rows.shape[0]):
            span = slice(rows.indptr[row], rows.indptr[row + 1])
            pairs = list(zip(rows.indices[span].tolist(), rows.data[span].tolist(), strict=True))
            ranked = loaded.predict(pairs, beam_size=_BEAM, top_k=TOP) if pairs else []
            columns.append([label for label, _ in ranked])
            scores.append([score for _, score in ranked])
        return LabelSets.from_lists(columns, scores)


def write_records(rows: csr_matrix[Any], labels: csr_matrix[Any], path: Path) -> None:
    """A file of the Extreme Classification Repository: `labels feature:value ...` a record."""
    with path.open("w", encoding="utf-8") as file:
        print(rows.shape[0], rows.shape[1], labels.shape[1], file=file)
        for row in range(rows.shape[0]):
            own = labels.indices[labels.indptr[row] : labels.indptr[row + 1]].tolist()
            span = slice(rows.indptr[row], rows.indptr[row + 1])
            values = zip(rows.indices[span].tolist(), rows.data[span].tolist(), strict=True)
            features = " ".join(f"{column}:{value:.6g}" for column, value in values)
            print(",".join(map(str, own)), features, file=file)
