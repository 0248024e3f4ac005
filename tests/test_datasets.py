"""The datasets that come with the package are whole, small, of their environments, and as good as is said."""

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym.datasets import OLDER, installed_id

NAMES = lfd.datasets.names()
#: Environments whose simulators need no extra.
CLASSIC = [
    name
    for name in NAMES
    if gym.spec(lfd.datasets.load(name).provenance.env_id).entry_point.startswith("gymnasium.envs.classic_control")
]


@pytest.mark.parametrize("name", NAMES)
def test_it_holds_what_is_said(name):
    demos, known = lfd.datasets.load(name), lfd.datasets.info(name)
    assert (len(demos), demos.n_transitions) == (known.n_trajectories, known.n_transitions) == (25, demos.n_transitions)
    assert (demos.terminated | demos.truncated).all()
    assert installed_id(known.env_id) == demos.provenance.env_id
    assert demos.provenance.seed == 0
    assert demos.provenance.policy == known.expert
    assert known.licence == "MIT"
    returns = np.array([episode.rewards.sum() for episode in demos])
    assert abs(returns.mean() - known.expert_return) <= 4 * known.expert_deviation / 5 + 1e-9
    assert known.expert_return > known.random_return + 3 * known.random_deviation / 10


@pytest.mark.parametrize("name", CLASSIC)
def test_every_step_is_one_of_the_environment(name):
    demos = lfd.datasets.load(name)
    env = gym.make(demos.provenance.env_id)
    assert lfd.Task(env, demos, discount=0.99).access == "simulator"
    model = lfd.as_generative_model(env)
    first = demos.select([0])
    states = model.states_of(first.acted_on)
    after = model.observe(model.sample_next(states, first.actions, np.random.default_rng(0)))
    seen = len(after) - int(first.terminated[0])  # a simulator does not show the end
    np.testing.assert_allclose(after[:seen], first.observations[1 : seen + 1], atol=2e-5)


def test_all_of_them_are_small():
    files = list(Path(lfd.datasets.__file__).parent.glob("*.npz"))
    assert sorted(file.stem for file in files) == NAMES
    assert sum(file.stat().st_size for file in files) < 10e6


def test_an_older_gymnasium_is_given_its_own_version(monkeypatch):
    for newest, older in OLDER.items():
        monkeypatch.delitem(gym.registry, newest, raising=False)
        assert installed_id(newest) == older
    demos = lfd.datasets.load("inverted-double-pendulum-expert")
    assert demos.provenance.env_id == "InvertedDoublePendulum-v4"
    assert demos.observation_space.shape == (11,)
    assert not demos.observations[:, 9:].any()
    assert lfd.datasets.load("lunarlander-expert").provenance.env_id == "LunarLander-v2"
    assert lfd.datasets.load("hopper-expert").provenance.env_id == "Hopper-v4"


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_given_in_the_precision_of_the_environment(name):
    demos = lfd.datasets.load(name)
    assert demos.observations.dtype == demos.observation_space.dtype
    assert demos.rewards.dtype == np.float64


def test_unknown_names_are_refused():
    with pytest.raises(
        ValueError, match="name must be that of a dataset, got 'taxi'; there are acrobot-expert, cartpole-expert"
    ):
        lfd.datasets.load("taxi")
