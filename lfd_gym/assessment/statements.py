"""What a certificate says: two statements, what they consist of, and what would bring them to a wanted value.

Each statement is true with probability 1 − δ:

- *to these demonstrations*: how far the policy's expected costs can be from what the demonstrations paid. It rests on
  the model or on fresh rollouts alone, and is as tight as there is patience.
- *to the expert*: the same with the demonstrations' own uncertainty added. It is refused where the costs were chosen
  after looking at the demonstrations, unless ``held_out`` ones are given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from lfd_gym.arguments import checked
from lfd_gym.assessment.tables import at_least, at_most, html_table, probability
from lfd_gym.model.criterion import Criterion

About = Literal["expert", "demonstrations"]

#: As many times as many as this are taken for infinitely many.
_VERY_MANY = 1e7
#: Of these demonstrations so much may have been cut off without a word.
_WORTH_SAYING = 0.01
#: How near a forecast of what is needed comes, as a ratio.
_NEAR = 1.01
#: Eight of ten normal numbers are no more standard deviations from their mean than this.
_EIGHT_OF_TEN = 1.2816


@dataclass(frozen=True)
class Statement:
    """A bound on the distance to the expert, or to demonstrations.

    Attributes
    ----------
    about
        Whom the policy is compared with.
    found
        δ_C = max over the class of ρ_c(π) − ρ_c, with estimates in place of expectations.
    bound
        What it is at most.
    parts
        What the bound adds to what was found, by reason.
    n_demonstrations
        How many it rests on.
    """

    about: About
    found: float
    bound: float
    parts: Mapping[str, float]
    n_demonstrations: int


@dataclass(frozen=True)
class Needed:
    """What would bring a bound to a wanted value, if what comes is like what there is.

    Attributes
    ----------
    bound
        The wanted value.
    demonstrations, rollouts
        How many in all; None if there are none of them, or if no number suffices.
    between
        What was found by now is not the truth. In eight of ten cases so many are needed: of demonstrations where the
        bound is about the expert, else of rollouts. The second is None if there may be no number that suffices.
    reason
        Why no number suffices, else empty.
    """

    bound: float
    demonstrations: int | None = None
    rollouts: int | None = None
    between: tuple[int, int | None] | None = None
    reason: str = ""

    def __str__(self) -> str:
        if self.reason:
            return f"a bound of {self.bound:g} cannot be reached: {self.reason}"
        counts = (("demonstrations", self.demonstrations), ("rollouts", self.rollouts))
        said = " and ".join(f"{count:,} {name}" for name, count in counts if count is not None)
        about = f"a bound of {self.bound:g} needs about {said or 'nothing more'}"
        if self.between is None or self.between[0] == self.between[1]:
            return about
        fewest, most = self.between
        return (
            f"{about} (8 of 10 times {fewest:,} {'or more, or no number suffices' if most is None else f'to {most:,}'})"
        )


@dataclass(frozen=True)
class Certificate:
    """How far a policy can be from the expert, and from the demonstrations; print it to read it.

    Attributes
    ----------
    delta
        Probability of failure, of each statement. What was computed from the model is certain; demonstrations and
        rollouts are not.
    evidence
        What it rests on.
    criterion
        How costs add up.
    to_demonstrations, to_expert
        The statements; None where they cannot be made.
    refused
        Why nothing is said about the expert, empty if something is.
    random_distance
        What was found of random play, to compare with: its distance to those that the strongest statement rests on.
    random_is_bound
        Whether that is, without an environment, not random play's distance but what the same data say that it is at
        most.
    largest_distance
        No two policies can be farther apart in the class.
    assumptions
        What must be true beside, in words.
    per_norm
        Whether the class is the unit ball of a space of costs: a cost of norm B is bounded by B times the bound.
    unseen_mass
        How much of the weight of these demonstrations was cut off: it counts as nothing in the distance to them.
    """

    delta: float
    evidence: str
    criterion: Criterion
    to_demonstrations: Statement | None
    to_expert: Statement | None
    refused: str = ""
    random_distance: float | None = None
    random_is_bound: bool = False
    largest_distance: float = 2.0
    assumptions: tuple[str, ...] = ()
    per_norm: bool = False
    n_rollouts: int | None = None
    unseen_mass: float = 0.0
    _forecasts: Mapping[About, Callable[[float, float], float]] = field(default_factory=dict, repr=False, compare=False)
    _standard_error: float = field(default=0.0, repr=False, compare=False)
    _random_distances: Mapping[About, float] = field(default_factory=dict, repr=False, compare=False)

    @property
    def strongest(self) -> Statement:
        """The statement about the expert, or, where there is none, that about the demonstrations."""
        found = self.to_expert or self.to_demonstrations
        assert found is not None
        return found

    @property
    def about(self) -> About:
        """Whom the strongest statement compares with."""
        return self.strongest.about

    @property
    def cost_distance(self) -> float:
        """What was found, of the strongest statement."""
        return self.strongest.found

    @property
    def cost_distance_bound(self) -> float:
        """The bound of the strongest statement. Where the model is known it may be below what was found."""
        return self.strongest.bound

    @property
    def empty(self) -> bool:
        """Whether the strongest statement says nothing: random play was found to be no farther than the bound."""
        return self._empty(self.strongest)

    def _empty(self, statement: Statement) -> bool:
        random = self._random(statement)
        return statement.bound >= (self.largest_distance if random is None else random)

    def _random(self, statement: Statement) -> float | None:
        """Return what was found of random play, compared with those that a statement is about."""
        return self._random_distances.get(statement.about, self.random_distance)

    def forecast(self, demonstrations: float, rollouts: float) -> float:
        """Return the strongest bound with so many times as many of both, as if what comes were like what there is."""
        return self._forecasts[self.about](demonstrations, rollouts)

    @checked
    @checked
    def needed(self, bound: float) -> Needed:
        """Say how many demonstrations and rollouts, in all, would bring the strongest bound to ``bound``.

        It is a forecast: as if what comes were like what there is, and the policy stayed what it is. As many rollouts
        as there are serve if they can; if not, so many that half of the way is left for the demonstrations.

        Examples
        --------
        >>> import gymnasium as gym, numpy as np, lfd_gym as lfd
        >>> env = gym.make("lfd_gym/StochasticGridworld-v0", size=4)
        >>> expert = lfd.FiniteMDP.from_env(env, 0.9).optimal_policy(env.unwrapped.cost_features[:, 0])
        >>> task = lfd.Task(env, lfd.collect(env, expert, 50, 100, np.random.default_rng(0)), discount=0.9)
        >>> certificate = lfd.certify(expert, task)
        >>> bool(certificate.needed(0.05).demonstrations > certificate.needed(0.1).demonstrations > 50)
        True
        """
        if not np.isfinite(bound):  # it may be negative: better than the expert
            raise ValueError(f"bound must be finite, got {bound}")
        now, forecast = self.strongest, self.forecast
        least = forecast(_VERY_MANY, _VERY_MANY)
        if least > bound:
            why = f"the policy was found to be {now.found:.3g} away, it must itself become better"
            if now.parts.get("truncation", 0.0) > bound - now.found > 0:
                why = f"what was cut off adds {now.parts['truncation']:.3g}: longer ones are needed, not more"
            return Needed(bound, reason=why)
        rollouts = 1.0
        if self.n_rollouts is not None and forecast(_VERY_MANY, 1.0) > bound:
            halfway = bound if self.about == "demonstrations" else (bound + least) / 2
            rollouts = _least_times(lambda times: forecast(_VERY_MANY, times) <= halfway, 1.0)
        asked = None if self.n_rollouts is None else int(np.ceil(rollouts * self.n_rollouts))
        if self.about == "demonstrations":
            between = self._between(lambda times: forecast(_VERY_MANY, times), bound, self.n_rollouts, 1.0)
            return Needed(bound, None, asked, between)
        fewest = 1 / now.n_demonstrations
        times = _least_times(lambda times: forecast(times, rollouts) <= bound, fewest)
        between = self._between(lambda times: forecast(times, rollouts), bound, now.n_demonstrations, fewest)
        return Needed(bound, int(np.ceil(times * now.n_demonstrations)), asked, between)

    def _between(
        self, forecast: Callable[[float], float], bound: float, there_are: int | None, fewest: float
    ) -> tuple[int, int | None] | None:
        """Return how many are needed if what will be found is less, or more, than what was found by now.

        Of n like those m that were seen, the mean is away from that of the m by a variance of (1/m − 1/n) of one's.
        """
        if there_are is None:
            return None
        ends = []
        for away in (-_EIGHT_OF_TEN, _EIGHT_OF_TEN):

            def enough(times: float, away: float = away) -> bool:
                spread = self._standard_error * np.sqrt(1 - 1 / max(times, 1.0))
                return bool(forecast(times) + away * spread <= bound)

            times = _least_times(enough, fewest)
            ends.append(int(np.ceil(times * there_are)) if times < _VERY_MANY else None)
        return ends[0] or 1, ends[1]

    # -- in words -----------------------------------------------------------------------------------------------------

    @property
    def conclusion(self) -> str:
        """The sentence that answers the question: about the expert, or about the demonstrations if that says more."""
        said = _sentence(self._first, self.delta)
        random = self._random(self._first)
        if random is not None:
            said += (
                f"; of random play the data say {random:.3f}"
                if self.random_is_bound
                else f"; random play is {abs(random):.3f} {'better' if random < 0 else 'worse'}"
            )
        return f"{said}. This says nothing." if self._empty(self._first) else f"{said}."

    @property
    def _first(self) -> Statement:
        """The statement to begin with."""
        other = self.to_demonstrations
        return other if self.empty and other is not None and not self._empty(other) else self.strongest

    def _rows(self) -> list[tuple[str, str, str]]:
        """Return what the bounds consist of, of both statements."""
        both = self.to_demonstrations, self.to_expert
        reasons = dict.fromkeys(reason for statement in both if statement for reason in statement.parts)

        def row(
            name: str, value: Callable[[Statement], float | None], shown: Callable[[float], str] = "{:.4f}".format
        ) -> tuple[str, str, str]:
            numbers = [None if statement is None else value(statement) for statement in both]
            return name, *("" if number is None else shown(number) for number in numbers)  # type: ignore[return-value]

        def rounded_up(number: float) -> str:
            return at_most(number, 4)

        unit = 1 / self.criterion.scale
        return [
            row("distance found", lambda statement: statement.found),
            *(
                row(f"  + {reason}", lambda statement, reason=reason: statement.parts.get(reason))  # type: ignore[misc]
                for reason in reasons
            ),
            row("at most", lambda statement: statement.bound, rounded_up),
            row("as a sum of rewards, per unit", lambda statement: unit * statement.bound, rounded_up),
        ]

    def _remarks(self) -> list[str]:
        others = (
            statement
            for statement in (self.to_expert, self.to_demonstrations)
            if statement is not None and statement is not self._first
        )
        return [
            *(f"{_sentence(each, self.delta)}{', which says nothing' * self._empty(each)}." for each in others),
            *([f"Nothing is said about the expert: {self.refused}."] if self.refused else []),
            *(
                [f"{100 * self.unseen_mass:.3g} % of these demonstrations was cut off and counts as nothing."]
                if self.to_demonstrations is not None and self.unseen_mass > _WORTH_SAYING
                else []
            ),
            *(["A cost of norm B is bounded by B times as much."] if self.per_norm else []),
            *(f"Assumed: {assumption}." for assumption in self.assumptions),
            f"It rests on {self.evidence}; {self.criterion}.",
        ]

    def __str__(self) -> str:
        lines = [self.conclusion, *self._remarks(), f"{'':32}{'demonstrations':>16}{'expert':>10}"]
        lines += [f"  {name:30}{first:>16}{second:>10}" for name, first, second in self._rows()]
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        heading = " ".join([self.conclusion, *self._remarks()])
        return html_table(heading, ("", "demonstrations", "expert"), self._rows())

    def to_dict(self) -> dict[str, Any]:
        """Return everything that it says, for a file."""
        return {
            "conclusion": self.conclusion,
            "about": self.about,
            "cost_distance": self.cost_distance,
            "cost_distance_bound": self.cost_distance_bound,
            "empty": self.empty,
            "delta": self.delta,
            "evidence": self.evidence,
            "discount": self.criterion.discount,
            "horizon": self.criterion.horizon,
            "to_demonstrations": None if self.to_demonstrations is None else asdict(self.to_demonstrations),
            "to_expert": None if self.to_expert is None else asdict(self.to_expert),
            "refused": self.refused,
            "random_distance": self.random_distance,
            "random_is_bound": self.random_is_bound,
            "largest_distance": self.largest_distance,
            "assumptions": list(self.assumptions),
            "per_norm": self.per_norm,
            "n_rollouts": self.n_rollouts,
            "unseen_mass": self.unseen_mass,
        }


def _sentence(statement: Statement, delta: float) -> str:
    whom = "the expert" if statement.about == "expert" else "these demonstrations"
    sure = f"({probability(delta)})"
    if statement.bound < 0:
        return f"At least {at_least(-statement.bound, 3)} better than {whom} in every cost of the class {sure}"
    return f"At most {at_most(statement.bound, 3)} worse than {whom} in any cost of the class {sure}"


def _least_times(enough: Callable[[float], bool], fewest: float) -> float:
    """Return about the smallest number from ``fewest`` on that is enough; more is enough too."""
    if enough(fewest):
        return fewest
    low, high = fewest, 2 * fewest
    while not enough(high) and high < _VERY_MANY:
        low, high = high, 2 * high
    while high > _NEAR * low:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
