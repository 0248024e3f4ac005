"""Collecting until a certificate is good enough, with a bound that stays true although one looks on and stops.

It is looked at after n, 2n, 4n, … rollouts or demonstrations, and the k-th look has the share δ/(k (k + 1)) of δ: these
shares sum to δ, so that with probability 1 − δ no look is wrong, whenever one stops.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tqdm import tqdm

from lfd_gym._splitmix import own_stream
from lfd_gym.arguments import checked
from lfd_gym.assessment.certificate import certify
from lfd_gym.assessment.statements import Certificate
from lfd_gym.demonstrations.collection import collect
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.model.generative_model import check_generator
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.policies.conversion import PolicyLike
from lfd_gym.task import Task
from lfd_gym.validation import check_delta

#: What is left of the discounted sum at the end of new demonstrations, where no time limit ends them.
_TAIL = 1e-3


@dataclass(frozen=True)
class Collected:
    """What collecting has led to.

    Attributes
    ----------
    certificate
        The last one, true with probability 1 − δ whenever one has stopped.
    reached
        Whether its bound is as wanted.
    demonstrations
        New ones of the expert; None if rollouts of the policy were collected.
    """

    certificate: Certificate
    reached: bool
    demonstrations: Demonstrations | None = None


@checked
def collect_until(
    task: Task,
    policy: PolicyLike,
    *,
    bound: float,
    rng: np.random.Generator,
    expert: PolicyLike | None = None,
    delta: float = 0.05,
    at_first: int = 20,
    at_most: int = 10_000,
    **settings: Any,
) -> Collected:
    """Collect until ``policy`` is certified to be at most ``bound`` worse.

    Without ``expert`` these are rollouts of the policy, and the bound is that of its distance to the task's
    demonstrations, or to the expert where the certificate speaks of it. With ``expert``, who can be asked for more,
    these are new demonstrations: they are held out from learning, so that the bound is about the expert.

    Parameters
    ----------
    task
        As for `certify`.
    policy
        The policy to certify; it stays the same.
    bound
        Of δ_C, what is wanted.
    rng
        Drives everything, by a stream of its own, see `certify`.
    expert
        Anything that `lfd_gym.as_policy` takes, to collect demonstrations from.
    delta
        Probability that the certificate is wrong, however one stops.
    at_first, at_most
        How many there are at the first look, and at the last.
    settings
        Of `certify`.

    Examples
    --------
    >>> import gymnasium as gym, numpy as np, lfd_gym as lfd
    >>> env, rng = gym.make("lfd_gym/StochasticGridworld-v0", size=4), np.random.default_rng(0)
    >>> expert = lfd.FiniteMDP.from_env(env, 0.9).optimal_policy(env.unwrapped.cost_features[:, 0])
    >>> task = lfd.Task(env, lfd.collect(env, expert, 10, 100, rng), discount=0.9)
    >>> policy = lfd.learn(task, rng=rng).policy
    >>> found = lfd.collect_until(task, policy, expert=expert, bound=0.05, rng=rng)
    >>> found.reached, bool(found.certificate.cost_distance_bound <= 0.05), len(found.demonstrations) > 20
    (True, True, True)
    """
    check_delta(delta)
    rng = own_stream(check_generator("rng", rng), "collect_until")
    if not 1 <= at_first <= at_most:
        raise ValueError(f"at_first must be at least 1 and at most at_most={at_most}, got {at_first}")
    if expert is None and task.access == "model":
        raise ValueError("expert must be given where the model is known: the policy's costs are known without rollouts")
    counts = [at_first]
    while counts[-1] < at_most:
        counts.append(min(2 * counts[-1], at_most))
    new: Demonstrations | None = None
    with tqdm(total=at_most, unit=" collected", delay=1, disable=None, leave=False) as bar:
        for look, count in enumerate(counts, start=1):
            share = delta / (look * (look + 1))
            if expert is None:
                found = certify(policy, task, delta=share, rng=rng, n_rollouts=count, **settings)
            else:
                new = _more(task, expert, count, new, rng)
                found = certify(policy, task, delta=share, rng=rng, held_out=new, **settings)
                if found.to_expert is None:
                    raise ValueError(f"nothing can be said about the expert: {found.refused}")
            bar.update(count - bar.n)
            bar.set_postfix(bound=f"{found.cost_distance_bound:.3f}")
            reached = found.cost_distance_bound <= bound
            if reached:
                break
    return Collected(replace(found, delta=delta), reached, new)


def _more(
    task: Task, expert: PolicyLike, count: int, known: Demonstrations | None, rng: np.random.Generator
) -> Demonstrations:
    """Return ``count`` demonstrations in all, those that are known among them."""
    horizon = None if task.time_limit is not None else task.criterion.steps(_TAIL)
    n_known = 0 if known is None else len(known)
    source = task.simulator if isinstance(task.env, FiniteMDP) else task.env
    new = collect(source, expert, count - n_known, horizon, rng=rng)
    return new if known is None else Demonstrations.concatenate([known, new])
