"""`labelkin vocab diff` and `labelkin vocab update`: editions of a vocabulary."""

from __future__ import annotations

import json as json_module
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.console import (
    counted,
    print_facts,
    print_json,
    print_line,
    print_message,
    print_table,
    seconds_text,
)
from labelkin.cli.languages import opened_vocabulary
from labelkin.cli.options import (
    CollectionPath,
    Json,
    Language,
    VocabularyFormat,
    VocabularyLanguage,
    named_path,
)
from labelkin.cli.outputs import check_output, open_output, table_cell
from labelkin.cli.progress import meter
from labelkin.wording import listed, shortened

if TYPE_CHECKING:
    from labelkin.store.reports import EditionReport
    from labelkin.vocab.editions import ConceptChange, EditionDiff

# How many changes of a kind, or headings, are shown; more are only counted.
_SHOWN = 5
_FORMATS = {".json": "json", ".tsv": "tsv"}
# Kinds of changes that name other concepts by their ids.
_OF_CONCEPTS = ("merged", "split", "moved")


def diff(
    old: Annotated[
        Path,
        typer.Argument(
            metavar="OLD", parser=named_path, help="A vocabulary file or a collection folder."
        ),
    ],
    new: Annotated[
        Path,
        typer.Argument(metavar="NEW", parser=named_path, help="Another edition of it."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            parser=named_path,
            help="Write every change to this file: .json or .tsv.",
        ),
    ] = None,
    vocab_format: VocabularyFormat = None,
    vocab_language: VocabularyLanguage = "en",
    language: Language = None,
    json: Json = False,
) -> None:
    """Compare two editions of a vocabulary: counts, then examples of each kind of change."""
    from labelkin.outputs import output_format
    from labelkin.vocab.editions import compare_editions

    file_format = ""
    if output is not None:
        check_output(output, [old, new])
        file_format = output_format(output, None, _FORMATS, list(_FORMATS.values()), option="")
    before, _ = opened_vocabulary(old, None, vocab_format, vocab_language)
    after, shown_in = opened_vocabulary(new, language, vocab_format, vocab_language)
    difference = compare_editions(before, after)
    names = {one.id: one.name(shown_in) for edition in (before, after) for one in edition}
    if output is not None:
        _write(difference, names, output, file_format, shown_in)
    if json:
        print_json(difference.to_json(shown_in))
    elif output is None or str(output) != "-":
        _print_diff(difference, names)


def _print_diff(difference: EditionDiff, names: Mapping[str, str]) -> None:
    from labelkin.vocab.editions import KINDS

    print_facts([("Headings", f"{difference.old:,}, now {difference.new:,}")])
    print_line()
    rows = [(kind, f"{count:,}", KINDS[kind]) for kind, count in difference.counts().items()]
    print_table("", [("change", False), ("headings", True), ("meaning", False)], rows)
    for kind, changes in difference.changes.items():
        if changes:
            print_line(f"\n{kind}:")
        for change in changes[:_SHOWN]:
            heading = f"{names[change.concept.id]} ({change.concept.id})"
            print_line(f"  {heading}{_instead(kind, change, names)}")
        if len(changes) > _SHOWN:
            print_line(f"  and {len(changes) - _SHOWN:,} more; -o FILE and --json list all")


def _instead(kind: str, change: ConceptChange, names: Mapping[str, str]) -> str:
    """What was and what is instead, as the end of a line."""
    before, after = (
        listed([names.get(one, one) if kind in _OF_CONCEPTS else one for one in part])
        for part in (change.before, change.after)
    )
    if kind == "moved":
        places = (f"no longer below {before}" if before else "", f"below {after}" if after else "")
        return f": {', but '.join(filter(None, places))}"
    if not before and not after:
        return ""
    return f": {before} → {after}" if before and after else f": {before or after}"


def _write(
    difference: EditionDiff, names: Mapping[str, str], output: Path, format: str, language: str
) -> None:
    with open_output(output) as file:
        if format == "json":
            content = difference.to_json(language)
            file.write(json_module.dumps(content, ensure_ascii=False, indent=2) + "\n")
            return
        file.write("change\tid\tname\tbefore\tafter\n")
        for kind, changes in difference.changes.items():
            for change in changes:
                cells = (
                    *(kind, change.concept.id, names[change.concept.id]),
                    *("|".join(change.before), "|".join(change.after)),
                )
                file.write("\t".join(map(table_cell, cells)) + "\n")


def update(
    collection: CollectionPath,
    new: Annotated[
        Path | None,
        typer.Argument(metavar="NEW", parser=named_path, help="The vocabulary file."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the report and change nothing.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Restore the edition before the last update.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Update although the edition lacks most headings."),
    ] = False,
    vocab_format: VocabularyFormat = None,
    vocab_language: VocabularyLanguage = "en",
    json: Json = False,
) -> None:
    """Bring a collection to another edition of its vocabulary, or back to the one before."""
    from labelkin.indexer import Indexer

    if undo == (new is not None):
        raise typer.BadParameter("give the file of the new edition, or --undo, and not both")
    vocabulary = None
    if new is not None:
        vocabulary, _ = opened_vocabulary(new, None, vocab_format, vocab_language)
    with (
        Indexer.open(collection, read_only=dry_run) as indexer,
        meter("Updating documents", 0) as progress,
    ):

        def show(done: int, total: int) -> None:
            progress.update(done, f"{done:,} of {counted(total, 'document')}")

        report = (
            indexer.undo_vocabulary(dry_run=dry_run, progress=show)
            if vocabulary is None
            else indexer.update_vocabulary(vocabulary, dry_run=dry_run, force=force, progress=show)
        )
        names = {one.id: one.name() for one in vocabulary or indexer.vocabulary}
    if json:
        print_json({"dry_run": dry_run, **report.to_json()})
        return
    _print_report(report, names)
    if dry_run:
        print_message("A dry run: nothing was changed.")
    elif not report.is_changed:
        print_message("The collection has this edition already; nothing was changed.")
    elif undo:
        print_message(f"Restored the edition before in {seconds_text(report.seconds)}.")
    else:
        print_message(
            f"Updated in {seconds_text(report.seconds)}; "
            f"`labelkin vocab update {collection} --undo` restores the edition before."
        )


def _print_report(report: EditionReport, names: Mapping[str, str]) -> None:
    changes = [f"{count:,} {kind}" for kind, count in report.changes.items() if count]
    still = report.unresolved.total()
    models = [f"{count:,} to {model}" for model, count in report.new_to_models.items() if count]
    print_facts(
        [
            ("Headings", f"{report.headings:,}"),
            ("Changes", ", ".join(changes) or "none"),
            ("Documents with other headings", f"{report.documents:,}"),
            ("Documents with renamed headings", f"{report.reindexed:,}"),
            ("Labels that follow a replaced heading", f"{report.followed.total():,}"),
            ("Labels resolved now", f"{report.resolved.total():,}"),
            ("Labels still not in the vocabulary", f"{still:,}"),
            (
                "Headings no longer suggested",
                f"{len(report.withdrawn):,}, in {counted(report.withdrawn_documents, 'document')}",
            ),
            ("New headings", f"{len(report.new_headings):,}"),
            ("New to the models", ", ".join(models) or "none"),
        ]
    )
    carried = [heading for heading in report.withdrawn if heading.count]
    if carried:
        print_line("\nNo longer suggested, and carried by documents:")
    for heading in carried[:_SHOWN]:
        instead = listed([names.get(one, one) for one in heading.successors])
        print_line(
            f"  {shortened(heading.name)} ({heading.id}): {listed(heading.documents)}"
            + (f"; split into {instead}" if instead else "")
        )
    if len(carried) > _SHOWN:
        print_line(f"  and {len(carried) - _SHOWN:,} more; --json lists all")
