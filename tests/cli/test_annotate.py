from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from labelkin.scoring.annotation_formats import WRITERS

Run = Callable[..., Result]


def test_annotate(run: Run) -> None:
    assert run("demo", "demo", "--documents", 200, "--json").exit_code == 0
    run("corpus", "convert", "demo", "-o", "d.jsonl")
    result = run("annotate", "demo", "d.jsonl", "-o", "out.jsonl")
    assert result.exit_code == 0
    assert "Annotated 200 documents in" in result.stderr
    lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    (alone,) = json.loads(
        run("suggest", "demo", "--json", "--title", lines[0]["title"], "--limit", 3).stdout
    )
    assert alone["suggestions"]
    assert [line["id"] for line in lines][:2] == ["demo-00001", "demo-00002"]
    as_json = run("annotate", "demo", "d.jsonl", "-o", "out.csv", "--json")
    assert json.loads(as_json.stdout)["documents"] == 200


OPTIONS = [
    ("-k", 3),
    ("--limit", 2),
    ("--threshold", 0.5),
    ("--include", "A"),
    ("--exclude", "A"),
    ("--limit", 30, "--fold-broader"),
]


@pytest.mark.parametrize("options", OPTIONS)
def test_options_mean_what_they_mean_to_suggest(run: Run, options: tuple[object, ...]) -> None:
    assert run("demo", "demo", "--documents", 200, "--json").exit_code == 0
    run("corpus", "convert", "demo", "-o", "all.jsonl")
    Path("d.jsonl").write_text("".join(Path("all.jsonl").read_text().splitlines(True)[:20]))
    assert run("annotate", "demo", "d.jsonl", "-o", "usual.jsonl").exit_code == 0
    assert run("annotate", "demo", "d.jsonl", "-o", "out.jsonl", *options).exit_code == 0
    suggested = json.loads(run("suggest", "demo", "d.jsonl", "--json", *options).stdout)

    def headings(records: list[dict[str, Any]]) -> list[list[tuple[str, float]]]:
        return [[(s["id"], s["score"]) for s in record["suggestions"]] for record in records]

    def written(name: str) -> list[list[tuple[str, float]]]:
        return headings([json.loads(line) for line in Path(name).read_text().splitlines()])

    assert written("out.jsonl") == headings(suggested)
    assert written("out.jsonl") != written("usual.jsonl")


@pytest.mark.parametrize("options", OPTIONS)
def test_a_journal_of_other_options_is_not_reused(
    run: Run, stopped: Callable[..., str], options: tuple[object, ...]
) -> None:
    stopped(*options)
    journal = Path(".o.jsonl.journal").read_bytes()
    again = run("annotate", "demo", "d.jsonl", "-o", "o.jsonl", *options, "--json")
    assert json.loads(again.stdout)["resumed"] == 60
    Path(".o.jsonl.journal").write_bytes(journal)
    other = run("annotate", "demo", "d.jsonl", "-o", "o.jsonl", "--json")
    assert json.loads(other.stdout)["resumed"] == 0


@pytest.fixture
def stopped(run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Annotate d.jsonl up to the point where the output is written; the journal stays."""
    assert run("demo", "demo", "--documents", 60, "--json").exit_code == 0
    run("corpus", "convert", "demo", "-o", "d.jsonl")

    def full(*_: object) -> None:
        raise OSError("no space")

    def stop(*options: object) -> str:
        with monkeypatch.context() as patched:
            patched.setitem(WRITERS, "jsonl", full)
            assert run("annotate", "demo", "d.jsonl", "-o", "o.jsonl", *options).exit_code == 1
        return "o.jsonl"

    return stop


def resumed(run: Run, output: str) -> int:
    result = run("annotate", "demo", "d.jsonl", "-o", output, "--json")
    found: int = json.loads(result.stdout)["resumed"]
    return found


def test_a_changed_text_of_the_same_length_is_noticed(run: Run, stopped: Callable[[], str]) -> None:
    output = stopped()
    text = Path("d.jsonl").read_text()
    title = json.loads(text.splitlines()[3])["title"]
    Path("d.jsonl").write_text(text.replace(json.dumps(title), json.dumps(title[::-1])))
    assert resumed(run, output) == 3
    written = Path(output).read_bytes()
    assert resumed(run, output) == 0
    assert Path(output).read_bytes() == written


def test_a_changed_setting_of_the_collection_is_noticed(
    run: Run, stopped: Callable[[], str]
) -> None:
    output = stopped()
    config = Path("demo/labelkin.toml")
    config.write_text(config.read_text().replace('language = "en"', 'language = "de"'))
    assert resumed(run, output) == 0


def test_the_input_is_not_overwritten(run: Run, stopped: Callable[[], str]) -> None:
    before = Path("d.jsonl").read_bytes()
    result = run("annotate", "demo", "d.jsonl", "-o", "./d.jsonl")
    assert result.exit_code == 1
    assert result.stderr == "error: d.jsonl: an input of this command; write to another file\n"
    assert Path("d.jsonl").read_bytes() == before
    Path("folder").mkdir()
    Path("d.jsonl").rename("folder/d.jsonl")
    for output in ("folder/d.jsonl", "folder/new.jsonl"):
        assert run("annotate", "demo", "folder", "-o", output).exit_code == 1
    assert Path("folder/d.jsonl").read_bytes() == before
    assert len(list(Path("folder").iterdir())) == 1


def test_a_link_is_the_file_it_leads_to(run: Run, stopped: Callable[[], str]) -> None:
    output = stopped()
    Path("link.jsonl").symlink_to(output)
    assert resumed(run, "link.jsonl") == 60
    assert Path("link.jsonl").is_symlink()
    assert len(Path(output).read_text().splitlines()) == 60


def test_standard_output(run: Run, stopped: Callable[[], str]) -> None:
    run("annotate", "demo", "d.jsonl", "-o", "o.jsonl")
    command = [sys.executable, "-m", "labelkin", "annotate", "demo", "d.jsonl", "-o", "-"]
    piped = subprocess.run(command, capture_output=True, check=True)
    assert piped.stdout == Path("o.jsonl").read_bytes()
    Path("appended.txt").write_text("before\n")
    with Path("appended.txt").open("ab") as file:
        subprocess.run(command, stdout=file, stderr=subprocess.DEVNULL, check=True)
    assert Path("appended.txt").read_bytes() == b"before\n" + piped.stdout
    assert run("annotate", "demo", "d.jsonl", "-o", "-", "--json").exit_code == 2


def test_killed_and_continued_to_the_same_output(run: Run) -> None:
    assert run("demo", "demo", "--documents", 3000, "--json").exit_code == 0
    run("corpus", "convert", "demo", "-o", "d.jsonl")
    assert run("annotate", "demo", "d.jsonl", "-o", "whole.jsonl").exit_code == 0
    command = [sys.executable, "-m", "labelkin", "annotate", "demo", "d.jsonl", "-o", "o.jsonl"]
    journal = Path(".o.jsonl.journal")
    sizes = []
    for _ in range(2):
        size = journal.stat().st_size if journal.exists() else 0
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while process.poll() is None and (not journal.exists() or journal.stat().st_size <= size):
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if journal.exists():
            sizes.append(journal.stat().st_size)
    assert sizes
    resumed = json.loads(run("annotate", "demo", "d.jsonl", "-o", "o.jsonl", "--json").stdout)
    assert resumed["documents"] == 3000
    assert Path("o.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()


@pytest.mark.parametrize("options", [(), ("--accept", 0.5, "--review", 0.2), ("--limit", 9)])
def test_bands_are_those_of_suggest(run: Run, reranked: str, options: tuple[object, ...]) -> None:
    assert run("annotate", reranked, "held.jsonl", "-o", "o.jsonl", *options).exit_code == 0
    written = [json.loads(line) for line in Path("o.jsonl").read_text().splitlines()]
    suggested = json.loads(run("suggest", reranked, "held.jsonl", "--json", *options).stdout)

    def headings(records: list[dict[str, Any]]) -> list[list[tuple[str, str]]]:
        return [[(s["id"], s["band"]) for s in record["suggestions"]] for record in records]

    assert headings(written) == headings(suggested)
    assert any(headings(written))


def many_documents(run: Run, count: int) -> None:
    """A small collection, and a file of so many documents (many.jsonl)."""
    assert run("demo", "demo", "--documents", 200, "--json").exit_code == 0
    run("corpus", "convert", "demo", "-o", "d.jsonl")
    records = [json.loads(line) for line in Path("d.jsonl").read_text().splitlines()]
    with Path("many.jsonl").open("w") as file:
        for number in range(count):
            record = records[number % len(records)]
            file.write(json.dumps(record | {"id": f"n{number}"}) + "\n")


@pytest.mark.parametrize("extension", ["jsonl", "npz"])
def test_several_processes_write_the_same(run: Run, extension: str) -> None:
    many_documents(run, 1700)
    for jobs in (1, 3):
        options = ("-o", f"{jobs}.{extension}", "--jobs", jobs)
        done = run("annotate", "demo", "many.jsonl", *options)
        assert done.exit_code == 0, done.stderr
        assert "Annotated 1,700 documents in" in done.stderr
    assert Path(f"1.{extension}").read_bytes() == Path(f"3.{extension}").read_bytes()
    for jobs in (0, 65, "two"):
        wrong = run("annotate", "demo", "many.jsonl", "-o", "out.jsonl", "--jobs", jobs)
        assert wrong.exit_code == 2


def children(pid: int) -> list[int]:
    """The processes that a process has started to annotate."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and b"spawn_main" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except (OSError, ValueError):
            continue
    return found


def started_with_jobs(run: Run) -> tuple[subprocess.Popen[str], list[int]]:
    """An annotation by two processes that has finished a batch, and these processes."""
    many_documents(run, 5000)
    command = [sys.executable, "-m", "labelkin", "annotate", "demo", "many.jsonl"]
    started = subprocess.Popen(
        [*command, "-o", "out.jsonl", "--jobs", "2"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    journal = Path(".out.jsonl.journal")
    while not (journal.exists() and journal.stat().st_size > 1000):
        assert started.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    workers = children(started.pid)
    assert len(workers) == 2
    return started, workers


def are_gone(processes: list[int]) -> bool:
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{one}/cmdline").exists() for one in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def check_continued(run: Run) -> None:
    """Whether the same command completes what was begun."""
    assert not Path("out.jsonl").exists()
    done = run("annotate", "demo", "many.jsonl", "-o", "out.jsonl")
    assert "Annotated 5,000 documents (" in done.stderr
    assert run("annotate", "demo", "many.jsonl", "-o", "whole.jsonl").exit_code == 0
    assert Path("out.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()


def test_a_process_that_is_killed_loses_no_finished_result(run: Run) -> None:
    started, workers = started_with_jobs(run)
    os.kill(workers[0], signal.SIGKILL)
    _, errors = started.communicate(timeout=60)
    assert started.returncode == 1
    assert "a process that annotates has ended" in errors
    assert "Traceback" not in errors
    assert are_gone(workers)
    check_continued(run)


@pytest.mark.parametrize("signals", [[signal.SIGINT] * 2, [signal.SIGTERM], [signal.SIGKILL]])
def test_no_process_outlives_the_one_that_started_it(
    run: Run, signals: list[signal.Signals]
) -> None:
    started, workers = started_with_jobs(run)
    for number in signals:
        if number == signal.SIGINT:
            # As a terminal does: to all processes.
            os.killpg(started.pid, number)
        else:
            started.send_signal(number)
    _, errors = started.communicate(timeout=30)
    assert started.returncode != 0
    assert "Traceback" not in errors
    assert are_gone(workers)
    if signals == [signal.SIGKILL]:
        check_continued(run)
