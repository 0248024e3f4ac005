"""The no-regret game with an algorithm of Stable-Baselines3 as the policy player (Appendix F of the paper).

Two players: the policy player learns for the reward −⟨w, c⟩, the cost player moves w in the class of costs to where the
policy's expected costs exceed the demonstrations'. Nothing is needed but episodes of the environment, and of these only
what was seen and done: no reward is ever read.

1. Random play tells the scales of observations, and what not having learned looks like.
2. The demonstrated actions are cloned, if they are known.
3. The game: see `lfd_gym.baselines.neural.game` for the cost player, `…neural.players` for the policy player.
   Off-policy algorithms replay what was paid by the current w; on-policy ones get it as a reward. With PPO this is the
   method of Ho, Gupta & Ermon (2016): feature expectation matching (FEM) over the ball, game-theoretic apprenticeship
   learning (GTAL) over the simplex.
4. The policies on the way, the cloned one among them, are judged by episodes that begin alike. Cloning is kept unless
   another is nearer by more than a standard error, and what is kept is measured once more, by fresh episodes.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np

from lfd_gym.baselines.learner import Learner, LearningResult
from lfd_gym.baselines.neural.fitting import neural_task_problem
from lfd_gym.policies.policy import Policy
from lfd_gym.policies.tables import UniformPolicy
from lfd_gym.resources import Resources
from lfd_gym.task import Access, Task
from lfd_gym.validation import LfdGymWarning

try:
    import stable_baselines3 as sb3
    import torch as th
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

    from lfd_gym.baselines.neural.buffer import CostReplayBuffer, DemonstratedSteps
    from lfd_gym.baselines.neural.duel import Duel, Snapshot
    from lfd_gym.baselines.neural.envs import CostVecEnv, Scaling, training_envs
    from lfd_gym.baselines.neural.game import Game
    from lfd_gym.baselines.neural.judging import Judge, Judgement
    from lfd_gym.baselines.neural.plain import plain_policy
    from lfd_gym.baselines.neural.players import CloningActorCritic, measured_player
    from lfd_gym.baselines.neural.seeding import SeededTorch
except ImportError as error:
    raise ImportError(f"this learner needs the 'sb3' extra: pip install 'lfd-gym[sb3]' ({error})") from error

#: Copies of the environment that are played side by side.
_N_ENVS = 4
#: Steps between two moves of the cost player: of an off-policy player; PPO's rounds are longer.
_EVERY = 500
#: For each step of an environment.
_UPDATES_PER_STEP = 0.5
#: Of PPO, if the budget is small.
_ROUNDS = 20
#: Played before the first update, as a share of the budget.
_BEFORE_UPDATES, _MOST_BEFORE_UPDATES = 0.1, 1000
#: Snapshots that are judged, besides the cloned policy and the last one.
_N_NEAREST = 4
#: Fresh episodes that measure the one that is kept.
_N_FRESH = 20
_MOST_REPLAYED = 200_000

Name = Literal["sac", "td3", "dqn", "ppo"]


@dataclass(frozen=True)
class PrimalDualRl(Learner):
    """The no-regret game with networks; the budget is a number of environment steps.

    Attributes
    ----------
    algorithm
        The policy player. ``"sac"``, the default for actions that are numbers or finitely many, is held by the
        demonstrations: SAC, or its like with expected values over finitely many actions, with a cloning term.
        ``"ppo"``, the default for other actions, begins with cloning. ``"dqn"``, ``"td3"`` and any class of
        Stable-Baselines3 are used as they are.
    hidden_sizes
        Of all networks.
    learning_rate, batch_size
        Of the policy player; the rate is constant for half of the budget, and falls to a tenth then.
    cloning_steps
        Gradient steps on the demonstrations before the game.
    algorithm_settings
        More settings, as pairs, for the class of Stable-Baselines3; not for ``"sac"``.
    device
        Of torch.
    progress
        Whether a bar is shown, on a terminal.
    """

    algorithm: Name | type[BaseAlgorithm] | None = None
    hidden_sizes: tuple[int, ...] = (128, 128)
    learning_rate: float = 5e-4
    batch_size: int = 128
    cloning_steps: int = 10_000
    algorithm_settings: tuple[tuple[str, Any], ...] = ()
    device: str = "cpu"
    progress: bool = True

    needs: ClassVar[Access] = "episodes"
    budget_unit: ClassVar[str] = "environment steps"
    default_budget: ClassVar[int] = 30_000

    def quiet(self) -> PrimalDualRl:
        """Return the same learner without its bar."""
        return replace(self, progress=False)

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Play the game until the budget is spent, and keep the nearest policy on the way."""
        problem = neural_task_problem(task)
        if problem:
            raise ValueError(f"primal_dual_rl cannot learn this task: {problem}")
        algorithm = self._algorithm(task)
        with SeededTorch(rng):
            return _Match(self, algorithm, task, budget, rng).result()

    def _algorithm(self, task: Task) -> type[BaseAlgorithm] | None:
        """Return the class that plays; None is the one of this package."""
        actions, chosen = task.action_space, self.algorithm
        if chosen is None:
            chosen = "sac" if isinstance(actions, gym.spaces.Box | gym.spaces.Discrete) else "ppo"
        if chosen == "sac":
            _check_actions("sac", actions, (gym.spaces.Box, gym.spaces.Discrete))
            return None
        known: dict[Any, Any] = {"dqn": sb3.DQN, "ppo": sb3.PPO, "td3": sb3.TD3}
        found = known.get(chosen, chosen)
        if not (isinstance(found, type) and issubclass(found, OffPolicyAlgorithm | OnPolicyAlgorithm)):
            raise ValueError(
                f"algorithm must be 'sac', {', '.join(map(repr, known))} or an algorithm of Stable-Baselines3, "
                f"got {self.algorithm!r}"
            )
        _check_actions(found.__name__, actions, _ACTIONS.get(found.__name__, tuple(_ANY_ACTIONS)))
        return found


_ANY_ACTIONS = (gym.spaces.Box, gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)
#: Algorithm → the actions that it takes; others take any.
_ACTIONS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("SAC", "TD3", "DDPG"), (gym.spaces.Box,)),
    "DQN": (gym.spaces.Discrete,),
}


def _check_actions(name: str, actions: gym.Space[Any], taken: Sequence[Any]) -> None:
    if not isinstance(actions, tuple(taken)):
        kinds = " or ".join(kind.__name__ for kind in taken)
        raise ValueError(f"algorithm {name} acts in {kinds} spaces only, and this task's actions are {actions}")
    bounded = not isinstance(actions, gym.spaces.Box) or actions.is_bounded()
    if not bounded and tuple(taken) != _ANY_ACTIONS:
        raise ValueError(f"algorithm {name} needs bounded actions, and this task's are {actions}: use 'ppo'")


class _Match:
    """One run: what is made from task and settings, and the steps of the module in their order."""

    def __init__(
        self,
        settings: PrimalDualRl,
        algorithm: type[BaseAlgorithm] | None,
        task: Task,
        budget: int,
        rng: np.random.Generator,
    ) -> None:
        self.settings, self.task, self.budget, self.rng = settings, task, budget, rng
        self.on_policy = algorithm is not None and issubclass(algorithm, OnPolicyAlgorithm)
        self.game = Game(task)
        self.judge = Judge(task, self.game, rng)
        self.random = self._random_play()
        self.scaling = self._scaling()
        self.venv = training_envs(task, _N_ENVS, rng)
        self.envs = CostVecEnv(self.venv, self.game, self.scaling, alternate=not self.on_policy)
        self.envs.action_space.seed(int(rng.integers(2**31)))
        self._check_budget()
        self.steps = DemonstratedSteps.of(task, self.scaling, settings.device)
        self.model = self._cloning_player() if algorithm is None else self._stock_player(algorithm)

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
        }
        self._warn(facts)
        used = Resources(env_steps=self.game.n_steps + self.judge.n_steps)
        return LearningResult(policy, self.game.average_weights, resources=used, facts=facts)

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
        common: dict[str, Any] = {
            "learning_rate": self._rate,
            "gamma": self.task.discount,
            "policy_kwargs": {"net_arch": list(settings.hidden_sizes)},
            "device": settings.device,
        }
        if self.on_policy:
            common["policy_kwargs"] = {
                "net_arch": {"pi": list(settings.hidden_sizes), "vf": list(settings.hidden_sizes)}
            }
            if issubclass(algorithm, sb3.PPO):
                # The weights move once in a round: a small budget has short rounds, so that there are some.
                common["n_steps"] = 64 * int(np.clip(self.budget // (_ROUNDS * 64 * n_envs), 1, 8))
            return algorithm("MlpPolicy", self.envs, **common | dict(settings.algorithm_settings))
        common |= {
            "buffer_size": min(self.budget, _MOST_REPLAYED),
            "learning_starts": self._before_updates,
            "batch_size": settings.batch_size,
            "train_freq": 1,
            "gradient_steps": max(1, round(_UPDATES_PER_STEP * n_envs)),
            "replay_buffer_class": CostReplayBuffer,
            "replay_buffer_kwargs": {"envs": self.envs, "demonstrations": self.steps},
        }
        if issubclass(algorithm, sb3.DQN):
            common |= {"tau": 0.005, "target_update_interval": 1, "exploration_fraction": 0.2}
        player: Any = measured_player(algorithm)  # type: ignore[arg-type]
        found: BaseAlgorithm = player("MlpPolicy", self.envs, **common | dict(settings.algorithm_settings))
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
            _clone_by_likelihood(self.model.policy, self.task, self.steps, settings)
        first = Snapshot(0, float("nan"), {name: w.clone() for name, w in self._kept.state_dict().items()})
        judged = self.judge(self._policy(first))
        for paid in judged.paid:
            self.game.hear(paid)
        self.game.move()
        if isinstance(self.model, CloningActorCritic):
            self.model.distance_of_cloning = judged.distance
            self.model.replay_buffer.pay_again()
        return first, judged

    def _play(self) -> Duel:
        every = _EVERY if not self.on_policy else self.model.n_steps * self.envs.num_envs  # type: ignore[attr-defined]
        duel = Duel(self.game, self._kept, every, self.budget, quiet=not self.settings.progress)
        self.model.learn(self.budget, duel)
        return duel

    # -- choosing -----------------------------------------------------------------------------------------------------

    def _policy(self, snapshot: Snapshot) -> Policy:
        now = {name: weight.clone() for name, weight in self._kept.state_dict().items()}
        self._kept.load_state_dict(snapshot.weights)
        found = plain_policy(self._kept, self.scaling, self.task.observation_space, self.task.action_space)
        self._kept.load_state_dict(now)
        return found

    def _chosen(self, first: tuple[Snapshot, Judgement], duel: Duel) -> tuple[Policy, int, Judgement]:
        """Return the policy that is kept, after how many steps it was had, and its judgement."""
        best, kept = first
        ordered = sorted(duel.snapshots, key=lambda each: each.distance)
        for snapshot in [duel.snapshot(), *ordered[:_N_NEAREST]]:
            judged = self.judge(self._policy(snapshot))
            chance = (judged.error(self.game.expert) + kept.error(self.game.expert)) ** 0.5
            if judged.distance < kept.distance - chance:
                best, kept = snapshot, judged
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


def _clone_by_likelihood(policy: Any, task: Task, steps: DemonstratedSteps, settings: PrimalDualRl) -> None:
    """Train the network of an on-policy algorithm on the demonstrations."""
    actions = th.as_tensor(np.array(task.demonstrations.actions), device=settings.device)
    optimizer = th.optim.Adam(policy.parameters(), 2 * settings.learning_rate)
    for _ in range(settings.cloning_steps):
        chosen = steps.some(settings.batch_size)
        _, log_likelihood, _ = policy.evaluate_actions(steps.observations[chosen], actions[chosen])
        optimizer.zero_grad()
        (-log_likelihood.mean()).backward()
        optimizer.step()
