"""What learners that play need: fast vectorised environments for Stable-Baselines3, and demonstrations that fit them.

On a finite model all episodes have the same length. When the process ends, the episode goes on in the absorbing state
until the horizon, in play and in the (padded) demonstrations alike: the length of an episode then says nothing about
its cost, which is what `imitation` asks for and its adversarial learners need. Importing this module imports torch.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.demonstrations.demonstrations import Demonstrations, Episode
from lfd_gym.model.dynamics import FiniteDynamics
from lfd_gym.model.generative_model import TabularModel
from lfd_gym.task import Task
from lfd_gym.validation import FloatArray

try:
    import imitation.util.logger as imitation_logger
    from imitation.data.wrappers import RolloutInfoWrapper
    from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv
except ImportError as error:
    raise ImportError("this learner needs the 'imitation' extra: pip install 'lfd-gym[imitation]'") from error


class TabularVecEnv(VecEnv):
    """Copies of a finite MDP, stepped together by alias tables; every episode lasts ``horizon`` steps.

    Parameters
    ----------
    dynamics
        Its absorbing state, if it has one, is observed like any other.
    n_envs
        Number of copies.
    horizon
        Length of every episode; its end is a truncation.
    rng
        Draws all transitions.
    cost
        (S·A,) the reward is its negative; zero if not given.
    """

    def __init__(
        self,
        dynamics: FiniteDynamics,
        n_envs: int,
        horizon: int,
        rng: np.random.Generator,
        cost: FloatArray | None = None,
    ) -> None:
        super().__init__(n_envs, gym.spaces.Discrete(dynamics.n_states), gym.spaces.Discrete(dynamics.n_actions))
        self._model = TabularModel.of(dynamics)
        self._horizon = horizon
        self._rng = rng
        self._rewards = (
            np.zeros(dynamics.n_states * dynamics.n_actions) if cost is None else -np.asarray(cost, dtype=np.float64)
        )
        self._elapsed = 0
        self.n_steps_taken = 0

    def reset(self) -> NDArray[Any]:
        """Start all episodes."""
        self._elapsed = 0
        self._states = self._model.sample_initial(self.num_envs, self._rng)
        return self._states.copy()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = np.asarray(actions)

    def step_wait(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], list[dict[str, Any]]]:
        """Play the kept actions; at the horizon all copies start anew, as is Stable-Baselines3's convention."""
        pairs = self._states * self._model.n_actions + self._actions
        states = self._model.sample_next(self._states, self._actions, self._rng)
        self._elapsed += 1
        self.n_steps_taken += self.num_envs
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        ended = self._elapsed == self._horizon
        if ended:
            infos = [{"terminal_observation": np.array(state), "TimeLimit.truncated": True} for state in states]
            self._states = self._model.sample_initial(self.num_envs, self._rng)
            self._elapsed = 0
        else:
            self._states = states
        rewards = self._rewards[pairs].astype(np.float32)
        return self._states.copy(), rewards, np.full(self.num_envs, ended), infos

    def close(self) -> None:
        """Nothing to free."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute once for each copy."""
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: the copies share everything."""
        raise NotImplementedError("the copies of a TabularVecEnv have no attributes of their own")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Refuse: there are no single environments."""
        raise NotImplementedError("the copies of a TabularVecEnv have no methods of their own")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """No copy is wrapped."""
        return [False] * self.num_envs


def training_envs(task: Task, n_envs: int, rng: np.random.Generator) -> VecEnv:
    """Return vectorised environments to learn in: on the model if it is known, else copies of the environment."""
    if task.dynamics is not None:
        return TabularVecEnv(task.dynamics, n_envs, task.episode_length, rng)
    spec: Any = getattr(task.env, "spec", None)
    if spec is None:
        raise ValueError("env must have been made by gymnasium.make, so that copies of it can be made")
    venv = DummyVecEnv([lambda: RolloutInfoWrapper(_flat(spec.make())) for _ in range(n_envs)])
    venv.seed(int(rng.integers(2**31)))
    return venv


def _flat(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Show `Dict` and `Tuple` observations as the demonstrations have them."""
    nested = isinstance(env.observation_space, gym.spaces.Dict | gym.spaces.Tuple)
    wrappers: Any = gym.wrappers  # which does not say that it exports them
    return wrappers.FlattenObservation(env) if nested else env


def padded_demonstrations(task: Task, rng: np.random.Generator) -> Demonstrations:
    """Return the demonstrations over the model's states, ended ones going on in the absorbing state to the horizon.

    Actions do not matter there; they are drawn uniformly. Without a model they are returned as they are.
    """
    demonstrations: Demonstrations = task.demonstrations
    dynamics = task.dynamics
    if dynamics is None:
        return demonstrations
    episodes = [_padded(episode, dynamics, task.episode_length, rng) for episode in demonstrations]
    spaces = gym.spaces.Discrete(dynamics.n_states), gym.spaces.Discrete(dynamics.n_actions)
    return Demonstrations.from_episodes(episodes, *spaces)


def _padded(episode: Episode, dynamics: FiniteDynamics, horizon: int, rng: np.random.Generator) -> Episode:
    observations, actions = (np.asarray(part, dtype=np.int64) for part in (episode.observations, episode.actions))
    missing = horizon - len(actions)
    if episode.terminated and dynamics.absorbing_state is not None:
        # Whatever the environment showed at the end, the process is in the absorbing state.
        observations = np.append(observations[:-1], [dynamics.absorbing_state] * (max(missing, 0) + 1))
        actions = np.append(actions, rng.integers(dynamics.n_actions, size=max(missing, 0)))
    return Episode(observations, actions, None, terminated=False, truncated=True)


def quiet_logger() -> Any:
    """Return a logger of `imitation` that writes nothing."""
    return imitation_logger.configure(_scratch_folder().name, format_strs=())


@cache
def _scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that vanishes with the process: loggers want one even if they write nothing."""
    return tempfile.TemporaryDirectory(prefix="lfd_gym_")


def network_arch(sizes: Sequence[int]) -> dict[str, list[int]]:
    """Return the architecture of separate networks for policy and values, as Stable-Baselines3 takes it."""
    return {"pi": list(sizes), "vf": list(sizes)}
