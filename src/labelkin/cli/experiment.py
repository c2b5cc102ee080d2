"""`labelkin experiment`: grids of methods and settings, run and reported."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.cluster import ClusterProvider, OnMaster
from labelkin.cli.console import counted, print_json, print_message, seconds_text
from labelkin.cli.options import Json
from labelkin.cli.outputs import check_output
from labelkin.cli.progress import Meter, meter
from labelkin.closing import Closing

if TYPE_CHECKING:
    from collections.abc import Callable

    from labelkin.experiments.plan import Plan
    from labelkin.experiments.stage import Stage
    from labelkin.indexer import Indexer

app = typer.Typer(no_args_is_help=True, help="Run experiments: the paper's tables, or your own.")

GridName = Annotated[
    str, typer.Argument(metavar="GRID", help="paper, scale, or a TOML file of your own.")
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Run the small version of the grid, in minutes.")
]
Work = Annotated[
    Path, typer.Option(help="Where results of all stages are kept; grids can share it.")
]
Data = Annotated[Path, typer.Option(help="The folder that the grid's files are in.")]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="Where the report goes. Default: reports/GRID in --work."),
]

# Stages that take longer are reported when they end.
_LONG = 60.0
# Omitted from titles on a terminal.
_WHOLE = ", all documents"
_WORK, _DATA = Path("experiments"), Path("../shared/data")


@app.command()
def run(
    grid: GridName,
    quick: Quick = False,
    work: Work = _WORK,
    data: Data = _DATA,
    output: Output = None,
    on: OnMaster = None,
    json: Json = False,
) -> None:
    """Run a grid and write the report; finished stages are reused."""
    from labelkin.experiments.runner import run as run_plan

    _check_report(output)
    if on is not None:
        _check_cluster(on)
    plan = _plan(grid, quick, work, data)
    with Board() as board:
        done = run_plan(plan, board, None if on is None else _on_cluster(on, board))
    made, reused = counted(len(done.made), "stage"), counted(len(done.reused), "stage")
    print_message(f"{made} run in {seconds_text(done.seconds)}, {reused} reused.")
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
    _check_report(output)
    plan = _plan(grid, quick, work, data)
    _written(plan, output)


def _on_cluster(master: str, board: Board) -> Callable[[Indexer], ClusterProvider]:
    """Prepares collections to be analysed and searched on a cluster."""

    def prepare(indexer: Indexer) -> ClusterProvider:
        board.close()
        return ClusterProvider(indexer, master)

    return prepare


def _check_cluster(master: str) -> None:
    """Refuse what is no master before the first stage, which may take hours."""
    from labelkin.cluster.session import check_installed, check_master

    check_installed()
    check_master(master)


def _check_report(output: Path | None) -> None:
    if output is not None:
        check_output(output, folder=True)


def _plan(grid: str, quick: bool, work: Path, data: Path) -> Plan:
    from labelkin.experiments.grid import read_grid
    from labelkin.experiments.plan import Plan
    from labelkin.experiments.sources import MissingDataError

    try:
        return Plan(read_grid(grid, quick=quick), work, data)
    except MissingDataError as error:
        for line in error.lines:
            print_message(line)
        raise


def _written(plan: Plan, output: Path | None) -> Path:
    from labelkin.experiments.report import write_report

    folder = output or plan.work / "reports" / plan.grid.name
    write_report(plan, folder, " ".join(["labelkin", *sys.argv[1:]]))
    print_message(f"Report: {folder / 'report.md'}, {folder / 'report.html'}.")
    return folder


class Board(Closing):
    """Shows the current stage of a run, its progress, and the time left for all stages."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._title = ""
        self._shown: tuple[int, Meter] | None = None

    def close(self) -> None:
        """Remove the progress bar."""
        self._stack.close()
        self._shown = None

    def begin(self, stage: Stage, number: int, total: int, seconds_left: float) -> None:
        """Show the title of a stage."""
        self.close()
        title, left = f"{number}/{total} {stage.title}", seconds_text(seconds_left)
        if sys.stderr.isatty():
            self._title = f"{title.removesuffix(_WHOLE)} (all: {left})"
        else:
            self._title = title
            print_message(f"{title} (about {left} left)")

    def progress(self, done: int, total: int, note: str) -> None:
        """Move the bar."""
        if self._shown is None or self._shown[0] != total:
            self._stack.close()
            self._shown = (total, self._stack.enter_context(meter(self._title, total)))
        self._shown[1].update(done, note)

    def end(self, stage: Stage, seconds: float) -> None:
        """Report a stage that took long."""
        self.close()
        if seconds >= _LONG:
            print_message(f"{stage.title}: {seconds_text(seconds)}")
