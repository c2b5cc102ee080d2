"""`kill -9` under load with writes on: what was acknowledged is there after a restart.

tests/reliability kills the service many more times.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from os import kill
from pathlib import Path

import pytest

from .campaign import FOLLOWING_SECONDS, Campaign
from .processes import HAS_PROC, is_running

pytest.importorskip("fastapi", reason="needs the extra `serve`")
pytestmark = pytest.mark.skipif(not HAS_PROC, reason="needs /proc")

SOAK_WORKER_KILLS = 40
# What worker processes may take to notice that another one has gone.
SECONDS = 30.0


def test_acknowledged_writes_survive_kills(tmp_path: Path) -> None:
    campaign, choose = Campaign(tmp_path), random.Random(3)
    for _ in range(3):
        campaign.kill_once(choose)
    campaign.finish()
    counts = campaign.counts()
    assert counts["corrected"] + counts["added"] > 0


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    ends = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < ends, what
        time.sleep(0.05)


def workers_killed_again_and_again(folder: Path, kills: int) -> Campaign:
    """Kill one worker after another under load; then the parent."""
    campaign, choose = Campaign(folder, "--workers", "2"), random.Random(kills)
    with campaign.serving() as server:
        wait_until(lambda: len(server.workers()) == 2, "two workers")
        with campaign.load(server, reconnect=True):
            for _ in range(kills):
                campaign.wait_for_writes(choose.randint(1, 12))
                workers = server.workers()
                kill(choose.choice(workers), signal.SIGKILL)
                wait_until(
                    lambda workers=workers: len({*server.workers()} - {*workers}) == 1,
                    "another worker in place of the one that was killed",
                )
                # The others have gone on, and so does the new one.
                campaign.wait_for_writes(1)
            assert campaign.errors == []
        assert campaign.errors == []
        time.sleep(FOLLOWING_SECONDS)
        campaign.check(server)
        workers = server.workers()
        with campaign.load(server):
            campaign.wait_for_writes(2)
            server.kill()
            wait_until(lambda: not any(map(is_running, workers)), f"the end of {workers}")
        assert campaign.errors == []
    # At the same port, from the same files.
    with campaign.serving() as server:
        campaign.check(server)
        wait_until(lambda: len(server.workers()) == 2, "two workers")
        assert server.stop() == 0
    campaign.check_files()
    return campaign


def test_workers_are_replaced_and_do_not_outlive_their_parent(tmp_path: Path) -> None:
    workers_killed_again_and_again(tmp_path, 2)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_workers_killed_dozens_of_times(tmp_path: Path) -> None:
    campaign = workers_killed_again_and_again(tmp_path, SOAK_WORKER_KILLS)
    print(f"{SOAK_WORKER_KILLS} kills of workers: {dict(campaign.counts())}")  # noqa: T201
