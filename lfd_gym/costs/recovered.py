"""The cost that explains an expert, as a function and as a reward to train on.

The reward of a step is minus the cost of the observation *before* the step and the action taken on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import concatenate, create_empty_array
from numpy.typing import ArrayLike, NDArray

from lfd_gym.arguments import checked
from lfd_gym.costs.costs import Costs
from lfd_gym.spaces import to_array
from lfd_gym.validation import FloatArray, finite_array, numbers

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

#: How many of the weights a cost shows.
_N_SHOWN = 3


class RecoveredCost:
    """c_w(x, a) = Σ_i w_i c_i(x, a), a function of batches of observations and actions.

    Parameters
    ----------
    costs
        What the weights belong to.
    weights
        w, (n_c,).

    Examples
    --------
    >>> import lfd_gym as lfd
    >>> costs = lfd.TableCosts([[1.0, 0.0], [0.5, 0.0], [0.0, 1.0], [0.0, 1.0]], n_actions=2, names=("slow", "unsafe"))
    >>> cost = RecoveredCost(costs, [0.25, 0.75])
    >>> cost
    RecoveredCost(0.75 unsafe + 0.25 slow)
    >>> cost(np.array([0, 1]), np.array([1, 0]))
    array([0.125, 0.75 ])
    """

    @checked
    def __init__(self, costs: Costs, weights: ArrayLike) -> None:
        self.costs = costs
        self.weights: FloatArray = finite_array("weights", weights, (costs.n_costs,))

    def __call__(self, observations: ArrayLike, actions: ArrayLike | None = None) -> FloatArray:
        """Return the costs of n pairs, (n,); where the costs are a table, rows that are one-hot are states."""
        seen = numbers("observations", observations)
        if self.costs.table is not None and seen.ndim == 2:
            if not (np.isin(seen, (0, 1)).all() and (seen.sum(axis=1) == 1).all()):
                raise ValueError("observations must be states or their one-hot vectors: the costs are a table")
            seen = seen.argmax(axis=1)
        rows = self.costs.rows(seen, None if actions is None else numbers("actions", actions))
        return np.asarray(rows @ self.weights)

    @checked
    def reward_wrapper(self, env: gym.Env[Any, Any]) -> RecoveredReward:
        """Return ``env`` with minus this cost as its reward."""
        return RecoveredReward(env, self)

    def vec_env(self, venv: VecEnv) -> VecEnv:
        """Return Stable-Baselines3's ``venv`` with minus this cost as its reward."""
        from lfd_gym.costs.stable_baselines import RecoveredRewardVecEnv

        return RecoveredRewardVecEnv(venv, self)

    def __repr__(self) -> str:
        names = self.costs.names or [f"c{i}" for i in range(self.weights.size)]  # a function not asked yet has none
        largest = [i for i in np.argsort(-np.abs(self.weights), kind="stable")[:_N_SHOWN] if self.weights[i]]
        terms = [f"{self.weights[i]:.3g} {names[i]}" for i in largest]
        more = np.count_nonzero(self.weights) - len(largest)
        sum_of = " + ".join(terms).replace("+ -", "- ") or "0"
        return f"RecoveredCost({sum_of}{f' + {more} more' if more else ''})"


class RecoveredReward(gym.Wrapper[Any, Any, Any, Any]):
    """An environment whose reward is minus a cost; its own reward is in ``info["original_reward"]``.

    Parameters
    ----------
    env
        Any environment; `Dict` and `Tuple` observations and actions are flattened for the cost.
    cost
        A function of batches of observations and actions.
    """

    def __init__(self, env: gym.Env[Any, Any], cost: RecoveredCost) -> None:
        super().__init__(env)
        self.cost = cost
        self._seen: NDArray[Any] | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._seen = _batch_of_one(self.env.observation_space, observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step, and pay for where it was taken."""
        if self._seen is None:
            raise gym.error.ResetNeeded("call reset before the first step")
        # The cost comes first: what the environment does to an action that it is given must not change it.
        reward = 0.0 - float(self.cost(self._seen, _batch_of_one(self.env.action_space, action))[0])
        observation, original, terminated, truncated, info = self.env.step(action)
        self._seen = _batch_of_one(self.env.observation_space, observation)
        return observation, reward, terminated, truncated, {**info, "original_reward": original}


def _batch_of_one(space: gym.Space[Any], element: Any) -> NDArray[Any]:
    """Return a copy of one element, as an array with the batch first."""
    return to_array(space, concatenate(space, [element], create_empty_array(space, 1)), 1)
