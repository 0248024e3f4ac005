"""Generative models of the resettable environments of `seals`, through their ``transition``."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from lfd_gym.envs.simulator import SimulatorModel, borrowed


class ResettableModel(SimulatorModel):
    """A generative model of an environment with the methods of `seals.base_envs.ResettablePOMDP`.

    States are those of its ``state_space``. Its ``terminal(state, n_actions_taken)`` is asked with no actions taken, so
    an end that depends on the state counts, and a time limit does not.
    """

    #: What the environment has to offer.
    METHODS = ("initial_state", "transition", "terminal", "obs_from_state", "state_space")

    def __init__(self, env: Any) -> None:
        ends = True
        if isinstance(env.state_space, gym.spaces.Discrete):
            first, n_states = int(env.state_space.start), int(env.state_space.n)
            with borrowed(env, np.random.default_rng(0)):
                ends = any(env.terminal(np.int64(state), 0) for state in range(first, first + n_states))
        super().__init__(env, env.state_space, ends)

    def _initial_state(self) -> Any:
        return self.env.initial_state()

    def _next_state(self, state: Any, action: Any) -> Any | None:
        successor = self.env.transition(state, action)
        return None if self.env.terminal(successor, 0) else successor

    def _rewarded_next_state(self, state: Any, action: Any) -> tuple[Any | None, float]:
        successor = self.env.transition(state, action)
        reward = self.env.reward(state, action, successor)
        return (None if self.env.terminal(successor, 0) else successor), reward

    def _observation(self, state: Any) -> Any:
        return self.env.obs_from_state(state)
