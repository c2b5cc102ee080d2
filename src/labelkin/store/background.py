"""Verifies large files in the background, once requests have been served.

One thread for the process, which ends when there is nothing left to verify. It
begins after a pause, so that a command that answers one request never pays for
it, and it gives way to other threads.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import deque
from collections.abc import Callable
from threading import Event, Lock, Thread, get_native_id
from weakref import WeakMethod

from labelkin.exceptions import LabelkinError

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 2.0
_NICE = 15

_lock = Lock()
_waiting: deque[tuple[Callable[[], None], WeakMethod[Callable[[str], None]]]] = deque()
_thread: Thread | None = None
_hurry = Event()


def verify_later(verify: Callable[[], None], report: Callable[[str], None]) -> None:
    """Call `verify` in the background; what it raises is passed to the method `report`.

    `report` is not called if its object is gone by then, nor for a file that has been
    deleted: writers replace files, and those who use an old one have it open.
    """
    global _thread
    with _lock:
        _waiting.append((verify, WeakMethod(report)))
        if _thread is None:
            _thread = Thread(target=_work, name="labelkin-verifier", daemon=True)
            _thread.start()


def finish(seconds: float = 60.0) -> None:
    """Wait until everything is verified."""
    _hurry.set()
    thread = _thread
    if thread is not None:
        thread.join(seconds)
    _hurry.clear()


def _reset_in_child() -> None:
    """Forget the thread, which a fork does not copy, and the lock, which it may have held."""
    global _lock, _thread, _hurry
    _lock, _thread, _hurry = Lock(), None, Event()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_in_child)


def _work() -> None:
    global _thread
    if sys.platform == "linux":
        # On Linux the priority is that of the thread, not of the process.
        os.setpriority(os.PRIO_PROCESS, get_native_id(), _NICE)
    _hurry.wait(PAUSE_SECONDS)
    while True:
        with _lock:
            if not _waiting:
                _thread = None
                return
            verify, report = _waiting.popleft()
        try:
            verify()
        except (LabelkinError, OSError, ValueError) as error:
            is_deleted = FileNotFoundError in (type(error), type(error.__cause__))
            tell = report()
            if tell is not None and not is_deleted:
                tell(str(error))
        except Exception:
            logger.exception("a file could not be verified")
