"""`labelkin info`: a collection at a glance."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from labelkin.cli.console import bytes_text, print_facts, print_json
from labelkin.cli.options import CollectionPath, Json

if TYPE_CHECKING:
    from labelkin.store import CollectionInfo


def info(collection: CollectionPath, json: Json = False) -> None:
    """Show how many documents and labels there are, and what was built from them."""
    from labelkin.indexer import Indexer

    with Indexer.open(collection) as indexer:
        found = indexer.info()
    if json:
        print_json(asdict(found))
    else:
        print_info(found)


def print_info(found: CollectionInfo) -> None:
    """Print the facts for a person."""
    per_document = (
        f"{found.labels_per_document_mean:.2f} on average, "
        f"{found.labels_per_document_median:g} median, {found.labels_per_document_max} at most"
    )
    steps = [
        (f"  in at least {int(step):,}", f"{count:,}")
        for step, count in found.labels_with_at_least.items()
    ]
    languages = ", ".join(f"{name} {count:,}" for name, count in found.languages.items())
    unresolved = found.documents_with_unresolved_labels
    print_facts(
        [
            ("Collection", found.name + (" (read-only)" if found.read_only else "")),
            ("Documents", f"{found.documents:,}"),
            ("  without labels", f"{found.documents_without_labels:,}"),
            ("  with unresolved labels", f"{unresolved:,}"),
            ("Languages", languages or "none yet"),
            ("Concepts", f"{found.concepts:,}"),
            ("  used as labels", f"{found.labels_used:,}"),
            *steps,
            ("Labels per document", per_document),
            ("Label occurrences", f"{found.label_occurrences:,}"),
            ("Indexes", ", ".join(found.indexes) or "none yet"),
            ("Models", ", ".join(found.models) or "none trained yet"),
            ("Disk", bytes_text(found.disk_bytes)),
        ]
    )
