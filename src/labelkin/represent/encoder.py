"""Encoders by name: from text to one dense vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from labelkin.corpus.document import Document
from labelkin.exceptions import ConfigError
from labelkin.store.collection import Collection
from labelkin.store.reader import Reader

Vectors = npt.NDArray[np.float32]


class Encoder(Protocol):
    """One way to turn a text into a vector.

    `version` changes whenever the same text may give another vector; vectors
    made with another version are not used.
    """

    @property
    def name(self) -> str:
        """The name that selects the encoder."""
        ...

    @property
    def version(self) -> str:
        """What the vectors depend on besides the text."""
        ...

    def is_current(self) -> bool:
        """False if the encoder has been fitted again; then it must be reopened."""
        ...

    def relearn(self) -> None:
        """Fit the encoder to the collection again, if it is a fitted one."""
        ...

    def encode(self, documents: Sequence[Document]) -> Vectors:
        """A vector for each document; zeros for a text without content."""
        ...

    def close(self) -> None:
        """Close all files."""
        ...


def _lsa(name: str, collection: Collection) -> Encoder:
    from labelkin.represent.lsa import LsaEncoder

    return LsaEncoder(name, collection)


def _wordllama(name: str, reader: Reader) -> Encoder:
    from labelkin.represent.wordllama import WordLlamaEncoder

    return WordLlamaEncoder(name, reader.config.dense)


def _transformer(name: str, reader: Reader) -> Encoder:
    from labelkin.represent.transformer import TransformerEncoder

    return TransformerEncoder(name, reader.config.dense)


# Trained elsewhere; every other name with a slash is a sentence-transformers model.
_READY: Mapping[str, Callable[[str, Reader], Encoder]] = {"wordllama": _wordllama}
ENCODERS: Mapping[str, Callable[[str, Collection], Encoder]] = {"lsa": _lsa, **_READY}


def is_encoder(name: str) -> bool:
    """Whether `name` means an encoder; a model's name or path is known by its slash."""
    return name in ENCODERS or "/" in name


def check_encoder_name(name: str) -> None:
    """Raise ConfigError unless `name` means one encoder."""
    if not is_encoder(name) or "," in name:
        known = ", ".join(ENCODERS)
        raise ConfigError(
            f"no encoder {name!r}; known: {known}, and sentence-transformers models by a name or "
            "path with a slash"
        )


def located_encoder(name: str) -> str:
    """The name, or the absolute path of a model's folder, which is the same from everywhere."""
    if name in ENCODERS or "/" not in name:
        return name
    folder = Path(name)
    with suppress(RuntimeError):  # The home folder of nobody.
        folder = folder.expanduser()
    return str(folder.absolute()) if folder.is_dir() else name


def open_encoder(name: str, collection: Collection) -> Encoder:
    """The encoder that `name` means: a known one, else a sentence-transformers model."""
    return ENCODERS.get(name, _transformer)(name, collection)


def encoder_version(name: str, reader: Reader) -> str:
    """The version of an encoder, without loading or fitting it; empty for lsa without a model.

    Raises MissingExtraError or ConfigError if the encoder cannot be used here.
    """
    if name == "lsa":
        from labelkin.represent.lsa import fitted_version

        return fitted_version(reader)
    return _READY.get(name, _transformer)(name, reader).version


def normalised(vectors: Vectors) -> Vectors:
    """The vectors scaled to length 1; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return scaled
