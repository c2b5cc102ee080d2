"""Who imports whom: the table in docs/architecture.md is the rule, lazy imports included."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "labelkin"
# These belong to everyone: they import nothing of labelkin but one another.
FOUNDATION = (
    "_version",
    "atomic",
    "checksums",
    "closing",
    "compiled",
    "exceptions",
    "layout",
    "lazy",
    "memo",
    "outputs",
    "registry",
    "tensors",
    "wording",
)


def declared() -> dict[str, set[str]]:
    """For each package the packages that it may import, from the table in the documentation."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```imports\n(.*?)```", text, re.DOTALL)
    table = {}
    for line in block.splitlines():
        name, _, others = line.partition("→")
        table[name.strip()] = set(others.split())
    return table


def package_of(module: str) -> str:
    """The package, or the top-level module, that a dotted name belongs to."""
    parts = module.split(".")
    if len(parts) == 1:
        return "labelkin"
    return "foundation" if parts[1] in FOUNDATION else parts[1]


def imports(path: Path) -> set[str]:
    """Everything of labelkin that a module imports, wherever in the file."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            modules.add(node.module or "")
    return {module for module in modules if module.split(".")[0] == "labelkin"}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def own_package(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    if parts in (("__init__",), ("__main__",)):
        return "labelkin"
    return "foundation" if parts[0] in FOUNDATION else parts[0]


def test_every_package_is_in_the_table() -> None:
    assert {own_package(path) for path in modules()} == set(declared())


def test_the_table_has_no_cycle() -> None:
    left = dict(declared())
    while left:
        free = [name for name, others in left.items() if not others & (set(left) - {name})]
        assert free, f"a cycle among {sorted(left)}"
        for name in free:
            del left[name]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_what_its_package_may(path: Path) -> None:
    own = own_package(path)
    used = {package_of(module) for module in imports(path)} - {own, "foundation"}
    if own != "labelkin":
        # `from labelkin import __version__` and the like.
        used.discard("labelkin")
    assert used <= declared()[own], f"{own} may not import {sorted(used - declared()[own])}"


def test_the_foundation_stands_alone() -> None:
    for path in modules():
        if own_package(path) == "foundation":
            assert {package_of(module) for module in imports(path)} <= {"foundation", "labelkin"}
