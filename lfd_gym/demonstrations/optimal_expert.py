"""Experts by planning: exactly on a table, on a grid over a simulator, for the environment's own reward.

On a grid there are no demonstrations to say where it should lie. So it is found in rounds:

1. Lay it over what random play visits, plan, and let the plan play in the simulator.
2. Lay it again over what was visited and around, as wide as all that was visited before.

until what is visited lies inside and nothing is gained. In each round the plan is brought back to the continuous space
in two ways: the most probable action of the points around (*vote*), and the best by some steps of the simulator and the
values behind them (*lookahead*); with actions held on the grid for k steps, and for 2k. All are judged by the rewards
of rollouts from the same initial states. Of all rounds the best is taken; a vote, which can be saved and needs no
simulator to act, also if it is almost as good.

Where steps are not compiled, they take all the time: the grid is then coarser, k is as it was chosen, and no policy
looks ahead, which would take a step for each action at every step.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from tqdm import tqdm

from lfd_gym.arguments import checked
from lfd_gym.demonstrations.environments import time_limit
from lfd_gym.envs.adapters import as_generative_model
from lfd_gym.envs.classic_control import ClassicControlModel
from lfd_gym.envs.env_costs import reward_cost
from lfd_gym.grids.actions import ActionGrid
from lfd_gym.grids.choice import GridSize, choose_grid, choose_repeat, grid_problem
from lfd_gym.grids.exploration import explored
from lfd_gym.grids.grid import Grid
from lfd_gym.grids.grid_model import GridModel
from lfd_gym.grids.policies import GridPolicy, LookaheadPolicy, StatesOf
from lfd_gym.grids.readings import StateReading
from lfd_gym.grids.surroundings import surroundings
from lfd_gym.model.criterion import Criterion
from lfd_gym.model.dynamics import FiniteDynamics
from lfd_gym.model.generative_model import GenerativeModel, check_generator
from lfd_gym.model.mdp import FiniteMDP, one_hot
from lfd_gym.policies.policy import Policy
from lfd_gym.policies.tables import TablePolicy, UniformPolicy
from lfd_gym.validation import FloatArray, LfdGymWarning, discount_factor

#: If the number of points is not given: so many along an axis at most, and so many in all, where steps are compiled and
#: where they are not.
_MOST_ALONG, _MOST_STATES, _MOST_SLOW_STATES = 151, 200_000, 10_000
_MOST_ROUNDS, _LONGEST_REPEAT = 6, 8
#: How far from optimal the plan on the grid may be, of the range of its cost: less than what the grid is wrong by.
_PLAN_TOLERANCE = 1e-6
#: Rollouts by which policies are judged, where steps are compiled and where they are not.
_N_STARTS, _N_SLOW_STARTS = 200, 50
#: How much of the discounted weight rollouts leave out where there is no time limit.
_TAIL = 1e-3
#: Almost as good, of what the best policy is better than random play: a vote is then taken, another round is not.
_ALMOST = 0.005
#: Of the states that a policy visits: more outside of the grid calls for another round, or at last for a warning.
_MANY_OUTSIDE = 0.001


@checked
def optimal_policy(
    env: gym.Env[Any, Any],
    discount: float,
    *,
    rng: np.random.Generator,
    grid: Grid | None = None,
    n_points: int | None = None,
    n_actions: int | None = None,
    repeat: int | None = None,
    angles: Sequence[int] = (),
    memory: float = 2e9,
) -> Policy:
    """Return a policy that plans for the environment's own reward: an expert without training.

    In a tabular environment it is optimal. In one with a simulator of few dimensions, such as classic control, it is
    optimal on a grid, and as good as that in the simulator; what is not given is chosen. Nothing but the rewards tells
    what is wanted, so this is for making demonstrations: learners are not given rewards.

    Parameters
    ----------
    env
        Tabular, see `FiniteMDP.from_env`, or with a simulator, see `as_generative_model`, that shows its states and
        tells its rewards.
    discount
        γ of the plan. With a small one a reward far away is not worth its way; near 1 planning takes longer.
    rng
        Drives everything. A table needs none.
    grid
        The grid over states; if not given it is laid over what good policies visit.
    n_points
        Along each axis, if the grid is chosen.
    n_actions
        Along each dimension of a `Box` of actions.
    repeat
        For how many steps an action is held on the grid; the policy chooses anew at every step.
    angles
        Which entries of states are angles in radians, besides those that observations show as sine and cosine.
    memory
        How many bytes the grid model may take.

    Returns
    -------
    Policy
        A table, or a policy of the grid. One that looks ahead with the simulator cannot be saved; it is returned only
        where it is clearly better than one that can.

    Raises
    ------
    TypeError
        If the environment has neither a table nor a simulator.
    ValueError
        If no grid can be laid over its states, or if its rewards are not known.

    Examples
    --------
    >>> import gymnasium as gym, numpy as np, lfd_gym as lfd
    >>> env, rng = gym.make("MountainCar-v0"), np.random.default_rng(0)
    >>> expert = lfd.optimal_policy(env, discount=0.99, rng=rng, n_points=41)
    >>> expert
    GridPolicy(Grid(41 x 41 points, multilinear), 3 actions, vote)
    >>> demos = lfd.collect(env, expert, 10, rng=rng)
    >>> bool(demos.terminated.all())  # the car is out of the valley each time
    True
    """
    discount_factor("discount", discount)
    check_generator("rng", rng)
    settings = {"grid": grid, "n_points": n_points, "n_actions": n_actions, "repeat": repeat, "angles": angles or None}
    given = [name for name, value in settings.items() if value is not None]
    if isinstance(env, gym.Env) and FiniteDynamics.known_of(env):
        if given:
            raise ValueError(f"{', '.join(given)} must not be given for {env}: it has a table, and needs no grid")
        return _of_table(env, discount)
    for name, value, least in (("n_points", n_points, 2), ("repeat", repeat, 1)):
        if value is not None and value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    simulator = as_generative_model(env)
    _check(simulator, chosen=grid is None and n_points is None)
    search = _Search(env, simulator, discount, ActionGrid(simulator.action_space, n_actions), rng)
    search.run(grid, n_points, repeat, tuple(angles), memory)
    return search.best()


def _of_table(env: gym.Env[Any, Any], discount: float) -> Policy:
    table = FiniteMDP.from_env(env, discount).optimal_policy(reward_cost(env))
    one_hot_vectors = isinstance(env.observation_space, gym.spaces.Box)
    return TablePolicy(table, env.observation_space if one_hot_vectors else None)


def _check(simulator: GenerativeModel, chosen: bool) -> None:
    """Refuse a simulator that cannot be planned in."""
    refused = grid_problem(simulator) if chosen else ""
    if refused:
        raise ValueError(f"env cannot be planned on a grid: {refused}")
    if not hasattr(simulator, "states_of"):
        raise ValueError(
            "env cannot be planned on a grid: its observations do not tell the states of the simulator, which has no "
            "`states_of`"
        )
    if not hasattr(simulator, "sample_rewarded"):
        raise ValueError(
            f"env must tell its rewards to be planned for, and {simulator} does not: add "
            "sample_rewarded(states, actions, rng), which returns next states and rewards"
        )


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A way to act, what it gets, and where it goes."""

    policy: Policy
    mean_return: float
    visited: FloatArray
    repeat: int


class _Search:
    """Plans on grids, and judges the policies by rollouts of the simulator from the same initial states."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        simulator: GenerativeModel,
        discount: float,
        actions: ActionGrid,
        rng: np.random.Generator,
    ) -> None:
        self._simulator, self._discount, self._actions, self._rng = simulator, discount, actions, rng
        self._compiled = isinstance(simulator, ClassicControlModel)
        limit = time_limit(env)
        #: With a time limit it is the return of whole episodes that counts, else the discounted one.
        self._weights = np.ones(limit) if limit else discount ** np.arange(Criterion(discount).steps(_TAIL))
        self._starts = np.asarray(
            simulator.sample_initial(_N_STARTS if self._compiled else _N_SLOW_STARTS, rng), dtype=np.float64
        )
        self._seed = int(rng.integers(2**63))
        self._random_return = self._judge(UniformPolicy(simulator.action_space))[0]
        self._candidates: list[_Candidate] = []

    def run(
        self, grid: Grid | None, n_points: int | None, repeat: int | None, angles: tuple[int, ...], memory: float
    ) -> None:
        """Lay grids, plan and judge, for as long as something is gained."""
        visited = explored(self._simulator, self._rng)
        reading = StateReading.found(self._simulator, visited)
        read = () if reading is None else tuple(np.flatnonzero(reading.cosines >= 0).tolist())
        states_of: StatesOf = reading or self._simulator.states_of  # type: ignore[attr-defined]
        n_points = self._n_points(visited.shape[1], n_points, memory)
        held, outside = repeat, 0.0
        for _ in tqdm(range(_MOST_ROUNDS), unit=" rounds", delay=1, disable=None, leave=False, desc="planning"):
            laid = grid or choose_grid(visited, n_points, angles=read + angles, space=self._simulator.state_space)
            if held is None:
                held = choose_repeat(self._simulator, laid, visited, self._actions, self._rng)
            before = self._best_return()
            repeats = {held, min(2 * held, _LONGEST_REPEAT)} if repeat is None and self._compiled else {held}
            found = [candidate for k in sorted(repeats) for candidate in self._planned(laid, k, states_of)]
            self._candidates += found
            best = max(found, key=lambda candidate: candidate.mean_return)
            held = best.repeat
            outside = 1 - laid.inside(best.visited).mean()
            gained = self._best_return() - before
            if grid or (outside <= _MANY_OUTSIDE and gained <= self._almost()):
                break
            # How wide the grid is does not shrink: a policy that stays away from an edge has learned of it there.
            widest = visited[np.concatenate([visited.argmin(axis=0), visited.argmax(axis=0)])]
            visited = np.concatenate([surroundings(self._simulator, best.visited, self._rng)[0], widest])
        if outside > _MANY_OUTSIDE:
            warnings.warn(
                f"{outside:.1%} of the states that the policy visits lie outside of the grid, where its edge stands "
                "for them: give a wider grid, or more n_points",
                LfdGymWarning,
                stacklevel=3,
            )

    def best(self) -> Policy:
        """Return the best policy, or the best vote if that is almost as good."""
        good = [each for each in self._candidates if each.mean_return >= self._best_return() - self._almost()]
        votes = [each for each in good if isinstance(each.policy, GridPolicy)]
        return max(votes or good, key=lambda candidate: candidate.mean_return).policy

    def _best_return(self) -> float:
        return max((candidate.mean_return for candidate in self._candidates), default=-np.inf)

    def _almost(self) -> float:
        return _ALMOST * max(self._best_return() - self._random_return, 0.0)

    def _n_points(self, n_dimensions: int, n_points: int | None, memory: float) -> int:
        size = GridSize(n_dimensions, len(self._actions), 1, memory)
        if n_points is None:
            most = _MOST_STATES if self._compiled else _MOST_SLOW_STATES
            fine = min(_MOST_ALONG, int(most ** (1 / n_dimensions)))
            try:
                return size.points_along(fine)
            except ValueError:  # too many for the memory: as many as fit
                pass
        return size.points_along(n_points)

    def _planned(self, grid: Grid, repeat: int, states_of: StatesOf) -> Iterator[_Candidate]:
        """Plan on one grid, and yield the ways to act by the plan."""
        simulator, actions = self._simulator, self._actions
        model = GridModel(
            simulator, grid, discount=self._discount, rng=self._rng, actions=actions, repeat=repeat, rewarded=True
        )
        cost = model.reward_cost
        assert cost is not None
        plan = model.mdp(self._starts).plan(cost, _PLAN_TOLERANCE * max(float(np.ptp(cost)), 1e-9))
        table = one_hot(plan.actions, len(actions))[: grid.n_points]
        seen = simulator.observation_space
        policies: list[Policy] = [GridPolicy(grid, actions, table, states_of, seen, vote=True)]
        if model.deterministic and self._compiled:
            policies.append(LookaheadPolicy(model, cost, plan.values, states_of))
        for policy in policies:
            yield _Candidate(policy, *self._judge(policy), repeat)

    def _judge(self, policy: Policy) -> tuple[float, FloatArray]:
        """Return the mean return of rollouts from the starts, the same random numbers for all, and where they went."""
        rng, simulator = np.random.default_rng(self._seed), self._simulator
        states, total = self._starts, 0.0
        visited = [states]
        for weight in self._weights:
            done = policy.sample(simulator.observe(states), rng)
            states, rewards = simulator.sample_rewarded(states, done, rng)  # type: ignore[attr-defined]
            total += weight * float(rewards.sum())
            states = states[~simulator.is_absorbing(states)]
            visited.append(states)
            if not len(states):
                break
        return total / len(self._starts), np.concatenate(visited)
