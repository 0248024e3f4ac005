"""Policies in files that hold numbers and a description, and nothing that could run.

A file is an ``.npz`` archive without pickle: ``description`` is JSON, the other entries are arrays. The description
names the *kind* of the policy; `KINDS` says which class reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from lfd_gym.arguments import checked
from lfd_gym.files import read_arrays, refusing, write_arrays
from lfd_gym.policies.conversion import PolicyLike, as_policy
from lfd_gym.policies.networks import NetworkPolicy
from lfd_gym.policies.policy import Policy
from lfd_gym.policies.tables import GreedyPolicy, TablePolicy, UniformPolicy
from lfd_gym.policies.tiles import TilePolicy
from lfd_gym.spaces import space_from_data, space_to_data

FORMAT = "lfd_gym.policy/2"
_SPACES = ("observation", "outer_observation", "action")

#: Kind → its class, or where to find it once it is needed.
KINDS: dict[str, type[Policy] | str] = {
    "greedy": GreedyPolicy,
    "grid": "lfd_gym.grids.policies:GridPolicy",
    "mixture": "lfd_gym.policies.mixtures:MixturePolicy",
    "network": NetworkPolicy,
    "table": TablePolicy,
    "tiles": TilePolicy,
    "uniform": UniformPolicy,
}


def register_policy_kind(kind: type[Policy]) -> None:
    """Let files keep policies of a class of your own: it has a ``kind``, ``to_data`` and ``from_data``."""
    if not kind.kind or kind.kind in KINDS:
        raise ValueError(f"kind must be a new name, got {kind.kind!r}")
    KINDS[kind.kind] = kind


@checked
def save_policy(policy: PolicyLike, path: str | Path, overwrite: bool = False) -> None:
    """Write a policy that is numbers alone: tables, tiles, networks of Stable-Baselines3, and mixtures of these.

    Of a network, the file keeps the architecture as data and the weights it acts with as arrays: those of PPO, A2C,
    DQN, SAC, TD3 and DDPG over observations that are flattened. Critics that do not act are left out.

    Parameters
    ----------
    policy
        Anything that `as_policy` takes; functions and other objects are refused.
    path
        The file, ending in ``.npz``.
    overwrite
        Whether it may exist already.
    """
    if Path(path).suffix != ".npz":
        raise ValueError(f"path must end in .npz, got {path}")
    data, arrays = policy_to_data(as_policy(policy))
    write_arrays(path, {"format": FORMAT, **data}, arrays, overwrite)


@checked
def load_policy(path: str | Path, max_bytes: int | None = None) -> Policy:
    """Read what `save_policy` wrote: the same probabilities, and ``predict`` goes on drawing where it was.

    Parameters
    ----------
    path
        The file; a `lfd_gym.files.FileContentError` says what is wrong with it.
    max_bytes
        What its arrays may take in memory; by default 1 GiB, or a hundred times the size of the file if that is more.
    """
    data, arrays = read_arrays(path, FORMAT, "a policy saved by lfd_gym.save_policy", max_bytes)
    with refusing(path, "does not hold the policy that it describes"):
        return policy_from_data(data, arrays)


def policy_to_data(policy: Policy) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a policy as JSON values and arrays."""
    data, arrays = policy.to_data()
    state = policy.rng.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise ValueError(f"policy.rng must be one of np.random.default_rng to be saved, got {policy.rng}")
    data |= {"kind": policy.kind, "rng": state}
    for name in _SPACES:
        space = getattr(policy, f"{name}_space")
        if space is not None:
            data[f"{name}_space"], bounds = space_to_data(name, space)
            arrays = arrays | bounds
    return data, arrays


def policy_from_data(data: dict[str, Any], arrays: dict[str, Any]) -> Policy:
    """Return the policy that `policy_to_data` described."""
    kind = KINDS.get(data["kind"])
    if kind is None:
        raise ValueError(f"unknown kind of policy {data['kind']!r}; known are {', '.join(sorted(KINDS))}")
    if isinstance(kind, str):
        module, _, name = kind.partition(":")
        kind = getattr(import_module(module), name)
    build: Callable[..., Policy] = kind.from_data
    policy = build(data, arrays)
    for name in _SPACES:
        if f"{name}_space" in data:
            setattr(policy, f"{name}_space", space_from_data(name, data[f"{name}_space"], arrays))
    policy.rng.bit_generator.state = data["rng"]
    return policy
