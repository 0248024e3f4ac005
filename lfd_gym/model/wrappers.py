"""What Gymnasium's wrappers do to an environment: nothing, something known, or anything.

Wrappers change the task: what is true of ``env.unwrapped`` need not be true of ``env``. Wrappers are known by their
exact class, since a subclass may do anything.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym

_gym: Any = gym.wrappers  # which does not say that it exports them
#: Wrappers under which a policy sees and does the same. A time limit cuts what is recorded, it ends no process.
WITHOUT_EFFECT = (
    _gym.HumanRendering,
    _gym.OrderEnforcing,
    _gym.PassiveEnvChecker,
    _gym.RecordEpisodeStatistics,
    _gym.RecordVideo,
    _gym.RenderCollection,
    _gym.TimeLimit,
)
#: The same, of packages that need not be installed: they record.
_WITHOUT_EFFECT_NAMES = ("stable_baselines3.common.monitor.Monitor", "imitation.data.wrappers.RolloutInfoWrapper")
#: Wrappers that change observations, one by one, with their method ``observation``.
OF_OBSERVATIONS = (_gym.FilterObservation, _gym.FlattenObservation, _gym.TransformObservation)
#: Wrappers that change actions, one by one, with their method ``action``.
OF_ACTIONS = (_gym.ClipAction, _gym.RescaleAction)


def peel(env: Any) -> tuple[list[Any], Any]:
    """Return the known wrappers of ``env`` that have an effect, outermost first, and the environment within.

    That one is a wrapper too if the effect of one is not known.

    Examples
    --------
    >>> import gymnasium as gym
    >>> from lfd_gym.model.wrappers import peel
    >>> env = gym.wrappers.RescaleAction(gym.make("Pendulum-v1"), -1.0, 1.0)
    >>> effective, within = peel(env)
    >>> [type(wrapper).__name__ for wrapper in effective], within is env.unwrapped
    (['RescaleAction'], True)
    """
    effective = []
    while True:
        if type(env) in OF_OBSERVATIONS + OF_ACTIONS:
            effective.append(env)
        elif not _without_effect(type(env)):
            return effective, env
        env = env.env


def _without_effect(kind: type) -> bool:
    return kind in WITHOUT_EFFECT or f"{kind.__module__}.{kind.__qualname__}" in _WITHOUT_EFFECT_NAMES


def shows_one_hot(wrapper: Any) -> bool:
    """Whether all that ``wrapper`` does is to show a number as a one-hot vector."""
    return type(wrapper) is _gym.FlattenObservation and isinstance(wrapper.env.observation_space, gym.spaces.Discrete)


def unwrap_states(env: Any) -> Any:
    """Return the environment within, if the wrappers of ``env`` leave states and actions as they are.

    That is so of wrappers without effect and of a state shown as a one-hot vector.

    Raises
    ------
    TypeError
        If another wrapper is in the way; it is named.
    """
    effective, within = peel(env)
    if isinstance(within, gym.Wrapper):
        raise TypeError(
            f"env {env} is wrapped in `{type(within).__name__}`, whose effect is not known, so what is known of "
            "env.unwrapped need not be true of it"
        )
    for wrapper in effective:
        if not shows_one_hot(wrapper):
            raise TypeError(
                f"env {env} is wrapped in `{type(wrapper).__name__}`, which changes what is seen or done, so the "
                "states and actions of env.unwrapped are not those of env"
            )
    return within
