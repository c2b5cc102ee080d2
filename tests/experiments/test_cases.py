from __future__ import annotations

from pathlib import Path

from labelkin.experiments.cases import Cell, rows_of
from labelkin.experiments.grid import read_grid


def test_rows_are_combinations_and_single_rows(grid_file: Path) -> None:
    rows = rows_of(read_grid(str(grid_file)))
    counts = {name: sum(row.table == name for row in rows) for name in ("basic", "medium")}
    assert counts == {"basic": 3 * 2, "medium": 2 * 2 * 2}
    mix = [row for row in rows if row.table == "mix-medium"]
    assert [row.group.k for row in mix] == [3, 4, 5]
    ranked = {row.cell.name for row in rows if row.table == "ranked"}
    assert ranked == {
        f"mix-ranked, {cut}, share {share}" for cut in ("count", "0.25") for share in (0.2, 0.5)
    }


def test_rows_of_one_block_differ_in_k_only(grid_file: Path) -> None:
    rows = [row for row in rows_of(read_grid(str(grid_file))) if row.table == "medium"]
    assert len({row.block for row in rows}) == len(rows) / 2
    assert {row.threshold for row in rows} == {"0.50", "0.75"}


def test_names_of_cells_are_unique() -> None:
    cells = [Cell("knn", "count"), Cell("knn", 0.5), Cell("mix", 0.5), Cell("mix-ranked", 0.5, 0.1)]
    assert len({cell.name for cell in cells}) == len(cells)
