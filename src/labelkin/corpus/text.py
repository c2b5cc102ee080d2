"""Cleaning of text from outside: no control characters, no broken Unicode."""

from __future__ import annotations

import re

# C0 and C1 controls except tab, newline and carriage return, and lone surrogates
# (JSON can contain them as "\ud800"; they cannot be encoded as UTF-8).
_UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def clean_text(text: str) -> str:
    """`text` without control characters and surrounding white space; line breaks stay."""
    if _UNSAFE.search(text):
        text = _UNSAFE.sub(" ", text)
    return text.strip()


def clean_label(label: str) -> str:
    """`label` on one line, without control characters or repeated spaces."""
    if _UNSAFE.search(label):
        label = _UNSAFE.sub("", label)
    return " ".join(label.split())


def has_control_characters(label: str) -> bool:
    """Whether `clean_label` would remove anything but white space."""
    return _UNSAFE.search(label) is not None
