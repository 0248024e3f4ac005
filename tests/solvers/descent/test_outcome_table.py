"""The kernel's layout of alias tables: rows of any length, exact probabilities, few slots to spare."""

import numpy as np
import pytest
from alias_tables import probability_vectors, table_of
from hypothesis import given, settings
from hypothesis import strategies as st

from lfd_gym.model.generative_model import AliasTable
from lfd_gym.solvers.descent import _outcome_table
from lfd_gym.solvers.descent._outcome_table import draw, outcome_table


def masses_of(table, row, n_outcomes):
    """The probability of each outcome of a row: slots are equally likely, and so are those that a slot refers to."""
    masses = np.zeros(n_outcomes)

    def add(k, share):
        slot = table.slots[k]
        if slot["outcome"] >= 0:
            masses[slot["outcome"]] += share * slot["threshold"]
            masses[slot["alias"]] += share * (1 - slot["threshold"])
        else:
            for among in range(-slot["outcome"]):
                add(slot["alias"] + among, share / -slot["outcome"])

    for k in range(table.width):
        add(row * table.width + k, 1 / table.width)
    return masses


@given(rows=st.lists(probability_vectors(), min_size=1, max_size=6))
@settings(max_examples=200, deadline=None)
def test_rows_of_different_lengths_keep_their_probabilities(rows):
    table = outcome_table(table_of(rows))
    for k, row in enumerate(rows):
        masses = masses_of(table, k, 10 + row.size)
        np.testing.assert_allclose(masses[10:], row, rtol=0, atol=1e-14)
        assert masses[:10].sum() == 0


@pytest.mark.parametrize(
    ("sizes", "width"),
    [
        ([4] * 50, 4),
        ([4] * 50 + [3], 4),  # one slot to spare
        ([2] * 10 + [100], 2),  # one long row stands behind
        ([1] * 100, 1),
        ([100], 100),
        ([1] * 5 + [9] * 5, 1),  # nine slots for each would be too many
    ],
)
def test_the_width_is_the_common_length(sizes, width):
    table = outcome_table(table_of([np.full(size, 1 / size) for size in sizes]))
    assert table.width == width
    assert table.slots.size <= max(1.25 * sum(sizes), sum(sizes) + len(sizes))


@given(rows=st.lists(probability_vectors(), min_size=1, max_size=6), seed=st.integers(0, 100))
@settings(max_examples=50, deadline=None)
def test_draws_come_as_often_as_the_probabilities_say(rows, seed):
    table = outcome_table(table_of(rows))
    row = np.random.default_rng(seed).integers(len(rows))
    size = rows[row].size
    # Numbers on a grid: an outcome errs by at most one for each interval it owns, one in each of the row's own slots
    # and of the slots that one of these refers to.
    n_references = int((table.slots["outcome"][row * table.width : (row + 1) * table.width] < 0).sum())
    n_intervals = table.width - n_references + n_references * size
    n = 50 * n_intervals
    drawn = [draw(table, row, (k + 0.5) / n) for k in range(n)]
    counts = np.bincount(np.array(drawn) - 10, minlength=size)
    assert np.abs(counts - n * rows[row]).max() <= n_intervals


def test_extreme_numbers_stay_inside_the_row():
    sizes = [3] * 40 + [1, 2, 7, 1000]
    table = outcome_table(table_of([np.full(size, 1 / size) for size in sizes]))
    assert table.width == 3
    for row, size in enumerate(sizes):
        assert draw(table, row, 0.0) == 10
        assert draw(table, row, 1 - 2.0**-53) == 10 + size - 1


def test_distributions_without_outcomes_are_refused():
    offsets = np.array([0, 2, 2])
    table = AliasTable(offsets, np.array([0, 1]), np.array([0.5, 0.5]))
    with pytest.raises(ValueError, match="distribution 1 has no outcomes"):
        outcome_table(table)


def test_more_slots_than_references_can_name_are_refused(monkeypatch):
    monkeypatch.setattr(_outcome_table, "_MOST_SLOTS", 10)
    with pytest.raises(ValueError, match=r"at most 2\*\*31 slots, these distributions need 12"):
        outcome_table(table_of([np.full(3, 1 / 3)] * 4))
