"""Install the pinned PyTorch, as its CPU build if PyTorch's own index can be reached.

    python scripts/install_torch.py [CONSTRAINTS]

On Linux, the package of the default index brings several gigabytes of CUDA libraries, which
labelkin does not use. So this first looks into the index of CPU builds, for a few seconds at
most, and takes the pinned package from pip's default index if that fails. `TORCH_INDEX` names
another index; if it is empty, only the default one is used. Nothing happens if the pinned
version is installed. Needs only the standard library and pip.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
# Seconds: for one connection, and for everything that happens before the download.
CONNECTION = 4
PATIENCE = 8
# Seconds without a byte after which a download is given up.
STALLED = 20


def main(constraints: Path) -> int:
    """Install what the file of constraints pins; pip's exit code."""
    wanted = pinned(constraints)
    if installed() == wanted:
        return 0
    index = os.environ.get("TORCH_INDEX", CPU_INDEX if sys.platform == "linux" else "")
    if index:
        if found := offered(wanted, index):
            say(f"Downloading torch {found} from {index}: about 200 MB as a CPU build")
            options = ("--quiet", "--no-deps", "--retries", "0", "--timeout", str(STALLED))
            if pip("install", *options, "--index-url", index, f"torch=={found}") == 0:
                return 0
        say(f"No torch {wanted} from {index}")
    say(
        f"Downloading torch {wanted} from pip's default index: "
        "200 MB, or on Linux several GB if that has the CUDA build only"
    )
    return pip("install", "--quiet", "--constraint", str(constraints), f"torch=={wanted}")


def pinned(constraints: Path) -> str:
    """The version of torch in a file of constraints."""
    match = re.search(r"^torch==(\S+)", constraints.read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        sys.exit(f"{constraints}: no line torch==VERSION")
    return match.group(1)


def installed() -> str | None:
    """The installed version without its local tag, such as +cpu."""
    try:
        return version("torch").partition("+")[0]
    except PackageNotFoundError:
        return None


def offered(wanted: str, index: str) -> str | None:
    """The version that an index has, with its local tag; None after a few seconds without answer.

    pip asks, because it knows proxies and certificates; but it would try each address of
    the host in turn, so it gets a limit for all of them.
    """
    options = ("--retries", "0", "--timeout", str(CONNECTION), "--index-url", index)
    command = pip_command("index", "versions", *options, "torch")
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return None
    versions = re.search(r"^Available versions: (.*)$", answer.stdout, re.MULTILINE)
    for one in versions.group(1).split(", ") if versions else ():
        if one.partition("+")[0] == wanted:
            return one
    return None


def pip(*arguments: str) -> int:
    """Run pip of this Python; its exit code."""
    return subprocess.run(pip_command(*arguments)).returncode


def pip_command(*arguments: str) -> list[str]:
    """The command line of pip of this Python."""
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]


def say(message: str) -> None:
    """Print a line at once."""
    print(message, flush=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "constraints.txt")))
