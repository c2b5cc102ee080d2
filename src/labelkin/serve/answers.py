"""Messages as answers, and the errors that an endpoint's description lists."""

from __future__ import annotations

from typing import Any

from fastapi import Response
from pydantic import BaseModel

from labelkin.serve.problems import MEDIA_TYPE

_ABOUT = {
    400: "The body or a parameter cannot be read.",
    401: "The token is missing or wrong.",
    403: "Writing is off.",
    404: "There is no such collection, document, concept or project.",
    408: "The client was too slow.",
    409: "A newer revision is stored.",
    413: "The body, a text or the number of documents is too large.",
    415: "The body has another media type than expected.",
    422: "The request asks for something that cannot be done.",
    429: "The client has too many requests under way.",
    503: "Not trained, not loaded, busy, or too many requests; try again if it says so.",
    507: "The disk is full.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of an endpoint, for its description."""
    schema = {"schema": {"$ref": "#/components/schemas/Problem"}}
    return {
        status: {"description": _ABOUT[status], "content": {MEDIA_TYPE: schema}}
        for status in statuses
    }


def answered(message: BaseModel, status: int = 200) -> Response:
    """A message as an answer; keys that were not set are left out."""
    return Response(as_text(message), status, media_type="application/json")


def as_text(message: BaseModel) -> str:
    """A message as JSON text."""
    return message.model_dump_json(exclude_unset=True, by_alias=True)
