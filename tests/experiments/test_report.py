from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from labelkin.exceptions import ConfigError
from labelkin.experiments.cases import Cell, Group, Row
from labelkin.experiments.outcome import Line, best_of_blocks, gather
from labelkin.experiments.published import published
from labelkin.experiments.report import write_report
from labelkin.experiments.runner import RunReport

from .small_grid import GRID, plan_of


@pytest.fixture(scope="module")
def report(
    done: tuple[Path, RunReport], data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The report of the small grid."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "small.toml").write_text(GRID, encoding="utf-8")
    (folder / "README.md").write_text("mine")
    write_report(plan_of(folder / "small.toml", done[0], data), folder, "labelkin experiment")
    return folder


def lines_of(report: Path) -> list[dict[str, str]]:
    with (report / "results.csv").open() as file:
        return list(csv.DictReader(file))


def test_all_files_are_there_and_others_stay(report: Path) -> None:
    names = {path.relative_to(report).as_posix() for path in report.rglob("*") if path.is_file()}
    assert names == {
        "small.toml", "README.md", "report.md", "report.html", "results.csv", "provenance.json",
        "tables-test.md", "figures/representations.png", "figures/representations.svg",
        "figures/autoencoders.png", "figures/autoencoders.svg",
    }  # fmt: skip
    assert (report / "README.md").read_text() == "mine"


def test_csv_has_the_paper_s_columns_first_and_its_figures(report: Path) -> None:
    lines = lines_of(report)
    paper = "table method representation threshold weighting k MiF MiP MiR P@5 P@10 nDCG@5 nDCG@10"
    assert list(lines[0])[:13] == paper.split()
    row = next(x for x in lines if x["representation"] == "stems" and x["k"] == "10")
    known = published()["basic", "knn", "stems", "", "", "10"]
    assert {name: float(row[name]) for name in known} == known
    assert next(x for x in lines if x["table"] == "ranked")["MiF"] == ""
    assert {x["stand-in"] for x in lines if x["representation"] == "stems"} == {""}
    assert {x["stand-in"] for x in lines if x["representation"] == "hybrid"} == {
        "lsa stands in for SPECTER"
    }


def test_each_value_can_be_traced_to_its_record(report: Path, done: tuple[Path, RunReport]) -> None:
    facts = json.loads((report / "provenance.json").read_text())
    for line in lines_of(report):
        stage = facts["stages"][line["record"]]
        assert stage["kind"] == "measures"
        assert stage["version"]
        (record,) = (done[0] / "measures").glob(f"*-{line['record']}.json")
        cut = line["cut"] if line["cut"] == "count" else f"{float(line['cut']):.2f}"
        name = f"{line['method']}, {cut}" + (f", share {line['share']}" if line["share"] else "")
        values = json.loads(record.read_text())["cells"][name]
        for split in ("dev", "test"):
            for measure, value in values[split].items():
                assert float(line[f"{split} {measure}"]) == pytest.approx(value, abs=5e-5)
    (model,) = facts["models"]
    assert model["epochs"] == 2
    assert len(model["loss_by_epoch"]) == 2
    assert model["settings"]["preset"] == "32/16/8"
    assert facts["collections"][0]["documents"] == 160
    assert facts["seed"] == 0


def test_markdown_holds_paper_ours_and_difference(report: Path) -> None:
    text = (report / "tables-test.md").read_text()
    row = next(x for x in lines_of(report) if x["representation"] == "stems" and x["k"] == "10")
    ours, paper = float(row["test MiF"]), float(row["MiF"])
    line = next(x for x in text.splitlines() if x.startswith("| stems | 10 |"))
    cell = line.split("|")[3].replace("*", "").strip()
    shown, own, difference = re.fullmatch(r"(\S+) / (\S+) \((\S+)\)", cell).groups()
    assert (float(shown), float(own)) == (paper, ours)
    assert float(difference.replace("−", "-")) == pytest.approx(ours - paper, abs=1e-4)
    assert "dense*" in text


def test_html_is_one_page_with_the_same_tables(report: Path) -> None:
    from lxml import html

    page = html.fromstring((report / "report.html").read_text())
    rows = sum(len(table.findall(".//tr")) - 1 for table in page.iter("table"))
    texts = [(report / name).read_text() for name in ("report.md", "tables-test.md")]
    lines = [line for text in texts for line in text.splitlines() if line.startswith("|")]
    tables = sum(line.startswith("| ---") for line in lines)
    assert rows == len(lines) - 2 * tables
    assert {image.get("src") for image in page.iter("img")} == {
        "figures/representations.svg", "figures/autoencoders.svg",
    }  # fmt: skip
    anchors = {link.get("href") for link in page.find(".//nav").iter("a")}
    assert anchors <= {f"#{node.get('id')}" for node in page.iter("h2")}


def test_no_texts_of_documents_are_in_a_report(report: Path, data: Path) -> None:
    lines = (data / "train.jsonl").read_text().splitlines()
    titles = [json.loads(line)["title"] for line in lines]
    for path in report.rglob("*"):
        if path.suffix in (".md", ".html", ".csv", ".json"):
            text = path.read_text()
            assert not any(title in text for title in titles)


def test_figures_are_the_same_each_time(
    report: Path, done: tuple[Path, RunReport], data: Path, tmp_path: Path
) -> None:
    plan = plan_of(report / "small.toml", done[0], data)
    write_report(plan, tmp_path, "labelkin experiment")
    for path in (report / "figures").iterdir():
        assert path.read_bytes() == (tmp_path / "figures" / path.name).read_bytes()


def test_a_grid_that_was_not_run_has_no_report(tmp_path: Path, grid_file: Path, data: Path) -> None:
    with pytest.raises(ConfigError, match="34 of 34 stages"):
        gather(plan_of(grid_file, tmp_path / "work", data))


def test_the_best_of_each_block() -> None:
    def line(k: int, weighting: str, value: float | None) -> Line:
        group = Group(0, "all", k, "medium", weighting)
        values = {} if value is None else {"test": {"MiF": value}}
        return Line(Row("medium", group, Cell("label-ae", 0.5)), values, "")

    lines = [
        line(5, "square", 0.1),
        line(10, "square", 0.3),
        line(20, "square", 0.3),
        line(5, "difference", 0.2),
        line(10, "difference", None),
    ]
    best = best_of_blocks(lines, lambda one: one.values.get("test", {}).get("MiF"))
    assert {(row.group.k, row.group.weighting) for row in best} == {
        (10, "square"), (20, "square"), (5, "difference"),
    }  # fmt: skip
