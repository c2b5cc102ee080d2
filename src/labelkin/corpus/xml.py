"""Streaming of large XML files, one element at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from labelkin.corpus.source import RecordStream, Source
from labelkin.exceptions import DamagedFileError

if TYPE_CHECKING:
    from lxml.etree import _Element

_ENTITY = re.compile(r"&([^#;&\s][^;&\s]*);")
# Entities that stand for namespaces are shorter; with this limit, expat's own limit
# for the sum of all expansions is reached before memory is.
_LONGEST_ENTITY = 500


def stream_elements(source: Source, *tags: str) -> Iterator[_Element]:
    """Yield the elements with these tags in file order; each is freed after use.

    The tags are matched in any namespace; namespaces, comments and processing
    instructions are removed. Entities are not expanded and no DTD is fetched, so
    a hostile file does no harm. Truncated XML raises DamagedFileError after the
    last complete element.
    """
    from lxml import etree

    number = 0
    stream = RecordStream(source)
    try:
        with source.damage_reported(lambda: f"after record {number}"):
            for _, element in etree.iterparse(
                stream,
                events=("end",),
                tag=[f"{{*}}{tag}" for tag in tags],
                resolve_entities=False,
                no_network=True,
                huge_tree=True,
                remove_comments=True,
                remove_pis=True,
            ):
                _remove_namespaces(element)
                stream.end_record()
                yield element
                number += 1
                _free(element)
    except etree.XMLSyntaxError as error:
        raise DamagedFileError(f"broken XML after record {number}: {error.msg}") from error


def _remove_namespaces(element: _Element) -> None:
    """Remove the namespace from the tags of an element and of all that it contains."""
    if not element.prefix and not element.tag.startswith("{"):
        return
    for node in element.iter("*"):
        node.tag = node.tag.rpartition("}")[2]


def _free(element: _Element) -> None:
    """Free the element and all siblings before it and before its parent."""
    element.clear()
    for node in (element, element.getparent()):
        parent = node.getparent() if node is not None else None
        while parent is not None and node is not None and node.getprevious() is not None:
            del parent[0]


def check_entities(head: bytes) -> None:
    """Refuse XML whose entities are external, circular or expand to long texts.

    For parsers that expand entities. `head` is the beginning of the file; short
    entities, which many ontologies use for namespaces, are fine.
    """
    from xml.parsers import expat

    values: dict[str, str] = {}
    root: list[str] = []

    def declared(
        name: str, is_parameter: bool, value: str | None, _base: str | None, *_ids: str | None
    ) -> None:
        if is_parameter:
            raise DamagedFileError(
                f"the XML parameter entity {name[:40]!r} is not expanded; replace it by its content"
            )
        if value is None:
            raise DamagedFileError(
                f"the XML entity {name[:40]!r} is external and is not fetched; "
                "replace it by its content"
            )
        values.setdefault(name, value)

    def began(name: str, _attributes: dict[str, str]) -> None:
        root.append(name)

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = declared
    parser.StartElementHandler = began
    broken: expat.ExpatError | None = None
    try:
        parser.Parse(head, False)
    except expat.ExpatError as error:
        broken = error
    for name in values:
        _expanded(name, values, ())
    if broken is not None and not root:
        raise DamagedFileError(f"broken XML: {broken}")
    if not root:
        raise DamagedFileError(f"no XML element in the first {len(head):,} bytes")


def _expanded(name: str, values: dict[str, str], above: tuple[str, ...]) -> int:
    """The length of an entity's text with the entities in it expanded."""
    if name in above:
        raise DamagedFileError(f"the XML entity {name[:40]!r} contains itself")
    length = len(values[name])
    for inner in _ENTITY.findall(values[name]):
        if inner in values:
            length += _expanded(inner, values, (*above, name))
        if length > _LONGEST_ENTITY:
            break
    if length > _LONGEST_ENTITY:
        raise DamagedFileError(
            f"the XML entity {name[:40]!r} expands to more than {_LONGEST_ENTITY} characters; "
            "labelkin does not expand such entities, replace them by their content"
        )
    return length
