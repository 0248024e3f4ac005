"""A policy's expected costs beside the expert's, or beside those of demonstrations: how far apart they can be.

Over costs with weights in the simplex the bound is the largest difference of one-sided bounds. Over other classes the
norm of the difference is bounded directly, see `CostEstimate.class_radius`; where costs are a table, also from
two-sided bounds of each cost, and the better of the two counts, each at half of δ. No bound exceeds what is possible.

**Pairs.** Held-out demonstrations were neither learned from nor looked at, so the policy may begin where each of them
began: the differences D_j of what policy and expert pay from the same start are independent, and often vary less than
each of both. D_j / 2 lies in [−1, 1], and everything that holds for the costs of trajectories holds for it. Pairs and
no pairs take half of δ each, and the better counts. With the demonstrations that were learned from this would be false:
a policy that copies what was shown and fails elsewhere has differences of zero.

**Parts.** The bound is what was found, and what is added for rollouts, for demonstrations, and for what was not seen of
both, in this order. Where the model is known the second may be negative: no expert pays as little as an unlucky
estimate says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from lfd_gym.assessment.expert_bounds import LeastCosts
from lfd_gym.costs.costs import Costs
from lfd_gym.demonstrations.estimation import CostEstimate
from lfd_gym.validation import FloatArray

#: Longer than any trajectory: of one that was cut there nothing is missing.
_FOR_EVER = 2**40


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two estimates of expected costs.

    Attributes
    ----------
    costs
        Which they are.
    ours
        Of the policy.
    theirs
        From demonstrations.
    about_expert
        Whether the expert behind the demonstrations is compared with, or these as they are.
    least
        Where the model is known, what it says of how little the expert pays: of each cost, 1, and of each with its sign
        changed, −1.
    paired
        Half of the differences between policy and expert from the same starts.
    """

    costs: Costs
    ours: CostEstimate
    theirs: CostEstimate
    about_expert: bool
    least: Mapping[int, LeastCosts] = field(default_factory=dict)
    paired: CostEstimate | None = None

    @property
    def found(self) -> float:
        """The distance with estimates in place of expectations."""
        return float(self.costs.weights.support(self.ours.values - self.theirs.values))

    @property
    def standard_error(self) -> float:
        """That of what was found, for the weights that attain it."""
        weights = self.costs.weights.maximiser(self.ours.values - self.theirs.values)
        parts = (self.ours, self.theirs) if self.about_expert else (self.ours,)
        paid = [part.trajectory_values @ weights for part in parts if part.n_trajectories > 1]
        return float(np.sqrt(sum(each.var(ddof=1) / each.size for each in paid)))

    def bound(self, delta: float) -> float:
        """How far apart they can be, with probability 1 − ``delta``."""
        if self.paired is None or not self.about_expert:
            return self._apart(delta)
        return min(self._apart(delta / 2), self._in_pairs(delta / 2, self.paired))

    def parts(self, delta: float) -> dict[str, float]:
        """Return what the bound adds to what was found, and why."""
        seen = self._whole()
        without_demonstrations = replace(seen, about_expert=False).bound(delta)
        own = "planner" if self.ours.exact else "rollouts"
        if not self.about_expert:
            return {
                own: without_demonstrations - self.found,
                "truncation": self.bound(delta) - without_demonstrations,
            }
        whole = seen.bound(delta)
        return {
            own: without_demonstrations - self.found,
            "demonstrations": whole - without_demonstrations,
            "truncation": self.bound(delta) - whole,
        }

    def forecast(self, delta: float, demonstrations: float, rollouts: float) -> float:
        """Return what the bound would be with so many times as many of both, if they were like those there are."""
        more = replace(
            self,
            ours=_times(self.ours, rollouts),
            theirs=_times(self.theirs, demonstrations),
            paired=None if self.paired is None else _times(self.paired, demonstrations),
        )
        return more.bound(delta)

    def _whole(self) -> Comparison:
        """Return the same as if nothing had been cut."""
        least = {sign: replace(known, paid=sign * self.theirs.trajectory_values) for sign, known in self.least.items()}
        paired = None if self.paired is None else _uncut(self.paired)
        return replace(self, ours=_uncut(self.ours), theirs=_uncut(self.theirs), least=least, paired=paired)

    def _apart(self, delta: float) -> float:
        weights = self.costs.weights
        if weights.nonnegative:  # only that the policy pays more counts
            share = delta / self._n_unsure
            high = self.ours.upper(share) - self._expert_side(share, 1)
            return weights.largest_within(high, np.zeros_like(high))
        if self.costs.table is None:
            return self._by_norm(delta)
        return min(self._by_norm(delta / 2), self._by_sides(delta / 2))

    def _in_pairs(self, delta: float, halves: CostEstimate) -> float:
        weights = self.costs.weights
        if weights.nonnegative:
            high = 2 * halves.upper(delta)
            return weights.largest_within(high, np.zeros_like(high))
        apart = 2 * float(weights.support(halves.values)) + 2 * halves.class_radius(self.costs, delta)
        return min(apart, self.costs.largest_distance)

    @property
    def _n_unsure(self) -> int:
        """How many estimates share the confidence, at least one."""
        return max(1, (not self.ours.exact) + self.about_expert)

    def _by_norm(self, delta: float) -> float:
        theirs = _as_seen(self.theirs) if self.about_expert else self.theirs
        apart = float(self.costs.weights.support(self.ours.values - theirs.values))
        for estimate in (self.ours, theirs) if self.about_expert else (self.ours,):
            apart += estimate.class_radius(self.costs, delta / self._n_unsure)
        return min(apart, self.costs.largest_distance)

    def _by_sides(self, delta: float) -> float:
        share = delta / (2 * self._n_unsure)
        high = self.ours.upper(share) - self._expert_side(share, 1)
        low = self.ours.lower(share) + self._expert_side(share, -1)
        return self.costs.weights.largest_within((high + low) / 2, (high - low) / 2)

    def _expert_side(self, delta: float, sign: int) -> FloatArray:
        """Return lower bounds of ``sign`` times the costs that are compared with."""
        if not self.about_expert:
            return sign * self.theirs.values
        if self.least:
            return self.least[sign].bound(delta, self.theirs.copies)
        return self.theirs.lower(delta) if sign == 1 else -self.theirs.upper(delta)


def _times(estimate: CostEstimate, times: float) -> CostEstimate:
    return replace(estimate, copies=times * estimate.copies)


def _uncut(estimate: CostEstimate) -> CostEstimate:
    nothing = np.zeros_like(estimate.unseen_mass)
    return replace(estimate, unseen_mass=nothing, horizon=_FOR_EVER, cut_elsewhere=False)


def _as_seen(estimate: CostEstimate) -> CostEstimate:
    """Return the estimate that leaves out what was not seen: bounds around it are the smallest."""
    return replace(estimate, values=estimate.trajectory_values.mean(axis=0), truncation="paper")
