"""Checks for policies and learners, ours and yours; what fails raises an `AssertionError` that says what was found."""

from __future__ import annotations

import copy
import json
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.arguments import checked
from lfd_gym.baselines.learner import Learner
from lfd_gym.demonstrations.collection import collect
from lfd_gym.learning import learn
from lfd_gym.policies.conversion import PolicyLike, as_policy
from lfd_gym.task import Task
from lfd_gym.validation import count

_BATCH = 48
_N_DRAWS = 500


@checked
def check_policy(policy: PolicyLike, task: Task, *, seed: int = 0) -> None:
    """Check that ``policy`` can act in ``task``; raise an `AssertionError` if it cannot.

    What is checked, on the observations of the demonstrations, each as the first of an episode: the shape of its
    actions and that they lie in the space; that the same generator gives the same actions; that calls leave their
    arguments and NumPy's global stream alone; and, where it has them, that its probabilities are distributions, that
    ``sample`` draws what they say, and that ``greedy`` takes the most probable.
    """
    count("seed", seed, 0)
    found = as_policy(policy)
    seen = task.demonstrations.acted_on[:_BATCH]
    before, stream = seen.copy(), _global_stream()

    def draw() -> NDArray[Any]:
        rng = np.random.default_rng(seed)
        with found.acting(rng):
            return np.asarray(found.start(len(seen), rng)(np.arange(len(seen)), seen))

    actions = draw()
    wanted = (len(seen), *(task.action_space.shape or ()))
    _demand(actions.shape == wanted, "check_policy", f"actions have shape {actions.shape}, not {wanted}")
    inside = all(task.action_space.contains(_element(action, task.action_space)) for action in actions)
    _demand(inside, "check_policy", f"some actions do not lie in {task.action_space}")
    _demand(np.array_equal(actions, draw()), "check_policy", "the same generator gives other actions")
    if found.has_probabilities:
        rows = found.probabilities(seen)
        _demand(
            bool(np.allclose(rows.sum(axis=1), 1) and (rows >= 0).all()),
            "check_policy",
            "its probabilities are no distributions",
        )
        best = np.take_along_axis(rows, np.asarray(found.greedy(seen))[:, None], axis=1)[:, 0]
        _demand(np.allclose(best, rows.max(axis=1)), "check_policy", "greedy does not take the most probable action")
        many = np.repeat(seen[:1], _N_DRAWS, axis=0)
        counts = np.bincount(found.sample(many, np.random.default_rng((seed, 1))), minlength=rows.shape[1])
        apart = np.abs(counts / _N_DRAWS - rows[0]) > 6 * np.sqrt(0.25 / _N_DRAWS)
        _demand(not apart.any(), "check_policy", "sample does not draw what probabilities say")
    _demand(np.array_equal(seen, before), "check_policy", "calls change the observations they are given")
    _demand(_global_stream() == stream, "check_policy", "calls draw from NumPy's global stream")


@checked
def check_learner(learner: Learner, task: Task | None = None, *, budget: int | None = None, seed: int = 0) -> None:
    """Check that ``learner`` keeps the promises of `Learner`; raise an `AssertionError` if it does not.

    What is checked: that its result has a policy that can act (`check_policy`) and facts that are JSON; that the same
    seed gives the same policy; that it leaves the demonstrations and NumPy's global stream alone; that a learner
    without ``budget_unit`` refuses a budget.

    Parameters
    ----------
    learner
        The learner to check.
    task
        What to learn; a small gridworld with an expert if not given.
    budget
        A small one will do; the learner's own if not given.
    seed
        Of everything drawn here.

    Examples
    --------
    >>> from lfd_gym.baselines import make_learner
    >>> from lfd_gym.testing import check_learner
    >>> check_learner(make_learner("tabular_bc"))
    """
    count("seed", seed, 0)
    task = _small_task() if task is None else task
    given = copy.deepcopy(task.demonstrations.observations), copy.deepcopy(task.demonstrations.actions)
    stream = _global_stream()
    results = [learn(task, learner, rng=np.random.default_rng(seed), budget=budget) for _ in range(2)]
    _demand(_global_stream() == stream, "check_learner", f"{learner.name} draws from NumPy's global stream")
    kept = task.demonstrations.observations, task.demonstrations.actions
    same = np.array_equal(given[0], kept[0]) and np.array_equal(given[1], kept[1])
    _demand(same, "check_learner", f"{learner.name} changes the demonstrations")
    seen = task.demonstrations.acted_on[:_BATCH]
    drawn = []
    for result in results:
        rng = np.random.default_rng((seed, 2))
        with result.policy.acting(rng):
            drawn.append(result.policy.start(len(seen), rng)(np.arange(len(seen)), seen))
    _demand(
        np.array_equal(drawn[0], drawn[1]), "check_learner", f"{learner.name} gives another policy for the same seed"
    )
    check_policy(results[0].policy, task, seed=seed)
    try:
        json.dumps(dict(results[0].facts), allow_nan=False)
    except (TypeError, ValueError) as error:
        _demand(False, "check_learner", f"the facts of {learner.name} are not JSON: {error}")
    if not learner.budget_unit:
        try:
            learn(task, learner, rng=np.random.default_rng(seed), budget=1)
        except ValueError:
            return
        _demand(False, "check_learner", f"{learner.name} has no budget_unit but takes a budget")


def _demand(condition: bool | np.bool_, check: str, found: str) -> None:
    if not condition:
        raise AssertionError(f"{check}: {found}")


def _global_stream() -> tuple[Any, ...]:
    """Return the state of NumPy's global stream: its numbers, and how far they are used up."""
    _, numbers, *rest = np.random.get_state()  # noqa: NPY002
    return (np.asarray(numbers).tobytes(), *rest)


def _element(action: Any, space: gym.Space[Any]) -> Any:
    return int(action) if isinstance(space, gym.spaces.Discrete) else np.asarray(action, dtype=space.dtype)


def _small_task() -> Task:
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=4)
    task = Task(env, discount=0.9)
    expert = task.model.optimal_policy(task.true_cost.table[:, 0])
    return Task(env, collect(env, expert, 5, 20, np.random.default_rng(0)), discount=0.9, expert=expert)
