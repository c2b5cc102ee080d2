from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the extra `serve`")

from ..served import Running, copied, running  # noqa: E402

Start = Callable[..., Running]


@pytest.fixture
def start(small: Path, tmp_path: Path) -> Iterator[Start]:
    """Serve a copy of the small collection, or what is given, until the test ends."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def enter(path: Path | None = None, **settings: Any) -> Running:
            path = path or copied(small, tmp_path)
            return stack.enter_context(running({"demo": path}, **settings))

        yield enter


@pytest.fixture
def writable(start: Start) -> Running:
    """A service whose collection the test may change."""
    return start()
