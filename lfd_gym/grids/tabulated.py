"""A simulator that steps one pair after the other, in a few thousand steps: what lies between them is interpolated.

Its steps are taken from the points of a grid over states, with some actions. From any other state x, with weights λ of
the pairs around,

    x' = x + Σ_k λ_k (f(p_k, a_k) − p_k),

and the episode ends if most of the weight lies on pairs that end it. Where steps are smooth in state and action the
error is that of interpolation, of the order of the square of a cell, and nothing is blurred: a `GridModel` of many more
points can be laid over it. Outside of the grid the movement is that at its edge.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lfd_gym.envs.processes import sample_next_in_processes
from lfd_gym.grids.actions import ActionGrid
from lfd_gym.grids.grid import Grid
from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.validation import FloatArray

#: Pairs whose corners are in memory at a time.
_BLOCK = 50_000


class TabulatedSimulator:
    """The steps of a simulator that draws nothing, interpolated; a generative model over the same states.

    Parameters
    ----------
    simulator
        Over a `Box` of states, deterministic.
    grid
        From whose points it is stepped.
    actions
        With which it is.
    rng
        Is handed to the simulator.

    Attributes
    ----------
    n_steps
        Steps of the simulator that were taken.
    error
        How far off steps are, of how far they lead, in the median over some in the middle of cells and in the worst
        entry of the state.
    """

    #: Steps by which the error is seen.
    n_tried: ClassVar[int] = 500

    def __init__(self, simulator: GenerativeModel, grid: Grid, actions: ActionGrid, rng: np.random.Generator) -> None:
        self.simulator, self.grid, self.actions = simulator, grid, actions
        self.state_space, self.action_space = simulator.state_space, simulator.action_space
        self.observation_space = simulator.observation_space
        self.never_ends = bool(getattr(simulator, "never_ends", False))
        points, n_actions = grid.points, len(actions)
        starts = np.repeat(points, n_actions, axis=0)
        held = np.tile(actions.actions, (len(points), *(1,) * (actions.actions.ndim - 1)))
        following = np.asarray(sample_next_in_processes(simulator, starts, held, rng), dtype=np.float64)
        self.n_steps = len(starts)
        self._ended = np.asarray(simulator.is_absorbing(following))
        wrong = ~(np.isfinite(following).all(axis=1) | self._ended)
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(
                f"simulator must lead to finite states, got {following[row]} from {starts[row]} by {held[row]}"
            )
        self._moves = np.where(self._ended[:, None], 0.0, self._apart(following, starts))
        self._shows_states = self._looks_like(points)
        self.states_of = simulator.states_of  # type: ignore[attr-defined]
        self.error = self._tried(rng)

    def _tried(self, rng: np.random.Generator) -> float:
        """Step from some pairs between those that were tabulated, and compare."""
        axes = [(axis[1:] + axis[:-1]) / 2 for axis in self.grid.axes]
        states = np.stack([rng.choice(axis, self.n_tried) for axis in axes], axis=1)
        done = self.actions.actions[rng.integers(len(self.actions), size=self.n_tried)]
        true, told = (np.asarray(each.sample_next(states, done, rng)) for each in (self.simulator, self))
        self.n_steps += self.n_tried
        known = ~(self.simulator.is_absorbing(true) | self.is_absorbing(told))
        if not known.any():
            return 0.0
        moved = np.abs(self._apart(true[known], states[known])).mean(axis=0)
        off = np.median(np.abs(self._apart(told[known], true[known])), axis=0)
        return float((off / np.maximum(moved, np.finfo(float).tiny)).max())

    def _apart(self, after: FloatArray, before: FloatArray) -> FloatArray:
        """Return how far states are from others, the shorter way round."""
        apart, periods = after - before, self.grid.periods
        return np.where(periods > 0, apart - periods * np.round(apart / np.where(periods > 0, periods, 1.0)), apart)

    def _looks_like(self, states: FloatArray) -> bool:
        """Whether observations are the states themselves, so that the simulator need not be asked for them."""
        seen, space = self.simulator.observe(states[:: max(1, len(states) // 100)]), self.observation_space
        some = states[:: max(1, len(states) // 100)]
        return np.shape(seen) == some.shape and np.array_equal(seen, some.astype(space.dtype))

    def sample_initial(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw ``n`` independent initial states."""
        return self.simulator.sample_initial(n, rng)

    def sample_next(self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """Return the next state of each pair."""
        after, done = np.array(states, dtype=np.float64), np.asarray(actions)
        going = np.flatnonzero(~self.is_absorbing(after))
        for first in range(0, len(going), _BLOCK):
            some = going[first : first + _BLOCK]
            after[some] = self._step(after[some], done[some])
        return after

    def _step(self, states: FloatArray, actions: NDArray[Any]) -> FloatArray:
        corners, weights = self.grid.interpolate(states)
        index, parts = self.actions.interpolate(actions)
        pairs = (corners[:, :, None] * len(self.actions) + index[:, None, :]).reshape(len(states), -1)
        shares = (weights[:, :, None] * parts[:, None, :]).reshape(len(states), -1)
        going = np.where(self._ended[pairs], 0.0, shares)
        mass = going.sum(axis=1, keepdims=True)
        moves = np.einsum("nk,nkd->nd", going, self._moves[pairs]) / np.maximum(mass, 0.5)
        return np.where(mass >= 0.5, states + moves, np.nan)

    def observe(self, states: ArrayLike) -> NDArray[Any]:
        """Return what a policy sees of each state."""
        if self._shows_states:
            return np.asarray(states).astype(self.observation_space.dtype)
        return self.simulator.observe(states)

    def is_absorbing(self, states: ArrayLike) -> NDArray[np.bool_]:
        """Say which states stand for the end of an episode."""
        return np.asarray(np.isnan(np.asarray(states, dtype=np.float64)).all(axis=1))

    def __repr__(self) -> str:
        return f"TabulatedSimulator({self.simulator}, {self.grid}, {self.actions})"
