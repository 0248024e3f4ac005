"""The best of the policies that a learner had on the way, beside the final one: what many others publish.

Whoever chooses a checkpoint looks at the reward, which learners are not shown. So the best is for comparison with such
figures alone. It is chosen by some episodes of each checkpoint and then measured by others, as the final policy is:
the best of several noisy means would be too good. Learners without checkpoints have no best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lfd_gym.assessment.evaluation import Evaluation, evaluate
from lfd_gym.baselines.learner import Checkpoint
from lfd_gym.benchmark.experts import References, returns_of
from lfd_gym.grids.policies import GridPolicy, LookaheadPolicy
from lfd_gym.policies.conversion import FunctionPolicy, as_policy, policy_table
from lfd_gym.policies.mixtures import MixturePolicy
from lfd_gym.policies.policy import Policy
from lfd_gym.policies.tables import TablePolicy, UniformPolicy
from lfd_gym.task import Task

#: Policies that mean what they do; all others are networks, which are judged by their best actions.
_AS_THEY_ARE = (FunctionPolicy, GridPolicy, LookaheadPolicy, MixturePolicy, TablePolicy, UniformPolicy)
#: Episodes that a checkpoint is chosen by.
N_CHOOSING = 20


@dataclass(frozen=True)
class Best:
    """The best policy of a run.

    Attributes
    ----------
    after
        After how much of the budget it was had; None if it is the final policy.
    n_checkpoints
        How many there were beside the final policy.
    normalised_score, episode_return
        Of other episodes than it was chosen by; the return is None on tables, where the score is that of the known
        true cost.
    """

    after: int | None
    n_checkpoints: int
    normalised_score: float
    episode_return: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def takes_best_actions(policy: Policy) -> bool:
    """Whether a policy is judged by its best actions."""
    return not isinstance(policy, _AS_THEY_ARE)


def best_on_table(checkpoints: tuple[Checkpoint, ...], task: Task, final: Evaluation) -> Best | None:
    """Return the best where the model is known: nothing is drawn."""

    def score(policy: Policy) -> float | None:
        return evaluate(TablePolicy(policy_table(policy, task.model)), task).normalised_score

    if not checkpoints or final.normalised_score is None:
        return None
    scores = [score(each.policy) or 0.0 for each in checkpoints]
    k = int(np.argmax(scores))
    return _better(Best(checkpoints[k].after, len(checkpoints), scores[k], None), final)


def best_by_episodes(
    checkpoints: tuple[Checkpoint, ...],
    task: Task,
    final: Evaluation,
    references: References,
    n_episodes: int,
    stream: Callable[[str], np.random.Generator],
) -> Best | None:
    """Return the best by the returns of whole episodes.

    Parameters
    ----------
    checkpoints, final
        Of the run.
    task, references
        Where it was, and the ends of the scale.
    n_episodes
        That measure the chosen one.
    stream
        Purpose → generator: every checkpoint plays the same episodes.
    """
    if not checkpoints or final.normalised_score is None:
        return None

    def mean_return(checkpoint: Checkpoint, n: int, purpose: str) -> float:
        policy = as_policy(checkpoint.policy, deterministic=takes_best_actions(checkpoint.policy))
        return float(returns_of(task, policy, n, stream(purpose)).mean())

    k = int(np.argmax([mean_return(each, N_CHOOSING, "choosing") for each in checkpoints]))
    found = mean_return(checkpoints[k], n_episodes, "measuring")
    score = references.score(found)
    return None if score is None else _better(Best(checkpoints[k].after, len(checkpoints), score, found), final)


def _better(chosen: Best, final: Evaluation) -> Best:
    """Return the final policy if it is no worse: it is the last of the checkpoints."""
    assert final.normalised_score is not None
    if chosen.normalised_score > final.normalised_score:
        return chosen
    gained = final.episode_return if chosen.episode_return is not None else None
    return Best(None, chosen.n_checkpoints, final.normalised_score, gained)
