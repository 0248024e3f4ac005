"""An expert network: PPO of Stable-Baselines3, trained on an environment's reward, saved and loaded.

Stable-Baselines3's own ``PPO.load`` unpickles parts of the file, that is, runs code that is in it. Here only the
network's weights are read, into a network of the default form; so only such networks can be loaded this way.
"""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from lfd_gym.files import replacing_file

if TYPE_CHECKING:
    from stable_baselines3 import PPO
    from stable_baselines3.common.policies import ActorCriticPolicy


def train_ppo(env: gym.Env[Any, Any], total_timesteps: int, seed: int, **settings: Any) -> PPO:
    """Train PPO with a network of the default form on the reward of ``env``, on the CPU.

    Parameters
    ----------
    env
        Episodes must end: give it a time limit.
    total_timesteps
        Steps of the environment; rounded up to whole rollouts.
    seed
        Of the network, its actions and the environment.
    settings
        Of `stable_baselines3.PPO`, e.g. ``n_steps``, ``learning_rate``, ``gamma``; not the form of the network.
    """
    if "policy_kwargs" in settings:
        raise ValueError("settings must not hold policy_kwargs: only networks of the default form can be loaded again")
    algorithm = _ppo()("MlpPolicy", env, seed=seed, device="cpu", verbose=0, **settings)
    return algorithm.learn(total_timesteps)  # type: ignore[no-any-return]


def save_ppo(algorithm: PPO, path: str | Path, overwrite: bool = False) -> None:
    """Write Stable-Baselines3's own file, all or nothing; `path` must end in ``.zip``."""
    if Path(path).suffix != ".zip":
        raise ValueError(f"path must end in .zip, got {path}")
    with replacing_file(path, overwrite) as unfinished, open(unfinished, "wb") as file:
        algorithm.save(file)


def load_ppo(path: str | Path, observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> ActorCriticPolicy:
    """Read the network of a saved PPO (or A2C), without running anything that is in the file."""
    _ppo()
    import torch
    from stable_baselines3.common.policies import ActorCriticPolicy

    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with zipfile.ZipFile(path) as archive:
            weights = torch.load(io.BytesIO(archive.read("policy.pth")), map_location="cpu", weights_only=True)
    except (zipfile.BadZipFile, KeyError, RuntimeError, EOFError, _unpickling_error()) as error:
        raise ValueError(f"{path} does not hold a network saved by Stable-Baselines3: {error}") from error
    network = ActorCriticPolicy(observation_space, action_space, lr_schedule=lambda _: 0.0)
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(
            f"{path} holds a network of another form than the default one for {observation_space} and {action_space}. "
            "If you trust the file, load it with stable_baselines3.PPO.load, which runs code in it, and pass it to "
            f"lfd_gym.collect yourself. {error}"
        ) from error
    network.set_training_mode(False)
    return network


def _unpickling_error() -> type[Exception]:
    import pickle

    return pickle.UnpicklingError


def _ppo() -> Any:
    try:
        from stable_baselines3 import PPO
    except ImportError as error:
        raise ImportError("experts of PPO need the 'imitation' extra: pip install 'lfd-gym[imitation]'") from error
    return PPO
