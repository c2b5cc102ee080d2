"""Code that numba compiles, and when to use it.

It gives the same results as NumPy and SciPy do, several times as fast, but loading it
takes as long as a few dozen suggestions, and a hundred megabytes. So it is loaded for batches
and for explanations only; once it is, single texts use it too.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from typing import TypeVar, cast

logger = logging.getLogger(__name__)

Function = TypeVar("Function", bound=Callable[..., object])


def can_compile() -> bool:
    """Whether numba is installed."""
    return find_spec("numba") is not None


@cache
def can_load() -> bool:
    """Whether numba is installed and can be imported, which takes a while."""
    if not can_compile():
        return False
    try:
        import numba  # noqa: F401
    except Exception as error:
        logger.warning("numba cannot be loaded (%s); batches take longer", error)
        return False
    return True


def pays(items: int, worth: int) -> bool:
    """Whether to use compiled code for some items.

    It is for at least `worth` of them, or for any number if numba is loaded anyway.
    """
    return (items >= worth or "numba" in sys.modules) and can_load()


def compile_function(*, fastmath: bool = False) -> Callable[[Function], Function]:
    """Have a function compiled when it is first called; cached on disk, if possible.

    Dividing by zero is no error, so that loops with a division can be vectorised. With
    `fastmath`, floats may be compared and added in any order. The cache does not know these
    options: a kernel whose file does not change keeps those that it was compiled with.
    """
    from numba import njit

    compiler = partial(njit, nogil=True, error_model="numpy", fastmath=fastmath)

    def decorate(function: Function) -> Function:
        try:
            compiled = compiler(cache=True)(function)
        except RuntimeError:
            # Neither the package's folder nor the user's cache can be written to.
            compiled = compiler()(function)
        return cast(Function, compiled)

    return decorate
