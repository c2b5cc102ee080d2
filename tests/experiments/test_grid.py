from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from labelkin.exceptions import ConfigError
from labelkin.experiments.cases import rows_of
from labelkin.experiments.grid import read_grid, shipped_grids
from labelkin.experiments.published import COLUMNS, paper_key, published

Change = Callable[..., str]


def test_shipped_grids_can_be_read() -> None:
    assert shipped_grids() == ["paper", "scale"]
    for name in shipped_grids():
        assert read_grid(name).name == name
        assert read_grid(name, quick=True).name == f"{name}-quick"


def test_the_paper_s_grid_has_the_paper_s_rows_in_their_order() -> None:
    grid = read_grid("paper")
    keys = [paper_key(row, grid.table(row.table)) for row in rows_of(grid)]
    assert [key for key in keys if key] == list(published())
    assert len(published()) == 223


def test_published_figures_are_the_paper_s(shared_data: Path) -> None:
    with (shared_data.parent / "paper" / "results.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(published())
    for line in lines:
        found = published()[tuple(line[column] for column in COLUMNS)]
        assert found == {name: float(line[name]) for name in found}


def test_quick_keeps_all_rows() -> None:
    whole, quick = read_grid("paper"), read_grid("paper", quick=True)
    assert len(rows_of(quick)) == len(rows_of(whole))
    assert quick.collection.sizes == [2000]
    assert all(model.minutes == 0.75 for model in quick.models.values())


def test_time_by_size() -> None:
    grid = read_grid("scale")
    assert grid.minutes("medium", 5000) == 3.0
    assert grid.minutes("medium", 0) == 25.0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('choose_on = "dev"', 'choose_on = "deev"', "no split 'deev' in the grid; there are dev"),
        ('uses = "stems"', 'use = "stems"', "did you mean 'uses'?"),
        ('uses = "stems"', "", "give either `uses` or `fuses`"),
        ('model = "tiny"', 'model = "huge"', "no model 'huge' in the grid; there are tiny"),
        ('method = "knn"', 'method = "svm"', "tables.0.method = 'svm'"),
        ('name = "medium"', 'name = "basic"', "two tables are called 'basic'"),
        ('representations = ["dense"]', 'representations = ["x"]', "no representation 'x'"),
        ("ks = [3, 5]", 'ks = ["3"]', "ks.0 = '3'"),
        ("ks = [3, 5]", "ks = [3", "not valid TOML"),
        ('fuses = ["stems", "dense"]', 'fuses = ["hybrid"]', "fused itself"),
        ('baseline = "basic"', 'baseline = "b"', "no table 'b'"),
        ('title = "A generated collection"', "", "title is missing"),
        ('method = "knn"', 'method = "knn"\nmodel = "tiny"', "takes no model"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    changed_grid: Change, old: str, new: str, said: str
) -> None:
    path = changed_grid(old, new)
    with pytest.raises(ConfigError) as caught:
        read_grid(path)
    assert said in str(caught.value)
    assert str(caught.value).startswith(path)
    assert "\n" not in str(caught.value)


def test_grids_that_are_not_there(tmp_path: Path, changed_grid: Change) -> None:
    with pytest.raises(ConfigError, match="shipped are paper, scale"):
        read_grid("papers")
    with pytest.raises(ConfigError, match="No such file"):
        read_grid(str(tmp_path / "none.toml"))
    path = changed_grid("[quick]\nsizes = [60]\nsplit_documents = 10\nminutes = 0.01", "")
    with pytest.raises(ConfigError, match=r"no \[quick\]"):
        read_grid(path, quick=True)
