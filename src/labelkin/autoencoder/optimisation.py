"""Adam with a learning-rate schedule; tables with sparse gradients use SparseAdam."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

# How much faster the tables learn whose rows few documents have.
_FAST = 5.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """A learning rate that warms up and then falls along a cosine."""

    peak: float
    warm_up: int
    lowest: float = 0.02

    def rate(self, step: int, progress: float) -> float:
        """The rate at a step, counted from 0, when this share of the training is done."""
        warmth = min(1.0, (step + 1) / max(self.warm_up, 1))
        fall = 0.5 * (1 + math.cos(math.pi * min(max(progress, 0.0), 1.0)))
        return self.peak * warmth * (self.lowest + (1 - self.lowest) * fall)


class Optimiser:
    """Adam for a network.

    Lazy tables have sparse gradients, in the rows of a batch's labels. torch's
    SparseAdam updates only these rows. That differs slightly from Adam, whose
    momentum updates all rows at every step, but costs a fraction. Fast tables learn
    at several times the rate.
    """

    def __init__(
        self, network: nn.Module, *, lazy: Sequence[Tensor], fast: Sequence[Tensor] = ()
    ) -> None:
        apart = {id(table) for table in (*lazy, *fast)}
        others = [weight for weight in network.parameters() if id(weight) not in apart]
        fused = others[0].device.type in ("cpu", "cuda")
        groups = [{"params": others, "speed": 1.0}]
        if fast:
            groups.append({"params": list(fast), "speed": _FAST})
        self._optimisers: dict[str, torch.optim.Optimizer] = {
            "dense": torch.optim.Adam(groups, fused=fused)
        }
        if lazy:
            self._optimisers["lazy"] = torch.optim.SparseAdam(
                [{"params": list(lazy), "speed": 1.0}]
            )

    def step(self, rate: float) -> None:
        """Update the weights and clear their gradients."""
        for optimiser in self._optimisers.values():
            for group in optimiser.param_groups:
                group["lr"] = rate * group["speed"]
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, Tensor]:
        """All moments by name, for a checkpoint."""
        return {
            f"{name}.{number}.{key}": torch.as_tensor(value)
            for name, number, _, state in self._states()
            for key, value in state.items()
        }

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Restore the moments that `tensors` returned."""
        for name, number, weight, state in self._states():
            for key in ("step", "exp_avg", "exp_avg_sq"):
                value = tensors.get(f"{name}.{number}.{key}")
                if value is None:
                    continue
                if key == "step":
                    # SparseAdam counts in an int, fused Adam in a tensor.
                    state[key] = int(value) if name == "lazy" else value.to(weight.device)
                else:
                    state[key] = value.to(weight.device).clone()

    def _states(self) -> Iterator[tuple[str, int, nn.Parameter, dict[str, object]]]:
        for name, optimiser in self._optimisers.items():
            weights = [one for group in optimiser.param_groups for one in group["params"]]
            for number, weight in enumerate(weights):
                yield name, number, weight, optimiser.state[weight]
