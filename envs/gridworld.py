"""The stochastic gridworld of the paper's Appendix E.

Cells (i, j) of an n-by-n grid, i counted from the top and j from the left, are the states ``i * n + j``. The actions
are up (0), down (1), left (2) and right (3). The direction executed is the intended one with probability p and each
other one with probability (1 − p)/3; a direction that would leave the grid leaves the agent where it is.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import gymnasium as gym
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from lfd_gym._jit import jit
from lfd_gym.arguments import checked
from lfd_gym.envs.rendering import Window, render_grid, render_text
from lfd_gym.envs.tabular import FiniteEnv, integer_at_least
from lfd_gym.envs.vector import FiniteVectorEnv
from lfd_gym.model.dynamics import FiniteDynamics
from lfd_gym.validation import FloatArray

ACTIONS = ("up", "down", "left", "right")


class StochasticGridworldEnv(FiniteEnv):
    """An n-by-n grid with slippery moves and random costs; registered as ``lfd_gym/StochasticGridworld-v0``.

    Each state cost vector has independent entries: 0 with probability 0.8, −1 and 1 with probability 0.1 each. The
    first vector is the true cost, and ``reward = −c_true(x)`` for the state x in which the action is played. The first
    state is uniform. The process has no end of its own: the registered environment cuts episodes after 200 steps.
    ``info["cost_features"]`` is the (n_c,) vector of costs of the current state.

    Parameters
    ----------
    size
        n, the number of rows and of columns.
    intended_probability
        p, the probability that the intended direction is executed.
    n_costs
        Number of cost vectors. The first ones do not depend on how many there are.
    cost_seed
        Seed of the cost vectors: the same seed and size give the same costs, whatever ``reset`` is seeded with.
    render_mode
        ``"rgb_array"``, ``"ansi"``, ``"human"`` (a window; needs pygame) or None.

    Examples
    --------
    >>> import gymnasium as gym
    >>> import lfd_gym
    >>> env = gym.make("lfd_gym/StochasticGridworld-v0", size=16, cost_seed=0)
    >>> env.unwrapped.cost_features.shape
    (1024, 5)
    >>> observation, info = env.reset(seed=1, options={"state": 17})
    >>> observation, info["cost_features"].shape
    (17, (5,))
    """

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array", "ansi"], "render_fps": 8}  # noqa: RUF012

    @checked
    def __init__(
        self,
        *,
        size: int = 16,
        intended_probability: float = 0.7,
        n_costs: int = 5,
        cost_seed: int = 0,
        render_mode: str | None = None,
    ) -> None:
        self.size = integer_at_least("size", size, 1)
        self.intended_probability = _probability("intended_probability", intended_probability)
        self.n_costs = integer_at_least("n_costs", n_costs, 1)
        self.cost_seed = integer_at_least("cost_seed", cost_seed, 0)
        #: (S, n_c) costs of the states.
        self.state_costs = random_state_costs(self.size**2, self.n_costs, np.random.default_rng(self.cost_seed))
        pairs = (self.size**2, len(ACTIONS), self.n_costs)
        super().__init__(np.broadcast_to(self.state_costs[:, None, :], pairs))
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode must be one of {self.metadata['render_modes']} or None, got {render_mode!r}")
        self.render_mode = render_mode
        self._overlay: dict[str, Any] = {}
        self._window: Window | None = None

    @cached_property
    def dynamics(self) -> FiniteDynamics:
        """The transitions; the first state is uniform."""
        transitions = gridworld_transitions(self.size, self.intended_probability)
        return FiniteDynamics(transitions, np.full(self.n_states, 1 / self.n_states))

    @property
    def state_positions(self) -> FloatArray:
        """(S, 2) row and column of each state."""
        return np.stack(np.divmod(np.arange(self.n_states), self.size), axis=1).astype(np.float64)

    @property
    def state_features(self) -> FloatArray:
        """(S, n_c) costs of the states, the same for every action."""
        return self.state_costs

    def set_overlay(self, policy: ArrayLike | None = None, occupancy: ArrayLike | None = None) -> None:
        """Have ``render`` show a policy's arrows, an occupancy's heat, both, or (without arguments) neither."""
        self._overlay = {"policy": policy, "occupancy": occupancy}

    def render(self) -> Any:
        """Return the picture (``rgb_array``) or the text (``ansi``), or show a window (``human``)."""
        if self.render_mode is None:
            gym.logger.warn("render() does nothing without a render_mode, e.g. gym.make(..., render_mode='rgb_array')")
            return None
        paint = render_text if self.render_mode == "ansi" else render_grid
        frame: Any = paint(self.state_costs[:, 0], self.size, self._state, **self._overlay)
        if self.render_mode != "human":
            return frame
        if self._window is None:
            self._window = Window("lfd_gym/StochasticGridworld-v0")
        self._window.show(frame, self.metadata["render_fps"])
        return None

    def close(self) -> None:
        """Close the window of the ``human`` mode."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def _draw_initial(self) -> int:
        return int(self.np_random.integers(self.n_states))

    def _draw_next(self, state: int, action: int) -> int:
        direction = action
        excess = self.np_random.random() - self.intended_probability
        if excess >= 0:  # slipped: one of the other three directions, equally likely
            slip = min(int(3 * excess / (1 - self.intended_probability)), 2)
            direction = slip + (slip >= action)
        row, column = divmod(state, self.size)
        if direction == 0:
            return state - self.size if row > 0 else state
        if direction == 1:
            return state + self.size if row < self.size - 1 else state
        if direction == 2:
            return state - 1 if column > 0 else state
        return state + 1 if column < self.size - 1 else state


def stochastic_gridworlds(
    num_envs: int = 1, max_episode_steps: int | None = None, **parameters: Any
) -> FiniteVectorEnv:
    """Make copies of one `StochasticGridworldEnv` with the given parameters, stepped together."""
    return FiniteVectorEnv(StochasticGridworldEnv(**parameters), num_envs, max_episode_steps)


def random_state_costs(n_states: int, n_costs: int, rng: np.random.Generator) -> FloatArray:
    """Draw (S, n_c) state costs: 0, −1 and 1 with probabilities 0.8, 0.1 and 0.1."""
    uniforms = rng.random((n_costs, n_states))  # one cost after the other: adding one leaves the others as they were
    costs = np.ascontiguousarray(((uniforms >= 0.9).astype(np.float64) - (uniforms < 0.1)).T)
    costs.flags.writeable = False
    return costs


@checked
def gridworld_transitions(size: int, intended_probability: float = 0.7) -> sp.csr_array:
    """Return the (S·A, S) transitions of the n-by-n gridworld, without making an environment.

    Examples
    --------
    >>> from lfd_gym.envs import gridworld_transitions
    >>> gridworld_transitions(2, 0.7).toarray()[0]  # up from the top left corner: up and left stay there
    array([0.8, 0.1, 0.1, 0. ])
    """
    n = integer_at_least("size", size, 1)
    intended = _probability("intended_probability", intended_probability)
    executed = np.full((4, 4), (1 - intended) / 3)  # (intended action, executed direction)
    np.fill_diagonal(executed, intended)
    n_pairs = 4 * n * n
    index = np.int32 if 4 * n_pairs <= np.iinfo(np.int32).max else np.int64
    offsets = np.zeros(n_pairs + 1, dtype=index)
    successors = np.empty(4 * n_pairs, dtype=index)  # a pair has at most four successors
    probabilities = np.empty(4 * n_pairs)
    _fill_transitions(n, executed, offsets, successors, probabilities)
    n_entries = offsets[-1]
    return sp.csr_array((probabilities[:n_entries], successors[:n_entries], offsets), shape=(n_pairs, n * n))


@jit
def _fill_transitions(
    n: int, executed: FloatArray, offsets: NDArray[Any], successors: NDArray[Any], probabilities: FloatArray
) -> None:
    """Write the arrays of a CSR matrix, the successors of each pair in increasing order."""
    up, down, left, right, stay = 0, 1, 2, 3, 4
    steps = np.array([-n, n, -1, 1, 0])
    entry = 0
    for state in range(n * n):
        row, column = divmod(state, n)
        inside = (row > 0, row < n - 1, column > 0, column < n - 1)
        for action in range(4):
            blocked = 0.0
            for direction in range(4):
                if not inside[direction]:
                    blocked += executed[action, direction]
            for direction in (up, left, stay, right, down):
                if direction == stay:
                    probability = blocked
                else:
                    probability = executed[action, direction] if inside[direction] else 0.0
                if probability > 0:
                    successors[entry] = state + steps[direction]
                    probabilities[entry] = probability
                    entry += 1
            offsets[state * 4 + action + 1] = entry


def _probability(name: str, value: Any) -> float:
    if not isinstance(value, int | float | np.number) or not 0 <= value <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {value!r}")
    return float(value)
