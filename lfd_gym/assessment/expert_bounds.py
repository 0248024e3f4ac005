"""What demonstrations and a known model say of the expert's expected costs.

Three lower bounds of ρ_i(π_E), of which the largest counts:

- *Demonstrations*: betting on the discounted costs of the trajectories, see `CostEstimate`. What was not seen of
  trajectory j is not worth less than γ^T V_i(x_T), V_i the least expected cost from the state in which it was cut,
  instead of −γ^T. That is so of one that something outside cut (``truncated``), a time limit say. Of a fragment, which
  simply stops, it is not known why: had it been cut because what came next was cheap, V_i would be too much. There
  −γ^T is all that is known.
- *The model*: no policy pays less than min_π ρ_i(π), one plan for each cost. With few demonstrations this is nearly
  all that is known.
- *The version space*, if the expert is taken to be deterministic: no policy that agrees with every demonstrated action
  pays less than the least cost of the model in which states that were seen have only the action seen there. This is
  certain, if the assumption is true.

Upper bounds are the same of the costs with their sign changed. What plans leave open is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lfd_gym.confidence import lower_bound
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.estimation import CostEstimate
from lfd_gym.model.criterion import Criterion
from lfd_gym.model.dynamics import FiniteDynamics
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.validation import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class LeastCosts:
    """What is known of how little the expert pays.

    Attributes
    ----------
    paid
        (m, n_c) what each trajectory paid at least, what was not seen of it included, in [−1, 1].
    floor
        (n_c,) what the expert pays for certain.
    """

    paid: FloatArray
    floor: FloatArray

    def bound(self, delta: float, copies: float = 1.0) -> FloatArray:
        """Return (n_c,) numbers that ρ(π_E) is below, in any cost, with probability at most ``delta``."""
        from_demonstrations = 2 * lower_bound((self.paid + 1) / 2, delta / self.floor.size, copies=copies) - 1
        return np.maximum(from_demonstrations, self.floor)


def least_expert_costs(
    dynamics: FiniteDynamics,
    costs: FloatArray,
    estimate: CostEstimate,
    demonstrations: Demonstrations,
    *,
    agreeing_with: Sequence[Demonstrations] = (),
) -> LeastCosts:
    """Return what demonstrations and the model say of how little the expert pays.

    Parameters
    ----------
    dynamics
        The known model.
    costs
        (S·A, n_c).
    estimate
        Of these costs, from ``demonstrations``.
    demonstrations
        Independent of the choice of costs.
    agreeing_with
        Demonstrations of an expert that is taken to be deterministic; none: it is not.
    """
    rows = np.arange(len(costs))
    if agreeing_with:
        actions = demonstrated_actions(dynamics.n_states, agreeing_with)
        states = rows // dynamics.n_actions
        rows = np.where(actions[states] >= 0, states * dynamics.n_actions + actions[states], rows)
        dynamics = FiniteDynamics(dynamics.transitions[rows], dynamics.initial_distribution, dynamics.absorbing_state)
    criterion = estimate.criterion
    values, error = _least_values(dynamics, costs[rows], criterion)
    unseen = estimate.unseen_mass[:, None]
    if criterion.horizon is None:
        last = demonstrations.observations[demonstrations.offsets[1:] + np.arange(len(demonstrations))]
        least = values[np.minimum(last, dynamics.n_states - 1)] - error  # nothing is unseen after an end
        tails = unseen * np.where(demonstrations.truncated[:, None], least, -1.0)
    else:
        tails = -unseen
    paid = np.clip(estimate.trajectory_values + tails, -1.0, 1.0)
    return LeastCosts(paid, dynamics.initial_distribution @ values - error)


def demonstrated_actions(n_states: int, demonstrations: Sequence[Demonstrations]) -> IntArray:
    """Return (S,) the action that was demonstrated in each state, −1 where none was; refuse two in the same state."""
    seen = np.concatenate([part.acted_on for part in demonstrations]).astype(np.int64)
    done = np.concatenate([part.actions_for("a deterministic expert") for part in demonstrations]).astype(np.int64)
    actions = np.full(n_states, -1)
    actions[seen] = done
    contradicted = np.flatnonzero(actions[seen] != done)
    if contradicted.size:
        state = seen[contradicted[0]]
        raise ValueError(
            f"expert cannot be 'deterministic': in state {state} the demonstrations show the actions "
            f"{done[contradicted[0]]} and {actions[state]}"
        )
    return actions


def _least_values(dynamics: FiniteDynamics, costs: FloatArray, criterion: Criterion) -> tuple[FloatArray, float]:
    """Return (S, n_c) the least expected cost from each state, and how far it can be off."""
    if criterion.horizon is None:
        mdp = FiniteMDP.of(dynamics, criterion.discount)
        plans = [mdp.plan(cost) for cost in costs.T]
        return np.stack([plan.values for plan in plans], axis=1), max(plan.error_bound for plan in plans)
    values = np.zeros((dynamics.n_states, costs.shape[1]))
    shape = (dynamics.n_states, dynamics.n_actions, costs.shape[1])
    for weight in criterion.weights(criterion.horizon)[::-1]:
        values = (weight * costs + dynamics.transitions @ values).reshape(shape).min(axis=1)
    return values, 1e-12 * criterion.horizon
