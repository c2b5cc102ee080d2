from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from labelkin.autoencoder.architecture import NAME_FEATURES
from labelkin.autoencoder.ballots import (
    NEIGHBOURS,
    RARE,
    Ballots,
    NamedLabels,
    cast_ballots,
    log_frequencies,
)
from labelkin.autoencoder.columns import LabelColumns

from .joint_data import named_of
from .label_data import label_sets_of

# The labels of six documents, as vocabulary columns; the model knows columns 5, 3, 1 in that order.
SETS = [[1, 3], [3], [], [1, 3, 5], [2, 5], [1]]
COLUMNS = LabelColumns(np.array([5, 3, 1]), 7)
FIVE, THREE, ONE = 0, 1, 2


def cast(
    near: list[list[int]],
    closeness: list[list[float]] | None = None,
    named: list[list[int]] | None = None,
) -> Ballots:
    rows = np.array(near, dtype=np.int64).reshape(len(near), -1)
    close = np.where(rows >= 0, 0.5, 0) if closeness is None else np.array(closeness)
    return cast_ballots(
        rows,
        close.astype(np.float32),
        named_of([[] for _ in near] if named is None else named),
        COLUMNS,
        label_sets_of(SETS),
    )


def pairs_of(ballots: Ballots) -> list[tuple[int, int]]:
    return list(zip(ballots.documents.tolist(), ballots.labels.tolist(), strict=True))


def voters_of(ballots: Ballots) -> dict[tuple[int, int], list[int]]:
    """The voters of each pair."""
    voters: dict[tuple[int, int], list[int]] = {pair: [] for pair in pairs_of(ballots)}
    pairs = pairs_of(ballots)
    for pair, voter in zip(ballots.pairs.tolist(), ballots.voters.tolist(), strict=True):
        voters[pairs[pair]].append(voter)
    return voters


def test_every_label_of_a_neighbour_has_its_vote():
    ballots = cast([[0, 1, 3, 5], [4, 2, -1, -1]])
    # Column 2 is no label of the model; the second document's neighbours are numbers 4 to 7.
    assert voters_of(ballots) == {
        (0, FIVE): [2],
        (0, THREE): [0, 1, 2],
        (0, ONE): [0, 2, 3],
        (1, FIVE): [4],
    }
    assert ballots.starts.tolist() == [0, 3]
    assert ballots.is_there.tolist() == [[True] * 4, [True, True, False, False]]
    assert len(ballots) == 2


def test_shares_are_those_of_the_nearest():
    ballots = cast([[0, 1, 3, 5]])
    counts = {FIVE: [1, 1, 1, 1], THREE: [3, 3, 3, 3], ONE: [2, 3, 3, 3]}
    for (_, label), shares in zip(pairs_of(ballots), ballots.shares, strict=True):
        expected = np.sqrt(np.array(counts[label]) / (3, 10, 25, 60))
        np.testing.assert_allclose(shares, expected, rtol=1e-6)


def test_neighbours_agree_with_the_others():
    ballots = cast([[0, 1, 3, 2, -1]], [[0.8, 0.4, 0.4, 0.2, 0]])
    closeness, close, rank, agreement = ballots.neighbours[0].T
    np.testing.assert_allclose(closeness[:4], np.log([1, 0.5, 0.5, 0.25]), rtol=1e-6)
    np.testing.assert_allclose(close, [0.8, 0.4, 0.4, 0.2, 0], rtol=1e-6)
    np.testing.assert_allclose(rank, np.log([1, 2, 3, 4, 5]) / 4, rtol=1e-6)
    # Votes of 60 for each label of a neighbour, averaged, times 3; columns 3, 1, 5 have 3, 2, 1.
    expected = np.array([(2 + 3) / 2, 3, (2 + 3 + 1) / 3, 0, 0]) / 60 * 3
    np.testing.assert_allclose(agreement, expected, rtol=1e-6)
    assert ballots.closest.tolist() == [pytest.approx(0.8)]


def test_a_named_label_needs_no_votes():
    named = [[1, 2, 5], []]
    ballots = cast([[1], [5]], named=named)
    # Column 2 is no label of the model.
    assert pairs_of(ballots) == [(0, FIVE), (0, THREE), (0, ONE), (1, ONE)]
    assert voters_of(ballots) == {(0, FIVE): [], (0, THREE): [0], (0, ONE): [], (1, ONE): [1]}
    features = named_of(named).features
    np.testing.assert_array_equal(ballots.named[0], [*features[2], 1])
    np.testing.assert_array_equal(ballots.named[2], [*features[0], 1])
    assert not ballots.named[[1, 3]].any()
    assert not ballots.shares[[0, 2]].any()
    assert ballots.named.shape == (4, NAME_FEATURES + 1)


@pytest.mark.parametrize("near", [[[-1, -1], [-1, -1]], [[], []]], ids=["empty places", "none"])
def test_documents_without_neighbours(near):
    ballots = cast(near, named=[[3], []])
    assert pairs_of(ballots) == [(0, THREE)]
    assert not ballots.is_there.any()
    assert ballots.closest.tolist() == [0, 0]
    assert np.isfinite(ballots.neighbours).all()
    nothing = cast(near)
    assert pairs_of(nothing) == []
    assert nothing.starts.tolist() == [0, 0]


def test_no_more_neighbours_than_the_network_knows():
    near = [[0] * NEIGHBOURS + [3] * 5]
    ballots = cast(near)
    assert pairs_of(ballots) == [(0, THREE), (0, ONE)]
    np.testing.assert_allclose(ballots.shares[:, -1], 1)


def test_a_batch_gives_what_its_documents_give_alone():
    near = [[0, 1, 3], [-1, -1, -1], [4, 2, -1], [5, 3, 0]]
    close = [[0.9, 0.5, 0.1], [0, 0, 0], [0.3, 0.2, 0], [0.7, 0.7, 0.6]]
    names = named_of([[1], [3, 5], [], [1, 2, 3]])
    whole = cast_ballots(
        np.array(near), np.array(close, dtype=np.float32), names, COLUMNS, label_sets_of(SETS)
    )
    for place in range(4):
        alone = cast_ballots(
            np.array(near[place : place + 1]),
            np.array(close[place : place + 1], dtype=np.float32),
            names.taken(np.array([place])),
            COLUMNS,
            label_sets_of(SETS),
        )
        mine = whole.documents == place
        assert whole.labels[mine].tolist() == alone.labels.tolist()
        for name in ("shares", "named"):
            np.testing.assert_array_equal(getattr(whole, name)[mine], getattr(alone, name))
        for name in ("neighbours", "is_there", "closest"):
            np.testing.assert_array_equal(
                getattr(whole, name)[place : place + 1], getattr(alone, name)
            )
        first = int(np.flatnonzero(mine)[0]) if mine.any() else 0
        votes = np.isin(whole.pairs, np.flatnonzero(mine))
        assert (whole.pairs[votes] - first).tolist() == alone.pairs.tolist()
        assert (whole.voters[votes] - 3 * place).tolist() == alone.voters.tolist()


def test_texts_can_be_taken_in_any_order():
    named = named_of([[1], [3, 5], [], [2]])
    taken = named.taken(np.array([3, 1, 1, 2]))
    assert len(taken) == 4
    assert taken.starts.tolist() == [0, 1, 3, 5, 5]
    assert taken.columns.tolist() == [2, 3, 5, 3, 5]
    np.testing.assert_array_equal(taken.features, named.features[[3, 1, 2, 1, 2]])
    assert {field.name for field in fields(NamedLabels)} == {"starts", "columns", "features"}


def test_rare_labels_look_alike():
    """Leave-one-out, a label of one document has no votes there: its frequency must not tell."""
    features = log_frequencies(np.array([0, 1, 2, RARE, RARE + 1, 500]), 1000)
    assert len(set(features[:4].tolist())) == 1
    assert (np.diff(features[3:]) > 0).all()
    assert np.isfinite(log_frequencies(np.array([0, 3]), 0)).all()
