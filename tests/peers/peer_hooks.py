"""Teaches schemathesis to send JSON Lines."""

from __future__ import annotations

import json
from typing import Any

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def json_lines(_context: Any, value: Any) -> bytes:
    """A line per value; a string is sent as it is."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    values = value if isinstance(value, list) else [value]
    return b"".join(json.dumps(one).encode() + b"\n" for one in values)
