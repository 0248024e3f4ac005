"""Expected costs, of an expert from demonstrations or of a policy from rollouts, and how far off they can be.

Notation, for the discounted infinite criterion: m trajectories, γ the discount, c a cost feature in [−1, 1], zero after
a trajectory has terminated. For trajectory j with T_j actions,

- Z_j = (1−γ) Σ_{t≥0} γ^t c(x_t, a_t), in [−1, 1], would be observed if the trajectory were never cut; E Z = ρ_c(π_E);
- Y_j = (1−γ) Σ_{t<T_j} γ^t c(x_t, a_t) is observed, |Y_j| ≤ 1 − γ^{T_j};
- q_j = γ^{T_j} if the trajectory did not terminate, else 0: then |Z_j − Y_j| ≤ q_j.

The paper's estimate (Section 5) is the mean Ȳ; its trajectories have H + 1 actions, so the mass it drops is γ^{H+1}.
``"rescale"`` divides each Y_j that was cut by 1 − q_j: the mass that was seen stands for the mass that was not.

For the first H steps only (`Criterion`), the weights of the steps are others, they still sum to one, and γ^T becomes
the weight of what comes after T steps; all that is said here holds with that.

**Bounds.** Trajectories are independent and identically distributed, costs chosen before seeing them. Whatever their
lengths, Y_j − q_j ≤ Z_j ≤ Y_j + q_j, all of them in [−1, 1]: a lower confidence bound of the mean of the left side is
one of ρ, an upper one of the right side too. They are found by betting, see `lfd_gym.confidence`; a statement about k
features at once takes δ/k for each. How the estimate treats what was not seen (``truncation``) moves the estimate, not
what is known.

**The radius of a class.** For weights in a ball and costs whose rows have norm at most R, the vectors of trajectories
have norm at most R too, and no union over features is needed. ‖Ȳ − E Y‖ is at most the smaller of these, each at δ/2:

- McDiarmid: R (1 + √(2 log(1/δ))) / √m, since the expectation is at most R/√m;
- Bernstein in a Hilbert space (Pinelis 1994): √(2 σ² log(2/δ) / m) + 4 R log(2/δ) / 3m, with σ² = E‖Y − E Y‖², itself
  bounded by betting: ½‖Y_1 − Y_2‖², ½‖Y_3 − Y_4‖², … are independent, of mean σ² and in [0, 2R²].

The rest is at most R E q; q lies between 0 and γ^H where trajectories are cut at H by design and nowhere else, else
between 0 and 1, and E q is bounded by betting. That none of those that were seen was cut elsewhere does not tell that
none ever is: it must be known of the environment.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from lfd_gym._jit import jit
from lfd_gym.arguments import check_fields, checked
from lfd_gym.confidence import lower_bound, upper_bound
from lfd_gym.costs.costs import CostFunction, Costs, as_costs, check_end_is_free
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.model.criterion import Criterion
from lfd_gym.validation import FloatArray, IntArray, check_delta, finite_array

Truncation = Literal["paper", "rescale"]

#: Share of δ spent on what was not seen, in the radius of a class.
_TAIL_SHARE = 0.1
#: Discounted averages of numbers in [−1, 1] may come out as large as this by rounding.
_LARGEST_AVERAGE = 1 + 1e-9
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
    cut_elsewhere
        Whether others than these might have been cut before that, for reasons that are not known.
    n_steps
        Steps of the model or the environment that were taken for the estimate.
    exact
        Whether the values were computed from a known model; then there are no trajectories.
    error
        How far exact values can be off, by what the solution of linear systems leaves open.
    copies
        As if each trajectory had been seen so often: bounds are then forecasts for more or fewer of them.
    """

    values: FloatArray
    trajectory_values: FloatArray
    unseen_mass: FloatArray
    criterion: Criterion
    truncation: Truncation = "paper"
    horizon: int | None = None
    n_steps: int = 0
    exact: bool = False
    error: float = 0.0
    copies: float = 1.0
    cut_elsewhere: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("values", "trajectory_values", "unseen_mass"):
            if np.isnan(getattr(self, name)).any():
                raise ValueError(f"{name} must not be NaN, got {getattr(self, name)}")
        if math.isnan(self.copies) or math.isnan(self.error):
            raise ValueError(f"copies and error must be numbers, got {self.copies} and {self.error}")

    @classmethod
    @checked
    def exactly(cls, values: FloatArray, criterion: Criterion, error: float = 0.0) -> CostEstimate:
        """Return values that are known, not estimated."""
        values = finite_array("values", values, (None,))
        if not error >= 0:
            raise ValueError(f"error must be nonnegative, got {error}")
        return cls(values, np.empty((0, values.size)), np.empty(0), criterion, exact=True, error=error)

    def __repr__(self) -> str:
        source = "exact" if self.exact else f"{self.n_trajectories} trajectories"
        return f"CostEstimate({np.array2string(self.values, precision=4, threshold=8)}, {source})"

    @property
    def n_trajectories(self) -> int:
        """The number m of trajectories."""
        return len(self.trajectory_values)

    @checked
    def first(self, n_costs: int) -> CostEstimate:
        """Return the estimate of the first ``n_costs`` costs."""
        return replace(self, values=self.values[:n_costs], trajectory_values=self.trajectory_values[:, :n_costs])

    @checked
    def lower(self, delta: float, *, simultaneous: bool = True) -> FloatArray:
        """Return (n_c,) numbers that ρ is below with probability at most ``delta``: in any feature, or each alone."""
        return self._bound(delta, simultaneous, lower=True)

    @checked
    def upper(self, delta: float, *, simultaneous: bool = True) -> FloatArray:
        """Return (n_c,) numbers that ρ is above with probability at most ``delta``: in any feature, or each alone."""
        return self._bound(delta, simultaneous, lower=False)

    def _bound(self, delta: float, simultaneous: bool, *, lower: bool) -> FloatArray:
        check_delta(delta)
        sign = -1 if lower else 1
        if self.exact:
            return self.values + sign * self.error
        self._check_reach(np.abs(self.trajectory_values).max(initial=0.0), 1.0, "entries")
        side = np.clip(self.trajectory_values + sign * self.unseen_mass[:, None], -1.0, 1.0)
        share = delta / self.values.size if simultaneous else delta
        return 2 * (lower_bound if lower else upper_bound)((side + 1) / 2, share, copies=self.copies) - 1

    @checked
    def intervals(self, confidence: float) -> FloatArray:
        """Return (n_c, 2) intervals, each of the given confidence."""
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence}")
        share = (1 - confidence) / 2
        return np.stack([self.lower(share, simultaneous=False), self.upper(share, simultaneous=False)], axis=1)

    @checked
    def radius(self, delta: float, *, simultaneous: bool = True) -> FloatArray:
        """Return (n_c,) radii: with probability at least 1 − ``delta``, |values − ρ| is no larger.

        ``simultaneous`` says whether the statement is about all features at once, or about each one alone. Where only
        one side matters, `lower` and `upper` say more.
        """
        check_delta(delta)
        lower, upper = (side(delta / 2, simultaneous=simultaneous) for side in (self.lower, self.upper))
        return np.maximum(np.maximum(self.values - lower, upper - self.values), 0.0)

    @checked
    def class_radius(self, costs: Costs, delta: float) -> float:
        """With probability at least 1 − ``delta``: a bound of max over the class of ⟨w, values − ρ⟩, see the module.

        With the same probability it bounds that of the difference the other way round. ``costs`` are those of the
        estimate.
        """
        check_delta(delta)
        n_costs = self.values.size
        if costs.n_costs not in (None, n_costs):
            raise ValueError(f"costs must be the {n_costs} of the estimate, got {costs}")
        reach, norm = costs.weights.radius(n_costs), costs.row_norm
        norm = math.sqrt(n_costs) if norm is None else norm
        if self.exact:
            return reach * math.sqrt(n_costs) * self.error
        self._check_reach(np.linalg.norm(self.trajectory_values, axis=1).max(initial=0.0), norm, "rows of norms")
        tail_share = _TAIL_SHARE * delta
        share = (delta - tail_share) / 2
        deviation = min(costs.deviation(self.copies * self.n_trajectories, share), reach * self._bernstein(norm, share))
        shift = float(np.linalg.norm(self.values - self.trajectory_values.mean(axis=0)))
        return deviation + reach * (norm * self._mean_unseen(tail_share) + shift)

    @staticmethod
    def _check_reach(largest: float, allowed: float, what: str) -> None:
        """Refuse costs that are larger than they say: no bound would hold."""
        if largest > allowed * _LARGEST_AVERAGE:
            raise ValueError(
                f"trajectory_values must have {what} of at most {allowed:g}, got {largest:g}: the costs are larger "
                "than they say"
            )

    def _bernstein(self, norm: float, delta: float) -> float:
        n = self.n_trajectories
        if norm == 0:
            return 0.0
        first, second = self.trajectory_values[0 : n - 1 : 2], self.trajectory_values[1:n:2]
        if n < 2:
            return math.inf
        m = self.copies * n
        halves = ((first - second) ** 2).sum(axis=1, keepdims=True) / 2
        variance = (
            2 * norm**2 * float(upper_bound(np.minimum(halves / (2 * norm**2), 1.0), delta / 2, copies=self.copies)[0])
        )
        confidence = math.log(4 / delta)
        return math.sqrt(2 * variance * confidence / m) + 4 * norm * confidence / (3 * m)

    def _mean_unseen(self, delta: float) -> float:
        """Bound E q from above."""
        designed = None if self.cut_elsewhere else self.horizon
        largest = 1.0 if designed is None else float(self.criterion.unseen(designed))
        if largest == 0:
            return 0.0
        shares = np.minimum(self.unseen_mass[:, None] / largest, 1.0)
        return largest * float(upper_bound(shares, delta, copies=self.copies)[0])


@checked
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
        done = np.asarray(demonstrations.actions).astype(np.int64)  # unsigned ones would make floats of the rows
        rows = demonstrations.acted_on.astype(np.int64) * n_actions + done
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
    if rows.size < offsets[-1] or (rows.size and not 0 <= rows.min() <= rows.max() < len(table)):
        raise ValueError(  # the kernel does not look
            f"rows must be {offsets[-1]} rows of a table of {len(table)}, got {rows.size} from "
            f"{rows.min(initial=0)} to {rows.max(initial=0)}"
        )
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
