"""Cleaning and comparing of text from outside: no control characters, no broken Unicode."""

from __future__ import annotations

import hashlib
import re
import unicodedata

# C0 and C1 controls except tab, newline and carriage return, and lone surrogates
# (JSON can contain them as "\ud800"; they cannot be encoded as UTF-8).
_UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")

# Signs of a file that was damaged or decoded wrongly; other controls are common in real texts.
_BROKEN = re.compile("[\x00\ud800-\udfff]")
# An id on one line of any file and in any encoding: no controls, line separators or surrogates.
_NOT_IN_IDS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


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


def is_broken(text: str) -> bool:
    """Whether `text` has NUL characters or lone surrogates."""
    return _BROKEN.search(text) is not None


def is_valid_id(identifier: str) -> bool:
    """Whether a document can be stored under exactly this id."""
    return bool(identifier.strip()) and _NOT_IN_IDS.search(identifier) is None


def text_checksum(text: str) -> int:
    """A signed 64-bit checksum of `text` that ignores white space and Unicode composition."""
    content = " ".join(unicodedata.normalize("NFC", text).split())
    checksum = hashlib.blake2b(content.encode("utf-8", "replace"), digest_size=8)
    return int.from_bytes(checksum.digest(), "little", signed=True)


def document_key(identifier: str, seed: int) -> int:
    """The 64-bit key of a document, by which it is chosen at random but always alike."""
    content = f"{seed}\0{identifier}".encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")
