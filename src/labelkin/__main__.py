"""`python -m labelkin` is the `labelkin` command."""

from __future__ import annotations

from labelkin.cli.main import main

if __name__ == "__main__":
    main()
