"""What acts, what it is worth and what it pays, over finitely many states or over states with two dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.arguments import checked
from lfd_gym.costs.recovered import RecoveredCost
from lfd_gym.plots.finite import occupancy_of_states, over_states, policy_over_states
from lfd_gym.plots.states import actions_of, over_simulator
from lfd_gym.task import Task
from lfd_gym.validation import FloatArray, finite_array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: So many actions have a tick each.
_FEW = 10


@checked
def draw_policy(policy: Any, task: Task, axes: Axes | None = None) -> Axes:
    """Draw how a policy acts.

    Over finitely many states: arrows over where it goes if they lie on a grid, else the probabilities of its actions.
    Over the states of a simulator that have two dimensions: its action; if it draws, one draw of each.

    Parameters
    ----------
    policy
        Anything that acts; over a simulator, with actions that are numbers.
    task
        With a model or such a simulator, whose demonstrations are drawn too.
    axes
        To draw on, by default new ones.
    """
    if task.dynamics is not None:
        return policy_over_states(policy, task, axes)

    def one_number(observations: NDArray[Any]) -> NDArray[Any]:
        actions = actions_of(policy, observations).astype(np.float64)
        if actions.size != len(observations):
            raise ValueError(f"policy must act by one number to be drawn, its actions have shape {actions.shape[1:]}")
        return actions

    return over_simulator(one_number, task, axes, "action", "coolwarm", policy, _scale_of(task.action_space))


def _scale_of(actions: gym.Space[Any]) -> dict[str, Any]:
    """Return the same colours for all policies: the ends of the space of actions, whole numbers where there are few."""
    if isinstance(actions, gym.spaces.Discrete):
        first, n = int(actions.start), int(actions.n)
        return {"vmin": first, "vmax": first + n - 1, "ticks": range(first, first + n) if n <= _FEW else None}
    if isinstance(actions, gym.spaces.Box) and actions.is_bounded():
        return {"vmin": float(actions.low.min()), "vmax": float(actions.high.max())}
    return {}


@checked
def draw_occupancy(policy: Any, task: Task, axes: Axes | None = None) -> Axes:
    """Draw in which of finitely many states a policy spends its time, discounted.

    Parameters
    ----------
    policy
        Anything that acts.
    task
        With a model.
    axes
        To draw on, by default new ones.
    """
    return over_states(occupancy_of_states(policy, task), task, axes, "share of the time", "viridis")


@checked
def draw_values(
    values: FloatArray | Callable[[Any], Any], task: Task, axes: Axes | None = None, policy: Any = None
) -> Axes:
    """Draw a value function: what is still to pay from each state on.

    Parameters
    ----------
    values
        ``result.values`` of a learner, or of a solver: (S,) over finitely many states, else a function of observations.
    task
        As in `draw_policy`.
    axes
        To draw on, by default new ones.
    policy
        Over a simulator: if it acts on a grid, that grid is what is drawn over.
    """
    if task.dynamics is not None:
        given: Any = values
        return over_states(finite_array("values", given, (task.dynamics.n_states,)), task, axes, "value", "magma_r")
    if not callable(values):
        raise TypeError(f"values must be a function of observations where there is no model, got {type(values)}")
    return over_simulator(values, task, axes, "value", "magma_r", policy)


@checked
def draw_cost(cost: RecoveredCost, policy: Any, task: Task, axes: Axes | None = None) -> Axes:
    """Draw a recovered cost, where the policy acts.

    Parameters
    ----------
    cost
        ``result.cost`` of a learner; of its actions those of ``policy`` are drawn.
    policy
        Anything that acts.
    task
        With a simulator whose states have two dimensions; the demonstrations are drawn too.
    axes
        To draw on, by default new ones.
    """

    def paid(observations: NDArray[Any]) -> FloatArray:
        return cost(observations, actions_of(policy, observations) if cost.costs.uses_actions else None)

    return over_simulator(paid, task, axes, "recovered cost", "magma_r", policy)
