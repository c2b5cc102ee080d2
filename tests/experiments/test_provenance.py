from __future__ import annotations

import pytest

from labelkin.experiments.provenance import is_falling


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([], True),
        ([9, 8, 7, 6, 5], True),
        ([9, 8, 7, 6, 5, 4], True),
        ([9, 5, 5, 5, 5, 5], True),
        ([5, 5, 5, 5, 5, 5], False),
        ([5, 5.1, 5, 4.99, 4.98, 4.96], False),
        ([5, 5.1, 5, 4.99, 4.98, 4.94], True),
        ([5, 6, 7, 8, 9, 10], False),
    ],
)
def test_a_loss_falls_if_five_epochs_have_lowered_it(losses: list[float], expected: bool) -> None:
    assert is_falling(losses) is expected
