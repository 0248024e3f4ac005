"""Certificates: how far a policy can be from the expert.

Two statements, each of which is true with probability 1 − δ:

- *to these demonstrations*: how far its expected costs can be from what the demonstrations paid. It rests on the model
  or on fresh rollouts alone, and is as tight as there is patience.
- *to the expert*: the same with the demonstrations' own uncertainty added. It is refused where the costs were chosen
  after looking at the demonstrations, unless ``held_out`` ones are given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from lfd_gym.arguments import checked
from lfd_gym.assessment.comparison import Comparison
from lfd_gym.assessment.expert_bounds import LeastCosts, least_expert_costs
from lfd_gym.assessment.logged_data import mean_bound, weight_after_disagreement
from lfd_gym.assessment.tables import html_table
from lfd_gym.costs.sets import Ball
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.estimation import CostEstimate, Truncation, sampled_costs
from lfd_gym.model.criterion import Criterion
from lfd_gym.model.generative_model import TabularModel
from lfd_gym.policies.conversion import PolicyLike, as_policy
from lfd_gym.policies.tables import UniformPolicy
from lfd_gym.task import Task
from lfd_gym.validation import check_delta

About = Literal["expert", "demonstrations"]

#: Rollouts of a table, which take no time; of random play, which is only estimated.
_N_ROLLOUTS, _N_RANDOM = 10_000, 200
#: What is left of the discounted sum where rollouts that begin like held-out demonstrations end.
_TAIL = 1e-3
#: As many times as many as this are taken for infinitely many.
_VERY_MANY = 1e7
#: How near a forecast of what is needed comes, as a ratio.
_NEAR = 1.01


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
    reason
        Why no number suffices, else empty.
    """

    bound: float
    demonstrations: int | None = None
    rollouts: int | None = None
    reason: str = ""

    def __str__(self) -> str:
        if self.reason:
            return f"a bound of {self.bound:g} cannot be reached: {self.reason}"
        counts = (("demonstrations", self.demonstrations), ("rollouts", self.rollouts))
        said = " and ".join(f"{count:,} {name}" for name, count in counts if count is not None)
        return f"a bound of {self.bound:g} needs about {said or 'nothing more'}"


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
        What was found of random play, to compare with.
    largest_distance
        No two policies can be farther apart in the class.
    assumptions
        What must be true beside, in words.
    per_norm
        Whether the class is the unit ball of a space of costs: a cost of norm B is bounded by B times the bound.
    """

    delta: float
    evidence: str
    criterion: Criterion
    to_demonstrations: Statement | None
    to_expert: Statement | None
    refused: str = ""
    random_distance: float | None = None
    largest_distance: float = 2.0
    assumptions: tuple[str, ...] = ()
    per_norm: bool = False
    n_rollouts: int | None = None
    _forecasts: Mapping[About, Callable[[float, float], float]] = field(default_factory=dict, repr=False, compare=False)

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
        compared = self.largest_distance if self.random_distance is None else self.random_distance
        return statement.bound >= compared

    def forecast(self, demonstrations: float, rollouts: float) -> float:
        """Return the strongest bound with so many times as many of both, as if what comes were like what there is."""
        return self._forecasts[self.about](demonstrations, rollouts)

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
            return Needed(bound, None, asked)
        fewest = 1 / now.n_demonstrations
        times = _least_times(lambda times: forecast(times, rollouts) <= bound, fewest)
        return Needed(bound, int(np.ceil(times * now.n_demonstrations)), asked)

    # -- in words -----------------------------------------------------------------------------------------------------

    @property
    def conclusion(self) -> str:
        """The sentence that answers the question: about the expert, or about the demonstrations if that says more."""
        said = _sentence(self._first, self.delta)
        if self.random_distance is not None:
            said += f"; random play is {self.random_distance:.3f} worse"
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

        def row(name: str, value: Callable[[Statement], float | None]) -> tuple[str, str, str]:
            numbers = [None if statement is None else value(statement) for statement in both]
            return name, *("" if number is None else f"{number:.4f}" for number in numbers)  # type: ignore[return-value]

        unit = 1 / self.criterion.scale
        return [
            row("distance found", lambda statement: statement.found),
            *(
                row(f"  + {reason}", lambda statement, reason=reason: statement.parts.get(reason))  # type: ignore[misc]
                for reason in reasons
            ),
            row("at most", lambda statement: statement.bound),
            row("as a sum of rewards, per unit", lambda statement: unit * statement.bound),
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
            "largest_distance": self.largest_distance,
            "assumptions": list(self.assumptions),
            "per_norm": self.per_norm,
            "n_rollouts": self.n_rollouts,
        }


def _sentence(statement: Statement, delta: float) -> str:
    whom = "the expert" if statement.about == "expert" else "these demonstrations"
    sure = f"({100 * (1 - delta):.4g} %)"
    if statement.bound < 0:
        return f"At least {-statement.bound:.3f} better than {whom} in every cost of the class {sure}"
    return f"At most {statement.bound:.3f} worse than {whom} in any cost of the class {sure}"


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


@checked
def certify(
    policy: PolicyLike,
    task: Task,
    *,
    delta: float = 0.05,
    rng: np.random.Generator | None = None,
    deterministic: bool = False,
    n_rollouts: int | None = None,
    held_out: Demonstrations | None = None,
    expert: Literal["any", "deterministic"] = "any",
    truncation: Truncation = "paper",
) -> Certificate:
    """Bound how much worse than the expert any policy is, whoever learned it and however.

    It is about the cost distance δ_C(π, π_E), the largest excess of the policy's expected cost over the expert's in any
    cost of the class. The bound rests on the demonstrations and, where the model is not known, on fresh rollouts of the
    policy. Costs that were chosen after looking at the demonstrations, such as the default ones of a continuous task,
    say nothing about the expert behind them: the certificate is then about the distance to these demonstrations, unless
    ``held_out`` ones are given.

    Parameters
    ----------
    policy
        Anything that `lfd_gym.as_policy` takes.
    task
        With demonstrations and costs. Without an environment see `lfd_gym.assessment.logged_data`: it takes
        ``held_out`` demonstrations of a ``"deterministic"`` expert.
    delta
        Probability of failure.
    rng
        Drives the rollouts; what it draws must not have been used in training. Not used where the model is known.
    deterministic
        Whether it is the policy's best actions that are certified.
    n_rollouts
        How many rollouts, where the model is not known: 10,000 of a table, see `Task.expected_costs` for others.
    held_out
        Demonstrations of the same expert that were neither learned from nor looked at when costs were chosen; the
        expert's expected costs are then estimated from them alone. With a simulator whose states observations tell, the
        policy is also compared with each of them from where it began.
    expert
        ``"deterministic"``: the expert is taken to do the same whenever it is in the same state, which says much more
        where the model is known. The certificate says that it assumes this; if it is not true, the bound may be false.
    truncation
        What is done about the unseen end of each demonstration, see `feature_expectations`. It moves
        ``cost_distance``, not the bound.

    Examples
    --------
    >>> import gymnasium as gym, numpy as np, lfd_gym as lfd
    >>> rng = np.random.default_rng(0)
    >>> env = gym.make("lfd_gym/StochasticGridworld-v0", size=5)
    >>> mdp, costs = lfd.FiniteMDP.from_env(env, discount=0.9), env.unwrapped.cost_features
    >>> demos = lfd.collect(env, mdp.optimal_policy(costs[:, 0]), 1000, 100, rng)
    >>> certificate = lfd.certify(np.full((25, 4), 0.25), lfd.Task(env, demos, discount=0.9), delta=0.05)
    >>> 0 < certificate.cost_distance_bound < 1
    True
    """
    check_delta(delta)
    if expert not in ("any", "deterministic"):
        raise ValueError(f"expert must be 'any' or 'deterministic', got {expert!r}")
    if task.access == "demonstrations":
        return _from_data_alone(as_policy(policy, deterministic=deterministic), task, delta, held_out, expert)
    if expert == "deterministic":
        task.needs("model", "certifying with a deterministic expert")
    shown = None
    if held_out is None or task.demonstrations is not None:
        shown = task.expert_features(truncation)
    theirs = shown if held_out is None else task.expert_features(truncation, held_out)
    if n_rollouts is None and task.access == "simulator" and isinstance(task.simulator, TabularModel):
        n_rollouts = _N_ROLLOUTS
    ours = task.expected_costs(policy, rng=rng, n_rollouts=n_rollouts, deterministic=deterministic)
    comparisons: dict[About, Comparison] = {}
    if shown is not None:
        comparisons["demonstrations"] = Comparison(task.costs, ours, shown, about_expert=False)
    paired = None
    if theirs is not None and (held_out is not None or not task.costs.chosen_from_demonstrations):
        if held_out is not None and rng is not None:
            paired = _paired(policy, task, held_out, theirs, ours.n_trajectories, deterministic, rng)
        least = _least(task, theirs, held_out, expert == "deterministic")
        comparisons["expert"] = Comparison(task.costs, ours, theirs, True, least, paired)
    strongest = comparisons.get("expert") or comparisons["demonstrations"]
    statements = {about: _statement(about, comparison, delta) for about, comparison in comparisons.items()}
    kinds = [
        "the known model" if ours.exact else f"{ours.n_trajectories:,} rollouts",
        *([f"{len(task.demonstrations):,} demonstrations"] if shown is not None else []),
        *([f"{len(held_out):,} held-out demonstrations"] if held_out is not None else []),
        *(["rollouts paired with them"] if paired is not None else []),
    ]
    return Certificate(
        delta=delta,
        evidence=", ".join(kinds),
        criterion=task.criterion,
        to_demonstrations=statements.get("demonstrations"),
        to_expert=statements.get("expert"),
        refused=""
        if "expert" in statements
        else "the costs were chosen after looking at the demonstrations; give others that were held_out, or costs that "
        "were chosen before",
        random_distance=_random_distance(task, strongest, rng),
        largest_distance=task.costs.largest_distance,
        assumptions=("the expert is deterministic",) if expert == "deterministic" else (),
        per_norm=task.costs.weights == Ball() and task.costs.table is None,
        n_rollouts=None if ours.exact else ours.n_trajectories,
        _forecasts={about: _forecast(comparison, delta) for about, comparison in comparisons.items()},
    )


def _statement(about: About, comparison: Comparison, delta: float) -> Statement:
    return Statement(
        about, comparison.found, comparison.bound(delta), comparison.parts(delta), comparison.theirs.n_trajectories
    )


def _forecast(comparison: Comparison, delta: float) -> Callable[[float, float], float]:
    return lambda demonstrations, rollouts: comparison.forecast(delta, demonstrations, rollouts)


def _random_distance(task: Task, comparison: Comparison, rng: np.random.Generator | None) -> float:
    """Return what is found of random play, from fewer rollouts."""
    if comparison.ours.exact:
        dynamics = task.dynamics
        assert dynamics is not None
        uniform: PolicyLike = np.full((dynamics.n_states, dynamics.n_actions), 1 / dynamics.n_actions)
        random = task.expected_costs(uniform)
    else:
        count = min(_N_RANDOM, comparison.ours.n_trajectories)
        random = task.expected_costs(UniformPolicy(task.action_space), rng=rng, n_rollouts=count)
    return float(task.costs.weights.support(random.values - comparison.theirs.values))


def _least(
    task: Task, theirs: CostEstimate, held_out: Demonstrations | None, deterministic: bool
) -> dict[int, LeastCosts]:
    """Return what a known model says of how little the expert pays, and of how much."""
    if task.dynamics is None:
        return {}
    used = task.demonstrations if held_out is None else held_out
    agreeing = [part for part in (used, task.demonstrations) if part is not None] if deterministic else []
    signs = (1,) if task.costs.weights.nonnegative else (1, -1)
    return {
        sign: least_expert_costs(
            task.dynamics,
            sign * task.cost_table,
            CostEstimate(sign * theirs.values, sign * theirs.trajectory_values, theirs.unseen_mass, theirs.criterion),
            used,
            agreeing_with=agreeing,
        )
        for sign in signs
    }


def _paired(
    policy: PolicyLike,
    task: Task,
    held_out: Demonstrations,
    theirs: CostEstimate,
    n_rollouts: int,
    deterministic: bool,
    rng: np.random.Generator,
) -> CostEstimate | None:
    """Return half of the differences between policy and expert from where each held-out demonstration began."""
    if task.access != "simulator" or not hasattr(task.simulator, "states_of"):
        return None
    simulator, n_pairs = task.simulator, len(held_out)
    n_each = max(1, n_rollouts // n_pairs)
    firsts = np.asarray(simulator.states_of(held_out.observations[held_out.offsets[:-1] + np.arange(n_pairs)]))
    ours = sampled_costs(
        as_policy(policy, deterministic=deterministic),
        simulator,
        task.costs,
        task.criterion,
        n_rollouts=n_pairs * n_each,
        horizon=task.criterion.steps(_TAIL),
        rng=rng,
        initial_states=np.repeat(firsts, n_each, axis=0),
    )
    means = ours.trajectory_values.reshape(n_pairs, n_each, -1).mean(axis=1)
    unseen = ours.unseen_mass.reshape(n_pairs, n_each).mean(axis=1)
    halves = (means - theirs.trajectory_values) / 2
    return CostEstimate(halves.mean(axis=0), halves, (unseen + theirs.unseen_mass) / 2, task.criterion)


def _from_data_alone(
    policy: Any, task: Task, delta: float, held_out: Demonstrations | None, expert: str
) -> Certificate:
    """Certify by how long the policy does as a deterministic expert does."""
    if held_out is None:
        raise ValueError(
            "held_out must be given where there is no env: only demonstrations that the policy was not learned from "
            "tell how often it does as the expert"
        )
    if expert != "deterministic":
        raise ValueError(
            "expert must be 'deterministic' where there is no env: of an expert that draws its actions demonstrations "
            "do not tell how often a policy does the same. Say so only if it is true"
        )
    task.expert_features("paper", held_out)  # refuses what does not fit
    largest = 2.0 if task.costs is None else task.costs.largest_distance
    apart = weight_after_disagreement(policy, held_out, task.criterion)
    uniform = UniformPolicy(task.action_space)
    random = largest * float(weight_after_disagreement(uniform, held_out, task.criterion).mean())
    found = largest * float(apart.mean())
    bound = largest * mean_bound(apart, delta)
    statement = Statement("expert", found, bound, {"demonstrations": bound - found}, len(held_out))
    return Certificate(
        delta=delta,
        evidence=f"{len(held_out):,} held-out demonstrations, and how long the policy does as they do",
        criterion=task.criterion,
        to_demonstrations=None,
        to_expert=statement,
        random_distance=random,
        largest_distance=largest,
        assumptions=("the expert is deterministic",),
        _forecasts={"expert": lambda demonstrations, _: largest * mean_bound(apart, delta, demonstrations)},
    )
