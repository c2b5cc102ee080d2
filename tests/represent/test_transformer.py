from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from labelkin.corpus import Document
from labelkin.exceptions import ConfigError
from labelkin.indexer import Indexer
from labelkin.represent.transformer import TransformerEncoder
from labelkin.store.config import DenseSection

pytest.importorskip("sentence_transformers")

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] rye bread brot pan fluss rio river the das el".split()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny multilingual model with random weights, in a folder."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("model")
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    BertModel(config).save_pretrained(folder / "bert")
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    words = Transformer(str(folder / "bert"))
    SentenceTransformer(modules=[words, Pooling(16)]).save(str(folder / "specter"))
    SentenceTransformer(modules=[words, Pooling(16)]).save(str(folder / "other"))
    return folder


def encoder(path: Path, **settings: object) -> TransformerEncoder:
    return TransformerEncoder(str(path), DenseSection.model_validate(settings))


def test_specter_reads_title_and_abstract_with_a_separator(model: Path) -> None:
    whole = Document("1", "rye bread", "river")
    separated = Document("2", "", "rye bread [SEP] river")
    other = encoder(model / "other").encode([whole, separated])
    specter = encoder(model / "specter").encode([whole])
    assert specter[0] == pytest.approx(other[1], abs=1e-5)
    assert not np.allclose(other[0], other[1], atol=1e-4)


def test_only_the_last_part_of_a_path_makes_a_specter_model(model: Path) -> None:
    folder = model / "specter-models"
    shutil.copytree(model / "other", folder / "plain")
    whole = [Document("1", "rye bread", "river")]
    plain, other = (encoder(path).encode(whole) for path in (folder / "plain", model / "other"))
    assert plain[0] == pytest.approx(other[0], abs=1e-6)


def test_a_model_that_is_replaced_in_its_folder(model: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    folder = tmp_path / "model"
    shutil.copytree(model / "other", folder)
    document = [Document("1", "rye bread river")]
    before = encoder(folder)
    old = before.encode(document)
    (weights,) = folder.rglob("*.safetensors")
    arrays = load_file(weights)
    save_file({name: array[::-1].copy() for name, array in arrays.items()}, weights)
    assert not before.is_current()
    after = encoder(folder)
    assert after.version != before.version
    assert after.is_current()
    assert not np.allclose(after.encode(document), old, atol=1e-3)


def test_length_and_normalisation(model: Path) -> None:
    document = [Document("1", "rye bread river"), Document("2")]
    long = encoder(model / "other").encode(document)
    cut = encoder(model / "other", max_length=3).encode(document)
    assert np.linalg.norm(long, axis=1) == pytest.approx([1, 0], abs=1e-5)
    rye = encoder(model / "other").encode([Document("1", "rye")])
    assert cut[0] == pytest.approx(rye[0], abs=1e-5)
    raw = encoder(model / "other", normalise=False).encode(document)
    assert np.linalg.norm(raw[0]) != pytest.approx(1, abs=1e-3)


def test_texts_of_several_languages_by_a_path(model: Path, tmp_path: Path) -> None:
    name = str(model / "other")
    with Indexer.create(tmp_path / "c") as indexer:
        indexer.add(
            [
                Document("de", "das brot", labels=("B",), language="de"),
                Document("es", "el pan", labels=("B",), language="es"),
                Document("en", "the river", labels=("R",), language="en"),
            ]
        )
        for row, words in enumerate(("das brot", "el pan", "the river")):
            neighbours = indexer.neighbour_arrays([Document("q", words)], 1, representation=name)
            assert neighbours.rows.tolist() == [[row]]
            assert neighbours.distances()[0, 0] == pytest.approx(0, abs=0.005)
            assert neighbours.duplicates == (("q", row),)


def test_threads_get_what_one_thread_gets(model: Path) -> None:
    shared = encoder(model / "other")
    calls = [[Document("1", "rye bread " * (n % 4 + 1)), Document("2", "rio")] for n in range(40)]
    expected = [shared.encode(documents) for documents in calls]
    with ThreadPoolExecutor(4) as pool:
        for vectors, alone in zip(pool.map(shared.encode, calls), expected, strict=True):
            assert np.array_equal(vectors, alone)


def test_a_model_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match=r"no sentence-transformers model '/no/such/model'"):
        encoder(Path("/no/such/model")).encode([Document("1", "rye")])


def test_a_folder_without_a_model_is_refused_before_its_files_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.txt").write_text("no model")
    monkeypatch.setattr(Path, "rglob", lambda *_: 1 / 0)
    with pytest.raises(ConfigError, match=r"\(no modules.json or config.json or .* in the folder"):
        encoder(tmp_path)
