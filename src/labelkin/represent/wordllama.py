"""`wordllama`: the mean of static token vectors. Fast, and the package contains the model."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from labelkin.corpus.document import Document
from labelkin.exceptions import MissingExtraError
from labelkin.represent.encoder import Vectors, normalised
from labelkin.represent.loaded_models import LoadedModels
from labelkin.store.config import DenseSection

_DIMENSIONS = 256
# wordllama pads the texts of a batch to the longest, so this bounds memory.
_BATCH_CHARACTERS = 100_000

_importing = Lock()


class WordLlamaEncoder:
    """Encodes texts with wordllama's small model (Llama 2's token embeddings, 256 dimensions)."""

    def __init__(self, name: str, settings: DenseSection) -> None:
        self.name = name
        self._settings = settings
        try:
            self.version = (
                f"wordllama {version('wordllama')}, {_DIMENSIONS}, "
                f"length {settings.max_length}, normalised {settings.normalise}"
            )
        except PackageNotFoundError:
            raise MissingExtraError(
                "wordllama is not installed; pip install 'labelkin[dense]'"
            ) from None

    def is_current(self) -> bool:
        """Always true: the model never changes."""
        return True

    def relearn(self) -> None:
        """Do nothing: the model is not trained on the collection."""

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def encode(self, documents: Sequence[Document]) -> Vectors:
        """The mean of each text's token vectors; zeros for an empty text."""
        vectors = np.zeros((len(documents), _DIMENSIONS), dtype=np.float32)
        lengths = {
            position: len(document.text)
            for position, document in enumerate(documents)
            if document.text.strip()
        }
        if lengths:
            model = _MODELS.get(self._settings.max_length)
            for batch in _batches(lengths):
                texts = [documents[position].text for position in batch]
                vectors[batch] = model.embed(texts, batch_size=len(batch))
        return normalised(vectors) if self._settings.normalise else vectors


def _batches(lengths: Mapping[int, int]) -> Iterator[list[int]]:
    """Positions sorted by the length of their texts, in batches that stay small when padded."""
    batch: list[int] = []
    for position in sorted(lengths, key=lambda position: lengths[position]):
        if batch and lengths[position] * (len(batch) + 1) > _BATCH_CHARACTERS:
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


def _load(max_length: int) -> Any:
    # Importing wordllama configures the root logger of the whole program: undo that.
    with _importing:
        root = logging.getLogger()
        level, handlers = root.level, list(root.handlers)
        import wordllama

        root.setLevel(level)
        root.handlers[:] = handlers
    folder = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(dim=_DIMENSIONS, cache_dir=folder, disable_download=True)
    if max_length:
        model.tokenizer.enable_truncation(max_length)
    return model


# `embed` only reads the tokenizer and the token vectors, so threads share a model freely.
_MODELS = LoadedModels(_load, size=2)
