"""What a benchmark knows of an environment and its learners do not: the model, the true cost and the expert."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from lfd_gym.benchmark.spec import Cell, EnvironmentSpec, named_stream
from lfd_gym.costs.costs import normalise_costs
from lfd_gym.demonstrations.collection import collect
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.envs.adapters import as_generative_model
from lfd_gym.envs.gridworld import random_state_costs
from lfd_gym.envs.toy_text import reward_cost
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.validation import FloatArray

#: Cost features beside the true one, for environments that bring a reward only.
_N_DISTRACTORS = 4


@dataclass(frozen=True)
class World:
    """A tabular environment with its model, cost features and expert.

    Attributes
    ----------
    env
        As made from the spec.
    mdp
        Its model.
    cost_features
        (S·A, n_c), the true cost first. An environment that has only a reward gives its (normalised) negative, followed
        by four state costs drawn like those of the paper's experiment, zero in the absorbing state.
    expert
        (S, A) an optimal policy for the true cost.
    """

    env: gym.Env[Any, Any]
    mdp: FiniteMDP
    cost_features: FloatArray
    expert: FloatArray

    @classmethod
    def from_spec(cls, spec: EnvironmentSpec) -> World:
        """Make the environment and solve it for the expert."""
        env = gym.make(spec.env_id, **spec.kwargs)
        mdp = FiniteMDP.from_env(env, spec.discount)
        source: Any = env.unwrapped
        costs = source.cost_features if hasattr(source, "cost_features") else _with_distractors(env, mdp, spec.label)
        return cls(env, mdp, costs, mdp.optimal_policy(costs[:, 0]))

    def demonstrations(self, cell: Cell) -> Demonstrations:
        """Draw the demonstrations of a cell: the same for all its learners."""
        return collect(
            as_generative_model(self.env),
            self.expert,
            n_trajectories=cell.n_demonstrations,
            horizon=cell.environment.horizon,
            rng=cell.demonstration_stream(),
        )


def _with_distractors(env: gym.Env[Any, Any], mdp: FiniteMDP, label: str) -> FloatArray:
    true_cost = normalise_costs(reward_cost(env)[:, None])
    distractors = random_state_costs(mdp.n_states, _N_DISTRACTORS, named_stream(f"costs of {label}")).copy()
    if mdp.absorbing_state is not None:
        distractors[mdp.absorbing_state] = 0.0
    return np.hstack([true_cost, np.repeat(distractors, mdp.n_actions, axis=0)])
