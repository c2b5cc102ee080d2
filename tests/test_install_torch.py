"""scripts/install_torch.py, with stand-ins for both indexes on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "install_torch.py"
PINNED = "9.9.1"


@dataclass
class Machine:
    """A virtual environment, and the indexes that it can reach."""

    python: Path
    constraints: Path
    default: str
    cpu: str

    def install(self, torch_index: str | None) -> tuple[int, str, float]:
        """Exit code, output and the seconds until the first line of the script."""
        own = {"PIP_INDEX_URL": self.default, "PIP_CONFIG_FILE": os.devnull}
        if torch_index is not None:
            own["TORCH_INDEX"] = torch_index
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        started = time.monotonic()
        with subprocess.Popen(
            [self.python, SCRIPT, self.constraints],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**kept, **own, "PIP_NO_CACHE_DIR": "1"},
        ) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            seconds = time.monotonic() - started
            output = first + process.stdout.read()
        return process.returncode, output, seconds

    def version(self) -> str:
        """What is installed."""
        code = "import importlib.metadata as m; print(m.version('torch'))"
        command = [self.python, "-c", code]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def write_index(folder: Path, *versions: str) -> None:
    """A simple index (PEP 503) with a tiny wheel for each version of torch."""
    project = folder / "torch"
    project.mkdir(parents=True)
    links = []
    for version in versions:
        name = f"torch-{version}-py3-none-any.whl"
        about = f"torch-{version}.dist-info"
        with zipfile.ZipFile(project / name, "w") as wheel:
            wheel.writestr("torch.py", "")
            wheel.writestr(
                f"{about}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n"
            )
            wheel.writestr(
                f"{about}/WHEEL",
                "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            )
            wheel.writestr(
                f"{about}/RECORD",
                f"torch.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n",
            )
        links.append(f'<a href="{name.replace("+", "%2B")}">{name}</a><br>')
    (project / "index.html").write_text("<!DOCTYPE html><body>" + "".join(links) + "</body>")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("torch") / "venv"
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


@pytest.fixture
def machine(environment: Path, tmp_path: Path) -> Iterator[Machine]:
    """No torch is installed; the CPU index has another version as well."""
    write_index(tmp_path / "cpu", "9.9.0+cpu", f"{PINNED}+cpu", "10.0+cpu")
    write_index(tmp_path / "default", "9.9.0", PINNED, "10.0")
    (tmp_path / "empty").mkdir()
    constraints = tmp_path / "constraints.txt"
    constraints.write_text(f"numpy==2.0\ntorch=={PINNED}\ntqdm==4\n")
    for left in environment.parent.parent.glob("lib/*/site-packages/torch*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    handler = partial(QuietHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        yield Machine(environment, constraints, f"{base}/default", f"{base}/cpu")
        server.shutdown()


def test_the_cpu_build_comes_first(machine: Machine) -> None:
    code, output, _ = machine.install(machine.cpu)
    assert (code, machine.version()) == (0, f"{PINNED}+cpu")
    assert output == (
        f"Downloading torch {PINNED}+cpu from {machine.cpu}: about 200 MB as a CPU build\n"
    )


def test_nothing_happens_when_the_pinned_version_is_there(machine: Machine) -> None:
    machine.install(machine.cpu)
    assert machine.install(machine.cpu)[:2] == (0, "")
    assert machine.install("")[:2] == (0, "")
    machine.constraints.write_text("torch==10.0\n")
    assert machine.install(machine.cpu)[0] == 0
    assert machine.version() == "10.0+cpu"


def test_an_empty_setting_goes_straight_to_the_default_index(machine: Machine) -> None:
    code, output, _ = machine.install("")
    assert (code, machine.version()) == (0, PINNED)
    assert output.startswith(f"Downloading torch {PINNED} from pip's default index")


def test_an_index_without_the_version_is_left(machine: Machine) -> None:
    index = machine.cpu.replace("/cpu", "/empty")
    code, output, _ = machine.install(index)
    assert (code, machine.version()) == (0, PINNED)
    first, second = output.splitlines()
    assert first == f"No torch {PINNED} from {index}"
    assert second.startswith(f"Downloading torch {PINNED} from pip's default index")


@pytest.mark.parametrize("host", ["silent", "refusing", "unknown"])
def test_an_index_that_cannot_be_reached_costs_seconds(machine: Machine, host: str) -> None:
    """A black hole accepts connections and never answers; pip alone would wait for minutes."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        if host == "silent":
            listening.listen()
        index = f"http://127.0.0.1:{listening.getsockname()[1]}/cpu"
        if host == "unknown":
            index = "http://no-such-host.invalid/cpu"
        code, output, seconds = machine.install(index)
    assert (code, machine.version()) == (0, PINNED)
    assert output.startswith(f"No torch {PINNED} from {index}\n")
    assert seconds < 10


def test_a_file_of_constraints_without_torch(machine: Machine) -> None:
    machine.constraints.write_text("numpy==2.0\n")
    code, output, _ = machine.install(machine.cpu)
    assert (code, output.count("\n")) == (1, 1)
    assert "no line torch==VERSION" in output


def test_the_pinned_version_agrees_with_the_extra() -> None:
    """A CPU build satisfies both: a local tag does not matter to `==` (PEP 440)."""
    root = SCRIPT.parent.parent
    script = f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import install_torch as i; "
    script += f"from pathlib import Path; print(i.pinned(Path({str(root / 'constraints.txt')!r})))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert f'"torch=={result.stdout.strip()}"' in (root / "pyproject.toml").read_text()
