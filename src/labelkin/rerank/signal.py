"""The interface of signals, the kinds of evidence that the reranker combines.

A signal proposes candidates and gives each candidate the values of its
features. One module and one row in `signals/__init__.py`, or an entry point of
another package, adds a signal. tests/rerank/signal_conformance.py tests what
every signal must do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from labelkin.rerank.pairs import Integers, Pairs

if TYPE_CHECKING:
    from labelkin.rerank.features import Evidence, Features
    from labelkin.rerank.training_data import TrainingContext
    from labelkin.store.config import Section

Values = npt.NDArray[np.floating[Any]]
Arrays = Mapping[str, npt.NDArray[Any]]


class Signal(ABC):
    """A kind of evidence for headings.

    A signal is a stateless object. What it fits on labelled documents is a
    separate value: `fit` returns it, `to_arrays` and `from_arrays` save and load
    it, `evidence.fitted(name)` looks it up. Signals of other packages may declare
    a `section` of labelkin.toml, named like the signal.
    """

    name: ClassVar[str]
    #: The columns that the signal adds to the matrix that trees are trained on.
    features: ClassVar[tuple[str, ...]]
    #: What explanations call the signal; several signals may share a name.
    reason: ClassVar[str]
    section: ClassVar[type[Section] | None] = None
    #: Whether its model is trained before the reranker and without the first fold of the held-out
    #: documents: for those of the other folds its features are unknown, unless there is a model
    #: for each fold, as of the label autoencoder.
    trained_before: ClassVar[bool] = False

    def is_available(self, context: TrainingContext) -> bool:  # noqa: ARG002
        """Whether the signal takes part in a training."""
        return True

    def fit(self, context: TrainingContext) -> Any:  # noqa: ARG002
        """The value that the signal fits on the documents of a training; None for nothing.

        `context.texts` are the labelled documents; held-out ones are not among them.
        """
        return None

    def to_arrays(self, fitted: Any) -> Arrays:  # noqa: ARG002
        """A fitted value as arrays of numbers or truth values, to be saved with the model."""
        return {}

    def from_arrays(self, arrays: Arrays) -> Any:  # noqa: ARG002
        """The inverse of `to_arrays`; the arrays are mapped from a file and read-only."""
        return None

    def propose(self, evidence: Evidence) -> Integers | None:  # noqa: ARG002
        """Keys (document × width + column) of headings that should be candidates."""
        return None

    @abstractmethod
    def values(self, evidence: Evidence, pairs: Pairs, features: Features) -> Mapping[str, Values]:
        """The value of each feature for each candidate, NaN for one that is not known.

        It may look at `features` of other signals.
        """
