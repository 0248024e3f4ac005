"""The expert's expected costs, estimated from demonstrations, and how far off the estimate can be.

Notation: m trajectories, γ the discount, c a cost feature in [−1, 1], zero after a trajectory has terminated. For
trajectory j with T_j actions,

- Z_j = (1−γ) Σ_{t≥0} γ^t c(x_t, a_t), in [−1, 1], would be observed if the trajectory were never cut; E Z = ρ_c(π_E);
- Y_j = (1−γ) Σ_{t<T_j} γ^t c(x_t, a_t) is observed, |Y_j| ≤ 1 − γ^{T_j};
- q_j = γ^{T_j} if the trajectory did not terminate, else 0: then |Z_j − Y_j| ≤ q_j.

The paper's estimate (Section 5) is the mean Ȳ; its trajectories have H + 1 actions, so the mass it drops is γ^{H+1}.
``"rescale"`` divides each Y_j that was cut by 1 − q_j: the mass that was seen stands for the mass that was not.

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
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from lfd_gym._jit import jit
from lfd_gym.costs.costs import check_cost_features, check_end_is_free
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.validation import FloatArray, IntArray, check_delta, discount_factor

Truncation = Literal["paper", "rescale"]
Concentration = Literal["best", "hoeffding", "bernstein"]
CostFeatures: TypeAlias = ArrayLike | Callable[[NDArray[Any], NDArray[Any]], ArrayLike]

#: Share of δ spent on the probability of being cut.
_CUT_SHARE = 0.1
_BLOCK = 100_000


@dataclass(frozen=True, eq=False)
class FeatureExpectations:
    """Estimated expected costs, one per feature.

    Attributes
    ----------
    values
        (n_c,) the estimates.
    trajectory_values
        (m, n_c) Y_j, the discounted sum of each trajectory, normalised by (1−γ).
    unseen_mass
        (m,) q_j, how much of the discounted mass of each trajectory was not seen.
    discount
        γ.
    truncation
        What was done about the unseen mass: ``"paper"`` leaves it out, ``"rescale"`` divides by what is left.
    horizon
        Where trajectories were cut by design, if known.
    """

    values: FloatArray
    trajectory_values: FloatArray
    unseen_mass: FloatArray
    discount: float
    truncation: Truncation
    horizon: int | None

    @property
    def n_trajectories(self) -> int:
        """The number m of trajectories."""
        return len(self.trajectory_values)

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
        half_width = 1.0 if self.horizon is None else 1 - self.discount**self.horizon
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
        n_cut = int(np.count_nonzero(self.unseen_mass))
        return self.discount**self.horizon * _largest_probability(n_cut, self.n_trajectories, _CUT_SHARE * delta)


def feature_expectations(
    demonstrations: Demonstrations,
    cost_features: CostFeatures,
    discount: float,
    *,
    truncation: Truncation = "paper",
) -> FeatureExpectations:
    """Estimate the expert's expected cost for each feature, ρ_{c_i}(π_E).

    Parameters
    ----------
    demonstrations
        At least one trajectory.
    cost_features
        For finite spaces an (S·A, n_c) array, entries in [−1, 1]; rows of an absorbing state that the observations do
        not count may follow, all zero. For any space, a callable from n observations and n actions to (n, n_c) costs.
    discount
        γ.
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
    >>> demos = lfd.collect(lfd.TabularModel.from_mdp(mdp), expert, 1000, 100, np.random.default_rng(0))
    >>> estimate = lfd.feature_expectations(demos, costs, discount=0.9)
    >>> truth = np.array([mdp.expected_cost(expert, cost) for cost in costs.T])
    >>> bool((abs(estimate.values - truth) <= estimate.radius(delta=0.05)).all())
    True
    """
    gamma = discount_factor("discount", discount)
    if truncation not in get_args(Truncation):
        raise ValueError(f"truncation must be one of {get_args(Truncation)}, got {truncation!r}")
    if len(demonstrations) == 0:
        raise ValueError("demonstrations must hold at least one trajectory")
    if callable(cost_features):
        sums = _sums_of_function(demonstrations, cost_features, gamma)
    else:
        table, rows = _finite_features(demonstrations, cost_features)
        sums = discounted_sums(table, rows, demonstrations.offsets, gamma)
    unseen = np.where(demonstrations.terminated, 0.0, gamma**demonstrations.lengths)
    if truncation == "rescale":
        if (unseen == 1).any():
            raise ValueError(f"trajectory {int(np.argmax(unseen))} has no actions: there is nothing to rescale")
        values = (sums / (1 - unseen)[:, None]).mean(axis=0)
    else:
        values = sums.mean(axis=0)
    return FeatureExpectations(values, sums, unseen, gamma, truncation, demonstrations.horizon)


def required_trajectories(accuracy: float, n_features: int, delta: float) -> int:
    """Return m = ⌈8 log(2 n_c/δ) / accuracy²⌉: then all sample means are within accuracy/2 of their expectations.

    With `required_horizon` at the same accuracy, ‖ρ̂ − ρ‖_∞ ≤ accuracy with probability at least 1 − δ: one half of it
    for sampling (Hoeffding on [−1, 1]), the other for the tail.

    Theorem 1 of the paper, for its ε and δ, needs ‖ρ̂ − ρ‖_∞ ≤ ε/4 with probability 1 − δ/2, and prints
    m = 8 log(4 n_c/δ)/ε² and H = log(2/ε)/(1−γ). These are the numbers for accuracy ε, not ε/4 (the tail alone may
    reach ε/2): ``required_trajectories(eps, n_c, delta / 2)``. What the proof uses takes 16 times as many,
    ``required_trajectories(eps / 4, n_c, delta / 2)`` = 128 log(4 n_c/δ)/ε², and
    ``required_horizon(eps / 4, discount)``, about log(8/ε)/(1−γ).

    Examples
    --------
    >>> required_trajectories(0.1, n_features=5, delta=0.05)
    4239
    """
    _check_accuracy(accuracy)
    check_delta(delta)
    if n_features < 1:
        raise ValueError(f"n_features must be at least 1, got {n_features}")
    return math.ceil(8 * math.log(2 * n_features / delta) / accuracy**2)


def required_horizon(accuracy: float, discount: float) -> int:
    """Return the smallest number of actions after which the tail, γ^horizon, is at most accuracy/2.

    The paper's H counts from 0 and bounds this by log(2/ε)/(1−γ); see `required_trajectories` for its constants.

    Examples
    --------
    >>> required_horizon(0.1, discount=0.9)
    29
    """
    _check_accuracy(accuracy)
    gamma = discount_factor("discount", discount)
    horizon = max(1, math.ceil(math.log(accuracy / 2) / math.log(gamma)))
    return horizon if gamma**horizon <= accuracy / 2 else horizon + 1  # the quotient may have been rounded down


def _check_accuracy(accuracy: float) -> None:
    if not 0 < accuracy < 2:
        raise ValueError(f"accuracy must lie strictly between 0 and 2, the range of expected costs, got {accuracy}")


def _largest_probability(successes: int, trials: int, delta: float) -> float:
    """Clopper–Pearson: the largest p under which so few successes have probability at least ``delta``."""
    if successes == trials:
        return 1.0
    return float(betaincinv(successes + 1, trials - successes, 1 - delta))


def _finite_features(demonstrations: Demonstrations, cost_features: Any) -> tuple[FloatArray, IntArray]:
    """Return the features, and the row of each transition."""
    states, actions = demonstrations.observation_space, demonstrations.action_space
    if not (isinstance(states, gym.spaces.Discrete) and isinstance(actions, gym.spaces.Discrete)):
        raise ValueError(
            f"cost_features must be a callable (observations, actions) -> (n, n_c) for {states} and {actions}: "
            "an array is for finite spaces"
        )
    n_pairs = int(states.n * actions.n)
    n_rows = len(cost_features)
    if n_rows == n_pairs + actions.n:
        n_pairs = n_rows
    table = check_cost_features("cost_features", cost_features, n_pairs)
    check_end_is_free("cost_features", table, int(states.n), int(actions.n))  # the rows that may follow
    rows = demonstrations.acted_on.astype(np.int64) * int(actions.n) + demonstrations.actions
    return np.ascontiguousarray(table), rows


def _sums_of_function(demonstrations: Demonstrations, features: Any, discount: float) -> FloatArray:
    """Evaluate the features on blocks of trajectories, so that they are never all in memory at once."""
    seen, offsets = demonstrations.acted_on, demonstrations.offsets
    sums = []
    first = 0
    while first < len(demonstrations):
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _BLOCK, side="right")) - 1)
        rows = slice(offsets[first], offsets[last])
        n_rows = int(rows.stop - rows.start)
        values = features(seen[rows], demonstrations.actions[rows])
        table = check_cost_features("cost_features(observations, actions)", values, n_rows)
        local = offsets[first : last + 1] - offsets[first]
        sums.append(discounted_sums(np.ascontiguousarray(table), np.arange(n_rows), local, discount))
        first = last
    return np.concatenate(sums)


@jit
def discounted_sums(table: FloatArray, rows: IntArray, offsets: IntArray, discount: float) -> FloatArray:
    """(1−γ) Σ_t γ^t table[rows[t]] over each trajectory."""
    n_trajectories = offsets.size - 1
    sums = np.zeros((n_trajectories, table.shape[1]))
    for k in range(n_trajectories):
        weight = 1.0 - discount
        for t in range(offsets[k], offsets[k + 1]):
            for i in range(table.shape[1]):
                sums[k, i] += weight * table[rows[t], i]
            weight *= discount
    return sums
