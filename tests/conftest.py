from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from ctypes.util import find_library
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from labelkin.corpus import Document
from labelkin.vocab import Concept, Vocabulary

if TYPE_CHECKING:
    from .served import Running

# Machines are noisy; a slow example is no failure. The same examples every time: a test that
# passes once passes again (unset for a hunt: HYPOTHESIS_PROFILE=default).
settings.register_profile("labelkin", deadline=None, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "labelkin"))

# LightGBM is installed but cannot be loaded: its tests are skipped as if it were not there.
LIGHTGBM_LACKS_OPENMP = find_spec("lightgbm") is not None and find_library("gomp") is None
if LIGHTGBM_LACKS_OPENMP:
    sys.modules["lightgbm"] = None  # type: ignore[assignment]


def pytest_report_header() -> list[str]:
    if LIGHTGBM_LACKS_OPENMP:
        return ["LightGBM cannot be loaded, its tests are skipped: apt-get install libgomp1"]
    return []


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    """A command of one test must not print what the library logs in the next."""
    logger = logging.getLogger("labelkin")
    level, handlers, propagate = logger.level, logger.handlers, logger.propagate
    yield
    logger.setLevel(level)
    logger.handlers, logger.propagate = handlers, propagate


SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data; tests that ask for it are skipped where it is not."""
    if not SHARED_DATA.is_dir():
        pytest.skip("needs the real data in ../shared/data")
    return SHARED_DATA


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file into the test's own folder and return its path."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture
def vocabulary() -> Vocabulary:
    """Five concepts with all that a concept can have."""
    return Vocabulary(
        [
            Concept("V1", {"en": "Bread", "de": "Brot"}, notations=("A01",)),
            Concept(
                "V2",
                {"en": "Bread, Rye", "de": "Roggenbrot"},
                {"en": ("Rye Bread", "Dark Loaf")},
                notations=("A01.100",),
                broader=("V1",),
            ),
            Concept("V3", {"en": "Oats"}, {"en": ("Avena", "Dark Loaf")}, related=("V1",)),
            Concept("http://example.org/v#V4", {"en": "Barley"}, schemes=("http://example.org/v",)),
            Concept("V5", {"en": "Malt (Old)"}, deprecated=True, replaced_by=("V3",)),
        ]
    )


@pytest.fixture
def documents() -> list[Document]:
    """Three documents: labels by id, by name, and none."""
    return [
        Document("d1", "Baking with rye", "Dense and dark.", language="en", labels=("V1", "V2")),
        Document("d2", "Porridge", "Oats at dawn.", language="en", labels=("oats",)),
        Document("d3", "An empty field", "Nothing grows.", language="en"),
    ]


@contextmanager
def _mounted(path: Path, *options: str) -> Iterator[Callable[..., None]]:
    """A small file system in memory; the yielded function remounts it with other options."""
    path.mkdir()

    def mount(*extra: str) -> None:
        command = ["mount", "-t", "tmpfs", "-o", ",".join((*extra, *options)), "tmpfs", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"cannot mount a file system here: {done.stderr.strip()}")

    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs the right to mount a file system")
    mount()
    try:
        yield mount
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.fixture
def mounted() -> Callable[..., AbstractContextManager[Callable[..., None]]]:
    """Mount a small file system; skips where that is not allowed."""
    return _mounted


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection with all models that can be trained here; tests that write copy it."""
    from .runtime_data import make_trained
    from .served import ODD_CONCEPTS

    path = tmp_path_factory.mktemp("trained") / "demo"
    make_trained(path, ODD_CONCEPTS)
    return path


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection without models; tests that write copy it."""
    from .served import make_small

    return make_small(tmp_path_factory.mktemp("small") / "demo")


@pytest.fixture(scope="session")
def live(trained: Path, small: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that tests only read: `demo` with models, `small` without, `empty`."""
    pytest.importorskip("fastapi", reason="needs the extra `serve`")
    from labelkin import Indexer

    from .served import running

    empty = tmp_path_factory.mktemp("empty") / "empty"
    with Indexer.create(empty):
        pass
    with running({"demo": trained, "small": small, "empty": empty}) as service:
        yield service
