"""Random play reaches what matters, and is the same for the same seed."""

import gymnasium as gym
import numpy as np
import pytest
from simulators import Line

import lfd_gym as lfd
from lfd_gym.grids.exploration import explored


@pytest.mark.parametrize(
    ("env_id", "axis", "low", "high"),
    [("MountainCar-v0", 0, -1.1, 0.45), ("Pendulum-v1", 1, -7.5, 7.5), ("Acrobot-v1", 2, -4.0, 4.0)],
)
def test_it_goes_far(env_id, axis, low, high):
    simulator = lfd.as_generative_model(gym.make(env_id))
    states = explored(simulator, np.random.default_rng(0))
    assert states[:, axis].min() < low
    assert states[:, axis].max() > high
    np.testing.assert_array_equal(explored(simulator, np.random.default_rng(0)), states)


def test_ends_are_left_out_and_infinity_is_refused():
    states = explored(Line(end=0.5), np.random.default_rng(0))
    assert (np.abs(states) <= 0.5).all()
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="env must lead to finite states"):
        explored(Line(push=np.inf), np.random.default_rng(0))
