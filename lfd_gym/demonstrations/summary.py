"""What demonstrations hold, in a few lines of text."""

from __future__ import annotations

import json

import numpy as np
from scipy.special import stdtrit

from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.estimation import discounted_sums
from lfd_gym.model.criterion import Criterion
from lfd_gym.validation import FloatArray

_CONFIDENCE = 0.95


def summary_lines(demonstrations: Demonstrations, discount: float | None = None) -> list[str]:
    """Return a table of two columns: where the demonstrations come from, how many there are, what they gained.

    With a ``discount``, also the normalised discounted cost, (1−γ) Σ γ^t (−reward), of the recorded part. Means over
    trajectories come with a 95 % interval (Student's).
    """
    demos, origin = demonstrations, demonstrations.provenance
    lengths = demos.lengths
    rows = [
        ("environment", origin.env_id or "unknown"),
        ("arguments", json.dumps(dict(origin.env_kwargs)) if origin.env_kwargs else "none"),
        ("expert", origin.policy or "unknown"),
        ("seed", "unknown" if origin.seed is None else str(origin.seed)),
        ("observations", f"{demos.observation_space}"),
        ("actions", "unknown" if demos.actions is None else f"{demos.action_space}"),
        ("episodes", f"{len(demos)} ({demos.terminated.sum()} terminated, {demos.truncated.sum()} truncated)"),
        ("horizon", "unknown" if demos.horizon is None else str(demos.horizon)),
        ("steps", f"{demos.n_transitions}"),
        (
            "steps per episode",
            f"{lengths.min()} to {lengths.max()}, mean {lengths.mean():.1f}" if len(demos) else "none",
        ),
    ]
    if demos.rewards is None:
        rows.append(("return", "unknown: no rewards were recorded"))
    elif len(demos):
        rewards = np.ascontiguousarray(demos.rewards, dtype=np.float64)[:, None]
        steps = np.arange(demos.n_transitions)
        returns = np.array([episode.rewards.sum() for episode in demos if episode.rewards is not None])
        rows.append(("mean return", _mean_with_interval(returns)))
        if discount is not None:
            costs = discounted_sums(-rewards, steps, demos.offsets, Criterion(discount))[:, 0]
            rows.append((f"mean cost (discount {discount:g})", _mean_with_interval(costs)))
    width = max(len(name) for name, _ in rows)
    return [f"{name:{width}}  {value}" for name, value in rows]


def _mean_with_interval(samples: FloatArray) -> str:
    if samples.size < 2:
        return f"{samples.mean():.4f} (one episode: no interval)"
    quantile = stdtrit(samples.size - 1, (1 + _CONFIDENCE) / 2)
    half = quantile * samples.std(ddof=1) / np.sqrt(samples.size)
    return f"{samples.mean():.4f} ± {half:.4f} (95 %)"
