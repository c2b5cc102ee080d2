from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable

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
