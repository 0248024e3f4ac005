"""Which tasks networks can learn by playing. Nothing is imported for the answer but what is there already."""

from __future__ import annotations

import warnings
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import gymnasium as gym

from lfd_gym.demonstrations.environments import is_environment
from lfd_gym.task import Task
from lfd_gym.validation import LfdGymWarning

#: Dimensions of an image.
_IMAGE = 3
#: The oldest and the newest version of Stable-Baselines3 that the tests were run with.
_TESTED = ((2, 2), (2, 9))


def is_installed() -> bool:
    """Whether Stable-Baselines3 and torch can be imported."""
    return all(find_spec(name) is not None for name in ("stable_baselines3", "torch"))


def warn_of_untested_version() -> None:
    """Say so where Stable-Baselines3 is older or newer than what was tested."""
    installed = version("stable-baselines3")
    parts = tuple(int(part) for part in installed.split(".")[:2] if part.isdigit())
    if not _TESTED[0] <= parts <= _TESTED[1]:
        low, high = (".".join(map(str, end)) for end in _TESTED)
        warnings.warn(
            f"stable-baselines3 {installed} is installed; learners with networks are tested with {low} to {high}",
            LfdGymWarning,
            stacklevel=3,
        )


def _holds_more_states(shown: gym.Space[Any], seen: gym.Space[Any]) -> bool:
    """Whether the demonstrations are over the states that are seen and others, such as an absorbing one."""
    if not (isinstance(shown, gym.spaces.Discrete) and isinstance(seen, gym.spaces.Discrete)):
        return False
    return bool(shown.n > seen.n)


def neural_task_problem(task: Task) -> str:
    """Return why ``primal_dual_rl`` cannot learn a task, empty if it can."""
    if not is_environment(task.env):
        return f"it needs an environment that can be reset and stepped, not {type(task.env).__name__}"
    if task.costs is None:
        return "it has no costs: give Task(costs=...)"
    if task.discount == 1:
        return "its discount is 1, and values are those of the discounted problem"
    return _demonstrations_problem(task)


def check_played_task(learner: str, task: Task) -> None:
    """Refuse a task whose environment cannot be learned in with networks that act in numbers or integers."""
    if not is_environment(task.env):
        raise ValueError(f"{learner} needs an environment that can be reset and stepped, not {type(task.env).__name__}")
    check_cloned_task(learner, task)


def check_cloned_task(learner: str, task: Task) -> None:
    """Refuse demonstrations that networks which act in numbers or integers cannot learn from."""
    problem, actions = _demonstrations_problem(task), task.action_space
    numbers = isinstance(actions, gym.spaces.Box) and actions.is_bounded()
    if not problem and not (numbers or isinstance(actions, gym.spaces.Discrete)):
        problem = f"its actions are {actions}, and it takes bounded Box and Discrete ones"
    if problem:
        raise ValueError(f"{learner} cannot learn this task: {problem}")


def _demonstrations_problem(task: Task) -> str:
    seen, shown = task.observation_space, task.demonstrations.observation_space
    if isinstance(seen, gym.spaces.Box) and len(seen.shape) == _IMAGE:
        return f"its observations are images, {seen}: have a wrapper of the environment encode them as vectors"
    if shown != seen and not _holds_more_states(shown, seen):
        return f"its demonstrations are over {shown}, but its environment shows {seen}"
    return "" if task.demonstrations.n_transitions else "its demonstrations hold no step"
