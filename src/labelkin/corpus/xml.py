"""Streaming of large XML files, one element at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from labelkin.corpus.source import Source
from labelkin.exceptions import DamagedFileError

if TYPE_CHECKING:
    from lxml.etree import _Element


def stream_elements(source: Source, *tags: str) -> Iterator[_Element]:
    """Yield the elements with these tags in file order; each is freed after use.

    Entities are not expanded and no DTD is fetched, so a hostile file does no
    harm. Truncated XML raises DamagedFileError after the last complete element.
    """
    from lxml import etree

    number = 0
    try:
        with source.damage_reported(lambda: f"after record {number}"):
            for _, element in etree.iterparse(
                source.stream,
                events=("end",),
                tag=tags,
                resolve_entities=False,
                no_network=True,
                huge_tree=True,
            ):
                yield element
                number += 1
                _free(element)
    except etree.XMLSyntaxError as error:
        raise DamagedFileError(f"broken XML after record {number}: {error.msg}") from error


def _free(element: _Element) -> None:
    """Free the element and all siblings before it and before its parent."""
    element.clear()
    for node in (element, element.getparent()):
        parent = node.getparent() if node is not None else None
        while parent is not None and node is not None and node.getprevious() is not None:
            del parent[0]
