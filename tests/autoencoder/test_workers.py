"""Two processes with gloo, as `torchrun --nproc-per-node 2` starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

# How a thread of gloo's rarely ends a process that has done its work, on a busy machine.
TORCH_AT_EXIT = "terminate called without an active exception"
COMMON = """
import sys
from dataclasses import replace
from pathlib import Path
import numpy as np
import torch
sys.path.insert(0, {root!r})
from tests.autoencoder.joint_data import JOINT, joint_data
from tests.autoencoder.label_data import QUICK, data_of, topics
from labelkin.autoencoder.training import Trainer

folder = Path({folder!r})
"""
GRADIENTS = """
settings = replace(QUICK, dropout=0.0, sampled_outputs={sampled})
trainer = Trainer(data_of(topics(200)), settings, folder / "model")
trainer.network.eval()
rows = trainer.data.rows[:32]
mine = trainer.workers.share(rows)
labels, starts = trainer.data.batch(mine)
from labelkin.autoencoder.network import label_batch
# All processes draw from the same labels, so that the same outputs are computed.
every, _ = trainer.data.batch(rows)
sample = trainer.task.sample(every, np.random.default_rng(0))
trainer.network(label_batch(labels, starts, trainer.device), sample).backward()
trainer.workers.average_gradients(trainer.network)
arrays = {{}}
for name, weight in trainer.network.named_parameters():
    gradient = weight.grad.to_dense() if weight.grad.is_sparse else weight.grad
    arrays[name] = gradient.numpy()
np.savez(folder / f"{{trainer.workers.count}}-{{trainer.workers.rank}}.npz", **arrays)
"""
TRAINING = """
trainer = Trainer(data_of(topics(400)), replace(QUICK, epochs=15), folder / "model")
trained = trainer.run()
arrays = {{name: value.numpy() for name, value in trainer.network.state_dict().items()}}
count, rank = trainer.workers.count, trainer.workers.rank
np.savez(folder / f"{{count}}-{{rank}}.npz", **arrays)
if rank == 0:
    best = trained.history[trained.best_epoch - 1]
    (folder / f"{{count}}.txt").write_text(str(best["MiF"]))
trainer.forget()
"""

JOINT_GRADIENTS = """
arrays = {{}}
for sampled in (0, 15):
    settings = replace(JOINT, dropout=0.0, sampled_outputs=sampled)
    trainer = Trainer(joint_data(120), settings, folder / "model")
    trainer.network.eval()
    rows = trainer.task.rows[:32]
    # All processes draw from the same labels, so that the same outputs are computed.
    every, _ = trainer.data.batch(rows)
    sample = trainer.task.sample(every, np.random.default_rng(0))
    trainer.network(trainer.task.prepare(trainer.workers.share(rows)), sample).backward()
    trainer.workers.average_gradients(trainer.network)
    for name, weight in trainer.network.named_parameters():
        gradient = weight.grad.to_dense() if weight.grad.is_sparse else weight.grad
        arrays[f"{{sampled}} {{name}}"] = gradient.numpy()
np.savez(folder / f"{{trainer.workers.count}}-{{trainer.workers.rank}}.npz", **arrays)
"""
JOINT_TRAINING = """
settings = replace(JOINT, epochs=6, learning_rate=0.01, sampled_outputs=15)
trainer = Trainer(joint_data(300), settings, folder / "model")
trained = trainer.run()
arrays = {{name: value.detach().numpy() for name, value in trainer.network.named_parameters()}}
count, rank = trainer.workers.count, trainer.workers.rank
np.savez(folder / f"{{count}}-{{rank}}.npz", **arrays)
if rank == 0:
    best = trained.history[trained.best_epoch - 1]
    (folder / f"{{count}}.txt").write_text(str(best["MiF"]))
trainer.forget()
"""


def run(code: str, folder: Path, processes: int, **values: object) -> None:
    script = folder / "script.py"
    root = str(Path(__file__).parents[2])
    script.write_text((COMMON + code).format(root=root, folder=str(folder), **values))
    command = [sys.executable, str(script)]
    if processes > 1:
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        command = [sys.executable, *launcher, str(script)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode and TORCH_AT_EXIT in done.stderr:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("sampled", [0, 15])
def test_gradients_are_those_of_one_process(tmp_path, sampled):
    for processes in (1, 2):
        run(GRADIENTS, tmp_path, processes, sampled=sampled)
    alone, *both = (np.load(tmp_path / name) for name in ("1-0.npz", "2-0.npz", "2-1.npz"))
    for name in alone.files:
        for one in both:
            np.testing.assert_allclose(one[name], alone[name], rtol=1e-4, atol=1e-5)


def test_weights_stay_the_same_in_both(tmp_path):
    for processes in (1, 2):
        run(TRAINING, tmp_path, processes)
    first, second = np.load(tmp_path / "2-0.npz"), np.load(tmp_path / "2-1.npz")
    for name in first.files:
        np.testing.assert_array_equal(first[name], second[name])
    scores = [float((tmp_path / f"{n}.txt").read_text()) for n in (1, 2)]
    assert abs(scores[0] - scores[1]) <= 0.01


def test_joint_gradients_are_those_of_one_process(tmp_path):
    for processes in (1, 2):
        run(JOINT_GRADIENTS, tmp_path, processes)
    alone, *both = (np.load(tmp_path / name) for name in ("1-0.npz", "2-0.npz", "2-1.npz"))
    assert {name.split()[0] for name in alone.files} == {"0", "15"}
    for name in alone.files:
        for one in both:
            np.testing.assert_allclose(one[name], alone[name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_joint_weights_stay_the_same_in_both(tmp_path):
    run(JOINT_TRAINING, tmp_path, 2)
    first, second = np.load(tmp_path / "2-0.npz"), np.load(tmp_path / "2-1.npz")
    for name in first.files:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
    assert float((tmp_path / "2.txt").read_text()) > 0.9
