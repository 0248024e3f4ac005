"""Generative models: simulators that answer "what may come next from this state and action?".

A generative model is stateless. It works on batches: states are arrays whose first axis is the batch; for finite
models they are integer vectors.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from lfd_gym._jit import jit
from lfd_gym.mdp import FiniteMDP, canonical_transitions
from lfd_gym.validation import FloatArray, IntArray, distribution


@runtime_checkable
class GenerativeModel(Protocol):
    """What Algorithm 1 needs of a simulator.

    Attributes
    ----------
    state_space, action_space, observation_space
        Gymnasium spaces of single states, actions and observations.
    """

    state_space: gym.Space[Any]
    action_space: gym.Space[Any]
    observation_space: gym.Space[Any]

    def sample_initial(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw ``n`` independent initial states."""
        ...

    def sample_next(self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """Draw one next state for each pair, independently; an absorbing state stays."""
        ...

    def observe(self, states: ArrayLike) -> NDArray[Any]:
        """Return what a policy sees of each state. Finite models are fully observed: it returns the states."""
        ...

    def is_absorbing(self, states: ArrayLike) -> NDArray[np.bool_]:
        """Say which states stand for "the episode has ended". Costs there are zero."""
        ...


class TabularModel:
    """A generative model of a finite MDP, by alias tables: one uniform number and O(1) time a draw.

    Parameters
    ----------
    transitions
        (S·A, S), as for `FiniteMDP`.
    initial_distribution
        (S,).
    absorbing_state
        As for `FiniteMDP`.

    Examples
    --------
    >>> import numpy as np
    >>> from lfd_gym import TabularModel
    >>> model = TabularModel(np.array([[0.0, 1.0], [1.0, 0.0]]), initial_distribution=[1.0, 0.0])
    >>> model.sample_next([0, 1, 0], [0, 0, 0], np.random.default_rng(0))
    array([1, 0, 1])
    """

    def __init__(
        self,
        transitions: sp.csr_array | ArrayLike,
        initial_distribution: ArrayLike,
        absorbing_state: int | None = None,
    ) -> None:
        matrix = canonical_transitions(transitions)
        n_pairs, self.n_states = matrix.shape
        self.n_actions = n_pairs // self.n_states
        self.absorbing_state = absorbing_state
        self.state_space: gym.Space[Any] = gym.spaces.Discrete(self.n_states)
        self.action_space: gym.Space[Any] = gym.spaces.Discrete(self.n_actions)
        self.observation_space: gym.Space[Any] = self.state_space
        initial = distribution("initial_distribution", initial_distribution, self.n_states)
        support = np.flatnonzero(initial)
        #: Alias table of the initial distribution: slot k of row 0 is ``successors[k]`` with probability
        #: ``thresholds[k]`` and ``successors[alias[k]]`` otherwise.
        self.initial_table = AliasTable(np.array([0, support.size]), support.astype(np.int32), initial[support])
        #: Alias table of the transitions, one row per pair.
        self.transition_table = AliasTable(matrix.indptr, matrix.indices, matrix.data)

    @classmethod
    def from_mdp(cls, mdp: FiniteMDP) -> TabularModel:
        """Return the generative model of ``mdp``."""
        return cls(mdp.transitions, mdp.initial_distribution, mdp.absorbing_state)

    def sample_initial(self, n: int, rng: np.random.Generator) -> IntArray:
        """Draw ``n`` independent initial states."""
        return self.initial_table.sample(np.zeros(n, dtype=np.int64), rng)

    def sample_next(self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator) -> IntArray:
        """Draw one next state for each state-action pair."""
        state_array = _indices("states", states, self.n_states)
        action_array = _indices("actions", actions, self.n_actions)
        if state_array.shape != action_array.shape:
            raise ValueError(
                f"states and actions must have the same length, got {state_array.shape} and {action_array.shape}"
            )
        return self.transition_table.sample(state_array * self.n_actions + action_array, rng)

    def observe(self, states: ArrayLike) -> IntArray:
        """Return the states themselves."""
        return _indices("states", states, self.n_states)

    def is_absorbing(self, states: ArrayLike) -> NDArray[np.bool_]:
        """Say which states are the absorbing one."""
        return np.asarray(_indices("states", states, self.n_states) == self.absorbing_state)


def _indices(name: str, values: ArrayLike, size: int) -> IntArray:
    array = np.asarray(values)
    if array.ndim != 1 or not (np.issubdtype(array.dtype, np.integer) or array.size == 0):
        raise ValueError(f"{name} must be a vector of integers, got shape {array.shape} and dtype {array.dtype}")
    if array.size and (array.min() < 0 or array.max() >= size):
        wrong = array[(array < 0) | (array >= size)][0]
        raise ValueError(f"{name} must lie in [0, {size}), got {wrong}")
    return array.astype(np.int64, copy=False)


class AliasTable:
    """Walker's alias method over the rows of a CSR matrix of distributions.

    Attributes
    ----------
    offsets
        (R + 1,) row r owns the slots ``offsets[r]:offsets[r + 1]``.
    outcomes
        The value of each slot.
    thresholds, aliases
        Slot k yields ``outcomes[k]`` with probability ``thresholds[k]``, else ``outcomes[aliases[k]]``.
    """

    def __init__(self, offsets: NDArray[Any], outcomes: NDArray[Any], probabilities: FloatArray) -> None:
        self.offsets = offsets
        self.outcomes = outcomes
        self.thresholds, self.aliases = _build_alias(offsets, probabilities)

    def sample(self, rows: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw one outcome for each of ``rows``."""
        return _sample_alias(self.offsets, self.outcomes, self.thresholds, self.aliases, rows, rng.random(rows.size))


@jit
def _build_alias(offsets: NDArray[Any], probabilities: FloatArray) -> tuple[FloatArray, NDArray[np.int32]]:
    """Vose's construction, row by row; aliases are absolute slots."""
    thresholds = np.ones(probabilities.size)
    aliases = np.arange(probabilities.size).astype(np.int32)
    longest = 0
    for row in range(offsets.size - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    small = np.empty(longest, dtype=np.int64)
    large = np.empty(longest, dtype=np.int64)
    scaled = np.empty(longest)
    for row in range(offsets.size - 1):
        start = offsets[row]
        size = offsets[row + 1] - start
        n_small = 0
        n_large = 0
        for k in range(size):
            scaled[k] = probabilities[start + k] * size
            if scaled[k] < 1.0:
                small[n_small] = k
                n_small += 1
            else:
                large[n_large] = k
                n_large += 1
        while n_small > 0 and n_large > 0:
            n_small -= 1
            low = small[n_small]
            high = large[n_large - 1]
            thresholds[start + low] = scaled[low]
            aliases[start + low] = start + high
            scaled[high] -= 1.0 - scaled[low]
            if scaled[high] < 1.0:
                n_large -= 1
                small[n_small] = high
                n_small += 1
    return thresholds, aliases


@jit
def _sample_alias(
    offsets: NDArray[Any],
    outcomes: NDArray[Any],
    thresholds: FloatArray,
    aliases: NDArray[np.int32],
    rows: IntArray,
    uniforms: FloatArray,
) -> IntArray:
    """Use the integer part of u·size for the slot and the fraction for the threshold."""
    drawn = np.empty(rows.size, dtype=np.int64)
    for n in range(rows.size):
        start = offsets[rows[n]]
        size = offsets[rows[n] + 1] - start
        position = uniforms[n] * size
        slot = min(int(position), size - 1)
        k = start + slot
        if position - slot >= thresholds[k]:
            k = aliases[k]
        drawn[n] = outcomes[k]
    return drawn
