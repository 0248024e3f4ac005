"""The discount that demonstrations can speak about."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lfd_gym import Demonstrations, suggest_discount


def of_lengths(lengths, terminated):
    n, m = sum(lengths), len(lengths)
    flags = np.broadcast_to(terminated, m).copy()
    space = gym.spaces.Discrete(1)
    zeros = np.zeros(n + m, dtype=int)
    return Demonstrations(zeros, zeros[:n], np.cumsum([0, *lengths]), flags, ~flags, space, space)


@pytest.mark.parametrize(
    ("length", "discount"), [(1, 0.05), (2, 0.2), (10, 0.7), (50, 0.94), (100, 0.97), (200, 0.985), (1000, 0.997)]
)
def test_cut_trajectories_leave_five_percent_at_most(length, discount):
    assert suggest_discount(of_lengths([length] * 3, False)) == discount
    assert suggest_discount(of_lengths([length, length, 1], [False, False, True])) == discount
    assert suggest_discount(of_lengths([length, 1, 1], True)) == discount  # the longest, if all terminated
    assert discount**length <= 0.05


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=20))
def test_it_is_the_largest_readable_one(lengths):
    found = suggest_discount(of_lengths(lengths, False))
    assert 0 < found < 1
    assert np.mean(found ** np.array(lengths)) <= 0.05 * (1 + 1e-9)
    assert len(f"{1 - found:.12f}".strip("0.").lstrip("0")) <= 2
    if found > 0.05:  # half the distance from 1 would leave too much
        assert np.mean((1 - (1 - found) / 2) ** np.array(lengths)) > 0.05


def test_there_must_be_something_to_choose_from():
    with pytest.raises(ValueError, match="at least one action"):
        suggest_discount(of_lengths([0, 0], True))
    with pytest.raises(ValueError, match="at least one action"):
        suggest_discount(of_lengths([0], False))
    with pytest.raises(ValueError, match="at least one action"):
        suggest_discount(of_lengths([2], True).select(np.array([], dtype=int)))
    assert suggest_discount(of_lengths([0, 200], False)) == 0.985
