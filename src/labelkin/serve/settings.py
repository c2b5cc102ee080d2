"""How the service runs: what it serves, who may write, and its limits; not where it listens."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

# The environment variable with the token that writing needs; never in files or arguments.
TOKEN_VARIABLE = "LABELKIN_TOKEN"  # noqa: S105 - the name, not the token
_MEGABYTE = 1_000_000


class ServiceSettings(BaseModel):
    """Everything but the token; worker processes receive it as JSON.

    `concurrency` requests are computed at a time and `queue` more may wait. A
    client has to send each part of a request, and to take each part of an
    answer, within `slow_seconds`. Requests may ask for the representation of
    labelkin.toml and for `representations`, whose indexes are built at the start.
    """

    model_config = ConfigDict(frozen=True)

    collections: dict[str, Path]
    workers: int = 1
    read_only: bool = False
    representations: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    max_body: int = 20 * _MEGABYTE
    max_characters: int = 1_000_000
    max_documents: int = 1000
    concurrency: int = Field(default_factory=lambda: max(2, os.cpu_count() or 1))
    queue: int = 256
    client_requests: int = 128
    timeout_seconds: float = 60.0
    slow_seconds: float = 20.0
    access_log: bool = True


def token() -> str:
    """The token that writing needs; empty if nobody may write."""
    return os.environ.get(TOKEN_VARIABLE, "").strip()
