"""Inverse soft-Q learning on networks: what an update is, whoever plays. Importing this module imports torch.

IQ-Learn (Garg et al. 2021) looks for one function Q whose soft-optimal policy is the expert's. With the soft value
V(s) = τ log Σ_a exp(Q(s, a)/τ), or its estimate E_a[Q(s, a) − τ log π(a|s)] where actions are numbers, and the reward
that Q stands for, r(s, a) = Q(s, a) − γV(s'), the regularised problem is

    max_Q  E_E[r(s, a)] − (1 − γ) E_0[V(s)] − 1/(4α) E[r(s, a)²],

E_E the mean over demonstrated steps, E_0 that over first states. For the expert's steps (1 − γ) E_0[V(s)] is the mean
of V(s) − γV(s'), so that the first two terms are the mean of Q(s, a) − V(s) = τ log π(a|s) over them: cloning. The last
mean, from the χ² divergence, is over demonstrated steps and, while playing, as many played ones. It ties the values of
states to those of where they lead, which cloning does not; V(s') there is that of slow critics.

The mean of V(s) − γV(s') may also be taken over played steps. Where episodes can end, what follows the end then has the
value zero, while all that goes on is pushed below it: on CartPole the shortest episodes were learned, less than random
play.
"""

from __future__ import annotations

from typing import NamedTuple

import torch as th

from lfd_gym.baselines.neural.networks import Networks
from lfd_gym.baselines.neural.players import averaging, optimise


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
        with th.no_grad():
            after = networks.soft_values(networks.critic_target, steps.next_observations, self._temperature)
            after = self._discount * (1 - steps.dones) * after
        now = sum(self._own_values(k, shown.observations).mean() for k in range(2)) / 2
        values = networks.values_of(steps.observations, steps.actions)  # (2, n, 1)
        squares = ((values - after) ** 2).mean()
        loss = now - values[:, :n_shown].mean() + squares / (4 * self._regularisation)
        optimise(self.critic_optimizer, loss)
        improvement, _, _ = networks.improvement(steps.observations, self._temperature)
        optimise(self.actor_optimizer, improvement)
        averaging(networks.critic, networks.critic_target, 1)
        averaging(networks.actor, networks.averaged, 1)

    def _own_values(self, k: int, observations: th.Tensor) -> th.Tensor:
        """Return V by one of the two critics, (n, 1): by the smaller of both the loss fell as they went apart."""
        critic = self.networks.critic

        def alone(inputs: th.Tensor) -> th.Tensor:
            found: th.Tensor = critic(inputs)[k : k + 1]
            return found

        return self.networks.soft_values(alone, observations, self._temperature)  # type: ignore[arg-type]
