"""Bounded work: a few threads that compute, and a queue of requests that wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock
from typing import Any, TypeVar

from labelkin.closing import Closing
from labelkin.serve.problems import busy

Item = TypeVar("Item")
Result = TypeVar("Result")

# Requests that are computed together; larger batches gain little and delay the first.
_MOST_TOGETHER = 32
# After a time-out. A write that has begun is not broken off.
_READ_ADVICE = "send fewer documents at a time, or use annotate, which has no limit"
_WRITE_ADVICE = "it may be stored all the same; send it again, or fewer documents at a time"


class Gate(Closing):
    """Runs the work of requests on its own threads.

    Writes have a thread to themselves: one at a time changes a collection
    anyway, and while it waits for the disk it must not keep others from reading.

    More work than `queue` that waits, and work that is not done in time, is
    refused with a 503. What has begun goes on; nobody waits for its result.
    """

    def __init__(self, concurrency: int, queue: int, timeout_seconds: float) -> None:
        self.concurrency = concurrency
        self.queue = queue
        self.timeout_seconds = timeout_seconds
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="labelkin-request")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="labelkin-writer")
        self._apart = ThreadPoolExecutor(1, thread_name_prefix="labelkin-apart")
        self._pending = 0
        self._lock = Lock()
        self._together: dict[Hashable, list[tuple[Any, Future[Any]]]] = {}

    @property
    def running(self) -> int:
        """How many requests are computed."""
        return min(self._pending, self.concurrency)

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return max(self._pending - self.concurrency, 0)

    async def run(self, work: Callable[[], Result], *, writes: bool = False) -> Result:
        """The result of `work`, from one of the threads."""
        threads, advice = (self._writer, _WRITE_ADVICE) if writes else (self._threads, _READ_ADVICE)
        return await self._in_time(lambda: threads.submit(copy_context().run, work), advice)

    async def run_together(
        self, key: Hashable, item: Item, work: Callable[[Sequence[Item]], Sequence[Result]]
    ) -> Result:
        """The result of `work` for an item.

        While all threads are busy, items with the same key gather and are then
        computed in one batch, which takes less time than one after another.
        """

        def submit() -> Future[Result]:
            future: Future[Result] = Future()
            with self._lock:
                gathered = self._together.setdefault(key, [])
                gathered.append((item, future))
                is_first = len(gathered) % _MOST_TOGETHER == 1
            if is_first:
                self._threads.submit(self._compute, key, work)
            return future

        return await self._in_time(submit, _READ_ADVICE)

    async def run_apart(self, work: Callable[[], Result]) -> Result:
        """As `run`, for work that takes seconds: on one thread that no other request needs."""
        return await self._in_time(
            lambda: self._apart.submit(copy_context().run, work), "try again in a moment"
        )

    async def patient(self, work: Callable[[], Result], *, writes: bool = False) -> Result:
        """As `run`, without limits: for the parts of a stream, which wait for their turn."""
        threads = self._writer if writes else self._threads
        return await self._counted(threads.submit(copy_context().run, work))

    def close(self) -> None:
        """Wait for what is running and drop what is waiting."""
        for threads in (self._threads, self._writer, self._apart):
            threads.shutdown(wait=True, cancel_futures=True)

    async def _in_time(self, submit: Callable[[], Future[Result]], advice: str) -> Result:
        if self._pending >= self.concurrency + self.queue:
            raise busy(f"{self._pending} requests are waiting already; try again in a moment")
        try:
            return await asyncio.wait_for(self._counted(submit()), self.timeout_seconds)
        except TimeoutError:
            raise busy(f"no answer within {self.timeout_seconds:g} seconds; {advice}") from None

    async def _counted(self, future: Future[Result]) -> Result:
        """The result of a future; it counts until it is done, even if nobody waits any more."""
        loop = asyncio.get_running_loop()
        self._pending += 1
        future.add_done_callback(
            lambda _: None if loop.is_closed() else loop.call_soon_threadsafe(self._done)
        )
        return await asyncio.wrap_future(future)

    def _done(self) -> None:
        self._pending -= 1

    def _compute(self, key: Hashable, work: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
        """Compute the items that have gathered under a key."""
        with self._lock:
            gathered = self._together.pop(key)
            taken, rest = gathered[:_MOST_TOGETHER], gathered[_MOST_TOGETHER:]
            if rest:
                self._together[key] = rest
        # One that nobody waits for any more is left out.
        taken = [(item, future) for item, future in taken if future.set_running_or_notify_cancel()]
        if not taken:
            return
        try:
            results = work([item for item, _ in taken])
        except BaseException as error:
            if len(taken) == 1:
                taken[0][1].set_exception(error)
                return
            # One of them is to blame: each gets its own result or error.
            for item, future in taken:
                try:
                    future.set_result(work([item])[0])
                except BaseException as own:
                    future.set_exception(own)
            return
        for (_, future), result in zip(taken, results, strict=True):
            future.set_result(result)
