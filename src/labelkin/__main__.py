"""`python -m labelkin` is the `labelkin` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the command: an interrupt while it starts is not worth a traceback."""
    try:
        from labelkin.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
