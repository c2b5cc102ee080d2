"""How fast the page for indexers is: Chromium on mesh47k.

    python benchmarks/page.py            # a minute; writes results/page.md

Needs ../shared/data, a trained mesh47k collection (benchmarks/runtime.py makes one) and Chromium
(apt-get install chromium). Times are those of a user: from the click or key to the result on the
screen.
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import shutil
import statistics
import sys
import tempfile
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
WORK = ROOT / "benchmarks" / "work"
_harness = types.ModuleType("harness")
_harness.__path__ = [str(ROOT / "tests" / "serve")]
sys.modules["harness"] = _harness

from harness.processes import HOST, serving  # noqa: E402

RECORDS = 20
WORDS = ("pneumonia", "diabetes mellitus", "kidney", "zebrafish", "surgery")
# What each step may take, in seconds.
GOALS = {
    "first paint": 1.0,
    "first suggestion": 1.5,
    "evidence after the click": 0.3,
    "concept search after a key": 0.1,
}


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--collection", type=Path, default=WORK / "runtime" / "mesh47k")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "page.md")
    given = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("needs Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory(prefix="labelkin-page-") as folder:
        # Opening may bring indexes up to date.
        copy = shutil.copytree(given.collection, Path(folder) / "mesh47k")
        log = Path(folder) / "log"
        with serving({"mesh47k": copy}, log) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            times = measure(browser, f"http://{HOST}:{server.port}", records())
            version = browser.version
            browser.close()
    given.out.write_text(report(times, version), encoding="utf-8")
    print(given.out.read_text(encoding="utf-8"))


def records() -> list[dict[str, Any]]:
    """Records of l1000 with a title and an abstract."""
    with gzip.open(SHARED / "mesh47k" / "l1000.json.gz", "rt", encoding="utf-8") as file:
        content = json.load(file)
    listed = content["articles"] if isinstance(content, dict) else content
    return [one for one in listed if one.get("abstractText") or one.get("abstract")][:RECORDS]


def measure(browser: Any, url: str, texts: list[dict[str, Any]]) -> dict[str, list[float]]:
    """The seconds of every step of every record, each in a fresh tab."""
    times: dict[str, list[float]] = {name: [] for name in GOALS}
    for place, one in enumerate(texts):
        context = browser.new_context(viewport={"width": 1300, "height": 900}, locale="en")
        page = context.new_page()
        started = time.perf_counter()
        page.goto(url)
        page.wait_for_selector("#title")
        times["first paint"].append(time.perf_counter() - started)
        page.wait_for_selector("#method option", state="attached")
        page.fill("#title", one["title"])
        page.fill("#text", one.get("abstractText") or one["abstract"])
        timed(times["first suggestion"], lambda page=page: act(page, "#suggest", ".suggestion"))
        timed(
            times["evidence after the click"],
            lambda page=page: act(page, ".suggestion:nth-child(2) .name", ".evidence section"),
        )
        word = WORDS[place % len(WORDS)]
        page.focus("#search")
        for length in range(3, len(word) + 1):
            page.fill("#search", word[: length - 1])
            page.wait_for_timeout(150)
            before = page.inner_text("#hit-count")
            started = time.perf_counter()
            page.keyboard.press(word[length - 1])
            while page.inner_text("#hit-count") == before and time.perf_counter() - started < 1:
                pass
            if page.inner_text("#hit-count") != before:
                times["concept search after a key"].append(time.perf_counter() - started)
        context.close()
    return times


def act(page: Any, click: str, wait: str) -> None:
    """Click and wait for something to be seen."""
    page.click(click)
    page.wait_for_selector(wait)


def timed(times: list[float], work: Callable[[], None]) -> None:
    """Append how long some work takes."""
    started = time.perf_counter()
    work()
    times.append(time.perf_counter() - started)


def report(times: dict[str, list[float]], version: str) -> str:
    """The table."""
    rows = []
    for name, goal in GOALS.items():
        ordered = sorted(times[name])
        median, slow = statistics.median(ordered), ordered[int(0.95 * (len(ordered) - 1))]
        verdict = "reached" if slow <= goal else "median only" if median <= goal else "not reached"
        rows.append(
            f"| {name} | {median * 1000:.0f} | {slow * 1000:.0f} | {ordered[-1] * 1000:.0f} | "
            f"{goal * 1000:.0f} | {verdict} ({len(ordered)}) |"
        )
    return "\n".join(
        (
            "# The page",
            "",
            "How long an indexer waits, in milliseconds: `python benchmarks/page.py` on mesh47k "
            f"(43,178 records, 30,764 headings) with {RECORDS} records of l1000, method `rerank`, "
            f"Chromium {version}, Python {platform.python_version()}, 2 cores that browser and "
            "service share. From the click or key to what is on the screen, measured from "
            "outside the browser, so that the control of the browser is part of it. The page "
            "waits 40 ms after a key for the next one.",
            "",
            "| | median | 95 % | slowest | goal | |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
        )
    )


if __name__ == "__main__":
    main()
