"""Kills and faults as commands, and the page that they are the evidence for.

    python -m tests.reliability kills --count 500     # rows go to results/reliability/kills.jsonl
    python -m tests.reliability faults --count 4      # ... results/reliability/faults.jsonl
    python -m tests.reliability report                # results/reliability.md

Results are kept line by line: an interrupted run goes on where it was. With --again, a run starts
anew: it drops the rows that it measures.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
from collections import Counter
from itertools import chain
from pathlib import Path

from .faults import Bench, clock_faults, compile_shim, faults, limit_faults
from .kills import KINDS, Kill, kill_many
from .page import write_page
from .records import RESULTS, append, read, write

# A training takes five times as long as anything else.
SHARES = {"train": 0.5}


def spread(count: int, kinds: list[str], done: Counter[str]) -> dict[str, int]:
    """How many kills of each kind are still to be done, of so many or a few more."""
    shares = {kind: SHARES.get(kind, 1.0) for kind in kinds}
    each = count / sum(shares.values())
    wanted = {kind: math.ceil(each * share) for kind, share in shares.items()}
    return {kind: max(number - done[kind], 0) for kind, number in wanted.items()}


def run_kills(count: int, kinds: list[str], results: Path, *, again: bool = False) -> int:
    """Kill until there are so many in the results; 1 if something was lost or damaged."""
    before = done = read(results)
    if again:
        done = [one for one in before if one["kind"] not in kinds]
        write(results, done)
    counts = spread(count, kinds, Counter(one["kind"] for one in done))
    folder = Path(tempfile.mkdtemp(prefix="labelkin-kills-"))

    def note(kill: Kill) -> None:
        append(results, kill.row())
        state = f"PROBLEM {kill.problem}" if kill.problem else kill.stored
        print(f"{kill.kind:8} {kill.moment:6.3f} s  {kill.seconds:5.1f} s  {state}", flush=True)

    # Other moments than those of the runs before.
    kills = kill_many(counts, folder, note, seed=len(before))
    if any(kill.problem for kill in kills):
        print(f"The collections are in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


def run_faults(count: int, results: Path, *, again: bool = False) -> int:
    """Let calls of every command fail, and the clock jump; 1 if that does harm."""
    before = read(results)
    done = {(one["kind"], one["command"], one["call"]) for one in before if not again}
    failed = 0
    with tempfile.TemporaryDirectory(prefix="labelkin-faults-") as name:
        shim = compile_shim(Path(name))
        if shim is None:
            print("needs Linux and a C compiler")
            return 1
        bench = Bench(Path(name), shim)
        if again:
            write(results, [])
        # Another run takes other calls.
        made = chain(
            clock_faults(bench), limit_faults(bench), faults(bench, count, seed=len(before))
        )
        for fault in made:
            if (fault.kind, fault.command, fault.call) not in done:
                append(results, fault.row())
            failed += bool(fault.problem)
            state = f"PROBLEM {fault.problem}" if fault.problem else fault.line
            print(f"{fault.kind:24} {fault.command:24} {fault.code} {state}", flush=True)
    return 1 if failed else 0


def main() -> int:
    """Run a command."""
    parser = argparse.ArgumentParser(prog="python -m tests.reliability", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    kills = commands.add_parser("kills", help="SIGKILL at random moments.")
    kills.add_argument("--count", type=int, default=500, help="Over all kinds.")
    kills.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    kills.add_argument("--results", type=Path, default=RESULTS / "kills.jsonl")
    failing = commands.add_parser("faults", help="Errors of the disk, jumps of the clock.")
    failing.add_argument("--count", type=int, default=4, help="Of each kind for each command.")
    failing.add_argument("--results", type=Path, default=RESULTS / "faults.jsonl")
    for command in (kills, failing):
        command.add_argument("--again", action="store_true", help="Start the rows anew.")
    page = commands.add_parser("report", help="Write the page.")
    page.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.command == "report":
        write_page(given.results)
        return 0
    if given.command == "faults":
        return run_faults(given.count, given.results, again=given.again)
    return run_kills(given.count, given.kinds, given.results, again=given.again)


if __name__ == "__main__":
    sys.exit(main())
