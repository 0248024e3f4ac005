"""Networks of Stable-Baselines3 as data: what is needed to build one again, and its weights by name.

Importing this module imports torch. Four families are known, by what acts in them: the networks of PPO and A2C
(``actor-critic``), the value network of DQN, and the actors of SAC and of TD3 and DDPG. Critics that do not act are
left out. Observations are flattened and hidden layers are linear, with an activation between them, so that the shapes
of all weights follow from a few numbers:

    features of the observation → hidden sizes → one output for each action, number or choice.

They are compared with those of the arrays before anything is built. A small file can so not ask for a large network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import CombinedExtractor, FlattenExtractor
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from stable_baselines3.sac.policies import Actor as GaussianActor
from stable_baselines3.sac.policies import SACPolicy
from stable_baselines3.td3.policies import Actor as DeterministicActor
from stable_baselines3.td3.policies import TD3Policy

Shapes = dict[str, tuple[int, ...]]

#: Family → what acts.
_ACTORS: dict[str, Any] = {
    "actor-critic": ActorCriticPolicy,
    "dqn": QNetwork,
    "sac": GaussianActor,
    "td3": DeterministicActor,
}
#: Policies that hold what acts, and under which name.
_OWNERS: dict[Any, str] = {DQNPolicy: "q_net", SACPolicy: "actor", TD3Policy: "actor"}
#: Activations that have no weights and are used as they come.
_ACTIVATIONS = (
    *("CELU", "ELU", "GELU", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid", "Mish", "ReLU", "ReLU6", "SELU"),
    *("SiLU", "Sigmoid", "Softplus", "Softsign", "Tanh", "Tanhshrink"),
)
#: What decides on an action; a class that changes one of these is not rebuilt by its architecture.
_DECIDING = (
    *("predict", "obs_to_tensor", "extract_features", "forward", "_predict", "unscale_action", "squash_output"),
    *("get_distribution", "_get_action_dist_from_latent", "get_action_dist_params"),
)


def describe(network: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the architecture of ``network`` as JSON values and the weights it acts with, or say why it has no such."""
    actor = _actor(network)
    family = next((name for name, kind in _ACTORS.items() if isinstance(actor, kind)), "")
    if not family:
        raise _refusal(network, "it is none of PPO, A2C, DQN, SAC, TD3 and DDPG")
    if not (_decides_as(actor, _ACTORS[family]) and all(_decides_as(network, x) for x in _OWNERS)):
        raise _refusal(network, "its class decides in a way of its own")
    extractor = type(actor.features_extractor)
    if extractor not in (FlattenExtractor, CombinedExtractor) or _has_images(
        actor.observation_space, actor.normalize_images
    ):
        raise _refusal(network, f"it looks at observations with {extractor.__name__}, where only flattening is known")
    if getattr(actor, "use_sde", False):
        raise _refusal(network, "it uses state-dependent exploration (use_sde)")
    activation = getattr(actor.activation_fn, "__name__", "")
    if activation not in _ACTIVATIONS or actor.activation_fn is not getattr(th.nn, activation):
        raise _refusal(network, f"its activation is none of {', '.join(_ACTIVATIONS)} as torch has them")
    sizes = actor.net_arch if isinstance(actor.net_arch, dict) else {"pi": actor.net_arch, "vf": actor.net_arch}
    heads = ("pi", "vf") if family == "actor-critic" else ("pi",)
    data = {
        "family": family,
        "hidden_sizes": {head: [int(size) for size in sizes.get(head, ())] for head in heads},
        "activation": activation,
        "normalize_images": bool(actor.normalize_images),
    }
    weights = {name: tensor.detach().cpu().numpy() for name, tensor in actor.state_dict().items()}
    if any(array.dtype != np.float32 for array in weights.values()):
        raise _refusal(network, "its weights are not of single precision")
    try:
        again = build(data, actor.observation_space, actor.action_space, weights)
    except ValueError as error:
        raise _refusal(network, str(error)) from error
    if _modules(again) != _modules(actor):
        raise _refusal(network, "its layers are not those that its architecture says")
    return data, weights


def build(
    data: Mapping[str, Any],
    observation_space: gym.Space[Any],
    action_space: gym.Space[Any],
    weights: Mapping[str, NDArray[Any]],
) -> Any:
    """Return the network that `describe` described, after checking that the weights are those of such a network."""
    family, activation, normalize = data["family"], data["activation"], bool(data["normalize_images"])
    if family not in _ACTORS:
        raise ValueError(f"unknown family of networks {family!r}; known are {', '.join(_ACTORS)}")
    if activation not in _ACTIVATIONS:
        raise ValueError(f"unknown activation {activation!r}; known are {', '.join(_ACTIVATIONS)}")
    discrete, box = (isinstance(action_space, kind) for kind in (gym.spaces.Discrete, gym.spaces.Box))
    if (family == "dqn" and not discrete) or (family in ("sac", "td3") and not box):
        raise ValueError(f"networks of the family {family!r} do not act in {action_space}")
    if _has_images(observation_space, normalize):
        raise ValueError(f"a network over {observation_space} looks at images, where only flattening is known")
    _check_shapes(weights, _shapes(family, data["hidden_sizes"], observation_space, action_space))
    with th.random.fork_rng(devices=[]):  # the weights drawn at first are thrown away
        settings = {"activation_fn": getattr(th.nn, activation), "normalize_images": normalize}
        network = _untrained(family, data["hidden_sizes"], observation_space, action_space, settings)
    network.load_state_dict({name: th.as_tensor(array) for name, array in weights.items()})
    network.set_training_mode(False)
    return network


def _untrained(
    family: str,
    hidden_sizes: Mapping[str, list[int]],
    observations: gym.Space[Any],
    actions: gym.Space[Any],
    settings: Mapping[str, Any],
) -> Any:
    extractor: Any = CombinedExtractor if isinstance(observations, gym.spaces.Dict) else FlattenExtractor
    if family == "actor-critic":
        return ActorCriticPolicy(
            observations,
            actions,
            lr_schedule=lambda _: 0.0,
            net_arch=dict(hidden_sizes),
            ortho_init=False,
            features_extractor_class=extractor,
            **settings,
        )
    features = extractor(observations)
    return _ACTORS[family](
        observations,
        actions,
        net_arch=hidden_sizes["pi"],
        features_extractor=features,
        features_dim=features.features_dim,
        **settings,
    )


def _actor(network: Any) -> Any:
    """Return what acts in a policy: itself, or the part that it asks."""
    return next((getattr(network, part) for owner, part in _OWNERS.items() if isinstance(network, owner)), network)


def _decides_as(network: Any, known: Any) -> bool:
    """Return whether nothing that decides is changed, if ``network`` is of a class made from ``known`` at all."""
    return not isinstance(network, known) or all(
        getattr(type(network), name, None) is getattr(known, name, None) for name in _DECIDING
    )


def _has_images(space: gym.Space[Any], normalize: bool) -> bool:
    """Return whether one of the parts that a `CombinedExtractor` sees would get a convolutional network."""
    return isinstance(space, gym.spaces.Dict) and any(
        is_image_space(part, normalized_image=not normalize) for part in space.spaces.values()
    )


def _modules(network: Any) -> dict[str, tuple[type, str]]:
    """Return the layers behind the extractor of features: their classes, and their settings as torch prints them."""
    parts = {name: part for name, part in network.named_modules() if name and "features_extractor" not in name}
    return {name: (type(part), part.extra_repr()) for name, part in parts.items()}


def _shapes(
    family: str, hidden_sizes: Mapping[str, Sequence[int]], observations: gym.Space[Any], actions: gym.Space[Any]
) -> Shapes:
    """Return the shapes of all weights, by the names that Stable-Baselines3 gives them."""
    heads = ("pi", "vf") if family == "actor-critic" else ("pi",)
    if set(hidden_sizes) != set(heads):
        raise ValueError(f"hidden_sizes must be given for {' and '.join(heads)}, got {sorted(hidden_sizes)}")
    for size in (size for sizes in hidden_sizes.values() for size in sizes):
        if type(size) is not int or size < 1:
            raise ValueError(f"hidden_sizes must be positive integers, got {size!r}")
    n_outputs, n_features = gym.spaces.flatdim(actions), gym.spaces.flatdim(observations)
    widths = {head: [n_features, *hidden_sizes[head]] for head in heads}
    pi = widths["pi"]
    if family in ("dqn", "td3"):
        return _tower("q_net" if family == "dqn" else "mu", [*pi, n_outputs])
    if family == "sac":
        outputs = {**_linear("mu", pi[-1], n_outputs), **_linear("log_std", pi[-1], n_outputs)}
        return {**_tower("latent_pi", pi), **outputs}
    vf = widths["vf"]
    outputs = {**_linear("action_net", pi[-1], n_outputs), **_linear("value_net", vf[-1], 1)}
    if isinstance(actions, gym.spaces.Box):
        outputs["log_std"] = (n_outputs,)
    return {**_tower("mlp_extractor.policy_net", pi), **_tower("mlp_extractor.value_net", vf), **outputs}


def _tower(name: str, widths: Sequence[int]) -> Shapes:
    """Return the shapes of linear layers with an activation after each, which takes every second number."""
    layers = [_linear(f"{name}.{2 * i}", *pair) for i, pair in enumerate(pairwise(widths))]
    return {key: shape for layer in layers for key, shape in layer.items()}


def _linear(name: str, n_inputs: int, n_outputs: int) -> Shapes:
    return {f"{name}.weight": (n_outputs, n_inputs), f"{name}.bias": (n_outputs,)}


def _check_shapes(weights: Mapping[str, NDArray[Any]], wanted: Shapes) -> None:
    for name, shape in wanted.items():
        if name not in weights:
            raise ValueError(f"the weights {name} are missing")
        if weights[name].shape != shape or weights[name].dtype.kind != "f":
            found = f"{weights[name].shape} and dtype {weights[name].dtype}"
            raise ValueError(f"the weights {name} must be floats of shape {shape}, got shape {found}")
    unknown = sorted(set(weights) - set(wanted))
    if unknown:
        raise ValueError(f"the network has no weights {', '.join(unknown)}")


def _refusal(network: Any, reason: str) -> ValueError:
    return ValueError(
        f"{type(network).__name__} cannot be saved without pickle: {reason}. "
        "Keep it with the `save` of its algorithm, and load it with Stable-Baselines3"
    )
