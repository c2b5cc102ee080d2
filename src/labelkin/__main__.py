"""`python -m labelkin` is the `labelkin` command."""

from __future__ import annotations

import gc
import sys

# Objects from which on garbage is collected: with Python's default of 700, a tenth of a short
# command is collecting while modules are imported, which leave none. It stays so for long ones,
# whose garbage, mostly arrays, is freed by reference counts.
_GARBAGE = 100_000


def main() -> None:
    """Entry point of the command: an interrupt while it starts is not worth a traceback."""
    gc.set_threshold(_GARBAGE, *gc.get_threshold()[1:])
    try:
        from labelkin.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
