"""Learning: a task and a learner in, a policy and what it took out."""

from __future__ import annotations

from dataclasses import replace

import gymnasium as gym
import numpy as np

from lfd_gym.arguments import checked
from lfd_gym.baselines.grid import grid_task_problem
from lfd_gym.baselines.learner import Learner, LearningResult, make_learner
from lfd_gym.baselines.neural.fitting import is_installed, neural_task_problem
from lfd_gym.demonstrations.environments import is_environment, outer_observation_space
from lfd_gym.model.criterion import Criterion
from lfd_gym.model.generative_model import check_generator
from lfd_gym.policies.conversion import policy_table
from lfd_gym.policies.policy import Policy
from lfd_gym.policies.tables import TablePolicy
from lfd_gym.resources import measuring, peak_memory_mb
from lfd_gym.task import Task


@checked
def learn(
    task: Task, learner: Learner | str | None = None, *, rng: np.random.Generator, budget: int | None = None
) -> LearningResult:
    """Learn a policy for ``task``, and measure what it takes.

    Parameters
    ----------
    task
        What to learn, with demonstrations.
    learner
        A name in `lfd_gym.baselines.learner_names`, a learner of `lfd_gym.baselines.make_learner` with settings of its
        own, or any `Learner`. If not given, the best that the task allows; the result says which, and why.
    rng
        The learner's randomness.
    budget
        In the learner's ``budget_unit``; its default if not given.

    Examples
    --------
    >>> import gymnasium as gym, numpy as np, lfd_gym as lfd
    >>> rng = np.random.default_rng(0)
    >>> env = gym.make("lfd_gym/StochasticGridworld-v0", size=5)
    >>> expert = lfd.FiniteMDP.from_env(env, discount=0.9).optimal_policy(env.unwrapped.cost_features[:, 0])
    >>> demos = lfd.collect(env, expert, n_trajectories=5, horizon=50, rng=rng)
    >>> result = lfd.learn(lfd.Task(env, demos, discount=0.9), rng=rng)
    >>> result.learner, result.reason
    ('cutting_plane', 'the model is known: the exact apprentice')
    >>> result.policy
    TablePolicy(n_states=25, n_actions=4)
    """
    check_generator("rng", rng)
    if not isinstance(task, Task):
        raise TypeError(f"task must be a lfd_gym.Task(env, demonstrations, discount=...), got {type(task).__name__}")
    reason = ""
    if learner is None:
        learner, reason = best_learner(task)
    if isinstance(learner, str):
        learner = make_learner(learner)
    if task.demonstrations is None:
        raise ValueError("task must have demonstrations to learn from")
    task.needs(learner.needs, learner.name)
    if learner.needs_actions and task.demonstrations.actions is None:
        raise ValueError(f"{learner.name} needs demonstrations with actions, but these have none: {task}")
    if learner.discounted and task.discount == 1:
        raise ValueError(
            f"{learner.name} solves the discounted problem without end: the discount must be below 1, got 1"
        )
    amount = _budget(learner, task, budget)
    other = Criterion(task.discount) if learner.discounted and task.horizon is not None else None
    shown = task.for_learner(learner.asks_expert, other)
    with measuring() as time:
        result = learner.learn(shown, amount, rng)
    resources = replace(
        result.resources,
        n_demonstrations=len(task.demonstrations),
        wall_seconds=time.wall_seconds,
        cpu_seconds=time.cpu_seconds,
        peak_memory_mb=peak_memory_mb(),
    )
    return replace(
        result,
        policy=_over_observations(result.policy, task),
        checkpoints=tuple(replace(each, policy=_over_observations(each.policy, task)) for each in result.checkpoints),
        resources=resources,
        facts=result.facts if other is None else {**result.facts, "criterion": f"{other}, not {task.criterion}"},
        learner=learner.name,
        reason=reason,
        costs=task.costs,
    )


def best_learner(task: Task) -> tuple[str, str]:
    """Return the name of the best learner that ``task`` allows, and why it is."""
    has_table = task.costs is not None and task.costs.table is not None
    if has_table and task.discount == 1:
        return "tabular_bc", "the discount is 1, and exact apprentices solve the discounted problem: counting actions"
    if has_table and task.access == "model":
        return "cutting_plane", "the model is known: the exact apprentice"
    if has_table and task.access == "simulator" and isinstance(task.simulator.state_space, gym.spaces.Discrete):
        return "plug_in", "the simulator has finitely many states: the exact apprentice on an estimated model"
    if task.access == "simulator" and task.discount < 1 and not grid_task_problem(task):
        return "grid", "the simulator has a few state dimensions: the exact apprentice on a grid"
    if task.costs is not None and is_installed() and not neural_task_problem(task):
        return "primal_dual_rl", "the environment can be played in: the game with networks, which begins with cloning"
    return "bc", "there is no finite model with costs: behavioural cloning, which needs the demonstrations only"


def _over_observations(policy: Policy, task: Task) -> Policy:
    """Turn a policy over the states of a known model into one over what its environment shows, be it one-hot vectors.

    The absorbing state, which a model may have beside them, is never seen. A policy over flattened observations takes
    those of the environment from outside too.
    """
    seen = task.observation_space
    outer = outer_observation_space(task.env) if is_environment(task.env) else None
    if isinstance(outer, gym.spaces.Dict | gym.spaces.Tuple) and policy.observation_space == seen:
        policy.take_observations_of(outer)
        return policy
    if task.dynamics is None or not isinstance(task.env, gym.Env) or policy.observation_space == seen:
        return policy
    if not (isinstance(policy, TablePolicy) or isinstance(seen, gym.spaces.Box)):
        return policy
    n_seen = int(seen.n) if isinstance(seen, gym.spaces.Discrete) else (seen.shape or (0,))[0]
    return TablePolicy(policy_table(policy, task.dynamics)[:n_seen], seen)


def _budget(learner: Learner, task: Task, budget: int | None) -> int:
    if not learner.budget_unit:
        if budget is not None:
            raise ValueError(f"{learner.name} takes no budget, got {budget}")
        return 0
    if budget is None:
        return learner.budget_for(task)
    if budget < 1:
        raise ValueError(f"budget must be at least 1 {learner.budget_unit}, got {budget}")
    return budget
