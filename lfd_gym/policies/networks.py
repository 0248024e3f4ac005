"""Actor-critic networks of Stable-Baselines3. torch is imported only to read one from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.policies.conversion import PredictorPolicy
from lfd_gym.policies.policy import Arrays, FinitePolicy, Policy
from lfd_gym.spaces import space_from_data
from lfd_gym.validation import FloatArray

_WEIGHT = "weight:"
_ACTIVATIONS = ("Tanh", "ReLU")


class _Kept:
    """Networks in their usual form go into files as their architecture and their weights."""

    kind: ClassVar[str] = "actor-critic"
    network: Any

    def to_data(self) -> tuple[dict[str, Any], Arrays]:
        """Return the architecture and the weights; only networks in their usual form are known."""
        network = self.network
        activation = getattr(getattr(network, "activation_fn", None), "__name__", "")
        extractor = getattr(getattr(network, "features_extractor_class", None), "__name__", "")
        if extractor != "FlattenExtractor" or activation not in _ACTIVATIONS:
            raise ValueError(
                f"policy must be an actor-critic network with flattened observations and "
                f"{' or '.join(_ACTIVATIONS)} to be saved, got {type(network).__name__}"
            )
        arch = network.net_arch
        sizes = {name: list(arch[name]) if isinstance(arch, dict) else list(arch) for name in ("pi", "vf")}
        weights = {_WEIGHT + name: tensor.detach().cpu().numpy() for name, tensor in network.state_dict().items()}
        return {"hidden_sizes": sizes, "activation": activation}, weights

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Arrays) -> Policy:
        """Build the network and load its weights."""
        try:
            import torch as th
            from stable_baselines3.common.policies import ActorCriticPolicy
        except ImportError as error:
            raise ImportError("a network needs the 'imitation' extra: pip install 'lfd-gym[imitation]'") from error
        if data["activation"] not in _ACTIVATIONS:
            raise ValueError(f"unknown activation of a network: {data['activation']}")
        with th.random.fork_rng(devices=[]):  # the weights drawn at first are thrown away
            network = ActorCriticPolicy(
                space_from_data("observation", data["observation_space"], arrays),
                space_from_data("action", data["action_space"], arrays),
                lr_schedule=lambda _: 0.0,
                net_arch=data["hidden_sizes"],
                activation_fn=getattr(th.nn, data["activation"]),
            )
        weights = {name: array for name, array in arrays.items() if name.startswith(_WEIGHT)}
        network.load_state_dict({name.removeprefix(_WEIGHT): th.as_tensor(array) for name, array in weights.items()})
        network.set_training_mode(False)
        return network_policy(network)

    def __repr__(self) -> str:
        network = self.network
        return f"NetworkPolicy({type(network).__name__}, {network.observation_space} -> {network.action_space})"


class NetworkPolicy(_Kept, FinitePolicy):
    """An actor-critic network over discrete actions."""

    def __init__(self, network: Any) -> None:
        self.network = network
        self.observation_space, self.action_space = network.observation_space, network.action_space

    def probabilities(self, observations: NDArray[Any]) -> FloatArray:
        """Ask the network, in evaluation mode."""
        self.network.set_training_mode(False)
        tensor, _ = self.network.obs_to_tensor(observations)
        rows = self.network.get_distribution(tensor).distribution.probs.detach().cpu().numpy().astype(np.float64)
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))  # single precision sums to one only to 1e-7


class ContinuousNetworkPolicy(_Kept, PredictorPolicy):
    """An actor-critic network over actions that have no probabilities one by one."""

    def __init__(self, network: Any) -> None:
        super().__init__(network)
        self.network = network


def network_policy(network: Any) -> NetworkPolicy | ContinuousNetworkPolicy:
    """Return the policy of an actor-critic network."""
    discrete = isinstance(network.action_space, gym.spaces.Discrete)
    return NetworkPolicy(network) if discrete else ContinuousNetworkPolicy(network)
