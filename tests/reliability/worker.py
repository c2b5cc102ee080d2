"""The process that is killed: runs commands one after another, and says how far it is.

python tests/reliability/worker.py PLAN.json, of {"imports": [...], "commands": [[...], ...]}.

Before and after each command a line goes to standard output: `start N`, `done N EXIT SECONDS`.
Commands run in this process, so that a kill hits the command and not the start of Python.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for name in plan["imports"]:
        import_module(name)
    from labelkin.cli.main import app

    lines = os.dup(1)
    # What commands print is not looked at.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    for number, command in enumerate(plan["commands"]):
        os.write(lines, f"start {number}\n".encode())
        started = time.monotonic()
        try:
            app(command)
            code: object = 0
        except SystemExit as error:
            code = error.code or 0
        os.write(lines, f"done {number} {code} {time.monotonic() - started:.4f}\n".encode())


if __name__ == "__main__":
    main()
