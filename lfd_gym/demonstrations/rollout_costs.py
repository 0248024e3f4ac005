"""Expected costs of a policy from rollouts, in a generative model or in episodes of an environment.

Of rollouts only the weighted sums are kept: their number and length cost no memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lfd_gym.costs.costs import Costs
from lfd_gym.demonstrations.environments import cut_by_limits_alone, time_limit
from lfd_gym.demonstrations.episodes import play_episodes
from lfd_gym.demonstrations.estimation import CostEstimate, discounted_sums
from lfd_gym.demonstrations.rollouts import play, table_blocks, tabulated
from lfd_gym.model.criterion import Criterion
from lfd_gym.model.generative_model import GenerativeModel, TabularModel
from lfd_gym.policies.policy import Policy
from lfd_gym.validation import FloatArray, IntArray

#: Costs are asked for in batches of so many pairs, or of so many bytes of observations.
_PAIRS_AT_ONCE, _BYTES_AT_ONCE = 1024, 2**20


def sampled_costs(
    policy: Policy,
    model: GenerativeModel,
    costs: Costs,
    criterion: Criterion,
    *,
    n_rollouts: int,
    horizon: int,
    rng: np.random.Generator,
    initial_states: NDArray[Any] | None = None,
) -> CostEstimate:
    """Estimate the expected costs of ``policy`` by rollouts in ``model``; only their sums are kept.

    Rollouts begin in ``initial_states``, one in each, if they are given.
    """
    sums = _Sums(n_rollouts, costs, criterion)
    table = tabulated(policy, model, n_rollouts * horizon) if initial_states is None else None
    if table is not None and costs.table is not None:
        assert isinstance(model, TabularModel)
        sums.add_blocks(model, table_blocks(model, table, n_rollouts, horizon, rng))
    else:
        play(model, policy, n_rollouts, horizon, rng, sums, initial_states)
    return sums.estimate(horizon)


def played_costs(
    policy: Policy,
    env: Any,
    costs: Costs,
    criterion: Criterion,
    *,
    n_episodes: int,
    horizon: int,
    rng: np.random.Generator,
) -> tuple[CostEstimate, Returns]:
    """Estimate the expected costs of ``policy`` by episodes of ``env``, and what it gains in its own rewards."""
    sums = _Sums(n_episodes, costs, criterion)
    play_episodes(env, policy, n_episodes, horizon, rng, sums)
    estimate = sums.estimate(min(horizon, time_limit(env) or horizon))
    estimate = replace(estimate, cut_elsewhere=not cut_by_limits_alone(env))
    return estimate, Returns(sums.rewards, sums.discounted, sums.lengths)


@dataclass(frozen=True, eq=False)
class Returns:
    """What episodes gained in the environment's own rewards.

    Attributes
    ----------
    totals
        (m,) the sum of the rewards of each episode.
    discounted
        (m,) the same with the criterion's discount, up to its horizon, not normalised.
    lengths
        (m,) steps of each episode.
    """

    totals: FloatArray
    discounted: FloatArray
    lengths: IntArray


class _Sums:
    """Listens to rollouts, and keeps the weighted sums of the costs and rewards of each."""

    def __init__(self, n_rollouts: int, costs: Costs, criterion: Criterion) -> None:
        self.costs: FloatArray | None = None
        self.rewards = np.zeros(n_rollouts)
        self.discounted = np.zeros(n_rollouts)
        self.lengths = np.zeros(n_rollouts, dtype=np.int64)
        self.terminated = np.zeros(n_rollouts, dtype=bool)
        self._source, self._criterion = costs, criterion
        self._weight, self._t = criterion.scale, 0
        self._waiting: list[tuple[IntArray, float, NDArray[Any], NDArray[Any]]] = []

    def step(
        self,
        who: IntArray,
        t: int,
        observations: NDArray[Any],
        actions: NDArray[Any],
        rewards: NDArray[Any] | None = None,
    ) -> None:
        if t != self._t:  # the weights go on step by step, and start anew with a new round of episodes
            self._weight = self._criterion.scale if t == 0 else self._weight * self._criterion.discount
            self._t = t
        counts = self._criterion.horizon is None or t < self._criterion.horizon
        if rewards is not None:
            self.rewards[who] += rewards
            if counts:
                self.discounted[who] += self._weight / self._criterion.scale * rewards
        if counts:  # copied, for some environments write the next observations over these
            self._waiting.append((who, self._weight, observations.copy(), actions.copy()))
            full = len(self._waiting) * len(who) >= _PAIRS_AT_ONCE
            if full or len(self._waiting) * observations.nbytes >= _BYTES_AT_ONCE:
                self._add_waiting()

    def _add_waiting(self) -> None:
        """Ask for the costs of many steps at once: asking has a price of its own."""
        if not self._waiting:
            return
        whose, weights, observations, actions = zip(*self._waiting, strict=True)
        rows = self._source.rows(np.concatenate(observations), np.concatenate(actions))
        if self.costs is None:
            self.costs = np.zeros((self.lengths.size, rows.shape[1]))
        first = 0
        for who, weight in zip(whose, weights, strict=True):
            self.costs[who] += weight * rows[first : first + len(who)]
            first += len(who)
        self._waiting.clear()

    def end(
        self, who: IntArray, length: int, observations: NDArray[Any], terminated: Any = False, truncated: Any = False
    ) -> None:
        self.lengths[who] = length
        self.terminated[who] = terminated

    def estimate(self, limit: int) -> CostEstimate:
        """Return the estimate; ``limit`` is where rollouts are cut by design, unless one was cut elsewhere."""
        self._add_waiting()
        if self.costs is None:
            raise ValueError("every rollout starts in the absorbing state: there is nothing to evaluate")
        unseen = np.where(self.terminated, 0.0, self._criterion.unseen(self.lengths))
        by_design = bool((self.lengths[~self.terminated] == limit).all())
        n_steps, horizon = int(self.lengths.sum()), limit if by_design else None
        return CostEstimate(self.costs.mean(axis=0), self.costs, unseen, self._criterion, "paper", horizon, n_steps)

    def add_blocks(self, model: TabularModel, blocks: Iterable[tuple[IntArray, IntArray, IntArray]]) -> None:
        """Take in whole rollouts of a finite model: flat observations, actions, and lengths."""
        costs = np.ascontiguousarray(self._source.table)
        self.costs = np.empty((self.lengths.size, costs.shape[1]))
        first = 0
        for observations, actions, lengths in blocks:
            who = slice(first, first + lengths.size)
            offsets = np.concatenate([[0], np.cumsum(lengths)])
            before = np.arange(actions.size) + np.repeat(np.arange(lengths.size), lengths)
            rows = observations[before] * model.n_actions + actions
            if rows.size and rows.max() >= len(costs):  # the kernel does not look
                raise ValueError(f"costs must have shape ({model.n_states * model.n_actions}, any), got {costs.shape}")
            self.costs[who] = discounted_sums(costs, rows, offsets, self._criterion)
            self.lengths[who] = lengths
            self.terminated[who] = observations[offsets[1:] + np.arange(lengths.size)] == model.absorbing_state
            first = who.stop
