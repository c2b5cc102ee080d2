"""RDF/XML, read by rdflib within limits.

rdflib's parser appends every piece of a text to what it has, and copies literal
XML once per level of nesting. A small hostile file with nested entities, one
endless literal or thousands of levels would keep it busy for minutes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import XMLFilterBase

from labelkin.corpus.source import Source
from labelkin.corpus.xml import check_entities
from labelkin.exceptions import DamagedFileError

if TYPE_CHECKING:
    from rdflib import Graph

_LONGEST_TEXT = 1_000_000
_DEEPEST = 1_000


def parse_rdf_xml(source: Source, graph: Graph, base: str) -> None:
    """Add the triples of an RDF/XML file to `graph`; `base` is what relative URIs begin with."""
    from rdflib.parser import create_input_source
    from rdflib.plugins.parsers.rdfxml import create_parser

    check_entities(source.head)
    stream = create_input_source(source=source.stream, publicID=base, format="xml")
    reader = create_parser(stream, graph)
    limits = _Limits(reader)
    limits.setContentHandler(reader.getContentHandler())
    limits.setErrorHandler(reader.getErrorHandler())
    limits.parse(stream)


class _Limits(XMLFilterBase):
    """Passes XML on until a text is too long or elements are nested too deeply."""

    def __init__(self, parent: Any) -> None:
        super().__init__(parent)
        self._depth = 0
        self._length = 0

    def startElementNS(self, name: Any, qname: Any, attrs: Any) -> None:  # noqa: N802 - SAX
        """Count a level."""
        self._depth += 1
        self._length = 0
        if self._depth > _DEEPEST:
            raise DamagedFileError(f"elements are nested more than {_DEEPEST:,} levels deep")
        super().startElementNS(name, qname, attrs)

    def endElementNS(self, name: Any, qname: Any) -> None:  # noqa: N802 - SAX
        """Leave a level."""
        self._depth -= 1
        self._length = 0
        super().endElementNS(name, qname)

    def characters(self, content: str) -> None:
        """Add to the length of the text."""
        self._length += len(content)
        if self._length > _LONGEST_TEXT:
            raise DamagedFileError(f"a text is longer than {_LONGEST_TEXT:,} characters")
        super().characters(content)

    def skippedEntity(self, name: str) -> None:  # noqa: N802 - SAX
        """Refuse an entity that an external DTD would define."""
        raise DamagedFileError(f"the XML entity {name[:40]!r} is not defined in the file")
