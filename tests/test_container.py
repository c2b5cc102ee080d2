"""Dockerfile and compose file, without an engine; CONTRIBUTING.md says what else was tried."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import requires
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.main import get_command

from labelkin.cli.main import app
from labelkin.serve import server, status

ROOT = Path(__file__).parent.parent
PORT = 8080


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile with their arguments, continued lines joined."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    pairs = [line.split(maxsplit=1) for line in joined.splitlines() if line.strip()]
    return [(name.upper(), rest) for name, rest in pairs]


def stages() -> list[dict[str, list[str]]]:
    """The arguments by instruction, for each stage."""
    found: list[dict[str, list[str]]] = []
    for name, rest in instructions():
        if name == "FROM":
            found.append({})
        if found:
            found[-1].setdefault(name, []).append(rest)
    return found


def extras() -> set[str]:
    (command,) = stages()[0]["RUN"]
    asked = re.findall(r"\[([\w,]+)\]", command)
    assert len(asked) == 2
    assert asked[0] == asked[1]
    return set(asked[0].split(","))


def service() -> dict[str, Any]:
    composed = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    found: dict[str, Any] = composed["services"]["labelkin"]
    return found


def test_both_stages_have_the_same_base() -> None:
    assert ("ARG", "BASE=python:3.12-slim") in instructions()
    bases = [rest for name, rest in instructions() if name == "FROM"]
    assert [base.split()[0] for base in bases] == ["${BASE}", "${BASE}"]


def test_the_extras_exist_and_are_few() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert extras() <= set(project["optional-dependencies"])
    assert extras() == {"serve", "rerank"}


def needed(name: str, asked: frozenset[str], seen: set[str]) -> Iterator[str]:
    """What a package needs, directly or not, by what is installed here."""
    for line in requires(name) or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker and not any(marker.evaluate({"extra": one}) for one in (*asked, "")):
            continue
        found = canonicalize_name(requirement.name)
        if found not in seen:
            seen.add(found)
            yield found
            yield from needed(found, frozenset(requirement.extras), seen)


def test_no_torch_and_every_version_is_pinned() -> None:
    packages = set(needed("labelkin", frozenset(extras()), set()))
    assert {"fastapi", "lightgbm", "uvicorn", "tantivy"} <= packages
    assert not {"torch", "spacy", "transformers", "matplotlib"} & packages
    pinned = {
        canonicalize_name(line.partition("==")[0])
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line and not line.startswith("#")
    }
    assert packages <= pinned, packages - pinned
    (command,) = stages()[0]["RUN"]
    assert "--constraint constraints.txt" in command


def test_only_what_is_copied_is_sent_to_the_builder() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split("\n")
    rules = [line for line in ignored if line and not line.startswith("#")]
    assert rules[0] == "*"
    sources = {one for rest in stages()[0]["COPY"] for one in rest.split()[:-1]}
    assert {rule.removeprefix("!") for rule in rules if rule.startswith("!")} == sources
    assert all((ROOT / source).exists() for source in sources)


def test_the_image_runs_as_nobody_in_particular() -> None:
    runtime = stages()[1]
    (user,) = runtime["USER"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    names = [name for name, _ in instructions()]
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert runtime["VOLUME"] == ["/data"]
    assert runtime["STOPSIGNAL"] == ["SIGTERM"]
    (installed,) = runtime["RUN"]
    assert "libgomp1" in installed
    assert f"--owner {user.partition(':')[0]}" in installed
    assert not re.search(r"\b(curl|wget|gcc|sudo)\b", installed)
    assert "PYTHONDONTWRITEBYTECODE=1" in runtime["ENV"][0]


def test_the_command_parses() -> None:
    runtime = stages()[1]
    assert json.loads(runtime["ENTRYPOINT"][0]) == ["labelkin"]
    verb, *words = json.loads(runtime["CMD"][0])
    group: Any = get_command(app)
    context = group.make_context("labelkin", ["info"], resilient_parsing=True)
    parsed = group.get_command(context, verb).make_context(verb, words).params
    assert parsed["collections"] == ["/data"]
    assert parsed["host"] == "0.0.0.0"
    assert parsed["port"] == PORT
    assert runtime["EXPOSE"] == [str(PORT)]


class Answer(BaseHTTPRequestHandler):
    def __init__(self, status: int, asked: list[str], *rest: Any) -> None:
        self.answered, self.asked = status, asked
        super().__init__(*rest)

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(self.answered)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        return


def health_command() -> list[str]:
    (check,) = stages()[1]["HEALTHCHECK"]
    command: list[str] = json.loads(check.partition("CMD")[2])
    return command


@pytest.mark.parametrize(("answered", "code"), [(200, 0), (503, 1)])
def test_the_health_check_asks_whether_the_service_is_ready(answered: int, code: int) -> None:
    python, *words = health_command()
    assert python == "python"
    asked: list[str] = []
    with HTTPServer(("127.0.0.1", 0), partial(Answer, answered, asked)) as listening:
        Thread(target=listening.handle_request, daemon=True).start()
        words[-1] = words[-1].replace(str(PORT), str(listening.server_port))
        assert subprocess.run([sys.executable, *words], timeout=30).returncode == code
    assert asked == ["/api/v1/ready"]
    assert asked[0] in {getattr(route, "path", "") for route in status.router.routes}


def test_the_health_check_fails_without_a_service() -> None:
    _, *words = health_command()
    words[-1] = words[-1].replace(str(PORT), "9")
    done = subprocess.run([sys.executable, *words], capture_output=True, timeout=30)
    assert done.returncode == 1


def test_the_composed_service_is_locked_up() -> None:
    composed = service()
    assert composed["read_only"] is True
    assert [one.partition(":")[0] for one in composed["tmpfs"]] == ["/tmp"]
    assert composed["cap_drop"] == ["ALL"]
    assert composed["security_opt"] == ["no-new-privileges:true"]
    assert composed["volumes"] == ["collections:/data"]
    assert composed["restart"] == "unless-stopped"
    assert re.fullmatch(r"\d+[mg]", composed["mem_limit"])
    assert composed["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert composed["healthcheck"]["test"] == ["CMD", *health_command()]


def test_the_token_is_in_no_file() -> None:
    assert service()["environment"] == {"LABELKIN_TOKEN": "${LABELKIN_TOKEN:-}"}
    assert ".env" in (ROOT / ".gitignore").read_text(encoding="utf-8").split()


def test_running_requests_have_time_to_finish() -> None:
    seconds = int(service()["stop_grace_period"].removesuffix("s"))
    assert seconds > server._SHUTDOWN_SECONDS
