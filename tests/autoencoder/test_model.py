from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from labelkin import Indexer
from labelkin.autoencoder.architecture import Architecture
from labelkin.autoencoder.model import LabelModel, ModelInfo, save_model
from labelkin.exceptions import ModelDamagedError, ModelNotFoundError, ModelTooNewError

torch = pytest.importorskip("torch", reason="needs the extra `train`")

from labelkin.autoencoder.network import LabelNetwork, label_batch

LABELS = 300


def network_of(activation: str):
    torch.manual_seed(0)
    network = LabelNetwork(LABELS, Architecture(48, 24, 12, activation=activation))  # type: ignore[arg-type]
    with torch.no_grad():
        for name, value in network.named_buffers():
            if name.endswith("running_mean"):
                value.normal_()
            elif name.endswith("running_var"):
                value.uniform_(0.5, 2)
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return network.eval()


def unsealed(path: Path) -> dict:
    """A description to be changed, without its checksum."""
    content = json.loads(path.read_text())
    del content["checksum"]
    return content


def saved(folder: Path, network) -> LabelModel:
    info = ModelInfo(network.architecture, tuple(f"L{n}" for n in range(LABELS)), "v", 0)
    tensors = {name: value.numpy() for name, value in network.state_dict().items()}
    save_model(folder, info, tensors, "card")
    return LabelModel(folder)


@pytest.mark.parametrize("activation", ["linear", "relu", "tanh"])
def test_numpy_equals_torch(tmp_path, activation):
    from scipy.sparse import csr_matrix

    network = network_of(activation)
    model = saved(tmp_path, network)
    # The large tables are stored with half the digits.
    for table in (network.inputs, network.outputs):
        table.weight.data = table.weight.data.half().float()
    random = np.random.default_rng(0)
    dense = random.random((40, LABELS)) < 0.03
    sets = csr_matrix(dense.astype(np.float32))
    with torch.no_grad():
        batch = label_batch(
            sets.indices.astype(np.int64), sets.indptr.astype(np.int64), torch.device("cpu")
        )
        latent = network.encode(batch)
        logits = network.decode(latent)
    np.testing.assert_allclose(model.encode(sets), latent, atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(model.decode(latent.numpy()), logits, atol=1e-5, rtol=1e-5)
    some = np.array([5, 200, 7])
    np.testing.assert_allclose(model.decode(latent.numpy(), some), logits[:, some], atol=1e-5)


def test_the_folder_says_what_the_model_is(trained: Indexer):
    folder = trained.collection.path / "models" / "label-ae"
    content = json.loads((folder / "model.json").read_text())
    # What earlier versions of labelkin can read.
    assert content["format_version"] == 1
    assert "recipe" not in content["architecture"]
    assert content["architecture"]["first"] == 64
    assert content["seed"] == 0
    assert content["data"]["documents"] + content["data"]["held_out"] == 600
    assert content["data"]["labels"] == len(content["labels"])
    assert set(content["versions"]) == {"labelkin", "python", "numpy", "torch"}
    assert all(label in trained.vocabulary for label in content["labels"])
    assert (folder / "README.md").read_text().startswith("# Label autoencoder")


def test_predicting_does_not_import_torch(trained: Indexer):
    import subprocess
    import sys

    code = (
        "import sys; from labelkin import Document, Indexer;"
        "from labelkin.scoring.settings import Settings;"
        f"indexer = Indexer.open({str(trained.collection.path)!r});"
        "print(len(indexer.suggest([Document('q', 'wheat storage')],"
        " settings=Settings.from_config(indexer.config, 'mix-ranked'))[0]) > 0,"
        " 'torch' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "True False\n"


def test_no_model(tmp_path):
    with pytest.raises(ModelNotFoundError, match="labelkin train"):
        LabelModel(tmp_path)


def test_a_newer_format(tmp_path):
    saved(tmp_path, network_of("linear"))
    path = tmp_path / "model.json"
    path.write_text(json.dumps(unsealed(path) | {"format_version": 99}))
    with pytest.raises(ModelTooNewError, match="update labelkin"):
        LabelModel(tmp_path)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"format_version": 1}', "\x00\x01"])
def test_a_damaged_description(tmp_path, content):
    saved(tmp_path, network_of("linear"))
    (tmp_path / "model.json").write_text(content)
    with pytest.raises(ModelDamagedError, match="train the model again"):
        LabelModel(tmp_path)


@pytest.mark.parametrize("keep", [0, 4, 100, 5000])
def test_damaged_weights(tmp_path, keep):
    saved(tmp_path, network_of("linear"))
    (weights,) = tmp_path.glob("weights-*")
    weights.write_bytes(weights.read_bytes()[:keep])
    with pytest.raises(ModelDamagedError, match="train the model again"):
        LabelModel(tmp_path)


def test_weights_that_are_no_numbers(tmp_path):
    saved(tmp_path, network_of("linear"))
    (weights,) = tmp_path.glob("weights-*")
    content = bytearray(weights.read_bytes())
    content[-400:] = b"\xff" * 400
    weights.write_bytes(content)
    model = LabelModel(tmp_path)
    with pytest.raises(ModelDamagedError, match="train the model again"):
        model.decode(np.zeros((1, 12), dtype=np.float32))
        model.encode(np.zeros((1, LABELS), dtype=np.float32))


def test_layers_of_no_size(tmp_path):
    saved(tmp_path, network_of("linear"))
    path = tmp_path / "model.json"
    content = unsealed(path)
    content["architecture"]["first"] = 0
    path.write_text(json.dumps(content))
    with pytest.raises(ModelDamagedError, match="train the model again"):
        LabelModel(tmp_path)


def test_missing_weights(tmp_path):
    saved(tmp_path, network_of("linear"))
    (weights,) = tmp_path.glob("weights-*")
    weights.unlink()
    with pytest.raises(ModelDamagedError, match="missing"):
        LabelModel(tmp_path)


def test_weights_of_another_shape(tmp_path):
    saved(tmp_path / "a", network_of("linear"))
    other = LabelNetwork(LABELS + 1, Architecture(48, 24, 12)).eval()
    saved(tmp_path / "b", other)
    (mine,) = (tmp_path / "a").glob("weights-*")
    (theirs,) = (tmp_path / "b").glob("weights-*")
    shutil.copy(theirs, mine)
    with pytest.raises(ModelDamagedError, match="train the model again"):
        LabelModel(tmp_path / "a").decode(np.zeros((1, 12), dtype=np.float32))
