"""Fuzzing with coverage: `python -m tests.fuzz.run_atheris [TARGET…] [--seconds 3600]`.

Needs atheris (`pip install 'labelkin[fuzz]'`). Each target runs in a process of
its own, one after another, and shares the time with the others; inputs that
found something new stay in the work folder, and a later run starts from them.
The number of inputs of each target is a line of `--results`.
An input that breaks a promise ends its target, and is kept as `crash-…`,
`timeout-…` or `oom-…` beside them.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tarfile
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from ..reliability.records import RESULTS, append
from .mutations import mutated
from .targets import LONGEST_SECONDS, Target, checked, models, readers

ROOT = Path(__file__).parents[2]
_MEGABYTES = 2048
_LONGEST_INPUT = 100_000
_EXECUTED = re.compile(r"stat::number_of_executed_units:\s+(\d+)")
_INSTRUMENTED = (
    *("labelkin.corpus.corpus", "labelkin.corpus.annif", "labelkin.corpus.bioasq"),
    *("labelkin.corpus.jsonl", "labelkin.corpus.pubmed", "labelkin.corpus.table"),
    *("labelkin.vocab.mesh", "labelkin.vocab.rdf_xml", "labelkin.vocab.skos"),
    *("labelkin.vocab.table", "labelkin.evaluate.files", "labelkin.store.config"),
    *("labelkin.neighbours.neighbours", "labelkin.autoencoder.model", "labelkin.rerank.model"),
)


def all_targets(folder: Path) -> dict[str, Target]:
    """The readers, and the models of a collection, which is that of version 0.1."""
    with tarfile.open(ROOT / "tests" / "fixtures" / "collection-0.1.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return {**readers(), **models(folder / "collection")}


def fuzz_one(name: str, work: Path, seconds: int) -> None:
    """Fuzz one target in this process, which ends with it."""
    import atheris

    with atheris.instrument_imports(include=["labelkin"]):
        for module in _INSTRUMENTED:
            import_module(module)
    folder = Path(tempfile.mkdtemp(prefix="labelkin-fuzz-"))
    target = all_targets(folder / "old")[name]
    corpus = work / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(seed)

    def run(data: bytes) -> None:
        checked(target, data, folder)

    def mutate(data: bytes, longest: int, seed: int) -> bytes:
        chance = random.Random(seed)
        if chance.random() < 0.5:
            return bytes(atheris.Mutate(data, longest))
        return mutated([data], chance)[:longest]

    options = [
        f"-max_total_time={seconds}",
        f"-max_len={_LONGEST_INPUT}",
        f"-timeout={2 * LONGEST_SECONDS:.0f}",
        f"-rss_limit_mb={_MEGABYTES}",
        f"-artifact_prefix={work}/{name}-",
        *("-print_final_stats=1", "-verbosity=0", str(corpus)),
    ]
    atheris.Setup([sys.argv[0], *options], run, custom_mutator=mutate)
    atheris.Fuzz()


def main() -> int:
    """Fuzz all targets in turn; 1 if something was found."""
    parser = argparse.ArgumentParser(description="Fuzz labelkin's readers with atheris.")
    parser.add_argument("targets", nargs="*", help="Default: all.")
    parser.add_argument("--seconds", type=int, default=3600, help="For all targets together.")
    parser.add_argument("--work", type=Path, default=ROOT / "benchmarks" / "work" / "fuzz")
    parser.add_argument("--results", type=Path, default=RESULTS / "fuzz.jsonl")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if find_spec("atheris") is None:
        print("needs atheris: pip install 'labelkin[fuzz]'")
        return 1
    given.work.mkdir(parents=True, exist_ok=True)
    if given.one:
        fuzz_one(given.targets[0], given.work, given.seconds)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        names = given.targets or list(all_targets(Path(folder)))
    seconds = max(given.seconds // len(names), 1)
    total, failed = 0, []
    for name in names:
        command = [sys.executable, "-m", "tests.fuzz.run_atheris", name, "--one"]
        command += ["--seconds", str(seconds), "--work", str(given.work)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        executed = _EXECUTED.search(done.stderr)
        count = int(executed.group(1)) if executed else 0
        total += count
        print(f"{name}: {count:,} inputs", flush=True)
        row = {"target": name, "seconds": seconds, "inputs": count, "failed": done.returncode}
        append(given.results, row)
        if done.returncode:
            failed.append(name)
            print(done.stderr[-3000:], flush=True)
    print(f"{total:,} inputs in all; {len(failed)} targets with findings {failed or ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
