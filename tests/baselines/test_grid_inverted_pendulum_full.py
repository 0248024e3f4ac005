"""The learner `grid` on a task whose simulator steps one pair after the other, from one demonstration."""

import gymnasium as gym
import numpy as np
import pytest
from experts import inverted_pendulum

import lfd_gym as lfd
from lfd_gym.datasets import installed_id


def test_inverted_pendulum_with_nothing_given():
    """Of one seed; not all seeds get there, see docs/grids.md."""
    pytest.importorskip("mujoco")
    env, rng = gym.make(installed_id("InvertedPendulum-v5")), np.random.default_rng(0)
    result = lfd.learn(lfd.Task(env, lfd.collect(env, inverted_pendulum, 1, rng=rng), discount=0.99), rng=rng)
    assert result.learner == "grid"
    assert result.facts["table_error"] < 0.02
    assert result.resources.oracle_calls < 300_000
    lengths = lfd.collect(env, result.policy, 20, rng=np.random.default_rng(1000)).lengths
    assert lengths.mean() >= 950  # of 1000; random play falls after ten
