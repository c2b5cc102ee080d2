from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra `train`")

from labelkin.autoencoder.architecture import Architecture
from labelkin.autoencoder.network import Averages, LabelNetwork, OutputSample, label_batch

LABELS = 9000
CPU = torch.device("cpu")


def batch_of(documents: int, seed: int = 0):
    random = np.random.default_rng(seed)
    sets = [random.choice(LABELS, random.integers(0, 9), replace=False) for _ in range(documents)]
    starts = np.concatenate(([0], np.cumsum([len(labels) for labels in sets])))
    labels = np.concatenate(sets).astype(np.int64)
    return label_batch(labels, starts.astype(np.int64), CPU)


def dense_targets(batch):
    targets = torch.zeros(len(batch), LABELS)
    targets[batch.documents, batch.labels] = 1
    return targets


def network_of(dropout: float = 0.0):
    torch.manual_seed(0)
    network = LabelNetwork(LABELS, Architecture(32, 16, 8, dropout=dropout))
    network.set_odds(torch.linspace(500, 1, LABELS), 1000)
    return network


def test_loss_and_gradients_are_those_of_dense_one_hot_vectors():
    network, batch = network_of(), batch_of(50)
    loss = network(batch)
    loss.backward()
    ours = {name: weight.grad for name, weight in network.named_parameters()}
    network.zero_grad()

    dense = dense_targets(batch)
    hidden = torch.relu(network.norm1(dense @ network.inputs.weight + network.inputs.bias))
    latent = network.embedding(torch.relu(network.norm2(network.dense2(hidden))))
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        network.decode(latent), dense, reduction="sum"
    ) / len(batch)
    expected.backward()

    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    for name, weight in network.named_parameters():
        mine = ours[name].to_dense() if ours[name].is_sparse else ours[name]
        torch.testing.assert_close(mine, weight.grad, rtol=1e-4, atol=1e-5)


def test_the_input_gradient_has_only_the_rows_of_the_labels():
    network, batch = network_of(), batch_of(20)
    network(batch).backward()
    gradient = network.inputs.weight.grad
    assert gradient.is_sparse
    assert set(gradient.coalesce().indices()[0].tolist()) == set(batch.labels.tolist())


def test_a_sample_of_all_labels_is_the_whole_loss():
    network, batch = network_of(), batch_of(20)
    everything = OutputSample(torch.arange(LABELS), torch.ones(LABELS))
    assert network(batch, everything).item() == pytest.approx(network(batch).item(), rel=1e-6)


def test_a_sample_is_right_on_average():
    network, batch = network_of(), batch_of(20)
    network.eval()
    random = np.random.default_rng(1)
    own = torch.unique(batch.labels).numpy()
    losses = []
    for _ in range(200):
        weights = np.zeros(LABELS, dtype=np.float32)
        weights[random.choice(LABELS, 900, replace=False)] = 10
        columns = np.union1d(np.flatnonzero(weights), own)
        sample = OutputSample(torch.from_numpy(columns), torch.from_numpy(weights[columns]))
        losses.append(network(batch, sample).item())
    spread = np.std(losses) / np.sqrt(len(losses))
    assert abs(np.mean(losses) - network(batch).item()) < 4 * spread


def test_averages_count_as_much_as_label_sets():
    network, batch = network_of(), batch_of(30)
    network.eval()
    latent = network.encode(batch)
    both = network(batch, None, Averages(latent, batch))
    assert both.item() == pytest.approx(network(batch).item(), rel=1e-5)


def test_the_first_predictions_are_the_frequencies():
    network = network_of()
    network.eval()
    with torch.no_grad():
        network.outputs.weight.zero_()
        chances = torch.sigmoid(network.decode(torch.zeros(1, 8)))[0]
    assert float(chances[0]) == pytest.approx(0.5, abs=0.01)
    assert float(chances[-1]) == pytest.approx(0.0015, abs=0.0005)


def test_mixed_precision_is_near():
    network, batch = network_of(), batch_of(50)
    exact = network(batch).item()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = network(batch)
    loss.backward()
    assert loss.item() == pytest.approx(exact, rel=0.02)
    assert torch.isfinite(network.outputs.weight.grad).all()
