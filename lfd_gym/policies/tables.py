"""Policies of finite spaces: tables, the uniform one, and another policy's best actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.model.mdp import one_hot
from lfd_gym.policies.policy import Actor, Arrays, FinitePolicy, Policy
from lfd_gym.spaces import check_space, space_from_data
from lfd_gym.validation import FloatArray, IntArray, numbers, policy_array

#: What begins the names of the arrays of a policy within another.
_INNER = "inner:"


class TablePolicy(FinitePolicy):
    """π(a|x) from an (S, A) table, for observations that are states or their one-hot vectors.

    Parameters
    ----------
    table
        (S, A), rows are distributions over actions.
    observation_space
        ``Discrete(S)`` if not given; a `Box` of one-hot vectors otherwise.

    Examples
    --------
    >>> policy = TablePolicy(np.array([[1.0, 0.0], [0.25, 0.75]]))
    >>> policy.predict(np.array([0, 1, 1]), deterministic=True)[0]
    array([0, 1, 1])
    """

    kind: ClassVar[str] = "table"

    def __init__(self, table: Any, observation_space: gym.Space[Any] | None = None) -> None:
        array = np.asarray(table, dtype=np.float64)
        if array.ndim != 2 or 0 in array.shape:
            advice = "; of one action for each state, np.eye(n_actions)[actions] makes one" if array.ndim == 1 else ""
            raise ValueError(f"policy must be an (S, A) array, got shape {array.shape}{advice}")
        self.table = policy_array("policy", array, *array.shape)
        self.observation_space = gym.spaces.Discrete(len(array)) if observation_space is None else observation_space
        self.action_space = gym.spaces.Discrete(array.shape[1])

    def probabilities(self, observations: NDArray[Any]) -> FloatArray:
        """Look the states up."""
        return np.asarray(self.table[self._states(numbers("observations", observations))])

    def _states(self, observations: NDArray[Any]) -> IntArray:
        """Return the states that observations stand for, or refuse those that stand for none."""
        if observations.dtype.kind not in "biuf" or observations.ndim not in (1, 2):
            raise ValueError(
                f"observations must be a batch of states, got shape {observations.shape} of {observations.dtype}"
            )
        if observations.ndim == 2:
            # A table may have one state more than is ever shown, the absorbing one.
            if observations.shape[1] not in (len(self.table), len(self.table) - 1):
                raise ValueError(f"observations must be one-hot of {len(self.table)}, got shape {observations.shape}")
            hot = observations == 1
            wrong = (hot.sum(axis=1) != 1) | ((observations != 0).sum(axis=1) != 1)
            if wrong.any():
                raise ValueError(f"observations must be states or their one-hot vectors, got {observations[wrong][0]}")
            return np.asarray(hot.argmax(axis=1))
        states = observations.astype(np.int64)
        wrong = (states != observations) | (states < 0) | (states >= len(self.table))
        if wrong.any():
            raise ValueError(f"observations must be states 0 to {len(self.table) - 1}, got {observations[wrong][0]}")
        return states

    def to_data(self) -> tuple[dict[str, Any], Arrays]:
        """Return the table."""
        return {}, {"table": self.table}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Arrays) -> TablePolicy:
        """Return the policy of a table."""
        return cls(arrays["table"])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.table, dtype=dtype)

    def __repr__(self) -> str:
        return f"TablePolicy(n_states={len(self.table)}, n_actions={self.table.shape[1]})"


class UniformPolicy(Policy):
    """Every action alike, over finitely many actions, several choices at once, or a bounded box of numbers."""

    kind: ClassVar[str] = "uniform"

    def __init__(self, action_space: gym.Space[Any], observation_space: gym.Space[Any] | None = None) -> None:
        check_space("action_space", action_space)
        if isinstance(action_space, gym.spaces.Box) and not action_space.is_bounded():
            raise ValueError(f"there is no uniformly random policy over {action_space}, which is not bounded")
        self.action_space: gym.Space[Any] = action_space
        self.take_observations_of(observation_space)

    @property
    def has_probabilities(self) -> bool:
        """Over the actions of a Discrete space."""
        return isinstance(self.action_space, gym.spaces.Discrete)

    def probabilities(self, observations: NDArray[Any]) -> FloatArray:
        """Return uniform rows."""
        if not isinstance(self.action_space, gym.spaces.Discrete):
            return super().probabilities(observations)
        n_actions = int(self.action_space.n)
        return np.full((len(observations), n_actions), 1 / n_actions)

    def sample(self, observations: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Draw one action for each observation."""
        space = self.action_space
        shape = (len(observations), *(space.shape or ()))
        if isinstance(space, gym.spaces.Discrete):
            return rng.integers(int(space.n), size=shape)
        if isinstance(space, gym.spaces.MultiDiscrete):
            return rng.integers(space.nvec, size=shape)
        if isinstance(space, gym.spaces.MultiBinary):
            return rng.integers(2, size=shape, dtype=np.int8)
        assert isinstance(space, gym.spaces.Box)
        if np.issubdtype(space.dtype, np.integer):
            return rng.integers(space.low, space.high, size=shape, endpoint=True).astype(space.dtype)
        return rng.uniform(space.low, space.high, shape).astype(space.dtype)

    def greedy(self, observations: NDArray[Any]) -> NDArray[Any]:
        """Return the first action, which is as probable as any; over a box there is none to prefer."""
        space = self.action_space
        if isinstance(space, gym.spaces.Box):
            raise ValueError(f"the uniformly random policy over {space} has no best action")
        return np.zeros((len(observations), *(space.shape or ())), dtype=space.dtype)

    def to_data(self) -> tuple[dict[str, Any], Arrays]:
        """Nothing but the space, which every file keeps."""
        return {}, {}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Arrays) -> UniformPolicy:
        """Return the policy over the kept space."""
        return cls(space_from_data("action", data["action_space"], arrays))

    def __repr__(self) -> str:
        return f"UniformPolicy({self.action_space})"


class GreedyPolicy(Policy):
    """Another policy's best actions."""

    kind: ClassVar[str] = "greedy"

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.observation_space, self.action_space = policy.observation_space, policy.action_space
        self.outer_observation_space = policy.outer_observation_space

    @property
    def has_probabilities(self) -> bool:
        """Where the other policy has them: one of them is one."""
        return self.policy.has_probabilities

    def probabilities(self, observations: NDArray[Any]) -> FloatArray:
        """Return rows with a single one."""
        rows = self.policy.probabilities(observations)
        return one_hot(rows.argmax(axis=1), rows.shape[1])

    def sample(self, observations: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Return the best actions: nothing is drawn."""
        return self.policy.greedy(observations)

    def greedy(self, observations: NDArray[Any]) -> NDArray[Any]:
        """Return the best actions."""
        return self.policy.greedy(observations)

    def start(self, n: int, rng: np.random.Generator, *, deterministic: bool = True) -> Actor:
        """Begin the other policy's episodes."""
        return self.policy.start(n, rng, deterministic=True)

    def act(
        self,
        observations: NDArray[Any],
        rng: np.random.Generator,
        *,
        state: Any = None,
        starts: NDArray[np.bool_] | None = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[Any], Any]:
        """Return the best actions; ``rng`` is for what a mixture chooses."""
        return self.policy.act(observations, rng, state=state, starts=starts, deterministic=True)

    def _batch(self, observation: Any) -> tuple[NDArray[Any], bool]:
        same = self.observation_space is self.policy.observation_space  # else it was told otherwise since
        return self.policy._batch(observation) if same else super()._batch(observation)

    def to_data(self) -> tuple[dict[str, Any], Arrays]:
        """Return what a file keeps of the other policy."""
        from lfd_gym.policies.files import policy_to_data  # which knows all kinds, this one too

        data, arrays = policy_to_data(self.policy)
        return {"policy": data}, {f"{_INNER}{name}": array for name, array in arrays.items()}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Arrays) -> GreedyPolicy:
        """Return the best actions of the kept policy."""
        from lfd_gym.policies.files import policy_from_data

        own = {name.removeprefix(_INNER): array for name, array in arrays.items() if name.startswith(_INNER)}
        return cls(policy_from_data(data["policy"], own))

    @contextmanager
    def acting(self, rng: np.random.Generator) -> Iterator[None]:
        """As the other policy."""
        with self.policy.acting(rng):
            yield

    def __repr__(self) -> str:
        return f"GreedyPolicy({self.policy})"
