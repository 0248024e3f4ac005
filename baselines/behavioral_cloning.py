"""Behavioural cloning with a network, by `imitation`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.baselines.learner import Learned, Task
from lfd_gym.baselines.playing import SeededTorch, network_arch, quiet_logger
from lfd_gym.demos.demonstrations import Demonstrations

try:
    import torch as th
    from imitation.algorithms.bc import BC
    from stable_baselines3.common.policies import ActorCriticPolicy
except ImportError as error:
    raise ImportError("this learner needs the 'imitation' extra: pip install 'lfd-gym[imitation]'") from error


@dataclass(frozen=True)
class BehavioralCloning:
    """Maximum likelihood with an entropy bonus, by Adam; the budget is a number of gradient steps.

    Attributes
    ----------
    hidden_sizes
        Of the policy's network.
    learning_rate, batch_size
        Of Adam.
    entropy_weight, l2_weight
        Regularisation.
    """

    hidden_sizes: tuple[int, ...] = (32, 32)
    learning_rate: float = 0.01
    batch_size: int = 1024
    entropy_weight: float = 1e-3
    l2_weight: float = 1e-5

    queries_expert: ClassVar[bool] = False
    budget_unit: ClassVar[str] = "gradient steps"
    default_budget: ClassVar[int | None] = 1000

    def learn(self, task: Task, budget: int | None, rng: np.random.Generator) -> Learned:
        """Fit a network to the demonstrated actions."""
        assert budget is not None
        demonstrations = task.demonstrations
        with SeededTorch(rng):
            trainer = self.trainer(demonstrations.observation_space, demonstrations.action_space, rng)
            trainer.set_demonstrations(PairBatches(demonstrations, self.batch_size, rng))
            trainer.train(n_batches=budget, progress_bar=False)
        return Learned(trainer.policy)

    def trainer(self, observations: gym.Space[Any], actions: gym.Space[Any], rng: np.random.Generator) -> BC:
        """Return `imitation`'s trainer with these settings, without demonstrations."""
        network = ActorCriticPolicy(
            observations, actions, lr_schedule=lambda _: self.learning_rate, net_arch=network_arch(self.hidden_sizes)
        )
        return BC(
            observation_space=observations,
            action_space=actions,
            rng=rng,
            policy=network,
            batch_size=self.batch_size,
            optimizer_cls=th.optim.Adam,
            optimizer_kwargs={"lr": self.learning_rate},
            ent_weight=self.entropy_weight,
            l2_weight=self.l2_weight,
            device="cpu",
            custom_logger=quiet_logger(),
        )


class PairBatches:
    """Batches of demonstrated transitions in random order, endlessly re-iterable: `imitation`'s data loader, by slices.

    Fewer transitions than a batch are drawn with replacement.
    """

    def __init__(self, demonstrations: Demonstrations, batch_size: int, rng: np.random.Generator) -> None:
        before = np.arange(demonstrations.n_transitions) + demonstrations.trajectory_indices
        self._columns: dict[str, NDArray[Any]] = {
            "obs": demonstrations.observations[before],
            "acts": demonstrations.actions,
            "next_obs": demonstrations.observations[before + 1],
            "dones": np.zeros(demonstrations.n_transitions, dtype=bool),
        }
        ends = demonstrations.offsets[1:][demonstrations.terminated] - 1
        self._columns["dones"][ends] = True
        self._batch_size = batch_size
        self._rng = rng

    def __iter__(self) -> Iterator[Any]:
        n = len(self._columns["acts"])
        order = self._rng.permutation(n)
        if n < self._batch_size:
            order = self._rng.integers(n, size=self._batch_size)
        for start in range(0, len(order) - self._batch_size + 1, self._batch_size):
            chosen = order[start : start + self._batch_size]
            yield {name: column[chosen] for name, column in self._columns.items()}
