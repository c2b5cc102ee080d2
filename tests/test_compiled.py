from __future__ import annotations

import sys

import pytest

from labelkin import compiled


def test_compiled_code_is_for_many_lines_or_for_any_once_numba_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiled, "can_load", lambda: True)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    assert [compiled.pays(items, 100) for items in (99, 100)] == [False, True]
    monkeypatch.setitem(sys.modules, "numba", sys)
    assert compiled.pays(1, 100)
    monkeypatch.setattr(compiled, "can_load", lambda: False)
    assert not compiled.pays(100, 100)
