"""The values of an evaluation that are kept: with a model, or in a collection's folder."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from labelkin.atomic import atomic_text
from labelkin.checksums import ChecksumError, read_sealed, sealed

logger = logging.getLogger(__name__)

EVALUATION_NAME = "evaluation.json"
_DIGITS = 6

Values = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class EvaluationSummary:
    """The values of measures by method, on how many documents, and when.

    The first method is the one that the evaluation is about. A value that is
    not defined is None.
    """

    at: datetime
    documents: int
    methods: Mapping[str, Values]

    @classmethod
    def now(cls, documents: int, methods: Mapping[str, Mapping[str, float]]) -> Self:
        """Values that have just been measured."""
        return cls(
            datetime.now(UTC).replace(microsecond=0),
            documents,
            {
                method: {
                    name: None if math.isnan(value) else round(float(value), _DIGITS)
                    for name, value in values.items()
                }
                for method, values in methods.items()
            },
        )

    @property
    def method(self) -> str:
        """The method that the evaluation is about."""
        return next(iter(self.methods))

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "at": self.at.isoformat(),
            "documents": self.documents,
            "methods": {method: dict(values) for method, values in self.methods.items()},
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any] | None) -> EvaluationSummary | None:
        """The inverse of `to_json`; None for None."""
        if content is None:
            return None
        methods = {str(method): dict(values) for method, values in content["methods"].items()}
        if not methods:
            raise ValueError("an evaluation of no methods")
        return cls(datetime.fromisoformat(content["at"]), int(content["documents"]), methods)


def save_summary(folder: Path, summary: EvaluationSummary) -> None:
    """Make this the stored evaluation of a collection's folder, in one step."""
    with atomic_text(folder / EVALUATION_NAME) as file:
        file.write(sealed(summary.to_json(), indent=1))


def read_summary(folder: Path) -> EvaluationSummary | None:
    """The stored evaluation of a collection's folder; None if there is none that can be read."""
    path = folder / EVALUATION_NAME
    try:
        return EvaluationSummary.from_json(read_sealed(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = str(error) if isinstance(error, ChecksumError) else f"{path}: {error}"
        logger.warning("%s; ignored until `labelkin eval --save` writes it again", reason)
        return None
