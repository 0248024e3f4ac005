"""The game: which costs of the class tell the policy from the expert, as far as its episodes show.

The steps of an episode weigh

    u_t = ½ · (weight of step t in the task's criterion) + ½ · 1/T  for t < T,

T the length of episodes: the criterion alone forgets what a long episode ends with. An episode that was cut is divided
by the weight that was seen, one that ended by itself is not, since nothing is paid after the end. With x the mean of
the policy's episodes and e that of the demonstrations, the distance is max_{w ∈ W} ⟨w, x − e⟩, and the cost player
answers with weights that attain it. Over the unit ball that is feature expectation matching, over the simplex
game-theoretic apprenticeship learning (both as in Ho, Gupta & Ermon 2016, if the policy player is PPO).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.task import Task
from lfd_gym.validation import FloatArray

#: Episodes that ended so many steps of the environments ago count 1/e of those that end now; the last ones count fully.
_MEMORY = 6000
_NEWEST = 2
_MOST_EPISODES = 50
#: The policy player follows the costs at least so much, however little the episodes tell.
_LEAST_TRUST = 0.1
#: Below this share the newest episode is nearly all that counts.
_SEVERAL = 0.01
#: What changes.
_STATE = ("weights", "distance", "trust", "within_chance", "n_steps", "_episodes", "_total", "_n_answers")


class StepWeights:
    """u_t, see the module."""

    def __init__(self, task: Task) -> None:
        self._criterion, self._length = task.criterion, task.episode_length
        self._known = np.empty(0)
        self._grow(self._length)

    def _grow(self, n_steps: int) -> None:
        even = np.where(np.arange(n_steps) < self._length, 1 / self._length, 0.0)
        self._known = 0.5 * self._criterion.weights(n_steps) + 0.5 * even

    def __call__(self, steps: Any) -> FloatArray:
        """Return the weights of step numbers."""
        wanted = int(np.max(steps, initial=0)) + 1
        if wanted > self._known.size:  # episodes without a limit
            self._grow(2 * wanted)
        return np.asarray(self._known[steps])

    def seen(self, lengths: Any) -> FloatArray:
        """Return how much of the weight the first ``lengths`` steps have."""
        even = np.minimum(lengths, self._length) / self._length
        return np.asarray(0.5 * (1 - self._criterion.unseen(np.asarray(lengths))) + 0.5 * even)


class EpisodeSums:
    """Weighted sums of the costs of episodes that run side by side."""

    def __init__(self, weights: StepWeights, n_envs: int, n_costs: int) -> None:
        self._weights = weights
        self.sums = np.zeros((n_envs, n_costs))
        self.lengths = np.zeros(n_envs, dtype=np.int64)

    def add(self, rows: NDArray[Any], who: Any = slice(None)) -> None:
        """Take the costs of one step of some of the episodes."""
        self.sums[who] += self._weights(self.lengths[who])[:, None] * rows
        self.lengths[who] += 1

    def finished(self, who: int, terminated: bool) -> FloatArray:
        """Return what an episode that is over paid, and begin another in its place."""
        seen = 1.0 if terminated else float(self._weights.seen(self.lengths[who]))
        paid = self.sums[who] / seen
        self.sums[who], self.lengths[who] = 0.0, 0
        return np.asarray(paid)

    def forget(self) -> None:
        """Begin all anew."""
        self.sums[:], self.lengths[:] = 0.0, 0


class Game:
    """The cost player, and what it knows of both sides.

    Attributes
    ----------
    expert
        (n_c,) the demonstrations' costs.
    weights
        (n_c,) w, what the policy player pays for now; single precision.
    distance
        Of the policy's latest episodes.
    trust
        How much of it is more than the chance of the few episodes it is measured by.
    within_chance
        Whether the chance of these and of the few demonstrations would explain it.
    """

    def __init__(self, task: Task) -> None:
        self.costs = task.costs
        self.step_weights = StepWeights(task)
        self.rows = demonstrated_rows(task)
        self.per_demonstration = _paid(task.demonstrations, self.rows, self.step_weights)
        self.expert: FloatArray = self.per_demonstration.mean(axis=0)
        self.weights: NDArray[np.float32] = self._answer(-self.expert)
        self.distance = float("nan")
        self.trust, self.within_chance = 1.0, False
        self.n_steps = 0
        self._episodes: list[tuple[int, FloatArray]] = []
        self._total, self._n_answers = np.zeros_like(self.expert), 0

    def distance_of(self, paid: FloatArray) -> float:
        """Return the distance of episodes, (n, n_c), or of their mean."""
        mean = paid if paid.ndim == 1 else paid.mean(axis=0)
        return float(self.costs.weights.support(mean - self.expert))

    def hear(self, paid: FloatArray) -> None:
        """Take an episode of the policy."""
        self._episodes = [*self._episodes[1 - _MOST_EPISODES :], (self.n_steps, paid)]

    def move(self) -> None:
        """Answer the policy's latest episodes."""
        if not self._episodes:
            return
        ended, paid = np.array([when for when, _ in self._episodes]), np.array([paid for _, paid in self._episodes])
        shares = np.exp((ended - self.n_steps) / _MEMORY)
        shares[-_NEWEST:] = 1.0
        shares /= shares.sum()
        mean = shares @ paid
        self.distance = self.distance_of(mean)
        n, spread = 1 / float(shares @ shares), self._spread(paid, shares, mean)
        size = max(float(((mean - self.expert) ** 2).sum()), 1e-12)
        self.trust = min(1.0, max(1 - spread / n / size, _LEAST_TRUST))
        self.within_chance = size <= spread * (1 / n + 1 / len(self.per_demonstration))
        self.weights = self._answer(mean - self.expert)
        self._total, self._n_answers = self._total + self.weights, self._n_answers + 1

    def _answer(self, difference: FloatArray) -> NDArray[np.float32]:
        return np.asarray(self.costs.weights.maximiser(difference), dtype=np.float32)

    def _spread(self, paid: FloatArray, shares: FloatArray, mean: FloatArray) -> float:
        """Return the variance of an episode, summed over the costs; 0 if that of one cannot be told."""
        several = 1 - float(shares @ shares)
        return float(shares @ ((paid - mean) ** 2).sum(axis=1)) / several if several > _SEVERAL else 0.0

    def state(self) -> dict[str, Any]:
        """Return what is needed to go on."""
        return {name: getattr(self, name) for name in _STATE}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        for name in _STATE:
            setattr(self, name, state[name])

    @property
    def average_weights(self) -> FloatArray:
        """The mean of all answers: the cost player's part of the equilibrium."""
        if not self._n_answers:
            return self.weights.astype(np.float64)
        return np.asarray(self.costs.weights.project(self._total / self._n_answers))


def demonstrated_rows(task: Task) -> NDArray[np.float32]:
    """Return the costs of all demonstrated steps, (N, n_c)."""
    demonstrations = task.demonstrations
    actions = demonstrations.actions if task.costs.uses_actions else None
    return np.asarray(task.costs.rows(demonstrations.acted_on, actions), dtype=np.float32)


def _paid(demonstrations: Demonstrations, rows: NDArray[Any], weights: StepWeights) -> FloatArray:
    """Return the weighted costs of each demonstration, (m, n_c)."""
    paid = []
    for k, length in enumerate(demonstrations.lengths):
        if not length:
            continue
        own = rows[demonstrations.offsets[k] : demonstrations.offsets[k + 1]]
        seen = 1.0 if demonstrations.terminated[k] else float(weights.seen(length))
        paid.append(weights(np.arange(length)) @ own / seen)
    if not paid:
        raise ValueError("demonstrations must hold at least one step")
    return np.array(paid)
