"""Subject headings for documents, learned from documents that are already indexed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labelkin._version import __version__
from labelkin.lazy import lazy_names

if TYPE_CHECKING:
    from labelkin.autoencoder.training_settings import TrainingSettings
    from labelkin.corpus import Correction, Document, read_corpus
    from labelkin.exceptions import LabelkinError
    from labelkin.indexer import Answer, Indexer
    from labelkin.neighbours import Neighbours
    from labelkin.neighbours.neighbour import Neighbour
    from labelkin.rerank.settings import RerankTrainingSettings
    from labelkin.rerank.signal import Signal
    from labelkin.scoring.method import Method
    from labelkin.scoring.queries import Queries
    from labelkin.scoring.ranking import Ranking
    from labelkin.scoring.settings import Settings
    from labelkin.scoring.suggestion import Suggestion
    from labelkin.store.config import Section
    from labelkin.training_plan import TrainingObserver, TrainingReport
    from labelkin.vocab import Concept, Vocabulary, read_vocabulary

__all__ = [
    "Answer",
    "Concept",
    "Correction",
    "Document",
    "Indexer",
    "LabelkinError",
    "Method",
    "Neighbour",
    "Neighbours",
    "Queries",
    "Ranking",
    "RerankTrainingSettings",
    "Section",
    "Settings",
    "Signal",
    "Suggestion",
    "TrainingObserver",
    "TrainingReport",
    "TrainingSettings",
    "Vocabulary",
    "__version__",
    "read_corpus",
    "read_vocabulary",
]

# Names are imported when they are first used, so that `import labelkin` and
# `labelkin --help` stay fast.
_HOMES = {
    "Answer": "labelkin.indexer",
    "Concept": "labelkin.vocab",
    "Correction": "labelkin.corpus",
    "Document": "labelkin.corpus",
    "Indexer": "labelkin.indexer",
    "LabelkinError": "labelkin.exceptions",
    "Method": "labelkin.scoring.method",
    "Neighbour": "labelkin.neighbours.neighbour",
    "Neighbours": "labelkin.neighbours",
    "Queries": "labelkin.scoring.queries",
    "Ranking": "labelkin.scoring.ranking",
    "RerankTrainingSettings": "labelkin.rerank.settings",
    "Section": "labelkin.store.config",
    "Settings": "labelkin.scoring.settings",
    "Signal": "labelkin.rerank.signal",
    "Suggestion": "labelkin.scoring.suggestion",
    "TrainingObserver": "labelkin.training_plan",
    "TrainingReport": "labelkin.training_plan",
    "TrainingSettings": "labelkin.autoencoder.training_settings",
    "Vocabulary": "labelkin.vocab",
    "read_corpus": "labelkin.corpus",
    "read_vocabulary": "labelkin.vocab",
}


__getattr__, __dir__ = lazy_names(__name__, _HOMES)
