"""Behavioural cloning with a network, by `imitation`.

Over finitely many states the network sees which state it is in, and so learns nothing about states that the expert was
not seen in. Where the environment says where its states lie (`Task.state_positions`), the network is trained on how
near a state is to each demonstrated one instead: bumps of the width ``nearness``. The first layer is linear in them, so
that in the end it is rewritten for the states themselves, and the policy is an ordinary one of Stable-Baselines3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from lfd_gym.baselines.learner import Learner, LearningResult
from lfd_gym.baselines.neural.seeding import SeededTorch
from lfd_gym.baselines.playing import network_arch, quiet_logger
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.policies.conversion import as_policy
from lfd_gym.task import Task
from lfd_gym.validation import FloatArray

try:
    import torch as th
    from imitation.algorithms.bc import BC
    from stable_baselines3.common.policies import ActorCriticPolicy
except ImportError as error:
    raise ImportError("this learner needs the 'imitation' extra: pip install 'lfd-gym[imitation]'") from error

_MOST_CENTRES = 1024


@dataclass(frozen=True)
class BehavioralCloning(Learner):
    """Maximum likelihood with an entropy bonus, by Adam; the budget is a number of gradient steps.

    Attributes
    ----------
    hidden_sizes
        Of the policy's network.
    learning_rate, batch_size
        Of Adam.
    entropy_weight, l2_weight
        Regularisation.
    nearness
        Width of the bumps around demonstrated states, in the units of the positions.
    """

    hidden_sizes: tuple[int, ...] = (32, 32)
    learning_rate: float = 0.01
    batch_size: int = 1024
    entropy_weight: float = 1e-3
    l2_weight: float = 0.0
    nearness: float = 1.0

    needs_actions: ClassVar[bool] = True
    budget_unit: ClassVar[str] = "gradient steps"
    default_budget: ClassVar[int] = 1000

    @property
    def name(self) -> str:
        """The usual short name."""
        return "bc"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.nearness < np.inf:
            raise ValueError(f"nearness must be positive and finite, got {self.nearness}")

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Fit a network to the demonstrated actions."""
        demonstrations, positions = task.demonstrations, task.state_positions
        states, actions = demonstrations.observation_space, demonstrations.action_space
        with SeededTorch(rng):
            if positions is None:
                batches = PairBatches(demonstrations, self.batch_size, rng)
                return LearningResult(as_policy(self._cloned(states, actions, batches, budget, rng)))
            bumps = nearness_bumps(positions, np.unique(demonstrations.observations), self.nearness, rng)
            batches = PairBatches(demonstrations, self.batch_size, rng, bumps)
            seen = gym.spaces.Box(0.0, 1.0, bumps.shape[1:], np.float32)
            trained = self._cloned(seen, actions, batches, budget, rng)
            policy = self.network(states, actions)
            policy.load_state_dict(_over_states(trained.state_dict(), bumps))
        return LearningResult(as_policy(policy))

    def _cloned(
        self,
        observations: gym.Space[Any],
        actions: gym.Space[Any],
        batches: PairBatches,
        budget: int,
        rng: np.random.Generator,
    ) -> ActorCriticPolicy:
        trainer = self.trainer(observations, actions, rng)
        trainer.set_demonstrations(batches)
        trainer.train(n_batches=budget, progress_bar=False)
        return trainer.policy

    def network(self, observations: gym.Space[Any], actions: gym.Space[Any]) -> ActorCriticPolicy:
        """Return a new network."""
        return ActorCriticPolicy(
            observations, actions, lr_schedule=lambda _: self.learning_rate, net_arch=network_arch(self.hidden_sizes)
        )

    def trainer(self, observations: gym.Space[Any], actions: gym.Space[Any], rng: np.random.Generator) -> BC:
        """Return `imitation`'s trainer with these settings, without demonstrations."""
        return BC(
            observation_space=observations,
            action_space=actions,
            rng=rng,
            policy=self.network(observations, actions),
            batch_size=self.batch_size,
            optimizer_cls=th.optim.Adam,
            optimizer_kwargs={"lr": self.learning_rate},
            ent_weight=self.entropy_weight,
            l2_weight=self.l2_weight,
            device="cpu",
            custom_logger=quiet_logger(),
        )


def nearness_bumps(
    positions: FloatArray, centres: NDArray[np.integer], width: float, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return how near each state is to each centre, exp(−distance²/2·width²), (S, n); of many centres, to some."""
    if len(centres) > _MOST_CENTRES:
        centres = rng.choice(centres, _MOST_CENTRES, replace=False)
    squares = cdist(positions, positions[centres], "sqeuclidean")
    return np.asarray(np.exp(-squares / (2 * width**2)), dtype=np.float32)


def _over_states(weights: dict[str, Any], bumps: NDArray[np.float32]) -> dict[str, Any]:
    """Return the weights of a network over states that does what the given ones do over bumps."""
    first = ("mlp_extractor.policy_net.0.weight", "mlp_extractor.value_net.0.weight")
    if first[0] not in weights:  # no hidden layers
        first = ("action_net.weight", "value_net.weight")
    return weights | {name: weights[name] @ th.as_tensor(bumps).T for name in first}


class PairBatches:
    """Batches of demonstrated transitions in random order, endlessly re-iterable: `imitation`'s data loader, by slices.

    Fewer transitions than a batch are drawn with replacement. ``features``, (S, n), are shown instead of states.
    """

    def __init__(
        self,
        demonstrations: Demonstrations,
        batch_size: int,
        rng: np.random.Generator,
        features: NDArray[Any] | None = None,
    ) -> None:
        before = np.arange(demonstrations.n_transitions) + demonstrations.trajectory_indices
        self._features = features
        self._columns: dict[str, NDArray[Any]] = {
            "obs": demonstrations.observations[before],
            "acts": np.asarray(demonstrations.actions),
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
            batch = {name: column[chosen] for name, column in self._columns.items()}
            if self._features is not None:
                batch |= {name: self._features[batch[name]] for name in ("obs", "next_obs")}
            yield batch
