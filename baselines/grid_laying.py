"""The grid of the learner ``grid``: what is looked at before it is laid, and what is done where steps are dear.

Most simulators step in batches, and their steps cost little beside the rest. One that puts an environment into one
state after the other, as those of MuJoCo do, takes a thousand times as long: a grid of half a million pairs, and the
rollouts of policies that look ahead, would be many minutes. Whether it does is told by what it is, not by a clock,
which would not tell the same twice. If it draws nothing, some thousand of its steps are put into a table that is
interpolated (`TabulatedSimulator`), and all but the last judgements are made with that. Then steps are cheap, and the
grid is laid in rounds:

1. Lay table and grid over what was visited, with actions held for r steps; solve it.
2. Lay both again over what the nearest policy visits too, followed in the simulator itself, with actions held for
   2r steps; then for 3r, and for 4r.

A grid blurs steps that are small beside its cells, and those of an expert who stands still are, whatever random play
does: how long actions have to be held is seen by trying. Tables are wrong by different amounts, and cannot tell which
round did best: the nearest policy of each is judged in the simulator too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from tqdm import tqdm

from lfd_gym.baselines.grid_search import FEW, MANY, MOST_FINALISTS, Candidate, Effort, Search, longest_rollout
from lfd_gym.grids.actions import ActionGrid
from lfd_gym.grids.choice import GridSize, choose_grid, choose_repeat, points_within
from lfd_gym.grids.grid import Grid
from lfd_gym.grids.grid_model import DRAWS_OF_NOISE, GridModel, gives_the_same_twice
from lfd_gym.grids.policies import StatesOf
from lfd_gym.grids.readings import StateReading
from lfd_gym.grids.stepping import steps_pair_by_pair
from lfd_gym.grids.surroundings import followed, surroundings
from lfd_gym.grids.tabulated import TabulatedSimulator
from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.task import Task
from lfd_gym.validation import FloatArray

if TYPE_CHECKING:
    from lfd_gym.baselines.grid import GridApprentice

#: Rounds, the k-th of which holds actions for k times as long as the first.
_N_ROUNDS = 4
#: Steps of a table, and the actions along each dimension of a `Box` in it.
_TABLE_STEPS, _TABLE_ACTIONS = 15_000, 5
#: From how many initial states policies are followed, in the simulator itself, to see where they lead.
_N_FOLLOWED = 10
#: States of a grid over a table, if nothing is said: it is solved once a round.
_TABLE_STATES = 30_000
#: Pairs of a grid where steps are dear and cannot be put into a table, since they are random.
_DEAR_PAIRS = 50_000


@dataclass(frozen=True, eq=False)
class Ground:
    """What a grid is laid over.

    Attributes
    ----------
    simulator
        Whose steps the model takes: those of the task, or a table of them.
    actions
        That the model knows.
    visited
        (n, d) states to lay the grid over.
    deterministic
        Whether the simulator draws nothing.
    reading
        How states are read from observations, None if the simulator alone can tell.
    n_points
        Along each axis, if the grid is not given.
    slow
        Whether the simulator of the task steps pair by pair.
    """

    simulator: GenerativeModel
    actions: ActionGrid
    visited: FloatArray
    deterministic: bool
    reading: StateReading | None
    n_points: int
    slow: bool

    @property
    def in_rounds(self) -> bool:
        """Whether steps are put into a table."""
        return self.slow and self.deterministic

    @property
    def effort(self) -> Effort:
        """What is spent on judging."""
        return FEW if self.slow else MANY

    @property
    def states_of(self) -> StatesOf:
        """Tells states from observations."""
        return self.reading or self.simulator.states_of  # type: ignore[attr-defined]

    def facts(self, model: GridModel) -> dict[str, Any]:
        """Return what is to be told of a table, if there is one."""
        if not isinstance(model.simulator, TabulatedSimulator):
            return {}
        return {"table_steps": model.simulator.n_steps, "table_error": model.simulator.error}


def surveyed(task: Task, states: FloatArray, chosen: GridApprentice, rng: np.random.Generator) -> Ground:
    """Look around demonstrated ``states``, once it is known that a grid fits."""
    simulator, n_costs = task.simulator, task.expert_features().values.size
    actions = ActionGrid(simulator.action_space, chosen.n_actions)
    _check_axes(chosen, states)
    size = GridSize(
        states.shape[1],
        len(actions),
        n_costs,
        chosen.memory,
        interpolation=None if chosen.grid is None else chosen.grid.interpolation,
    )
    _n_points(size, chosen)  # refused before anything is simulated
    visited, _ = surroundings(simulator, states, rng)
    deterministic = all(gives_the_same_twice(simulator, some, actions, rng) for some in (states, visited))
    slow = steps_pair_by_pair(simulator)
    if not deterministic:
        size = replace(size, n_draws=DRAWS_OF_NOISE)
    if slow:
        size = replace(size, n_states=_TABLE_STATES if deterministic else _DEAR_PAIRS // (len(actions) * size.n_draws))
    n_points = _n_points(size, chosen)
    reading = StateReading.found(simulator, visited)
    return Ground(simulator, actions, visited, deterministic, reading, n_points, slow)


def laid(
    ground: Ground, chosen: GridApprentice, discount: float, rng: np.random.Generator, repeat: int | None = None
) -> GridModel:
    """Lay the grid and step from its points; actions are held for ``repeat``, or as long as is chosen."""
    simulator, visited, actions = ground.simulator, ground.visited, ground.actions
    grid = _grid(ground, chosen, ground.n_points)
    repeat = repeat or chosen.repeat or choose_repeat(simulator, grid, visited, actions, rng)
    return GridModel(
        simulator,
        grid,
        discount=discount,
        rng=rng,
        actions=actions,
        repeat=repeat,
        deterministic=ground.deterministic,
    )


def search_in_rounds(
    task: Task, ground: Ground, states: FloatArray, chosen: GridApprentice, budget: int, rng: np.random.Generator
) -> tuple[Search, list[Candidate]]:
    """Return the search of the nearest round, its grid solved, and the candidates of the others.

    What the others cost is counted with the one that is returned.
    """
    seed = int(rng.integers(2**63))  # all rounds are judged from the same states
    n_rounds = _n_rounds(chosen, budget)
    max_calls = max(1, budget * 5 // 6 // n_rounds)
    best: Search | None = None  # of the others no more than the candidates is kept: costs on a grid are large
    found: list[Candidate] = []
    repeat, n_steps, n_calls = chosen.repeat, 0, 0
    bar = tqdm(range(1, n_rounds + 1), unit=" rounds", delay=1, disable=None, leave=False)
    bar.set_description(f"at most {most_steps(task, n_rounds):,} steps of the simulator, one after the other")
    for k in bar:
        table = _table(ground, task.simulator, chosen, rng)
        model = laid(replace(ground, simulator=table), chosen, task.discount, rng, repeat)
        search = Search(
            *(task, model, states, ground.states_of, np.random.default_rng(seed)),
            looks_ahead=not chosen.savable,
            effort=ground.effort,
        )
        search.solve_grid(max_calls)
        found += search.candidates
        n_steps += search.n_steps
        n_calls += search.n_planner_calls
        if best is None or search.nearest.distance < best.nearest.distance:
            best = search
        if k < n_rounds:
            begun = search.starts.others[:_N_FOLLOWED]
            led = followed(task.simulator, search.nearest.policy, begun, longest_rollout(task), rng)
            n_steps += len(led) - len(begun)
            ground = replace(ground, visited=np.concatenate([ground.visited, led]))
            repeat = chosen.repeat or model.repeat // k * (k + 1)
    assert best is not None
    best.n_steps, best.n_planner_calls = n_steps, n_calls
    return best, [each for each in found if each not in best.candidates]


def most_steps(task: Task, n_rounds: int = _N_ROUNDS) -> int:
    """Return how many steps of the simulator are taken at most for tables, and to judge what is learned with them."""
    fresh = 2 * FEW.n_fresh * task.criterion.steps(FEW.tail)
    a_round = _TABLE_STEPS + TabulatedSimulator.n_tried + _N_FOLLOWED * longest_rollout(task)
    return n_rounds * a_round + MOST_FINALISTS * FEW.n_starts * longest_rollout(task) + fresh


def _n_rounds(chosen: GridApprentice, budget: int) -> int:
    """Return one round if nothing changes from one to the next, and else no more than there are planner calls for."""
    return 1 if chosen.grid is not None and chosen.repeat is not None else min(_N_ROUNDS, budget)


def _grid(ground: Ground, chosen: GridApprentice, n_points: int) -> Grid:
    if chosen.grid is not None:
        return chosen.grid
    read = () if ground.reading is None else tuple(np.flatnonzero(ground.reading.cosines >= 0).tolist())
    space = ground.simulator.state_space
    return choose_grid(ground.visited, n_points, angles=read + tuple(chosen.angles), space=space)


def _table(
    ground: Ground, simulator: GenerativeModel, chosen: GridApprentice, rng: np.random.Generator
) -> TabulatedSimulator:
    """Step from the points of a grid of its own, with fewer actions: movement is smoother than values are."""
    space = simulator.action_space
    few = isinstance(space, gym.spaces.Discrete) or ground.actions.n_along <= _TABLE_ACTIONS
    actions = ground.actions if few else ActionGrid(space, _TABLE_ACTIONS)
    n_points = points_within(_TABLE_STEPS // len(actions), ground.visited.shape[1])
    return TabulatedSimulator(simulator, _grid(ground, replace(chosen, grid=None), n_points), actions, rng)


def _n_points(size: GridSize, chosen: GridApprentice) -> int:
    """Return how many points an axis has, once it is known that all of them fit."""
    if chosen.grid is None:
        return size.points_along(chosen.n_points)
    size.check(" x ".join(map(str, chosen.grid.shape)), chosen.grid.n_points)
    return max(chosen.grid.shape)


def _check_axes(chosen: GridApprentice, states: FloatArray) -> None:
    """Refuse a grid and angles that do not fit the states."""
    n_dimensions, grid = states.shape[1], chosen.grid
    unknown = [j for j in chosen.angles if not 0 <= j < n_dimensions]
    if unknown:
        raise ValueError(
            f"angles must be entries of the state, 0 to {n_dimensions - 1}, got {', '.join(map(str, unknown))}"
        )
    if grid is None:
        return
    if grid.n_dimensions != n_dimensions:
        raise ValueError(f"grid must have the {n_dimensions} axes of the states, got {grid}")
    outside = ~grid.inside(states)
    if outside.any():
        raise ValueError(
            f"grid must hold the demonstrated states, but {outside.sum()} of {outside.size} lie outside, such as "
            f"{states[outside][0]}; it spans {grid.bounds[0]} to {grid.bounds[1]}"
        )
