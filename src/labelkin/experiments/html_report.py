"""Renders reports as one HTML page; only the figures are separate files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from labelkin.experiments.document import Cell, Heading, Image, Paragraph, Part, Table

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 76rem; margin: 2rem auto;
  padding: 0 1rem; }
h1, h2, h3 { line-height: 1.25; }
img { max-width: 100%; height: auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; margin: 0.5rem 0 1.5rem; }
th, td { padding: 0.15rem 0.6rem; text-align: left; white-space: nowrap; }
th { border-bottom: 2px solid #444; position: sticky; top: 0; background: #fff; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.block td { border-top: 1px solid #999; }
tbody tr:hover { background: #f3f6f9; }
.paper { color: #666; }
.difference { color: #666; font-size: 11px; }
nav a { margin-right: 1rem; }
@media (prefers-color-scheme: dark) {
  body, th { background: #16181b; color: #ddd; }
  .paper, .difference { color: #9aa; }
  tbody tr:hover { background: #22262b; }
  img { background: #fff; }
}
"""


def html(parts: Iterable[Part], title: str) -> str:
    """Render the parts as one page that links to its second-level headings."""
    listed = list(parts)
    links = [
        f'<a href="#{_anchor(part.text)}">{escape(part.text)}</a>'
        for part in listed
        if isinstance(part, Heading) and part.level == 2
    ]
    first, rest = listed[:1], listed[1:]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            "</head>",
            "<body>",
            *(_part(part) for part in first),
            f"<nav>{' '.join(links)}</nav>",
            *(_part(part) for part in rest),
            "</body>",
            "</html>",
            "",
        ]
    )


def _part(part: Part) -> str:
    if isinstance(part, Heading):
        return f'<h{part.level} id="{_anchor(part.text)}">{escape(part.text)}</h{part.level}>'
    if isinstance(part, Paragraph):
        return f"<p>{_text(part.text)}</p>"
    if isinstance(part, Image):
        return f'<p><img src="figures/{part.name}.svg" alt="{escape(part.description)}"></p>'
    return _table(part)


def _table(table: Table) -> str:
    heads = "".join(
        f"<th{_number(n, table)}>{escape(name)}</th>" for n, name in enumerate(table.header)
    )
    rows = []
    for number, row in enumerate(table.rows):
        attribute = ' class="block"' if number in table.blocks else ""
        cells = "".join(f"<td{_number(n, table)}>{_cell(cell)}</td>" for n, cell in enumerate(row))
        rows.append(f"<tr{attribute}>{cells}</tr>")
    body = "\n".join(rows)
    return (
        f'<div class="wide"><table>\n<thead><tr>{heads}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return _text(cell)
    ours = _bold(f"{cell.ours:.{cell.digits}f}", cell.ours_best)
    if cell.paper is None:
        return ours
    paper = _bold(f"{cell.paper:.{cell.digits}f}", cell.paper_best)
    return (
        f'<span class="paper">{paper}</span> {ours} '
        f'<span class="difference">{cell.difference}</span>'
    )


def _text(text: str) -> str:
    """Escape the text and convert Markdown code spans and links."""
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    return re.sub(r"\[([^\]]+)\]\(([^)]+)\)", r'<a href="\2">\1</a>', marked)


def _bold(text: str, wanted: bool) -> str:
    return f"<b>{text}</b>" if wanted else text


def _number(column: int, table: Table) -> str:
    return ' class="number"' if column >= table.numbers else ""


def _anchor(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
