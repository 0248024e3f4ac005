"""What can be told of an environment of any kind: single, wrapped, of either vector line, of Stable-Baselines3."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import TimeLimit  # type: ignore[attr-defined]

from lfd_gym.envs.vector import RESETS_IN_SAME_STEP
from lfd_gym.model.wrappers import peel
from lfd_gym.spaces import array_space

#: Modules whose environments and vector environments leave it to their time limit to cut episodes.
_NEVER_CUTTING = (
    "gymnasium.envs.classic_control.",
    "gymnasium.envs.toy_text.",
    "gymnasium.envs.mujoco.",
    "gymnasium.envs.box2d.lunar_lander",
    "gymnasium.envs.box2d.bipedal_walker",
    "gymnasium.vector.",
    "gymnasium.experimental.vector.",
    "stable_baselines3.common.vec_env.",
    "lfd_gym.envs.",
)


def is_environment(source: Any) -> bool:
    """Whether `play_episodes` can play in ``source``."""
    return isinstance(source, gym.Env) or is_gymnasium_vector(source) or is_stable_baselines_vector(source)


def is_gymnasium_vector(source: Any) -> bool:
    """Whether ``source`` is a vector environment of Gymnasium; 0.29 has two kinds, one of them an `Env`."""
    kinds: list[Any] = [gym.vector.VectorEnv]
    if RESETS_IN_SAME_STEP:
        kinds.append(gym.experimental.vector.VectorEnv)
        if isinstance(source, gym.Wrapper):
            source = source.unwrapped
    return isinstance(source, tuple(kinds))


def is_stable_baselines_vector(source: Any) -> bool:
    """Whether ``source`` is a `VecEnv` of Stable-Baselines3, which is not imported for that."""
    module: Any = sys.modules.get("stable_baselines3.common.vec_env.base_vec_env")
    return module is not None and isinstance(source, module.VecEnv)


def vector_attribute(envs: Any, name: str) -> Any:
    """Return an attribute of a vector environment: 0.29 wraps them like single ones, and warns if read directly."""
    return envs.get_wrapper_attr(name) if isinstance(envs, gym.Wrapper) else getattr(envs, name)


def single_spaces(source: Any) -> tuple[gym.Space[Any], gym.Space[Any]]:
    """Return the spaces of single observations and actions of any environment, as arrays: see `lfd_gym.spaces`.

    Examples
    --------
    >>> import gymnasium as gym
    >>> single_spaces(gym.vector.SyncVectorEnv([lambda: gym.make("FrozenLake-v1")] * 3))
    (Discrete(16), Discrete(4))
    """
    for name in ("observation_space", "action_space"):
        if not is_gymnasium_vector(source) and not isinstance(getattr(source, name, None), gym.Space):
            raise TypeError(f"{name} of the env must be a space, got {getattr(source, name, None)!r:.80}")
    done = vector_attribute(source, "single_action_space") if is_gymnasium_vector(source) else source.action_space
    return array_space("observation_space", outer_observation_space(source)), array_space("action_space", done)


def outer_observation_space(source: Any) -> gym.Space[Any]:
    """Return the space of single observations of any environment as it is, `Dict` and `Tuple` not flattened."""
    found: gym.Space[Any]
    if is_gymnasium_vector(source):
        found = vector_attribute(source, "single_observation_space")
    else:
        found = source.observation_space
    return found


def time_limit(source: Any) -> int | None:
    """Return after how many actions episodes of any environment are cut, None if there is no limit, or none is known.

    That is the smallest limit of Gymnasium's `TimeLimit` wrappers, where they can be seen; else what the spec says.

    Examples
    --------
    >>> import gymnasium as gym
    >>> time_limit(gym.make("CartPole-v1"))
    500
    >>> time_limit(gym.wrappers.TimeLimit(gym.make("CartPole-v1"), 50))
    50
    """
    limits = [limit for env in _single_envs(source) for limit in _wrapped_limits(env)]
    if limits:
        return min(limits)
    spec = _spec(source)
    if spec is None:
        return None
    if is_gymnasium_vector(source) and not RESETS_IN_SAME_STEP:  # 1.x hands the limit to a vector entry point like this
        return spec.kwargs.get("max_episode_steps", spec.max_episode_steps)
    return spec.max_episode_steps


def cut_by_limits_alone(source: Any) -> bool:
    """Whether nothing but `time_limit` cuts episodes of ``source``, as far as that is known.

    Environments may cut them themselves, whenever they like: CarRacing does, Gymnasium's others, by their exact class,
    do not, nor do this package's. Wrappers are known as in `lfd_gym.model.wrappers`.

    Examples
    --------
    >>> cut_by_limits_alone(gym.make("CartPole-v1"))
    True
    >>> cut_by_limits_alone(gym.wrappers.TransformReward(gym.make("CartPole-v1"), float))
    False
    """
    within = [peel(env)[1] for env in _single_envs(source)]
    layers = [source] if is_gymnasium_vector(source) or is_stable_baselines_vector(source) else []
    while layers and hasattr(layers[-1], "venv"):
        layers.append(layers[-1].venv)
    return bool(within) and all(type(part).__module__.startswith(_NEVER_CUTTING) for part in (*within, *layers))


def known_spec(source: Any) -> EnvSpec | None:
    """Return the spec of any environment, if it says how the environment was made."""
    made_by_entry_point = (
        RESETS_IN_SAME_STEP and is_gymnasium_vector(source) and not hasattr(source.unwrapped, "env_fns")
    )
    # What make_vec of Gymnasium 0.29 writes into the spec there is not what it passes on.
    return None if made_by_entry_point else _spec(source)


def _spec(source: Any) -> EnvSpec | None:
    found: EnvSpec | None
    if is_stable_baselines_vector(source):
        singles = _single_envs(source)
        # Environments in other processes are asked; those that do not know a spec have no such attribute.
        found = singles[0].spec if singles else next(iter(_asked(source.get_attr, "spec")), None)
        return found
    found = getattr(source, "spec", None)
    if found is None and is_gymnasium_vector(source):
        singles = _single_envs(source)
        asked = [env.spec for env in singles] or _asked(getattr(source.unwrapped, "get_attr", None), "spec")
        return next(iter(asked), None)
    return found


def _asked(get_attr: Any, name: str) -> Any:
    """Ask environments in other processes; what they cannot say is not known."""
    try:
        return get_attr(name)
    except Exception:  # whatever a worker raised is raised here
        return []


def _single_envs(source: Any) -> list[Any]:
    """Return the single environments of ``source`` as far as they live in this process."""
    if is_gymnasium_vector(source) or is_stable_baselines_vector(source):
        return list(getattr(source.unwrapped, "envs", []))
    return [source] if isinstance(source, gym.Env) else []


def _wrapped_limits(env: Any) -> list[int]:
    limits = []
    while isinstance(env, gym.Wrapper):
        if isinstance(env, TimeLimit):
            limits.append(int(env._max_episode_steps))
        env = env.env
    return limits
