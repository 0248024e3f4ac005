"""Wrappers and vector environments of Stable-Baselines3 and `imitation`."""

import gymnasium as gym
import pytest
from imitation.data.wrappers import RolloutInfoWrapper
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

import lfd_gym as lfd
from lfd_gym.testing import check_generative_model


@pytest.mark.parametrize("wrapper", [Monitor, RolloutInfoWrapper])
def test_what_only_records_has_no_effect(wrapper):
    env = wrapper(gym.make("CartPole-v1"))
    model = lfd.as_generative_model(env)
    assert model.env is env.unwrapped
    check_generative_model(model)
    grid = wrapper(gym.make("lfd_gym/StochasticGridworld-v0", size=4))
    assert lfd.Task(grid, discount=0.9).access == "model"


def test_their_vector_environments_allow_episodes_only():
    with pytest.raises(TypeError, match="is a vector environment, so only episodes can be played in it"):
        lfd.as_generative_model(DummyVecEnv([lambda: gym.make("CartPole-v1")]))
