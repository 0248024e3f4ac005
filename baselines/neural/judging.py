"""Which of the policies on the way is the nearest, told by episodes that none of them learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lfd_gym.baselines.neural.envs import copyable
from lfd_gym.baselines.neural.game import EpisodeSums, Game
from lfd_gym.demonstrations.environments import is_gymnasium_vector, is_stable_baselines_vector
from lfd_gym.demonstrations.episodes import play_episodes
from lfd_gym.policies.policy import Policy
from lfd_gym.task import Task
from lfd_gym.validation import FloatArray, IntArray

#: Episodes of each policy that is judged. They begin alike for all of them, so that the difference is theirs.
N_JUDGED = 10
#: Of what is played, kept to learn the scales of observations from.
_MOST_KEPT = 2000


@dataclass(frozen=True, eq=False)
class Judgement:
    """What episodes of a policy paid.

    Attributes
    ----------
    paid
        (n, n_c) by the weights of the game.
    counted
        (n, n_c) by those of the task's criterion.
    distance, distance_by_criterion
        From the demonstrations, by both.
    observations
        Some of those that were seen.
    n_steps
        How long the episodes were, together.
    """

    paid: FloatArray
    counted: FloatArray
    distance: float
    distance_by_criterion: float
    observations: NDArray[Any]
    n_steps: int

    def error(self, expert: FloatArray) -> float:
        """Return the variance of the distance, to first order."""
        difference = self.paid.mean(axis=0) - expert
        along = self.paid @ difference / max(float(np.linalg.norm(difference)), 1e-12)
        return float(along.var()) / len(along)


class Judge:
    """Lets policies play, each from the same beginnings."""

    def __init__(self, task: Task, game: Game, rng: np.random.Generator) -> None:
        self._task, self._game = task, game
        self._seed = int(rng.integers(2**63))
        several = is_gymnasium_vector(task.env) or is_stable_baselines_vector(task.env)
        self._copied = copyable(task) and not several
        self._expert_by_criterion = task.expert_features("rescale").values
        self.n_steps = 0

    def __call__(self, policy: Policy, n_episodes: int = N_JUDGED, rng: np.random.Generator | None = None) -> Judgement:
        """Judge a policy, by fresh episodes if a generator is given."""
        rng = np.random.default_rng(self._seed) if rng is None else rng
        task = self._task
        heard = _Heard(task, self._game, n_episodes)
        longest = task.time_limit or max(task.episode_length, task.criterion.steps(1e-3))
        play_episodes(task.env, policy, n_episodes, longest, rng, heard, n_envs=n_episodes if self._copied else None)
        self.n_steps += heard.n_steps
        return self._judgement(heard.paid, heard.counted, heard.some_observations(), heard.n_steps)

    def joined(self, one: Judgement, other: Judgement) -> Judgement:
        """Return what the episodes of both say together."""
        return self._judgement(
            np.concatenate([one.paid, other.paid]),
            np.concatenate([one.counted, other.counted]),
            one.observations,
            one.n_steps + other.n_steps,
        )

    def _judgement(self, paid: FloatArray, counted: FloatArray, observations: NDArray[Any], n_steps: int) -> Judgement:
        difference = counted.mean(axis=0) - self._expert_by_criterion
        return Judgement(
            paid,
            counted,
            self._game.distance_of(paid),
            float(self._task.costs.weights.support(difference)),
            observations,
            n_steps,
        )


class _Heard:
    """Listens to episodes and adds up what they pay; rewards are not looked at."""

    def __init__(self, task: Task, game: Game, n_episodes: int) -> None:
        n_costs = game.expert.size
        self._costs, self._criterion = task.costs, task.criterion
        self._sums = EpisodeSums(game.step_weights, n_episodes, n_costs)
        self._weights = task.criterion.weights(max(1, task.time_limit or task.episode_length))
        self.paid, self.counted = np.zeros((n_episodes, n_costs)), np.zeros((n_episodes, n_costs))
        self.n_steps = 0
        self._seen: list[NDArray[Any]] = []

    def step(
        self, who: IntArray, t: int, observations: NDArray[Any], actions: NDArray[Any], rewards: Any = None
    ) -> None:
        """Pay for one step."""
        rows = self._costs.rows(observations, actions if self._costs.uses_actions else None)
        self._sums.add(rows, who)
        if t >= self._weights.size:
            self._weights = self._criterion.weights(2 * t)
        self.counted[who] += self._weights[t] * rows
        self.n_steps += len(who)
        self._seen.append(observations)

    def end(
        self, who: IntArray, length: int, observations: Any, terminated: Any = False, truncated: Any = False
    ) -> None:
        """Finish episodes."""
        for k, ended in zip(who, np.broadcast_to(terminated, who.shape), strict=True):
            self.paid[k] = self._sums.finished(int(k), bool(ended))
            if not ended:
                self.counted[k] /= 1 - float(self._criterion.unseen(length))

    def some_observations(self) -> NDArray[Any]:
        """Return observations from all over the episodes."""
        seen = np.concatenate(self._seen)
        return seen[:: max(1, len(seen) // _MOST_KEPT)]
