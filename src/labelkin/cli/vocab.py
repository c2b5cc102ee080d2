"""`labelkin vocab`: looking into a vocabulary, a collection's or a file's."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.console import print_facts, print_json, print_line, print_table
from labelkin.cli.exits import FAILED
from labelkin.cli.options import CollectionPath, Json, Language

if TYPE_CHECKING:
    from labelkin.vocab import Concept, Vocabulary

app = typer.Typer(no_args_is_help=True, help="Look into a vocabulary.")

SourcePath = Annotated[
    Path, typer.Argument(metavar="SOURCE", help="A collection folder or a vocabulary file.")
]


def open_vocabulary(source: Path) -> Vocabulary:
    """The vocabulary of a collection folder or in a file."""
    from labelkin.indexer import Indexer
    from labelkin.vocab import read_vocabulary

    if source.is_dir():
        with Indexer.open(source) as indexer:
            return indexer.vocabulary
    return read_vocabulary(source)


@app.command()
def show(
    source: SourcePath,
    heading: Annotated[str, typer.Argument(help="An id, a name or a synonym.")],
    language: Language = "en",
    json: Json = False,
) -> None:
    """Show one heading with its names and its place in the hierarchy."""
    vocabulary = open_vocabulary(source)
    concept = vocabulary.find(heading)
    narrower = vocabulary.narrower(concept.id)
    if json:
        print_json({**asdict(concept), "narrower": list(narrower)})
        return

    def named(ids: tuple[str, ...]) -> str:
        return "; ".join(
            vocabulary.concept(i).name(language) if i in vocabulary else i for i in ids
        )

    facts = [("Id", concept.id)]
    facts += [(f"Name ({tag})", name) for tag, name in concept.names.items()]
    facts += [(f"Synonyms ({tag})", "; ".join(names)) for tag, names in concept.synonyms.items()]
    facts += [
        ("Notation", "; ".join(concept.notations)),
        ("Broader", named(concept.broader)),
        ("Narrower", named(narrower)),
        ("Related", named(concept.related)),
        ("Schemes", "; ".join(concept.schemes)),
        ("Deprecated", "yes" if concept.deprecated else ""),
        ("Replaced by", named(concept.replaced_by)),
    ]
    print_facts((name, value) for name, value in facts if value)


@app.command()
def search(
    source: SourcePath,
    query: Annotated[str, typer.Argument(help="Part of a name or synonym.")],
    limit: Annotated[int, typer.Option(min=1, help="How many headings to list.")] = 20,
    language: Language = "en",
    json: Json = False,
) -> None:
    """Find headings by part of a name or synonym."""
    hits = open_vocabulary(source).search(query, limit)
    if json:
        rows = [{"id": c.id, "name": c.name(language), "matched": name} for c, name in hits]
        print_json(rows)
    elif hits:
        rows_text = [
            (c.id, c.name(language), name if name != c.name(language) else "") for c, name in hits
        ]
        print_table("", [("id", False), ("heading", False), ("matched", False)], rows_text)
    if not hits:
        raise typer.Exit(FAILED)


@app.command()
def related(
    collection: CollectionPath,
    heading: Annotated[str, typer.Argument(help="An id, a name or a synonym.")],
    limit: Annotated[int, typer.Option(min=1, help="How many headings to list.")] = 10,
    language: Language = "en",
    json: Json = False,
) -> None:
    """List the headings that the label autoencoder places nearest to one."""
    from labelkin.indexer import Indexer

    with Indexer.open(collection) as indexer:
        nearest = indexer.related(heading, limit)
    if json:
        print_json([{"id": c.id, "name": c.name(language), "similarity": s} for c, s in nearest])
        return
    rows = [(f"{similarity:.3f}", c.id, c.name(language)) for c, similarity in nearest]
    print_table("", [("similarity", True), ("id", False), ("heading", False)], rows)


@app.command()
def tree(
    source: SourcePath,
    heading: Annotated[str | None, typer.Argument(help="Where to start; default: the top.")] = None,
    depth: Annotated[int, typer.Option(min=1, help="How many levels to show.")] = 2,
    language: Language = "en",
    json: Json = False,
) -> None:
    """Show headings with the narrower ones below them."""
    vocabulary = open_vocabulary(source)
    roots = [vocabulary.find(heading)] if heading else vocabulary.top()
    branches = [_branch(vocabulary, root, depth, language, frozenset()) for root in roots]
    if json:
        print_json(branches)
        return
    for branch in branches:
        _print_branch(branch, 0)


def _branch(
    vocabulary: Vocabulary, concept: Concept, depth: int, language: str, above: frozenset[str]
) -> dict[str, object]:
    below = vocabulary.narrower(concept.id)
    branch: dict[str, object] = {
        "id": concept.id,
        "name": concept.name(language),
        "narrower_count": len(below),
    }
    # A vocabulary may contain a cycle.
    if depth > 1 and concept.id not in above:
        branch["narrower"] = [
            _branch(vocabulary, vocabulary.concept(i), depth - 1, language, above | {concept.id})
            for i in below
        ]
    return branch


def _print_branch(branch: dict[str, object], level: int) -> None:
    children = branch.get("narrower")
    count = branch["narrower_count"]
    hidden = f"  (+{count})" if count and not children else ""
    print_line(f"{'  ' * level}{branch['name']}{hidden}")
    if isinstance(children, list):
        for child in children:
            _print_branch(child, level + 1)


@app.command()
def stats(source: SourcePath, language: Language = "en", json: Json = False) -> None:
    """Count headings per top-level category, names, synonyms and places in the hierarchy."""
    from labelkin.vocab import categories

    vocabulary = open_vocabulary(source)
    by_category = categories(vocabulary, language)
    synonyms = sum(len(names) for c in vocabulary for names in c.synonyms.values())
    placed = sum(bool(c.notations or c.broader or vocabulary.narrower(c.id)) for c in vocabulary)
    counts = {
        "concepts": len(vocabulary),
        "synonyms": synonyms,
        "languages": vocabulary.languages(),
        "in_hierarchy": placed,
        "deprecated": sum(c.deprecated for c in vocabulary),
    }
    if json:
        print_json({**counts, "categories": [asdict(category) for category in by_category]})
        return
    if placed:
        rows = [
            (f"({c.code}) {c.name}".strip(), f"{c.concepts:,}", f"{c.places:,}")
            for c in by_category[:50]
        ]
        columns = [("category", False), ("headings", True), ("places in the tree", True)]
        print_table("", columns, rows)
        typer.echo()
    print_facts(
        [
            ("Concepts", f"{len(vocabulary):,}"),
            ("Synonyms", f"{synonyms:,}"),
            ("Languages", ", ".join(vocabulary.languages())),
            ("In the hierarchy", f"{placed:,}"),
            ("Deprecated", f"{counts['deprecated']:,}"),
        ]
    )
