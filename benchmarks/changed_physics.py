"""The tasks of `experts.py` with other physics, and planning in them for a cost that was learned before.

A recovered cost says what the expert wants, and a policy what it does: where masses or forces have changed, the cost
can be planned for anew and the policy cannot. Scores there are

    (mean return − the random policy's) / (the best known − the random policy's),

all of them with the changed physics. The best known is what planning for the true cost gets, or the expert if it still
gets more.
"""

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from experts import Floats, Kind, ReferenceReturns, installed_id, load_expert
from numpy.typing import NDArray

import lfd_gym as lfd
from lfd_gym.grids.actions import ActionGrid
from lfd_gym.grids.choice import GridSize, choose_grid, choose_repeat
from lfd_gym.grids.policies import GridPolicy, LookaheadPolicy
from lfd_gym.grids.readings import StateReading
from lfd_gym.grids.surroundings import surroundings
from lfd_gym.model.mdp import one_hot
from lfd_gym.policies.tables import UniformPolicy

#: What is changed, and how it is said in a table. There are no numbers to set in MuJoCo's InvertedPendulum.
CHANGES: dict[str, tuple[str, dict[str, float]]] = {
    "CartPole-v1": (
        "pole 4 times as long, half the force",
        {"length": 2.0, "polemass_length": 0.2, "force_mag": 5.0},
    ),
    "Pendulum-v1": ("mass 2.5 instead of 1", {"m": 2.5}),
    "MountainCar-v0": ("force 0.0008 instead of 0.001", {"force": 0.0008}),
    "MountainCarContinuous-v0": ("power 0.0008 instead of 0.0015", {"power": 0.0008}),
    "Acrobot-v1": ("lower link twice as heavy", {"LINK_MASS_2": 2.0}),
}

#: What a step of each costs by its own reward, scaled to [−1, 1]. Where the end is worth 100, every step before it
#: costs (1 − γ)·100 = 1 instead, which is the same in all but a constant.
_TRUE_COSTS: dict[str, Callable[[Any, Any], Any]] = {
    "CartPole-v1": lambda seen, done: -np.ones(len(seen)),
    "Pendulum-v1": lambda seen, done: _pendulum_cost(seen, done),
    "MountainCar-v0": lambda seen, done: np.ones(len(seen)),
    "MountainCarContinuous-v0": lambda seen, done: (1 + 0.1 * done[:, 0] ** 2) / 1.1,
    "Acrobot-v1": lambda seen, done: np.ones(len(seen)),
}

_PLAN_TOLERANCE = 1e-4
_MEMORY = 2e9


def _pendulum_cost(seen: NDArray[Any], done: NDArray[Any]) -> Floats:
    angle, speed = np.arctan2(seen[:, 1], seen[:, 0]), np.clip(seen[:, 2], -8, 8)  # a grid may reach further
    return np.asarray((angle**2 + 0.1 * speed**2 + 0.001 * done[:, 0] ** 2) / 16.3, dtype=np.float64)


def make_env(env_id: str, change: Mapping[str, float] | None = None) -> gym.Env[Any, Any]:
    """Make an environment, with some of its constants changed."""
    env = gym.make(installed_id(env_id))
    for name, value in (change or {}).items():
        if not hasattr(env.unwrapped, name):
            raise ValueError(f"{env_id} has no constant {name!r}")
        setattr(env.unwrapped, name, value)
    return env


def returns_of(
    env_id: str, policy: lfd.Policy, change: Mapping[str, float] | None, n_episodes: int, seed: int
) -> Floats:
    """Return the sums of rewards of whole episodes."""
    envs = gym.vector.SyncVectorEnv([lambda: make_env(env_id, change)] * min(n_episodes, 25))
    episodes = lfd.collect(envs, policy, n_episodes, rng=np.random.default_rng(seed))
    totals: list[Any] = [np.asarray(episode.rewards).sum() for episode in episodes]
    return np.array(totals)


def planned_policy(
    env: gym.Env[Any, Any],
    states: Floats,
    costs: lfd.Costs,
    weights: Floats,
    discount: float,
    rng: np.random.Generator,
) -> lfd.Policy:
    """Plan for one cost on a grid that is chosen as the learner ``grid`` chooses it, and act by looking ahead.

    Parameters
    ----------
    env
        Where to plan.
    states
        (n, d) what the grid is to cover, besides initial states and random play.
    costs, weights
        The cost.
    discount, rng
        Of the grid model.
    """
    simulator: Any = lfd.as_generative_model(env)
    visited, _ = surroundings(simulator, states, rng)
    reading = StateReading.found(simulator, visited)
    actions = ActionGrid(simulator.action_space)
    n_points = GridSize(states.shape[1], len(actions), len(weights), _MEMORY).points_along()
    angles = () if reading is None else tuple(np.flatnonzero(reading.cosines >= 0).tolist())
    grid = choose_grid(visited, n_points, angles=angles, space=simulator.state_space)
    repeat = choose_repeat(simulator, grid, visited, actions, rng)
    model = lfd.GridModel(simulator, grid, discount=discount, rng=rng, actions=actions, repeat=repeat)
    cost = model.table(costs) @ weights
    plan = model.mdp(simulator.sample_initial(100, rng)).plan(cost, _PLAN_TOLERANCE * max(float(np.ptp(cost)), 1e-9))
    states_of = reading or simulator.states_of
    if model.deterministic:
        return LookaheadPolicy(model, cost, plan.values, states_of)
    table = one_hot(plan.actions, model.n_actions)[: grid.n_points]
    return GridPolicy(grid, actions, table, states_of, simulator.observation_space, vote=True)


def changed_references(env_id: str, kind: Kind, discount: float, n_episodes: int, seed: int) -> ReferenceReturns:
    """Return what the random policy and the best known get with the changed physics."""
    change = CHANGES[env_id][1]
    env, rng = make_env(env_id, change), np.random.default_rng(seed)
    expert = load_expert(env_id, kind)
    simulator: Any = lfd.as_generative_model(env)
    seen = lfd.collect(make_env(env_id), expert, 5, rng=rng).acted_on
    true = _TRUE_COSTS[env_id]
    costs = lfd.FunctionCosts(lambda seen, done: np.reshape(true(seen, done), (-1, 1)), 1)
    planned = planned_policy(env, simulator.states_of(seen), costs, np.ones(1), discount, rng)
    found = [returns_of(env_id, policy, change, n_episodes, seed) for policy in (planned, expert)]
    return ReferenceReturns(
        random=returns_of(env_id, UniformPolicy(env.action_space), change, n_episodes, seed),
        expert=max(found, key=np.mean),
    )
