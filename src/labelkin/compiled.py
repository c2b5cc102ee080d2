"""When to use code that numba compiles.

It gives the same results as NumPy and SciPy do, several times as fast, but loading it
takes as long as a few dozen suggestions, and a hundred megabytes. So it is for batches.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec


def can_compile() -> bool:
    """Whether numba is installed."""
    return find_spec("numba") is not None


def pays(items: int, worth: int) -> bool:
    """Whether to use compiled code: for at least `worth` items, or if it is loaded anyway."""
    return ("numba" in sys.modules or items >= worth) and can_compile()
