"""Runs all peers against the service on a demo collection, and keeps their transcripts.

    python tests/peers/run.py [--work FOLDER] [--examples N] [--transcripts FOLDER]

In turn: annif-client, Annif's `http` backend, schemathesis with Annif's own description of its API
(from its wheel), and schemathesis with ours. Exits with 1 if one of them found something.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
WORK = ROOT / "benchmarks" / "work" / "annif"
PACKAGES = ("annif==1.4.3", "annif-client==0.5.0")
TOKEN = "secret"
TEXTS = ("Late blight of potatoes", "Herring fishing on the coast")
# Left out is positive_data_acceptance: whether a document has a text, a language has names or a
# method has been trained is not in a schema.
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "negative_data_rejection",
    "unsupported_method",
)
LEARN = "/projects/{project_id}/learn"


def main() -> None:
    """Run all peers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=Path, default=WORK, help="folder of Annif's environment")
    parser.add_argument("--examples", type=int, default=50, help="of schemathesis, per operation")
    parser.add_argument("--transcripts", type=Path, help="folder to write the transcripts to")
    given = parser.parse_args()
    env = given.work / "env"
    make_environment(env)
    with tempfile.TemporaryDirectory(prefix="labelkin-peers-") as folder:
        demo = Path(folder) / "demo"
        run([sys.executable, "-m", "labelkin", "demo", str(demo), "--documents", "600"], quiet=True)
        with service(demo) as url:
            failed = [
                name
                for name, command in commands(url, demo, env, given.examples).items()
                if not passes(name, command, given.transcripts)
            ]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")
    print("All peers are content.")


def commands(url: str, demo: Path, env: Path, examples: int) -> dict[str, list[str]]:
    """What is run, by name."""
    api = f"{url}/v1/"
    texts = [argument for text in TEXTS for argument in ("--text", text)]
    (contract,) = env.glob("lib/python3*/site-packages/annif/openapi/annif.yaml")
    fuzz = [
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        "--phases=examples,coverage,fuzzing",
        f"--max-examples={examples}",
        "--seed=16",
        "--no-color",
        f"--header=Authorization: Bearer {TOKEN}",
    ]
    checks = f"--checks={','.join(CHECKS)}"
    # Annif's description of `learn` lacks the 400 and 415 that Annif answers.
    fewer = f"--checks={','.join(one for one in CHECKS if one != 'status_code_conformance')}"
    annif = [*fuzz, str(contract), f"--url={url}/v1"]
    return {
        "annif-client": [
            str(env / "bin" / "python"),
            str(HERE / "check_annif_client.py"),
            api,
            "demo",
            *texts,
            "--token",
            TOKEN,
        ],
        "annif-http": [
            sys.executable,
            str(HERE / "check_annif_http.py"),
            api,
            "demo",
            f"--vocab={demo}",
            f"--documents={demo}",
            f"--env={env}",
        ],
        "annif-contract": [*annif, f"--exclude-path={LEARN}", checks],
        "annif-contract-learn": [*annif, f"--include-path={LEARN}", fewer],
        "labelkin-contract": [*fuzz, f"{url}/api/v1/openapi.json", checks],
    }


def passes(name: str, command: Sequence[str], transcripts: Path | None) -> bool:
    """Run one peer and show what it said."""
    print(f"\n== {name}", flush=True)
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "peer_hooks", "PYTHONPATH": str(HERE)},
    )
    print(done.stdout)
    if transcripts is not None:
        transcripts.mkdir(parents=True, exist_ok=True)
        (transcripts / f"{name}.txt").write_text(done.stdout, encoding="utf-8")
    return done.returncode == 0


@contextmanager
def service(collection: Path) -> Iterator[str]:
    """A service with writes on a free port; its address."""
    command = [sys.executable, "-m", "labelkin", "serve", f"demo={collection}", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--no-access-log"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "LABELKIN_TOKEN": TOKEN},
    )
    try:
        assert process.stderr is not None
        first = process.stderr.readline()
        address = re.search(r"http://\S+?:\d+", first)
        if address is None:
            sys.exit(f"the service did not start: {first}{process.stderr.read()}")
        # Nobody else empties the pipe.
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield address.group()
    finally:
        process.terminate()
        process.wait()


def make_environment(env: Path) -> None:
    """Annif in an environment of its own, unless it is there."""
    stamp = env / ".peers"
    if stamp.is_file():
        return
    if not (env / "bin" / "python").exists():
        venv.create(env, with_pip=True)
    run([str(env / "bin" / "python"), "-m", "pip", "install", "--quiet", *PACKAGES])
    stamp.touch()


def run(command: Sequence[str], *, quiet: bool = False) -> None:
    """Run a command that has to succeed."""
    print(f"$ {shlex.join(command)}", flush=True)
    subprocess.run(command, check=True, capture_output=quiet)


if __name__ == "__main__":
    main()
