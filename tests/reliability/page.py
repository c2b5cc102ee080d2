"""results/reliability.md, from the files that kills, faults, fuzzing and loads have left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .kills import COMPARISON, KINDS
from .records import read

Row = Mapping[str, Any]

HEAD = """# Reliability

What happens to a collection when processes are killed, disks fail, clocks jump and files lie; and
how soon a record counts. `make soak` measures again: kills, faults, readers with a writer, and one
record by votes. It leaves out fuzzing (`make fuzz`), one record with the reranker
(`benchmarks/one_record.py --trained`) and editions (`benchmarks/editions.py`); their rows stay.
`python -m tests.reliability report` writes this page from the rows in [reliability/](reliability).
Each section names its command.
"""

KILLS = """## Kills

`python -m tests.reliability kills`: a process runs one command after another and is killed with
SIGKILL at a random moment of one of them. Then everything that is stored (texts, headings and their
order, major headings, revisions, metadata, concepts) is compared with what was acknowledged, the
collection is opened and checked as `labelkin doctor` does, and the next kill hits the same one.
`serve` is the service under load from clients that write. *Hit* are kills before the command had
ended. Of what was under way, nothing may be stored, or whole batches of it (of `vocab update`, the
old edition or the new one).
"""

FAULTS = """## Faults of the disk and the clock

`python -m tests.reliability faults`: a shim below the process (LD_PRELOAD,
`tests/reliability/faults.c`) lets the Nth write, sync, truncation, rename or read fail, once or
from then on, below SQLite, the indexes and all other files. A command must succeed, or end with one
line that says what is wrong; then the collection must open, be sound, and hold what was
acknowledged; without the fault, the same command must do the rest. The clock jumps back by a day
while files are dated tomorrow. A disk that is read-only, or full, is also tested with a real
mounted file system (`tests/reliability/test_faults.py`).
"""

FUZZ = """## Fuzzed inputs

`make fuzz`: [atheris](https://github.com/google/atheris), guided by coverage, changes valid files
of each format. A reader must accept a file or refuse it with one of labelkin's errors, within time
and memory, and must write nothing outside of its folder. Bodies of requests are fuzzed with
schemathesis and hypothesis (`make peers`, `tests/serve/test_malformed.py`), beside these figures.
An input that breaks a promise ends its run. Three were found: an exponent that no decimal holds
and an integer of thousands of digits in JSON (the second ended the process within ijson), and an
.npz file whose members lie before its beginning. Each is mended, has a test in
`tests/test_untrusted.py`, and its readers were fuzzed again.
"""

LOAD = """## Readers and a writer

`make soak` (`make load` for a minute of the service): ten minutes of eight readers and a writer.
*Threads*: eight threads ask with all methods and settings while a ninth adds and removes, and
answers are computed again by one thread on a copy. *Service*: clients read and write through HTTP,
and every write is compared with what is stored. An answer is old if it lacks a write that was
acknowledged before it was asked for: the age is the time between.
"""

ONE_RECORD = """## One record

`python benchmarks/one_record.py`: a process has the collection open and asks all the time, while
`labelkin learn` runs beside it with one record. *Effect* is the time from the start of the
command, in a fresh process, to the first answer of the other process with the record's heading
(of `rerank`, which need not suggest what one record carries: the first that rests on a state with
the record); *request* is the CPU time of that answer. Medians of nine. The rows of `rerank` need
`--trained`, a copy of mesh47k with its models.
"""

REST = """## Editions and formats

- MeSH 2016 → 2026 on mesh47k, with quality before, after and undone, and 20 kills:
  [editions.md](editions.md). Other kills during `vocab update` are in the table above.
- Collections of each earlier format open: `tests/test_kept_collections.py`, with the fixtures in
  `tests/fixtures`.
- Longer tests of writers and of the service: [soak.md](soak.md).
"""


def write_page(results: Path) -> None:
    """Write results/reliability.md from the rows beside it."""
    sections = (
        (KILLS, kills, "kills.jsonl"),
        (FAULTS, faults, "faults.jsonl"),
        (FUZZ, fuzzed, "fuzz.jsonl"),
        (LOAD, loads, "load.jsonl"),
        (ONE_RECORD, records, "one-record.jsonl"),
    )
    parts = [HEAD]
    for text, tables, name in sections:
        rows = read(results / name)
        parts.append("\n".join([text, *tables(rows), ""] if rows else [text, "Not run yet.", ""]))
    parts.append(REST)
    (results.parent / "reliability.md").write_text("\n".join(parts), encoding="utf-8")


def kills(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each kind of work."""
    found = {one["kind"] for one in rows}
    head = ("work", "kills", "hit", "acknowledged", "documents compared", "nothing", "part", "all")
    yield from table(
        (*head, "lost or damaged"),
        [
            _killed(name, [one for one in rows if name in (one["kind"], "all of them")])
            for name in [*(kind for kind in KINDS if kind in found), "all of them"]
        ],
    )
    if older := [kind for kind in KINDS if any(_is_older(one, kind) for one in rows)]:
        yield ""
        yield (
            f"After kills of {', '.join(f'`{kind}`' for kind in older)} the comparison lacked the "
            "order of headings, major headings, revisions, metadata and parts of concepts: these "
            "rows are older than the others."
        )


def _is_older(row: Row, kind: str) -> bool:
    """Whether a kill of a kind was followed by an earlier, narrower comparison."""
    return row["kind"] == kind and row.get("comparison") != COMPARISON


def _killed(name: str, rows: Sequence[Row]) -> list[object]:
    stored = Counter(one["stored"] for one in rows if one["is_hit"])
    return [
        name,
        len(rows),
        *(sum(one[key] for one in rows) for key in ("is_hit", "acknowledged", "compared")),
        *(stored[one] for one in ("nothing", "part", "all")),
        sum(bool(one["problem"]) for one in rows),
    ]


def faults(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each kind of fault, and what went wrong."""
    head = ("fault", "commands", "succeeded", "one line", "nothing stored", "some", "all", "harm")
    yield from table(
        head,
        [
            _failed(name, [one for one in rows if name in (one["kind"], "all of them")])
            for name in [*dict.fromkeys(one["kind"] for one in rows), "all of them"]
        ],
    )
    for one in rows:
        if one["problem"]:
            yield f"- {one['kind']}, `{one['command']}`, call {one['call']}: {one['problem']}"


def _failed(name: str, rows: Sequence[Row]) -> list[object]:
    stored = Counter(one["stored"] for one in rows)
    succeeded = sum(one["code"] == 0 for one in rows)
    return [
        name,
        len(rows),
        succeeded,
        len(rows) - succeeded,
        *(stored[one] for one in ("nothing", "some", "all")),
        sum(bool(one["problem"]) for one in rows),
    ]


def fuzzed(rows: Sequence[Row]) -> Iterator[str]:
    """Inputs of each target over all runs."""
    names = [*dict.fromkeys(one["target"] for one in rows)]
    lines = [
        [
            name,
            *(
                sum(one[key] for one in rows if one["target"] == name)
                for key in ("inputs", "seconds")
            ),
            sum(bool(one["failed"]) for one in rows if one["target"] == name),
            int(bool([one for one in rows if one["target"] == name][-1]["failed"])),
        ]
        for name in names
    ]
    total = [sum(one[place] for one in lines) for place in (1, 2, 3, 4)]
    head = ("reader", "inputs", "seconds", "runs that broke a promise", "of these, the last run")
    yield from table(head, [*lines, ["all of them", *total]])


def loads(rows: Sequence[Row]) -> Iterator[str]:
    """The last run of each kind."""
    last = {one["test"]: one for one in rows}
    keys = (
        ("seconds", "seconds"),
        ("readers", "readers"),
        ("writers", "writers"),
        ("reads", "answers"),
        ("different answers", "different answers"),
        ("writes", "writes"),
        ("documents compared", "documents compared"),
        ("errors", "errors"),
        ("oldest when asked", "age of the oldest answer when asked for, s"),
        ("oldest when answered", "the same when it came, s"),
        ("megabytes", "memory after the first part and at the end, MB"),
        ("descriptors", "open files, likewise"),
    )
    yield from table(
        ("", *last),
        [
            [shown, *(_shown(one.get(key)) for one in last.values())]
            for key, shown in keys
            if any(key in one for one in last.values())
        ],
    )


def _shown(value: Any) -> object:
    if isinstance(value, list):
        return ", ".join(f"{one:,}" for one in value)
    return "" if value is None else value


def records(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each collection, method and kind of record."""
    head = ("documents", "method", "record", "command, s", "command, CPU-s")
    yield from table(
        (*head, "effect, s", "slowest effect, s", "request, CPU-ms"),
        [
            [
                *(one[key] for key in ("documents", "method", "record")),
                *(f"{one[key]:.2f}" for key in ("command", "command, CPU", "effect")),
                f"{one['slowest effect']:.2f}",
                f"{1e3 * one['request, CPU']:.0f}",
            ]
            for one in rows
        ],
    )


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """A table in Markdown; numbers have their thousands apart."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        cells = (f"{one:,}" if isinstance(one, int | float) else str(one) for one in row)
        yield f"| {' | '.join(cells)} |"
