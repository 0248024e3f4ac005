"""Plays the game beside an algorithm of Stable-Baselines3: moves the weights, keeps snapshots, shows progress."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from tqdm import tqdm

from lfd_gym.baselines.neural.envs import CostVecEnv
from lfd_gym.baselines.neural.game import Game
from lfd_gym.baselines.neural.players import averaging

#: The share of the budget over which the distance has to stay within the chance of few episodes to end before it, and
#: the share from which on that counts: a policy that is erratic at first makes any distance look like chance.
_WITHIN_CHANCE, _COUNTED_FROM = 1 / 6, 1 / 2
#: Parts of a run whose mean policies are judged.
_N_STRETCHES = 10


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A policy on the way: after how many steps, how far it was by its latest episodes, and its weights."""

    n_steps: int
    distance: float
    weights: dict[str, Any]


def stretches(snapshots: Sequence[Snapshot]) -> list[Snapshot]:
    """Return the mean weights of each tenth of the snapshots.

    A policy on the way may fail where those before and after it do not; the mean of their weights fails less often.
    """
    parts = np.array_split(np.arange(len(snapshots)), min(_N_STRETCHES, len(snapshots)))
    return [_mean([snapshots[k] for k in part]) for part in parts]


def _mean(snapshots: Sequence[Snapshot]) -> Snapshot:
    last = snapshots[-1]
    if len(snapshots) == 1:
        return last
    each = [snapshot.weights for snapshot in snapshots]
    return Snapshot(
        last.n_steps,
        last.distance,
        {name: th.stack([weights[name] for weights in each]).mean(0) for name in last.weights},
    )


class Duel(BaseCallback):
    """Moves the weights of the game every so many steps.

    Attributes
    ----------
    snapshots
        After every move.
    within_chance
        Whether the distance has been within the chance of few episodes for long: the algorithm then ends.

    Parameters
    ----------
    game
        The cost player.
    envs
        Where the policy player plays.
    kept
        The network whose weights are kept: the averaged one, or that which plays.
    every
        Steps between two moves.
    budget
        Steps in all; what the algorithm lets fall or rise over time does so over these.
    quiet
        Whether no progress is shown.
    """

    def __init__(
        self, game: Game, envs: CostVecEnv, kept: Any, every: int, budget: int, *, quiet: bool = False
    ) -> None:
        super().__init__()
        self.game, self.kept = game, kept
        self.snapshots: list[Snapshot] = []
        self._envs, self._every, self._budget = envs, every, budget
        self._due = every
        self._n_updates = 0
        self._n_within_chance = 0
        self._bar = tqdm(total=budget, unit=" steps", delay=1, disable=quiet or None, leave=False, desc="playing")

    @property
    def within_chance(self) -> bool:
        """See the class."""
        return self._n_within_chance * self._every >= _WITHIN_CHANCE * self._budget

    def _on_training_start(self) -> None:
        # Rounds are calls of `learn` of their own, each of which takes itself for the whole.
        self.model._total_timesteps = self._budget

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
        return not self.within_chance

    def move(self) -> None:
        """Move the weights, pay again by them, and keep a snapshot."""
        self.game.move()
        buffer = getattr(self.model, "replay_buffer", None)
        if buffer is not None:
            buffer.pay_again()
        self.snapshots.append(self.snapshot())
        counted = self.game.within_chance and self.num_timesteps > _COUNTED_FROM * self._budget
        self._n_within_chance = self._n_within_chance + 1 if counted else 0
        self._show()

    def _show(self) -> None:
        returns = self._envs.returns
        seen = float(np.mean(returns)) if returns else float("nan")
        self.logger.record("game/distance", self.game.distance)
        self.logger.record("game/return", seen)
        self.logger.record("time/total_timesteps", self.num_timesteps)
        self.logger.dump(self.num_timesteps)
        self._bar.update(min(self.num_timesteps, self._budget) - self._bar.n)
        self._bar.set_postfix({"distance": f"{self.game.distance:.3f}", "return": f"{seen:.4g}"})

    def snapshot(self) -> Snapshot:
        """Return the policy as it is now."""
        return Snapshot(self.num_timesteps, self.game.distance, copy.deepcopy(self.kept.state_dict()))

    def all_snapshots(self) -> list[Snapshot]:
        """Return the policies after every move, and the last one."""
        moved = self.snapshots
        return moved if moved and moved[-1].n_steps == self.num_timesteps else [*moved, self.snapshot()]

    def close(self) -> None:
        """Take the bar away."""
        self._bar.close()

    # -- going on ---------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return what is needed to go on."""
        return {
            "due": self._due,
            "n_updates": self._n_updates,
            "n_within_chance": self._n_within_chance,
            "n_calls": self.n_calls,
            "num_timesteps": self.num_timesteps,
            "snapshots": [(each.n_steps, each.distance, each.weights) for each in self.snapshots],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self._due, self._n_updates = state["due"], state["n_updates"]
        self._n_within_chance, self.n_calls = state["n_within_chance"], state["n_calls"]
        self.num_timesteps = state["num_timesteps"]
        self.snapshots = [Snapshot(*each) for each in state["snapshots"]]
