"""Scores between the random policy and the expert, and what an evaluation says in the units of the reward."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from lfd_gym.demonstrations.rollout_costs import Returns, played_costs
from lfd_gym.policies.conversion import PolicyLike, as_policy
from lfd_gym.task import Task
from lfd_gym.validation import FloatArray

#: Episodes that are played for the returns alone: as many as so many steps allow, within these limits.
_STEPS, _FEWEST, _MOST = 10_000, 10, 50


def score(ours: float, theirs: float, random: float) -> float | None:
    """Return the normalised score, or None if the expert is no better or worse than random, up to rounding."""
    scale = theirs - random
    return (ours - random) / scale if abs(scale) > 1e-12 else None


def score_range(ours: FloatArray, theirs: FloatArray, random: FloatArray) -> tuple[float, float] | None:
    """Return the range of the score over three intervals: it is monotone in each argument, so corners suffice."""
    if theirs[0] - random[1] <= 0 <= theirs[1] - random[0]:
        return None
    corners = [(x - r) / (e - r) for x, e, r in itertools.product(ours, theirs, random)]
    return float(min(corners)), float(max(corners))


def played_returns(
    task: Task, policy: PolicyLike, rng: np.random.Generator, n_episodes: int | None, deterministic: bool
) -> Returns | None:
    """Return what whole episodes gain where the costs were found with the simulator, which goes on for longer.

    None if there is no environment to play in, or nothing that ends its episodes. ``rng`` is left as it is.
    """
    limit = task.time_limit
    costs = task.costs if task.costs is not None else task.true_cost
    if limit is None or costs is None:
        return None
    many = int(np.clip(_STEPS // limit, _FEWEST, _MOST)) if n_episodes is None else n_episodes
    acting = as_policy(policy, deterministic=deterministic)
    settings: dict[str, Any] = {"n_episodes": many, "horizon": limit, "rng": rng.spawn(1)[0]}
    return played_costs(acting, task.env, costs, task.criterion, **settings)[1]


def reward_units(
    task: Task,
    known: dict[str, Any],
    ours: Returns | None,
    theirs: Returns | None,
    random: Returns | None,
    confidence: float,
) -> dict[str, Any]:
    """Return what is known in the units of the environment's reward, and the score by it where there is no true cost.

    Returns are not bounded by anything that is known here: their intervals are Student's, each for itself.
    """
    if ours is None:
        scale = task.reward_scale
        if scale is None:
            return {}
        return {"discounted_return": -known["true_cost"] * scale / task.criterion.scale}
    expert = _expert_returns(task) if theirs is None else theirs.totals
    found: dict[str, Any] = {
        "episode_return": float(ours.totals.mean()),
        "episode_length": float(ours.lengths.mean()),
        "discounted_return": float(ours.discounted.mean()),
        "expert_return": None if expert is None else float(expert.mean()),
        "random_return": None if random is None else float(random.totals.mean()),
    }
    ranges: dict[str, Any] = {
        "episode_return": tuple(_student(ours.totals, confidence)),
        "discounted_return": tuple(_student(ours.discounted, confidence)),
    }
    if known.get("normalised_score") is None and expert is not None and random is not None:
        found["normalised_score"] = score(found["episode_return"], found["expert_return"], found["random_return"])
        if expert.size > 1:
            level = 1 - (1 - confidence) / 3
            intervals = [_student(part, level) for part in (ours.totals, expert, random.totals)]
            ranges["normalised_score"] = score_range(*intervals)
    return found | {"sampling": replace(known["sampling"], **ranges)}


def _expert_returns(task: Task) -> FloatArray | None:
    """Return the returns of the demonstrated episodes that are whole, if their rewards were recorded."""
    demonstrations = task.demonstrations
    if demonstrations is None or demonstrations.rewards is None:
        return None
    whole = demonstrations.terminated | (demonstrations.lengths == task.time_limit)
    totals = np.array([episode.rewards.sum() for episode, keep in zip(demonstrations, whole, strict=True) if keep])
    return totals if totals.size else None


def _student(samples: FloatArray, confidence: float) -> FloatArray:
    half = stdtrit(samples.size - 1, (1 + confidence) / 2) * samples.std(ddof=1) / np.sqrt(samples.size)
    return np.array([samples.mean() - half, samples.mean() + half])
