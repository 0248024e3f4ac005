"""Actors beside twin critics, for numbers and for finitely many actions. Importing this module imports torch.

Actors are those of Stable-Baselines3, so that a policy file can keep them. Critics are never kept, and free to differ:
both of a pair are evaluated in one batched product, and layer normalisation keeps their values from running away on
actions that were never tried.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import gymnasium as gym
import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.sac.policies import Actor
from torch.nn import functional

#: log σ of a cloned actor at first: Stable-Baselines3 begins near σ = 1, which undoes what was cloned.
_CLONED_LOG_STD = -2.5


class TwinCritic(th.nn.Module):
    """Two networks side by side, (n, d) → (2, n, k)."""

    def __init__(self, n_inputs: int, hidden_sizes: Sequence[int], n_outputs: int) -> None:
        super().__init__()
        widths = [n_inputs, *hidden_sizes, n_outputs]
        self.matrices, self.biases = th.nn.ParameterList(), th.nn.ParameterList()
        for n_in, n_out in pairwise(widths):
            bound = 1 / math.sqrt(n_in)  # as `torch.nn.Linear` begins
            self.matrices.append(th.nn.Parameter(th.empty(2, n_in, n_out).uniform_(-bound, bound)))
            self.biases.append(th.nn.Parameter(th.empty(2, 1, n_out).uniform_(-bound, bound)))

    def forward(self, inputs: th.Tensor) -> th.Tensor:
        """Return the values of both."""
        hidden = inputs.expand(2, *inputs.shape)
        last = len(self.matrices) - 1
        for k, (matrix, bias) in enumerate(zip(self.matrices, self.biases, strict=True)):
            hidden = th.baddbmm(bias, hidden, matrix)
            if k < last:
                hidden = functional.relu(functional.layer_norm(hidden, hidden.shape[-1:]))
        return hidden


class Networks(BasePolicy):
    """An actor, its running average, and twin critics with their slow copies.

    Attributes
    ----------
    actor
        What explores, and is trained.
    averaged
        The running average of its weights: what is measured, and kept in the end.
    cloned
        The actor as it was after cloning.
    """

    actor: Any
    critic: TwinCritic

    def __init__(
        self, observation_space: gym.Space[Any], action_space: gym.Space[Any], lr_schedule: Any, net_arch: list[int]
    ) -> None:
        squashed = isinstance(action_space, gym.spaces.Box)  # networks act in [−1, 1]
        super().__init__(observation_space, action_space, squash_output=squashed)
        self.net_arch = net_arch
        self.n_features = gym.spaces.flatdim(observation_space)
        self._build()
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self.averaged = copy.deepcopy(self.actor).requires_grad_(False)
        self.cloned = copy.deepcopy(self.averaged)

    @abstractmethod
    def _build(self) -> None:
        """Make the actor and the critic."""

    @abstractmethod
    def action_of(self, actor: Any, observations: th.Tensor, greedy: bool) -> th.Tensor:
        """Return actions as a replay buffer keeps them."""

    @abstractmethod
    def next_values(self, observations: th.Tensor) -> th.Tensor:
        """Return the smaller of the slow critics' values of what the actor does, (n, 1)."""

    @abstractmethod
    def values_of(self, observations: th.Tensor, actions: th.Tensor) -> th.Tensor:
        """Return both critics' values of actions of the buffer, (2, n, 1)."""

    @abstractmethod
    def soft_values(self, critic: TwinCritic, observations: th.Tensor, temperature: float) -> th.Tensor:
        """Return the values of acting softly by the smaller of a critic's two, (n, 1)."""

    @abstractmethod
    def improvement(self, observations: th.Tensor, temperature: float) -> tuple[th.Tensor, float, float]:
        """Return the actor's loss by the critics, how strongly actions matter to these, and the actor's entropy."""

    @abstractmethod
    def cloning_loss(self, observations: th.Tensor, actions: th.Tensor) -> th.Tensor:
        """Return how far the actor is from demonstrated actions."""

    @abstractmethod
    def drift(self, observations: th.Tensor) -> th.Tensor:
        """Return how far the actor is from the cloned one."""

    @property
    @abstractmethod
    def least_entropy(self) -> float:
        """Below this the actor is to explore more."""

    def begin_cloning(self) -> None:
        """Get ready to be trained on demonstrations first."""

    def keep_cloned(self) -> None:
        """Remember the actor as it is, and begin the average anew."""
        for part in (self.averaged, self.cloned):
            part.load_state_dict(self.actor.state_dict())

    def features(self, observations: th.Tensor) -> th.Tensor:
        """Return observations as the critics see them."""
        found: th.Tensor = self.actor.extract_features(observations, self.actor.features_extractor)
        return found

    def _predict(self, observation: Any, deterministic: bool = False) -> th.Tensor:
        return self.action_of(self.actor, observation, deterministic)


class BoxNetworks(Networks):
    """For actions that are numbers: the Gaussian actor of SAC."""

    def _build(self) -> None:
        box: Any = self.action_space
        extractor = FlattenExtractor(self.observation_space)
        self.actor = Actor(self.observation_space, box, self.net_arch, extractor, self.n_features)
        self.n_actions = gym.spaces.flatdim(box)
        self.critic = TwinCritic(self.n_features + self.n_actions, self.net_arch, 1)

    def begin_cloning(self) -> None:
        """Explore near what is cloned."""
        th.nn.init.constant_(self.actor.log_std.bias, _CLONED_LOG_STD)
        with th.no_grad():
            self.actor.log_std.weight.mul_(0.1)

    def action_of(self, actor: Any, observations: th.Tensor, greedy: bool) -> th.Tensor:
        """Return numbers in [−1, 1]."""
        mean, log_std, _ = actor.get_action_dist_params(observations)
        return th.tanh(mean if greedy else mean + log_std.exp() * th.randn_like(mean))

    def next_values(self, observations: th.Tensor) -> th.Tensor:
        """Return the values of an action drawn for each."""
        drawn = self.action_of(self.actor, observations, greedy=False)
        return self.critic_target(th.cat([self.features(observations), drawn], 1)).amin(0)  # type: ignore[no-any-return]

    def soft_values(self, critic: TwinCritic, observations: th.Tensor, temperature: float) -> th.Tensor:
        """Return the value of one action drawn for each, less what it costs to have drawn it."""
        with th.no_grad():
            mean, log_std, _ = self.actor.get_action_dist_params(observations)
            noise = th.randn_like(mean)
            drawn = th.tanh(mean + log_std.exp() * noise)
            log_density = _log_density(noise, log_std, drawn)
        values: th.Tensor = critic(th.cat([self.features(observations), drawn], 1)).amin(0)
        return values - temperature * log_density[:, None]

    def values_of(self, observations: th.Tensor, actions: th.Tensor) -> th.Tensor:
        """Return the critics' values."""
        return self.critic(th.cat([self.features(observations), actions], 1))  # type: ignore[no-any-return]

    def improvement(self, observations: th.Tensor, temperature: float) -> tuple[th.Tensor, float, float]:
        """Follow the gradient of the smaller value in the action, which says how strongly actions matter."""
        mean, log_std, _ = self.actor.get_action_dist_params(observations)
        noise = th.randn_like(mean)
        action = th.tanh(mean + log_std.exp() * noise)
        log_density = _log_density(noise, log_std, action)
        fixed = action.detach().requires_grad_()
        values = self.critic(th.cat([self.features(observations), fixed], 1)).amin(0).sum()
        (slope,) = th.autograd.grad(values, fixed)
        loss = (temperature * log_density - (slope * action).sum(1)).mean()
        entropy = -float(log_density.detach().mean())
        return loss, float(slope.abs().mean()), entropy

    def cloning_loss(self, observations: th.Tensor, actions: th.Tensor) -> th.Tensor:
        """Return the mean squared distance of the best action."""
        return ((self.action_of(self.actor, observations, greedy=True) - actions) ** 2).sum(1).mean()

    def drift(self, observations: th.Tensor) -> th.Tensor:
        """Return the mean squared distance of the best actions."""
        with th.no_grad():
            before = self.action_of(self.cloned, observations, greedy=True)
        return self.cloning_loss(observations, before)

    @property
    def least_entropy(self) -> float:
        """As SAC has it."""
        return -float(self.n_actions)


def _log_density(noise: th.Tensor, log_std: th.Tensor, action: th.Tensor) -> th.Tensor:
    """Return log π of tanh(mean + σ·noise)."""
    each = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi) - th.log(1 - action**2 + 1e-6)
    return each.sum(1)


class DiscreteNetworks(Networks):
    """For finitely many actions: the network of PPO without its values, and critics of all actions at once.

    The actor's layers end with tanh, as PPO's do: clones of five landings scored .96 to .99 (four seeds), with
    rectifiers .88 to .99 (three of these).
    """

    def _build(self) -> None:
        discrete: Any = self.action_space
        self.n_actions = int(discrete.n)
        self.actor = ActorCriticPolicy(
            self.observation_space,
            discrete,
            lambda _: 0.0,
            net_arch={"pi": self.net_arch, "vf": []},
        )
        self.critic = TwinCritic(self.n_features, self.net_arch, self.n_actions)

    def logits(self, actor: Any, observations: th.Tensor) -> th.Tensor:
        """Return (n, A) unnormalised log-probabilities."""
        features = actor.extract_features(observations)
        found: th.Tensor = actor.action_net(actor.mlp_extractor.forward_actor(features))
        return found

    def features(self, observations: th.Tensor) -> th.Tensor:
        """Return observations as the critics see them."""
        found: th.Tensor = self.actor.extract_features(observations)
        return found

    def action_of(self, actor: Any, observations: th.Tensor, greedy: bool) -> th.Tensor:
        """Return integers."""
        logits = self.logits(actor, observations)
        return logits.argmax(1) if greedy else th.multinomial(logits.softmax(1), 1)[:, 0]

    def next_values(self, observations: th.Tensor) -> th.Tensor:
        """Return expected values, nothing drawn."""
        shares = self.logits(self.actor, observations).softmax(1)
        smaller: th.Tensor = self.critic_target(self.features(observations)).amin(0)
        return (shares * smaller).sum(1, keepdim=True)

    def soft_values(self, critic: TwinCritic, observations: th.Tensor, temperature: float) -> th.Tensor:
        """Return the soft maximum over all actions."""
        values: th.Tensor = critic(self.features(observations)).amin(0)
        return temperature * (values / temperature).logsumexp(1, keepdim=True)

    def values_of(self, observations: th.Tensor, actions: th.Tensor) -> th.Tensor:
        """Return the critics' values of the actions taken."""
        values = self.critic(self.features(observations))
        return values.gather(2, actions.long().reshape(1, -1, 1).expand(2, -1, 1))  # type: ignore[no-any-return]

    def improvement(self, observations: th.Tensor, temperature: float) -> tuple[th.Tensor, float, float]:
        """Follow the expected smaller value, which is known of all actions."""
        with th.no_grad():
            values = self.critic(self.features(observations)).amin(0)
        log_shares = self.logits(self.actor, observations).log_softmax(1)
        shares = log_shares.exp()
        loss = (shares * (temperature * log_shares - values)).sum(1).mean()
        entropy = -float((shares * log_shares).detach().sum(1).mean())
        return loss, float((values - values.mean(1, keepdim=True)).abs().mean()), entropy

    def cloning_loss(self, observations: th.Tensor, actions: th.Tensor) -> th.Tensor:
        """Return the cross-entropy."""
        return functional.cross_entropy(self.logits(self.actor, observations), actions.long().reshape(-1))

    def drift(self, observations: th.Tensor) -> th.Tensor:
        """Return the divergence of the shares."""
        with th.no_grad():
            before = self.logits(self.cloned, observations).log_softmax(1)
        now = self.logits(self.actor, observations).log_softmax(1)
        return functional.kl_div(now, before, reduction="batchmean", log_target=True)

    @property
    def least_entropy(self) -> float:
        """A fifth of what random play has."""
        return 0.2 * math.log(self.n_actions)
