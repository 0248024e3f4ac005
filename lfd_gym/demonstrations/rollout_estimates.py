"""Discounted Monte Carlo: expected costs of a policy on a generative model, with confidence intervals.

One rollout gives (1−γ) Σ_{t<H} γ^t c(x_t, a_t). Its mean over rollouts misses ρ_c(π) by at most γ^H times the share of
rollouts that have not ended by then (costs lie in [−1, 1]); the intervals are Student's, widened by that much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.policies.policies import Policy, draw_actions
from lfd_gym.validation import FloatArray

CostRows = Callable[[NDArray[Any], NDArray[Any]], FloatArray]


@dataclass(frozen=True)
class RolloutEstimate:
    """Means over rollouts.

    Attributes
    ----------
    returns
        (n, n_c) the normalised discounted cost of each rollout.
    truncation
        Bound on what was missed by stopping at the horizon.
    n_steps
        Draws of the generative model.
    """

    returns: FloatArray
    truncation: float
    n_steps: int

    @property
    def means(self) -> FloatArray:
        """(n_c,) estimates of ρ."""
        return np.asarray(self.returns.mean(axis=0))

    def intervals(self, confidence: float) -> FloatArray:
        """(n_c, 2) intervals, each of the given confidence."""
        n = len(self.returns)
        quantile = stdtrit(n - 1, (1 + confidence) / 2)  # of Student's distribution
        half = quantile * self.returns.std(axis=0, ddof=1) / np.sqrt(n) + self.truncation
        return np.stack([self.means - half, self.means + half], axis=1)


def horizon_for(discount: float, tail: float) -> int:
    """Return the smallest horizon H with γ^H ≤ ``tail``."""
    return max(1, int(np.ceil(np.log(tail) / np.log(discount))))


def estimate_costs(
    policy: Policy,
    model: GenerativeModel,
    cost_rows: CostRows,
    discount: float,
    *,
    n_rollouts: int,
    horizon: int,
    deterministic: bool,
    rng: np.random.Generator,
) -> RolloutEstimate:
    """Play ``policy`` in ``n_rollouts`` rollouts side by side.

    ``cost_rows`` maps observations and actions to (n, n_c) costs; it is not asked about ended rollouts.
    """
    states = model.sample_initial(n_rollouts, rng)
    alive = np.flatnonzero(~model.is_absorbing(states))
    states = states[alive]
    returns: FloatArray | None = None
    weight = 1 - discount
    n_steps = 0
    for _ in range(horizon):
        if alive.size == 0:
            break
        observations = model.observe(states)
        actions = draw_actions(policy, observations, model.action_space, rng, deterministic=deterministic)
        costs = cost_rows(observations, actions)
        if returns is None:
            returns = np.zeros((n_rollouts, costs.shape[1]))
        returns[alive] += weight * costs
        weight *= discount
        states = model.sample_next(states, actions, rng)
        n_steps += alive.size
        going_on = ~model.is_absorbing(states)
        states, alive = states[going_on], alive[going_on]
    if returns is None:
        raise ValueError("every rollout starts in the absorbing state: there is nothing to evaluate")
    return RolloutEstimate(returns, discount**horizon * alive.size / n_rollouts, n_steps)
