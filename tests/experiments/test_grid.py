from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from labelkin.exceptions import ConfigError
from labelkin.experiments.cases import rows_of
from labelkin.experiments.grid import read_grid, shipped_grids
from labelkin.experiments.published import COLUMNS, paper_key, published
from labelkin.store.config import RECIPES

from .small_grid import GRID

Change = Callable[..., str]


def test_shipped_grids_can_be_read() -> None:
    assert shipped_grids() == ["medline", "paper", "scale"]
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
        values = published()[tuple(line[column] for column in COLUMNS)]
        assert values == {name: float(line[name]) for name in values}


def test_quick_keeps_all_rows() -> None:
    whole, quick = read_grid("paper"), read_grid("paper", quick=True)
    assert len(rows_of(quick)) == len(rows_of(whole))
    assert quick.collection.sizes == [600]
    assert all(model.minutes == 0.3 for model in quick.models.values())


@pytest.mark.parametrize("name", ["paper", "scale"])
def test_trainings_end_by_convergence_not_by_time(name: str) -> None:
    for model in read_grid(name).models.values():
        assert (model.minutes, model.patience) == (0.0, 5)


def test_scale_can_reuse_the_medium_model_of_paper() -> None:
    assert read_grid("scale").models["medium"] == read_grid("paper").models["medium"]


@pytest.mark.parametrize("quick", [False, True])
def test_the_shipped_grids_search_as_the_paper_does(quick: bool) -> None:
    for name in shipped_grids():
        settings = read_grid(name, quick=quick).collection.all_settings()
        assert settings["neighbours"]["term_frequency"] == "once"
        assert settings["neighbours"]["heading_weight"] == 0
    medline = read_grid("medline").collection
    assert medline.all_settings()["dense"] == medline.settings["dense"]


def test_a_grid_s_own_settings_change_those_of_its_recipe(changed_grid: Change) -> None:
    lines = 'language = "en"\nrecipe = "paper"\n[collection.settings.neighbours]\nk = 7'
    part = read_grid(changed_grid('language = "en"', lines)).collection
    assert part.all_settings()["neighbours"] == {**RECIPES["paper"]["neighbours"], "k": 7}
    assert part.all_settings()["suggest"] == RECIPES["paper"]["suggest"]
    assert RECIPES["paper"]["neighbours"]["k"] == 20


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('choose_on = "dev"', 'choose_on = "deev"', "no split 'deev' in the grid; there are dev"),
        ('uses = "stems"', 'use = "stems"', "did you mean 'uses'?"),
        ('uses = "stems"', "", "give either `uses` or `fuses`"),
        ('model = "tiny"', 'model = "huge"', "no model 'huge' in the grid; there are tiny"),
        ('method = "knn"', 'method = "svm"', "tables.0.method = 'svm'"),
        ('method = "knn"', 'method = "rerank"', "tables.0.method = 'rerank'"),
        ('name = "medium"', 'name = "basic"', "two tables are called 'basic'"),
        ('representations = ["dense"]', 'representations = ["x"]', "no representation 'x'"),
        ("ks = [3, 5]", 'ks = ["3"]', "ks.0 = '3'"),
        ("ks = [3, 5]", "ks = [3", "not valid TOML"),
        ('fuses = ["stems", "dense"]', 'fuses = ["hybrid"]', "itself fused"),
        ('baseline = "basic"', 'baseline = "b"', "no table 'b'"),
        ('title = "A generated collection"', "", "title is missing"),
        ('method = "knn"', 'method = "knn"\nmodel = "tiny"', "takes no model"),
        ("[splits]", "[collection.settings.dense]\nindx = 1\n[splits]", "dense.indx"),
        ('language = "en"', 'recipe = "x"', "collection: no recipe 'x'; known: paper"),
    ],
)
def test_an_invalid_grid_raises_a_message_of_one_line(
    changed_grid: Change, old: str, new: str, message: str
) -> None:
    path = changed_grid(old, new)
    with pytest.raises(ConfigError) as caught:
        read_grid(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(path)
    assert "\n" not in str(caught.value)


def test_missing_grids(tmp_path: Path, changed_grid: Change) -> None:
    with pytest.raises(ConfigError, match="shipped are medline, paper, scale"):
        read_grid("papers")
    with pytest.raises(ConfigError, match="No such file"):
        read_grid(str(tmp_path / "none.toml"))
    path = changed_grid("[quick]\nsizes = [60]\nsplit_documents = 10\nminutes = 0.01", "")
    with pytest.raises(ConfigError, match=r"no \[quick\]"):
        read_grid(path, quick=True)


def test_a_grid_that_extends_another_contains_the_differences(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(GRID)
    mine = tmp_path / "mine.toml"
    mine.write_text(
        'extends = "base.toml"\nks = [7]\nreport_on = ["dev"]\n'
        '[splits]\ntest = ""\n[models.tiny]\nepochs = 9\n'
        "[collection.settings.dense]\ndimensions = 64\n"
    )
    base, grid = read_grid(str(tmp_path / "base.toml")), read_grid(str(mine))
    assert grid.name == "mine"
    assert grid.ks == [7]
    assert list(grid.splits) == ["dev"]
    assert grid.models["tiny"].epochs == 9
    assert grid.models["tiny"].preset == base.models["tiny"].preset
    assert grid.collection.settings == {"dense": {"dimensions": 64}}
    assert grid.tables == base.tables
    (tmp_path / "base.toml").write_text('extends = "mine.toml"')
    with pytest.raises(ConfigError, match="extends itself"):
        read_grid(str(mine))


def test_the_full_size_grid_has_no_stand_ins_and_no_limits() -> None:
    grid = read_grid("medline")
    assert len([row for row in rows_of(grid) if paper_key(row, grid.table(row.table))]) == 223
    assert not any(part.stand_in for part in grid.representations.values())
    assert all((model.epochs, model.minutes) == (15, 0.0) for model in grid.models.values())
