from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from labelkin import __version__

Run = Callable[..., Result]

# CPU-seconds; a new start of Python alone takes about 0.03.
HELP_BUDGET = 0.4
HEAVY = "numpy|scipy|lxml|rdflib|pydantic|sqlite3|torch|spacy|faiss|tantivy"

# What one text with --json, whose language is known, can do without.
UNNEEDED = r"scipy|lxml|rdflib|rich|langcodes|py3langid|labelkin\.(demo|evaluate)(\..*)?"


def test_version(run: Run) -> None:
    assert run("--version").stdout == f"labelkin {__version__}\n"


def test_help_names_every_verb(run: Run) -> None:
    text = run("--help").stdout
    for verb in ("init", "add", "remove", "info", "train", "compare", "vocab", "corpus", "demo"):
        assert re.search(rf"\b{verb}\b", text)


def test_help_is_fast() -> None:
    def cpu_seconds() -> float:
        before = os.times()
        command = [sys.executable, "-m", "labelkin", "--help"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        return (
            after.children_user
            - before.children_user
            + after.children_system
            - before.children_system
        )

    # Work on a sibling core inflates CPU time; one undisturbed start is enough to tell.
    assert any(cpu_seconds() < HELP_BUDGET for _ in range(15))


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, re, labelkin.cli.main; "
        f"print([name for name in sys.modules if re.fullmatch({HEAVY!r}, name)])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_suggest_imports_only_what_it_needs(run: Run) -> None:
    assert run("demo", "demo", "--documents", 100, "--json").exit_code == 0
    assert run("build", "demo").exit_code == 0
    code = (
        "import sys, re; from labelkin.cli.main import app; "
        "app(['suggest', 'demo', '--title', 'Wheat', '--json'], standalone_mode=False); "
        f"print([name for name in sys.modules if re.fullmatch({UNNEEDED!r}, name)])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    environment = {**os.environ, "_LABELKIN_COMPLETE": f"source_{shell}"}
    code = "import sys; sys.argv = ['labelkin']; from labelkin.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert "labelkin" in done.stdout


@pytest.mark.parametrize("option", ["--verbose", "-v"])
@pytest.mark.parametrize(
    "verb",
    [("info", "c"), ("vocab", "show", "c", "Oats"), ("corpus", "stats", "c.jsonl")],
    ids=lambda verb: verb[0],
)
def test_verbose_before_and_after_the_verb(
    run: Run, collection: Path, verb: tuple[str, ...], option: str
) -> None:
    level = logging.getLogger("labelkin")
    for arguments, expected in (
        ((option, *verb), logging.DEBUG),
        ((*verb, option), logging.DEBUG),
        ((verb[0], option, *verb[1:]) if verb[0] == "info" else (*verb, option), logging.DEBUG),
        (verb, logging.INFO),
    ):
        assert run(*arguments).exit_code == 0
        assert level.level == expected


def test_every_verb_has_the_option_verbose() -> None:
    from typer.main import get_command

    from labelkin.cli.main import app

    def leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
        if not hasattr(command, "commands"):
            yield name, command
            return
        for one in command.commands:
            yield from leaves(command.commands[one], f"{name} {one}")

    verbs = dict(leaves(get_command(app), "labelkin"))
    assert len(verbs) > 20
    for name, command in verbs.items():
        options = [option for one in command.params for option in one.opts]
        assert options.count("--verbose") == 1, name


def test_output_cut_off_by_the_reader_is_no_error() -> None:
    code = (
        f"{sys.executable} -c 'from labelkin.cli.console import print_json; "
        "from labelkin.cli.main import app; "
        'app.command("flood")(lambda: print_json(list(range(10**6)))); '
        'import sys; sys.argv = ["labelkin", "flood"]; app()\' | head -1'
    )
    done = subprocess.run(code, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout == "[\n"
    assert done.stderr == ""
