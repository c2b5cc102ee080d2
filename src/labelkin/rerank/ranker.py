"""Gradient-boosted trees over features: LightGBM, saved as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin import compiled
from labelkin.exceptions import MissingExtraError
from labelkin.rerank.pairs import Floats
from labelkin.rerank.trees import Covers, Trees

if TYPE_CHECKING:
    from labelkin.rerank.shapley import Branches

_PARAMETERS: dict[str, Any] = {
    "objective": "binary",
    "learning_rate": 0.07,
    "num_leaves": 63,
    "min_data_in_leaf": 100,
    "feature_fraction": 0.4,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "max_bin": 63,
    "deterministic": True,
    "force_col_wise": True,
    "verbose": -1,
}
_WORTH_THREADS = 2000
# Candidates from which on it pays to load compiled code, or LightGBM.
_WORTH_COMPILING = 20_000
_WORTH_LOADING = 40_000
# LightGBM writes the names of the features into one of the first lines.
_NAMES = "feature_names="
_HEAD_LINES = 20
_HEAD_BYTES = 1 << 20


class Ranker:
    """Trees over the features of candidates. Threads may share it.

    Scores are computed without LightGBM, which takes a second to import. Explanations need it
    or numba, and the trees as the `text` that it wrote, which may be given as a function that
    reads it.
    """

    def __init__(
        self, text: str | Callable[[], str], trees: Trees | None = None, names: Sequence[str] = ()
    ) -> None:
        self._text = text
        self.trees = Trees.parse(self.text) if trees is None else trees
        self.names = list(names) or _names(self.text.split("\n", _HEAD_LINES))
        self._lock = Lock()
        self._booster: Any = None

    @property
    def text(self) -> str:
        """The trees as LightGBM writes them."""
        return self._text if isinstance(self._text, str) else self._text()

    def scores(self, features: Floats) -> npt.NDArray[np.float64]:
        """A raw score in [0, 1] per candidate, whatever computes it the same to 1e-12."""
        if len(features) == 0:
            return np.zeros(0)
        if compiled.pays(len(features), _WORTH_COMPILING):
            return self.trees.batch_scores(features)
        if self._booster is None and len(features) < _WORTH_LOADING:
            return self.trees.scores(features)
        try:
            booster = self._loaded()
        except MissingExtraError:
            return self.trees.scores(features)
        scores: npt.NDArray[np.float64] = booster.predict(features, num_threads=_threads(features))
        return scores

    def contributions(self, features: Floats) -> npt.NDArray[np.float64]:
        """What each feature adds to a candidate's log odds; the last column is the base value.

        numba computes the same as LightGBM to 1e-9, in a fraction of the time.
        """
        if compiled.can_load():
            return self._branches.contributions(features, len(self.names))
        contributions: npt.NDArray[np.float64] = self._loaded().predict(
            features, pred_contrib=True, num_threads=_threads(features)
        )
        return contributions

    @cached_property
    def _branches(self) -> Branches:
        from labelkin.rerank.shapley import Branches

        return Branches.of(self.trees, Covers.parse(self.text))

    def _loaded(self) -> Any:
        with self._lock:
            if self._booster is None:
                self._booster = _lightgbm().Booster(model_str=self.text)
            return self._booster


def saved_names(path: Path) -> list[str]:
    """The names of the features of saved trees, from the head of the file; empty if it has none."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return _names(islice(file, _HEAD_LINES))


def names_in(text: npt.NDArray[np.uint8]) -> list[str]:
    """The names of the features of trees, from the head of their mapped text."""
    head = text[:_HEAD_BYTES].tobytes().decode("utf-8", errors="replace")
    return _names(head.split("\n", _HEAD_LINES)[:_HEAD_LINES])


def _names(lines: Iterable[str]) -> list[str]:
    for line in lines:
        if line.startswith(_NAMES):
            return line.removeprefix(_NAMES).split()
    return []


def _threads(features: Floats) -> int:
    """One thread for a text or two, where starting more takes longer; 0 for all cores."""
    return 1 if len(features) < _WORTH_THREADS else 0


def fit_ranker(
    features: Floats,
    right: npt.NDArray[np.bool_],
    names: list[str],
    *,
    rounds: int,
    seed: int,
    weights: Floats | None = None,
) -> Ranker:
    """Train on candidates, of which `right` marks the right ones; NaN is an unknown value."""
    lightgbm = _lightgbm()
    data = lightgbm.Dataset(features, right, weight=weights, feature_name=names)
    smallest = max(5, min(100, len(features) // 2000))
    parameters = _PARAMETERS | {"seed": seed, "min_data_in_leaf": smallest}
    return Ranker(lightgbm.train(parameters, data, rounds).model_to_string())


def check_lightgbm() -> None:
    """Raise MissingExtraError if trees cannot be trained or used here."""
    _lightgbm()


def _lightgbm() -> Any:
    try:
        import lightgbm
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "the reranker needs LightGBM: pip install 'labelkin[rerank]'"
        ) from error
    except AttributeError as error:
        # It assembles docstrings, which python -OO removes.
        raise MissingExtraError(
            f"LightGBM cannot be loaded ({error}); run Python without -OO"
        ) from error
    except OSError as error:
        raise MissingExtraError(
            f"LightGBM cannot be loaded ({error}); on Debian: apt-get install libgomp1"
        ) from error
    return lightgbm
