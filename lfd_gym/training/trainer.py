"""`PrimalDualTrainer`: learning from demonstrations with guarantees, in the shape of an `imitation` algorithm.

Importing this module imports torch, Stable-Baselines3 and `imitation`.

Episodes of different lengths are sound here, unlike in algorithms that compare undiscounted sums: costs are discounted,
an ended episode stays in an absorbing state of zero cost, and the horizon at which a demonstration was cut enters the
certificate. So `imitation`'s check for a fixed horizon is not made, and its warning about it not given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.assessment.certificate import certify
from lfd_gym.assessment.statements import Certificate
from lfd_gym.baselines.learner import Learner, LearningResult, make_learner
from lfd_gym.costs.costs import CostFunction, Costs, as_costs
from lfd_gym.costs.sets import CostClass
from lfd_gym.demonstrations.estimation import CostEstimate, Truncation
from lfd_gym.files import FileContentError
from lfd_gym.learning import best_learner, learn
from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.solvers.saddle.value_radius import ValueDomain
from lfd_gym.task import Task
from lfd_gym.training.result_files import load_result, save_result
from lfd_gym.validation import FloatArray

try:
    from imitation.algorithms.base import DemonstrationAlgorithm
    from imitation.data.types import Transitions
    from imitation.util.logger import HierarchicalLogger

    from lfd_gym.policies.stable_baselines import StableBaselinesPolicy
except ImportError as error:
    raise ImportError("PrimalDualTrainer needs the 'imitation' extra: pip install 'lfd-gym[imitation]'") from error


class PrimalDualTrainer(DemonstrationAlgorithm[Transitions]):
    """Find the policy that is nearest the expert in the worst cost of the class, and the cost that explains the expert.

    Parameters
    ----------
    demonstrations
        In any form of `lfd_gym.demonstrations.forms.as_demonstrations`; None to set them later.
    env
        The environment. If it has a table of transitions (the gridworlds, FrozenLake, CliffWalking, Taxi), the model is
        known; else it must be one that `lfd_gym.as_generative_model` can put into a state.
    model
        Instead of ``env``: a `FiniteMDP` (known) or a `GenerativeModel` (known only by its draws).
    cost_features
        As ``costs`` of `lfd_gym.Task`: the environment's own if not given.
    discount
        γ.
    rng
        All randomness: the learner's, and the seed of the policy's.
    solver
        The name of a learner: ``"cutting_plane"`` and ``"lpal"`` are exact, on a known model; ``"plug_in"`` is exact on
        a model estimated from draws; ``"primal_dual_hybrid"`` takes first-order steps on the known model;
        ``"mirror_descent"`` is Algorithm 1 of the paper, from draws, the only one for spaces that cannot be enumerated.
        By default the first that will do: an exact one over finite spaces unless features are given.
    learner
        Instead of ``solver``: a learner with settings of its own, from `lfd_gym.baselines.make_learner`.
    occupancy_features, value_features, value_radius, value_domain
        Settings of ``"mirror_descent"`` and ``"primal_dual_hybrid"``, see `lfd_gym.baselines.saddle_point`.
    cost_class
        ``"simplex"``, ``"ball"`` or a set of weights; that of the costs if not given.
    truncation
        What is done about the unseen end of each trajectory, see `feature_expectations`.
    custom_logger
        Of `imitation`; to stdout if not given.

    Examples
    --------
    >>> import gymnasium as gym, numpy as np, lfd_gym as lfd
    >>> from imitation.util.logger import configure
    >>> rng = np.random.default_rng(0)
    >>> env = gym.make("lfd_gym/StochasticGridworld-v0", size=8)
    >>> expert = lfd.FiniteMDP.from_env(env, discount=0.9).optimal_policy(env.unwrapped.cost_features[:, 0])
    >>> demos = lfd.collect(env, expert, n_trajectories=20, horizon=100, rng=rng)
    >>> trainer = lfd.PrimalDualTrainer(
    ...     demonstrations=demos, env=env, discount=0.9, rng=rng, custom_logger=configure(format_strs=[])
    ... )
    >>> trainer.train()
    >>> task = lfd.Task(env, demos, discount=0.9, expert=expert)
    >>> bool(lfd.evaluate(trainer.policy, task).normalised_score > 0.9)
    True
    """

    def __init__(
        self,
        *,
        demonstrations: Any,
        env: gym.Env[Any, Any] | None = None,
        model: FiniteMDP | GenerativeModel | None = None,
        cost_features: Costs | ArrayLike | CostFunction | None = None,
        discount: float,
        rng: np.random.Generator,
        solver: str | None = None,
        learner: Learner | None = None,
        occupancy_features: Any = None,
        value_features: Any = None,
        value_radius: float | None = None,
        value_domain: ValueDomain | None = None,
        cost_class: CostClass | None = None,
        truncation: Truncation = "paper",
        custom_logger: HierarchicalLogger | None = None,
    ) -> None:
        if (env is None) == (model is None):
            raise ValueError("give either env or model")
        if learner is not None and solver is not None:
            raise ValueError("give either solver or learner")
        self.rng = rng
        self.truncation: Truncation = truncation
        #: What is to be learned; without demonstrations until they are set.
        self.task = _task(env if model is None else model, discount, cost_features, cost_class)
        relaxation = {
            "occupancy_features": occupancy_features,
            "value_features": value_features,
            "value_radius": value_radius,
            "value_domain": value_domain,
        }
        chosen: dict[str, Any] = {name: value for name, value in relaxation.items() if value is not None}
        name = solver or _default_solver(self.task, bool(chosen))
        if truncation != "paper":
            chosen["truncation"] = truncation
        if learner is not None and chosen:
            raise ValueError(f"{', '.join(chosen)}: these are settings of the learner, give them to it")
        if learner is None:
            learner = make_learner(name, **chosen)
        #: What learns.
        self.learner: Learner = learner
        self._result: LearningResult | None = None
        self._policy: StableBaselinesPolicy | None = None
        super().__init__(demonstrations=demonstrations, custom_logger=custom_logger)

    # -- data ---------------------------------------------------------------------------------------------------------

    def set_demonstrations(self, demonstrations: Any) -> None:
        """Use other demonstrations from now on; what was trained on the old ones is forgotten."""
        self.task = replace(self.task, demonstrations=demonstrations)
        self.task.expert_features(self.truncation)  # refuses what does not fit the costs, here rather than later
        self._result = self._policy = None

    @property
    def expert_features(self) -> CostEstimate:
        """The expert's expected costs, estimated from the demonstrations."""
        if self.task.demonstrations is None:
            raise RuntimeError("there are no demonstrations yet: call set_demonstrations")
        return self.task.expert_features(self.truncation)

    # -- training -----------------------------------------------------------------------------------------------------

    def train(
        self,
        n_iterations: int | None = None,
        *,
        callback: Callable[[PrimalDualTrainer], None] | None = None,
        progress_bar: bool = True,
    ) -> None:
        """Learn.

        Parameters
        ----------
        n_iterations
            The budget of the learner (planner calls, draws or steps); its own limit if not given.
        callback
            Called with this trainer when a policy has been found.
        progress_bar
            Whether to show how far a learner that takes long has come.
        """
        if n_iterations is not None and n_iterations < 1:
            raise ValueError(f"n_iterations must be at least 1, got {n_iterations}")
        if self.task.demonstrations is None:
            raise RuntimeError("there are no demonstrations yet: call set_demonstrations")
        learner = self.learner if progress_bar else self.learner.quiet()
        budget = n_iterations if learner.budget_unit else None
        self._take(learn(self.task, learner, rng=self.rng, budget=budget))
        self._log(self._found())
        if callback is not None:
            callback(self)

    def _take(self, result: LearningResult) -> None:
        spaces = self.task.observation_space, self.task.action_space
        self._policy = StableBaselinesPolicy(result.policy, *spaces, self.rng)
        self._result = result

    def _log(self, result: LearningResult) -> None:
        logger: Any = self.logger
        for iteration, residual in result.history:
            logger.record(f"{result.learner}/residual", residual)
            logger.record(f"{result.learner}/iterations", iteration)
            logger.dump(step=iteration)
        for name, value in result.facts.items():
            logger.record(f"{result.learner}/{name}", value)
        logger.record("oracle_calls", result.resources.oracle_calls)
        for index, weight in enumerate(self.cost_weights):
            logger.record(f"cost_weights/{index}", float(weight))
        logger.dump(step=int(result.facts.get("iterations", 0)))

    # -- results ------------------------------------------------------------------------------------------------------

    def _found(self) -> LearningResult:
        if self._result is None:
            raise RuntimeError("nothing has been trained on these demonstrations yet: call train")
        return self._result

    @property
    def result(self) -> LearningResult:
        """Everything that was learned."""
        return self._found()

    @property
    def policy(self) -> StableBaselinesPolicy:
        """The apprentice, as a policy of Stable-Baselines3."""
        self._found()
        assert self._policy is not None
        return self._policy

    @property
    def cost_weights(self) -> FloatArray:
        """(n_c,) weights of the cost that explains the expert; none if the learner finds none."""
        weights = self._found().cost_weights
        return np.empty(0) if weights is None else weights

    @property
    def value_function(self) -> Any:
        """(S,) values of that cost, the absorbing state that `FiniteMDP.from_env` adds last; else a function."""
        return self._found().values

    @property
    def oracle_calls(self) -> int:
        """Draws of the generative model during training."""
        return self._found().resources.oracle_calls

    def save(self, path: str | Path) -> None:
        """Write what was found to one ``.npz`` file without pickled objects."""
        save_result(replace(self._found(), policy=self.policy.inner), path, self.expert_features.values)

    def restore(self, path: str | Path) -> None:
        """Take up what a trainer with the same arguments and demonstrations saved; its policy goes on drawing."""
        features = getattr(self.learner, "value_features", None)
        result = load_result(path, self.expert_features.values, features)
        self._check_restored(path, result)
        self._result = result
        self._policy = StableBaselinesPolicy(result.policy)

    def _check_restored(self, path: str | Path, result: LearningResult) -> None:
        """Refuse a policy or values over other states or actions than those of the task."""
        wanted, found = self.task.action_space, result.policy.action_space
        if found != wanted:
            raise FileContentError(f"{path} holds a policy with actions in {found}, not in {wanted}")
        sizes = {"values": result.values, "the policy's table": getattr(result.policy, "table", None)}
        n_states = None if self.task.dynamics is None else self.task.dynamics.n_states
        for name, array in sizes.items():
            if n_states is not None and isinstance(array, np.ndarray) and len(array) != n_states:
                raise FileContentError(f"{path} has {len(array)} states in {name}, the environment {n_states}")

    def certificate(self, delta: float = 0.05, *, n_rollouts: int = 10_000) -> Certificate:
        """Bound how far the policy can be from the expert, with probability at least 1 − ``delta``.

        Without a known model, ``n_rollouts`` fresh rollouts of the policy are made.
        """
        settings: dict[str, Any] = {"delta": delta, "n_rollouts": n_rollouts, "truncation": self.truncation}
        return certify(self._found().policy, self.task, rng=self.rng, **settings)


def _task(world: Any, discount: float, costs: Any, cost_class: CostClass | None) -> Task:
    task = Task(world, discount=discount, costs=costs)
    if task.costs is None:
        raise ValueError("cost_features must be given: the environment has none of its own")
    if cost_class is None:
        return task
    given = costs if costs is not None else task.costs.table
    n_actions = getattr(task.action_space, "n", None)
    return replace(task, costs=as_costs("cost_features", given, n_actions, cost_class))


def _default_solver(task: Task, relaxed: bool) -> str:
    best, _ = best_learner(task)
    return "mirror_descent" if relaxed or best == "bc" else best
