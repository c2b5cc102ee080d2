"""Writes have a thread to themselves."""

from __future__ import annotations

import asyncio
import threading

import pytest

pytest.importorskip("fastapi", reason="needs the extra `serve`")


def test_writes_that_wait_for_the_disk_do_not_keep_others_from_reading() -> None:
    from labelkin.serve.gate import Gate

    disk = threading.Event()

    async def requests(gate: Gate) -> list[str]:
        writes = [
            asyncio.create_task(gate.run(lambda: disk.wait(10) and "written", writes=True)),
            asyncio.create_task(gate.patient(lambda: "written later", writes=True)),
        ]
        await asyncio.sleep(0.05)
        read = await asyncio.wait_for(gate.run(lambda: "read"), 5)
        assert not any(write.done() for write in writes)
        disk.set()
        return [read, *await asyncio.gather(*writes)]

    with Gate(concurrency=1, queue=8, timeout_seconds=20) as gate:
        assert asyncio.run(requests(gate)) == ["read", "written", "written later"]


def test_one_write_at_a_time() -> None:
    from labelkin.serve.gate import Gate

    running: list[int] = []

    def write() -> int:
        running.append(1)
        at_once = len(running)
        threading.Event().wait(0.01)
        running.pop()
        return at_once

    async def requests(gate: Gate) -> list[int]:
        return await asyncio.gather(*(gate.run(write, writes=True) for _ in range(8)))

    with Gate(concurrency=4, queue=8, timeout_seconds=20) as gate:
        assert asyncio.run(requests(gate)) == [1] * 8
