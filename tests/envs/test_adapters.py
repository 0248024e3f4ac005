"""Which environments become generative models; those with tables agree with their tables and their steps."""

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym.envs import TabularEnv
from lfd_gym.testing import check_generative_model

# The ids of both lines of Gymnasium; each line has one of every group.
TOY_TEXT = {
    "FrozenLake": ["FrozenLake-v1", "FrozenLake8x8-v1"],
    "CliffWalking": ["CliffWalking-v0", "CliffWalking-v1", "CliffWalkingSlippery-v1"],
    "Taxi": ["Taxi-v3", "Taxi-v4"],
}
REGISTERED = {name: [i for i in ids if i in gym.registry] for name, ids in TOY_TEXT.items()}
TOY_TEXT_IDS = [i for ids in REGISTERED.values() for i in ids]


def test_every_group_of_toy_text_is_covered():
    assert all(REGISTERED.values())


# -- tables ------------------------------------------------------------------------------------------------------------


def exact_arrays(env):
    """Return transitions (S+1, A, S+1), costs (S+1, A), and the initial distribution, straight from ``P``."""
    table = env.unwrapped.P
    n_states, n_actions = len(table), len(table[0])
    transitions = np.zeros((n_states + 1, n_actions, n_states + 1))
    costs = np.zeros((n_states + 1, n_actions))
    transitions[-1, :, -1] = 1.0
    for state in range(n_states):
        for action in range(n_actions):
            for probability, successor, reward, terminated in table[state][action]:
                transitions[state, action, n_states if terminated else successor] += probability
                costs[state, action] -= probability * reward
    return transitions, costs, np.append(env.unwrapped.initial_state_distrib, 0.0)


@pytest.mark.parametrize("env_id", TOY_TEXT_IDS)
def test_toy_text(env_id):
    env = gym.make(env_id)
    transitions, costs, initial = exact_arrays(env)
    mdp = lfd.FiniteMDP.from_env(env, discount=0.9)
    model = lfd.as_generative_model(env)
    np.testing.assert_allclose(mdp.transitions.toarray().reshape(transitions.shape), transitions, rtol=0, atol=1e-15)
    np.testing.assert_allclose(mdp.initial_distribution, initial, rtol=0, atol=1e-15)
    assert model.absorbing_state == mdp.absorbing_state == mdp.n_states - 1 == model.n_states - 1
    np.testing.assert_allclose(lfd.reward_cost(env), costs.ravel(), rtol=1e-14)
    check_generative_model(model, mdp=mdp, env=env)


@pytest.mark.parametrize(
    "env_id", [env_id for env_id in TOY_TEXT_IDS if not env_id.startswith(("Frozen", "CliffWalkingS"))]
)
def test_toy_text_without_chance_agrees_with_steps(env_id):
    env = gym.make(env_id).unwrapped
    model, costs = lfd.as_generative_model(env), lfd.reward_cost(env).reshape(-1, env.action_space.n)
    n_states, n_actions = int(env.observation_space.n), int(env.action_space.n)
    states, actions = np.divmod(np.arange(n_states * n_actions), n_actions)
    successors = model.sample_next(states, actions, np.random.default_rng(0))
    env.reset(seed=0)
    for state, action, successor in zip(states, actions, successors, strict=True):
        env.s = int(state)
        observation, reward, terminated, _, _ = env.step(int(action))
        assert successor == (n_states if terminated else observation)
        assert costs[state, action] == -reward


def test_frozen_lake_costs():
    cost = lfd.reward_cost(gym.make("FrozenLake-v1", is_slippery=True)).reshape(17, 4)
    assert np.count_nonzero(cost) == 3
    np.testing.assert_allclose(
        cost[14, [1, 2, 3]], -1 / 3, rtol=1e-15
    )  # three of the moves beside the goal slip into it


def test_costs_of_our_environments_are_the_true_costs():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=4, cost_seed=3)
    cost = lfd.reward_cost(env)
    np.testing.assert_array_equal(cost, env.unwrapped.cost_features[:, 0])
    env.reset(seed=0, options={"state": 5})
    assert env.step(2)[1] == -cost[5 * 4 + 2]
    cost[:] = 7.0  # a copy
    assert np.abs(env.unwrapped.cost_features).max() == 1


def test_costs_need_a_table():
    with pytest.raises(TypeError, match=r"has no table of rewards.*`cost_features`.*or `P`"):
        lfd.reward_cost(gym.make("CartPole-v1"))


def test_fickle_passengers_are_refused():
    env = gym.make(REGISTERED["Taxi"][0])
    env.unwrapped.fickle_passenger = True  # an argument of newer Gymnasium: the destination changes, unknown to P
    for build in (lfd.as_generative_model, lambda env: lfd.FiniteMDP.from_env(env, discount=0.9)):
        with pytest.raises(ValueError, match="fickle passengers"):
            build(env)


@pytest.mark.parametrize("env_id", ["lfd_gym/Garnet-v0", "lfd_gym/StochasticGridworld-v0"])
def test_our_environments_and_mdps(env_id):
    env = gym.make(env_id)
    mdp = lfd.FiniteMDP.from_env(env, discount=0.9)
    check_generative_model(lfd.as_generative_model(env), mdp=mdp, env=env)
    check_generative_model(lfd.as_generative_model(mdp), mdp=mdp)


def test_absorbing_state_of_a_tabular_environment():
    transitions = np.array([[[0.5, 0.5]], [[0.0, 1.0]]])
    env = TabularEnv(transitions, [1.0, 0.0], [[1.0], [0.0]], absorbing_state=1)
    model = lfd.as_generative_model(env)
    np.testing.assert_array_equal(model.is_absorbing([0, 1]), [False, True])
    check_generative_model(model, mdp=lfd.FiniteMDP.from_env(env, discount=0.9), env=env)


# -- everything else ---------------------------------------------------------------------------------------------------


def test_models_pass_through():
    model = lfd.TabularModel(np.eye(2).repeat(2, axis=0), [1.0, 0.0])
    assert lfd.as_generative_model(model) is model
    simulator = lfd.as_generative_model(gym.make("Pendulum-v1"))
    assert lfd.as_generative_model(simulator) is simulator

    class OwnModel(gym.Env):
        """An environment that answers for itself."""

        state_space = observation_space = action_space = gym.spaces.Discrete(2)
        sample_initial, sample_next = model.sample_initial, model.sample_next
        observe, is_absorbing = model.observe, model.is_absorbing

    env = OwnModel()
    assert lfd.as_generative_model(gym.wrappers.TimeLimit(env, 5)) is env
    check_generative_model(env, mdp=lfd.FiniteMDP(np.eye(2).repeat(2, axis=0), [1.0, 0.0], 0.9))


class Plain(gym.Env):
    observation_space = gym.spaces.Box(-1.0, 1.0)
    action_space = gym.spaces.Discrete(2)

    def observe(self, states):
        return states


@pytest.mark.parametrize(
    ("source", "lacks"),
    [
        (Plain(), r"sample_initial\(\), sample_next\(\), is_absorbing\(\), state_space;"),
        (gym.make("Blackjack-v1"), r"sample_initial\(\), sample_next\(\), observe\(\), is_absorbing\(\), state_space;"),
        ("CartPole-v1", "sample_initial.*action_space, observation_space;"),
    ],
)
def test_anything_else_is_refused_with_what_it_lacks(source, lacks):
    with pytest.raises(
        TypeError, match=f"cannot be put into a state.*what it lacks of lfd_gym.GenerativeModel: {lacks}"
    ):
        lfd.as_generative_model(source)
