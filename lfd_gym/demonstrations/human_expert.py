"""An expert at the keyboard: the arrow keys, in the window of an environment's ``human`` render mode."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.envs.toy_text.taxi import TaxiEnv
from numpy.typing import NDArray

from lfd_gym.demonstrations.collection import collect
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.envs.gridworld import ACTIONS, StochasticGridworldEnv

#: The action behind each key, by the name pygame gives the key.
_KEYS: dict[type[gym.Env[Any, Any]], dict[str, int]] = {
    StochasticGridworldEnv: {name: action for action, name in enumerate(ACTIONS)},
    FrozenLakeEnv: {"left": 0, "down": 1, "right": 2, "up": 3},
    CliffWalkingEnv: {"up": 0, "right": 1, "down": 2, "left": 3},
    TaxiEnv: {"down": 0, "up": 1, "right": 2, "left": 3, "p": 4, "d": 5},
}


class WindowClosed(Exception):  # noqa: N818  (not an error: the person has had enough)
    """The person closed the window or pressed Escape."""


class KeyboardPolicy:
    """A policy that waits for a key. It serves one environment at a time.

    Parameters
    ----------
    keys
        The action behind each key, by pygame's names of keys: ``{"left": 0, "space": 1}``.
    """

    def __init__(self, keys: Mapping[str, int]) -> None:
        pygame = _pygame()
        self._actions = {pygame.key.key_code(name): action for name, action in keys.items()}
        self._pygame = pygame

    def __call__(self, observations: NDArray[Any]) -> NDArray[np.int64]:
        """Wait until one of the keys is pressed and return its action."""
        if len(observations) != 1:
            raise ValueError(f"a person can act in one environment at a time, not in {len(observations)}")
        while True:
            event = self._pygame.event.wait()
            if event.type == self._pygame.QUIT:
                raise WindowClosed
            if event.type == self._pygame.KEYDOWN:
                if event.key == self._pygame.K_ESCAPE:
                    raise WindowClosed
                if event.key in self._actions:
                    return np.array([self._actions[event.key]])


def collect_from_keyboard(
    env: gym.Env[Any, Any],
    n_trajectories: int,
    horizon: int,
    rng: np.random.Generator,
    keys: Mapping[str, int] | None = None,
) -> Demonstrations:
    """Record trajectories of a person. Closing the window or Escape drops the current one and keeps those before.

    Parameters
    ----------
    env
        Made with ``render_mode="human"``.
    n_trajectories, horizon, rng
        As for `collect`.
    keys
        As for `KeyboardPolicy`; known for the gridworld, FrozenLake, CliffWalking and Taxi (pick up with p, drop with
        d).
    """
    if env.render_mode != "human":
        raise ValueError(f"env must be made with render_mode='human' for a person to see it, got {env.render_mode!r}")
    policy = KeyboardPolicy(_default_keys(env) if keys is None else keys)
    finished: list[Demonstrations] = []
    try:
        for _ in range(n_trajectories):
            finished.append(collect(env, policy, 1, horizon, rng))
    except WindowClosed:
        if not finished:
            raise ValueError(
                "the window was closed before the first trajectory was complete: nothing to keep"
            ) from None
    return Demonstrations.concatenate(finished)


def has_screen() -> bool:
    """Whether a window could be shown, as far as the environment of the process says."""
    if not sys.platform.startswith("linux"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"))


def check_screen() -> None:
    """Refuse a person where no window can be opened."""
    if not has_screen():  # SDL would complain in lines of its own
        raise OSError("a window needs a screen, and there is none: neither DISPLAY nor WAYLAND_DISPLAY is set")
    driver = _pygame().display.get_driver()
    if driver in ("dummy", "offscreen"):
        raise OSError(f"a window needs a screen, and there is none: SDL shows it nowhere (driver {driver!r})")


def _default_keys(env: gym.Env[Any, Any]) -> Mapping[str, int]:
    for kind, keys in _KEYS.items():
        if isinstance(env.unwrapped, kind):
            return keys
    known = ", ".join(kind.__name__ for kind in _KEYS)
    raise ValueError(f"keys must be given for {env}: they are known for {known} only")


def _pygame() -> Any:
    try:
        import pygame
    except ImportError as error:
        raise ImportError("an expert at the keyboard needs the 'human' extra: pip install 'lfd-gym[human]'") from error
    try:
        pygame.display.init()
    except pygame.error as error:
        raise OSError(f"a window needs a screen, and there is none: {error}") from error
    return pygame
