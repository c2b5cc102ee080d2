"""`--on MASTER` without Spark: tasks run in this process, and results are those of one machine."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from labelkin.cli.cluster import warm_up_here
from labelkin.cli.exits import TRY_AGAIN
from labelkin.cluster import replica, session
from labelkin.cluster.annotation import _open_annotator
from labelkin.cluster.replica import open_replica
from labelkin.corpus import Document
from labelkin.exceptions import ModelNotFoundError
from labelkin.indexer import Indexer
from labelkin.store.config import update_config
from labelkin.store.snapshot import Snapshot

from ..inline_session import InlineSession  # noqa: TID252

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def inline(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[InlineSession]]:
    """The sessions that commands have started; what their tasks have opened is closed."""
    opened: list[Indexer] = []
    sessions: list[InlineSession] = []

    def started(*_: object) -> InlineSession:
        sessions.append(InlineSession())
        return sessions[-1]

    open_indexer = Indexer.open

    def noted(path: Path, *, read_only: bool = False, **options: Any) -> Indexer:
        indexer = open_indexer(path, read_only=read_only, **options)
        if read_only:
            opened.append(indexer)
        return indexer

    monkeypatch.setattr(session, "check_installed", lambda: None)
    monkeypatch.setattr(session, "Session", started)
    monkeypatch.setattr(Indexer, "open", noted)
    yield sessions
    for indexer in opened:
        indexer.close()
    open_replica.cache_clear()
    _open_annotator.cache_clear()


def test_annotate(run: Run, demo: str) -> None:
    assert run("annotate", demo, "held.jsonl", "-o", "here.jsonl").exit_code == 0
    assert run("annotate", demo, "held.jsonl", "-o", "there.jsonl", "--on", "local").exit_code == 0
    assert Path("there.jsonl").read_bytes() == Path("here.jsonl").read_bytes()
    assert not list(Path(demo, "cache", ".cluster", "annotations").iterdir())


def test_standard_output_is_continued(
    run: Run, demo: str, inline: list[InlineSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labelkin.scoring.annotation._BATCH", 30)
    assert run("annotate", demo, "held.jsonl", "-o", "here.jsonl").exit_code == 0
    asked = ("annotate", demo, "held.jsonl", "-o", "-", "--on", "local")
    with monkeypatch.context() as interrupted:
        interrupted.setattr("labelkin.scoring.journal.Journal.records", _interrupted)
        assert run(*asked).exit_code != 0
    assert run(*asked).stdout.encode() == Path("here.jsonl").read_bytes()
    assert [one.count for one in inline] == [4, 0]
    assert not list(Path(demo, "cache", ".cluster", "annotations").iterdir())


def _interrupted(_: object) -> None:
    raise KeyboardInterrupt


def test_eval(run: Run, demo: str) -> None:
    asked = ("eval", demo, "held.jsonl", "--json")
    assert run(*asked, "--on", "local").stdout == run(*asked).stdout


@pytest.mark.parametrize("command", ["annotate", "eval"])
def test_settings_that_change_while_the_collection_is_copied(
    run: Run, demo: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = replica.make_replica

    def changed(*arguments: Any) -> Any:
        update_config(Path(demo, "labelkin.toml"), {"neighbours": {"max_query_terms": 9}})
        return make(*arguments)

    monkeypatch.setattr(replica, "make_replica", changed)
    output = ("-o", "out.jsonl") if command == "annotate" else ()
    result = run(command, demo, "held.jsonl", *output, "--on", "local")
    assert result.exit_code == TRY_AGAIN
    (line,) = [line for line in result.stderr.splitlines() if "try again" in line]
    assert "its model or settings have changed while it was copied" in line
    assert not Path("out.jsonl").exists()


@pytest.mark.parametrize("command", ["annotate", "eval"])
def test_a_failing_first_record_is_named(
    run: Run, demo: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = Path("held.jsonl").read_text().splitlines()
    bad = {**json.loads(lines[0]), "id": "bad", "title": "unlikeable"}
    Path("d.jsonl").write_text("\n".join([json.dumps(bad), *lines[1:]]) + "\n")
    prepared = Snapshot.prepared

    def picky(self: Snapshot, documents: list[Document]) -> list[Document]:
        # The warm-up fails as well.
        if any(one.title == "unlikeable" or one.title == "" for one in documents):
            raise ValueError("I do not like it")
        return prepared(self, documents)

    monkeypatch.setattr(Snapshot, "prepared", picky)
    output = ("-o", "out.jsonl") if command == "annotate" else ()
    result = run(command, demo, "d.jsonl", *output, "--on", "local")
    assert result.exit_code == (3 if command == "annotate" else 1)
    assert "d.jsonl, line 1: bad: ValueError: I do not like it" in result.stderr


@pytest.mark.parametrize(
    ("error", "is_raised"),
    [
        (ValueError("of a text"), False),
        (ModelNotFoundError("no model; train"), True),
        (OSError(errno.ENOSPC, "No space left on device"), True),
    ],
)
def test_a_warm_up_that_fails(error: Exception, is_raised: bool) -> None:
    def work(documents: list[Document]) -> None:
        raise error

    if is_raised:
        with pytest.raises(type(error)):
            warm_up_here(work)
    else:
        warm_up_here(work)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("neighbours", "demo", "held.jsonl", "-o", "o.npz", "--representation", "lsa"), "is not"),
        (("neighbours", "demo", "held.jsonl", "-o", "o.npz", "--representation", "foo"), "no repr"),
        (("build", "demo", "--representation", "foo"), "no representation 'foo'"),
    ],
)
def test_a_representation_is_checked_before_spark_starts(
    run: Run, demo: str, inline: list[InlineSession], command: tuple[str, ...], reason: str
) -> None:
    result = run(*command, "--on", "local")
    assert result.exit_code == 1
    assert reason in result.stderr
    assert not inline


def test_a_master_is_checked_before_the_first_stage(run: Run) -> None:
    result = run("experiment", "run", "paper", "--on", "foo")
    assert result.exit_code == 1
    assert "'foo' is no master of Spark" in result.stderr
