from __future__ import annotations

from pathlib import Path

import pytest

from labelkin.vocab import Concept, Vocabulary, categories, read_vocabulary
from labelkin.vocab.cycles import cycles, cycles_at_top, shortest_cycle


def test_cycles_are_found_between_and_below_others() -> None:
    # 0 → 1 → 2 → 1, 2 → 3 (top), 4 → 4, 5 → 6 → 5, 6 → 4
    parents = [[1], [2], [1, 3], [], [4], [6], [5, 4]]
    assert cycles(parents) == [[1, 2], [4], [5, 6]]
    assert cycles_at_top(parents) == [[4]]
    assert shortest_cycle(parents, 1) == [1, 2, 1]
    assert shortest_cycle(parents, 4) == [4, 4]


def test_no_cycle() -> None:
    assert cycles([]) == cycles([[1], [], [0, 1]]) == []


def test_the_shortest_way_is_shown() -> None:
    parents = [[1, 3], [2], [3], [0]]
    assert shortest_cycle(parents, 0) == [0, 3, 0]
    assert shortest_cycle(parents, 1) == [1, 2, 3, 0, 1]


def test_a_cycle_is_on_top_once_and_counts_in_categories() -> None:
    links = {"a": ("b",), "b": ("c",), "c": ("a",), "d": ("d",), "e": ("b", "d")}
    vocabulary = Vocabulary(Concept(one, {}, broader=above) for one, above in links.items())
    assert [concept.id for concept in vocabulary.top()] == ["a", "d"]
    assert vocabulary.broader("d") == ()
    assert vocabulary.narrower("d") == ("e",)
    counts = [(one.code, one.concepts, one.places) for one in categories(vocabulary)]
    assert counts == [("a", 4, 4), ("d", 2, 2)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a\tA\ta\n", "1 concept is in a cycle of broader links, such as A → A;"),
        ("a\tA\tb\nb\tB\ta\n", "2 concepts are in cycles of broader links, such as A → B → A;"),
        (
            "".join(f"c{n}\tN{n}\tc{(n + 1) % 5000}\n" for n in range(5000)),
            "5,000 concepts are in cycles of broader links, such as N0 → N1 → N2 → N3 → N4 → … → ",
        ),
    ],
)
def test_reading_warns_once(
    rows: str, message: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "v.tsv"
    path.write_text("id\tname\tbroader\n" + rows)
    vocabulary = read_vocabulary(path)
    assert len(caplog.messages) == 1
    assert message in caplog.messages[0]
    assert len(vocabulary.top()) == 1
