"""Plays the game beside an algorithm of Stable-Baselines3: moves the weights, keeps snapshots, shows progress."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from tqdm import tqdm

from lfd_gym.baselines.neural.game import Game
from lfd_gym.baselines.neural.players import averaging


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A policy on the way: after how many steps, how far it was by its latest episodes, and its weights."""

    n_steps: int
    distance: float
    weights: dict[str, Any]


class Duel(BaseCallback):
    """Moves the weights of the game every so many steps.

    Parameters
    ----------
    game
        The cost player.
    kept
        The network whose weights are kept: the averaged one, or that which plays.
    every
        Steps between two moves.
    quiet
        Whether no progress is shown.
    """

    def __init__(self, game: Game, kept: Any, every: int, budget: int, quiet: bool = False) -> None:
        super().__init__()
        self.game, self.kept = game, kept
        self.snapshots: list[Snapshot] = []
        self._every, self._due = every, every
        self._n_updates = 0
        self._bar = tqdm(total=budget, unit=" steps", delay=1, disable=quiet or None, leave=False, desc="playing")

    def _on_rollout_start(self) -> None:
        # Algorithms that do not average by themselves have their whole policy averaged, after every round of updates.
        averaged = getattr(self.model, "averaged", None)
        updates: int = self.model._n_updates
        if averaged is not None and updates > self._n_updates:
            averaging(self.model.policy, averaged, updates - self._n_updates)
        self._n_updates = updates

    def _on_step(self) -> bool:
        if self.num_timesteps >= self._due:
            self._due += self._every
            self.move()
        return True

    def move(self) -> None:
        """Move the weights, pay again by them, and keep a snapshot."""
        self.game.move()
        buffer = getattr(self.model, "replay_buffer", None)
        if buffer is not None:
            buffer.pay_again()
        self.snapshots.append(self.snapshot())
        self.logger.record("game/distance", self.game.distance)
        self._bar.update(min(self.num_timesteps, self._bar.total) - self._bar.n)
        self._bar.set_postfix(distance=f"{self.game.distance:.3f}")

    def snapshot(self) -> Snapshot:
        """Return the policy as it is now."""
        return Snapshot(self.num_timesteps, self.game.distance, copy.deepcopy(self.kept.state_dict()))

    def _on_training_end(self) -> None:
        self._bar.close()
