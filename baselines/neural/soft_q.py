"""Inverse soft-Q learning on networks: what an update is, whoever plays. Importing this module imports torch.

IQ-Learn (Garg et al. 2021) looks for one function Q whose soft-optimal policy is the expert's. With the soft value
V(s) = τ log Σ_a exp(Q(s, a)/τ), or its estimate E_a[Q(s, a) − τ log π(a|s)] where actions are numbers, and the reward
that Q stands for, r(s, a) = Q(s, a) − γV(s'), the regularised problem is

    max_Q  E_E[r(s, a)] − E_E[V(s) − γV(s')] − 1/(4α) E[r(s, a)²],

E_E the mean over demonstrated steps; the last one, from the χ² divergence, is over these and, while playing, over what
was played, half each. In the first two terms γV(s') cancels.
"""

from __future__ import annotations

from typing import NamedTuple

import torch as th

from lfd_gym.baselines.neural.networks import Networks
from lfd_gym.baselines.neural.players import optimise


class Steps(NamedTuple):
    """A batch of steps as a replay buffer holds them, (n, …) each."""

    observations: th.Tensor
    actions: th.Tensor
    next_observations: th.Tensor
    dones: th.Tensor


class InverseSoftQ:
    """Updates networks by demonstrated steps, and by played ones if there are any.

    Parameters
    ----------
    networks
        An actor beside twin critics.
    discount
        γ.
    learning_rate
        Of actor and critics.
    temperature
        τ.
    regularisation
        α.
    tau
        How far the slow critics move at each update.
    """

    def __init__(
        self,
        networks: Networks,
        *,
        discount: float,
        learning_rate: float,
        temperature: float,
        regularisation: float,
        tau: float = 0.005,
    ) -> None:
        self.networks, self._discount, self._temperature = networks, discount, temperature
        self._regularisation, self._tau = regularisation, tau
        self.actor_optimizer = th.optim.Adam(networks.actor.parameters(), learning_rate, fused=True)
        self.critic_optimizer = th.optim.Adam(networks.critic.parameters(), learning_rate, fused=True)

    def update(self, shown: Steps, played: Steps | None = None) -> None:
        """Take a step of the critics and of the actor."""
        networks, n_shown = self.networks, len(shown.observations)
        steps = shown
        if played is not None:
            steps = Steps(*(th.cat([one, other.to(one.dtype)]) for one, other in zip(shown, played, strict=True)))
        with th.no_grad():
            after = networks.soft_values(networks.critic_target, steps.next_observations, self._temperature)
            after = self._discount * (1 - steps.dones) * after
        values = networks.values_of(steps.observations, steps.actions)
        rewards = values - after  # (2, n, 1)
        of_shown = networks.soft_values(networks.critic, shown.observations, self._temperature)
        loss = (of_shown - values[:, :n_shown]).mean() + (rewards**2).mean() / (4 * self._regularisation)
        optimise(self.critic_optimizer, loss)
        with th.no_grad():
            for now, slow in zip(networks.critic.parameters(), networks.critic_target.parameters(), strict=True):
                slow.lerp_(now, self._tau)
        improvement, _, _ = networks.improvement(steps.observations, self._temperature)
        optimise(self.actor_optimizer, improvement)
