"""Which environments can serve as generative models, and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
from numpy.typing import NDArray

from lfd_gym.envs.classic_control import CLASSIC_CONTROL, ClassicControlModel
from lfd_gym.envs.mujoco import MujocoModel
from lfd_gym.envs.seals import ResettableModel
from lfd_gym.envs.wrapped import WrappedModel
from lfd_gym.model.dynamics import FiniteDynamics, changed_method
from lfd_gym.model.generative_model import MODEL_METHODS, MODEL_SPACES, GenerativeModel, TabularModel
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.model.wrappers import peel


def as_generative_model(source: FiniteMDP | GenerativeModel | gym.Env[Any, Any]) -> GenerativeModel:
    """Return the generative model of an environment or of a finite MDP.

    It is the model of the environment as given, with its wrappers. A time limit cuts what is recorded, it does not end
    the process; wrappers that record, render or check have no effect; those that filter, flatten or transform
    observations, and those that clip or rescale actions, are carried over into the model. Under any other wrapper only
    episodes can be played. The environment is left as it was by every call of the model.

    - A `FiniteMDP`, and environments with tables (`transitions` and `initial_distribution` as in this package, `P` and
      `initial_state_distrib` as in FrozenLake, CliffWalking and Taxi) become a `TabularModel` with the states of
      `FiniteMDP.from_env`.
    - Classic control, MuJoCo and the resettable environments of `seals` are put into each state and stepped from there.
    - An object or environment that has the methods of `GenerativeModel` is returned itself.

    Anything else is refused: an environment that cannot be put into a state has no generative model, and a copy of one
    need not be a copy of its simulator.

    Raises
    ------
    TypeError
        If the environment allows episodes only; it says why, and names the wrapper if there is one in the way.

    Examples
    --------
    >>> import gymnasium as gym
    >>> import numpy as np
    >>> import lfd_gym as lfd
    >>> model = lfd.as_generative_model(gym.make("CartPole-v1"))
    >>> rng = np.random.default_rng(0)
    >>> states = model.sample_initial(3, rng)
    >>> model.sample_next(states, [0, 1, 1], rng).shape
    (3, 4)
    """
    if isinstance(source, FiniteMDP):
        return TabularModel.of(source)
    effective, within = peel(source)
    model = _model_within(source, within)
    return WrappedModel(source, model, effective) if effective else model


def state_reader(env: gym.Env[Any, Any]) -> Callable[[], NDArray[Any]] | None:
    """Return what reads the state that ``env`` is in, where its observations do not tell it and there is a way."""
    if not _offers(
        env.unwrapped, "set_state", "data"
    ):  # MuJoCo: the others show their states, or cannot be put into one
        return None
    try:
        model = as_generative_model(env)
    except TypeError:
        return None
    return None if hasattr(model, "states_of") else getattr(model, "current_state", None)


def _model_within(source: Any, env: Any) -> GenerativeModel:
    """Return the model of ``env``, the part of ``source`` inside the known wrappers, or say why there is none."""
    # The class is asked: wrappers of Gymnasium 0.29 show the methods of the environment within as their own.
    if isinstance(env, gym.Wrapper) and not _offers(type(env), *MODEL_METHODS):
        raise TypeError(
            f"source {source} is wrapped in `{type(env).__name__}`, whose effect is not known, so only episodes can be "
            "played in it"
        )
    if isinstance(env, GenerativeModel):
        return env
    if isinstance(env, gym.vector.VectorEnv) or _offers(env, "num_envs", "step_async"):  # the latter: SB3's VecEnv
        raise TypeError(
            f"source {source} is a vector environment, so only episodes can be played in it: for a generative model, "
            "take one environment of its kind"
        )
    if isinstance(env, gym.Env) and FiniteDynamics.known_of(env):
        return TabularModel.of(FiniteDynamics.from_env(env))
    if isinstance(env, gym.Env) and changed_method(env) is not None:
        FiniteDynamics.from_env(env)  # says why its table is not used
    if isinstance(env, CLASSIC_CONTROL):
        return ClassicControlModel(env)
    if _offers(env, *ResettableModel.METHODS):
        return ResettableModel(env)
    if _offers(env, "set_state", "_get_obs", "model", "data") and not hasattr(
        env, "sim"
    ):  # sim: mujoco_py, v3 and older
        return MujocoModel(env)
    missing = [f"{name}()" for name in MODEL_METHODS if not hasattr(env, name)]
    missing += [name for name in MODEL_SPACES if not hasattr(env, name)]
    raise TypeError(
        f"source {source} cannot be put into a state by any way known here: it has neither a table of transitions, nor "
        f"seals' transition(state, action), nor MuJoCo's set_state(qpos, qvel), and is none of Gymnasium's classic "
        f"control environments. To use it, add to its class what it lacks of lfd_gym.GenerativeModel: "
        f"{', '.join(missing)}; lfd_gym.testing.check_generative_model then checks them."
    )


def _offers(env: Any, *names: str) -> bool:
    return all(hasattr(env, name) for name in names)
