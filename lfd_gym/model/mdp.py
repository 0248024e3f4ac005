"""Finite Markov decision processes and the operators of the paper's Section 2.

Notation (S states, A actions; the pair (x, a) is row ``x * A + a`` of every array over pairs):

- P, ``transitions``: (S·A, S), row (x, a) is the distribution of the next state;
- ν₀, ``initial_distribution``: (S,); γ, ``discount``;
- B: (S·A, S), ``B[(x, a), y] = 1`` if x = y, else 0;
- T_γ μ = (B − γP)ᵀμ / (1−γ), ``bellman_flow``; its adjoint T_γ* u = (B − γP)u / (1−γ), ``bellman_adjoint``;
- V^π_c = (1−γ) E[Σ γ^t c(x_t, a_t)], ``value_function``; μ_π = (1−γ) Σ γ^t P[x_t, a_t], ``occupancy``;
- ρ_c(π) = ⟨μ_π, c⟩ = ⟨ν₀, V^π_c⟩, ``expected_cost``.

Every quantity carries the factor (1−γ), so values of a cost in [−1, 1] lie in [−1, 1] and occupancies sum to one.
This module and the planner it calls are the only places where that normalisation is written down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from lfd_gym.arguments import checked
from lfd_gym.model import planning
from lfd_gym.model.dynamics import FiniteDynamics, TransitionTable
from lfd_gym.model.planning import Plan
from lfd_gym.validation import FloatArray, IntArray, discount_factor, distribution, finite_array, policy_array

#: Of costs and values.
_LARGEST = 1e150


@dataclass(frozen=True, eq=False, init=False, repr=False)
class FiniteMDP:
    """A finite MDP without a cost: `FiniteDynamics` and a discount.

    Parameters
    ----------
    transitions, initial_distribution, absorbing_state
        As for `FiniteDynamics`.
    discount
        γ in (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> from lfd_gym import FiniteMDP
    >>> stay_or_go = np.array([[[1.0, 0.0], [0.2, 0.8]], [[0.0, 1.0], [0.0, 1.0]]])  # (S, A, S)
    >>> mdp = FiniteMDP(stay_or_go, initial_distribution=[1.0, 0.0], discount=0.5)
    >>> cost = np.array([1.0, 1.0, 0.0, 0.0])  # state 0 is costly, state 1 is free
    >>> mdp.optimal_policy(cost)[0]
    array([0., 1.])
    >>> round(mdp.expected_cost(mdp.optimal_policy(cost), cost), 6)
    0.555556
    """

    dynamics: FiniteDynamics
    discount: float

    @checked
    def __init__(
        self,
        transitions: sp.csr_array | ArrayLike,
        initial_distribution: ArrayLike,
        discount: float,
        absorbing_state: int | None = None,
    ) -> None:
        self._wrap(FiniteDynamics(transitions, initial_distribution, absorbing_state), discount)  # type: ignore[arg-type]

    def _wrap(self, dynamics: FiniteDynamics, discount: float) -> None:
        object.__setattr__(self, "dynamics", dynamics)
        object.__setattr__(self, "discount", discount_factor("discount", discount))

    @property
    def transitions(self) -> sp.csr_array:
        """P, (S·A, S)."""
        return self.dynamics.transitions

    @property
    def initial_distribution(self) -> FloatArray:
        """ν₀, (S,)."""
        return self.dynamics.initial_distribution

    @property
    def absorbing_state(self) -> int | None:
        """The state that stands for the end, if there is one."""
        return self.dynamics.absorbing_state

    @property
    def n_states(self) -> int:
        """S."""
        return self.dynamics.n_states

    @property
    def n_actions(self) -> int:
        """A."""
        return self.dynamics.n_actions

    # -- construction -------------------------------------------------------------------------------------------------

    @classmethod
    @checked
    def of(cls, dynamics: FiniteDynamics, discount: float) -> FiniteMDP:
        """Return ``dynamics`` with a discount; the arrays are shared."""
        mdp = cls.__new__(cls)
        mdp._wrap(dynamics, discount)
        return mdp

    @classmethod
    @checked
    def from_dict(cls, table: TransitionTable, initial_distribution: ArrayLike, discount: float) -> FiniteMDP:
        """Build from a toy_text table, see `FiniteDynamics.from_table`."""
        return cls.of(FiniteDynamics.from_table(table, initial_distribution), discount)

    @classmethod
    @checked
    def from_env(cls, env: gym.Env[Any, Any], discount: float) -> FiniteMDP:
        """Build from a tabular environment, see `FiniteDynamics.from_env`."""
        return cls.of(FiniteDynamics.from_env(env), discount)

    # -- operators ----------------------------------------------------------------------------------------------------

    @checked
    def bellman_flow(self, occupancy: ArrayLike) -> FloatArray:
        """T_γ μ: the (S,) net flow out of each state; equals ``initial_distribution`` iff μ is an occupancy measure."""
        pairs = finite_array("occupancy", occupancy, (self.n_states, self.n_actions))
        flow = pairs.sum(axis=1) - self.discount * (self.transitions.T @ pairs.ravel())
        return np.asarray(flow / (1 - self.discount))

    @checked
    def bellman_adjoint(self, values: ArrayLike) -> FloatArray:
        """T_γ* u: (S, A), with ⟨T_γ μ, u⟩ = ⟨μ, T_γ* u⟩; c − T_γ* V is the advantage of c over V."""
        state_values = finite_array("values", values, (self.n_states,))
        after = (self.transitions @ state_values).reshape(self.n_states, self.n_actions)
        return np.asarray((state_values[:, None] - self.discount * after) / (1 - self.discount))

    # -- policies -----------------------------------------------------------------------------------------------------

    @checked
    def occupancy(self, policy: ArrayLike, tolerance: float = 1e-10, start: ArrayLike | None = None) -> FloatArray:
        """μ_π, (S, A): the discounted visitation frequencies of ``policy``, summing to one.

        As `state_occupancy`, of which it is the joint distribution with the policy's actions.
        """
        chosen = self._policy(policy)
        states = self.state_occupancy(chosen, tolerance, start)
        probabilities = one_hot(chosen, self.n_actions) if chosen.ndim == 1 else chosen
        return np.asarray(states[:, None] * probabilities)

    @checked
    def state_occupancy(
        self, policy: ArrayLike, tolerance: float = 1e-10, start: ArrayLike | None = None
    ) -> FloatArray:
        """Σ_a μ_π(·, a), (S,): how often ``policy`` visits each state, discounted and normalised.

        Parameters
        ----------
        policy
            (S, A) probabilities, or (S,) integers: the action of a deterministic policy in each state.
        tolerance
            Largest certified l1 error; a warning says so if floating point does not allow it.
        start
            (S,) a guess of the result, e.g. that of a similar policy.
        """
        return planning.state_occupancy(
            self.transitions,
            self._policy(policy),
            self.initial_distribution,
            self.discount,
            _positive("tolerance", tolerance),
            self._start("start", start),
        )

    @checked
    def value_function(
        self, policy: ArrayLike, cost: ArrayLike, tolerance: float = 1e-10, start: ArrayLike | None = None
    ) -> FloatArray:
        """V^π_c, (S,), normalised by (1−γ).

        Parameters
        ----------
        policy
            (S, A) probabilities, or (S,) integers: the action of a deterministic policy in each state.
        cost
            (S·A,) or (S, A).
        tolerance
            Largest certified sup-norm error; a warning says so if floating point does not allow it.
        start
            (S,) a guess of the result.
        """
        return planning.policy_values(
            self.transitions,
            self._policy(policy),
            self.pair_cost(cost),
            self.discount,
            _positive("tolerance", tolerance),
            self._start("start", start),
        )

    @checked
    def expected_cost(self, policy: ArrayLike, cost: ArrayLike, tolerance: float = 1e-10) -> float:
        """ρ_c(π) = ⟨ν₀, V^π_c⟩, in [−1, 1] for costs in [−1, 1], with an error of at most ``tolerance``."""
        return float(self.initial_distribution @ self.value_function(policy, cost, tolerance))

    @checked
    def plan(
        self,
        cost: ArrayLike,
        tolerance: float = 1e-10,
        initial_values: ArrayLike | None = None,
        typical_visits: ArrayLike | None = None,
    ) -> Plan:
        """Solve the MDP for ``cost``; the plan certifies how far it can be from optimal.

        Parameters
        ----------
        cost
            (S·A,) or (S, A).
        tolerance
            Largest distance from optimal, from any state, that may be left open. If floating point does not allow
            it, the ``error_bound`` of the plan is larger.
        initial_values
            (S,) warm start, e.g. the values of a similar cost.
        typical_visits
            (S,) distribution of states that good policies visit. If given, it is enough that what the policy loses
            along them is *estimated* to be at most ``tolerance``; the ``error_bound`` of the plan may be much larger.
        """
        start = self._start("initial_values", initial_values)
        visits = None if typical_visits is None else distribution("typical_visits", typical_visits, self.n_states)
        return planning.plan(
            self.transitions, self.pair_cost(cost), self.discount, _positive("tolerance", tolerance), start, visits
        )

    @checked
    def optimal_policy(self, cost: ArrayLike, tolerance: float = 1e-10) -> FloatArray:
        """Return an (S, A) deterministic policy, optimal for ``cost`` up to ``tolerance`` from every state."""
        plan = self.plan(cost, tolerance)
        planning.warn_if_missed(plan.error_bound, tolerance)
        return one_hot(plan.actions, self.n_actions)

    # -- arguments ----------------------------------------------------------------------------------------------------

    def _policy(self, policy: ArrayLike) -> FloatArray | IntArray:
        """Check a policy: (S,) actions, or (S, A) probabilities, rescaled to sum to one to rounding."""
        array = np.asarray(policy)
        if array.ndim == 1:
            return action_array("policy", array, self.n_states, self.n_actions)
        probabilities = policy_array("policy", array, self.n_states, self.n_actions)
        return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))

    def _start(self, name: str, values: ArrayLike | None) -> FloatArray | None:
        return None if values is None else _not_huge(name, finite_array(name, values, (self.n_states,)))

    @checked
    def pair_cost(self, cost: ArrayLike) -> FloatArray:
        """Check a cost given as (S·A,) or (S, A) and return it as (S, A)."""
        array = np.asarray(cost, dtype=np.float64)
        if array.shape == (self.n_states * self.n_actions,):
            array = array.reshape(self.n_states, self.n_actions)
        elif array.shape != (self.n_states, self.n_actions):
            raise ValueError(
                f"cost must have shape {(self.n_states * self.n_actions,)} or {(self.n_states, self.n_actions)}, "
                f"got {array.shape}"
            )
        return _not_huge("cost", finite_array("cost", array, (self.n_states, self.n_actions)))

    def __repr__(self) -> str:
        return (
            f"FiniteMDP(n_states={self.n_states}, n_actions={self.n_actions}, discount={self.discount}, "
            f"nonzeros={self.transitions.nnz})"
        )


def policy_from_occupancy(occupancy: ArrayLike, fallback: ArrayLike | None = None) -> FloatArray:
    """π_μ(a|x) = μ(x, a) / Σ_a' μ(x, a') (Proposition 1), for any nonnegative (S, A) array μ.

    In states where μ is zero every choice induces the same μ; there ``fallback`` (an (S, A) policy) decides, and the
    uniform distribution if none is given.
    """
    pairs = np.asarray(occupancy, dtype=np.float64)
    if pairs.ndim != 2:
        raise ValueError(f"occupancy must have shape (S, A), got {pairs.shape}")
    pairs = finite_array("occupancy", pairs, pairs.shape)
    if (pairs < 0).any():
        state, action = (int(i) for i in np.argwhere(pairs < 0)[0])
        raise ValueError(f"occupancy must be nonnegative, got {pairs[state, action]} at state {state}, action {action}")
    n_states, n_actions = pairs.shape
    if fallback is None:
        policy = np.full((n_states, n_actions), 1 / n_actions)
    else:
        policy = policy_array("fallback", fallback, n_states, n_actions).copy()
    # Scaling by the largest entry first keeps subnormal rows from rounding to rows that do not sum to one.
    largest = pairs.max(axis=1)
    visited = largest > 0
    scaled = pairs[visited] / largest[visited, None]
    policy[visited] = scaled / scaled.sum(axis=1, keepdims=True)
    return policy


def one_hot(actions: ArrayLike, n_actions: int) -> FloatArray:
    """Return the (S, A) array of the deterministic policy that takes ``actions[x]`` in state x."""
    chosen = action_array("actions", actions, None, n_actions)
    policy = np.zeros((chosen.size, n_actions))
    policy[np.arange(chosen.size), chosen] = 1.0
    return policy


def action_array(name: str, actions: ArrayLike, n_states: int | None, n_actions: int) -> IntArray:
    """Return ``actions`` as (S,) integers in [0, A); ``None`` states: any number."""
    array = np.asarray(actions)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer) or n_states not in (None, array.size):
        size = "S" if n_states is None else n_states
        raise ValueError(f"{name} must be a vector of {size} integers, got shape {array.shape} and dtype {array.dtype}")
    if array.size and (array.min() < 0 or array.max() >= n_actions):
        state = int(np.argmax((array < 0) | (array >= n_actions)))
        raise ValueError(f"{name} must lie in [0, {n_actions}), got {array[state]} at state {state}")
    return array.astype(np.int64, copy=False)


def _positive(name: str, value: float) -> float:
    if not 0 < value < np.inf:
        raise ValueError(f"{name} must be positive, got {value}")
    return float(value)


def _not_huge(name: str, array: FloatArray) -> FloatArray:
    """Refuse numbers of which a few, added and multiplied, would be infinite."""
    if array.size and np.abs(array).max() > _LARGEST:
        raise ValueError(f"{name} must lie within {_LARGEST:g} of zero, got {array.flat[np.abs(array).argmax()]}")
    return array
