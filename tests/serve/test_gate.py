"""The threads that compute, and the queue before them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from threading import Event
from typing import Any

import pytest

from labelkin.serve.gate import Gate
from labelkin.serve.problems import ProblemError


def with_gate(
    scenario: Callable[[Gate], Awaitable[Any]],
    concurrency: int = 1,
    queue: int = 100,
    timeout: float = 20.0,
) -> Any:
    """Run a scenario; afterwards nothing may run or wait any more."""

    async def main() -> Any:
        with Gate(concurrency, queue, timeout) as gate:
            result = await scenario(gate)
            for _ in range(2000):
                if not gate.running and not gate.waiting:
                    break
                await asyncio.sleep(0.005)
            assert (gate.running, gate.waiting) == (0, 0)
            return result

    return asyncio.run(main())


def doubled(batch: Sequence[int]) -> list[int]:
    return [2 * item for item in batch]


def test_results_and_errors_come_back() -> None:
    async def scenario(gate: Gate) -> None:
        assert await gate.run(lambda: 5) == 5
        assert await gate.patient(lambda: 6) == 6
        with pytest.raises(ZeroDivisionError):
            await gate.run(lambda: 1 // 0)

    with_gate(scenario)


def test_a_full_queue_is_a_503_with_advice() -> None:
    async def scenario(gate: Gate) -> None:
        free = Event()
        taken = [asyncio.create_task(gate.run(free.wait)) for _ in range(3)]
        while gate.waiting < 2:
            await asyncio.sleep(0)
        assert (gate.running, gate.waiting) == (1, 2)
        for call in (gate.run(free.wait), gate.run_together("key", 1, doubled)):
            with pytest.raises(ProblemError) as refused:
                await call
            assert refused.value.status_code == 503
            assert refused.value.headers == {"Retry-After": "1"}
        # The parts of a stream are not refused: they wait for their turn.
        patient = asyncio.create_task(gate.patient(lambda: "done"))
        free.set()
        assert await patient == "done"
        assert await asyncio.gather(*taken) == [True] * 3

    with_gate(scenario, queue=2)


def test_what_takes_too_long_is_a_503_and_counts_until_it_ends() -> None:
    async def scenario(gate: Gate) -> None:
        free = Event()
        calls = [gate.run(free.wait), gate.run_together("key", 1, doubled)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert [getattr(one, "status_code", None) for one in answers] == [503, 503]
        assert gate.running == 1
        free.set()

    with_gate(scenario, timeout=0.1)


def test_items_that_gather_are_computed_together_and_each_has_its_own_result() -> None:
    batches: list[int] = []

    def work(batch: Sequence[int]) -> list[int]:
        batches.append(len(batch))
        return doubled(batch)

    async def scenario(gate: Gate) -> None:
        free = Event()
        holder = asyncio.create_task(gate.run(free.wait))
        calls = [asyncio.create_task(gate.run_together("key", one, work)) for one in range(100)]
        other = asyncio.create_task(gate.run_together("other", 7, doubled))
        while gate.waiting < 101:
            await asyncio.sleep(0)
        free.set()
        assert await asyncio.gather(*calls) == doubled(range(100))
        assert await other == 14
        await holder

    with_gate(scenario, queue=200)
    assert sum(batches) == 100
    assert len(batches) == 4
    assert max(batches) == 32


def test_items_that_come_while_others_are_computed_are_not_forgotten() -> None:
    async def scenario(gate: Gate) -> None:
        async def client(number: int) -> None:
            for item in range(number, number + 200):
                assert await gate.run_together(item % 3, item, doubled) == 2 * item

        await asyncio.gather(*(client(1000 * number) for number in range(50)))

    with_gate(scenario, concurrency=3)


def test_an_error_reaches_only_its_own_item() -> None:
    def work(batch: Sequence[int]) -> list[int]:
        if 13 in batch:
            raise ValueError("unlucky")
        return doubled(batch)

    async def scenario(gate: Gate) -> None:
        free = Event()
        holder = asyncio.create_task(gate.run(free.wait))
        calls = [asyncio.create_task(gate.run_together("key", one, work)) for one in range(20)]
        while gate.waiting < 20:
            await asyncio.sleep(0)
        free.set()
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(answers.pop(13), ValueError)
        assert answers == [2 * one for one in range(20) if one != 13]
        await holder

    with_gate(scenario)


def test_items_that_nobody_waits_for_are_left_out() -> None:
    computed: list[int] = []

    def work(batch: Sequence[int]) -> list[int]:
        computed.extend(batch)
        return doubled(batch)

    async def scenario(gate: Gate) -> None:
        free = Event()
        holder = asyncio.create_task(gate.run(free.wait))
        calls = [asyncio.create_task(gate.run_together("key", one, work)) for one in range(3)]
        while gate.waiting < 3:
            await asyncio.sleep(0)
        calls[1].cancel()
        await asyncio.wait([calls[1]])
        free.set()
        assert await calls[0] == 0
        assert await calls[2] == 4
        await holder

    with_gate(scenario)
    assert computed == [0, 2]


# Writes have a thread to themselves.


def test_writes_that_wait_for_the_disk_do_not_keep_others_from_reading() -> None:
    disk = Event()

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
    running: list[int] = []

    def write() -> int:
        running.append(1)
        at_once = len(running)
        Event().wait(0.01)
        running.pop()
        return at_once

    async def requests(gate: Gate) -> list[int]:
        return await asyncio.gather(*(gate.run(write, writes=True) for _ in range(8)))

    with Gate(concurrency=4, queue=8, timeout_seconds=20) as gate:
        assert asyncio.run(requests(gate)) == [1] * 8
