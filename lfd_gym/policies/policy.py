"""What acts: one protocol for tables, tiles, networks, functions, and what others made.

Inside the package a policy is a `Policy`: it draws actions for batches of observations with the caller's generator
(``sample``), takes the best ones (``greedy``) and, over finitely many actions, says their ``probabilities``. Outside it
is what Stable-Baselines3 takes, an object with ``predict``. Wherever a policy is asked for, `as_policy` accepts also

- an (S, A) array whose rows are distributions over actions;
- an object with ``probabilities(observations) -> (n, A)``;
- a policy or algorithm of Stable-Baselines3, or any object with its ``predict``. It is recognised by its methods:
  this module does not import torch;
- a function from a batch of observations to a batch of actions.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.model.dynamics import FiniteDynamics
from lfd_gym.model.mdp import FiniteMDP, one_hot
from lfd_gym.spaces import space_from_data
from lfd_gym.validation import FloatArray, IntArray, policy_array

Arrays: TypeAlias = dict[str, NDArray[Any]]


class Policy(ABC):
    """A way to act.

    Attributes
    ----------
    observation_space, action_space
        Of single observations and actions; None if the policy does not know them.
    rng
        What ``predict`` draws with. Everything else draws with the generator it is given.
    """

    #: The name under which files keep policies of this kind; empty for kinds that cannot be kept.
    kind: ClassVar[str] = ""

    observation_space: gym.Space[Any] | None = None
    action_space: gym.Space[Any] | None = None
    _rng: np.random.Generator | None = None

    @abstractmethod
    def sample(self, observations: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Draw one action for each observation."""

    @abstractmethod
    def greedy(self, observations: NDArray[Any]) -> NDArray[Any]:
        """Return the best, or most probable, action for each observation."""

    @property
    def has_probabilities(self) -> bool:
        """Whether ``probabilities`` can be asked for."""
        return False

    def probabilities(self, observations: NDArray[Any]) -> FloatArray:
        """Return the (n, A) distributions over actions for n observations."""
        raise TypeError(f"{self} does not say the probabilities of its actions")

    @contextmanager
    def acting(self, rng: np.random.Generator) -> Iterator[None]:
        """Surround a rollout; whatever the policy draws within is determined by ``rng``."""
        yield

    @property
    def rng(self) -> np.random.Generator:
        """What ``predict`` draws with."""
        if self._rng is None:
            self._rng = np.random.default_rng(0)
        return self._rng

    @rng.setter
    def rng(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        """Act as Stable-Baselines3's policies do, on one observation or a batch of them."""
        array = np.asarray(observation)
        shape = (self.observation_space.shape or ()) if self.observation_space is not None else array.shape[1:]
        fits = array.ndim - len(shape) in (0, 1) and array.shape[array.ndim - len(shape) :] == shape
        if isinstance(self.observation_space, gym.spaces.Discrete):
            fits &= np.issubdtype(array.dtype, np.integer)
        if not fits:
            raise ValueError(
                f"observation must be of {self.observation_space}, or a batch of them, "
                f"got shape {array.shape} and dtype {array.dtype}"
            )
        batch = array.reshape(-1, *shape)
        actions = self.greedy(batch) if deterministic else self.sample(batch, self.rng)
        return (actions if array.ndim > len(shape) else actions[0]), state

    def to_data(self) -> tuple[dict[str, Any], Arrays]:
        """Return what a file keeps of the policy: JSON values and arrays."""
        raise ValueError(f"{self} cannot be saved: a file keeps tables, tiles and actor-critic networks")

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Arrays) -> Policy:
        """Return the policy that `to_data` described."""
        raise ValueError(f"policies of kind {cls.kind!r} cannot be read")


class FinitePolicy(Policy):
    """A policy over finitely many actions that says their probabilities."""

    @property
    def has_probabilities(self) -> bool:
        """True for every policy of this kind."""
        return True

    @abstractmethod
    def probabilities(self, observations: NDArray[Any]) -> FloatArray:
        """Return the (n, A) distributions over actions for n observations."""

    def sample(self, observations: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Draw one action for each observation."""
        return sample_rows(self.probabilities(observations), rng)

    def greedy(self, observations: NDArray[Any]) -> NDArray[Any]:
        """Return the most probable action for each observation, the first on ties."""
        return np.asarray(self.probabilities(observations).argmax(axis=1))


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
        if array.ndim != 2:
            raise ValueError(f"policy must be an (S, A) array, got shape {array.shape}")
        self.table = policy_array("policy", array, *array.shape)
        self.observation_space = gym.spaces.Discrete(len(array)) if observation_space is None else observation_space
        self.action_space = gym.spaces.Discrete(array.shape[1])

    def probabilities(self, observations: NDArray[Any]) -> FloatArray:
        """Look the states up."""
        return np.asarray(self.table[self._states(np.asarray(observations))])

    def _states(self, observations: NDArray[Any]) -> IntArray:
        """Return the states that observations stand for, or refuse those that stand for none."""
        if observations.ndim == 2:
            hot = observations == 1
            wrong = (hot.sum(axis=1) != 1) | ((observations != 0).sum(axis=1) != 1)
            if wrong.any():
                raise ValueError(f"observation {observations[wrong][0]} is not the one-hot vector of a state")
            return np.asarray(hot.argmax(axis=1))
        states = observations.astype(np.int64)
        wrong = (states != observations) | (states < 0) | (states >= len(self.table))
        if wrong.any():
            raise ValueError(
                f"observation {observations[wrong][0]} is not one of the states 0 to {len(self.table) - 1}"
            )
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
    """Every action alike, over finitely many actions or a bounded box of them."""

    kind: ClassVar[str] = "uniform"

    def __init__(self, action_space: gym.Space[Any], observation_space: gym.Space[Any] | None = None) -> None:
        bounded = isinstance(action_space, gym.spaces.Box) and action_space.is_bounded()
        if not (isinstance(action_space, gym.spaces.Discrete) or bounded):
            raise ValueError(f"there is no uniformly random policy over {action_space}")
        self.action_space, self.observation_space = action_space, observation_space

    @property
    def has_probabilities(self) -> bool:
        """Over finitely many actions."""
        return isinstance(self.action_space, gym.spaces.Discrete)

    def probabilities(self, observations: NDArray[Any]) -> FloatArray:
        """Return uniform rows."""
        if not isinstance(self.action_space, gym.spaces.Discrete):
            return super().probabilities(observations)
        n_actions = int(self.action_space.n)
        return np.full((len(observations), n_actions), 1 / n_actions)

    def sample(self, observations: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Draw one action for each observation."""
        n, space = len(observations), self.action_space
        if isinstance(space, gym.spaces.Discrete):
            return np.asarray(rng.integers(int(space.n), size=n) + space.start)
        assert isinstance(space, gym.spaces.Box)
        return np.asarray(rng.uniform(space.low, space.high, (n, *space.shape)))

    def greedy(self, observations: NDArray[Any]) -> NDArray[Any]:
        """No action is better than another."""
        raise ValueError("the uniformly random policy has no best action")

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

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.observation_space, self.action_space = policy.observation_space, policy.action_space

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

    @contextmanager
    def acting(self, rng: np.random.Generator) -> Iterator[None]:
        """As the other policy."""
        with self.policy.acting(rng):
            yield

    def __repr__(self) -> str:
        return f"GreedyPolicy({self.policy})"


class PredictorPolicy(Policy):
    """Anything with Stable-Baselines3's ``predict`` that does not remember; its probabilities are not known."""

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor
        self.observation_space = getattr(predictor, "observation_space", None)
        self.action_space = getattr(predictor, "action_space", None)

    def sample(self, observations: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Ask; a network draws with torch's global stream, which `acting` determines."""
        return self._ask(observations, False)

    def greedy(self, observations: NDArray[Any]) -> NDArray[Any]:
        """Ask for the deterministic actions."""
        return self._ask(observations, True)

    def _ask(self, observations: NDArray[Any], deterministic: bool) -> NDArray[Any]:
        actions, hidden = self.predictor.predict(observations, deterministic=deterministic)
        if hidden is not None:
            raise ValueError(f"{type(self.predictor).__name__} is recurrent: it must remember, which is not supported")
        return np.asarray(actions)

    @contextmanager
    def acting(self, rng: np.random.Generator) -> Iterator[None]:
        """Have a ``predict`` that draws with torch's global stream draw from one seeded by ``rng`` instead."""
        seed = int(rng.integers(2**63))
        torch: Any = sys.modules.get("torch")
        if torch is None:
            yield
            return
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        """Forward to the predictor."""
        return self.predictor.predict(observation, state, episode_start, deterministic)

    def __repr__(self) -> str:
        return f"PredictorPolicy({type(self.predictor).__name__})"


class FunctionPolicy(Policy):
    """A function from a batch of observations to a batch of actions."""

    def __init__(self, function: Callable[[NDArray[Any]], Any]) -> None:
        self.function = function

    def sample(self, observations: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Call the function; it draws, if it does, with a generator of its own."""
        return np.asarray(self.function(observations))

    def greedy(self, observations: NDArray[Any]) -> NDArray[Any]:
        """Refuse: a function decides for itself."""
        raise ValueError("deterministic=True is for policies that draw; a function decides for itself")

    def __repr__(self) -> str:
        return f"FunctionPolicy({getattr(self.function, '__name__', type(self.function).__name__)})"


class _StatedPolicy(FinitePolicy):
    """An object that says its probabilities."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.observation_space = getattr(source, "observation_space", None)
        self.action_space = getattr(source, "action_space", None)

    def probabilities(self, observations: NDArray[Any]) -> FloatArray:
        rows = np.asarray(self.source.probabilities(observations), dtype=np.float64)
        return policy_array("probabilities of the policy", rows, len(observations), rows.shape[-1])

    def __repr__(self) -> str:
        return f"policy({self.source})"


@runtime_checkable
class Predictor(Protocol):
    """Stable-Baselines3's convention for policies and algorithms."""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        """Return actions for a batch of observations, and the next hidden state."""
        ...


@runtime_checkable
class Stated(Protocol):
    """A policy over finitely many actions that says their probabilities."""

    def probabilities(self, observations: Any) -> Any:
        """Return the (n, A) distributions over actions for n observations."""
        ...


#: Whatever `as_policy` accepts.
PolicyLike: TypeAlias = Policy | FloatArray | Stated | Predictor | Callable[[NDArray[Any]], Any]


def as_policy(policy: PolicyLike, *, deterministic: bool = False) -> Policy:
    """Return ``policy`` as a `Policy`, see the module; if ``deterministic``, one that takes its best actions."""
    found = _wrapped(policy)
    return GreedyPolicy(found) if deterministic and not isinstance(found, GreedyPolicy) else found


def _wrapped(policy: Any) -> Policy:
    if isinstance(policy, Policy):
        return policy
    if isinstance(getattr(policy, "inner", None), Policy):  # ours in the shape of Stable-Baselines3
        return policy.inner  # type: ignore[no-any-return]
    if isinstance(policy, np.ndarray):
        return TablePolicy(policy)
    if isinstance(policy, Stated):
        return _StatedPolicy(policy)
    if isinstance(policy, Predictor):
        network: Any = policy if hasattr(policy, "get_distribution") else getattr(policy, "policy", policy)
        if hasattr(network, "get_distribution"):
            from lfd_gym.policies.networks import network_policy

            return network_policy(network)
        return PredictorPolicy(policy)
    if callable(policy):
        return FunctionPolicy(policy)
    raise TypeError(
        "policy must be an (S, A) array, have `probabilities` or `predict`, or be a function of observations; "
        f"got {type(policy).__name__}"
    )


def policy_table(
    policy: PolicyLike, dynamics: FiniteDynamics | FiniteMDP, *, deterministic: bool = False
) -> FloatArray:
    """Return ``policy`` as an (S, A) array, by asking it once for every state.

    A policy for the environment knows nothing of the absorbing state that `FiniteDynamics.from_env` appends; no action
    matters there, and its row is uniform.

    Parameters
    ----------
    policy
        See the module. A table may leave out the last row if that is the absorbing state.
    dynamics
        Its states are the observations, as integers or, for a policy over a `Box`, as one-hot vectors.
    deterministic
        Whether to take the most probable action instead of drawing one.
    """
    n_states, n_actions = dynamics.n_states, dynamics.n_actions
    visible = n_states - (dynamics.absorbing_state == n_states - 1)
    found = as_policy(policy, deterministic=deterministic)
    base = found.policy if isinstance(found, GreedyPolicy) else found
    if isinstance(base, TablePolicy) and base.table.shape != (visible, n_actions):
        table = policy_array("policy", base.table, n_states, n_actions)
        found = as_policy(TablePolicy(table[:visible]), deterministic=base is not found)
    if not (found.has_probabilities or deterministic):
        raise ValueError(
            f"{found} does not say its action probabilities: pass deterministic=True to take its "
            "deterministic actions, or judge it by rollouts"
        )
    states = _state_observations(found, visible)
    if found.has_probabilities:
        rows = policy_array("probabilities of the policy", found.probabilities(states), visible, n_actions)
    else:
        rows = one_hot(_action_indices(found.greedy(states), n_actions), n_actions)
    full = np.full((n_states, n_actions), 1 / n_actions)
    full[:visible] = rows
    return full


def sample_rows(probabilities: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw one index from each row of a (n, A) array of distributions; an index of probability zero is never drawn."""
    totals = probabilities.cumsum(axis=1)
    # The product may round up to the total itself, which no index would own.
    uniforms = np.minimum(rng.random(len(probabilities)) * totals[:, -1], np.nextafter(totals[:, -1], 0))
    return np.asarray((totals <= uniforms[:, None]).sum(axis=1))


def _state_observations(policy: Policy, n_states: int) -> NDArray[Any]:
    space = policy.observation_space
    if isinstance(space, gym.spaces.Box):
        if len(space.shape) != 1 or space.shape[0] < n_states:
            raise ValueError(f"policy observes {space}, which cannot be one-hot vectors of {n_states} states")
        return np.eye(n_states, space.shape[0], dtype=space.dtype)
    if isinstance(space, gym.spaces.Discrete) and space.n < n_states:
        raise ValueError(f"policy observes {space}, but there are {n_states} states that can be observed")
    return np.arange(n_states)


def _action_indices(actions: Any, n_actions: int) -> IntArray:
    array = np.asarray(actions)
    if not np.issubdtype(array.dtype, np.integer) or array.ndim != 1:
        raise ValueError(f"policy must predict a vector of integer actions, got {array.dtype} of shape {array.shape}")
    if array.size and (array.min() < 0 or array.max() >= n_actions):
        raise ValueError(f"policy must predict actions in [0, {n_actions}), got {array.min()} to {array.max()}")
    return array.astype(np.int64)
