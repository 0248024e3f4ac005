"""Expected costs, of an expert from demonstrations and of a policy from rollouts, and how far off they can be.

Notation, for the discounted infinite criterion: m trajectories, γ the discount, c a cost feature in [−1, 1], zero after
a trajectory has terminated. For trajectory j with T_j actions,

- Z_j = (1−γ) Σ_{t≥0} γ^t c(x_t, a_t), in [−1, 1], would be observed if the trajectory were never cut; E Z = ρ_c(π_E);
- Y_j = (1−γ) Σ_{t<T_j} γ^t c(x_t, a_t) is observed, |Y_j| ≤ 1 − γ^{T_j};
- q_j = γ^{T_j} if the trajectory did not terminate, else 0: then |Z_j − Y_j| ≤ q_j.

The paper's estimate (Section 5) is the mean Ȳ; its trajectories have H + 1 actions, so the mass it drops is γ^{H+1}.
``"rescale"`` divides each Y_j that was cut by 1 − q_j: the mass that was seen stands for the mass that was not.

For the first H steps only (`Criterion`), the weights of the steps are others, they still sum to one, and γ^T becomes
the weight of what comes after T steps; all that is said here holds with that.

**The radius.** Trajectories are independent and identically distributed, costs chosen before seeing them. With k the
number of features that the statement is about at once:

- *Cut at a known horizon H by design.* Y_j lies in [−(1−γ^H), 1−γ^H]: E Y is within (1−γ^H) √(2 log(2k/δ₁) / m) of Ȳ
  (Hoeffding). The rest is at most γ^H·p, p the probability of being cut, itself at most the exact binomial
  (Clopper–Pearson) bound at δ₂. The statement holds with δ₁ + δ₂ = δ; δ₂ = δ/10.
- *Otherwise* lengths may be random, and Y_j − q_j ≤ Z_j ≤ Y_j + q_j, all of them in [−1, 1]: Hoeffding on either side
  gives q̄ + √(2 log(2k/δ) / m).
- *Empirical Bernstein* (Maurer & Pontil 2009, Theorem 4), two-sided, replaces Hoeffding's term for a variable of range
  w and sample variance s² by s √(2 log(4k/δ) / m) + 7 w log(4k/δ) / (3 (m−1)). It wins for many trajectories of small
  variance. ``"best"`` takes the smaller of the two, each at δ/2, so that both hold at once.
- *Rescaling* moves the estimate, not what is known: its radius is the paper's plus the distance between the two. It has
  the larger guarantee, and usually the smaller error, since what was not seen tends to resemble what was.

**The radius of a class.** For weights in a ball and costs whose rows have norm at most R, vectors of trajectories have
norm at most R too, and no union over features is needed: ‖Ȳ − E Y‖ ≤ R (1 + √(2 log(1/δ₁))) / √m by McDiarmid's
inequality, since the expectation is at most R/√m. The rest is at most R E q, E q ≤ q̄ + √(log(1/δ₂) / 2m), or the bound
above where the cut is by design.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, stdtrit

from lfd_gym._jit import jit
from lfd_gym.costs.costs import CostFunction, Costs, as_costs, check_end_is_free
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.environments import time_limit
from lfd_gym.demonstrations.episodes import play_episodes
from lfd_gym.demonstrations.rollouts import play, table_blocks, tabulated
from lfd_gym.model.criterion import Criterion
from lfd_gym.model.generative_model import GenerativeModel, TabularModel
from lfd_gym.policies.policy import Policy
from lfd_gym.validation import FloatArray, IntArray, check_delta

Truncation = Literal["paper", "rescale"]
Concentration = Literal["best", "hoeffding", "bernstein"]

#: Share of δ spent on the probability of being cut.
_CUT_SHARE = 0.1
_BLOCK = 100_000


@dataclass(frozen=True, eq=False, repr=False)
class CostEstimate:
    """Expected costs, one for each feature, estimated or exact.

    Attributes
    ----------
    values
        (n_c,) the estimates.
    trajectory_values
        (m, n_c) Y_j, the discounted sum of each trajectory, normalised.
    unseen_mass
        (m,) q_j, how much of the discounted mass of each trajectory was not seen.
    criterion
        How the costs of a trajectory add up.
    truncation
        What was done about the unseen mass: ``"paper"`` leaves it out, ``"rescale"`` divides by what is left.
    horizon
        Where trajectories were cut by design, if known.
    n_steps
        Steps of the model or the environment that were taken for the estimate.
    exact
        Whether the values were computed from a known model; then there are no trajectories.
    """

    values: FloatArray
    trajectory_values: FloatArray
    unseen_mass: FloatArray
    criterion: Criterion
    truncation: Truncation = "paper"
    horizon: int | None = None
    n_steps: int = 0
    exact: bool = False

    @classmethod
    def exactly(cls, values: FloatArray, criterion: Criterion) -> CostEstimate:
        """Return values that are known, not estimated."""
        return cls(values, np.empty((0, values.size)), np.empty(0), criterion, exact=True)

    def __repr__(self) -> str:
        source = "exact" if self.exact else f"{self.n_trajectories} trajectories"
        return f"CostEstimate({np.array2string(self.values, precision=4, threshold=8)}, {source})"

    @property
    def n_trajectories(self) -> int:
        """The number m of trajectories."""
        return len(self.trajectory_values)

    def intervals(self, confidence: float) -> FloatArray:
        """Return (n_c, 2) intervals, each of the given confidence: Student's, widened by what was not seen."""
        if self.exact:
            return np.stack([self.values, self.values], axis=1)
        m = self.n_trajectories
        quantile = stdtrit(m - 1, (1 + confidence) / 2)  # of Student's distribution
        half = quantile * self.trajectory_values.std(axis=0, ddof=1) / np.sqrt(m) + self.unseen_mass.mean()
        return np.stack([self.values - half, self.values + half], axis=1)

    def radius(self, delta: float, *, simultaneous: bool = True, method: Concentration = "best") -> FloatArray:
        """Return (n_c,) radii: with probability at least 1 − ``delta``, |values − ρ(π_E)| is no larger.

        Parameters
        ----------
        delta
            In (0, 1).
        simultaneous
            Whether the statement is about all features at once, or about each one alone.
        method
            ``"hoeffding"``, ``"bernstein"`` or, for each feature, the smaller of the two at δ/2.
        """
        check_delta(delta)
        if self.exact:
            return np.zeros_like(self.values)
        if method not in get_args(Concentration):
            raise ValueError(f"method must be one of {get_args(Concentration)}, got {method!r}")
        if method == "bernstein" and self.n_trajectories < 2:
            raise ValueError("method 'bernstein' needs at least 2 trajectories to estimate a variance from")
        paper = self.trajectory_values.mean(axis=0)
        shift = np.abs(self.values - paper)
        sampling_share = delta if self.horizon is None else (1 - _CUT_SHARE) * delta
        if method == "best":
            hoeffding = self._deviation(sampling_share / 2, simultaneous, "hoeffding")
            deviation = np.minimum(hoeffding, self._deviation(sampling_share / 2, simultaneous, "bernstein"))
        else:
            deviation = self._deviation(sampling_share, simultaneous, method)
        # Expected costs lie in [−1, 1], so no statement need be weaker than that.
        return np.asarray(np.minimum(deviation + self._bias(delta) + shift, 1 + np.abs(self.values)))

    def _deviation(self, delta: float, simultaneous: bool, method: str) -> FloatArray:
        """How far sample means are from expectations: of Y if cut by design, of both Y − q and Y + q otherwise."""
        m, n_features = self.trajectory_values.shape
        confidence = math.log((n_features if simultaneous else 1) / delta)
        half_width = 1.0 if self.horizon is None else 1 - self.criterion.unseen(self.horizon)
        if method == "hoeffding":
            return np.full(n_features, half_width * math.sqrt(2 * (confidence + math.log(2)) / m))
        if m < 2:
            return np.full(n_features, np.inf)
        samples = self.trajectory_values
        variance = samples.var(axis=0, ddof=1)
        if self.horizon is None:
            tails = self.unseen_mass[:, None]
            variance = np.maximum((samples - tails).var(axis=0, ddof=1), (samples + tails).var(axis=0, ddof=1))
        confidence += math.log(4)
        return np.asarray(np.sqrt(2 * variance * confidence / m) + 14 * half_width * confidence / (3 * (m - 1)))

    def _bias(self, delta: float) -> float:
        if self.horizon is None:
            return float(self.unseen_mass.mean())
        return self._cut_mass(_CUT_SHARE * delta)

    def _cut_mass(self, delta: float) -> float:
        """Bound E q where trajectories are cut by design: the mass after the cut, times the probability of one."""
        assert self.horizon is not None
        n_cut = int(np.count_nonzero(self.unseen_mass))
        return float(self.criterion.unseen(self.horizon) * _largest_probability(n_cut, self.n_trajectories, delta))

    def class_radius(self, costs: Costs, delta: float) -> float:
        """With probability at least 1 − ``delta``: a bound of max over the class of ⟨w, values − ρ⟩, see the module.

        With the same probability it bounds that of the difference the other way round. ``costs`` are those of the
        estimate, with a known ``row_norm``.
        """
        check_delta(delta)
        if self.exact:
            return 0.0
        assert costs.row_norm is not None
        m, share = self.n_trajectories, _CUT_SHARE * delta
        if self.horizon is not None:
            tail = self._cut_mass(share)
        else:
            tail = min(1.0, float(self.unseen_mass.mean()) + math.sqrt(math.log(1 / share) / (2 * m)))
        shift = float(np.linalg.norm(self.values - self.trajectory_values.mean(axis=0)))
        reach = costs.weights.radius(self.values.size)
        return costs.deviation(m, delta - share) + reach * (costs.row_norm * tail + shift)


def feature_expectations(
    demonstrations: Demonstrations,
    cost_features: Costs | ArrayLike | CostFunction,
    discount: float,
    *,
    horizon: int | None = None,
    truncation: Truncation = "paper",
) -> CostEstimate:
    """Estimate the expert's expected cost for each feature, ρ_{c_i}(π_E).

    Parameters
    ----------
    demonstrations
        At least one trajectory.
    cost_features
        For finite spaces an (S·A, n_c) array, entries in [−1, 1]; rows of an absorbing state that the observations do
        not count may follow, all zero. For any space, a function of n observations and n actions to (n, n_c), or any
        `Costs`.
    discount
        γ.
    horizon
        Count the first so many steps only, see `Criterion`; None: all.
    truncation
        ``"paper"``: the estimator of Section 5, which counts nothing for what comes after a trajectory was cut (13 % of
        the mass at γ = 0.99 and 200 actions). ``"rescale"``: each trajectory that was cut is divided by the mass that
        was seen.

    Examples
    --------
    >>> import gymnasium as gym, numpy as np, lfd_gym as lfd
    >>> env = gym.make("lfd_gym/StochasticGridworld-v0", size=4, cost_seed=0)
    >>> mdp = lfd.FiniteMDP.from_env(env, discount=0.9)
    >>> costs = env.unwrapped.cost_features
    >>> expert = mdp.optimal_policy(costs[:, 0])
    >>> demos = lfd.collect(lfd.TabularModel.of(mdp), expert, 1000, 100, np.random.default_rng(0))
    >>> estimate = lfd.feature_expectations(demos, costs, discount=0.9)
    >>> truth = np.array([mdp.expected_cost(expert, cost) for cost in costs.T])
    >>> bool((abs(estimate.values - truth) <= estimate.radius(delta=0.05)).all())
    True
    """
    criterion = Criterion(discount, horizon)
    if truncation not in get_args(Truncation):
        raise ValueError(f"truncation must be one of {get_args(Truncation)}, got {truncation!r}")
    if len(demonstrations) == 0:
        raise ValueError("demonstrations must hold at least one trajectory")
    costs = _as_costs(demonstrations, cost_features)
    if costs.table is None:
        sums = _sums_of_function(demonstrations, costs, criterion)
    else:
        costs.check_actions(demonstrations.actions)
        n_actions = int(getattr(demonstrations.action_space, "n", 0))
        rows = demonstrations.acted_on.astype(np.int64) * n_actions + np.asarray(demonstrations.actions)
        sums = discounted_sums(np.ascontiguousarray(costs.table), rows, demonstrations.offsets, criterion)
    unseen = np.where(demonstrations.terminated, 0.0, criterion.unseen(demonstrations.lengths))
    if truncation == "rescale":
        if (unseen == 1).any():
            raise ValueError(f"trajectory {int(np.argmax(unseen))} has no actions: there is nothing to rescale")
        values = (sums / (1 - unseen)[:, None]).mean(axis=0)
    else:
        values = sums.mean(axis=0)
    steps = demonstrations.n_transitions
    return CostEstimate(values, sums, unseen, criterion, truncation, demonstrations.horizon, steps)


def sampled_costs(
    policy: Policy,
    model: GenerativeModel,
    costs: Costs,
    criterion: Criterion,
    *,
    n_rollouts: int,
    horizon: int,
    rng: np.random.Generator,
) -> CostEstimate:
    """Estimate the expected costs of ``policy`` by rollouts in ``model``; only their sums are kept."""
    sums = _Sums(n_rollouts, costs, criterion)
    table = tabulated(policy, model, n_rollouts * horizon)
    if table is not None and costs.table is not None:
        assert isinstance(model, TabularModel)
        sums.add_blocks(model, table_blocks(model, table, n_rollouts, horizon, rng))
    else:
        play(model, policy, n_rollouts, horizon, rng, sums)
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
        if counts:
            rows = self._source.rows(observations, actions)
            if self.costs is None:
                self.costs = np.zeros((self.lengths.size, rows.shape[1]))
            self.costs[who] += self._weight * rows

    def end(
        self, who: IntArray, length: int, observations: NDArray[Any], terminated: Any = False, truncated: Any = False
    ) -> None:
        self.lengths[who] = length
        self.terminated[who] = terminated

    def estimate(self, limit: int) -> CostEstimate:
        """Return the estimate; ``limit`` is where rollouts are cut by design, unless one was cut elsewhere."""
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


def _largest_probability(successes: int, trials: int, delta: float) -> float:
    """Clopper–Pearson: the largest p under which so few successes have probability at least ``delta``."""
    if successes == trials:
        return 1.0
    return float(betaincinv(successes + 1, trials - successes, 1 - delta))


def _as_costs(demonstrations: Demonstrations, costs: Costs | ArrayLike | CostFunction) -> Costs:
    """Check that costs fit the demonstrations; a table may have rows for an absorbing state that is never acted on."""
    states, actions = demonstrations.observation_space, demonstrations.action_space
    if not (isinstance(states, gym.spaces.Discrete) and isinstance(actions, gym.spaces.Discrete)):
        if callable(costs) or (isinstance(costs, Costs) and costs.table is None):
            return as_costs("cost_features", costs, None)
        raise ValueError(
            f"cost_features must be a callable (observations, actions) -> (n, n_c) for {states} and {actions}: "
            "an array is for finite spaces"
        )
    n_states, n_actions = int(states.n), int(actions.n)
    table = costs.table if isinstance(costs, Costs) else costs
    n_pairs = n_states * n_actions
    if table is not None and not callable(table) and np.shape(table)[:1] == (n_pairs + n_actions,):
        n_pairs += n_actions
    found = as_costs("cost_features", costs, n_actions, n_pairs=n_pairs)
    if found.table is not None:
        if len(found.table) != n_pairs:
            raise ValueError(f"cost_features must have shape ({n_pairs}, any), got {found.table.shape}")
        check_end_is_free("cost_features", found.table, n_states, n_actions)  # the rows that may follow
    return found


def _sums_of_function(demonstrations: Demonstrations, costs: Costs, criterion: Criterion) -> FloatArray:
    """Evaluate the costs on blocks of trajectories, so that they are never all in memory at once."""
    seen, done, offsets = demonstrations.acted_on, demonstrations.actions, demonstrations.offsets
    sums = []
    first = 0
    while first < len(demonstrations):
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _BLOCK, side="right")) - 1)
        rows = slice(offsets[first], offsets[last])
        values = costs.rows(seen[rows], None if done is None else done[rows])
        local = offsets[first : last + 1] - offsets[first]
        sums.append(discounted_sums(np.ascontiguousarray(values), np.arange(len(values)), local, criterion))
        first = last
    return np.concatenate(sums)


def discounted_sums(table: FloatArray, rows: IntArray, offsets: IntArray, criterion: Criterion) -> FloatArray:
    """Σ_t (weight of t) table[rows[t]] over each trajectory."""
    n_steps = int(offsets[-1]) if criterion.horizon is None else criterion.horizon
    return _discounted_sums(table, rows, offsets, criterion.discount, criterion.scale, n_steps)


@jit
def _discounted_sums(
    table: FloatArray, rows: IntArray, offsets: IntArray, discount: float, scale: float, n_steps: int
) -> FloatArray:
    n_trajectories = offsets.size - 1
    sums = np.zeros((n_trajectories, table.shape[1]))
    for k in range(n_trajectories):
        weight = scale
        for t in range(offsets[k], min(offsets[k] + n_steps, offsets[k + 1])):
            for i in range(table.shape[1]):
                sums[k, i] += weight * table[rows[t], i]
            weight *= discount
    return sums
