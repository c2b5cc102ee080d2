from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from labelkin.experiments.runner import RunReport, run

from .small_grid import GRID, Silent, plan_of, write_data


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a generated collection: 160 training documents and 20 of each split."""
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


@pytest.fixture(scope="session")
def done(tmp_path_factory: pytest.TempPathFactory, data: Path) -> tuple[Path, RunReport]:
    """A work folder in which the small grid was run once."""
    pytest.importorskip("torch", reason="needs the extra `train`")
    folder = tmp_path_factory.mktemp("done")
    (folder / "small.toml").write_text(GRID, encoding="utf-8")
    work = folder / "work"
    return work, run(plan_of(folder / "small.toml", work, data), Silent())


@pytest.fixture
def grid_file(tmp_path: Path) -> Path:
    """A small grid with every kind of stage."""
    path = tmp_path / "small.toml"
    path.write_text(GRID, encoding="utf-8")
    return path


@pytest.fixture
def changed_grid(tmp_path: Path) -> Callable[..., str]:
    """Write the small grid with one text replaced and return its path."""

    def change(old: str, new: str, name: str = "changed") -> str:
        assert old in GRID
        path = tmp_path / f"{name}.toml"
        path.write_text(GRID.replace(old, new, 1), encoding="utf-8")
        return str(path)

    return change
