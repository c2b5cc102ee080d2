from __future__ import annotations

import pytest

from labelkin.autoencoder.architecture import Architecture, make_architecture
from labelkin.exceptions import ConfigError

PAPER_LABELS = 29_483


def test_parameter_counts_are_the_published_ones():
    small, medium, large = (
        make_architecture(name, PAPER_LABELS, 6_800_000) for name in ("small", "medium", "large")
    )
    assert small.trainable_parameters(PAPER_LABELS) == 60_975_467
    assert medium.trainable_parameters(PAPER_LABELS) == 123_035_563
    assert large.parameters(PAPER_LABELS) == 250_256_299


@pytest.mark.parametrize("preset", ["small", "medium", "20/10/5"])
def test_counts_are_those_of_the_network(preset):
    pytest.importorskip("torch", reason="needs the extra `train`")
    from labelkin.autoencoder.network import LabelNetwork

    architecture = make_architecture(preset, 100, 1000)
    network = LabelNetwork(100, architecture)
    trainable = sum(weight.numel() for weight in network.parameters())
    buffers = sum(b.numel() for name, b in network.named_buffers() if "running" in name)
    assert trainable == architecture.trainable_parameters(100)
    assert trainable + buffers == architecture.parameters(100)


def test_custom_sizes():
    assert make_architecture("300/100/50", 10, 10) == Architecture(300, 100, 50)


@pytest.mark.parametrize("labels", [1, 2, 50, 1000, 17_576, 300_000])
@pytest.mark.parametrize("documents", [2, 100, 43_178, 7_000_000])
def test_auto_narrows_towards_the_middle(labels, documents):
    fitted = make_architecture("auto", labels, documents)
    assert fitted.first >= fitted.second >= fitted.latent >= 16


def test_auto_grows_with_the_data():
    few, many = (make_architecture("auto", 17_576, number) for number in (1_000, 43_178))
    assert few.parameters(17_576) < many.parameters(17_576)


@pytest.mark.parametrize("name", ["huge", "10/20", "10/20/x", "0/5/5", ""])
def test_a_bad_name_is_refused(name):
    with pytest.raises(ConfigError):
        make_architecture(name, 10, 10)
