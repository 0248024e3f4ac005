"""Many copies of a finite environment, stepped together: what `gymnasium.make_vec` builds.

An episode that has ended starts again by itself, by the rule of the Gymnasium line in use, as in `SyncVectorEnv`:

- 0.29: in the same step. The observation is that of the new episode; the last one of the old episode is in
  ``info["final_observation"]``, its info in ``info["final_info"]``.
- 1.x: on the next step. That extra step ignores the action and gives reward 0; it is no transition.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import seeding
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from lfd_gym._jit import jit
from lfd_gym.arguments import checked
from lfd_gym.envs.tabular import FiniteEnv, checked_seed, integer_at_least, start_option
from lfd_gym.model.generative_model import TabularModel, draw_alias
from lfd_gym.validation import FloatArray, IntArray, numbers

#: A vector environment is an environment in Gymnasium 0.29, and no longer from 1.0 on.
RESETS_IN_SAME_STEP = issubclass(gym.vector.VectorEnv, gym.Env)

BoolArray = NDArray[np.bool_]
_NEVER = np.iinfo(np.int64).max
_OVER = -1  # the count of elapsed steps of a copy that the next step starts anew


class FiniteVectorEnv(gym.vector.VectorEnv):
    """``num_envs`` independent copies of an environment, all drawing from one stream of random numbers.

    Parameters
    ----------
    env
        The environment to copy. ``render`` puts it into the states of the copies, one after the other.
    num_envs
        Number of copies.
    max_episode_steps
        Episodes are truncated after so many steps; None: never.

    Examples
    --------
    >>> from lfd_gym.envs import FiniteVectorEnv, StochasticGridworldEnv
    >>> envs = FiniteVectorEnv(StochasticGridworldEnv(size=8), num_envs=3, max_episode_steps=200)
    >>> observations, infos = envs.reset(seed=0)
    >>> observations, rewards, terminations, truncations, infos = envs.step([0, 1, 2])
    >>> infos["cost_features"].shape
    (3, 5)
    """

    is_vector_env = True  # this and `viewer` are read by Gymnasium 0.29
    viewer = None
    closed = False
    _spec: EnvSpec | None = None

    @checked
    def __init__(self, env: FiniteEnv, num_envs: int = 1, max_episode_steps: int | None = None) -> None:
        if env.render_mode == "human":
            raise ValueError("render_mode='human' shows one environment: use gymnasium.make, or another render_mode")
        self.num_envs = integer_at_least("num_envs", num_envs, 1)
        self.single_observation_space = env.observation_space
        self.single_action_space = env.action_space
        self.observation_space = batch_space(env.observation_space, self.num_envs)
        self.action_space = batch_space(env.action_space, self.num_envs)
        self.metadata = dict(env.metadata)
        if hasattr(gym.vector, "AutoresetMode"):
            self.metadata["autoreset_mode"] = gym.vector.AutoresetMode.NEXT_STEP
        self.render_mode = env.render_mode
        self._env = env
        self._model = TabularModel.of(env.dynamics)
        self._pair_rewards = 0.0 - env.pair_features[:, :, 0]  # (S, A); a difference, so that no cost gives 0.0
        self._absorbing_state = -1 if env.absorbing_state is None else env.absorbing_state
        limit = _NEVER if max_episode_steps is None else max_episode_steps
        self._limit = integer_at_least("max_episode_steps", limit, 1)
        self._elapsed = np.zeros(self.num_envs, dtype=np.int64)
        self._states: IntArray | None = None
        self._over: BoolArray | None = None  # the copies that the next step starts anew, if there are any

    @property
    def states(self) -> IntArray:
        """(num_envs,) the current states."""
        if self._states is None:
            raise gym.error.ResetNeeded("the environments have no states yet: call reset() first")
        return self._states.copy()

    def reset(  # type: ignore[override]
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[IntArray, dict[str, Any]]:
        """Start all episodes anew, in drawn states or in ``options["state"]``: one state, or one for each copy."""
        seed = checked_seed(seed)
        if seed is not None:
            self._np_random, self._np_random_seed = seeding.np_random(seed)
        start = start_option(options)
        if start is None:
            self._states = self._model.sample_initial(self.num_envs, self.np_random)
        else:
            if np.shape(start) not in ((), (self.num_envs,)):
                raise ValueError(f"state must be one state or {self.num_envs}, got shape {np.shape(start)}")
            self._states = self._model.observe(np.broadcast_to(start, self.num_envs)).copy()
        self._elapsed[:] = 0
        self._over = None
        return self._states.copy(), self._infos(self._states)

    def step(  # type: ignore[override]
        self, actions: ArrayLike
    ) -> tuple[IntArray, FloatArray, BoolArray, BoolArray, dict[str, Any]]:
        """Play one action in each copy."""
        states = self.states
        played = numbers("actions", actions)
        if played.shape != (self.num_envs,) or played.dtype.kind not in "iu":
            raise ValueError(f"actions must be {self.num_envs} integers, got shape {played.shape} of {played.dtype}")
        try:
            rewards, terminated, truncated, n_ended = _advance(
                *self._model.transition_table.arrays,
                self._pair_rewards,
                self._absorbing_state,
                self._limit,
                states,
                played,
                self._elapsed,
                self.np_random.random(self.num_envs),
            )
        except IndexError:
            raise ValueError(f"actions must lie in [0, {self._env.n_actions}), got {played.tolist()}") from None
        if self._over is not None:
            self._restart(self._over, states)
            self._over = None
        infos: dict[str, Any] = {}
        if n_ended > 0:
            ended = terminated | truncated
            if RESETS_IN_SAME_STEP:
                infos = self._final_infos(ended, states)
                self._restart(ended, states)
            else:
                self._elapsed[ended] = _OVER
                self._over = ended
        self._states = states
        return states.copy(), rewards, terminated, truncated, infos | self._infos(states)

    def _restart(self, which: BoolArray, states: IntArray) -> None:
        states[which] = self._model.sample_initial(int(which.sum()), self.np_random)
        self._elapsed[which] = 0

    def _infos(self, states: IntArray) -> dict[str, Any]:
        """By Gymnasium's convention: ``_key`` says which copies ``key`` holds for."""
        features = self._env.state_features.take(states, axis=0)
        return {"cost_features": features, "_cost_features": np.ones(self.num_envs, dtype=np.bool_)}

    def _final_infos(self, ended: BoolArray, states: IntArray) -> dict[str, Any]:
        infos = np.full(self.num_envs, None, dtype=object)
        for copy in np.flatnonzero(ended):
            infos[copy] = {"cost_features": self._env.state_features[states[copy]].copy()}
        return {
            "final_observation": np.where(ended, states, 0),
            "_final_observation": ended.copy(),
            "final_info": infos,
            "_final_info": ended.copy(),
        }

    def render(self) -> Any:
        """Return the frames of the copies as a tuple."""
        frames: list[Any] = []
        for state in self.states:
            self._env.set_state(int(state))
            frames.append(self._env.render())
        return tuple(frames)

    # `VectorEnvWrapper` of Gymnasium 0.29 calls these halves instead of `reset` and `step`.

    def reset_wait(  # type: ignore[override]
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[IntArray, dict[str, Any]]:
        """Do what ``reset`` does."""
        return self.reset(seed=seed, options=options)

    def step_async(self, actions: ArrayLike) -> None:
        """Keep ``actions`` for ``step_wait``."""
        self._actions = actions

    def step_wait(self, **kwargs: Any) -> tuple[IntArray, FloatArray, BoolArray, BoolArray, dict[str, Any]]:
        """Do what ``step`` does with the actions kept."""
        return self.step(self._actions)

    @property
    def spec(self) -> EnvSpec | None:
        """What ``make_vec`` built this from."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        # Gymnasium 0.29 records keyword arguments of make_vec here without passing them on.
        for name, value in {} if spec is None else spec.kwargs.items():
            if getattr(self._env, name, value) != value:
                raise gym.error.Error(
                    f"Gymnasium {gym.__version__} did not pass {name}={value!r} to the vectorised environment: "
                    f"write make_vec(..., vector_kwargs={{{name!r}: {value!r}}})"
                )
        self._spec = spec


@jit
def _advance(
    offsets: NDArray[Any],
    outcomes: NDArray[Any],
    thresholds: FloatArray,
    aliases: NDArray[np.int32],
    pair_rewards: FloatArray,
    absorbing_state: int,
    limit: int,
    states: IntArray,
    actions: IntArray,
    elapsed: IntArray,
    uniforms: FloatArray,
) -> tuple[FloatArray, BoolArray, BoolArray, int]:
    """Step the copies that are not over, changing ``states`` and ``elapsed`` in place; count the episodes that end."""
    n_actions = pair_rewards.shape[1]
    for n in range(states.size):
        if elapsed[n] != _OVER and not 0 <= actions[n] < n_actions:
            raise IndexError
    rewards = np.zeros(states.size)
    terminated = np.zeros(states.size, dtype=np.bool_)
    truncated = np.zeros(states.size, dtype=np.bool_)
    n_ended = 0
    for n in range(states.size):
        if elapsed[n] == _OVER:
            continue
        rewards[n] = pair_rewards[states[n], actions[n]]
        pair = states[n] * n_actions + actions[n]
        states[n] = draw_alias(offsets, outcomes, thresholds, aliases, pair, uniforms[n])
        elapsed[n] += 1
        terminated[n] = states[n] == absorbing_state
        truncated[n] = elapsed[n] >= limit
        n_ended += terminated[n] or truncated[n]
    return rewards, terminated, truncated, n_ended
