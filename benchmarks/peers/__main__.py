"""The command line: runs peers and writes the report."""

from __future__ import annotations

import argparse
import fcntl
import sys
from pathlib import Path

from labelkin.exceptions import LabelkinError

from .benchmark import Benchmark
from .datasets import DATA_SETS, ROOT, SHARED, Sample
from .meter import CommandError
from .registry import PEERS
from .report import report

WORK = ROOT / "benchmarks" / "work"
# The figures of all runs, from which the page can be made again.
PUBLISHED = ROOT / "results" / "peers"


def main() -> None:
    """Run what is asked for, publish its figures, and write the report from all published ones."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument(
        "peers",
        nargs="*",
        metavar="PEER",
        help=f"{', '.join(PEERS)}; a peer that is named is repeated if it is complete; "
        "without names, all that is missing is run",
    )
    parser.add_argument("--data", action="append", choices=tuple(DATA_SETS), help="default: all")
    parser.add_argument("--work", type=Path, help="folder of environments, models and results")
    parser.add_argument(
        "--collection",
        action="append",
        default=[],
        metavar="DATA=FOLDER",
        help="a trained collection for our methods; without one, `labelkin train` makes it",
    )
    parser.add_argument(
        "--sample", metavar="TRAIN:HELD_OUT", help="records of a small trial, such as 3000:200"
    )
    parser.add_argument(
        "--threads", type=int, default=1, help="threads of each peer; labelkin has one"
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds of throughput; 0 for none")
    parser.add_argument(
        "--report",
        type=Path,
        help="default: results/peers.md; for a sample, peers.md in the folder of --work",
    )
    parser.add_argument("--only-report", action="store_true", help="run nothing")
    given = parser.parse_args()
    unknown = [name for name in given.peers if name not in PEERS]
    if unknown:
        parser.error(f"no peer {unknown[0]!r}; known: {', '.join(PEERS)}")
    if not given.only_report and not SHARED.is_dir():
        sys.exit(f"no data in {SHARED}: put the shared data beside the project")
    try:
        collections = {name: Path(folder) for name, folder in map(_pair, given.collection)}
    except ValueError as error:
        parser.error(f"--collection takes DATA=FOLDER, not {error}")
    sample = None
    if given.sample is not None:
        sizes = given.sample.split(":")
        if len(sizes) != 2 or not all(one.isdecimal() and int(one) > 0 for one in sizes):
            parser.error(f"--sample takes TRAIN:HELD_OUT, such as 3000:200, not {given.sample!r}")
        sample = Sample(*map(int, sizes))
    if given.threads < 1:
        parser.error(f"--threads takes 1 or more, not {given.threads}")
    work = given.work or WORK / ("peers-sample" if sample else "peers")
    work.mkdir(parents=True, exist_ok=True)
    benchmark = Benchmark(work.resolve(), sample, collections, given.threads, given.rounds)
    names = given.data or list(DATA_SETS)
    try:
        failed = [] if given.only_report else _run_alone(benchmark, names, given.peers)
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command goes on with the step that was not finished")
    shown, page = benchmark, benchmark.work / "peers.md"
    if sample is None:
        benchmark.publish(PUBLISHED)
        shown, page = Benchmark(PUBLISHED), PUBLISHED.with_name("peers.md")
    output = given.report or page
    output.write_text(report(shown, output.with_name("figures")), encoding="utf-8")
    print(f"report: {output}")
    if failed:
        sys.exit(f"failed: {'; '.join(failed)}")


def _run_alone(benchmark: Benchmark, names: list[str], peers: list[str]) -> list[str]:
    """Run peers unless another run is at work in the folder; what has failed."""
    with (benchmark.work / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"{benchmark.work}: another run is at work there; wait or give another --work")
        return _run(benchmark, names, peers)


def _run(benchmark: Benchmark, names: list[str], peers: list[str]) -> list[str]:
    """Run peers on data sets; what has failed."""
    failed = []
    for name in names:
        try:
            benchmark.run(name, peers or list(PEERS), again=bool(peers))
            if benchmark.rounds:
                benchmark.measure_throughput(name)
        except (CommandError, LabelkinError, FileNotFoundError) as error:
            failed.append(f"{name}: {error}")
            continue
        data = benchmark.data(name)
        failed += [
            f"{name} {peer}"
            for peer in peers or PEERS
            if not benchmark.is_complete(PEERS[peer], data)
        ]
    benchmark.finish()
    return failed


def _pair(text: str) -> tuple[str, str]:
    name, _, folder = text.partition("=")
    if name not in DATA_SETS or not folder:
        raise ValueError(f"{text!r}; data sets are {', '.join(DATA_SETS)}")
    return name, folder


if __name__ == "__main__":
    main()
