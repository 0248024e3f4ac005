"""Collecting demonstrations: let a policy act in a model or an environment, and record what it sees and does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.arguments import checked
from lfd_gym.demonstrations.columns import read_only, same
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.environments import is_environment, known_spec, single_spaces, time_limit
from lfd_gym.demonstrations.episodes import play_episodes
from lfd_gym.demonstrations.provenance import identity
from lfd_gym.demonstrations.rollouts import TrajectoryRecorder, play, table_blocks, tabulated
from lfd_gym.envs.adapters import state_reader
from lfd_gym.model.generative_model import GenerativeModel, TabularModel, check_batches, check_generator, check_model
from lfd_gym.policies.conversion import PolicyLike, as_policy
from lfd_gym.policies.policy import Policy
from lfd_gym.validation import FloatArray


@checked
def collect(
    source: Any,
    policy: PolicyLike,
    n_trajectories: int,
    horizon: int | None = None,
    rng: np.random.Generator = None,  # type: ignore[assignment]
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
        not known; where observations do not tell the states, those that trajectories began in are recorded. Or any
        environment, wrapped or not, a vector environment of Gymnasium, or a `VecEnv` of Stable-Baselines3: time limits
        apply, and rewards are recorded if they are finite. Dict and Tuple spaces are recorded flat, see
        `lfd_gym.spaces`.
    policy
        Anything that `lfd_gym.as_policy` takes: an (S, A) array, a policy of this package, a policy or algorithm of
        Stable-Baselines3, also a recurrent one, or a function from a batch of observations to one of actions.
    n_trajectories, horizon
        How many, and the largest number of actions in each. Without a horizon, episodes of an environment run to their
        own end or time limit; where there is neither, that is for ever.
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
    for name, value in (("n_trajectories", n_trajectories), ("horizon", horizon), ("n_envs", n_envs)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    check_generator("rng", rng)
    acting = as_policy(policy, deterministic=deterministic)
    is_model = getattr(source, "unwrapped", source) is source and isinstance(source, GenerativeModel)
    if is_environment(source) and not is_model:
        single_spaces(source)  # or it says what is wrong with them
        recorder = TrajectoryRecorder(n_trajectories)
        read = state_reader(source) if isinstance(source, gym.Env) and n_envs in (None, 1) else None
        states: list[NDArray[Any]] = []
        keep = None if read is None else lambda: states.append(read())
        play_episodes(source, acting, n_trajectories, horizon, rng, recorder, n_envs=n_envs, on_reset=keep)
        cuts = [cut for cut in (horizon, time_limit(source)) if cut is not None]
        demonstrations = recorder.demonstrations(*single_spaces(source), cuts)
        if states:
            demonstrations = replace(demonstrations, initial_states=np.array(states))
        return demonstrations.with_provenance(**identity(known_spec(source)))
    if n_envs is not None:
        raise ValueError("n_envs is for environments; a generative model runs all trajectories side by side")
    if isinstance(source, str):
        raise TypeError(
            f"source must be an environment, as gymnasium.make makes from a name, or a model, got {source!r}"
        )
    check_model("source", source)
    check_batches("source", source)
    if horizon is None:
        raise ValueError("horizon must be given: a generative model has no time limit")
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
    states = play(model, policy, n_trajectories, horizon, rng, recorder)
    demonstrations = recorder.demonstrations(model.observation_space, model.action_space, [horizon])
    return _recorded_states(states, demonstrations)


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


def _recorded_states(states: NDArray[Any], demonstrations: Demonstrations) -> Demonstrations:
    """Keep the states that trajectories began in, where they are not what was observed first."""
    first = demonstrations.observations[demonstrations.offsets[:-1] + np.arange(len(demonstrations))]
    return demonstrations if same(states, first) else replace(demonstrations, initial_states=states)
