"""`labelkin experiment`: grids of methods and settings, run and reported."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.console import counted, print_json, seconds_text, tell
from labelkin.cli.options import Json
from labelkin.cli.progress import Meter, meter
from labelkin.closing import Closing

if TYPE_CHECKING:
    from labelkin.experiments.plan import Plan
    from labelkin.experiments.stage import Stage

app = typer.Typer(no_args_is_help=True, help="Run experiments: the paper's tables, or your own.")

GridName = Annotated[
    str, typer.Argument(metavar="GRID", help="paper, scale, or a TOML file of your own.")
]
Quick = Annotated[
    bool, typer.Option("--quick", help="The small version that the grid describes: minutes.")
]
Work = Annotated[
    Path, typer.Option(help="Where results of all stages are kept; grids can share it.")
]
Data = Annotated[Path, typer.Option(help="The folder that the grid's files are in.")]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="Where the report goes. Default: reports/GRID in --work."),
]

# A stage that takes longer is spoken of when it is done; what goes without saying on a terminal.
_LONG, _WHOLE = 60.0, ", all documents"
_WORK, _DATA = Path("experiments"), Path("../shared/data")


@app.command()
def run(
    grid: GridName,
    quick: Quick = False,
    work: Work = _WORK,
    data: Data = _DATA,
    output: Output = None,
    json: Json = False,
) -> None:
    """Carry out a grid and write the report; what was done before is not done again."""
    from labelkin.experiments.runner import run as run_plan

    plan = _plan(grid, quick, work, data)
    with Board() as board:
        done = run_plan(plan, board)
    made, reused = counted(len(done.made), "stage"), counted(len(done.reused), "stage")
    tell(f"{made} carried out in {seconds_text(done.seconds)}, {reused} found done.")
    folder = _written(plan, output)
    if json:
        print_json(
            {
                "made": [stage.title for stage in done.made],
                "reused": [stage.title for stage in done.reused],
                "seconds": done.seconds,
                "report": str(folder),
            }
        )


@app.command()
def report(
    grid: GridName,
    quick: Quick = False,
    work: Work = _WORK,
    data: Data = _DATA,
    output: Output = None,
) -> None:
    """Write the report of a grid that has been run: Markdown, CSV, HTML and figures."""
    _written(_plan(grid, quick, work, data), output)


def _plan(grid: str, quick: bool, work: Path, data: Path) -> Plan:
    from labelkin.experiments.grid import read_grid
    from labelkin.experiments.plan import Plan

    return Plan(read_grid(grid, quick=quick), work, data)


def _written(plan: Plan, output: Path | None) -> Path:
    from labelkin.experiments.report import write_report

    folder = output or plan.work / "reports" / plan.grid.name
    write_report(plan, folder, " ".join(["labelkin", *sys.argv[1:]]))
    tell(f"Report: {folder / 'report.md'}, {folder / 'report.html'}.")
    return folder


class Board(Closing):
    """Shows which stage of how many a run is at, how far that is, and what is left of the whole."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._title = ""
        self._shown: tuple[int, Meter] | None = None

    def close(self) -> None:
        """The run is over."""
        self._stack.close()
        self._shown = None

    def begin(self, stage: Stage, number: int, total: int, seconds_left: float) -> None:
        """Name the stage."""
        self.close()
        title, left = f"{number}/{total} {stage.title}", seconds_text(seconds_left)
        if sys.stderr.isatty():
            self._title = f"{title.removesuffix(_WHOLE)} (all: {left})"
        else:
            self._title = title
            tell(f"{title} (about {left} left)")

    def progress(self, done: int, total: int, note: str) -> None:
        """Move the bar."""
        if self._shown is None or self._shown[0] != total:
            self._stack.close()
            self._shown = (total, self._stack.enter_context(meter(self._title, total)))
        self._shown[1].update(done, note)

    def end(self, stage: Stage, seconds: float) -> None:
        """Say so, if it took long."""
        self.close()
        if seconds >= _LONG:
            tell(f"{stage.title}: {seconds_text(seconds)}")
