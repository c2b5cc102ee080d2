"""Data-parallel training in several processes, started by `torchrun`."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from labelkin.exceptions import ConfigError


@dataclass(frozen=True, slots=True)
class Workers:
    """The rank of this process and the number of processes; 0 of 1 without `torchrun`."""

    rank: int = 0
    count: int = 1

    @classmethod
    def from_environment(cls, device: torch.device) -> Workers:
        """Join the other processes, using the environment variables that `torchrun` sets."""
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return cls()
        if not torch.distributed.is_initialized():
            backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
            torch.distributed.init_process_group(backend)
        return cls(torch.distributed.get_rank(), torch.distributed.get_world_size())

    @property
    def is_first(self) -> bool:
        """Whether this process validates, writes files and reports."""
        return self.rank == 0

    def share(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """This process's part of a batch; parts have equal size, and a remainder is skipped."""
        return rows[self.rank : len(rows) - len(rows) % self.count : self.count]

    def average_gradients(self, network: nn.Module) -> None:
        """Replace the gradients of all processes by their mean.

        torch's DistributedDataParallel supports sparse gradients of its own
        embedding modules only. Here they are averaged over the rows that any process
        has.
        """
        if self.count == 1:
            return
        for weight in network.parameters():
            if weight.grad is None:
                continue
            if weight.grad.is_sparse:
                weight.grad = self._averaged_rows(weight.grad.coalesce())
            else:
                torch.distributed.all_reduce(weight.grad)
                weight.grad /= self.count

    def _averaged_rows(self, gradient: Tensor) -> Tensor:
        rows, values = gradient.indices()[0], gradient.values()
        used = torch.zeros(gradient.shape[0], dtype=torch.int32, device=values.device)
        used[rows] = 1
        torch.distributed.all_reduce(used, torch.distributed.ReduceOp.MAX)
        union = used.nonzero()[:, 0]
        block = torch.zeros(len(union), *values.shape[1:], dtype=values.dtype, device=values.device)
        block[torch.searchsorted(union, rows)] = values
        torch.distributed.all_reduce(block)
        return torch.sparse_coo_tensor(
            union[None], block / self.count, gradient.shape, check_invariants=False
        )

    def share_buffers(self, network: nn.Module) -> None:
        """Copy the running means and variances of the first process to all."""
        if self.count > 1:
            for buffer in network.buffers():
                torch.distributed.broadcast(buffer, 0)

    def broadcast(self, value: float) -> float:
        """The first process's value, in all processes."""
        if self.count == 1:
            return value
        shared = torch.tensor([value], dtype=torch.float64)
        torch.distributed.broadcast(shared, 0)
        return float(shared)

    def close(self) -> None:
        """Leave the process group, all processes at once."""
        if self.count > 1 and torch.distributed.is_initialized():
            # One that leaves while others still talk can abort them.
            torch.distributed.barrier()
            torch.distributed.destroy_process_group()


def find_device(name: str) -> torch.device:
    """The device that `auto`, `cpu`, `cuda` or `mps` means on this machine."""
    available = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if name == "auto":
        # Not MPS: many versions of torch lack some of its sparse operations.
        name = "cuda" if available["cuda"] else "cpu"
    if name not in available:
        raise ConfigError(f"no device {name!r}; known: auto, {', '.join(available)}")
    if not available[name]:
        raise ConfigError(f"no {name} device here; use --device auto or cpu")
    if name == "cuda":
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device(name)
