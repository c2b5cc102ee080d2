from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labelkin.store.label_sets import LabelSegments, LabelSets, Milestone, Segment

SETS = st.lists(st.lists(st.integers(0, 9), unique=True).map(sorted), max_size=12)


class FakeReader:
    """A reader whose past has some tokens, or all of them."""

    def __init__(self, *tokens: str, everything: bool = False) -> None:
        self._tokens = tokens
        self._everything = everything

    def knows(self, generation: int, token: str) -> bool:
        return self._everything or token in self._tokens


EVERYTHING: Any = FakeReader(everything=True)


def knowing(*tokens: str) -> Any:
    return FakeReader(*tokens)


def segment(first: int, sets: list[list[int]]) -> Segment:
    return Segment.from_sets(first, [np.array(s, dtype=np.int32) for s in sets])


@given(st.lists(SETS, max_size=4), st.data())
def test_segments_behave_as_one_list(groups: list[list[list[int]]], data: st.DataObject) -> None:
    flat = [labels for group in groups for labels in group]
    segments, first = [], 0
    for group in groups:
        segments.append(segment(first, group))
        first += len(group)
    sets = LabelSets(segments)
    assert sets.rows == len(flat)
    assert [list(sets.columns(row)) for row in range(len(flat))] == flat
    assert list(sets.sizes()) == [len(labels) for labels in flat]
    if not flat:
        return
    rows = data.draw(st.lists(st.integers(0, len(flat) - 1)))
    matrix = sets.matrix(np.array(rows, dtype=np.int64), 10).toarray()
    for position, row in enumerate(rows):
        assert list(np.flatnonzero(matrix[position])) == flat[row]
    dropped = sorted(set(rows))
    expected = np.zeros(10, dtype=int)
    for row, labels in enumerate(flat):
        if row not in dropped:
            expected[labels] += 1
    assert list(sets.frequencies(10, np.array(dropped, dtype=np.int64))) == list(expected)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(groups=st.lists(SETS, min_size=1, max_size=8))
def test_saved_segments_read_back_and_stay_few(
    groups: list[list[list[int]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = LabelSegments(tmp_path_factory.mktemp("labels"))
    flat: list[list[int]] = []
    for generation, group in enumerate(groups, start=1):
        known = folder.load(EVERYTHING)
        new = segment(len(flat), group)
        flat += group
        folder.save(known, new, Milestone(generation, "token", len(flat)))
    segments = folder.load(EVERYTHING)
    sets = LabelSets(segments)
    assert [list(sets.columns(row)) for row in range(sets.rows)] == flat
    assert len(segments) <= 1 + np.log2(len(flat) + 1)
    assert len(list(folder.folder.iterdir())) == 1 + 2 * len(segments)


def test_damaged_segments_are_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = LabelSegments(tmp_path)
    folder.save([], segment(0, [[1], [2, 3]]), Milestone(3, "t", 2))
    path = next(tmp_path.glob("*.columns.npy"))
    path.write_bytes(path.read_bytes()[:-8])
    assert folder.load(EVERYTHING) == []
    assert path.name in caplog.messages[0]
    assert "rebuilding the label segments" in caplog.messages[0]
    # Reported once, and not mapped again.
    assert folder.load(EVERYTHING) == []
    assert len(caplog.messages) == 1


def test_leftovers_of_a_crash_are_deleted(tmp_path: Path) -> None:
    (tmp_path / "000000000000-000000000009.starts.npy").write_bytes(b"half")
    (tmp_path / ".x.part").write_bytes(b"half")
    folder = LabelSegments(tmp_path)
    folder.save([], segment(0, [[1]]), Milestone(1, "t", 1))
    assert len(list(tmp_path.iterdir())) == 3


def test_only_milestones_in_the_readers_past_are_used(tmp_path: Path) -> None:
    folder = LabelSegments(tmp_path)
    folder.save([], segment(0, [[1], [2]]), Milestone(1, "a", 2))
    folder.save(folder.load(EVERYTHING), segment(2, [[3]]), Milestone(2, "b", 3))
    older = LabelSets(folder.load(knowing("a")))
    assert [list(older.columns(row)) for row in range(older.rows)] == [[1], [2]]
    assert folder.load(knowing()) == []
    # Another history after the first milestone, as after a restored backup.
    folder.save(older.segments, segment(2, [[7], [8]]), Milestone(2, "c", 4))
    newer = LabelSets(folder.load(knowing("a", "c")))
    assert [list(newer.columns(row)) for row in range(newer.rows)] == [[1], [2], [7], [8]]
