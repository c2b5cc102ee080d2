"""MEDLINE files as the grid `medline` wants them: train, dev and test, citations of recent years.

python benchmarks/medline_split.py FILES... -o FOLDER

FILES are BioASQ's JSON or PubMed XML, gzipped or not. Citations with an abstract and headings
that were published in 2010 or later are kept, as in the paper. About one in 680 goes to dev and
as many to test (10,000 each of 6.8 million), decided by a digest of its PMID, so that the
same citation always goes to the same file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from labelkin import Document, read_corpus
from labelkin.atomic import atomic_text
from labelkin.corpus.writers import to_record


def year_of(document: Document) -> int:
    found = str(document.metadata.get("year") or "")[:4]
    return int(found) if found.isdigit() else 0


def split_of(document: Document, share: float) -> str:
    digest = hashlib.blake2b(document.id.encode(), digest_size=8).digest()
    place = int.from_bytes(digest) / 2**64
    if place < share:
        return "dev"
    return "test" if place < 2 * share else "train"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--since", type=int, default=2010)
    parser.add_argument("--share", type=float, default=1 / 680)
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        files = {
            split: stack.enter_context(atomic_text(asked.output / f"{split}.jsonl.gz"))
            for split in ("train", "dev", "test")
        }
        for document in read_corpus(*asked.files).documents():
            if not (document.body and document.labels) or year_of(document) < asked.since:
                counts["left out"] += 1
                continue
            split = split_of(document, asked.share)
            record = to_record(document)
            # Of the metadata nothing is needed any more.
            record.pop("metadata", None)
            files[split].write(json.dumps(record, ensure_ascii=False) + "\n")
            counts[split] += 1
    print(", ".join(f"{name} {count:,}" for name, count in counts.items()))


if __name__ == "__main__":
    main()
