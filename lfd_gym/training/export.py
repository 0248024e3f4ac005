"""A learned network as a model of Stable-Baselines3, to go on training it there on the true reward.

What acts is carried over exactly. What learning needs besides, such as the values of PPO or the critics of SAC, was
never trained on that reward, and begins anew where the learner has none.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from lfd_gym.files import replacing_file
from lfd_gym.policies.conversion import PolicyLike, as_policy
from lfd_gym.policies.tables import GreedyPolicy

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

#: Family of networks → the algorithm that trains such, and where in its policy they are.
_ALGORITHMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "actor-critic": ("PPO", ("",)),
    "dqn": ("DQN", ("q_net", "q_net_target")),
    "sac": ("SAC", ("actor",)),
    "td3": ("TD3", ("actor", "actor_target")),
}
_N_COMPARED = 100


def to_sb3(policy: PolicyLike, env: gym.Env[Any, Any], **settings: Any) -> BaseAlgorithm:
    """Return a model of Stable-Baselines3 on ``env`` that acts as ``policy``, ready to ``learn``.

    Networks of PPO and A2C become PPO, those of DQN, SAC and TD3 what they are.

    Parameters
    ----------
    policy
        A network, such as `bc`, `gail` and `primal_dual_rl` learn.
    env
        The environment, with the reward to train on.
    **settings
        Of the algorithm, e.g. ``learning_rate``: a small one keeps what was cloned until the values are learned.
    """
    import stable_baselines3
    import torch as th

    from lfd_gym.policies.architectures import describe

    found = as_policy(policy)
    network = getattr(found.policy if isinstance(found, GreedyPolicy) else found, "network", None)
    if network is None:
        raise ValueError(f"policy must be a network to become a model of Stable-Baselines3, got {found}")
    architecture, weights = describe(network)
    name, places = _ALGORITHMS[architecture["family"]]
    sizes = architecture["hidden_sizes"]
    kwargs: dict[str, Any] = {
        "net_arch": sizes if len(sizes) > 1 else sizes["pi"],
        "activation_fn": getattr(th.nn, architecture["activation"]),
        "normalize_images": architecture["normalize_images"],
    }
    inputs = "MultiInputPolicy" if isinstance(env.observation_space, gym.spaces.Dict) else "MlpPolicy"
    with th.random.fork_rng(devices=[]):
        model = getattr(stable_baselines3, name)(inputs, env, policy_kwargs=kwargs, device="cpu", **settings)
    tensors = {part: th.as_tensor(array.copy()) for part, array in weights.items()}
    for place in places:
        try:
            model.policy.get_submodule(place).load_state_dict(tensors)
        except RuntimeError as error:
            raise ValueError(f"{found} does not fit {env}: {str(error).splitlines()[-1].strip()}") from error
    _check_alike(network, model, env)
    return model  # type: ignore[no-any-return]


def _check_alike(network: Any, model: BaseAlgorithm, env: gym.Env[Any, Any]) -> None:
    """Refuse a model that would act differently: the environment may show parts in another way than the network."""
    if network.observation_space.shape != env.observation_space.shape:
        raise ValueError(f"the network observes {network.observation_space}, the environment {env.observation_space}")
    space = network.observation_space
    seen = np.stack([space.sample() for _ in range(_N_COMPARED)])
    ours, theirs = (each.predict(seen, deterministic=True)[0] for each in (network, model))
    if not np.allclose(ours, theirs, atol=1e-5):
        raise ValueError(f"Stable-Baselines3 shows observations of {env} to networks in another way")


def check_export(path: Path, overwrite: bool) -> None:
    """Refuse a place where no model could be written, before anything is learned."""
    if path.suffix != ".zip":
        raise ValueError(f"export_sb3 must end in .zip, got {path}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {path.parent} does not exist")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists already; --force replaces it")


def export_sb3(policy: PolicyLike, env: Any, path: Path, *, overwrite: bool = False) -> str:
    """Write ``policy`` as a model of Stable-Baselines3; return the name of its algorithm."""
    check_export(path, overwrite)
    model = to_sb3(policy, env)
    with replacing_file(path, overwrite) as unfinished, open(unfinished, "wb") as file:
        model.save(file)
    return type(model).__name__
