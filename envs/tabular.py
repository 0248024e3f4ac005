"""Gymnasium environments with finitely many states and known transitions.

The pair (x, a) is row ``x * A + a`` of every array over pairs, as in `lfd_gym.FiniteMDP`. Playing action a in state x
costs c_true(x, a), the first cost feature, and gives the reward −c_true(x, a).
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import gymnasium as gym
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from lfd_gym.arguments import checked
from lfd_gym.costs.costs import model_costs
from lfd_gym.model.dynamics import FiniteDynamics
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.validation import FloatArray


class FiniteEnv(gym.Env[Any, Any], ABC):
    """What every environment over finitely many states shares: spaces, ``reset``, ``step`` and ``set_state``.

    A subclass says how states are drawn, and offers its ``dynamics``, which may be built on first use: stepping does
    not need them.

    Parameters
    ----------
    pair_features
        (S, A, n_c) cost features, read-only; a view with repeated entries will do.
    absorbing_state
        The state in which an episode ends, if there is one.
    """

    def __init__(self, pair_features: FloatArray, absorbing_state: int | None = None) -> None:
        self.n_states, self.n_actions, _ = pair_features.shape
        self.pair_features = pair_features
        self.absorbing_state = absorbing_state
        self.observation_space = gym.spaces.Discrete(self.n_states)
        self.action_space = gym.spaces.Discrete(self.n_actions)
        self._state: int | None = None

    @property
    @abstractmethod
    def dynamics(self) -> FiniteDynamics:
        """The transitions and the distribution of the first state."""

    @property
    def transitions(self) -> sp.csr_array:
        """(S·A, S) distributions of the next state."""
        return self.dynamics.transitions

    @property
    def initial_distribution(self) -> FloatArray:
        """(S,) distribution of the first state."""
        return self.dynamics.initial_distribution

    @cached_property
    def cost_features(self) -> FloatArray:
        """(S·A, n_c) cost features in [−1, 1]; column 0 is the true cost."""
        features = self.pair_features.reshape(self.n_states * self.n_actions, -1)
        features.flags.writeable = False
        return features

    @property
    def state(self) -> int:
        """The current state."""
        if self._state is None:
            raise gym.error.ResetNeeded("the environment has no state yet: call reset() or set_state() first")
        return self._state

    def set_state(self, state: int) -> None:
        """Put the environment into ``state``; the next step starts from there."""
        self._state = index_below("state", state, self.n_states)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Start an episode in a state drawn from ``initial_distribution``, or in ``options["state"]``."""
        super().reset(seed=checked_seed(seed))
        start = start_option(options)
        if start is None:
            self._state = self._draw_initial()
        else:
            self.set_state(start)
        self._render_if_human()
        return self.state, self._info()

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Play ``action``; the reward is minus the true cost of the state it is played in."""
        state = self.state
        action = index_below("action", action, self.n_actions)
        reward = 0.0 - float(self.pair_features[state, action, 0])  # a difference, so that no cost gives 0.0, not -0.0
        self._state = self._draw_next(state, action)
        self._render_if_human()
        return self._state, reward, self._state == self.absorbing_state, False, self._info()

    @abstractmethod
    def _draw_initial(self) -> int: ...

    @abstractmethod
    def _draw_next(self, state: int, action: int) -> int: ...

    def _info(self) -> dict[str, Any]:
        return {"cost_features": self.state_features[self.state].copy()}

    @property
    def state_features(self) -> FloatArray:
        """What ``info["cost_features"]`` shows of the current state: the (A, n_c) features of its pairs."""
        return self.pair_features

    def _render_if_human(self) -> None:
        if self.render_mode == "human":
            self.render()


class TabularEnv(FiniteEnv):
    """An environment given by arrays.

    Parameters
    ----------
    transitions
        (S·A, S) sparse or dense, or (S, A, S) dense.
    initial_distribution
        (S,) distribution of the first state.
    cost_features
        (S·A, n_c), entries in [−1, 1]; column 0 is the true cost, and the reward is minus that.
    absorbing_state
        Entering this state ends the episode. Every action must keep it in place, at no cost.

    Examples
    --------
    >>> import numpy as np
    >>> from lfd_gym.envs import TabularEnv
    >>> swap = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])  # two states, one action
    >>> env = TabularEnv(swap, initial_distribution=[1.0, 0.0], cost_features=[[0.5], [-0.5]])
    >>> observation, info = env.reset(seed=0)
    >>> env.step(0)[:2]
    (1, -0.5)
    """

    @checked
    def __init__(
        self,
        transitions: sp.csr_array | ArrayLike,
        initial_distribution: ArrayLike,
        cost_features: ArrayLike,
        absorbing_state: int | None = None,
    ) -> None:
        self._dynamics = FiniteDynamics(transitions, initial_distribution, absorbing_state)  # type: ignore[arg-type]
        n_states, n_actions = self._dynamics.n_states, self._dynamics.n_actions
        features = model_costs("cost_features", cost_features, self._dynamics).table.copy()
        features.flags.writeable = False
        super().__init__(features.reshape(n_states, n_actions, -1), absorbing_state)
        self._initial_cumulative = np.cumsum(self._dynamics.initial_distribution)

    @classmethod
    def from_mdp(cls, mdp: FiniteMDP, cost_features: ArrayLike) -> TabularEnv:
        """Return the environment of ``mdp`` with the given costs."""
        return cls(mdp.transitions, mdp.initial_distribution, cost_features, mdp.absorbing_state)

    @property
    def dynamics(self) -> FiniteDynamics:
        """The transitions and the distribution of the first state."""
        return self._dynamics

    def _draw_initial(self) -> int:
        return invert_cumulative(self._initial_cumulative, self.np_random.random())

    def _draw_next(self, state: int, action: int) -> int:
        pair = state * self.n_actions + action
        first, last = self.transitions.indptr[pair], self.transitions.indptr[pair + 1]
        slot = invert_cumulative(np.cumsum(self.transitions.data[first:last]), self.np_random.random())
        return int(self.transitions.indices[first + slot])


def invert_cumulative(cumulative: FloatArray, uniform: float) -> int:
    """Return the first index whose cumulative probability exceeds ``uniform``, rounding of the total aside."""
    return int(np.searchsorted(cumulative, uniform * cumulative[-1], side="right"))


def start_option(options: dict[str, Any] | None) -> Any:
    """Return ``options["state"]`` or None, and refuse options that would otherwise be ignored in silence."""
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"options must be a mapping or None, got {options!r:.80}")
    unknown = set(options or {}) - {"state"}
    if unknown:
        raise ValueError(f'options may hold "state" only, got {sorted(map(str, unknown))}')
    return (options or {}).get("state")


def checked_seed(seed: Any) -> int | None:
    """Return the seed as Gymnasium takes it, or refuse it by its name."""
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
        raise ValueError(f"seed must be a whole number of at least 0 or None, got {seed!r:.80}")
    return None if seed is None else int(seed)


def index_below(name: str, value: Any, size: int) -> int:
    """Return ``value`` as an integer in [0, size), or say why it is none."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        index = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer in [0, {size}), got {value!r}") from None
    if not 0 <= index < size:
        raise ValueError(f"{name} must lie in [0, {size}), got {index}")
    return index


def integer_at_least(name: str, value: Any, smallest: int) -> int:
    """Return ``value`` as an integer of at least ``smallest``, or say why it is none."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < smallest:
        raise ValueError(f"{name} must be an integer of at least {smallest}, got {value!r}")
    return int(value)
