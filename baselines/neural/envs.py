"""Environments to learn in: observations scaled, no reward or minus the cost as one. Importing this imports torch."""

from __future__ import annotations

import copy
from collections import deque
from dataclasses import dataclass
from typing import Any, cast

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper

from lfd_gym.baselines.neural.game import EpisodeSums, Game
from lfd_gym.demonstrations.collection import collect
from lfd_gym.demonstrations.environments import is_stable_baselines_vector, known_spec
from lfd_gym.policies.tables import UniformPolicy
from lfd_gym.spaces import to_array
from lfd_gym.task import Task
from lfd_gym.validation import FloatArray

#: An entry that moves less than this is not blown up to move by one.
_LEAST_SCALE = 1e-2
#: Episodes of random play that scales are chosen from, and how long they are at most.
_N_RANDOM, _RANDOM_STEPS = 5, 200
#: Episodes whose returns are shown.
_N_RETURNS = 20


@dataclass(frozen=True, eq=False)
class Scaling:
    """(x − centre)/scale of flat observations.

    It is written into the first layer of the networks in the end, so that policies take observations as they are.
    """

    centre: NDArray[np.float32]
    scale: NDArray[np.float32]

    @classmethod
    def of(cls, demonstrated: NDArray[Any], others: NDArray[Any] | None) -> Scaling:
        """Give demonstrated observations and those of random play the same share."""
        groups = [_flat(part).astype(np.float64) for part in (demonstrated, others) if part is not None and len(part)]
        means, variances = [part.mean(axis=0) for part in groups], [part.var(axis=0) for part in groups]
        centre: FloatArray = np.mean(means, axis=0)
        variance = np.mean(variances, axis=0) + np.var(means, axis=0)
        scale = np.maximum(np.sqrt(variance), _LEAST_SCALE)
        return cls(centre.astype(np.float32), scale.astype(np.float32))

    @classmethod
    def for_playing(cls, task: Task, rng: np.random.Generator) -> Scaling | None:
        """Choose scales by the demonstrations and a little random play; None where observations are integers."""
        if not isinstance(task.observation_space, gym.spaces.Box):
            return None
        actions = task.action_space
        if isinstance(actions, gym.spaces.Box) and not actions.is_bounded():
            return cls.of(task.demonstrations.acted_on, None)
        played = collect(task.env, UniformPolicy(actions), _N_RANDOM, _RANDOM_STEPS, rng)
        return cls.of(task.demonstrations.acted_on, played.acted_on)

    def __call__(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """Return a batch of observations, (n, d)."""
        return np.asarray((_flat(observations) - self.centre) / self.scale, dtype=np.float32)


def _flat(observations: NDArray[Any]) -> NDArray[Any]:
    return observations.reshape(len(observations), -1)


class ScaledVecEnv(VecEnvWrapper):
    """Environments that show scaled observations and pay nothing.

    Their rewards are added up for whoever wants to look on, and nothing else is done with them.

    Attributes
    ----------
    n_steps
        Of all environments together.
    returns
        Of the latest episodes, in the units of the environment.
    """

    def __init__(self, venv: VecEnv, task: Task, scaling: Scaling | None) -> None:
        # Demonstrations over finitely many states may hold one more than is ever shown, the absorbing one.
        seen: gym.Space[Any] = copy.deepcopy(task.demonstrations.observation_space)
        if scaling is not None:
            seen = gym.spaces.Box(-np.inf, np.inf, scaling.centre.shape, np.float32)
        # A copy: what is drawn from the space is seeded, and the environment's own is nobody else's business.
        super().__init__(venv, seen, copy.deepcopy(venv.action_space))
        self._scaling = scaling
        self._seen: NDArray[Any] = np.empty(0)
        self.n_steps = 0
        self.returns: deque[float] = deque(maxlen=_N_RETURNS)
        self._rewards = np.zeros(venv.num_envs)

    def reset(self) -> NDArray[Any]:
        """Begin an episode in each environment."""
        self._rewards[:] = 0.0
        return self._shown(self.venv.reset())

    def step_wait(self) -> Any:
        """Finish the step."""
        observations, rewards, dones, infos = self.venv.step_wait()
        self.n_steps += self.num_envs
        self._rewards += rewards
        for k in np.flatnonzero(dones):
            last = self._checked(_one(self.venv.observation_space, infos[k]["terminal_observation"]))
            infos[k]["terminal_observation"] = self._scaled(last)[0]
            self.returns.append(float(self._rewards[k]))
            self._rewards[k] = 0.0
        return self._shown(observations), np.zeros(self.num_envs, dtype=np.float32), dones, infos

    def _shown(self, observations: Any) -> NDArray[Any]:
        # A copy: the environment may write the next observation into the same array.
        self._seen = self._checked(to_array(self.venv.observation_space, observations, self.num_envs).copy())
        return self._scaled(self._seen)

    def _scaled(self, observations: NDArray[Any]) -> NDArray[Any]:
        return observations if self._scaling is None else self._scaling(observations)

    def _checked(self, observations: NDArray[Any]) -> NDArray[Any]:
        if observations.dtype.kind == "f" and not np.isfinite(observations).all():
            wrong = observations[~np.isfinite(_flat(observations)).all(axis=1)][0]
            raise ValueError(
                f"env must give finite observations, got {wrong} after {self.n_steps} steps: "
                "mend the environment, or end the episode before"
            )
        return observations


class CostVecEnv(ScaledVecEnv):
    """Environments whose reward is −⟨w, costs⟩ for the game's current w.

    Attributes
    ----------
    rows
        (n_envs, n_c) the costs of the last step, for the replay buffer.
    measured
        (n_envs,) which of the episodes that run are played by the policy that is to be measured. If they alternate, it
        is every second one in each environment.
    """

    def __init__(self, venv: VecEnv, task: Task, game: Game, scaling: Scaling | None, *, alternate: bool) -> None:
        super().__init__(venv, task, scaling)
        self.game, self._alternate = game, alternate
        self._sums = EpisodeSums(game.step_weights, venv.num_envs, game.expert.size)
        self.rows: NDArray[np.float32] = np.zeros((venv.num_envs, game.expert.size), dtype=np.float32)
        self.measured: NDArray[np.bool_] = np.ones(venv.num_envs, dtype=bool)
        if alternate:
            self.measured[::2] = False

    def reset(self) -> NDArray[Any]:
        """Begin an episode in each environment; what ran before is not counted."""
        self._sums.forget()
        return super().reset()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Begin a step, and pay for where it is taken."""
        done = actions if self.game.costs.uses_actions else None
        self.rows = np.asarray(self.game.costs.rows(self._seen, done), dtype=np.float32)
        self._sums.add(self.rows)
        super().step_async(actions)

    def step_wait(self) -> Any:
        """Finish the step."""
        observations, _, dones, infos = super().step_wait()
        self.game.n_steps = self.n_steps
        for k in np.flatnonzero(dones):
            paid = self._sums.finished(int(k), terminated=not infos[k].get("TimeLimit.truncated", False))
            if self.measured[k]:
                self.game.hear(paid)
            if self._alternate:
                self.measured[k] = not self.measured[k]
        return observations, -(self.rows @ self.game.weights), dones, infos


def _one(space: gym.Space[Any], observation: Any) -> NDArray[Any]:
    """Return one observation as a batch of arrays."""
    if isinstance(space, gym.spaces.Dict | gym.spaces.Tuple):
        return np.asarray(gym.spaces.flatten(space, observation))[None]
    return np.asarray(observation)[None]


def copyable(task: Task) -> bool:
    """Whether copies of the task's environment can be made from its spec."""
    spec = known_spec(task.env)
    return spec is not None and all(wrapper.kwargs is not None for wrapper in spec.additional_wrappers)


def training_envs(task: Task, n_envs: int) -> VecEnv:
    """Return environments to learn in: a `VecEnv` as it is, else copies; where none can be made, the environment."""
    if is_stable_baselines_vector(task.env):
        return cast(VecEnv, task.env)
    if copyable(task):
        spec = copy.deepcopy(known_spec(task.env))
        assert spec is not None
        spec.kwargs.pop("render_mode", None)
        return DummyVecEnv([lambda: _flattened(gym.make(spec)) for _ in range(n_envs)])
    if isinstance(task.env, gym.Env):
        env = _Kept(_flattened(task.env))
        return DummyVecEnv([lambda: env])
    raise ValueError(
        f"env must be a single environment, a VecEnv of Stable-Baselines3, or say its spec, got {task.env}: "
        "learning goes on from episode to episode, and vector environments of Gymnasium differ in how they do"
    )


class _Kept(gym.Wrapper[Any, Any, Any, Any]):
    """The user's own environment, which stays open when the learner closes what it played in."""

    def close(self) -> None:
        """Leave it open."""


def _flattened(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Show `Dict` and `Tuple` observations as the demonstrations have them."""
    nested = isinstance(env.observation_space, gym.spaces.Dict | gym.spaces.Tuple)
    wrappers: Any = gym.wrappers  # which does not say that it exports them
    return wrappers.FlattenObservation(env) if nested else env
