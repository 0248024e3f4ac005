"""The stochastic gridworld against the words of the paper's Appendix E."""

import importlib
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy.stats import chisquare

import lfd_gym
from lfd_gym.envs import StochasticGridworldEnv, gridworld_transitions

ID = "lfd_gym/StochasticGridworld-v0"


def transitions_by_hand(size, intended_probability):
    """(S·A, S), cell by cell: the executed direction is the intended one or one of the others; walls hold the agent."""
    moves = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
    table = np.zeros((size * size * 4, size * size))
    for i in range(size):
        for j in range(size):
            for action, intended in enumerate(moves):
                for executed, (down, right) in moves.items():
                    probability = intended_probability if executed == intended else (1 - intended_probability) / 3
                    inside = 0 <= i + down < size and 0 <= j + right < size
                    to = (i + down) * size + j + right if inside else i * size + j
                    table[(i * size + j) * 4 + action, to] += probability
    return table


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("intended_probability", [0.0, 0.25, 0.7, 1.0])
def test_transitions_are_those_of_the_paper(size, intended_probability):
    transitions = gridworld_transitions(size, intended_probability)
    np.testing.assert_allclose(transitions.toarray(), transitions_by_hand(size, intended_probability), atol=1e-15)
    assert transitions.has_canonical_format
    assert (transitions.data > 0).all()


def test_defaults_are_the_experiment_of_the_paper():
    env = gym.make(ID)
    assert env.spec.max_episode_steps == 200
    source = env.unwrapped
    assert (source.size, source.intended_probability, source.n_costs) == (16, 0.7, 5)
    assert env.observation_space == gym.spaces.Discrete(256)
    assert env.action_space == gym.spaces.Discrete(4)
    np.testing.assert_array_equal(source.initial_distribution, np.full(256, 1 / 256))
    np.testing.assert_allclose(source.transitions.toarray(), transitions_by_hand(16, 0.7), atol=1e-15)


def test_costs_are_state_costs_with_the_law_of_the_paper():
    env = StochasticGridworldEnv(size=100, cost_seed=7)
    np.testing.assert_array_equal(env.cost_features, np.kron(env.state_costs, np.ones((4, 1))))
    for cost in env.state_costs.T:
        counts = [(cost == value).sum() for value in (0, -1, 1)]
        assert sum(counts) == 10_000
        assert chisquare(counts, [8000, 1000, 1000]).pvalue > 1e-3
    correlations = np.corrcoef(env.state_costs.T)[np.triu_indices(5, k=1)]
    assert np.abs(correlations).max() < 0.04  # independent: the standard deviation is 0.01


def test_costs_depend_on_their_seed_alone():
    costs = StochasticGridworldEnv(size=8, cost_seed=3).state_costs
    env = StochasticGridworldEnv(size=8, cost_seed=3, n_costs=2, intended_probability=0.5)
    env.reset(seed=99)
    np.testing.assert_array_equal(env.state_costs, costs[:, :2])
    assert (StochasticGridworldEnv(size=8, cost_seed=4).state_costs != costs).any()


def test_tables_cannot_be_changed_and_are_not_built_for_stepping():
    env = StochasticGridworldEnv(size=4)
    env.reset(seed=0)
    env.step(0)
    assert not {"transitions", "cost_features", "initial_distribution"} & set(vars(env))
    for array in (env.state_costs, env.pair_features, env.cost_features):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.5


@pytest.mark.parametrize("intended_probability", [0.0, 0.7, 1.0])
def test_steps_follow_the_transitions(intended_probability):
    env = StochasticGridworldEnv(size=3, intended_probability=intended_probability)
    env.reset(seed=11)
    pvalues = []
    for pair, law in enumerate(transitions_by_hand(3, intended_probability)):
        counts = np.zeros(9)
        for _ in range(400):
            env.set_state(pair // 4)
            counts[env.step(pair % 4)[0]] += 1
        assert counts[law == 0].sum() == 0
        if (law > 0).sum() > 1:
            pvalues.append(chisquare(counts[law > 0], 400 * law[law > 0]).pvalue)
    assert min(pvalues, default=1.0) > 1e-3 / 36


def test_first_states_are_uniform():
    env = StochasticGridworldEnv(size=4)
    env.reset(seed=5)
    counts = np.bincount([env.reset()[0] for _ in range(3200)], minlength=16)
    assert chisquare(counts).pvalue > 1e-3


def test_step_returns_what_gymnasium_asks_for():
    env = StochasticGridworldEnv(size=16, cost_seed=0)
    observation, info = env.reset(seed=1)
    rewards = set()
    for action in np.random.default_rng(0).integers(4, size=300):
        np.testing.assert_array_equal(info["cost_features"], env.state_costs[observation])
        cost = env.cost_features[observation * 4 + action, 0]
        observation, reward, terminated, truncated, info = env.step(action)
        assert [type(value) for value in (observation, reward, terminated, truncated)] == [int, float, bool, bool]
        assert reward == -cost
        assert observation == env.state
        assert not terminated
        assert not truncated
        rewards.add(str(reward))
    assert rewards == {"0.0", "-1.0", "1.0"}  # no negative zero


def test_info_is_the_callers_to_change():
    env = StochasticGridworldEnv(size=4)
    _, info = env.reset(seed=0, options={"state": 3})
    info["cost_features"][:] = 9.0
    assert np.abs(env.state_costs).max() == 1.0


def test_same_seed_same_episode():
    def episode(seed):
        env = StochasticGridworldEnv(size=8)
        return [env.reset(seed=seed)[0]] + [env.step(k % 4)[0] for k in range(50)]

    assert episode(3) == episode(3)
    assert episode(3) != episode(4)


def test_episodes_are_cut_after_the_time_limit():
    env = gym.make(ID, size=4)
    env.reset(seed=0)
    flags = [env.step(0)[2:4] for _ in range(200)]
    assert flags == [(False, False)] * 199 + [(False, True)]


def test_reset_and_set_state_put_the_agent_where_it_is_wanted():
    env = gym.make(ID, size=4)
    for state in (0, 7, np.int32(15), np.array(3)):
        assert env.reset(options={"state": state})[0] == state
        assert env.unwrapped.state == state
        env.unwrapped.set_state(9)
        assert env.unwrapped.state == 9


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        (16, ValueError, r"state must lie in \[0, 16\), got 16"),
        (-1, ValueError, r"state must lie in \[0, 16\), got -1"),
        (2.0, TypeError, r"state must be an integer in \[0, 16\), got 2.0"),
        (True, TypeError, "state must be an integer"),
        ("up", TypeError, "state must be an integer"),
        ([3], TypeError, "state must be an integer"),
    ],
)
def test_what_is_no_state_is_refused(state, error, message):
    env = StochasticGridworldEnv(size=4)
    env.reset(seed=0, options={"state": 5})
    with pytest.raises(error, match=message):
        env.reset(options={"state": state})
    with pytest.raises(error, match=message):
        env.set_state(state)
    assert env.state == 5


def test_misspelt_options_are_refused():
    with pytest.raises(ValueError, match=r"options may hold \"state\" only, got \['start'\]"):
        StochasticGridworldEnv().reset(options={"start": 3})


def test_steps_without_a_state_or_with_no_such_action_are_refused():
    env = StochasticGridworldEnv(size=4)
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        env.step(0)
    env.reset(seed=0)
    for action, error in ((4, ValueError), (-1, ValueError), (1.5, TypeError)):
        with pytest.raises(error, match=r"action must .* \[0, 4\)"):
            env.step(action)


@pytest.mark.parametrize(
    "parameters",
    [
        {"size": 0},
        {"size": 3.0},
        {"size": True},
        {"intended_probability": 1.2},
        {"intended_probability": float("nan")},
        {"intended_probability": "0.7"},
        {"n_costs": 0},
        {"cost_seed": -1},
        {"cost_seed": None},
        {"render_mode": "gif"},
    ],
)
def test_wrong_parameters_are_named(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"^{name} must"):
        StochasticGridworldEnv(**parameters)
    if name in ("size", "intended_probability"):
        with pytest.raises(ValueError, match=f"^{name} must"):
            gridworld_transitions(**{"size": 4, **parameters})


def test_gymnasium_checker_has_nothing_to_say(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")  # the checker renders in every mode
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(ID, size=5).unwrapped)


def test_registration_can_be_repeated():
    before = gym.spec(ID)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        importlib.reload(sys.modules["lfd_gym.envs"])
        importlib.reload(lfd_gym)
    assert gym.spec(ID) is before
    assert gym.make(f"lfd_gym:{ID}", size=3).unwrapped.n_states == 9


def test_it_is_a_finite_mdp():
    env = gym.make(ID, size=4, cost_seed=1)
    mdp = lfd_gym.FiniteMDP.from_env(env, discount=0.9)
    assert (mdp.n_states, mdp.n_actions, mdp.absorbing_state) == (16, 4, None)
    np.testing.assert_allclose(mdp.transitions.toarray(), transitions_by_hand(4, 0.7), atol=1e-15)
