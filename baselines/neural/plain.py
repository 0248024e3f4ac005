"""Networks that take observations as they are, and can be kept in files. Importing this module imports torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym

from lfd_gym.baselines.neural.envs import Scaling
from lfd_gym.policies.architectures import build, describe
from lfd_gym.policies.networks import network_policy
from lfd_gym.policies.policy import Policy
from lfd_gym.policies.tables import GreedyPolicy


def plain_policy(
    network: Any, scaling: Scaling | None, observation_space: gym.Space[Any], action_space: gym.Space[Any]
) -> Policy:
    """Return the best actions of a network over scaled observations, as a policy over observations as they are.

    With z = (x − centre)/scale the first layer Wz + b is (W/scale)x + (b − (W/scale)·centre).
    """
    data, weights = describe(network)
    weights = dict(weights)
    if scaling is not None:
        for layer in _first_layers(data["family"], data["hidden_sizes"]):
            matrix = weights[f"{layer}.weight"] / scaling.scale
            weights[f"{layer}.weight"] = matrix
            weights[f"{layer}.bias"] = weights[f"{layer}.bias"] - matrix @ scaling.centre
    policy = network_policy(build(data, observation_space, action_space, weights))
    assert policy is not None
    return GreedyPolicy(policy)


def _first_layers(family: str, hidden_sizes: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
    """Return the names of the layers that see observations."""
    if family == "dqn":
        return ("q_net.0",)
    if family == "td3":
        return ("mu.0",)
    if family == "sac":
        return ("latent_pi.0",) if hidden_sizes["pi"] else ("mu", "log_std")
    return (
        "mlp_extractor.policy_net.0" if hidden_sizes["pi"] else "action_net",
        "mlp_extractor.value_net.0" if hidden_sizes["vf"] else "value_net",
    )
