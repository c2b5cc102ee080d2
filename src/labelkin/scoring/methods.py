"""Methods by name."""

from __future__ import annotations

from labelkin.registry import Registry
from labelkin.scoring.method import Method
from labelkin.store.models import Models

METHODS: Registry[Method] = Registry(
    "labelkin.methods",
    "method",
    {
        "knn": "labelkin.scoring.knn:Knn",
        "label-ae": "labelkin.scoring.label_ae:LabelAe",
        "mix": "labelkin.scoring.mix:Mix",
        "mix-ranked": "labelkin.scoring.mix:MixRanked",
        "lexical": "labelkin.scoring.lexical:Lexical",
        "rerank": "labelkin.rerank.method:Rerank",
    },
)


def usable_methods(models: Models) -> list[str]:
    """The methods whose models have been trained, and those that need none."""
    return [
        name
        for name in METHODS.names()
        if all(models.has(kind) for kind in METHODS[name].required_models())
    ]
