"""Odd and hostile files for every reader: each has one right outcome.

Corpora are added to a collection, vocabularies become new ones, predictions are
scored. Whatever the file: no traceback, few lines, every record accounted for,
and a collection that opens afterwards.
"""

from __future__ import annotations

import bz2
import gzip
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from labelkin.corpus.intake import Intake
from labelkin.corpus.report import SilentReport
from labelkin.indexer import Indexer

MOST_LINES = 6
VOCABULARY = (
    b"ui\tname\ttree_numbers\tentry_terms\n"
    b"D000001\tBread\tJ01\tLoaf\nD000002\tBread, Rye\tJ01.100\tRye Bread\nD000003\tOats\tB01\t\n"
)
SKOS = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
Content = bytes | str | Callable[[Path], object]


@dataclass(frozen=True)
class Case:
    """A file, what is done with it, and what a user wants to happen.

    Of `files`, the first is given to the command. Exactly one line on standard
    error has `says`; without it there is no warning. `documents` are all that are
    new in the collection, by id; `texts` those whose ids are made from them.
    `concepts` are the names of the whole new vocabulary.
    """

    name: str
    files: Mapping[str, Content]
    command: str = "add c FILE --json"
    code: int = 0
    says: str = ""
    documents: Mapping[str, str] = field(default_factory=dict)
    texts: Sequence[str] = ()
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    counts: Mapping[str, object] = field(default_factory=dict)
    concepts: Mapping[str, str] | None = None
    broader: Mapping[str, Sequence[str]] = field(default_factory=dict)
    measures: Mapping[str, float] | None = None
    printed: str = ""
    standard_input: bytes | None = None


def lines(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def record(identifier: object, title: str = "On oats", *labels: str) -> dict[str, Any]:
    return {"id": identifier, "title": title, "labels": list(labels), "language": "en"}


def citation(pmid: str, title: str, headings: str = "") -> str:
    return (
        f"<PubmedArticle><MedlineCitation><PMID>{pmid}</PMID><Article><ArticleTitle>{title}"
        f"</ArticleTitle></Article><MeshHeadingList>{headings}</MeshHeadingList>"
        "</MedlineCitation></PubmedArticle>"
    )


OATS = '<MeshHeading><DescriptorName UI="D000003">Oats</DescriptorName></MeshHeading>'
A, B = record("a", "On oats", "Oats"), record("b", "On bread", "Bread")
BOTH = {"a": "On oats", "b": "On bread"}
BOTH_LABELLED = {"a": ["D000003"], "b": ["D000001"]}
TABLE = "id,title,labels\na,On oats,Oats\nb,On bread,Bread\n"

ENCODINGS = [
    Case(
        "UTF-16 with a mark",
        {"x.jsonl": lines(A).encode("utf-16")},
        code=1,
        says="x.jsonl: UTF-16 text; convert it to UTF-8 first",
    ),
    Case(
        "UTF-16 without a mark",
        {"x.csv": TABLE.encode("utf-16-le")},
        code=1,
        says="x.csv: UTF-16 text; convert it to UTF-8 first",
    ),
    Case(
        "UTF-32",
        {"x.csv": TABLE.encode("utf-32")},
        code=1,
        says="x.csv: UTF-32 text; convert it to UTF-8 first",
    ),
    Case(
        "two files with a byte order mark, joined by cat",
        {"x.jsonl": "\ufeff" + lines(A) + "\ufeff" + lines(B)},
        documents=BOTH,
        labels=BOTH_LABELLED,
    ),
    Case(
        "a table with two byte order marks",
        {"x.csv": "\ufeff\ufeff" + TABLE},
        documents=BOTH,
        labels=BOTH_LABELLED,
    ),
    Case(
        "one byte of Windows-1252 in a line of UTF-8",
        {"x.csv": "id,title\na,Größe und Maß – ".encode() + b"caf\xe9\n"},
        says="x.csv, encoding: 1 line is not UTF-8",
        documents={"a": "Größe und Maß – café"},
    ),
    Case(
        "UTF-8 cut within its last character",
        {"x.tsv": "id\ttitle\na\tGrüße aus K".encode() + "ö".encode()[:1]},
        says="x.tsv, encoding: 1 line is not UTF-8",
        documents={"a": "Grüße aus KÃ"},
    ),
    Case(
        "a character across the edge of the first 64 KiB",
        {"x.csv": "id,title\na," + "x" * (65536 - 12) + "é end\n"},
        documents={"a": "x" * (65536 - 12) + "é end"},
    ),
    Case(
        "line separators of Unicode within a line",
        {"x.jsonl": '{"id": "a", "title": "On\u2028oats\x85and\u2029rye"}\n' + lines(B)},
        documents={"a": "On\u2028oats and\u2029rye", "b": "On bread"},
    ),
    Case(
        "line ends of an old Macintosh, CSV",
        {"x.csv": TABLE.replace("\n", "\r")},
        documents=BOTH,
        labels=BOTH_LABELLED,
    ),
    Case(
        "line ends of an old Macintosh, JSON Lines",
        {"x.jsonl": lines(A, B).replace("\n", "\r")},
        documents=BOTH,
        labels=BOTH_LABELLED,
    ),
    Case(
        "line ends of an old Macintosh in a gzip file without its end",
        {"x.csv.gz": gzip.compress(TABLE.replace("\n", "\r").encode())[:-4]},
        code=3,
        says="x.csv.gz: damaged after line 3: the gzip data is truncated",
        documents=BOTH,
    ),
    Case(
        "line ends of three systems in one file",
        {"x.jsonl": lines(A).rstrip() + "\r\n" + lines(B).rstrip() + "\r\r\n\n"},
        documents=BOTH,
    ),
]

TABLES = [
    Case(
        "a delimiter at the end of every line",
        {"x.csv": TABLE.replace("\n", ",\n")},
        documents=BOTH,
        labels=BOTH_LABELLED,
    ),
    Case(
        "delimiters at the end of the rows only",
        {"x.csv": TABLE.replace("Oats\n", "Oats,,\n")},
        documents=BOTH,
        labels=BOTH_LABELLED,
    ),
    Case(
        "a cell too many that holds something",
        {"x.csv": TABLE.replace("Oats\n", "Oats,Bread\n")},
        says="x.csv, line 2: 4 cells, but the header names 3 columns",
        documents={"b": "On bread"},
        counts={"skipped": 1},
    ),
    Case(
        "empty columns in the middle and at the end",
        {"x.csv": "id,,title,,labels,,\na,,On oats,,Oats,,\nb,,On bread,,Bread,,\n"},
        documents=BOTH,
        labels=BOTH_LABELLED,
    ),
    Case(
        "the first line that Excel writes",
        {"x.csv": "sep=;\n" + TABLE.replace(",", ";")},
        documents=BOTH,
        labels=BOTH_LABELLED,
    ),
    Case(
        "Excel's first line names a delimiter of its own",
        {"x.csv": "\ufeffsep=|\r\n" + TABLE.replace(",", "|").replace("\n", "\r\n")},
        documents=BOTH,
        labels=BOTH_LABELLED,
    ),
    Case(
        "blank lines before the header",
        {"x.csv": "\n  \n" + TABLE},
        documents=BOTH,
        labels=BOTH_LABELLED,
    ),
    Case(
        "two tables joined by cat, the header twice",
        {"x.csv": "id,title,labels\na,On oats,Oats\nID,Title,Labels\nb,On bread,Bread\n"},
        says="x.csv, line 3: the header again",
        documents=BOTH,
        labels=BOTH_LABELLED,
        counts={"read": 2, "skipped": 0},
    ),
    Case(
        "a header in German",
        {"x.csv": "Nummer;Titel;Schlagworte\n1;Vom Hafer;Oats\n"},
        code=1,
        says="no column with text; the header names Nummer, Titel, Schlagworte, but one of title",
    ),
    Case(
        "columns in another order and in capitals",
        {"x.csv": "LABELS,LANG,ABSTRACT,ID\nOats|Bread,en,On oats,a\n"},
        documents={"a": "On oats"},
        labels={"a": ["D000003", "D000001"]},
    ),
    Case(
        "tabs in a file named .csv",
        {"x.csv": TABLE.replace(",", "\t")},
        documents=BOTH,
        labels=BOTH_LABELLED,
    ),
    Case(
        "commas in a file named .tsv",
        {"x.tsv": TABLE},
        documents=BOTH,
        labels=BOTH_LABELLED,
    ),
    Case("a header and nothing else", {"x.csv": "id,title,labels\n"}, counts={"read": 0}),
    Case(
        "rows of nothing but delimiters and spaces",
        {"x.csv": TABLE.replace("b,", ",,\n , , \nb,")},
        documents=BOTH,
        counts={"read": 2, "skipped": 0},
    ),
    Case(
        "some rows without an id",
        {"x.tsv": "id\ttext\n\tOn oats\nb\tOn bread\n"},
        says="x.tsv, line 2: no id; record skipped",
        documents={"b": "On bread"},
        counts={"read": 2, "skipped": 1},
    ),
    Case(
        "a single column without ids",
        {"x.csv": "text\nOn oats\n\nOn bread\n"},
        texts=("On oats", "On bread"),
    ),
    Case(
        "2,000 columns",
        {
            "x.csv": ",".join(("id", "title", *(f"c{n}" for n in range(2000))))
            + "\na,On oats"
            + ",1" * 2000
        },
        documents={"a": "On oats"},
    ),
    Case(
        "a page of the web saved as .csv",
        {"x.csv": "<!DOCTYPE html>\n<html><body>Please log in</body></html>\n"},
        code=1,
        says="x.csv: a web page (HTML), not a corpus; was it downloaded completely",
    ),
]

JSON = [
    Case(
        "a comma after each record",
        {"x.jsonl": lines(A).rstrip() + ",\n" + lines(B).rstrip() + ",\n"},
        documents=BOTH,
        labels=BOTH_LABELLED,
    ),
    Case(
        "comments between records",
        {"x.jsonl": lines(A) + "// bread\n" + lines(B)},
        says="x.jsonl, line 2: broken JSON",
        documents=BOTH,
        counts={"read": 3, "skipped": 1},
    ),
    Case(
        "a comment before the records",
        {"x.jsonl": "# made by hand\n" + lines(A, B)},
        says="x.jsonl, line 1: broken JSON",
        documents=BOTH,
        counts={"read": 3, "skipped": 1},
    ),
    Case(
        "records without line ends between them",
        {"x.jsonl": lines(A, B).replace("\n", "")},
        documents=BOTH,
        labels=BOTH_LABELLED,
    ),
    Case(
        "records over several lines, as jq prints them",
        {"x.jsonl": json.dumps(A, indent=2) + "\n" + json.dumps(B, indent=2) + "\n"},
        documents=BOTH,
        labels=BOTH_LABELLED,
    ),
    Case(
        "records over several lines, the last one cut",
        {"x.json": json.dumps(A, indent=2) + "\n" + json.dumps(B, indent=2)[:20]},
        code=3,
        says="x.json: broken JSON after record 1",
        documents={"a": "On oats"},
    ),
    Case(
        "10,000 records in a list on one line",
        {"x.json": json.dumps([record(n) for n in range(10_000)])},
        counts={"read": 10_000, "added": 10_000},
        documents={str(n): "On oats" for n in range(10_000)},
    ),
    Case(
        "a key twice in one record",
        {"x.jsonl": '{"id": "a", "title": "x", "labels": ["Bread"], "labels": ["Oats"]}\n'},
        says='x.jsonl, line 1: the key "labels" occurs twice; the last one counts',
        documents={"a": "x"},
        labels={"a": ["D000003"]},
    ),
    Case(
        "ids of 40 digits",
        {"x.jsonl": lines(record(10**40), record(-1))},
        documents={str(10**40): "On oats", "-1": "On oats"},
    ),
    Case(
        "ids of 40 digits in a list on one line",
        {"x.json": json.dumps([record(10**40), record(2**64), record("b", "On bread")])},
        documents={str(10**40): "On oats", str(2**64): "On oats", "b": "On bread"},
    ),
    Case(
        "numbers with a point as ids",
        {"x.jsonl": lines(record(1.0), record("1.0"), record(1))},
        says="x.jsonl, line 1: the id is a number, not a string or an integer",
        documents={"1.0": "On oats", "1": "On oats"},
        counts={"read": 3, "skipped": 1},
    ),
    Case(
        "a boolean and a number with a point as labels",
        {"x.jsonl": lines({**A, "labels": [True]}, {**A, "id": "c", "labels": [1.5]}, B)},
        says="x.jsonl, line 1: a label is a boolean, not a string",
        documents={"b": "On bread"},
        counts={"skipped": 2},
    ),
    Case(
        "labels by language",
        {"x.jsonl": lines({**A, "labels": {"en": ["Oats"]}}, B)},
        says="x.jsonl, line 1: labels are an object, not a list",
        documents={"b": "On bread"},
        counts={"skipped": 1},
    ),
    Case(
        "language tags in a list",
        {"x.jsonl": lines({**A, "language": ["en", {"x": "de"}]}, {**B, "language": "en-Latn-GB"})},
        says="line 1: ['en', {'x': 'de'}] is not a language code and was ignored",
        documents=BOTH,
    ),
    Case(
        "a title in a list, as Crossref has it",
        {"x.jsonl": lines({**A, "title": ["On oats"]}, B)},
        says='x.jsonl, line 1: "title" is a list, not a string',
        documents={"b": "On bread"},
    ),
    Case(
        "a record that begins with a list of documents",
        {"x.jsonl": lines({"documents": ["one"], **A}, B)},
        documents=BOTH,
        labels=BOTH_LABELLED,
    ),
    Case(
        "BioASQ with another key first",
        {"x.json": json.dumps({"release": "2026", "articles": [A, B]})},
        documents=BOTH,
        labels=BOTH_LABELLED,
    ),
    Case(
        "labels that the vocabulary lacks, reported as JSON",
        {"x.jsonl": lines(record("a", "On bread", "Bread", "Crust"))},
        documents={"a": "On bread"},
        labels={"a": ["D000001", "Crust"]},
        counts={"unresolved": {"Crust": 1}, "labels_resolved": 1},
    ),
    Case("an empty list", {"x.json": "[]\n"}, counts={"read": 0}),
    Case(
        "a list of lists",
        {"x.json": '[["a", "On oats"], ["b", "On bread"]]'},
        code=1,
        says="x.json: no known corpus format",
    ),
    Case(
        "Annif's records with the same text twice",
        {"x.jsonl": lines(*[{"text": "On oats", "subjects": [{"label": "Oats"}]}] * 2)},
        texts=("On oats", "On oats"),
        counts={"read": 2, "added": 2},
    ),
]

XML = [
    Case(
        "PubMed in a namespace",
        {
            "x.xml": '<PubmedArticleSet xmlns="http://e.org/pubmed">'
            + citation("1", "On oats", OATS)
            + "</PubmedArticleSet>"
        },
        documents={"1": "On oats"},
        labels={"1": ["D000003"]},
    ),
    Case(
        "PubMed with a DTD, CDATA, comments and processing instructions",
        {
            "x.xml": '<?xml version="1.0"?><?style x?><!DOCTYPE PubmedArticleSet SYSTEM "p.dtd">'
            "<!-- made by hand --><PubmedArticleSet>"
            + citation(
                "<!-- the number -->1",
                "On <![CDATA[<oats> & ]]><?break here?>more<!-- not this --> oats",
                OATS.replace("Oats", "<!-- the name -->Oats"),
            )
            + "</PubmedArticleSet>"
        },
        documents={"1": "On <oats> & more oats"},
        labels={"1": ["D000003"]},
    ),
    Case(
        "PubMed with an empty list of headings",
        {"x.xml": "<PubmedArticleSet>" + citation("1", "On oats") + "</PubmedArticleSet>"},
        documents={"1": "On oats"},
        counts={"without_labels": 1},
    ),
    Case(
        "PubMed with two versions of a citation",
        {
            "x.xml": "<PubmedArticleSet>"
            + citation("1", "On bread").replace("<PMID>", '<PMID Version="1">')
            + citation("1", "On oats", OATS).replace("<PMID>", '<PMID Version="2">')
            + "</PubmedArticleSet>"
        },
        documents={"1": "On oats"},
        labels={"1": ["D000003"]},
        counts={"read": 2, "added": 1, "duplicates": 1},
    ),
    Case(
        "PubMed in Latin-1, as its declaration says",
        {
            "x.xml": (
                '<?xml version="1.0" encoding="ISO-8859-1"?><PubmedArticleSet>'
                + citation("1", "Über Hafer")
                + "</PubmedArticleSet>"
            ).encode("latin-1")
        },
        documents={"1": "Über Hafer"},
    ),
    Case(
        "another XML format of libraries",
        {"x.xml": '<collection xmlns="http://www.loc.gov/MARC21/slim"><record/></collection>'},
        code=1,
        says="x.xml: XML, but not a PubmedArticleSet",
    ),
]


def fifo(path: Path) -> None:
    """A named pipe into which someone writes two records."""
    os.mkfifo(path)
    threading.Thread(target=path.write_text, args=(lines(A, B),), daemon=True).start()


def folder(files: Mapping[str, bytes]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.mkdir()
        for name, content in files.items():
            (path / name).write_bytes(content)

    return make


FILES = [
    Case(
        "gzip within gzip",
        {"x.jsonl.gz": gzip.compress(gzip.compress(lines(A).encode()))},
        code=1,
        says="x.jsonl.gz: compressed twice; unpack it once",
    ),
    Case(
        "bzip2 within gzip",
        {"x.jsonl.bz2.gz": gzip.compress(bz2.compress(lines(A).encode()))},
        code=1,
        says="compressed twice; unpack it once",
    ),
    Case("a .gz that is not compressed", {"x.jsonl.gz": lines(A, B)}, documents=BOTH),
    Case(
        "a gzip file of nothing",
        {"x.csv.gz": gzip.compress(b"")},
        code=1,
        says="x.csv.gz: the file is empty",
    ),
    Case(
        "a folder named like a file",
        {"x.jsonl": folder({"y": lines(A).encode(), "z.csv": b"id,title\nb,On bread\n"})},
        documents=BOTH,
    ),
    Case("a named pipe", {"pipe": fifo}, documents=BOTH),
    Case(
        "the null device",
        {},
        command="add c /dev/null --json",
        code=1,
        says="/dev/null is empty",
    ),
    Case(
        "a file that the disk cannot read",
        {"good.jsonl": lines(A)},
        command="add c FILE /proc/self/mem --json",
        code=3,
        says="/proc/self/mem: cannot be read at its start: Input/output error",
        documents={"a": "On oats"},
    ),
    Case(
        "a link to itself",
        {"x.jsonl": lambda path: path.symlink_to(path.name)},
        code=1,
        says="x.jsonl: a link that leads nowhere",
    ),
    Case(
        "a link to itself in a folder",
        {
            "f": lambda path: (
                folder({"a.jsonl": lines(A).encode()})(path),
                (path / "b.jsonl").symlink_to("b.jsonl"),
            )
        },
        code=3,
        says="b.jsonl: Too many levels of symbolic links",
        documents={"a": "On oats"},
    ),
    Case(
        "a line break in a file name",
        {"x\ny.jsonl": lines(A) + "broken\n"},
        says="y.jsonl, line 2: broken JSON",
        documents={"a": "On oats"},
        counts={"skipped": 1},
    ),
    Case(
        "a line break in the name of a text with subjects",
        {"x\ny.txt": "On oats", "x\ny.key": "Oats"},
        code=1,
        says="has a line break, tab or other control character",
        counts={"skipped": 1},
    ),
    Case(
        "a line break in the name of a plain text",
        {"x\ny.txt": "On oats"},
        command="annotate c FILE -o o.jsonl --method lexical",
        code=1,
        says="has a line break, tab or other control character",
    ),
    Case(
        "a name that begins like an option",
        {"-x.jsonl": lines(A, B)},
        command="add --json c -- FILE",
        documents=BOTH,
    ),
    Case(
        "the same file twice",
        {"x.jsonl": lines(A)},
        command="add c FILE FILE --json",
        documents={"a": "On oats"},
        counts={"read": 2, "added": 1, "duplicates": 1},
    ),
    Case(
        "standard input twice",
        {},
        command="add c - - --json",
        standard_input=lines(A, B).encode(),
        code=1,
        says="standard input is given more than once",
    ),
    Case(
        "a table with Macintosh line ends on standard input",
        {},
        command="add c - --json",
        standard_input=TABLE.replace("\n", "\r").encode(),
        documents=BOTH,
    ),
    Case(
        "Annif's folder with odd subjects",
        {
            "f": folder(
                {
                    "a.txt": b"On oats",
                    "a.key": b"\xef\xbb\xbfOats\r\n\r\n  Bread \r\n",
                    "b.txt": b"On bread",
                    "b.tsv": b"<D000001>\tBread\n\n",
                    "c.txt": b"On rye",
                    "c.key": "Bread, Rye\n".encode("utf-16"),
                    "d.txt": b" \n",
                    "d.key": b"Oats",
                }
            )
        },
        says="c.txt: cannot be read (",
        documents={"a": "On oats", "b": "On bread"},
        labels={"a": ["D000003", "D000001"], "b": ["D000001"]},
        counts={"read": 4, "skipped": 2},
    ),
    Case(
        "Annif's TSV with tabs and spaces in odd places",
        {"x.tsv": "On oats\t  <D000003>   <D000001>\t\r\n\t<D000001>\nNo subjects\t\n"},
        says="x.tsv, line 2: no text",
        texts=("On oats", "No subjects"),
        counts={"read": 3, "skipped": 1, "without_labels": 1},
    ),
]


def concept(identifier: str, *more: str) -> str:
    return f"<http://e.org/{identifier}> a skos:Concept ; " + " ; ".join(more) + " .\n"


RDF_XML = (
    '<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    'xmlns:skos="http://www.w3.org/2004/02/skos/core#"><skos:Concept rdf:about="http://e.org/1">'
    "<skos:prefLabel>Rye</skos:prefLabel></skos:Concept></rdf:RDF>"
)
INIT = "init new --vocab FILE"
RYE = {"http://e.org/1": "Rye"}
MANY = "".join(concept(f"{n}", f'skos:prefLabel "Number {n}"@en') for n in range(2000))

VOCABULARIES = [
    Case(
        "concepts that are blank nodes",
        {
            "v.ttl": SKOS
            + concept("1", 'skos:prefLabel "Rye"')
            + '[] a skos:Concept ; skos:prefLabel "Oats" .'
        },
        INIT,
        says="v.ttl, ids: 1 concept has no URI (a blank node); left out",
        concepts=RYE,
    ),
    Case(
        "nothing but blank nodes",
        {"v.ttl": SKOS + '[] a skos:Concept ; skos:prefLabel "Oats" .'},
        INIT,
        code=1,
        says="v.ttl: 1 concept has no URI (a blank node), and no other has one; give each",
    ),
    Case(
        "two preferred labels in one language",
        {"v.ttl": SKOS + concept("1", 'skos:prefLabel "Rye"@en, "Secale"@en, "Roggen"@de')},
        INIT,
        says="1 concept has several preferred labels in one language, such as",
        concepts=RYE,
    ),
    Case(
        "labels of two regions of one language",
        {"v.ttl": SKOS + concept("1", 'skos:prefLabel "Rye"@en-GB, "Rye grain"@en-US')},
        INIT,
        concepts=RYE,
    ),
    Case(
        "a label without a language",
        {"v.ttl": SKOS + concept("1", 'skos:prefLabel "Rye"')},
        INIT,
        concepts=RYE,
    ),
    Case(
        "relative URIs without a base",
        {"v.ttl": SKOS + '<rye> a skos:Concept ; skos:prefLabel "Rye" .'},
        INIT,
        code=1,
        says="v.ttl: relative URIs such as <rye>, but no base",
    ),
    Case(
        "relative URIs with a base",
        {
            "v.ttl": "@base <http://e.org/> .\n"
            + SKOS
            + '<1> a skos:Concept ; skos:prefLabel "Rye" .'
        },
        INIT,
        concepts=RYE,
    ),
    Case(
        "URIs with spaces",
        {
            "v.ttl": SKOS
            + concept("a b", 'skos:prefLabel "Rye"')
            + concept("c d", 'skos:prefLabel "Oats"')
        },
        INIT,
        says="v.ttl, URIs: 2 URIs have characters that no URI can have, such as <http://e.org/a b>",
        concepts={"http://e.org/a b": "Rye", "http://e.org/c d": "Oats"},
    ),
    Case(
        "an ontology without SKOS",
        {
            "v.ttl": "@prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
            "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
            '<http://e.org/1> a owl:Class ; rdfs:label "Rye" .'
        },
        INIT,
        code=1,
        says="v.ttl: RDF without SKOS: no concepts among its 2 statements",
    ),
    Case(
        "Turtle with an error in line 1,602",
        {"v.ttl": SKOS + MANY.replace('Number 1600"', "Number 1600")},
        INIT,
        code=1,
        says="v.ttl: not readable as RDF (turtle): line 1602",
    ),
    Case(
        "N-Triples with an error in line 3",
        {
            "v.nt": '<http://e.org/1> <http://www.w3.org/2004/02/skos/core#prefLabel> "Rye" .\n' * 2
            + "<http://e.org/1> oops .\n"
        },
        INIT,
        code=1,
        says="v.nt: not readable as RDF (nt): line 3",
    ),
    Case(
        "a hierarchy given only by narrower",
        {
            "v.ttl": SKOS
            + concept("1", 'skos:prefLabel "Grain"', "skos:narrower <http://e.org/2>")
            + concept("2", 'skos:prefLabel "Rye"')
        },
        INIT,
        concepts={"http://e.org/1": "Grain", "http://e.org/2": "Rye"},
        broader={"http://e.org/2": ["http://e.org/1"]},
    ),
    Case(
        "RDF/XML named .ttl",
        {"v.ttl": RDF_XML},
        INIT,
        concepts=RYE,
    ),
    Case(
        "Turtle named .rdf",
        {"v.rdf": SKOS + concept("1", 'skos:prefLabel "Rye"')},
        INIT,
        concepts=RYE,
    ),
    Case(
        "Turtle named .txt that begins with a comment",
        {"v.txt": "# Grain\n\n" + SKOS + concept("1", 'skos:prefLabel "Rye"')},
        INIT,
        concepts=RYE,
    ),
    Case(
        "Turtle in Latin-1",
        {"v.ttl": (SKOS + concept("1", 'skos:prefLabel "Grün"@de')).encode("latin-1")},
        INIT,
        says="v.ttl, encoding: not UTF-8 and read as Windows-1252",
        concepts={"http://e.org/1": "Grün"},
    ),
    Case(
        "other records of MeSH",
        {
            "v.xml": '<?xml version="1.0"?><SupplementalRecordSet><SupplementalRecord>'
            "<SupplementalRecordUI>C1</SupplementalRecordUI></SupplementalRecord>"
            "</SupplementalRecordSet>"
        },
        INIT,
        code=1,
        says="v.xml: XML, but neither MeSH descriptors (DescriptorRecordSet) nor RDF",
    ),
    Case(
        "MeSH in its old ASCII format",
        {"v.bin": "*NEWRECORD\nRECTYPE = D\nMH = Rye\nENTRY = Secale, cereale\nUI = D1\n" * 30},
        INIT,
        code=1,
        says="v.bin: not a table of ids and names: no name in 120 of 150 rows",
    ),
    Case(
        "names without ids",
        {"v.txt": "".join(f"Name {n}\n" for n in range(100))},
        INIT,
        code=1,
        says="v.txt: not a table of ids and names: no name in 100 of 100 rows",
    ),
    Case(
        "MeSH with records that lack a name or an id",
        {
            "v.xml": "<DescriptorRecordSet>"
            "<DescriptorRecord><DescriptorUI>D1</DescriptorUI></DescriptorRecord>"
            "<DescriptorRecord><DescriptorUI>D2</DescriptorUI><DescriptorName><String>Rye</String>"
            "</DescriptorName></DescriptorRecord></DescriptorRecordSet>"
        },
        INIT,
        says="v.xml, line 1: no DescriptorUI or DescriptorName",
        concepts={"D2": "Rye"},
    ),
    Case(
        "a table with blank lines before its header",
        {"v.tsv": "\n\nid\tname\n1\tRye\n2\tOats\n"},
        INIT,
        concepts={"1": "Rye", "2": "Oats"},
    ),
    Case(
        "a table as Excel writes it",
        {"v.csv": "\ufeffsep=;\r\nID;Name;;\r\n1;Rye;;\r\n2;Oats;;\r\n"},
        INIT,
        concepts={"1": "Rye", "2": "Oats"},
    ),
    Case(
        "a table with the column of names twice",
        {"v.csv": "id,name,name\n1,Rye,\n2,Oats,Avena\n"},
        INIT,
        code=1,
        says="v.csv: the column 'name' occurs twice in the header",
    ),
    Case(
        "a table with a title and a comment before its header",
        {"v.csv": "Grain and bread\n# 2026, draft\nid,name\n1,Rye\n2,Oats\n"},
        INIT,
        says="v.csv, header: 2 lines before it left out, such as 'Grain and bread'",
        concepts={"1": "Rye", "2": "Oats"},
    ),
    Case(
        "a table in Latin-1",
        {"v.tsv": "1\tGrün\n2\tRye\n".encode("latin-1")},
        INIT,
        says="v.tsv, encoding: not UTF-8 and read as Windows-1252",
        concepts={"1": "Grün", "2": "Rye"},
    ),
    Case(
        "JSON Lines of ids and names",
        {"v.jsonl": lines({"id": "1", "name": "Rye"}, {"id": "2", "name": "Oats"})},
        INIT,
        code=1,
        says="v.jsonl: JSON, but not JSON-LD; give SKOS in an RDF syntax, MeSH descriptor XML or",
    ),
    Case(
        "JSON-LD that is a number",
        {"v.jsonld": "3"},
        INIT,
        code=1,
        says="v.jsonld: not readable as RDF (json-ld): neither an object nor a list",
    ),
    Case(
        "the same id twice",
        {"v.tsv": "1\tRye\n1\tOats\n2\tBread\n"},
        INIT,
        says="concept 1: duplicate id; record skipped",
        concepts={"1": "Rye", "2": "Bread"},
    ),
    Case(
        "concepts that replace each other in a circle",
        {"v.tsv": "id\tname\tdeprecated\treplaced_by\n1\tRye\ttrue\t2\n2\tOats\ttrue\t1\n"},
        INIT,
        concepts={"1": "Rye", "2": "Oats"},
    ),
    Case(
        "names of punctuation, from right to left, and of a million characters",
        {"v.tsv": "1\t---\n2\tשיפון\n3\t" + "x" * 1_000_000 + "\n4\t\u202eeyR\n"},
        INIT,
        concepts={"1": "---", "2": "שיפון", "3": "x" * 1_000_000, "4": "\u202eeyR"},
    ),
    Case(
        "a synonym that is the name of another concept",
        {"v.tsv": "id\tname\tsynonyms\n1\tOats\tRye|Grain\n2\tRye\tOats\n3\tWheat\tGrain\n"},
        "vocab show FILE rye --json",
        printed='"id": "2"',
    ),
    Case(
        "a synonym that two concepts share",
        {"v.tsv": "id\tname\tsynonyms\n1\tOats\tGrain\n2\tRye\tGrain\n"},
        "vocab show FILE grain",
        code=1,
        says="'grain' is ambiguous: Oats (1), Rye (2); give an id",
    ),
    Case(
        "a web page as a vocabulary",
        {"v.rdf": "<!doctype html>\n<html><head><title>Rye</title></head></html>"},
        INIT,
        code=1,
        says="v.rdf: a web page (HTML), not a vocabulary; was it downloaded completely",
    ),
    Case(
        "RDF/XML that ends in the middle",
        {"v.rdf": RDF_XML[: RDF_XML.index("</skos:prefLabel>")]},
        INIT,
        code=1,
        says="v.rdf: not readable as RDF (xml): ",
    ),
    Case(
        "the null device as a vocabulary",
        {},
        "init new --vocab /dev/null",
        code=1,
        says="/dev/null: the file is empty",
    ),
    Case(
        "a folder as a vocabulary",
        {"v": folder({"v.tsv": b"1\tRye\n"})},
        INIT,
        code=1,
        says="v: a folder; give the vocabulary file itself",
    ),
    Case(
        "a vocabulary from a pipe",
        {
            "pipe": lambda path: (
                os.mkfifo(path),
                threading.Thread(target=path.write_text, args=("1\tRye\n",), daemon=True).start(),
            )
        },
        INIT,
        concepts={"1": "Rye"},
    ),
]

SCORE = "score gold.tsv FILE --measures P@1,MiF --json"
GOLD = "a\tOats\nb\tBread\n"
RIGHT = {"P@1": 1.0, "MiF": 1.0}


def predictions(content: Content, name: str = "p.tsv") -> dict[str, Content]:
    return {name: content, "gold.tsv": GOLD}


PREDICTIONS = [
    Case(
        "a score that is not a number",
        predictions("a\tOats\t0.9\nb\tBread\tNaN\n"),
        SCORE,
        code=1,
        says="p.tsv: line 2 is not `id<TAB>label<TAB>score`",
    ),
    Case(
        "scores as strings in JSON",
        predictions(
            lines(
                {
                    "id": "a",
                    "suggestions": [
                        {"id": "Bread", "score": "0.1"},
                        {"id": "Oats", "score": "0.9"},
                    ],
                },
                {"id": "b", "suggestions": [{"id": "Bread", "score": "1e-1"}]},
            ),
            "p.jsonl",
        ),
        SCORE,
        measures={"P@1": 1.0, "MiF": 0.8},
    ),
    Case(
        "a score that is null in JSON",
        predictions(lines({"id": "a", "suggestions": [{"id": "Oats", "score": None}]}), "p.jsonl"),
        SCORE,
        code=1,
        says="p.jsonl: line 1 is not a list of suggestions",
    ),
    Case(
        "a prediction without a label in JSON",
        predictions(lines({"id": "a", "suggestions": [{"id": None, "score": 1}]}), "p.jsonl"),
        SCORE,
        code=1,
        says="p.jsonl: line 1 is not a list of suggestions",
    ),
    Case(
        "predictions in Latin-1",
        {"p.tsv": "a\tGrün\t1\n".encode("latin-1"), "gold.tsv": "a\tGrün\n"},
        SCORE,
        says="p.tsv: not UTF-8 and read as Windows-1252",
        measures=RIGHT,
    ),
    Case(
        "scores with a decimal comma",
        predictions("id;label;score\na;Bread;0,05\na;Oats;0,95\nb;Bread;1,0\n", "p.csv"),
        SCORE,
        measures={"P@1": 1.0, "MiF": 0.8},
    ),
    Case(
        "predictions as Excel writes them",
        predictions("\ufeffsep=;\r\nid;label;score;\r\na;Oats;1;\r\nb;Bread;1;\r\n", "p.csv"),
        SCORE,
        measures=RIGHT,
    ),
    Case(
        "rows and labels twice",
        predictions("a\tOats\t0.9\na\tOats\t0.9\na\tOats\t0.1\nb\tBread\t1\n"),
        SCORE,
        measures=RIGHT,
    ),
    Case(
        "documents that the gold labels do not have",
        predictions("a\tOats\t1\nb\tBread\t1\nz\tOats\t1\n"),
        SCORE,
        says="p.tsv: 1 document without gold labels: z",
        measures=RIGHT,
    ),
    Case(
        "no label of the gold labels",
        predictions("a\tX1\t1\nb\tX2\t1\n"),
        SCORE,
        says="p.tsv: none of its labels is a gold label (such as 'X1' here, 'Oats' there)",
        measures={"P@1": 0.0, "MiF": 0.0},
    ),
    Case(
        "Macintosh line ends in predictions",
        predictions("a\tOats\t1\rb\tBread\t1\r"),
        SCORE,
        measures=RIGHT,
    ),
    Case(
        "a line separator of Unicode in a label",
        predictions("a\tOats\u2028x\t0.5\na\tOats\t1\nb\tBread\t1\n"),
        SCORE,
        measures={"P@1": 1.0, "MiF": 0.8},
    ),
    Case(
        "predictions over several lines, as jq prints them",
        predictions(
            "\n".join(
                json.dumps({"id": i, "suggestions": [{"id": label, "score": 1}]}, indent=2)
                for i, label in (("a", "Oats"), ("b", "Bread"))
            ),
            "p.json",
        ),
        SCORE,
        measures=RIGHT,
    ),
    Case(
        "an empty file of predictions",
        predictions("", "p.tsv"),
        SCORE,
        code=1,
        says="p.tsv: the file is empty",
    ),
    Case(
        "a matrix of Python objects",
        predictions(b"PK\x03\x04 not an archive", "p.npz"),
        SCORE,
        code=1,
        says="p.npz: not a sparse matrix",
    ),
]

CASES = [*ENCODINGS, *TABLES, *JSON, *XML, *FILES, *VOCABULARIES, *PREDICTIONS]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection without documents."""
    from labelkin.cli.main import app

    path = tmp_path_factory.mktemp("odd")
    (path / "v.tsv").write_bytes(VOCABULARY)
    command = ["init", str(path / "c"), "--vocab", str(path / "v.tsv"), "--language", "en"]
    assert CliRunner().invoke(app, command).exit_code == 0
    return path / "c"


def run(case: Case) -> Result:
    from labelkin.cli.main import app

    for name, content in case.files.items():
        if callable(content):
            content(Path(name))
        else:
            Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    given = next(iter(case.files), "")
    command = [given if word == "FILE" else word for word in case.command.split()]
    return CliRunner().invoke(app, command, input=case.standard_input)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_right_outcome(
    case: Case, template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "/proc/" in case.command and not Path("/proc/self/mem").exists():
        pytest.skip("needs Linux")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(template, "c")
    result = run(case)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    told = result.stderr.splitlines()
    assert result.exit_code == case.code, result.stderr
    assert "Traceback" not in result.stderr
    assert "should not happen" not in result.stderr
    assert len(told) <= MOST_LINES, result.stderr
    if case.says:
        assert sum(case.says in line for line in told) == 1, result.stderr
    else:
        assert not [line for line in told if line.startswith(("warning", "error"))], result.stderr
    if result.stdout and case.command.startswith("add"):
        check_counts(json.loads(result.stdout), case)
    assert case.printed in result.stdout
    check_collection(case)
    if case.measures is not None:
        values = json.loads(result.stdout)
        assert {name: values[name] for name in case.measures} == pytest.approx(case.measures)
    if case.concepts is not None:
        check_vocabulary(case)
    elif case.command.startswith("init"):
        assert not Path("new").exists()


def check_counts(counts: dict[str, Any], case: Case) -> None:
    """Every record that was read is accounted for."""
    stored = ("added", "replaced", "unchanged", "duplicates", "skipped")
    assert counts["read"] == sum(counts[key] for key in stored)
    assert {key: counts[key] for key in case.counts} == case.counts


def check_collection(case: Case) -> None:
    with Indexer.open("c") as indexer:
        documents = {document.id: document for document in indexer.collection.documents()}
    if case.texts:
        assert sorted(one.text for one in documents.values()) == sorted(case.texts)
    else:
        assert {one.id: one.text for one in documents.values()} == case.documents
    for identifier, labels in case.labels.items():
        assert list(documents[identifier].labels) == list(labels)


def check_vocabulary(case: Case) -> None:
    with Indexer.open("new") as indexer:
        vocabulary = indexer.vocabulary
    assert {concept.id: concept.name() for concept in vocabulary} == case.concepts
    for identifier, broader in case.broader.items():
        assert list(vocabulary.concept(identifier).broader) == list(broader)


def test_closed_standard_input(template: Path, tmp_path: Path) -> None:
    command = f"exec {sys.executable} -m labelkin add {template} - <&-"
    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == (
        "error: standard input is empty; pipe texts or a corpus into it"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_must_not_be_read(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(template, "c")
    Path("x.jsonl").touch(mode=0)
    result = run(Case("", {}, "add c x.jsonl"))
    assert result.exit_code == 1
    assert "error: x.jsonl: Permission denied" in result.stderr


def test_a_file_that_is_cut_while_it_is_read(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole records before the cut are kept, and the broken one is reported."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(template, "c")
    content = lines(*(record(n, "On oats " * 20) for n in range(3000)))
    path = Path("x.jsonl")
    path.write_text(content)
    take = Intake.take

    def cut(self: Intake, value: object, where: str, *, needs_id: bool = True) -> Any:
        if where == "line 500" and not isinstance(self.report, SilentReport):
            os.truncate(path, len(content) // 2 + 10)
        return take(self, value, where, needs_id=needs_id)

    monkeypatch.setattr(Intake, "take", cut)
    result = run(Case("", {}, "add c x.jsonl --json"))
    assert result.exit_code == 0, result.stderr
    (line,) = result.stderr.splitlines()
    assert "broken JSON" in line
    counts = json.loads(result.stdout)
    assert counts["skipped"] == 1
    assert counts["read"] == counts["added"] + 1
    assert counts["added"] > 1000
