"""From text to index terms."""

from __future__ import annotations

from labelkin.represent.cache import TermCache
from labelkin.represent.kind import TermKind
from labelkin.represent.representation import KINDS, Representation, make_representation

__all__ = ["KINDS", "Representation", "TermCache", "TermKind", "make_representation"]
