"""`labelkin vocab`: looking into a vocabulary, a collection's or a file's; its editions."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.console import print_facts, print_json, print_line, print_message, print_table
from labelkin.cli.editions import diff, update
from labelkin.cli.exits import FAILED
from labelkin.cli.languages import heading_language, opened_vocabulary
from labelkin.cli.options import CollectionPath, Json, Language, named_path
from labelkin.wording import counted

if TYPE_CHECKING:
    from labelkin.vocab import Concept, Vocabulary

app = typer.Typer(no_args_is_help=True, help="Look into a vocabulary, or update it.")

_NO_HEADINGS = "the vocabulary has no headings yet; documents bring them, see `labelkin add`"
# More names than these are only counted.
_SHOWN_NAMES = 20

SourcePath = Annotated[
    Path,
    typer.Argument(
        metavar="SOURCE", parser=named_path, help="A collection folder or a vocabulary file."
    ),
]


@app.command()
def show(
    source: SourcePath,
    heading: Annotated[str, typer.Argument(help="An id, a name or a synonym.")],
    language: Language = None,
    json: Json = False,
) -> None:
    """Show one heading with its names and its place in the hierarchy."""
    vocabulary, shown_in = opened_vocabulary(source, language)
    concept = vocabulary.find(heading)
    narrower = vocabulary.narrower(concept.id)
    if json:
        print_json({**asdict(concept), "narrower": list(narrower)})
        return

    def named(ids: tuple[str, ...]) -> str:
        names = [
            vocabulary.concept(i).name(shown_in) if i in vocabulary else i
            for i in ids[:_SHOWN_NAMES]
        ]
        if (more := len(ids) - len(names)) > 0:
            names.append(f"and {more:,} more (`labelkin vocab tree` lists narrower ones)")
        return "; ".join(names)

    groups = [f"{names[0]} ({one})" if names else one for one, names in concept.groups.items()]
    facts = [("Id", concept.id)]
    facts += [(f"Name ({tag})", name) for tag, name in concept.names.items()]
    facts += [(f"Synonyms ({tag})", "; ".join(names)) for tag, names in concept.synonyms.items()]
    facts += [
        ("Notation", "; ".join(concept.notations)),
        ("Broader", named(concept.broader)),
        ("Narrower", named(narrower)),
        ("Related", named(concept.related)),
        ("Schemes", "; ".join(one for one in concept.schemes if one not in concept.groups)),
        ("Groups", "; ".join(groups)),
        ("Deprecated", "yes" if concept.deprecated else ""),
        ("Replaced by", named(concept.replaced_by)),
    ]
    print_facts((name, value) for name, value in facts if value)


@app.command()
def search(
    source: SourcePath,
    query: Annotated[str, typer.Argument(help="Part of a name or synonym, an id or a notation.")],
    limit: Annotated[int, typer.Option(min=1, help="How many headings to list.")] = 20,
    offset: Annotated[int, typer.Option(min=0, help="How many headings to leave out.")] = 0,
    language: Language = None,
    json: Json = False,
) -> None:
    """Find headings by part of a name or synonym, or by an id or notation."""
    if not query.strip():
        raise typer.BadParameter("give a part of a name; `labelkin vocab tree` lists all headings")
    vocabulary, shown_in = opened_vocabulary(source, language)
    page = vocabulary.search_page(query, offset, limit)
    hits = page.hits
    if json:
        rows = [
            {
                "id": hit.concept.id,
                **hit.concept.names_as_json(shown_in),
                "matched": hit.name,
                "language": hit.language,
            }
            for hit in hits
        ]
        print_json(rows)
    elif hits:
        rows_text = [
            (one.concept.id, name, one.name if one.name not in (name, one.concept.id) else "")
            for one in hits
            for name in [one.concept.name(shown_in)]
        ]
        print_table("", [("id", False), ("heading", False), ("matched", False)], rows_text)
    if page.total > len(hits):
        shown = f"{offset + 1:,} to {offset + len(hits):,}" if hits else "none"
        print_message(f"Listed {shown} of {counted(page.total, 'heading')}; see --limit, --offset.")
    if not page.total:
        close = vocabulary.similar_names(query)
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "try a shorter part"
        if not len(vocabulary):
            hint = _NO_HEADINGS
        print_message(f"No heading contains {query!r} in a name or synonym; {hint}")
        raise typer.Exit(FAILED)


@app.command()
def related(
    collection: CollectionPath,
    heading: Annotated[str, typer.Argument(help="An id, a name or a synonym.")],
    limit: Annotated[int, typer.Option(min=1, help="How many headings to list.")] = 10,
    language: Language = None,
    json: Json = False,
) -> None:
    """List the headings that the label autoencoder places nearest to one."""
    from labelkin.indexer import Indexer

    with Indexer.open(collection) as indexer:
        shown_in = heading_language(indexer, language)
        nearest = indexer.related(heading, limit)
    if json:
        rows = [{"id": c.id, **c.names_as_json(shown_in), "similarity": s} for c, s in nearest]
        print_json(rows)
        return
    if not nearest:
        print_message("The label autoencoder knows no other heading.")
        return
    table = [(f"{similarity:.3f}", c.id, c.name(shown_in)) for c, similarity in nearest]
    print_table("", [("similarity", True), ("id", False), ("heading", False)], table)


@app.command()
def tree(
    source: SourcePath,
    heading: Annotated[str | None, typer.Argument(help="Where to start; default: the top.")] = None,
    depth: Annotated[int, typer.Option(min=1, max=200, help="How many levels to show.")] = 2,
    language: Language = None,
    json: Json = False,
) -> None:
    """Show headings with the narrower ones below them, by notation or name."""
    from labelkin.vocab.order import in_order

    vocabulary, shown_in = opened_vocabulary(source, language)
    start = vocabulary.top() if heading is None else [vocabulary.find(heading)]
    roots = in_order(start, shown_in)
    branches = [_branch(vocabulary, root, depth, shown_in, frozenset()) for root in roots]
    if json:
        print_json(branches)
        return
    for branch in branches:
        _print_branch(branch, 0)
    if not branches:
        print_message(f"Nothing to show: {_NO_HEADINGS}")


def _branch(
    vocabulary: Vocabulary, concept: Concept, depth: int, language: str, above: frozenset[str]
) -> dict[str, object]:
    from labelkin.vocab.order import in_order

    below = vocabulary.narrower(concept.id)
    branch: dict[str, object] = {
        "id": concept.id,
        **concept.names_as_json(language),
        "narrower_count": len(below),
    }
    # A vocabulary may contain a cycle.
    if depth > 1 and concept.id not in above:
        branch["narrower"] = [
            _branch(vocabulary, one, depth - 1, language, above | {concept.id})
            for one in in_order(map(vocabulary.concept, below), language, concept)
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
def stats(source: SourcePath, language: Language = None, json: Json = False) -> None:
    """Count headings per top-level category, names, synonyms and places in the hierarchy."""
    from labelkin.vocab import categories

    vocabulary, shown_in = opened_vocabulary(source, language)
    by_category = categories(vocabulary, shown_in)
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
        print_line()
    print_facts(
        [
            ("Concepts", f"{len(vocabulary):,}"),
            ("Synonyms", f"{synonyms:,}"),
            ("Languages", ", ".join(vocabulary.languages())),
            ("In the hierarchy", f"{placed:,}"),
            ("Deprecated", f"{counts['deprecated']:,}"),
        ]
    )


app.command()(diff)
app.command()(update)
