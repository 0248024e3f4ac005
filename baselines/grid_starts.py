"""From where the learner ``grid`` solves and judges: states that were demonstrated, and a few others.

The expert is taken to act by the state alone. Then what it does from the first state of a demonstration is not all that
is shown: the rest of a trajectory is a demonstration from each of its states. With starts s_k of shares ω_k, spread
evenly over the demonstrated steps, and the discounted costs ρ̂_k of what follows each, a policy is to meet

    ρ̂ = Σ_k ω_k ρ̂_k,    in which step t of a trajectory weighs Σ_{k ≤ t} ω_k (1 − γ) γ^(t−k).

Without these, what comes late hardly counts: at γ = 0.98 the second half of 200 steps has an eighth of the weight, and
it is there that a pendulum is balanced. The other states are drawn from where the task starts. What the expert does
there is not known; that ρ̂ is asked of them as well tells costs which are low where the expert goes from those that are
low everywhere, and the policy finds its way from there too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lfd_gym.task import Task
from lfd_gym.validation import FloatArray, IntArray

#: Share of the demonstrated states among all, and share of the first ones among these.
_DEMONSTRATED_SHARE, _FIRST_SHARE = 0.8, 0.5
#: How many of the demonstrated steps are starts, and how many starts are drawn from the task.
_N_ALONG, _N_OTHERS = 40, 50
#: Rollouts from first states are at least so many: a single one of a policy that draws would say little.
_N_FIRST = 20
#: Rows of costs computed at a time.
_BLOCK = 50_000


@dataclass(frozen=True, eq=False)
class Starts:
    """Where rollouts begin, and what they are to cost.

    Attributes
    ----------
    states, shares
        (K, d) and (K,): initial states, and what share of the rollouts begins there.
    others
        (n, d) those of ``states`` that the task itself starts from.
    step_weights
        (N,) how much each demonstrated step weighs.
    expert
        (n_c,) the demonstrations' costs with these weights, as they are, not on the grid.
    """

    states: FloatArray
    shares: FloatArray
    others: FloatArray
    step_weights: FloatArray
    expert: FloatArray

    @classmethod
    def chosen(cls, task: Task, states: FloatArray, rng: np.random.Generator) -> Starts:
        """Choose starts among the (N, d) ``states`` that the demonstrations acted on, and draw others."""
        steps, shares = _demonstrated_starts(task, len(states))
        others = np.asarray(task.simulator.sample_initial(_N_OTHERS, rng), dtype=np.float64)
        elsewhere = np.full(_N_OTHERS, (1 - _DEMONSTRATED_SHARE) / _N_OTHERS)
        weights = _step_weights(task, steps, shares)
        return cls(
            states=np.concatenate([states[steps], others]),
            shares=np.concatenate([_DEMONSTRATED_SHARE * shares, elsewhere]),
            others=others,
            step_weights=weights,
            expert=_weighted_costs(task, weights),
        )


def demonstrated_states(task: Task) -> FloatArray:
    """Return the (N, d) states that the demonstrations acted on."""
    seen = task.demonstrations.acted_on
    states = np.asarray(task.simulator.states_of(seen), dtype=np.float64)  # type: ignore[attr-defined]
    wrong = ~np.isfinite(states).all(axis=1)
    if wrong.any():
        raise ValueError(f"demonstrations must be of finite states, got {states[wrong][0]}")
    if not len(states):
        raise ValueError("demonstrations must hold at least one step")
    return states


def _demonstrated_starts(task: Task, n_steps: int) -> tuple[IntArray, FloatArray]:
    """Return which of the demonstrated steps are starts, the first ones of trajectories again and again, and shares."""
    demonstrations = task.demonstrations
    firsts = demonstrations.offsets[:-1][demonstrations.lengths > 0]
    firsts = np.tile(firsts, -(-_N_FIRST // len(firsts)))
    along = np.unique((np.arange(_N_ALONG) + 0.5) * n_steps // _N_ALONG).astype(np.int64)
    trajectories = demonstrations.trajectory_indices[along]
    left = demonstrations.offsets[trajectories + 1] - along
    # Of what follows a late step of a trajectory that was cut off little is known, and so it counts little.
    known = np.where(demonstrations.terminated[trajectories], 1.0, 1 - task.criterion.unseen(left))
    shares = np.concatenate(
        [np.full(len(firsts), _FIRST_SHARE / len(firsts)), (1 - _FIRST_SHARE) * known / known.sum()]
    )
    return np.concatenate([firsts, along]), shares


def _step_weights(task: Task, starts: IntArray, shares: FloatArray) -> FloatArray:
    """Return the weight of each demonstrated step in the costs from the starts, what was cut off made up for."""
    demonstrations = task.demonstrations
    weights = np.zeros(demonstrations.n_transitions)
    for start, share in zip(starts, shares, strict=True):
        trajectory = demonstrations.trajectory_indices[start]
        end = demonstrations.offsets[trajectory + 1]
        own = task.criterion.weights(int(end - start))
        weights[start:end] += share * (own if demonstrations.terminated[trajectory] else own / own.sum())
    return weights


def _weighted_costs(task: Task, weights: FloatArray) -> FloatArray:
    seen, actions = task.demonstrations.acted_on, task.demonstrations.actions if task.costs.uses_actions else None
    total = np.zeros(task.expert_features().values.size)
    for first in range(0, len(weights), _BLOCK):
        block = slice(first, first + _BLOCK)
        total += weights[block] @ task.costs.rows(seen[block], None if actions is None else actions[block])
    return total
