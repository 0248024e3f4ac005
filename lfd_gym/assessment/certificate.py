"""Certificates: how far a policy can be from the expert, and from the demonstrations.

What is known of both comes together here: the policy's costs from the model or from fresh rollouts, the expert's from
demonstrations, held-out ones if there are any, and from what the model knows. `lfd_gym.assessment.statements` has what
a certificate says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal

import gymnasium as gym
import numpy as np

from lfd_gym._splitmix import own_stream
from lfd_gym.arguments import checked
from lfd_gym.assessment.comparison import Comparison
from lfd_gym.assessment.expert_bounds import LeastCosts, least_expert_costs
from lfd_gym.assessment.logged_data import mean_bound, weight_after_disagreement
from lfd_gym.assessment.statements import About, Certificate, Statement
from lfd_gym.costs.sets import Ball
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.estimation import CostEstimate, Truncation
from lfd_gym.demonstrations.matching import check_provenance
from lfd_gym.demonstrations.pieces import in_pieces, rollouts
from lfd_gym.demonstrations.plausibility import doubt, n_different
from lfd_gym.engines import Engine
from lfd_gym.model.generative_model import TabularModel, check_generator
from lfd_gym.policies.conversion import PolicyLike, as_policy
from lfd_gym.policies.policy import Policy
from lfd_gym.policies.tables import UniformPolicy
from lfd_gym.task import Task
from lfd_gym.validation import check_delta

#: Rollouts of a table, which take no time; of random play, which is only estimated.
_N_ROLLOUTS, _N_RANDOM = 10_000, 200
#: What is left of the discounted sum where rollouts that begin like held-out demonstrations end.
_TAIL = 1e-3


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
    engine: Engine | None = None,
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
        With demonstrations and costs. Without an environment it takes ``held_out`` demonstrations, see
        `lfd_gym.assessment.logged_data`.
    delta
        Probability of failure.
    rng
        Drives the rollouts, by a stream of their own: they are none that were played with the same generator, or with
        one of the same seed, for demonstrations or learning. Not used where the model is known.
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
        Without an environment nothing rests on it.
    truncation
        What is done about the unseen end of each demonstration, see `feature_expectations`. It moves what was found,
        and with it the distance to these demonstrations, but not the bound of that to the expert.
    engine
        Spreads rollouts over processes or machines, with the same result whatever their number: `ProcessEngine` or
        `RayEngine` of `lfd_gym.engines`.

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
    acting = as_policy(policy, deterministic=deterministic)
    rng = None if rng is None else own_stream(check_generator("rng", rng), "certify")
    if held_out is not None:
        held_out = task.held_out(held_out)
    if task.access == "demonstrations":
        return _from_data_alone(acting, task, delta, held_out, rng)
    if expert == "deterministic":
        task.needs("model", "certifying with a deterministic expert")
    shown = None
    if held_out is None or task.demonstrations is not None:
        shown = task.expert_features(truncation)
    theirs = shown if held_out is None else task.expert_features(truncation, held_out)
    if n_rollouts is None and task.access == "simulator" and isinstance(task.simulator, TabularModel):
        n_rollouts = _N_ROLLOUTS
    ours = task.expected_costs(policy, rng=rng, n_rollouts=n_rollouts, deterministic=deterministic, engine=engine)
    comparisons: dict[About, Comparison] = {}
    if shown is not None:
        comparisons["demonstrations"] = Comparison(task.costs, ours, shown, about_expert=False)
    paired = None
    refused = _refusal(task, held_out, expert == "deterministic")
    if theirs is not None and not refused:
        if held_out is not None and rng is not None:
            paired = _paired(acting, task, held_out, theirs, ours.n_trajectories, rng, engine)
        least = _least(task, theirs, held_out, expert == "deterministic")
        comparisons["expert"] = Comparison(task.costs, ours, theirs, True, least, paired)
    if not comparisons:
        raise ValueError(f"held_out cannot be used: {refused}")
    strongest_about: About = "expert" if "expert" in comparisons else "demonstrations"
    strongest = comparisons[strongest_about]
    random = _random_distances(task, comparisons, rng, engine)
    statements = {about: _statement(about, comparison, delta) for about, comparison in comparisons.items()}
    return Certificate(
        delta=delta,
        evidence=_evidence(ours, task.demonstrations, held_out, paired is not None),
        criterion=task.criterion,
        to_demonstrations=statements.get("demonstrations"),
        to_expert=statements.get("expert"),
        refused=refused,
        random_distance=random.get(strongest_about),
        largest_distance=task.costs.largest_distance,
        assumptions=_assumptions(task, held_out, expert == "deterministic"),
        per_norm=task.costs.weights == Ball() and task.costs.table is None,
        n_rollouts=None if ours.exact else ours.n_trajectories,
        _forecasts={about: _forecast(comparison, delta) for about, comparison in comparisons.items()},
        _standard_error=strongest.standard_error,
        _random_distances=random,
        unseen_mass=float(shown.unseen_mass.mean()) if shown is not None and truncation == "paper" else 0.0,
    )


def _refusal(task: Task, held_out: Demonstrations | None, deterministic: bool) -> str:
    """Return why nothing can be said about the expert, empty if something can."""
    if held_out is None and task.costs.chosen_from_demonstrations:
        return (
            "the costs were chosen after looking at the demonstrations; give others that were held_out, or costs that "
            "were chosen before"
        )
    dynamics = task.dynamics
    if dynamics is None and task.access == "simulator" and isinstance(task.simulator, TabularModel):
        dynamics = task.simulator.dynamics
    used = {"demonstrations": task.demonstrations, "held_out": held_out}
    if held_out is not None and not deterministic:
        del used["demonstrations"]
    doubts = {name: doubt(part, dynamics) for name, part in used.items() if part is not None}
    return "; ".join(f"{name} are no independent trajectories of it: {why}" for name, why in doubts.items() if why)


def _assumptions(task: Task, held_out: Demonstrations | None, deterministic: bool) -> tuple[str, ...]:
    """Return what must be true beside, and cannot be told from what is given."""
    found = ["the expert does the same whenever it is in the same state"] if deterministic else []
    try:
        for part in (task.demonstrations, held_out):
            if part is not None:
                check_provenance(part, task.env)
    except ValueError:  # `allow_mismatch` has let it pass
        found.append("what is true of the demonstrations' environment is true of this one, though they are of another")
    return tuple(found)


def _evidence(ours: CostEstimate, shown: Demonstrations | None, held_out: Demonstrations | None, paired: bool) -> str:
    """Say what a certificate rests on."""
    kinds = ["the known model" if ours.exact else _number(ours.n_trajectories, "rollouts")]
    kinds += [_counted(shown, "demonstrations")] if shown is not None else []
    kinds += [_counted(held_out, "held-out demonstrations")] if held_out is not None else []
    return ", ".join(kinds + ["rollouts paired with them"] * paired)


def _counted(demonstrations: Demonstrations, name: str) -> str:
    """Say how many there are, and how many of them differ if that is less than half."""
    different, many = n_different(demonstrations), len(demonstrations)
    return _number(many, name) + (f" ({different:,} different ones)" if 2 * different < many else "")


def _number(many: int, name: str) -> str:
    return f"{many:,} {name.removesuffix('s') if many == 1 else name}"


def _statement(about: About, comparison: Comparison, delta: float) -> Statement:
    return Statement(
        about, comparison.found, comparison.bound(delta), comparison.parts(delta), comparison.theirs.n_trajectories
    )


def _forecast(comparison: Comparison, delta: float) -> Callable[[float, float], float]:
    return lambda demonstrations, rollouts: comparison.forecast(delta, demonstrations, rollouts)


def _random_distances(
    task: Task, comparisons: Mapping[About, Comparison], rng: np.random.Generator | None, engine: Engine | None
) -> dict[About, float]:
    """Return what is found of random play, from fewer rollouts; nothing where no play is uniformly random."""
    if isinstance(task.action_space, gym.spaces.Box) and not task.action_space.is_bounded():
        return {}
    ours = next(iter(comparisons.values())).ours
    if ours.exact:
        dynamics = task.dynamics
        assert dynamics is not None
        uniform: PolicyLike = np.full((dynamics.n_states, dynamics.n_actions), 1 / dynamics.n_actions)
        random = task.expected_costs(uniform)
    else:
        count = min(_N_RANDOM, ours.n_trajectories)
        anybody = UniformPolicy(task.action_space)
        random = task.expected_costs(anybody, rng=rng, n_rollouts=count, engine=engine)
    return {
        about: float(task.costs.weights.support(random.values - comparison.theirs.values))
        for about, comparison in comparisons.items()
    }


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
    policy: Policy,
    task: Task,
    held_out: Demonstrations,
    theirs: CostEstimate,
    n_rollouts: int,
    rng: np.random.Generator,
    engine: Engine | None,
) -> CostEstimate | None:
    """Return half of the differences between policy and expert from where each held-out demonstration began."""
    if task.access != "simulator" or not hasattr(task.simulator, "states_of"):
        return None
    simulator, n_pairs = task.simulator, len(held_out)
    n_each = max(1, n_rollouts // n_pairs)
    firsts = np.asarray(simulator.states_of(held_out.observations[held_out.offsets[:-1] + np.arange(n_pairs)]))
    starts = np.repeat(firsts, n_each, axis=0)
    play = partial(rollouts, simulator, task.costs, task.criterion, task.criterion.steps(_TAIL), initial_states=starts)
    if engine is None:
        ours = play(policy, 0, len(starts), rng)[0]
    else:
        ours = in_pieces(engine, play, policy, task.action_space, len(starts), rng)[0]
    means = ours.trajectory_values.reshape(n_pairs, n_each, -1).mean(axis=1)
    unseen = ours.unseen_mass.reshape(n_pairs, n_each).mean(axis=1)
    halves = (means - theirs.trajectory_values) / 2
    cut = None if ours.horizon is None or theirs.horizon is None else min(ours.horizon, theirs.horizon)
    both = (unseen + theirs.unseen_mass) / 2
    elsewhere = theirs.cut_elsewhere  # rollouts of a simulator are not
    return CostEstimate(halves.mean(axis=0), halves, both, task.criterion, horizon=cut, cut_elsewhere=elsewhere)


def _from_data_alone(
    policy: Policy,
    task: Task,
    delta: float,
    held_out: Demonstrations | None,
    rng: np.random.Generator | None,
) -> Certificate:
    """Certify by how long the policy does as the expert does."""
    if held_out is None:
        raise ValueError(
            "held_out must be given where there is no env: only demonstrations that the policy was not learned from "
            "tell how often it does as the expert"
        )
    why = doubt(held_out, None)
    if why:
        raise ValueError(f"held_out must be independent trajectories: {why}")
    largest = 2.0
    if task.costs is not None:
        task.expert_features(held_out=held_out)  # which refuses costs beyond [-1, 1], and says how many there are
        largest = task.costs.largest_distance
    apart = weight_after_disagreement(policy, held_out, task.criterion, rng)
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
        random_is_bound=True,
        largest_distance=largest,
        _forecasts={"expert": lambda demonstrations, _: largest * mean_bound(apart, delta, demonstrations)},
        _standard_error=largest * float(apart.std() / np.sqrt(apart.size)),
    )
