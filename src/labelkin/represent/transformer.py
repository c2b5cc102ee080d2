"""Any sentence-transformers model, by name or path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelkin.corpus.document import Document
from labelkin.exceptions import ConfigError, MissingExtraError
from labelkin.represent.encoder import Vectors, normalised
from labelkin.represent.loaded_models import LoadedModels, folder_checksum
from labelkin.store.config import DenseSection

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_BATCH = 32
# One of these is in every folder that sentence-transformers can read.
_DESCRIPTIONS = ("modules.json", "config.json", "adapter_config.json")


class TransformerEncoder:
    """Encodes texts with a sentence-transformers model.

    SPECTER models read `title [SEP] abstract`, as in their training and in the
    paper; all others read the plain text. Threads may share an instance; they
    take turns.
    """

    def __init__(self, name: str, settings: DenseSection) -> None:
        self.name = name
        self._settings = settings
        try:
            package = f"sentence-transformers {version('sentence-transformers')}"
        except PackageNotFoundError:
            raise MissingExtraError(
                "sentence-transformers is not installed; pip install 'labelkin[dense]'"
            ) from None
        if _is_path(name) and not Path(name).is_dir():
            raise _no_model(name, "no such folder")
        if Path(name).is_dir() and not any((Path(name) / one).is_file() for one in _DESCRIPTIONS):
            # Before all files of a folder that may be a home, or a whole disk, are looked at.
            raise _no_model(name, f"no {' or '.join(_DESCRIPTIONS)} in the folder")
        self._checksum = folder_checksum(name)
        self.version = (
            f"{name} {self._checksum}, {package}, length {settings.max_length}, "
            f"normalised {settings.normalise}"
        )

    def is_current(self) -> bool:
        """Whether the files of the model's folder are unchanged; always true for a hub model."""
        return self._checksum == folder_checksum(self.name)

    def relearn(self) -> None:
        """Do nothing: the model is not trained on the collection."""

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def encode(self, documents: Sequence[Document]) -> Vectors:
        """The model's vector of each text, truncated at the maximum length."""
        with _MODELS.use(self.name, self._settings.max_length, self._checksum) as model:
            texts = [self._text(document, model) for document in documents]
            encoded = model.encode(
                texts, batch_size=_BATCH, show_progress_bar=False, convert_to_numpy=True
            )
        vectors: Vectors = np.asarray(encoded, dtype=np.float32).reshape(len(texts), -1)
        vectors[[not document.text.strip() for document in documents]] = 0
        return normalised(vectors) if self._settings.normalise else vectors

    def _text(self, document: Document, model: SentenceTransformer) -> str:
        if "specter" not in Path(self.name).name.lower():
            return document.text
        separator = getattr(model.tokenizer, "sep_token", None) or "[SEP]"
        rest = "\n".join(part for part in (document.body, *document.fields.values()) if part)
        return f"{document.title} {separator} {rest}"


def _is_path(name: str) -> bool:
    """Whether a name cannot be one of the hub, which has the form OWNER/MODEL."""
    return name.startswith((".", "/", "~")) or name.count("/") > 1


def _no_model(name: str, reason: str) -> ConfigError:
    return ConfigError(
        f"no sentence-transformers model {name!r} ({reason})",
        "give a model's name on the Hugging Face hub, with a connection to it, or the path of a "
        "folder",
    )


@contextmanager
def _without_progress_bars() -> Iterator[None]:
    """Keep transformers from drawing on the terminal: bars are for the command line to draw."""
    logging: Any = import_module("transformers.utils.logging")
    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()


def _load(name: str, max_length: int, checksum: str) -> SentenceTransformer:  # noqa: ARG001
    from sentence_transformers import SentenceTransformer

    try:
        with _without_progress_bars():
            model = SentenceTransformer(name, device="cpu")
    except (OSError, ValueError, RuntimeError) as error:
        raise _no_model(name, " ".join(str(error).split())[:200]) from error
    if max_length:
        model.max_seq_length = max_length
    return model


# Two threads must not encode with one model: its tokenizer changes its padding per call.
_MODELS = LoadedModels(_load, size=2)
