"""`labelkin info`: a collection at a glance."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from labelkin.cli.console import bytes_text, counted, print_facts, print_json
from labelkin.cli.options import CollectionPath, Json
from labelkin.wording import listed

if TYPE_CHECKING:
    from labelkin.store import CollectionInfo


def info(collection: CollectionPath, json: Json = False) -> None:
    """Show how many documents and labels there are, and what was built from them."""
    from labelkin.indexer import Indexer

    with Indexer.open(collection) as indexer:
        summary = indexer.info()
    if json:
        print_json(asdict(summary))
    else:
        print_info(summary)


def print_info(summary: CollectionInfo) -> None:
    """Print the facts for a person; rows that would say nothing are left out."""
    per_document = (
        f"{summary.labels_per_document_mean:.2f} on average, "
        f"{summary.labels_per_document_median:g} median, {summary.labels_per_document_max} at most"
    )
    steps = [
        (f"  in at least {int(step):,}", _some(count))
        for step, count in summary.labels_with_at_least.items()
    ]
    has_labels = summary.label_occurrences > 0
    facts = [
        ("Collection", summary.name + (" (read-only)" if summary.read_only else "")),
        ("Documents", f"{summary.documents:,}"),
        ("  without labels", _some(summary.documents_without_labels)),
        ("  with unresolved labels", _some(summary.documents_with_unresolved_labels)),
        ("Languages", ", ".join(f"{name} {count:,}" for name, count in summary.languages.items())),
        ("Concepts", f"{summary.concepts:,}"),
        ("  used as labels", _some(summary.labels_used)),
        *steps,
        ("Labels per document", per_document if has_labels else ""),
        ("Label occurrences", _some(summary.label_occurrences)),
        ("Indexes", ", ".join(summary.indexes) or "none yet"),
        *model_facts(summary),
        ("Work lists", _some(summary.worklists)),
        ("Decisions of indexers", _some(summary.decisions)),
        ("Work lists and verdicts", summary.desk_problem),
        ("Disk", bytes_text(summary.disk_bytes)),
    ]
    print_facts((name, value) for name, value in facts if value)


def _some(count: int) -> str:
    return f"{count:,}" if count else ""


def model_facts(summary: CollectionInfo) -> list[tuple[str, str]]:
    """The models that can be used, what is wrong with the others, and which ones are outdated."""
    if not summary.model_states:
        return [("Models", "none trained yet")]
    facts = [("Models", ", ".join(summary.models) or "none that can be used")]
    for state in summary.model_states:
        if not state["is_usable"]:
            facts.append((f"  {state['name']}", f"cannot be used: {state['problem']}"))
        elif changes := _changes(state):
            advice = ""
            if state["is_outdated"]:
                advice = f"; retraining with `labelkin train` may help: {state['reason']}"
            facts.append((f"  {state['name']}", f"{changes} since it was trained{advice}"))
        if lacking := state["headings_without_row"]:
            lack = f"{counted(lacking, 'heading')} in use: suggested by votes and names only"
            facts.append((f"  {state['name']} lacks", lack))
    return facts


def _changes(state: dict[str, Any]) -> str:
    """What has changed since a model was trained; empty if nothing has."""
    changes = []
    for key, noun, verb in (
        ("added", "document", "added"),
        ("removed", "document", "removed"),
        ("unknown_headings", "heading", "that it does not know"),
    ):
        if state[key]:
            changes.append(f"{counted(state[key], noun)} {verb}")
    if state["unknown"]:
        changes[-1] += f" ({listed(state['unknown'])})"
    return ", ".join(changes)
