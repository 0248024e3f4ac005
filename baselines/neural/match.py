"""One run of the game with networks, from a task to the policy that is kept. Importing this module imports torch."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import stable_baselines3 as sb3
import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import configure
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from lfd_gym.baselines.learner import Checkpoint, LearningResult, checkpoints_at
from lfd_gym.baselines.neural import saving
from lfd_gym.baselines.neural.buffer import CostReplayBuffer, DemonstratedSteps
from lfd_gym.baselines.neural.duel import Duel, Snapshot, stretches
from lfd_gym.baselines.neural.envs import CostVecEnv, Scaling, training_envs
from lfd_gym.baselines.neural.game import Game
from lfd_gym.baselines.neural.judging import Judge, Judgement
from lfd_gym.baselines.neural.plain import plain_policy
from lfd_gym.baselines.neural.players import CloningActorCritic, measured_player
from lfd_gym.files import refusing
from lfd_gym.policies.policy import Policy
from lfd_gym.policies.tables import UniformPolicy
from lfd_gym.resources import Resources
from lfd_gym.task import Task
from lfd_gym.validation import LfdGymWarning

if TYPE_CHECKING:
    from lfd_gym.baselines.primal_dual_rl import PrimalDualRl

#: Copies of the environment that are played side by side.
_N_ENVS = 4
#: Steps between two moves of the cost player: of an off-policy player; PPO's rounds are longer.
_EVERY = 500
#: For each step of an environment.
_UPDATES_PER_STEP = 0.5
#: Of PPO, if the budget is small.
_ROUNDS_OF_PPO = 20
#: Played before the first update, as a share of the budget.
_BEFORE_UPDATES, _MOST_BEFORE_UPDATES = 0.1, 1000
#: Steps of a round, or as many whole episodes of all environments as that takes: then all begin anew.
_ROUND = 10_000
#: Of the policies on the way, so many are judged once more.
_N_NEAREST = 3
#: Fresh episodes that judge these, and others that measure the one that is kept.
_N_FRESH = 20
_MOST_REPLAYED = 200_000


class Match:
    """What is made from task and settings, and the steps of `lfd_gym.baselines.primal_dual_rl` in their order.

    Parameters
    ----------
    settings
        Of the learner.
    algorithm
        The class that plays; None is the one of this package.
    task, budget, rng
        Of the learner.
    seed
        Of torch.
    """

    def __init__(
        self,
        settings: PrimalDualRl,
        algorithm: type[BaseAlgorithm] | None,
        task: Task,
        budget: int,
        rng: np.random.Generator,
        seed: int,
    ) -> None:
        self.settings, self.task, self.budget, self.rng, self.seed = settings, task, budget, rng, seed
        self.on_policy = algorithm is not None and issubclass(algorithm, OnPolicyAlgorithm)
        self.game = Game(task)
        self.judge = Judge(task, self.game, rng)
        self.random = self._random_play()
        self.scaling = self._scaling()
        self.venv = training_envs(task, _N_ENVS)
        self.envs = CostVecEnv(self.venv, task, self.game, self.scaling, alternate=not self.on_policy)
        self.envs.action_space.seed(int(rng.integers(2**31)))
        self._check_budget()
        self.steps = DemonstratedSteps.of(task, self.scaling, settings.device)
        self.model = self._cloning_player() if algorithm is None else self._stock_player(algorithm)
        if settings.log is not None:
            formats = ["csv", "tensorboard"] if find_spec("tensorboard") else ["csv"]
            self.model.set_logger(configure(settings.log, formats))

    def result(self) -> LearningResult:
        """Play, choose and measure."""
        try:
            cloned = self._cloned()
            duel = self._play()
            policy, chosen, judged = self._chosen(cloned, duel)
            fresh = self.judge(policy, _N_FRESH, self.rng)
        finally:
            if self.venv is not self.task.env:
                self.venv.close()
        facts = {
            "algorithm": type(self.model).__name__,
            "distance": fresh.distance_by_criterion,
            "distance_of_random": None if self.random is None else self.random.distance_by_criterion,
            "distance_of_first": cloned[1].distance_by_criterion,
            "distance_when_chosen": judged.distance_by_criterion,
            "first_is_cloned": self.steps is not None and not self._is_plain,
            "snapshot": chosen,
            "n_snapshots": len(duel.snapshots) + 1,
            "n_rollouts": len(fresh.paid),
            "n_updates": int(self.model._n_updates),
            "ended_within_chance": duel.within_chance,
        }
        self._warn(facts)
        used = Resources(env_steps=self.game.n_steps + self.judge.n_steps)
        return LearningResult(
            policy, self.game.average_weights, resources=used, facts=facts, checkpoints=self._checkpoints(duel)
        )

    # -- what is needed -----------------------------------------------------------------------------------------------

    @property
    def _is_plain(self) -> bool:
        """Whether the player is an off-policy algorithm as Stable-Baselines3 has it, which clones nothing."""
        return not (self.on_policy or isinstance(self.model, CloningActorCritic))

    def _random_play(self) -> Judgement | None:
        actions = self.task.action_space
        if isinstance(actions, gym.spaces.Box) and not actions.is_bounded():
            return None
        return self.judge(UniformPolicy(actions))

    def _scaling(self) -> Scaling | None:
        if not isinstance(self.task.observation_space, gym.spaces.Box):
            return None  # integers, which networks see one-hot
        others = None if self.random is None else self.random.observations
        return Scaling.of(self.task.demonstrations.acted_on, others)

    def _check_budget(self) -> None:
        """Refuse a budget that ends before the first episode does."""
        n_envs, longest = self.envs.num_envs, int(self.task.demonstrations.lengths.max())
        if self.budget < n_envs * longest:
            raise ValueError(
                f"budget must allow an episode in each environment, {n_envs} x {longest} = {n_envs * longest} "
                f"environment steps, got {self.budget}"
            )

    def _rate(self, left: float) -> float:
        """Return the learning rate when a share of the budget is ``left``."""
        return self.settings.learning_rate * min(1.0, max(0.1, 2 * left))

    def _cloning_player(self) -> CloningActorCritic:
        settings, n_envs = self.settings, self.envs.num_envs
        gradient_steps = max(1, round(_UPDATES_PER_STEP * n_envs))
        before = self._before_updates
        return CloningActorCritic(
            self.envs,
            self.steps,
            list(settings.hidden_sizes),
            total_updates=(self.budget - before) // n_envs * gradient_steps,
            learning_rate=self._rate,
            buffer_size=min(self.budget, _MOST_REPLAYED),
            learning_starts=before,
            batch_size=settings.batch_size,
            gamma=self.task.discount,
            train_freq=1,
            gradient_steps=gradient_steps,
            device=settings.device,
        )

    @property
    def _before_updates(self) -> int:
        return min(_MOST_BEFORE_UPDATES, int(_BEFORE_UPDATES * self.budget))

    def _stock_player(self, algorithm: type[BaseAlgorithm]) -> BaseAlgorithm:
        settings, n_envs = self.settings, self.envs.num_envs
        sizes = list(settings.hidden_sizes)
        given: dict[str, Any] = {"learning_rate": self._rate, "gamma": self.task.discount, "device": settings.device}
        if self.on_policy:
            given["policy_kwargs"] = {"net_arch": {"pi": sizes, "vf": sizes}}
            if issubclass(algorithm, sb3.PPO):
                # The weights move once in a round: a small budget has short rounds, so that there are some.
                given["n_steps"] = 64 * int(np.clip(self.budget // (_ROUNDS_OF_PPO * 64 * n_envs), 1, 8))
            return algorithm("MlpPolicy", self.envs, **given | dict(settings.algorithm_settings))
        given |= {
            "policy_kwargs": {"net_arch": sizes},
            "buffer_size": min(self.budget, _MOST_REPLAYED),
            "learning_starts": self._before_updates,
            "batch_size": settings.batch_size,
            "train_freq": 1,
            "gradient_steps": max(1, round(_UPDATES_PER_STEP * n_envs)),
            "replay_buffer_class": CostReplayBuffer,
            "replay_buffer_kwargs": {"envs": self.envs, "demonstrations": self.steps},
        }
        if issubclass(algorithm, sb3.DQN):
            given |= {"tau": 0.005, "target_update_interval": 1, "exploration_fraction": 0.2}
        player: Any = measured_player(algorithm)  # type: ignore[arg-type]
        found: BaseAlgorithm = player("MlpPolicy", self.envs, **given | dict(settings.algorithm_settings))
        return found

    # -- playing ------------------------------------------------------------------------------------------------------

    @property
    def _kept(self) -> Any:
        """The network whose weights are kept."""
        if isinstance(self.model, CloningActorCritic):
            return self.model.policy.averaged
        return getattr(self.model, "averaged", self.model.policy)

    def _cloned(self) -> tuple[Snapshot, Judgement]:
        """Clone, if that is possible; return what the game begins with."""
        settings = self.settings
        if isinstance(self.model, CloningActorCritic):
            self.model.clone(settings.cloning_steps, settings.batch_size, 2 * settings.learning_rate)
        elif self.on_policy and self.steps is not None:
            self._clone_by_likelihood(self.steps)
        first = Snapshot(0, float("nan"), {name: w.clone() for name, w in self._kept.state_dict().items()})
        judged = self.judge(self._policy(first))
        for paid in judged.paid:
            self.game.hear(paid)
        self.game.move()
        if isinstance(self.model, CloningActorCritic):
            self.model.distance_of_cloning = judged.distance
            if self.random is not None:
                self.model.worth_of_cloning = max(0.0, 1 - judged.distance / self.random.distance)
            self.model.replay_buffer.pay_again()
        return first, judged

    def _clone_by_likelihood(self, steps: DemonstratedSteps) -> None:
        """Train the network of an on-policy algorithm on the demonstrations."""
        settings, policy = self.settings, self.model.policy
        actions = th.as_tensor(np.array(self.task.demonstrations.actions), device=settings.device)
        optimizer = th.optim.Adam(policy.parameters(), 2 * settings.learning_rate)
        for _ in range(settings.cloning_steps):
            chosen = steps.some(settings.batch_size)
            _, log_likelihood, _ = policy.evaluate_actions(steps.observations[chosen], actions[chosen])  # type: ignore[operator]
            optimizer.zero_grad()
            (-log_likelihood.mean()).backward()
            optimizer.step()

    def _play(self) -> Duel:
        """Play round after round; what is needed to go on is written between them."""
        model, n_envs = self.model, self.envs.num_envs
        every = _EVERY if not self.on_policy else model.n_steps * n_envs  # type: ignore[attr-defined]
        duel = Duel(self.game, self.envs, self._kept, every, self.budget, quiet=not self.settings.progress)
        episodes = n_envs * self.task.episode_length
        length = episodes * -(-_ROUND // episodes)
        first_seed = int(self.rng.integers(2**63))
        path = None if self.settings.checkpoint is None else Path(self.settings.checkpoint)
        if path is not None and path.exists():
            found = saving.load(path, self._asked())
            saving.check(path, found, self._state(duel))
            with refusing(path, "is not a checkpoint of this run"):
                self._restore(found, duel)
        while model.num_timesteps < self.budget and not duel.within_chance:
            seed = np.random.default_rng([first_seed, model.num_timesteps]).integers(2**31 - n_envs)
            self.envs.seed(int(seed))
            model._last_obs = None  # so that all environments begin anew
            model.learn(min(length, self.budget - model.num_timesteps), duel, None, reset_num_timesteps=False)  # type: ignore[arg-type]
            if path is not None:
                saving.save(path, self._asked(), self._state(duel))
        duel.close()
        return duel

    def _asked(self) -> dict[str, Any]:
        """Return what this run was asked for, as JSON values."""
        settings = {name: str(value) for name, value in asdict(self.settings).items() if name not in _BESIDE}
        shown = saving.fingerprint(self.task.demonstrations)
        return {"settings": settings, "budget": self.budget, "seed": self.seed, "demonstrations": shown}

    def _state(self, duel: Duel) -> dict[str, Any]:
        return {
            "model": saving.state_of(self.model),
            "game": self.game.state(),
            "envs": {"measured": self.envs.measured, "n_steps": self.envs.n_steps},
            "duel": duel.state(),
        }

    def _restore(self, state: dict[str, Any], duel: Duel) -> None:
        saving.restore(self.model, state["model"])
        self.game.restore(state["game"])
        self.envs.measured, self.envs.n_steps = state["envs"]["measured"], state["envs"]["n_steps"]
        duel.restore(state["duel"])

    # -- choosing -----------------------------------------------------------------------------------------------------

    def _policy(self, snapshot: Snapshot) -> Policy:
        now = {name: weight.clone() for name, weight in self._kept.state_dict().items()}
        self._kept.load_state_dict(snapshot.weights)
        found = plain_policy(
            self._kept, self.scaling, self.task.demonstrations.observation_space, self.task.action_space
        )
        self._kept.load_state_dict(now)
        return found

    def _checkpoints(self, duel: Duel) -> tuple[Checkpoint, ...]:
        """Return the first policy after each tenth of the budget that was played."""
        found = []
        for due in checkpoints_at(self.budget):
            after = [snapshot for snapshot in duel.snapshots if snapshot.n_steps >= due]
            found += [Checkpoint(snapshot.n_steps, self._policy(snapshot)) for snapshot in after[:1]]
        return tuple(found)

    def _chosen(self, first: tuple[Snapshot, Judgement], duel: Duel) -> tuple[Policy, int, Judgement]:
        """Return the policy that is kept, after how many steps it was had, and its judgement.

        Stretches are judged by a few episodes each, and the nearest by more: it is also the luckiest of many.
        """
        judged = [(each, self.judge(self._policy(each))) for each in stretches(duel.all_snapshots())]
        judged.sort(key=lambda each: each[1].distance)
        seed = int(self.rng.integers(2**63))

        def judged_again(snapshot: Snapshot, before: Judgement) -> Judgement:
            more = self.judge(self._policy(snapshot), _N_FRESH, np.random.default_rng(seed))
            return self.judge.joined(before, more)

        (cloned, of_cloned), *others = [
            (each, judged_again(each, before)) for each, before in [first, *judged[:_N_NEAREST]]
        ]
        best, kept = min(others, key=lambda each: each[1].distance)
        chance = (kept.error(self.game.expert) + of_cloned.error(self.game.expert)) ** 0.5
        if kept.distance >= of_cloned.distance - chance:
            best, kept = cloned, of_cloned
        return self._policy(best), best.n_steps, kept

    def _warn(self, facts: dict[str, Any]) -> None:
        of_random = facts["distance_of_random"]
        if of_random is not None and facts["distance"] >= of_random:
            warnings.warn(
                f"primal_dual_rl has not learned: its policy is at {facts['distance']:.3f} from the demonstrations, "
                f"random play at {of_random:.3f}; a larger budget than {self.budget} steps, or more demonstrations, "
                "may help",
                LfdGymWarning,
                stacklevel=5,
            )


#: Settings that change nothing of what is learned.
_BESIDE = ("checkpoint", "log", "progress")
