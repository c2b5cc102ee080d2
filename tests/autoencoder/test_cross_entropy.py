from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `train`")

from labelkin.autoencoder import cross_entropy as module
from labelkin.autoencoder.cross_entropy import Corrections, cross_entropy

DOCUMENTS, HIDDEN, LABELS = 7, 5, 40


class Inputs:
    """A batch with labels and corrections; some pairs have both."""

    def __init__(self) -> None:
        random = torch.Generator().manual_seed(0)
        self.hidden = torch.randn(DOCUMENTS, HIDDEN, generator=random).requires_grad_()
        self.weight = torch.randn(LABELS, HIDDEN, generator=random).requires_grad_()
        self.bias = torch.randn(LABELS, generator=random).sub(1).requires_grad_()
        is_own = torch.rand(DOCUMENTS, LABELS, generator=random) < 0.1
        self.documents, self.columns = is_own.nonzero().T
        corrected = (torch.rand(DOCUMENTS, LABELS, generator=random) < 0.2).nonzero()
        # In any order.
        self.corrected = corrected[torch.randperm(len(corrected), generator=random)].T
        self.values = torch.randn(len(corrected), generator=random).requires_grad_()
        self.chances = torch.rand(LABELS, generator=random) * 4
        assert {*map(tuple, corrected.tolist())} & {*map(tuple, is_own.nonzero().tolist())}

    @property
    def leaves(self) -> list[Any]:
        return [self.hidden, self.weight, self.bias, self.values]

    def corrections(self) -> Corrections:
        return Corrections(self.corrected[0], self.corrected[1], self.values)


def dense(inputs: Inputs, *, sampled: bool, corrected: bool, asymmetric: bool) -> Any:
    """The same loss with a target for each pair, in float64."""
    logits = (inputs.hidden @ inputs.weight.T + inputs.bias).double()
    if corrected:
        where = (inputs.corrected[0], inputs.corrected[1])
        logits = logits.index_put(where, inputs.values.double(), accumulate=True)
    own = torch.zeros(DOCUMENTS, LABELS, dtype=torch.bool)
    own[inputs.documents, inputs.columns] = True
    if asymmetric:
        above = (torch.sigmoid(logits) - 0.02).clamp(min=0)
        negative = -4 * above.detach() ** 2 * torch.log(1 - above)
    else:
        negative = torch.nn.functional.softplus(logits)
    if sampled:
        negative = negative * inputs.chances
    return torch.where(own, torch.nn.functional.softplus(-logits), negative).sum()


@pytest.mark.parametrize("chunk", [4096, 16], ids=["one chunk", "several"])
@pytest.mark.parametrize("asymmetric", [False, True], ids=["plain", "asymmetric"])
@pytest.mark.parametrize("sampled", [False, True], ids=["all", "sampled"])
@pytest.mark.parametrize("corrected", [False, True], ids=["uncorrected", "corrected"])
def test_loss_and_gradients_are_those_of_dense_targets(
    monkeypatch, chunk, asymmetric, sampled, corrected
):
    monkeypatch.setattr(module, "_CHUNK", chunk)
    inputs = Inputs()
    leaves = inputs.leaves if corrected else inputs.leaves[:-1]
    expected = dense(inputs, sampled=sampled, corrected=corrected, asymmetric=asymmetric)
    gradients = torch.autograd.grad(expected, leaves)
    loss = cross_entropy(
        inputs.hidden,
        inputs.weight,
        inputs.bias,
        inputs.documents,
        inputs.columns,
        inputs.chances if sampled else None,
        inputs.corrections() if corrected else None,
        asymmetric=asymmetric,
    )
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    # Scaled, as the loss of a batch is.
    for mine, theirs in zip(torch.autograd.grad(loss / 3, leaves), gradients, strict=True):
        torch.testing.assert_close(mine * 3, theirs, rtol=1e-4, atol=1e-5)


def test_a_label_that_is_surely_wrong_costs_nothing():
    bias = torch.tensor([-6.0, 0.0, 3.0], requires_grad=True)
    nothing = torch.zeros(0, dtype=torch.long)
    hidden, weight = torch.zeros(1, 2), torch.zeros(3, 2, requires_grad=True)
    cross_entropy(hidden, weight, bias, nothing, nothing, asymmetric=True).backward()
    low, middle, high = bias.grad.tolist()
    assert low == 0
    assert 0 < middle < high
    # Without the asymmetry every label costs something.
    plain = torch.tensor([-6.0, 0.0, 3.0], requires_grad=True)
    cross_entropy(hidden, weight, plain, nothing, nothing).backward()
    assert plain.grad[0] > 0


@pytest.mark.parametrize("asymmetric", [False, True])
def test_extreme_logits_are_finite(asymmetric):
    bias = torch.tensor([-200.0, 200.0, 200.0, -200.0], requires_grad=True)
    own = torch.tensor([2, 3])
    hidden, weight = torch.zeros(1, 2), torch.zeros(4, 2, requires_grad=True)
    loss = cross_entropy(
        hidden, weight, bias, torch.zeros(2, dtype=torch.long), own, asymmetric=asymmetric
    )
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(bias.grad).all()
