"""Acting between the points of a grid: by the table of the points around, or by looking ahead with the simulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lfd_gym.grids.actions import ActionGrid
from lfd_gym.grids.grid import Grid
from lfd_gym.grids.grid_model import GridModel
from lfd_gym.grids.readings import StateReading
from lfd_gym.model.mdp import one_hot
from lfd_gym.policies.policy import Arrays, Policy, sample_rows
from lfd_gym.spaces import space_from_data
from lfd_gym.validation import FloatArray, IntArray, policy_array

#: (n, …) observations to (n, d) states.
StatesOf = Callable[[NDArray[Any]], NDArray[Any]]


class _OverActions(Policy):
    """Chooses among finitely many actions by (n, A) probabilities over them."""

    def __init__(self, states_of: StatesOf, actions: ActionGrid, observation_space: gym.Space[Any]) -> None:
        self.states_of, self.actions = states_of, actions
        self.observation_space: gym.Space[Any] | None = observation_space
        self.action_space: gym.Space[Any] | None = actions.space

    def _choices(self, observations: NDArray[Any]) -> FloatArray:
        """Return the (n, A) probabilities of the known actions."""
        raise NotImplementedError

    @property
    def has_probabilities(self) -> bool:
        """Where all actions are known: in a `Discrete` space."""
        return isinstance(self.action_space, gym.spaces.Discrete)

    def probabilities(self, observations: NDArray[Any]) -> FloatArray:
        """Return the (n, A) distributions over actions for n observations."""
        return self._choices(observations) if self.has_probabilities else super().probabilities(observations)

    def sample(self, observations: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Draw one action for each observation."""
        return np.asarray(self.actions.actions[sample_rows(self._choices(observations), rng)])

    def greedy(self, observations: NDArray[Any]) -> NDArray[Any]:
        """Return the most probable action for each observation, the first on ties."""
        return np.asarray(self.actions.actions[self._choices(observations).argmax(axis=1)])


class GridPolicy(_OverActions):
    """The mean of the distributions over actions at the points around a state.

    Parameters
    ----------
    grid
        The points.
    actions
        Those that the table knows.
    table
        (n_points, A), rows are distributions over actions.
    states_of
        Tells states from observations; a `StateReading` if the policy is to be saved.
    observation_space
        Of observations.
    vote
        Whether the most probable action is taken; else one is drawn.
    """

    kind: ClassVar[str] = "grid"

    def __init__(
        self,
        grid: Grid,
        actions: ActionGrid,
        table: ArrayLike,
        states_of: StatesOf,
        observation_space: gym.Space[Any],
        *,
        vote: bool,
    ) -> None:
        super().__init__(states_of, actions, observation_space)
        self.grid = grid
        self.table = policy_array("table", table, grid.n_points, len(actions))
        self.vote = vote

    def _choices(self, observations: NDArray[Any]) -> FloatArray:
        corners, weights = self.grid.interpolate(self.states_of(observations))
        mean = np.einsum("nk,nka->na", weights, self.table[corners])
        return one_hot(mean.argmax(axis=1), mean.shape[1]) if self.vote else mean

    def to_data(self) -> tuple[dict[str, Any], Arrays]:
        """Return the grid, the table and how states are read."""
        if not isinstance(self.states_of, StateReading):
            raise ValueError(
                f"{self} cannot be saved: its states are told by the simulator alone, they are neither entries of the "
                "observation nor angles of such"
            )
        data, arrays = self.grid.to_data()
        n_actions = self.actions.n_along
        return data | {"vote": self.vote, "n_actions": n_actions}, {
            **arrays,
            **self.states_of.to_arrays(),
            "table": self.table,
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Arrays) -> GridPolicy:
        """Return the policy of a table over a grid."""
        observed = space_from_data("observation", data["observation_space"], arrays)
        actions = ActionGrid(space_from_data("action", data["action_space"], arrays), data["n_actions"])
        reading = StateReading.from_arrays(arrays)
        reading.check(int(np.prod(observed.shape or ())))
        grid = Grid.from_data(data, arrays)
        return cls(grid, actions, arrays["table"], reading, observed, vote=bool(data["vote"]))

    def __repr__(self) -> str:
        return f"GridPolicy({self.grid}, {len(self.actions)} actions, {'vote' if self.vote else 'draw'})"


class LookaheadPolicy(_OverActions):
    """The action that is best by a few steps of the simulator and the values of the grid where they lead.

    It needs the simulator to act, and so it cannot be saved.

    Parameters
    ----------
    model
        The grid model, of a simulator that draws nothing.
    pair_costs, values
        (S·A,) the cost on the grid, and (S,) its values.
    states_of
        Tells states from observations.
    """

    def __init__(self, model: GridModel, pair_costs: FloatArray, values: FloatArray, states_of: StatesOf) -> None:
        if not model.deterministic:
            raise ValueError("model must be of a simulator that draws nothing: looking ahead once would not tell")
        super().__init__(states_of, model.actions, model.simulator.observation_space)
        self.model, self.pair_costs, self.values = model, pair_costs, values

    def _best(self, observations: NDArray[Any]) -> IntArray:
        states = np.asarray(self.states_of(observations), dtype=np.float64)
        return np.asarray(self.model.lookahead(states, self.pair_costs, self.values).argmin(axis=1))

    def _choices(self, observations: NDArray[Any]) -> FloatArray:
        return one_hot(self._best(observations), len(self.actions))

    def to_data(self) -> NoReturn:
        """Refuse."""
        raise ValueError(f"{self} cannot be saved: it needs the simulator to look ahead")

    def __repr__(self) -> str:
        return f"LookaheadPolicy({self.model})"
