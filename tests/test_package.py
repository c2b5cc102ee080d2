from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from subprocess import run

import pytest

import labelkin

ROOT = Path(__file__).parents[1]


def test_exported_names_are_sorted_and_there() -> None:
    assert labelkin.__all__ == sorted(labelkin.__all__)


@pytest.mark.parametrize(
    "name", ["labelkin", "labelkin.corpus", "labelkin.store", "labelkin.vocab"]
)
def test_names_that_are_imported_when_used(name: str) -> None:
    """Those of a package are all there, listed before they are used, and no others."""
    package = import_module(name)
    for exported in package.__all__:
        assert getattr(package, exported) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        package.nonsense  # noqa: B018
    listed = run(
        [sys.executable, "-c", f"import {name}; print(*dir({name}))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert {*package.__all__} <= {*listed.stdout.split()}


def test_every_dependency_is_pinned() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        wanted += extra
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    names = {re.split(r"[><=\[]", requirement)[0].lower() for requirement in wanted}
    assert names <= pinned


def test_the_changelog_knows_this_version() -> None:
    assert f"[{labelkin.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("pattern", [r"\bpickle\.", r"allow_pickle=True", r"\beval\(", r"\bexec\("])
def test_nothing_runs_code_from_data(pattern: str) -> None:
    for path in (ROOT / "src").rglob("*.py"):
        assert not re.search(pattern, path.read_text()), path


def test_errors_have_their_place_in_the_tree() -> None:
    from labelkin import exceptions

    drawn = exceptions.__doc__ or ""
    for name, value in vars(exceptions).items():
        if isinstance(value, type):
            assert issubclass(value, exceptions.LabelkinError)
            assert name in drawn
