from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from labelkin.autoencoder.model import verify_weights
from labelkin.checksums import BlockChecksums
from labelkin.neighbours.vector_file import VectorFile
from labelkin.store import background


class Reports:
    """Collects what is reported."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def add(self, reason: str) -> None:
        self.reasons.append(reason)


def verify_blocks(path: Path) -> Callable[[], None]:
    return partial(BlockChecksums(4, (1,)).verify, path)


@pytest.mark.parametrize("make", [verify_blocks, lambda path: partial(verify_weights, path)])
def test_only_files_that_are_there_are_damaged(tmp_path: Path, make: Callable) -> None:
    reports = Reports()
    path = tmp_path / "weights-00.safetensors"
    background.verify_later(make(path), reports.add)
    background.finish()
    assert reports.reasons == []
    path.write_bytes(b"else")
    background.verify_later(make(path), reports.add)
    background.finish()
    (reason,) = reports.reasons
    assert str(path) in reason


def test_vectors_that_are_deleted_before_they_are_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labelkin.neighbours.vector_file.SMALL", 0)
    VectorFile(tmp_path, np.int64).append(np.arange(3), np.ones((3, 2)), {})
    reports = Reports()
    vectors = VectorFile(tmp_path, np.int64, reports.add)
    assert len(vectors.read()) == 3
    vectors.clear()
    background.finish()
    assert reports.reasons == []


FORKED = """
import os, signal, sys
from labelkin.store import background

class Reports:
    def add(self, reason):
        pass

reports, called = Reports(), []
background.PAUSE_SECONDS = 60
background.verify_later(lambda: None, reports.add)
background._lock.acquire()
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
signal.alarm(10)
background.verify_later(lambda: called.append(1), reports.add)
background.finish(5)
os._exit(0 if called else 3)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_verifies_with_a_thread_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], check=False, timeout=60)
    assert done.returncode == 0
