"""Inverse soft-Q learning on networks: what an update is, whoever plays. Importing this module imports torch.

IQ-Learn (Garg et al. 2021) looks for one function Q whose soft-optimal policy is the expert's. With the soft value
V(s) = τ log Σ_a exp(Q(s, a)/τ), or its estimate E_a[Q(s, a) − τ log π(a|s)] where actions are numbers, and the reward
that Q stands for, r(s, a) = Q(s, a) − γV(s'), the regularised problem is

    max_Q  E_E[r(s, a)] − (1 − γ) E_0[V(s)] − 1/(4α) E[r(s, a)²],

E_E the mean over demonstrated steps, E_0 that over first states. For the steps of any policy (1 − γ) E_0[V(s)] is the
mean of V(s) − γV(s'), here over all steps of a batch. The last mean, from the χ² divergence, is over these too:
demonstrated ones and, while playing, as many played ones. Gradients go through V(s') as well: with slow critics there,
the second term would no longer cancel, and nothing was learned.
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
    """

    def __init__(
        self,
        networks: Networks,
        *,
        discount: float,
        learning_rate: float,
        temperature: float,
        regularisation: float,
    ) -> None:
        self.networks, self._discount, self._temperature = networks, discount, temperature
        self._regularisation = regularisation
        self.actor_optimizer = th.optim.Adam(networks.actor.parameters(), learning_rate, fused=True)
        self.critic_optimizer = th.optim.Adam(networks.critic.parameters(), learning_rate, fused=True)

    def update(self, shown: Steps, played: Steps | None = None) -> None:
        """Take a step of the critics and of the actor."""
        networks, n_shown, steps = self.networks, len(shown.observations), shown
        if played is not None:
            steps = Steps(*(th.cat([one, other.to(one.dtype)]) for one, other in zip(shown, played, strict=True)))
        after = networks.soft_values(networks.critic, steps.next_observations, self._temperature)
        after = self._discount * (1 - steps.dones) * after
        now = networks.soft_values(networks.critic, steps.observations, self._temperature)
        rewards = networks.values_of(steps.observations, steps.actions) - after  # (2, n, 1)
        loss = (now - after).mean() - rewards[:, :n_shown].mean() + (rewards**2).mean() / (4 * self._regularisation)
        optimise(self.critic_optimizer, loss)
        improvement, _, _ = networks.improvement(steps.observations, self._temperature)
        optimise(self.actor_optimizer, improvement)
