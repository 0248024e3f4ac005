"""The contract of every registered learner: real `imitation`, real Stable-Baselines3, small budgets."""

import sys

import gymnasium as gym
import numpy as np
import pytest
import torch as th

import lfd_gym as lfd
from lfd_gym.baselines import learner_names, make_learner
from lfd_gym.baselines.behavioral_cloning import BehavioralCloning, _over_states, nearness_bumps
from lfd_gym.baselines.playing import TabularVecEnv, padded_demonstrations
from lfd_gym.demonstrations.demonstrations import Demonstrations, Episode
from lfd_gym.policies.conversion import policy_table
from lfd_gym.policies.files import load_policy, save_policy

DISCOUNT = 0.9
#: Small enough for seconds, large enough for each learner to learn something.
BUDGETS = {
    "gail": 40_960,
    "airl": 40_960,
    "dagger": 2000,
    "bc": 300,
    "mce_irl": 30,
    "mwal": 100,
    "plug_in": 200_000,
    "mirror_descent": 1_000_000,
}
#: Enough to run, where it does not matter how well.
SHORT = BUDGETS | {"gail": 8192, "airl": 8192, "dagger": 500}
#: Those that learn on tables; the others are for vectors, and have tests of their own.
FOR_VECTORS = ("grid", "iq_learn", "iq_learn_offline", "primal_dual_rl", "sqil")
NAMES = [name for name in learner_names() if name not in FOR_VECTORS]
VARIANTS = [(name, {}) for name in NAMES] + [("abbeel_ng", {"variant": "max_margin"})]
#: Share of the way from random to the expert that is asked for; clones from 10 trajectories do not know every state.
SCORES = {"random": -0.01, "gail": 0.3, "airl": 0.25, "bc": 0.5, "tabular_bc": 0.5}


@pytest.fixture(scope="module")
def gridworld():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=6, cost_seed=1)
    return make_task(env, env.unwrapped.cost_features, horizon=60, n_trajectories=10)


@pytest.fixture(scope="module")
def frozen_lake():
    env = gym.make("FrozenLake-v1")
    mdp = lfd.FiniteMDP.from_env(env, discount=DISCOUNT)
    state_costs = np.random.default_rng(0).uniform(-1, 1, (mdp.n_states, 2))
    state_costs[mdp.absorbing_state] = 0.0
    true_cost = lfd.normalise_costs(lfd.reward_cost(env))
    costs = np.column_stack([true_cost, np.repeat(state_costs, mdp.n_actions, axis=0)])
    return make_task(env, costs, horizon=100, n_trajectories=40)


def make_task(env, costs, horizon, n_trajectories):
    mdp = lfd.FiniteMDP.from_env(env, discount=DISCOUNT)
    expert = mdp.optimal_policy(costs[:, 0])
    demos = lfd.collect(env, expert, n_trajectories, horizon, np.random.default_rng(3))
    return lfd.Task(env, demos, discount=DISCOUNT, costs=costs, expert=expert)


def learn(name, settings, task, seed=0, budgets=BUDGETS):
    rng, budget = np.random.default_rng(seed), budgets.get(name)
    return lfd.learn(task, make_learner(name, **settings), rng=rng, budget=budget)


@pytest.mark.parametrize(("name", "settings"), VARIANTS)
def test_every_learner_learns_through_the_same_protocol(name, settings, gridworld, tmp_path):
    global_state = np.random.get_state()[1].copy()  # noqa: NPY002
    torch_state = th.get_rng_state()
    result = learn(name, settings, gridworld)
    learner = make_learner(name)
    np.testing.assert_array_equal(np.random.get_state()[1], global_state)  # noqa: NPY002
    assert th.equal(th.get_rng_state(), torch_state)

    assert result.learner == learner.name == name
    evaluation = lfd.evaluate(result.policy, gridworld, resources=result.resources)
    assert evaluation.exact
    assert evaluation.normalised_score >= SCORES.get(name, 0.75)
    resources = result.resources
    assert resources.n_demonstrations == 10
    assert resources.wall_seconds > 0
    assert resources.peak_memory_mb > 10
    assert (resources.expert_queries > 0) == (name == "dagger")
    assert learner.asks_expert == (name in ("dagger", "expert"))
    if name in ("gail", "airl", "dagger"):
        assert resources.env_steps >= BUDGETS[name]
    if result.cost_weights is not None:
        assert result.cost_weights.shape == (gridworld.cost_table.shape[1],)

    certificate = lfd.certify(result.policy, gridworld, delta=0.05)
    assert evaluation.cost_distance <= certificate.cost_distance_bound
    save_policy(result.policy, tmp_path / "policy.npz")
    tables = [policy_table(policy, gridworld.model) for policy in (result.policy, load_policy(tmp_path / "policy.npz"))]
    np.testing.assert_array_equal(*tables)


@pytest.mark.parametrize(("name", "settings"), VARIANTS)
def test_every_learner_handles_absorbing_states(name, settings, frozen_lake):
    result = learn(name, settings, frozen_lake, budgets=SHORT)
    table = policy_table(result.policy, frozen_lake.model)
    assert table.shape == (17, 4)
    evaluation = lfd.evaluate(result.policy, frozen_lake)
    assert np.isfinite(evaluation.expected_costs).all()


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_policy(name, gridworld):
    tables = [policy_table(learn(name, {}, gridworld, seed, SHORT).policy, gridworld.model) for seed in (5, 5)]
    np.testing.assert_array_equal(*tables)


@pytest.mark.parametrize("name", ["bc", "gail"])
def test_another_seed_another_network(name, gridworld):
    one, other = (policy_table(learn(name, {}, gridworld, seed, SHORT).policy, gridworld.model) for seed in (5, 6))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("hidden_sizes", [(8, 8), ()])
def test_cloning_carries_over_to_states_nearby(hidden_sizes):
    """Demonstrations go right in the upper rows and left in the lower ones, and miss half the states."""
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=10)
    states = np.random.default_rng(0).permutation(100)[:50]
    actions = np.where(states < 50, 3, 2)
    episodes = [
        Episode(np.array([state, state]), np.array([action]), None, terminated=False, truncated=True)
        for state, action in zip(states, actions, strict=True)
    ]
    demos = Demonstrations.from_episodes(episodes, gym.spaces.Discrete(100), gym.spaces.Discrete(4))
    task = lfd.Task(env, demos, discount=0.9)
    cloning = BehavioralCloning(hidden_sizes=hidden_sizes)
    policy = lfd.learn(task, cloning, rng=np.random.default_rng(0), budget=300).policy
    choices = policy_table(policy, task.model).argmax(axis=1).reshape(10, 10)
    assert (choices[:4] == 3).mean() > 0.9
    assert (choices[6:] == 2).mean() > 0.9
    np.testing.assert_array_equal(choices.ravel()[states], actions)


@pytest.mark.parametrize("hidden_sizes", [(8, 8), ()])
def test_a_network_over_bumps_is_rewritten_for_states(hidden_sizes):
    rng = np.random.default_rng(0)
    positions = rng.normal(size=(30, 2))
    bumps = nearness_bumps(positions, np.arange(5, 12), 0.7, rng)
    for state, column in ((0, 0), (17, 6)):
        distance = np.linalg.norm(positions[state] - positions[5 + column])
        assert bumps[state, column] == pytest.approx(np.exp(-(distance**2) / (2 * 0.7**2)), rel=1e-6)
    cloning = BehavioralCloning(hidden_sizes=hidden_sizes)
    over_bumps = cloning.network(gym.spaces.Box(0.0, 1.0, (7,)), gym.spaces.Discrete(3))
    over_states = cloning.network(gym.spaces.Discrete(30), gym.spaces.Discrete(3))
    over_states.load_state_dict(_over_states(over_bumps.state_dict(), bumps))
    with th.no_grad():
        expected = over_bumps.get_distribution(th.as_tensor(bumps)).distribution.probs
        found = over_states.get_distribution(th.arange(30)).distribution.probs
        np.testing.assert_allclose(found, expected, atol=1e-6)
        np.testing.assert_allclose(
            over_states.predict_values(th.arange(30)), over_bumps.predict_values(th.as_tensor(bumps)), atol=1e-5
        )


def test_positions_are_used_for_states_only():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=3)
    coordinates = env.unwrapped.state_positions
    np.testing.assert_array_equal(coordinates[[0, 1, 3, 8]], [[0, 0], [0, 1], [1, 0], [2, 2]])
    episode = Episode(np.array([0, 1]), np.array([3]), None, terminated=False, truncated=True)
    demos = Demonstrations.from_episodes([episode], gym.spaces.Discrete(10), gym.spaces.Discrete(4))
    assert lfd.Task(env, demos, discount=0.9).state_positions is None
    demos = Demonstrations.from_episodes([episode], gym.spaces.Discrete(9), gym.spaces.Discrete(4))
    np.testing.assert_array_equal(lfd.Task(env, demos, discount=0.9).state_positions, coordinates)
    env.unwrapped.__class__ = type("Flat", (type(env.unwrapped),), {"state_positions": np.arange(9)})
    with pytest.raises(ValueError, match=r"env.state_positions must have shape \(any, any\), got \(9,\)"):
        _ = lfd.Task(env, demos, discount=0.9).state_positions
    with pytest.raises(ValueError, match="nearness must be positive"):
        make_learner("bc", nearness=0.0)


def test_networks_work_on_continuous_observations():
    env = gym.make("CartPole-v1")
    rng = np.random.default_rng(0)
    balance = lambda observations: (observations[:, 2] + 0.5 * observations[:, 3] > 0).astype(np.int64)  # noqa: E731
    demos = lfd.collect(env, balance, n_trajectories=5, horizon=100, rng=rng)
    task = lfd.Task(env, demos, discount=0.99)
    result = lfd.learn(task, "bc", rng=rng, budget=300)
    assert task.access == "simulator"
    angles = np.zeros((2, 4), dtype=np.float32)
    angles[:, 2] = [-0.1, 0.1]
    assert result.policy.predict(angles, deterministic=True)[0].tolist() == [0, 1]
    small = {"n_envs": 2, "n_steps": 64, "batch_size": 64, "reward_batch_size": 128}
    played = lfd.learn(task, make_learner("gail", **small), rng=rng, budget=256)
    assert played.resources.env_steps == 256
    (half_way,) = played.checkpoints  # of the first round: learning went on without it
    assert half_way.after == 128
    before, after = half_way.policy.to_data()[1], played.policy.to_data()[1]
    assert any(not np.array_equal(before[name], after[name]) for name in after)


def test_padded_demonstrations_go_on_in_the_absorbing_state(frozen_lake):
    padded = padded_demonstrations(frozen_lake, np.random.default_rng(0))
    absorbing = frozen_lake.model.absorbing_state
    assert (padded.lengths == 100).all()
    for given, long in zip(frozen_lake.demonstrations, padded, strict=True):
        n = len(given.actions)
        np.testing.assert_array_equal(long.observations[:n], given.observations[:n])
        np.testing.assert_array_equal(long.actions[:n], given.actions)
        if given.terminated:
            assert (long.observations[n:] == absorbing).all()
    assert frozen_lake.demonstrations.terminated.any()


def test_vectorised_play_follows_the_model(gridworld):
    mdp, cost = gridworld.model, gridworld.cost_table[:, 0]
    venv = TabularVecEnv(mdp.dynamics, n_envs=3, horizon=4, rng=np.random.default_rng(0), cost=cost)
    observations = venv.reset()
    for step in range(1, 9):
        actions = np.array([0, 1, 2])
        after, rewards, dones, infos = venv.step(actions)
        rows = observations * mdp.n_actions + actions
        np.testing.assert_allclose(rewards, -cost[rows])
        assert dones.all() == (step % 4 == 0)
        reached = [info["terminal_observation"] for info in infos] if dones.all() else after
        assert all(mdp.transitions[[row], :].toarray()[0, state] > 0 for row, state in zip(rows, reached, strict=True))
        observations = after
    assert venv.n_steps_taken == 24


def test_importing_the_registry_does_not_import_torch():
    import subprocess

    code = "import lfd_gym.baselines, sys; lfd_gym.baselines.make_learner('lpal'); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
