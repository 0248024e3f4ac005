"""Collected trajectories follow the policy and the model, end where they should, and depend on the generator alone."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from strategies import finite_mdps, random_policy

from lfd_gym import FiniteMDP, TabularModel, as_generative_model, collect
from lfd_gym._splitmix import uniform
from lfd_gym.envs import TabularEnv

OLD_GYMNASIUM = issubclass(gym.vector.VectorEnv, gym.Env)  # 0.29


def chain_mdp(n=6, stay=0.3):
    """States 0 … n−1; action 0 moves on or stays, action 1 goes back to 0; the last state is absorbing."""
    transitions = np.zeros((n, 2, n))
    for state in range(n - 1):
        transitions[state, 0, state + 1] = 1 - stay
        transitions[state, 0, state] = stay
        transitions[state, 1, 0] = 1.0
    transitions[n - 1, :, n - 1] = 1.0
    return FiniteMDP(transitions, np.eye(n)[0], discount=0.9, absorbing_state=n - 1)


class CountdownEnv(gym.Env):
    """Deterministic: starts at ``1 + seed % 5``, counts down, terminates at 0; the reward is the state left."""

    observation_space = gym.spaces.Discrete(6)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = 1 + int(self.np_random.integers(5))
        return self.state, {}

    def step(self, action):
        reward = float(self.state)
        self.state -= 1
        return self.state, reward, self.state == 0, False, {}


# -- finite models ----------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(finite_mdps(), st.integers(0, 2**32 - 1))
def test_only_possible_steps(mdp, seed):
    policy = random_policy(mdp, np.random.default_rng(seed))
    demos = collect(TabularModel.of(mdp), policy, 20, 15, np.random.default_rng(seed))
    assert demos.lengths.tolist() == [15] * 20
    assert (demos.truncated & ~demos.terminated).all()
    before, actions = demos.acted_on, demos.actions
    after = demos.observations[np.arange(demos.n_transitions) + demos.trajectory_indices + 1]
    assert (mdp.initial_distribution[demos.observations[::16]] > 0).all()
    assert (policy[before, actions] > 0).all()
    dense = mdp.transitions.toarray()
    assert (dense[before * mdp.n_actions + actions, after] > 0).all()


def test_frequencies_are_those_of_the_policy_and_the_model():
    rng = np.random.default_rng(5)
    mdp = FiniteMDP(rng.dirichlet(np.ones(4), size=(4, 3)), rng.dirichlet(np.ones(4)), discount=0.9)
    policy = rng.dirichlet(np.ones(3), size=4)
    demos = collect(TabularModel.of(mdp), policy, 20_000, 10, rng)
    before, actions = demos.acted_on, demos.actions
    after = demos.observations[np.arange(demos.n_transitions) + demos.trajectory_indices + 1]
    first = np.bincount(demos.observations[::11], minlength=4)
    assert stats.chisquare(first, 20_000 * mdp.initial_distribution).pvalue > 1e-3
    pairs = np.bincount(before * 3 + actions, minlength=12).reshape(4, 3)
    for state in range(4):
        assert stats.chisquare(pairs[state], pairs[state].sum() * policy[state]).pvalue > 1e-3
    moves = np.bincount((before * 3 + actions) * 4 + after, minlength=48).reshape(12, 4)
    for pair, row in enumerate(mdp.transitions.toarray()):
        assert stats.chisquare(moves[pair], moves[pair].sum() * row).pvalue > 1e-3


def test_the_streams_of_the_kernel_are_uniform_and_uncorrelated():
    with np.errstate(over="ignore"):  # wrapping around is meant
        uniforms = np.array([uniform.py_func(np.uint64(12345), k) for k in range(100_000)])
    assert stats.kstest(uniforms, "uniform").pvalue > 1e-3
    for lag in (1, 2, 3):
        assert abs(np.corrcoef(uniforms[lag:], uniforms[:-lag])[0, 1]) < 4 / np.sqrt(uniforms.size)
    assert uniforms.min() >= 0
    assert uniforms.max() < 1


def test_trajectories_end_in_the_absorbing_state():
    mdp = chain_mdp()
    forward = np.tile([1.0, 0.0], (6, 1))
    demos = collect(TabularModel.of(mdp), forward, 500, 8, np.random.default_rng(0))
    assert 0 < demos.terminated.sum() < 500
    assert (demos.terminated != demos.truncated).all()
    assert demos.horizon == 8
    assert demos.rewards is None
    for episode in demos:
        assert episode.terminated == (episode.observations[-1] == 5)
        assert not (episode.observations[:-1] == 5).any()
        assert len(episode.actions) == 8 or episode.terminated


def test_a_trajectory_may_end_before_it_begins():
    mdp = chain_mdp()
    model = TabularModel(mdp.transitions, np.eye(6)[5], absorbing_state=5)
    for policy in (np.full((6, 2), 0.5), lambda observations: np.zeros(len(observations), dtype=int)):
        demos = collect(model, policy, 3, 10, np.random.default_rng(0))
        assert demos.lengths.tolist() == [0, 0, 0]
        assert demos.terminated.all()
        assert demos.observations.tolist() == [5, 5, 5]


def test_same_generator_same_trajectories():
    model, policy = TabularModel.of(chain_mdp()), np.full((6, 2), 0.5)
    demos = collect(model, policy, 30, 20, np.random.default_rng(7))
    assert demos == collect(model, policy, 30, 20, np.random.default_rng(7))
    assert demos != collect(model, policy, 30, 20, np.random.default_rng(8))
    assert demos.select(range(10)) == collect(model, policy, 10, 20, np.random.default_rng(7))


def test_blocks_do_not_show(monkeypatch):
    model, policy = TabularModel.of(chain_mdp()), np.full((6, 2), 0.5)
    whole = collect(model, policy, 25, 20, np.random.default_rng(1))
    monkeypatch.setattr("lfd_gym.demonstrations.rollouts._BLOCK", 150)  # seven trajectories at a time
    assert collect(model, policy, 25, 20, np.random.default_rng(1)) == whole


# -- policies ---------------------------------------------------------------------------------------------------------


class GreedyPredictor:
    """Stable-Baselines3's convention: draws uniformly unless asked to be deterministic, then takes action 0."""

    def __init__(self, hidden=None):
        self.hidden = hidden
        self.batches = []

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        self.batches.append(len(observation))
        actions = np.zeros(len(observation), dtype=np.int64)
        return (actions if deterministic else actions + np.arange(len(actions)) % 2), self.hidden


class Probabilities:
    def probabilities(self, observations):
        return np.tile([0.25, 0.75], (len(observations), 1))


def test_predict_is_asked_in_batches_and_the_flag_is_passed_on():
    model = TabularModel.of(chain_mdp(stay=0.0))
    policy = GreedyPredictor()
    demos = collect(model, policy, 40, 12, np.random.default_rng(0), deterministic=True)
    assert not demos.actions.any()
    assert len(policy.batches) <= 12  # it may remember, so that a table of its actions would not do
    policy = GreedyPredictor()
    demos = collect(model, policy, 40, 12, np.random.default_rng(0))
    assert demos.actions.any()
    assert len(policy.batches) == 12
    assert policy.batches[0] == 40


def test_a_policy_that_says_its_probabilities_is_drawn_from():
    model = TabularModel.of(chain_mdp())
    demos = collect(model, Probabilities(), 2000, 10, np.random.default_rng(0))
    assert demos == collect(model, np.tile([0.25, 0.75], (6, 1)), 2000, 10, np.random.default_rng(0))
    stepwise = collect(as_generative_model(gym.make("CartPole-v1")), Probabilities(), 20, 30, np.random.default_rng(0))
    assert stepwise.actions.mean() == pytest.approx(0.75, abs=0.1)


def test_a_callable_gives_what_its_table_gives():
    mdp = chain_mdp()
    model, rng = TabularModel.of(mdp), np.random.default_rng
    policy = np.eye(2)[[0, 0, 1, 0, 0, 0]]
    by_table = collect(model, policy, 20_000, 6, rng(0))
    by_callable = collect(model, lambda states: policy[states].argmax(axis=1), 20_000, 6, rng(1))
    for demos in (by_table, by_callable):
        assert (demos.actions == policy[demos.acted_on].argmax(axis=1)).all()
    counts = [np.bincount(demos.acted_on, minlength=6)[:3] for demos in (by_table, by_callable)]
    assert stats.chi2_contingency(counts).pvalue > 1e-3


@pytest.mark.parametrize(
    ("policy", "settings", "error", "message"),
    [
        (np.full((4, 2), 0.5), {}, ValueError, r"policy must have shape \(6, 2\), got \(4, 2\)"),
        (np.full((6, 2), 0.4), {}, ValueError, "policy must have rows that sum to 1"),
        (lambda seen: 0 * seen, {"deterministic": True}, ValueError, "deterministic=True is for policies that draw"),
        (lambda observations: 0, {}, ValueError, r"policy must return actions of shape \(4,\), got \(\)"),
        (lambda observations: observations + 7, {}, ValueError, r"actions must lie in \[0, 2\)"),
        ("optimal", {}, TypeError, "policy must be .* got"),
        (np.full((6, 2), 0.5), {"n_envs": 2}, ValueError, "n_envs is for environments"),
        (np.full((6, 2), 0.5), {"n_trajectories": 0}, ValueError, "n_trajectories must be at least 1"),
        (np.full((6, 2), 0.5), {"horizon": 0}, ValueError, "horizon must be at least 1"),
    ],
)
def test_wrong_arguments_are_named(policy, settings, error, message):
    settings = {"n_trajectories": 4, "horizon": 5} | settings
    with pytest.raises(error, match=message):
        collect(TabularModel.of(chain_mdp()), policy, rng=np.random.default_rng(0), **settings)


# -- models without tables --------------------------------------------------------------------------------------------


def test_a_continuous_model():
    model = as_generative_model(gym.make("CartPole-v1"))
    lean = lambda observations: (observations[:, 2] > 0).astype(np.int64)  # noqa: E731
    demos = collect(model, lean, 15, 42, np.random.default_rng(0))
    assert demos.observation_space == model.observation_space
    assert demos.terminated.any()
    assert demos.truncated.any()
    for episode in demos:
        assert np.isnan(episode.observations[-1]).all() == episode.terminated
        assert not np.isnan(episode.observations[:-1]).any()
        assert (episode.actions == lean(episode.observations[:-1])).all()
    assert demos == collect(model, lean, 15, 42, np.random.default_rng(0))


# -- environments -----------------------------------------------------------------------------------------------------


def vector_modes():
    return ["default"] if OLD_GYMNASIUM else ["NEXT_STEP", "SAME_STEP", "DISABLED"]


@pytest.mark.parametrize("n_envs", [1, 3, 7])
@pytest.mark.parametrize("mode", vector_modes())
def test_no_step_of_starting_anew_is_recorded(n_envs, mode):
    """Every episode counts down from its start to 0, whatever rule the vector environment starts anew by."""
    settings = {} if mode == "default" else {"autoreset_mode": gym.vector.AutoresetMode[mode]}
    envs = gym.vector.SyncVectorEnv([CountdownEnv] * n_envs, **settings)
    demos = collect(envs, lambda seen: np.zeros(len(seen), dtype=int), 20, 10, np.random.default_rng(0))
    assert len(demos) == 20
    assert demos.terminated.all()
    assert not demos.truncated.any()
    assert set(demos.lengths) == {1, 2, 3, 4, 5}
    for episode in demos:
        start = len(episode.actions)
        assert episode.observations.tolist() == list(range(start, -1, -1))
        assert episode.rewards.tolist() == list(range(start, 0, -1))


def test_short_episodes_are_not_preferred():
    """With a start uniform on 1 … 5 every length is equally likely, however many environments run side by side."""
    demos = collect(
        gym.vector.SyncVectorEnv([CountdownEnv] * 8),
        lambda seen: np.zeros(len(seen), dtype=int),
        1000,
        10,
        np.random.default_rng(0),
    )
    assert stats.chisquare(np.bincount(demos.lengths)[1:]).pvalue > 1e-3


def test_horizon_cuts_and_a_time_limit_cuts_earlier():
    env = gym.make("Pendulum-v1", max_episode_steps=15)
    push = lambda seen: np.zeros((len(seen), 1), dtype=np.float32)  # noqa: E731
    for horizon, length in ((10, 10), (15, 15), (40, 15)):
        demos = collect(env, push, 3, horizon, np.random.default_rng(0), n_envs=2)
        assert demos.lengths.tolist() == [length] * 3
        assert demos.truncated.all()
        assert demos.horizon == length
        assert demos.actions.dtype == np.float32


def test_an_environment_alone_and_its_copies_agree():
    env = gym.make("FrozenLake-v1", is_slippery=False)
    down_right = np.zeros((16, 4))
    down_right[:, 2] = 1.0
    down_right[[0, 4, 9, 13, 10], :] = 0.0
    down_right[[0, 4, 9, 10], 1] = down_right[13, 2] = 1.0
    one = collect(env, down_right, 4, 50, np.random.default_rng(0))
    copies = collect(env, down_right, 4, 50, np.random.default_rng(0), n_envs=3)
    assert one == copies
    assert one[0].observations.tolist() == [0, 4, 8, 9, 13, 14, 15]
    assert one[0].rewards.tolist() == [0, 0, 0, 0, 0, 1]
    assert one.provenance.env_id == "FrozenLake-v1"
    assert one.provenance.env_kwargs["is_slippery"] is False


def test_the_gridworld_itself_gives_the_rewards_of_its_costs():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=4, cost_seed=3, max_episode_steps=30)
    demos = collect(env, np.full((16, 4), 0.25), 50, 100, np.random.default_rng(0))
    assert demos.lengths.tolist() == [30] * 50
    assert demos.horizon == 30
    rows = demos.acted_on * 4 + demos.actions
    assert (demos.rewards == -env.unwrapped.cost_features[rows, 0]).all()
    assert dict(demos.provenance.env_kwargs) == {"size": 4, "cost_seed": 3}
    assert demos == collect(env, np.full((16, 4), 0.25), 50, 100, np.random.default_rng(0))


def test_an_environment_without_a_spec_runs_alone():
    mdp = chain_mdp(stay=0.0)
    env = TabularEnv.from_mdp(mdp, np.zeros((12, 1)))
    forward = np.tile([1.0, 0.0], (6, 1))
    demos = collect(env, forward, 2, 10, np.random.default_rng(0))
    assert demos.terminated.all()
    assert demos.observations.tolist() == [0, 1, 2, 3, 4, 5] * 2
    with pytest.raises(ValueError, match="n_envs must be 1"):
        collect(env, forward, 2, 10, np.random.default_rng(0), n_envs=2)


@pytest.mark.parametrize("policy", [np.full((6, 2), 0.5), lambda states: np.zeros(len(states), dtype=int)])
def test_a_bar_shows_after_a_second_on_a_terminal_only(policy, monkeypatch, capsys):
    """All work is reported to a bar that waits a second and stays away from pipes (``disable=None``)."""
    import lfd_gym.demonstrations.rollouts as module

    bars = []

    class RecordingBar(module.tqdm):
        def __init__(self, **settings):
            bars.append(settings)
            super().__init__(**settings | {"disable": False, "delay": 0})
            settings["bar"] = self

    monkeypatch.setattr(module, "tqdm", RecordingBar)
    collect(TabularModel.of(chain_mdp()), policy, 9, 30, np.random.default_rng(0))
    assert (bars[0]["delay"], bars[0]["disable"]) == (1, None)
    assert 0 < bars[0]["bar"].n <= bars[0]["total"]
    assert "collecting" in capsys.readouterr().err
