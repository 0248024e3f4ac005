"""Which tasks networks can learn by playing. Nothing is imported for the answer but what is there already."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import gymnasium as gym

from lfd_gym.demonstrations.environments import is_environment
from lfd_gym.task import Task

#: Dimensions of an image.
_IMAGE = 3


def is_installed() -> bool:
    """Whether Stable-Baselines3 and torch can be imported."""
    return all(find_spec(name) is not None for name in ("stable_baselines3", "torch"))


def _holds_more_states(shown: gym.Space[Any], seen: gym.Space[Any]) -> bool:
    """Whether the demonstrations are over the states that are seen and others, such as an absorbing one."""
    if not (isinstance(shown, gym.spaces.Discrete) and isinstance(seen, gym.spaces.Discrete)):
        return False
    return bool(shown.n > seen.n)


def neural_task_problem(task: Task) -> str:
    """Return why a task cannot be learned by playing with networks, empty if it can."""
    if not is_environment(task.env):
        return f"it needs an environment that can be reset and stepped, not {type(task.env).__name__}"
    if task.costs is None:
        return "it has no costs: give Task(costs=...)"
    seen = task.observation_space
    if isinstance(seen, gym.spaces.Box) and len(seen.shape) == _IMAGE:
        return f"its observations are images, {seen}: have a wrapper of the environment encode them as vectors"
    shown = task.demonstrations.observation_space
    if shown != seen and not _holds_more_states(shown, seen):
        return f"its demonstrations are over {shown}, but its environment shows {seen}"
    if not task.demonstrations.n_transitions:
        return "its demonstrations hold no step"
    if task.discount == 1:
        return "its discount is 1, and values are those of the discounted problem"
    return ""
