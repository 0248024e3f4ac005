"""Feed-forward networks of Stable-Baselines3. torch is imported only to keep one in a file or to read it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.model.mdp import one_hot
from lfd_gym.policies.policy import Arrays, FinitePolicy, Policy
from lfd_gym.policies.predictors import PredictorPolicy
from lfd_gym.spaces import from_array, space_from_data
from lfd_gym.validation import FloatArray

_WEIGHT = "weight:"


class _Kept(Policy):
    """Networks in their usual form go into files as their architecture and the weights they act with."""

    kind: ClassVar[str] = "network"
    network: Any

    def to_data(self) -> tuple[dict[str, Any], Arrays]:
        """Return the architecture and the weights; only networks in their usual form are known."""
        from lfd_gym.policies.architectures import describe

        architecture, weights = describe(self.network)
        nested = isinstance(self.network.observation_space, gym.spaces.Dict)
        return {"architecture": architecture, "nested": nested}, {_WEIGHT + name: a for name, a in weights.items()}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Arrays) -> Policy:
        """Build the network and load its weights."""
        try:
            from lfd_gym.policies.architectures import build
        except ImportError as error:
            raise ImportError(f"a network needs Stable-Baselines3: pip install 'lfd-gym[sb3]' ({error})") from error
        observed = "outer_observation" if data["nested"] else "observation"
        weights = {name.removeprefix(_WEIGHT): array for name, array in arrays.items() if name.startswith(_WEIGHT)}
        for name, array in weights.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ValueError(f"the weights {name} must be finite")
        network = build(
            data["architecture"],
            space_from_data(observed, data[f"{observed}_space"], arrays),
            space_from_data("action", data["action_space"], arrays),
            weights,
        )
        policy = network_policy(network)
        assert policy is not None
        return policy

    def _batch(self, observation: Any) -> tuple[NDArray[Any], bool]:
        space = self.network.observation_space
        if isinstance(space, gym.spaces.Box) and len(space.shape) == 3 and np.ndim(observation) >= 3:
            from stable_baselines3.common.preprocessing import is_image_space, maybe_transpose

            if is_image_space(space):  # the network's has the channels first, the environment's usually last
                observation = maybe_transpose(np.asarray(observation), space)
        return super()._batch(observation)

    def __repr__(self) -> str:
        network = self.network
        return f"NetworkPolicy({type(network).__name__}, {network.observation_space} -> {network.action_space})"


class NetworkPolicy(_Kept, FinitePolicy):
    """A network over finitely many actions: one that says their probabilities, or the greedy one of DQN."""

    def __init__(self, network: Any) -> None:
        self.network = network
        self.take_observations_of(network.observation_space)
        self.action_space = network.action_space

    def probabilities(self, observations: NDArray[Any]) -> FloatArray:
        """Ask the network, in evaluation mode."""
        seen = from_array(self.network.observation_space, observations)
        if not hasattr(self.network, "get_distribution"):
            return one_hot(self.network.predict(seen, deterministic=True)[0], int(self.network.action_space.n))
        self.network.set_training_mode(False)
        tensor, _ = self.network.obs_to_tensor(seen)
        rows = self.network.get_distribution(tensor).distribution.probs.detach().cpu().numpy().astype(np.float64)
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))  # single precision sums to one only to 1e-7


class PredictorNetworkPolicy(_Kept, PredictorPolicy):
    """A network over actions that have no probabilities one by one: numbers, or several choices at once."""

    def __init__(self, network: Any) -> None:
        super().__init__(network)
        self.network = network


def network_policy(predictor: Any) -> NetworkPolicy | PredictorNetworkPolicy | None:
    """Return the policy of a feed-forward network, or of the algorithm that has one; None for anything else."""
    loaded: Any = sys.modules.get("stable_baselines3.common.policies")
    if loaded is None:  # then nothing is of Stable-Baselines3
        return None
    network = predictor if isinstance(predictor, loaded.BasePolicy) else getattr(predictor, "policy", None)
    if not isinstance(network, loaded.BasePolicy) or type(network).predict is not loaded.BasePolicy.predict:
        return None  # a `predict` of its own may remember
    says = hasattr(network, "get_distribution") or hasattr(network, "q_net")
    discrete = isinstance(network.action_space, gym.spaces.Discrete)
    return NetworkPolicy(network) if says and discrete else PredictorNetworkPolicy(network)
