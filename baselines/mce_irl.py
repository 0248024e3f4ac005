"""Maximum causal entropy inverse reinforcement learning (Ziebart 2010), by `imitation`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from lfd_gym.baselines.learner import Learner, LearningResult
from lfd_gym.baselines.neural.seeding import SeededTorch
from lfd_gym.baselines.playing import padded_demonstrations, quiet_logger
from lfd_gym.model.criterion import Criterion
from lfd_gym.model.mdp import FiniteMDP, policy_from_occupancy
from lfd_gym.policies.conversion import as_policy
from lfd_gym.resources import Resources
from lfd_gym.task import Access, Task
from lfd_gym.validation import FloatArray

try:
    import torch as th
    from imitation.algorithms.mce_irl import MCEIRL, mce_occupancy_measures, mce_partition_fh, squeeze_r
    from imitation.rewards.reward_nets import BasicRewardNet
    from seals.base_envs import TabularModelPOMDP
except ImportError as error:
    raise ImportError("this learner needs the 'imitation' extra: pip install 'lfd-gym[imitation]'") from error


class DiscountedMCEIRL(MCEIRL):
    """`imitation`'s algorithm with its discount: there, the gradient visits states by the undiscounted soft policy."""

    def _train_step(self, obs_mat: th.Tensor) -> tuple[FloatArray, FloatArray]:
        self.optimizer.zero_grad()
        rewards = squeeze_r(self.reward_net(obs_mat, None, None, None))
        values = rewards.detach().cpu().numpy()
        _, _, policy = mce_partition_fh(self.env, reward=values, discount=self.discount)
        _, visits = mce_occupancy_measures(self.env, reward=values, pi=policy, discount=self.discount)
        difference = th.as_tensor(visits - self.demo_state_om, dtype=self.reward_net.dtype)
        th.dot(difference, rewards).backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return values, visits


@dataclass(frozen=True)
class MceIrl(Learner):
    """Find the reward under which the soft-optimal policy visits states as the expert does; known model.

    The reward is linear in the cost features of a state; if these depend on the action, every state has a reward of its
    own (the algorithm's rewards are of states alone). The budget is a number of gradient steps, each of which solves
    the soft Bellman equations over a horizon at which 0.1 % of the discounted weight is left. The policy changes with
    time; the stationary policy of its discounted occupancy measure is returned.

    Attributes
    ----------
    learning_rate
        Of Adam.
    """

    learning_rate: float = 1.0

    needs: ClassVar[Access] = "model"
    needs_actions: ClassVar[bool] = True
    discounted: ClassVar[bool] = True
    budget_unit: ClassVar[str] = "gradient steps"
    default_budget: ClassVar[int] = 100

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Fit the reward, and return the soft-optimal policy."""
        mdp = task.model
        horizon = min(Criterion(task.discount).steps(1e-3), task.episode_length)
        env = TabularModelPOMDP(
            transition_matrix=mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states),
            observation_matrix=state_features(mdp, task),
            reward_matrix=np.zeros(mdp.n_states),
            horizon=horizon,
            initial_state_dist=mdp.initial_distribution,
        )
        with SeededTorch(rng):
            reward_net = BasicRewardNet(
                env.observation_space,
                gym.spaces.Discrete(mdp.n_actions),
                use_action=False,
                hid_sizes=(),
            )
            trainer = DiscountedMCEIRL(
                demonstrations=self._visits(task, mdp, horizon, rng),
                env=env,
                reward_net=reward_net,
                rng=rng,
                optimizer_kwargs={"lr": self.learning_rate},
                discount=task.discount,
                log_interval=None,
                custom_logger=quiet_logger(),
            )
            trainer.train(max_iter=budget)
        return LearningResult(
            as_policy(_stationary(trainer.policy.pi, mdp)),
            resources=Resources(uses_model=True),
            facts={"horizon": horizon},
        )

    def _visits(self, task: Task, mdp: FiniteMDP, horizon: int, rng: np.random.Generator) -> FloatArray:
        """Return the expert's discounted visits of states at times 0 to ``horizon``, averaged over trajectories."""
        visits = np.zeros(mdp.n_states)
        padded = padded_demonstrations(task, rng)
        for episode in padded:
            seen = episode.observations[: horizon + 1]
            np.add.at(visits, seen, task.discount ** np.arange(len(seen)))
        return visits / len(padded)


def state_features(mdp: FiniteMDP, task: Task) -> FloatArray:
    """Return (S, k) features of states: the cost features if they do not depend on the action, else the identity."""
    if task.costs is not None:
        pairs = task.cost_table.reshape(mdp.n_states, mdp.n_actions, -1)
        if (pairs == pairs[:, :1]).all():
            return np.ascontiguousarray(pairs[:, 0])
    return np.eye(mdp.n_states)


def _stationary(policies: Any, mdp: FiniteMDP) -> FloatArray:
    """Return the stationary policy with the discounted occupancy of (H, S, A) policies, cut after H steps."""
    occupancy = np.zeros((mdp.n_states, mdp.n_actions))
    states, weight = mdp.initial_distribution, 1.0
    for policy in policies:
        pairs = states[:, None] * policy
        occupancy += weight * pairs
        states = pairs.ravel() @ mdp.transitions
        weight *= mdp.discount
    return policy_from_occupancy(occupancy, fallback=policies[0])
