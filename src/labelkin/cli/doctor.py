"""`labelkin doctor` (also `check`): verifies a collection, and repairs what can be rebuilt."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.console import counted, print_facts, print_json, print_message
from labelkin.cli.exits import FAILED, PARTLY_DONE
from labelkin.cli.options import CollectionPath, Json

if TYPE_CHECKING:
    from labelkin.integrity import CheckReport, Finding


def doctor(
    collection: CollectionPath,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Repair what can be rebuilt from the documents: a lost manifest, missing "
            "settings, label segments, indexes, caches; remove what killed processes have left. "
            "Let no other process use the collection meanwhile.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Verify a collection: say what is damaged, and how to repair it.

    Every file is compared with its checksum, and what is derived from the documents with the
    documents. `labelkin check` is the same.

    Exits with 0 if everything is sound or repaired, with 1 if something is
    damaged, and with 3 if --repair has repaired only a part of it.
    """
    from labelkin.integrity import check_collection

    report = check_collection(collection, repair=repair)
    if json:
        print_json({**asdict(report), "sound": report.is_sound})
    else:
        print_check(report)
    if not report.is_sound:
        is_repaired = any(one.state == "repaired" for one in report.findings)
        raise typer.Exit(PARTLY_DONE if is_repaired else FAILED)


def print_check(report: CheckReport) -> None:
    """Print the findings for a person."""
    print_facts((one.part, _text(one)) for one in report.findings)
    damaged = [one for one in report.findings if one.state == "damaged"]
    if not report.is_complete:
        print_message("The rest cannot be checked until this is repaired.")
    elif damaged:
        print_message(f"{counted(len(damaged), 'part')} damaged.")
    elif report.problems:
        print_message(f"{counted(len(report.problems), 'part')} repaired.")
    else:
        print_message("Everything is sound.")
    left = [one for one in report.findings if one.state == "leftover"]
    if left:
        print_message(
            f"{counted(len(left), 'leftover')} of killed processes; --repair removes them."
        )
    removed = [one for one in report.findings if one.state == "removed"]
    if removed:
        print_message(f"{counted(len(removed), 'leftover')} of killed processes removed.")


def _text(finding: Finding) -> str:
    if finding.state == "sound":
        return f"sound: {finding.note}" if finding.note else "sound"
    if finding.state == "no checksum":
        return finding.problem
    text = f"{finding.state.upper()}: {finding.problem}"
    return f"{text}; {finding.remedy}" if finding.remedy else text
