"""Policies in files that hold numbers and a description, and nothing that could run: tables and networks.

A file is an ``.npz`` archive: ``description`` is JSON, the other entries are arrays. It is read without pickle, and a
network is rebuilt from its description; only actor-critic networks of Stable-Baselines3 in their usual form are known.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.files import replacing_file
from lfd_gym.policies.policies import Policy
from lfd_gym.validation import policy_array

_FORMAT = "lfd_gym.policy/1"
_WEIGHT = "weight:"
_ACTIVATIONS = ("Tanh", "ReLU")


def save_policy(policy: Policy, path: str | Path, overwrite: bool = False) -> None:
    """Write a policy: an (S, A) array, or an actor-critic network of Stable-Baselines3.

    Parameters
    ----------
    policy
        Other policies are refused; those of `lfd_gym.TabularPolicy` have their own ``save``.
    path
        The file, ending in ``.npz``.
    overwrite
        Whether it may exist already.
    """
    if Path(path).suffix != ".npz":
        raise ValueError(f"path must end in .npz, got {path}")
    description: dict[str, Any] = {"format": _FORMAT, "kind": "table"}
    if isinstance(policy, np.ndarray):
        arrays = {"probabilities": policy_array("policy", policy, *policy.shape)}
    else:
        arrays = _network_arrays(policy, description)
    with replacing_file(path, overwrite) as unfinished, open(unfinished, "wb") as file:
        content: dict[str, Any] = {**arrays, "description": np.array(json.dumps(description))}
        np.savez(file, **content)


def load_policy(path: str | Path) -> Policy:
    """Read what `save_policy` wrote, bit by bit the same."""
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    description = json.loads(str(arrays.pop("description", "{}")))
    if description.get("format") != _FORMAT:
        raise ValueError(f"{path} is not a policy saved by lfd_gym.save_policy")
    if description["kind"] == "table":
        table = arrays["probabilities"]
        return policy_array(f"policy in {path}", table, *table.shape)
    network: Policy = _network(arrays, description)
    return network


def _network_arrays(policy: Any, description: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Describe a network, and return its weights."""
    activation = getattr(getattr(policy, "activation_fn", None), "__name__", "")
    extractor = getattr(getattr(policy, "features_extractor_class", None), "__name__", "")
    usual = hasattr(policy, "get_distribution") and extractor == "FlattenExtractor" and activation in _ACTIVATIONS
    if not usual:
        raise ValueError(
            f"policy must be an (S, A) array or an actor-critic network of Stable-Baselines3 with flattened "
            f"observations and {' or '.join(_ACTIVATIONS)}, got {type(policy).__name__}"
        )
    arch = policy.net_arch
    sizes = {name: list(arch[name]) if isinstance(arch, dict) else list(arch) for name in ("pi", "vf")}
    description |= {
        "kind": "actor-critic",
        "hidden_sizes": sizes,
        "activation": activation,
        "observation_space": _describe_space(policy.observation_space),
        "action_space": _describe_space(policy.action_space),
    }
    return {_WEIGHT + name: tensor.detach().cpu().numpy() for name, tensor in policy.state_dict().items()}


def _network(arrays: dict[str, NDArray[Any]], description: dict[str, Any]) -> Any:
    try:
        import torch as th
        from stable_baselines3.common.policies import ActorCriticPolicy
    except ImportError as error:
        raise ImportError("reading a network needs the 'imitation' extra: pip install 'lfd-gym[imitation]'") from error
    if description["kind"] != "actor-critic" or description["activation"] not in _ACTIVATIONS:
        raise ValueError(f"unknown kind of policy: {description['kind']} with {description.get('activation')}")
    with th.random.fork_rng(devices=[]):  # the weights drawn at first are thrown away
        policy = ActorCriticPolicy(
            _space(description["observation_space"]),
            _space(description["action_space"]),
            lr_schedule=lambda _: 0.0,
            net_arch=description["hidden_sizes"],
            activation_fn=getattr(th.nn, description["activation"]),
        )
    weights = {name.removeprefix(_WEIGHT): th.as_tensor(array) for name, array in arrays.items()}
    policy.load_state_dict(weights)
    policy.set_training_mode(False)
    return policy


def _describe_space(space: gym.Space[Any]) -> dict[str, Any]:
    if isinstance(space, gym.spaces.Discrete) and space.start == 0:
        return {"discrete": int(space.n)}
    if isinstance(space, gym.spaces.Box):
        return {"low": space.low.tolist(), "high": space.high.tolist(), "dtype": str(space.dtype)}
    raise ValueError(f"policies over {space} cannot be saved: spaces must be Discrete (from 0 on) or Box")


def _space(description: dict[str, Any]) -> gym.Space[Any]:
    if "discrete" in description:
        return gym.spaces.Discrete(description["discrete"])
    dtype: Any = np.dtype(description["dtype"])
    return gym.spaces.Box(np.array(description["low"], dtype), np.array(description["high"], dtype), dtype=dtype)
