from __future__ import annotations

import errno
import fcntl
import os
import threading
from pathlib import Path

import pytest

from labelkin.exceptions import CollectionError
from labelkin.store.locks import FileLock


def test_one_holder_or_several_that_share(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with FileLock(path) as first, FileLock(path) as second, FileLock(path, shared=True) as third:
        assert first.take()
        assert not second.take()
        assert not third.take(0.05)
        first.close()
        assert third.take()
        assert not second.take()
        with FileLock(path, shared=True) as fourth:
            assert fourth.take()


def test_a_lock_whose_file_its_holder_removes(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with FileLock(path) as holder, FileLock(path) as waiter, FileLock(path) as late:
        assert holder.take()
        taken: list[bool] = []
        thread = threading.Thread(target=lambda: taken.append(waiter.take(5)))
        thread.start()
        path.unlink()
        holder.close()
        thread.join()
        assert taken == [True]
        # On the file that is there, where everybody looks.
        assert not late.take()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK])
def test_a_file_system_without_locks(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    opened = len(list(Path("/proc/self/fd").iterdir()))
    with FileLock(tmp_path / "lock") as lock, pytest.raises(CollectionError) as raised:
        lock.take(60)
    assert f"lock: {os.strerror(number)}; the file system there cannot lock" in str(raised.value)
    assert len(list(Path("/proc/self/fd").iterdir())) == opened
