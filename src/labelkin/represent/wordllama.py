"""`wordllama`: the mean of static token vectors. Fast, and its model comes with its package."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from labelkin.corpus.document import Document
from labelkin.exceptions import MissingExtraError
from labelkin.represent.encoder import Vectors, normalised
from labelkin.store.config import DenseSection

_DIMENSIONS = 256
# Texts of a batch are padded to its longest, which takes memory.
_BATCH_CHARACTERS = 100_000


class WordLlamaEncoder:
    """The small model of wordllama (Llama 2's token embeddings, distilled to 256 numbers)."""

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
        """Always: the model is fixed."""
        return True

    def relearn(self) -> None:
        """Nothing: the model is not learned here."""

    def close(self) -> None:
        """Nothing: no file stays open."""

    def encode(self, documents: Sequence[Document]) -> Vectors:
        """The mean of the vectors of each text's tokens."""
        vectors = np.zeros((len(documents), _DIMENSIONS), dtype=np.float32)
        said = [place for place, document in enumerate(documents) if document.text.strip()]
        if said:
            model = _model(self._settings.max_length)
            lengths = {place: len(documents[place].text) for place in said}
            for batch in _batches(lengths):
                texts = [documents[place].text for place in batch]
                vectors[batch] = model.embed(texts, batch_size=len(batch))
        return normalised(vectors) if self._settings.normalise else vectors


def _batches(lengths: Mapping[int, int]) -> Iterator[list[int]]:
    """Places by the length of their texts, in parts that are small when they are padded."""
    batch: list[int] = []
    for place in sorted(lengths, key=lambda place: lengths[place]):
        if batch and lengths[place] * (len(batch) + 1) > _BATCH_CHARACTERS:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


@lru_cache(maxsize=2)
def _model(max_length: int) -> Any:
    # Importing it sets up logging for the whole program, which is not its to do.
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
