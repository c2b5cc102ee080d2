from __future__ import annotations

from pathlib import Path
from threading import Timer

import numpy as np
import pytest

from labelkin.neighbours.vector_file import VectorFile


@pytest.fixture
def vectors(tmp_path: Path) -> VectorFile:
    stored = VectorFile(tmp_path / "v", np.int64)
    stored.append(np.arange(3), np.ones((3, 2)), {})
    return stored


def test_vectors_that_are_deleted_while_they_are_verified(vectors: VectorFile) -> None:
    """The record may be the last file to be deleted."""
    (path,) = vectors.folder.glob("*.vectors")
    path.unlink()
    timer = Timer(0.05, vectors.clear)
    timer.start()
    assert vectors.verify()
    timer.join()
    assert vectors.verify()


def test_vectors_that_are_lost(vectors: VectorFile) -> None:
    (path,) = vectors.folder.glob("*.vectors")
    path.unlink()
    with pytest.raises(FileNotFoundError):
        vectors.verify()
