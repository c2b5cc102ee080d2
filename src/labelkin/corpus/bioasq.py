"""BioASQ Task A: `{"articles": [{"pmid", "title", "abstractText", "meshMajor", …}, …]}`.

The published files hold over 20 GB with one article per line. They are read line
by line, so that a broken article costs only that article. JSON in any other
layout (pretty-printed, or all on one line) goes through a streaming parser,
which cannot skip a syntax error. Test sets use `documents` instead of
`articles`; a plain JSON list of records is read too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from labelkin.corpus.document import Correction, Document
from labelkin.corpus.intake import Intake
from labelkin.corpus.json_values import parse_json, stream_values
from labelkin.corpus.record import (
    BODY_KEYS,
    ID_KEYS,
    LABEL_KEYS,
    LANGUAGE_KEYS,
    TITLE_KEYS,
    RecordError,
)
from labelkin.corpus.source import Source
from labelkin.exceptions import DamagedFileError

# What precedes the first article. Other members may come first, but not those of a record.
_RECORD_KEYS = "|".join((*ID_KEYS, *TITLE_KEYS, *BODY_KEYS, *LABEL_KEYS))
_MEMBER = rf'"(?!(?:{_RECORD_KEYS})")\w+"\s*:\s*(?:"[^"]*"|[\w.+-]+)\s*,\s*'
OPENING = re.compile(rf'\s*(?:\{{\s*(?:{_MEMBER})*"(?P<key>articles|documents)"\s*:\s*)?\[\s*')
_ARTICLE_END = re.compile(r"\}\s*(,|\]\s*\}?)?\s*$")
_LIST_END = re.compile(r"(?:^|(?<=\}))\s*\]\s*\}?\s*$")


def read_bioasq(source: Source, intake: Intake) -> Iterator[Document | Correction]:
    """Read the articles of a BioASQ file in any layout."""
    text = source.head.decode("utf-8", "replace")
    opening = OPENING.match(text)
    key = opening.group("key") if opening else None
    first, newline, _ = text[opening.end() if opening else 0 :].partition("\n")
    if newline and first.startswith("{") and _ARTICLE_END.search(first):
        yield from _read_lines(source, intake)
    else:
        yield from _read_stream(source, intake, f"{key}.item" if key else "item")


def _read_lines(source: Source, intake: Intake) -> Iterator[Document | Correction]:
    opened = closed = False
    number = 0
    for number, line in source.lines():
        text = line.strip()
        if not opened:
            # The start of the list may be on lines of its own.
            _, bracket, text = text.partition("[")
            opened = bracket == "["
        try:
            articles = _articles(text)
        except RecordError as error:
            without_end = _LIST_END.sub("", text)
            closed = closed or without_end != text
            try:
                articles = _articles(without_end)
            except RecordError:
                intake.report.skip(source.name, f"line {number}", str(error))
                continue
        for article in articles:
            where = f"line {number}"
            yield from intake.take(_with_language(intake.noted(article, where)), where)
    if not closed:
        raise DamagedFileError(f"truncated after line {number}: the list is never closed")


def _articles(text: str) -> list[object]:
    """The articles on one line, with or without commas around them."""
    articles: list[object] = parse_json(f"[{text.strip().strip(',')}]")
    return articles


def _read_stream(source: Source, intake: Intake, prefix: str) -> Iterator[Document | Correction]:
    for number, record in enumerate(stream_values(source, prefix, "article"), start=1):
        yield from intake.take(_with_language(record), f"article {number}")


def _with_language(record: object) -> object:
    """The record, marked as English if it comes from PubMed and names no language."""
    if not isinstance(record, dict) or any(record.get(key) for key in LANGUAGE_KEYS):
        return record
    return {**record, "language": "en"} if "pmid" in record or "meshMajor" in record else record
