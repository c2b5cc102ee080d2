"""The trees that weigh features: LightGBM, kept as text."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.exceptions import MissingExtraError
from labelkin.rerank.pairs import Floats

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
# Wrong candidates abound: this share of them, weighted up, teaches as much.
_WRONG = 0.35


class Ranker:
    """Trees over the features of candidates."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._booster = _lightgbm().Booster(model_str=text)
        self.names: list[str] = self._booster.feature_name()

    def scores(self, features: Floats) -> npt.NDArray[np.float64]:
        """A raw score in [0, 1] per candidate."""
        if len(features) == 0:
            return np.zeros(0)
        found: npt.NDArray[np.float64] = self._booster.predict(features)
        return found

    def contributions(self, features: Floats) -> npt.NDArray[np.float64]:
        """What each feature adds to a candidate's log odds; what all have to begin with is last."""
        found: npt.NDArray[np.float64] = self._booster.predict(features, pred_contrib=True)
        return found


def fit_ranker(
    features: Floats,
    right: npt.NDArray[np.bool_],
    names: list[str],
    *,
    rounds: int,
    seed: int,
    weights: Floats | None = None,
) -> Ranker:
    """Learn from candidates of which it is known whether they are right."""
    lightgbm = _lightgbm()
    random = np.random.default_rng(seed)
    kept = right | (random.random(len(right)) < _WRONG)
    importance = np.where(right, 1, 1 / _WRONG).astype(np.float32)
    if weights is not None:
        importance *= weights
    data = lightgbm.Dataset(
        features[kept], right[kept], weight=importance[kept], feature_name=names
    )
    smallest = max(5, min(100, int(kept.sum()) // 2000))
    parameters = _PARAMETERS | {"seed": seed, "min_data_in_leaf": smallest}
    return Ranker(lightgbm.train(parameters, data, rounds).model_to_string())


def check_lightgbm() -> None:
    """Raise what is missing to learn trees or to use them."""
    _lightgbm()


def _lightgbm() -> Any:
    # Threads that wait for one another should not keep busy cores from those that work.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        import lightgbm
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "the reranker needs LightGBM: pip install 'labelkin[rerank]'"
        ) from error
    except OSError as error:
        raise MissingExtraError(
            f"LightGBM cannot be loaded ({error}); on Debian: apt-get install libgomp1"
        ) from error
    return lightgbm
