"""Collecting demonstrations: let a policy act in a model or an environment, and record what it sees and does."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from lfd_gym.demonstrations.columns import read_only
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.provenance import Provenance
from lfd_gym.demonstrations.rollouts import (
    TrajectoryRecorder,
    draw_actions,
    play,
    progress_bar,
    table_blocks,
    tabulated,
)
from lfd_gym.envs.tabular import FiniteEnv
from lfd_gym.envs.vector import FiniteVectorEnv
from lfd_gym.model.generative_model import GenerativeModel, TabularModel
from lfd_gym.policies.conversion import PolicyLike, as_policy
from lfd_gym.policies.policy import Policy
from lfd_gym.validation import FloatArray, IntArray

_MOST_FINITE_COPIES = 4096


def collect(
    source: GenerativeModel | gym.Env[Any, Any] | gym.vector.VectorEnv,
    policy: PolicyLike,
    n_trajectories: int,
    horizon: int,
    rng: np.random.Generator,
    *,
    deterministic: bool = False,
    n_envs: int | None = None,
) -> Demonstrations:
    """Record trajectories of ``policy``: independent, each cut after ``horizon`` actions unless it ends before.

    The same generator state gives the same trajectories. On a `TabularModel` a policy with an (S, A) table runs in
    compiled code, and trajectory k does not depend on how many there are.

    Parameters
    ----------
    source
        A generative model: the trajectory ends in its absorbing state, which is the last observation, and rewards are
        not known. Or an environment, or a vector environment: time limits apply, and rewards are recorded.
    policy
        Anything that `lfd_gym.as_policy` takes: an (S, A) array, a policy of this package, a policy or algorithm of
        Stable-Baselines3 (which may not be recurrent), or a function from a batch of observations to one of actions.
    n_trajectories, horizon
        How many, and the largest number of actions in each.
    rng
        Drives everything: the model, the seeds of environments, the policy's actions.
    deterministic
        Whether the policy's best actions are taken. The default keeps a stochastic policy as it is;
        note that Stable-Baselines3's own `evaluate_policy` does not.
    n_envs
        For an environment: how many copies (made with ``gymnasium.make(env.spec)``) run side by side. By default the
        environment itself runs alone; the finite environments of this package run all trajectories side by side.

    Examples
    --------
    >>> import gymnasium as gym, numpy as np, lfd_gym as lfd
    >>> env = gym.make("lfd_gym/StochasticGridworld-v0", size=4, cost_seed=0)
    >>> mdp = lfd.FiniteMDP.from_env(env, discount=0.9)
    >>> expert = mdp.optimal_policy(env.unwrapped.cost_features[:, 0])
    >>> lfd.collect(lfd.TabularModel.of(mdp), expert, 10, 200, np.random.default_rng(0))
    Demonstrations(10 trajectories, 2000 transitions, Discrete(16) -> Discrete(4))
    """
    for name, value in (("n_trajectories", n_trajectories), ("horizon", horizon)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    acting = as_policy(policy, deterministic=deterministic)
    if isinstance(source, gym.vector.VectorEnv):
        return _from_vector_env(source, acting, n_trajectories, horizon, rng, source.spec)
    if isinstance(source, gym.Env) and not (source.unwrapped is source and isinstance(source, GenerativeModel)):
        with _vectorised(source, n_envs, n_trajectories) as envs:
            demos = _from_vector_env(envs, acting, n_trajectories, horizon, rng, source.spec)
            return demos.with_provenance(**_identity(source.spec))
    if n_envs is not None:
        raise ValueError("n_envs is for environments; a generative model runs all trajectories side by side")
    return _from_model(source, acting, n_trajectories, horizon, rng)


# -- models -----------------------------------------------------------------------------------------------------------


def _from_model(
    model: GenerativeModel, policy: Policy, n_trajectories: int, horizon: int, rng: np.random.Generator
) -> Demonstrations:
    table = tabulated(policy, model, n_trajectories * horizon)
    if table is not None:
        assert isinstance(model, TabularModel)
        return _from_table(model, table, n_trajectories, horizon, rng)
    recorder = TrajectoryRecorder(n_trajectories)
    play(model, policy, n_trajectories, horizon, rng, recorder)
    return recorder.demonstrations(model.observation_space, model.action_space, horizon)


def _from_table(
    model: TabularModel, table: FloatArray, n_trajectories: int, horizon: int, rng: np.random.Generator
) -> Demonstrations:
    blocks = [[part.copy() for part in block] for block in table_blocks(model, table, n_trajectories, horizon, rng)]
    observations, actions, lengths = (read_only(np.concatenate(parts)) for parts in zip(*blocks, strict=True))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    terminated = observations[offsets[1:] + np.arange(n_trajectories)] == model.absorbing_state
    return Demonstrations(
        observations=observations,
        actions=actions,
        offsets=offsets,
        terminated=terminated,
        truncated=~terminated,
        observation_space=model.observation_space,
        action_space=model.action_space,
        horizon=horizon,
    )


# -- environments -----------------------------------------------------------------------------------------------------


def _from_vector_env(
    envs: Any,
    policy: Policy,
    n_trajectories: int,
    horizon: int,
    rng: np.random.Generator,
    spec: EnvSpec | None,
) -> Demonstrations:
    """Play in rounds, one trajectory in each environment, all started by a seeded reset.

    What an environment does after its trajectory has ended, such as starting anew by itself, is not recorded. So the
    trajectories are independent, none is preferred for being short, and both of Gymnasium's rules for starting anew
    (in the same step, or on a next step that is no transition) come to the same.
    """
    resets_in_same_step = _resets_in_same_step(envs)
    recorder = TrajectoryRecorder(n_trajectories)
    with policy.acting(rng), progress_bar(n_trajectories, " trajectories") as bar:
        for first in range(0, n_trajectories, envs.num_envs):
            observations, _ = envs.reset(seed=int(rng.integers(2**31 - envs.num_envs)))
            running = np.arange(min(envs.num_envs, n_trajectories - first))
            for t in range(horizon):
                seen = observations[running]
                actions = draw_actions(policy, seen, envs.single_action_space, rng)
                observations, rewards, terminations, truncations, infos = envs.step(_for_all(envs, running, actions))
                recorder.step(running + first, t, seen, actions, rewards[running])
                over = terminations[running] | truncations[running]
                if over.any():
                    ended = running[over]
                    last = _last_observations(observations, infos, ended, resets_in_same_step)
                    recorder.end(ended + first, t + 1, last, terminations[ended], truncations[ended])
                    bar.update(ended.size)
                    running = running[~over]
                    if running.size == 0:
                        break
            recorder.end(running + first, horizon, observations[running], truncated=True)
            bar.update(running.size)
    time_limit = getattr(spec, "max_episode_steps", None) or horizon
    return recorder.demonstrations(envs.single_observation_space, envs.single_action_space, min(horizon, time_limit))


def _for_all(envs: Any, running: IntArray, actions: NDArray[Any]) -> NDArray[Any]:
    """Fill up ``actions`` with any action for the environments whose trajectory has ended."""
    if running.size == envs.num_envs:
        return actions
    filled = np.broadcast_to(actions[0], (envs.num_envs, *actions.shape[1:])).copy()
    filled[running] = actions
    return filled


def _resets_in_same_step(envs: Any) -> bool:
    if issubclass(gym.vector.VectorEnv, gym.Env):  # Gymnasium 0.29
        return True
    mode = getattr(envs.metadata.get("autoreset_mode"), "name", "NEXT_STEP")
    if mode == "DISABLED":
        raise ValueError("the vector environment must start ended episodes anew: its autoreset_mode is DISABLED")
    return bool(mode == "SAME_STEP")


def _last_observations(
    observations: NDArray[Any], infos: dict[str, Any], ended: IntArray, resets_in_same_step: bool
) -> NDArray[Any]:
    if not resets_in_same_step:
        return np.asarray(observations[ended])
    for key in ("final_obs", "final_observation"):
        if key in infos:
            return np.stack([np.asarray(infos[key][k]) for k in ended])
    raise ValueError("the vector environment starts anew in the same step, but does not say the final observation")


@contextmanager
def _vectorised(env: gym.Env[Any, Any], n_envs: int | None, n_trajectories: int) -> Iterator[Any]:
    """Yield a vector environment; close it afterwards if it holds copies."""
    plain = env.spec is not None and not env.spec.additional_wrappers and env.render_mode != "human"
    if plain and isinstance(env.unwrapped, FiniteEnv):
        n_copies = min(n_trajectories, _MOST_FINITE_COPIES) if n_envs is None else n_envs
        yield FiniteVectorEnv(env.unwrapped, n_copies, env.spec.max_episode_steps)  # type: ignore[union-attr]
    elif n_envs in (None, 1):
        envs = gym.vector.SyncVectorEnv([lambda: env])
        try:
            yield envs
        finally:
            envs.closed = True  # else it would close the caller's environment when it is collected as garbage
    elif env.spec is None:
        raise ValueError(f"n_envs must be 1 for {env}: without a spec it cannot be copied")
    else:
        spec = copy.deepcopy(env.spec)
        spec.kwargs.pop("render_mode", None)
        envs = gym.vector.SyncVectorEnv([lambda: gym.make(spec)] * int(n_envs or 1))
        try:
            yield envs
        finally:
            envs.close()  # type: ignore[no-untyped-call]


def _identity(spec: EnvSpec | None) -> dict[str, Any]:
    """Return the id and arguments of an environment, as far as JSON can say them."""
    if spec is None:
        return {}
    kwargs = {key: value for key, value in spec.kwargs.items() if key != "render_mode"}
    try:
        return {"env_id": spec.id, "env_kwargs": Provenance(env_kwargs=kwargs).env_kwargs}
    except ValueError:
        return {"env_id": spec.id}
