"""From text to index terms."""

from __future__ import annotations

from labelkin.represent.cache import TermCache
from labelkin.represent.kind import Analysis, TermKind
from labelkin.represent.representation import KINDS, Representation, make_representation

__all__ = ["KINDS", "Analysis", "Representation", "TermCache", "TermKind", "make_representation"]
