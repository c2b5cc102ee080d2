from __future__ import annotations

import importlib.metadata
from pathlib import Path

import numpy as np
import pytest

from labelkin.corpus import Document
from labelkin.exceptions import ConfigError, MissingExtraError
from labelkin.indexer import Indexer
from labelkin.represent.encoder import normalised, open_encoder


@pytest.mark.parametrize(
    ("name", "package"),
    [("wordllama", "wordllama"), ("some/model", "sentence-transformers")],
)
def test_an_encoder_that_is_not_installed_gives_its_install_line(
    name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.metadata.version

    def version(asked: str) -> str:
        if asked == package:
            raise importlib.metadata.PackageNotFoundError(asked)
        return real(asked)

    for module in ("wordllama", "transformer"):
        monkeypatch.setattr(f"labelkin.represent.{module}.version", version)
    with (
        Indexer.create(tmp_path / "c") as indexer,
        pytest.raises(MissingExtraError, match=r"pip install 'labelkin\[dense\]'"),
    ):
        open_encoder(name, indexer.collection)


def test_unknown_names_list_the_known(tmp_path: Path) -> None:
    with (
        Indexer.create(tmp_path / "c") as indexer,
        pytest.raises(ConfigError, match="no representation 'lsb'"),
    ):
        indexer.search("lsb")


def test_names_that_lack_or_mix_something(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c") as indexer:
        for name in ("stems,", ",", "lsa, "):
            with pytest.raises(ConfigError, match="has an empty name next to a comma"):
                indexer.search(name)
        with pytest.raises(ConfigError, match=r'lsa is joined with ","'):
            indexer.search("stems+lsa")
        pytest.importorskip("faiss")
        assert indexer.search(" lsa ").fingerprint() == indexer.search("lsa").fingerprint()


def test_normalised() -> None:
    vectors = np.array([[3, 4], [0, 0]], dtype=np.float32)
    assert normalised(vectors).tolist() == [pytest.approx([0.6, 0.8]), [0, 0]]


def test_wordllama_is_a_mean_that_order_does_not_change(tmp_path: Path) -> None:
    pytest.importorskip("wordllama")
    with Indexer.create(tmp_path / "c") as indexer:
        encoder = open_encoder("wordllama", indexer.collection)
        texts = ["rye bread", "", "fish boats", "boats fish", "rye bread " * 500]
        vectors = encoder.encode([Document(str(n), text) for n, text in enumerate(texts)])
        alone = [encoder.encode([Document("1", text)])[0] for text in texts]
    assert vectors.shape == (5, 256)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 0, 1, 1, 1], abs=1e-5)
    assert vectors[2] == pytest.approx(vectors[3], abs=1e-5)
    assert vectors[0] @ vectors[2] < 0.9
    # Whatever they are encoded with.
    assert vectors == pytest.approx(np.stack(alone), abs=1e-5)


GERMAN = [
    Document("1", "Roggenbrot backen", "Das Brot wird im Ofen gebacken.", labels=("Brot",)),
    Document("2", "Brot aus Roggen", "Brote und Öfen in Dörfern.", labels=("Brot",)),
    Document("3", "Fische im Fluss", "Die Flüsse sind voller Fische.", labels=("Fluss",)),
    Document("4", "Flüsse und Boote", "Ein Boot auf dem Fluss.", labels=("Fluss",)),
]
SPANISH = [
    Document("1", "Pan de centeno", "Los panes se hacen en el horno.", labels=("Pan",)),
    Document("2", "Hornos y panes", "El pan del horno.", labels=("Pan",)),
    Document("3", "Peces del río", "Los ríos tienen muchos peces.", labels=("Río",)),
    Document("4", "Barcos en ríos", "Un barco en el río.", labels=("Río",)),
]


@pytest.mark.parametrize("representation", ["stems", "lsa", "stems,lsa"])
@pytest.mark.parametrize(
    ("language", "documents", "query"),
    [("de", GERMAN, "Die Öfen der Dörfer, Brote"), ("es", SPANISH, "Un horno para el pan")],
)
def test_other_languages(
    representation: str, language: str, documents: list[Document], query: str, tmp_path: Path
) -> None:
    if "lsa" in representation:
        pytest.importorskip("faiss")
    with Indexer.create(tmp_path / "c", language=language) as indexer:
        indexer.add(documents)
        found = indexer.neighbour_arrays([Document("q", query)], 2, representation=representation)
        assert set(found.rows[0].tolist()) == {0, 1}
