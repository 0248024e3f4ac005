"""The one protocol of all learners: a task and a budget in, a policy and what it took out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import gymnasium as gym
import numpy as np

from lfd_gym.costs.costs import CostClass
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.rollout_estimates import CostRows
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.policies.policies import Policy
from lfd_gym.resources import Resources, measuring, peak_memory_mb
from lfd_gym.validation import FloatArray, discount_factor


@dataclass(frozen=True)
class Task:
    """What every learner is given.

    Attributes
    ----------
    demonstrations
        Of the expert.
    env
        The environment, with its time limit.
    discount
        γ.
    cost_features
        (S·A, n_c) over the states of ``mdp``; a function (observations, actions) → (n, n_c) without an ``mdp``; None if
        unknown, which only learners that do not use costs accept.
    mdp
        The known model. `Task.from_env` fills it in for tabular environments.
    expert
        The expert's policy: only for learners that say so in ``queries_expert``, and for the reference row.
    cost_class
        The class of costs, ``"simplex"`` or ``"ball"``.
    """

    demonstrations: Demonstrations
    env: gym.Env[Any, Any]
    discount: float
    cost_features: FloatArray | CostRows | None = None
    mdp: FiniteMDP | None = None
    expert: Policy | None = None
    cost_class: CostClass = "simplex"

    def __post_init__(self) -> None:
        discount_factor("discount", self.discount)
        if len(self.demonstrations) == 0:
            raise ValueError("demonstrations must hold at least one trajectory")
        if self.mdp is not None and self.mdp.discount != self.discount:
            raise ValueError(f"discount must be that of the mdp, {self.mdp.discount}, got {self.discount}")

    @classmethod
    def from_env(
        cls,
        env: gym.Env[Any, Any],
        demonstrations: Demonstrations,
        discount: float,
        cost_features: FloatArray | CostRows | None = None,
        expert: Policy | None = None,
        cost_class: CostClass = "simplex",
    ) -> Task:
        """Return the task on ``env``, with the model if the environment has a table of transitions.

        ``cost_features`` default to the environment's own, if it has any.
        """
        source: Any = env.unwrapped
        tabular = any(hasattr(source, table) for table in ("transitions", "P"))
        mdp = FiniteMDP.from_env(env, discount) if tabular else None
        if cost_features is None:
            cost_features = getattr(source, "cost_features", None)
        return cls(demonstrations, env, discount, cost_features, mdp, expert, cost_class)

    @property
    def horizon(self) -> int:
        """Length of the episodes for learners that play: that of the demonstrations, else the time limit."""
        if self.demonstrations.horizon is not None:
            return self.demonstrations.horizon
        limit = self.env.spec.max_episode_steps if self.env.spec is not None else None
        return limit if limit is not None else int(self.demonstrations.lengths.max())

    @property
    def state_positions(self) -> FloatArray | None:
        """(S, d) where the states lie, if the environment's ``state_positions`` say so: states nearby are alike."""
        source = getattr(self.env.unwrapped, "state_positions", None)
        if source is None:
            return None
        positions = np.asarray(source, dtype=np.float64)
        if positions.ndim != 2 or not np.isfinite(positions).all():
            raise ValueError(f"env.state_positions must be a finite (S, d) array, got shape {positions.shape}")
        over_states = self.demonstrations.observation_space == gym.spaces.Discrete(len(positions))
        return positions if over_states else None

    def known_model(self, learner: str) -> FiniteMDP:
        """Return the model, or say that ``learner`` needs one."""
        if self.mdp is None:
            raise ValueError(f"{learner} needs a known finite model: a tabular environment, or Task(mdp=...)")
        return self.mdp

    def known_costs(self, learner: str) -> FloatArray:
        """Return the cost features as numbers, or say that ``learner`` needs them."""
        if self.cost_features is None or callable(self.cost_features):
            raise ValueError(f"{learner} needs cost_features as an (S*A, n_c) array")
        return self.cost_features


@dataclass(frozen=True)
class Learned:
    """What a learner returns.

    Attributes
    ----------
    policy
        An (S, A) array, or a policy of Stable-Baselines3.
    cost_weights
        (n_c,) weights of the cost that explains the expert, if the learner finds any.
    env_steps, oracle_calls, expert_queries, uses_model
        As in `lfd_gym.resources.Resources`.
    facts
        Anything else worth recording; JSON values.
    """

    policy: Policy
    cost_weights: FloatArray | None = None
    env_steps: int = 0
    oracle_calls: int = 0
    expert_queries: int = 0
    uses_model: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)


class Learner(Protocol):
    """A way to learn from demonstrations; its settings are the fields of a frozen dataclass.

    Attributes
    ----------
    queries_expert
        Whether it asks the expert for actions while it learns, which the others may not.
    budget_unit
        What a budget counts; empty for learners that take none.
    default_budget
        The budget at which the settings were chosen; None for learners that take none.
    """

    queries_expert: ClassVar[bool]
    budget_unit: ClassVar[str]
    default_budget: ClassVar[int | None]

    def learn(self, task: Task, budget: int | None, rng: np.random.Generator) -> Learned:
        """Learn a policy for ``task``; ``budget`` is never None for a learner that takes one."""
        ...


@dataclass(frozen=True)
class LearningResult:
    """A learned policy with everything that goes beside it."""

    policy: Policy
    resources: Resources
    cost_weights: FloatArray | None
    facts: Mapping[str, Any]


def run_learner(learner: Learner, task: Task, rng: np.random.Generator, budget: int | None = None) -> LearningResult:
    """Let ``learner`` learn, and measure what it takes.

    Parameters
    ----------
    learner
        From `make_learner`, or any object with the same methods.
    task
        What to learn.
    rng
        The learner's randomness.
    budget
        In the learner's ``budget_unit``; its default if not given.

    Examples
    --------
    >>> import gymnasium as gym
    >>> import numpy as np
    >>> import lfd_gym as lfd
    >>> from lfd_gym.baselines import Task, make_learner, run_learner
    >>> rng = np.random.default_rng(0)
    >>> env = gym.make("lfd_gym/StochasticGridworld-v0", size=5)
    >>> mdp = lfd.FiniteMDP.from_env(env, discount=0.9)
    >>> expert = mdp.optimal_policy(env.unwrapped.cost_features[:, 0])
    >>> demos = lfd.collect(lfd.as_generative_model(env), expert, n_trajectories=5, horizon=50, rng=rng)
    >>> result = run_learner(make_learner("tabular_bc"), Task.from_env(env, demos, discount=0.9), rng)
    >>> result.resources.n_demonstrations
    5
    """
    if learner.default_budget is None:
        if budget is not None:
            raise ValueError(f"{type(learner).__name__} takes no budget, got {budget}")
    else:
        budget = learner.default_budget if budget is None else budget
        if budget < 1:
            raise ValueError(f"budget must be at least 1 {learner.budget_unit}, got {budget}")
    with measuring() as time:
        learned = learner.learn(task, budget, rng)
    resources = Resources(
        n_demonstrations=len(task.demonstrations),
        env_steps=learned.env_steps,
        oracle_calls=learned.oracle_calls,
        expert_queries=learned.expert_queries,
        uses_model=learned.uses_model,
        wall_seconds=time.wall_seconds,
        cpu_seconds=time.cpu_seconds,
        peak_memory_mb=peak_memory_mb(),
    )
    return LearningResult(learned.policy, resources, learned.cost_weights, dict(learned.facts))
