"""What held-out demonstrations alone say of a policy: no environment is needed.

Let policy and expert begin in the same state and, as long as the policy draws the expert's action, go on in the same
states. Up to the first step τ at which they disagree they pay the same, and after it their costs differ by at most L
per unit of weight, L the largest distance of the class. So with w the weights of the steps (`Criterion`)

    δ_C(π, π_E) ≤ L · E[w_τ + w_{τ+1} + …] = L · E Z.

Of a trajectory x_0, a_0, x_1, … of the expert the conditional expectation of Z is known, since the policy agrees at
step t with probability π(a_t|x_t), whatever the expert draws; it lies in [0, 1], and what was cut off counts as if they
disagreed there. Its mean over held-out trajectories is bounded by betting (`lfd_gym.confidence`).

If the expert does the same whenever it is in the same state, E Z ≤ E[Σ_t γ^t (1 − π(a_t|x_t))] = E_{d_E}[TV(π, π_E)]/(1
− γ) for the discounted sum, so this is never worse than the well-known 2/(1 − γ) · E[TV]. Of an expert that draws its
actions it is true all the same, but says little: two draws of one and the same policy disagree soon.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from lfd_gym.arguments import checked
from lfd_gym.confidence import upper_bound
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.model.criterion import Criterion
from lfd_gym.policies.policy import Policy
from lfd_gym.validation import FloatArray, finite_array


def weight_after_disagreement(
    policy: Policy, demonstrations: Demonstrations, criterion: Criterion, rng: np.random.Generator | None = None
) -> FloatArray:
    """Return (m,) E[Z | trajectory], see the module.

    Of a policy that does not say its probabilities, actions are drawn with ``rng``, once for each step: Z itself.

    Examples
    --------
    >>> import lfd_gym as lfd
    >>> from lfd_gym.policies.tables import TablePolicy
    >>> demos = lfd.Demonstrations(
    ...     observations=np.array([0, 1, 0, 1]), actions=np.array([0, 0, 0]), offsets=np.array([0, 3]),
    ...     terminated=np.array([True]), truncated=np.array([False]),
    ...     observation_space=gym.spaces.Discrete(2), action_space=gym.spaces.Discrete(2),
    ... )
    >>> policy = TablePolicy(np.array([[1.0, 0.0], [0.5, 0.5]]))  # half of the time in the second state
    >>> weight_after_disagreement(policy, demos, Criterion(0.9)).round(3)
    array([0.45])
    """
    agreed = _agreement(policy, demonstrations, rng)
    found = np.empty(len(demonstrations))
    for k, (first, last) in enumerate(zip(demonstrations.offsets[:-1], demonstrations.offsets[1:], strict=True)):
        together = np.concatenate([[1.0], np.cumprod(agreed[first:last])])  # (T + 1,) up to each step
        after = np.asarray(criterion.unseen(np.arange(last - first + 1)), dtype=np.float64)
        apart_at = together[:-1] - together[1:]
        cut = 0.0 if demonstrations.terminated[k] else after[-1] * together[-1]
        found[k] = after[:-1] @ apart_at + cut
    return np.clip(found, 0.0, 1.0)


def _agreement(policy: Policy, demonstrations: Demonstrations, rng: np.random.Generator | None) -> FloatArray:
    """Return (n,) the probability that the policy does what the expert did, or whether it does."""
    actions, space = demonstrations.actions_for("a certificate from demonstrations alone"), demonstrations.action_space
    if not isinstance(space, gym.spaces.Discrete):
        raise ValueError(
            f"a certificate from demonstrations alone needs Discrete actions, got {space}: of numbers no policy ever "
            "does exactly the same. Give an environment to play in"
        )
    seen = demonstrations.acted_on
    if not policy.has_probabilities:
        if rng is None:
            raise ValueError(f"rng must be given: {policy} does not say its probabilities, so its actions are drawn")
        with policy.acting(rng):
            return np.asarray(policy.sample(seen, rng) == actions, dtype=np.float64)
    return np.asarray(policy.probabilities(seen)[np.arange(len(seen)), actions.astype(np.int64) - int(space.start)])


@checked
def mean_bound(samples: FloatArray, delta: float, copies: float = 1.0) -> float:
    """Bound the mean of independent numbers in [0, 1] from above."""
    return float(upper_bound(finite_array("samples", samples, (None,))[:, None], delta, copies=copies)[0])
