"""Inverse soft-Q learning on networks: what an update is, whoever plays. Importing this module imports torch.

IQ-Learn (Garg et al. 2021) looks for one function Q whose soft-optimal policy is the expert's. With the soft value
V(s) = τ log Σ_a exp(Q(s, a)/τ), or its estimate E_a[Q(s, a) − τ log π(a|s)] where actions are numbers, and the reward
that Q stands for, r(s, a) = Q(s, a) − γV(s'), the regularised problem is

    max_Q  E_E[r(s, a)] − (1 − γ) E_0[V(s)] − 1/(4α) E[r(s, a)²],

E_E the mean over demonstrated steps, E_0 that over first states. For the steps of any policy that goes on for ever
(1 − γ) E_0[V(s)] is the mean of V(s) − γV(s'). The last mean, from the χ² divergence, is over demonstrated steps and,
while playing, as many played ones. V(s') is that of slow critics.

With finitely many actions the second mean is over the demonstrated steps, so that the first two terms are the mean of
Q(s, a) − V(s) = τ log π(a|s): cloning, with values tied to those of what follows. Over played steps too, what ends
would have the value zero while all that goes on is pushed below it, and on CartPole the shortest episodes were learned.
With actions that are numbers V is known by one draw only, and cloning through it did not hold; there the mean is over
all steps of a batch. (The authors' code offers both, too.)

Each critic has a V of its own: with the smaller of both, the loss fell as they went apart.
"""

from __future__ import annotations

from typing import NamedTuple

import torch as th

from lfd_gym.baselines.neural.networks import DiscreteNetworks, Networks
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
        Of actor and critics, at first.
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
        self._regularisation, self._learning_rate = regularisation, learning_rate
        self.actor_optimizer = th.optim.Adam(networks.actor.parameters(), learning_rate, fused=True)
        self.critic_optimizer = th.optim.Adam(networks.critic.parameters(), learning_rate, fused=True)

    def update(self, shown: Steps, played: Steps | None = None, left: float = 1.0) -> None:
        """Take a step of the critics and of the actor; when less than half of the budget is ``left``, shorter ones."""
        for optimizer in (self.actor_optimizer, self.critic_optimizer):
            optimizer.param_groups[0]["lr"] = self._learning_rate * min(1.0, max(0.1, 2 * left))
        networks, n_shown, steps = self.networks, len(shown.observations), shown
        if played is not None:
            steps = Steps(*(th.cat([one, other.to(one.dtype)]) for one, other in zip(shown, played, strict=True)))
        with th.no_grad():
            after = networks.soft_values(networks.critic_target, steps.next_observations, self._temperature)
            after = self._discount * (1 - steps.dones) * after
        measured = slice(n_shown) if isinstance(networks, DiscreteNetworks) else slice(None)
        now = sum(self._own_values(k, steps.observations[measured]).mean() for k in range(2)) / 2
        gone = now - after[measured].mean()
        values = networks.values_of(steps.observations, steps.actions)  # (2, n, 1)
        rewards = values - after
        loss = gone - rewards[:, :n_shown].mean() + (rewards**2).mean() / (4 * self._regularisation)
        optimise(self.critic_optimizer, loss)
        improvement, _, _ = networks.improvement(steps.observations, self._temperature)
        optimise(self.actor_optimizer, improvement)
        averaging(networks.critic, networks.critic_target, 1)
        averaging(networks.actor, networks.averaged, 1)

    def _own_values(self, k: int, observations: th.Tensor) -> th.Tensor:
        """Return V by one of the two critics, (n, 1)."""
        critic = self.networks.critic

        def alone(inputs: th.Tensor) -> th.Tensor:
            found: th.Tensor = critic(inputs)[k : k + 1]
            return found

        return self.networks.soft_values(alone, observations, self._temperature)  # type: ignore[arg-type]
