from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the extra `serve`")

from ..served import Running, copied, running

Start = Callable[..., Running]


@pytest.fixture
def start(small: Path, tmp_path: Path) -> Iterator[Start]:
    """Serve a copy of the small collection, or what is given, until the test ends."""
    with ExitStack() as stack:

        def enter(path: Path | None = None, **settings: Any) -> Running:
            path = path or copied(small, tmp_path)
            return stack.enter_context(running({"demo": path}, **settings))

        yield enter


@pytest.fixture(scope="module")
def writable(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service whose collection the tests of a module may change."""
    path = copied(small, tmp_path_factory.mktemp("writable"))
    with running({"demo": path}) as service:
        yield service
