"""Expert networks of Stable-Baselines3: trained on an environment's reward, and read from its files.

Stable-Baselines3's own ``load`` unpickles parts of the file, that is, runs code that is in it. Here the weights are
read as numbers, and the architecture from the text beside them: enough for the usual networks of PPO, A2C, DQN, SAC,
TD3 and DDPG, of any size. The rest has to be trusted by whoever asks for it.
"""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import gymnasium as gym

from lfd_gym.files import MAX_BYTES, refusing
from lfd_gym.policies.conversion import as_policy
from lfd_gym.policies.policy import Policy

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

Algorithm = Literal["ppo", "dqn", "sac"]

#: Where the defaults of Stable-Baselines3 are made for images and millions of steps.
_SETTINGS: dict[Algorithm, dict[str, Any]] = {
    "ppo": {},
    "dqn": {
        **{"learning_rate": 1e-3, "batch_size": 128, "learning_starts": 500, "target_update_interval": 250},
        **{"train_freq": 4, "gradient_steps": 4, "exploration_fraction": 0.2, "exploration_final_eps": 0.02},
    },
    "sac": {"learning_starts": 500},
}
#: Modules whose policy classes decide as their weights say.
_MODULES = tuple(f"stable_baselines3.{part}.policies" for part in ("common", "dqn", "sac", "td3"))
#: Settings of policies that change how they are trained, not how they act.
_TRAINING = {
    "optimizer_class",
    "optimizer_kwargs",
    "ortho_init",
    "log_std_init",
    "n_critics",
    "share_features_extractor",
}
#: A setting that only one algorithm has → that algorithm.
_SIGNS = {
    **{"clip_range": "PPO", "exploration_fraction": "DQN", "target_entropy": "SAC", "target_policy_noise": "TD3"},
    "gae_lambda": "A2C",
}


def train_expert(
    env: gym.Env[Any, Any], algorithm: Algorithm, total_timesteps: int, seed: int, **settings: Any
) -> BaseAlgorithm:
    """Train a network on the reward of ``env``, on the CPU.

    Parameters
    ----------
    env
        Episodes must end: give it a time limit.
    algorithm
        ``"ppo"``, ``"dqn"`` for finitely many actions, ``"sac"`` for bounded numbers.
    total_timesteps
        Steps of the environment; PPO rounds up to whole rollouts.
    seed
        Of the network, its actions and the environment.
    settings
        Of the algorithm, e.g. ``learning_rate``, ``gamma``, ``policy_kwargs``.
    """
    kinds: dict[Algorithm, Any] = {"dqn": gym.spaces.Discrete, "sac": gym.spaces.Box}
    if not isinstance(env.action_space, kinds.get(algorithm, gym.Space)):
        raise ValueError(f"algorithm {algorithm!r} does not act in {env.action_space}; ppo does")
    chosen = {**_SETTINGS[algorithm], **settings}
    policy = "MultiInputPolicy" if isinstance(env.observation_space, gym.spaces.Dict) else "MlpPolicy"
    model = _algorithm(algorithm.upper())(policy, env, seed=seed, device="cpu", verbose=0, **chosen)
    return model.learn(total_timesteps)  # type: ignore[no-any-return]


def load_expert(
    path: str | Path, observation_space: gym.Space[Any], action_space: gym.Space[Any], *, trust: bool = False
) -> Policy:
    """Read the policy of a model that Stable-Baselines3 saved, a ``.zip``.

    Parameters
    ----------
    path
        The file.
    observation_space, action_space
        Of the environment that it acts in.
    trust
        Whether code in the file may run, where weights and text do not tell how the network decides.
    """
    _algorithm("PPO")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no file {path}")
    with refusing(path, "does not hold a model saved by Stable-Baselines3"), zipfile.ZipFile(path) as archive:
        said, weights = _text(archive), _weights(archive)
    for name, space in (("observation_space", observation_space), ("action_space", action_space)):
        _check_space(path, name, said.get(name), space)
    from lfd_gym.policies.architectures import build

    try:
        architecture, own = _architecture(said, weights)
        network = build(architecture, observation_space, action_space, own)
    except ValueError as error:
        if trust:
            return _unpickled(path, said, action_space)
        raise ValueError(
            f"{path} cannot be read as plain numbers: {error}. Stable-Baselines3 would unpickle the file, which runs "
            "whatever code is in it; if you trust where it comes from, allow that with --trust (trust=True in Python)"
        ) from error
    return as_policy(network)


# -- what the file says -----------------------------------------------------------------------------------------------


def _text(archive: zipfile.ZipFile) -> dict[str, Any]:
    """Return the settings of the model: JSON, with pickles in it that are left alone."""
    found = json.loads(_member(archive, "data"))
    if not isinstance(found, dict):
        raise ValueError("its settings are no JSON object")
    return found


def _weights(archive: zipfile.ZipFile) -> dict[str, Any]:
    import torch

    found = torch.load(io.BytesIO(_member(archive, "policy.pth")), map_location="cpu", weights_only=True)
    if not isinstance(found, Mapping) or not all(isinstance(part, torch.Tensor) for part in found.values()):
        raise ValueError("its weights are no tensors by name")
    return {str(name): part.numpy() for name, part in found.items()}


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    size = archive.getinfo(name).file_size
    if size > MAX_BYTES:
        raise ValueError(f"{name} would take {size} bytes")
    return archive.read(name)


def _check_space(path: str | Path, name: str, said: Any, space: gym.Space[Any]) -> None:
    """Refuse a model of another environment, as far as the text tells."""
    found = said if isinstance(said, Mapping) else {}
    for part in ("_shape", "n"):  # of numbers, where images may have their channels first or last; how many there are
        here = getattr(space, part, None)
        if part in found and here is not None and _numbers(found[part]) != _numbers(here):
            there = f"{part.strip('_')} {found[part]}"
            raise ValueError(f"{path} is a model with {name} of {there}, but that of the environment is {space}")


def _numbers(text: Any) -> list[str]:
    return sorted(re.findall(r"\d+", str(text)))


def _architecture(said: Mapping[str, Any], weights: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the architecture that text and weights tell, and the weights of what acts; or say why they do not."""
    policy_class, kwargs = said.get("policy_class"), said.get("policy_kwargs") or {}
    module = policy_class.get("__module__") if isinstance(policy_class, Mapping) else None
    if module not in _MODULES:
        raise ValueError(f"its policy is of a class of its own ({module})")
    if said.get("use_sde") or kwargs.get("use_sde"):
        raise ValueError("it uses state-dependent exploration (use_sde)")
    known = {":type:", ":serialized:", "net_arch", "activation_fn", "normalize_images", "use_sde", *_TRAINING}
    strange = sorted(set(kwargs) - known)
    if strange:
        raise ValueError(f"its policy_kwargs have {strange[0]}")
    if any(name.startswith("actor.latent_pi.") or name == "actor.mu.weight" for name in weights):
        family, part, towers = "sac", "actor.", {"pi": "latent_pi"}
    elif any(name.startswith("actor.mu.") for name in weights):
        family, part, towers = "td3", "actor.", {"pi": "mu"}
    elif any(name.startswith("q_net.q_net.") for name in weights):
        family, part, towers = "dqn", "q_net.", {"pi": "q_net"}
    else:
        family, part, towers = "actor-critic", "", {"pi": "mlp_extractor.policy_net", "vf": "mlp_extractor.value_net"}
    own = {name.removeprefix(part): array for name, array in weights.items() if name.startswith(part)}
    hidden = {head: _widths(own, tower) for head, tower in towers.items()}
    if family in ("td3", "dqn"):
        hidden["pi"] = hidden["pi"][:-1]  # the last layer of these towers is the output
    usual = "Tanh" if family == "actor-critic" else "ReLU"
    activation = re.fullmatch(r"<class 'torch\.nn\.modules\.activation\.(\w+)'>", str(kwargs.get("activation_fn", "")))
    if "activation_fn" in kwargs and activation is None:
        raise ValueError(f"its activation is {kwargs['activation_fn']}")
    return {
        "family": family,
        "hidden_sizes": hidden,
        "activation": activation[1] if activation else usual,
        "normalize_images": bool(kwargs.get("normalize_images", True)),
    }, own


def _widths(weights: Mapping[str, Any], tower: str) -> list[int]:
    """Return the widths of the layers of a tower, in their order."""
    layers = {int(m[1]): len(array) for name, array in weights.items() if (m := _layer(tower).fullmatch(name))}
    return [layers[number] for number in sorted(layers)]


def _layer(tower: str) -> re.Pattern[str]:
    return re.compile(re.escape(tower) + r"\.(\d{1,4})\.weight")


def _unpickled(path: str | Path, said: Mapping[str, Any], action_space: gym.Space[Any]) -> Policy:
    """Let Stable-Baselines3 load the model of a trusted file."""
    name = next((name for sign, name in _SIGNS.items() if sign in said), None)
    if name is None:
        raise ValueError(
            f"{path} does not tell which algorithm of Stable-Baselines3 it is of: load it in a module of your own, and "
            "name the model there, as MODULE:NAME"
        )
    model = _algorithm(name).load(path, device="cpu")
    if model.action_space != action_space:
        raise ValueError(f"{path} acts in {model.action_space}, but the environment takes {action_space}")
    return as_policy(model)


def _algorithm(name: str) -> Any:
    try:
        return getattr(import_module("stable_baselines3"), name)
    except ImportError as error:
        raise ImportError("experts of Stable-Baselines3 need it: pip install 'lfd-gym[sb3]'") from error
