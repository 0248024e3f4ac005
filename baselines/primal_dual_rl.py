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
4. The run is cut into ten stretches, and the mean weights of each are judged by episodes that begin alike, the nearest
   three and the cloned policy by more of them. Cloning is kept unless the nearest of the three is nearer by more than a
   standard error, and what is kept is measured once more, by fresh episodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np

from lfd_gym.baselines.learner import Learner, LearningResult
from lfd_gym.baselines.neural.fitting import neural_task_problem, warn_of_untested_version
from lfd_gym.task import Access, Task

try:
    import stable_baselines3 as sb3
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

    from lfd_gym.baselines.neural.match import Match
    from lfd_gym.baselines.neural.seeding import SeededTorch
except ImportError as error:
    raise ImportError(f"this learner needs the 'sb3' extra: pip install 'lfd-gym[sb3]' ({error})") from error

Name = Literal["sac", "td3", "dqn", "ppo"]
#: That the budget allows if none is given.
_LEAST_EPISODES = 60


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
    checkpoint
        A file to write between rounds. If it is there when learning begins, learning goes on from it, to the same bits
        as without the interruption; it has to be the same call, on one thread. Statistics that wrappers of the
        environment keep are not in it.
    log
        A folder for the distance, the return and the losses over time: ``progress.csv``, and TensorBoard's files where
        TensorBoard is installed.
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
    checkpoint: str | None = None
    log: str | None = None
    progress: bool = True

    needs: ClassVar[Access] = "episodes"
    budget_unit: ClassVar[str] = "environment steps"
    default_budget: ClassVar[int] = 30_000

    def quiet(self) -> PrimalDualRl:
        """Return the same learner without its bar."""
        return replace(self, progress=False)

    def budget_for(self, task: Task) -> int:
        """Long episodes tell less about a step: at least sixty of them."""
        return max(self.default_budget, _LEAST_EPISODES * task.episode_length)

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Play the game until the budget is spent, and keep the nearest policy on the way."""
        problem = neural_task_problem(task)
        if problem:
            raise ValueError(f"primal_dual_rl cannot learn this task: {problem}")
        algorithm = self._algorithm(task)
        warn_of_untested_version()
        with SeededTorch(rng) as seed:
            return Match(self, algorithm, task, budget, rng, seed).result()

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
