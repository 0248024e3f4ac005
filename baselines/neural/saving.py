"""Checkpoints of the game with networks: plain arrays and JSON, never pickled. Importing this module imports torch.

What a run is made of is written between two rounds, when every environment begins anew, so that nothing inside the
environments need be kept. Whoever makes the same call again goes on from there, to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm

from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.files import FileContentError, checksum, read_arrays, refusing, write_arrays

_FORMAT = "lfd_gym.networks/1"
_WHAT = "a checkpoint of a learner with networks"
#: What algorithms count, those that have it.
_COUNTED = (
    "num_timesteps",
    "_n_updates",
    "_episode_num",
    "_current_progress_remaining",
    "_n_calls",
    "exploration_rate",
    "log_temperature",
    "slope",
    "distance_of_cloning",
)
#: Words of the state of NumPy's older generator.
_MT19937_WORDS = 624
_REPLAYED = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts", "rows")


def save(path: Path, asked: Mapping[str, Any], state: Any) -> None:
    """Write a nested state of tensors, arrays and numbers, in place of an older checkpoint.

    Parameters
    ----------
    path
        The file.
    asked
        What the run was asked for: it goes on for the same only.
    state
        Dictionaries, lists and tuples of these.
    """
    arrays: dict[str, NDArray[Any]] = {}
    description = {"format": _FORMAT, "asked": dict(asked), "state": _packed(state, arrays)}
    write_arrays(path, {**description, "checksum": checksum(description, arrays)}, arrays, overwrite=True)


def load(path: Path, asked: Mapping[str, Any]) -> Any:
    """Read the state that `save` wrote, of a run that was asked for the same."""
    description, arrays = read_arrays(path, _FORMAT, _WHAT)
    stated = description.pop("checksum", None)
    with refusing(path, f"is not {_WHAT}"):
        if stated != checksum(description, arrays):
            raise FileContentError(f"checkpoint {path} is damaged: its content does not match its checksum")
    before = description["asked"]
    for name, value in asked.items():
        if before.get(name) != value:
            raise ValueError(
                f"checkpoint {path} is of another run: {name} was {before.get(name)!r} and is {value!r}; use another "
                "file, or make the same call again"
            )
    with refusing(path, f"is not {_WHAT}"):
        return _unpacked(description["state"], arrays)


def check(path: Path, found: Any, now: Any) -> None:
    """Refuse a state that is not built as that of the run at its beginning, ``now``: nothing unfit is followed."""
    with refusing(path, f"is not {_WHAT} of this kind"):
        _check_like(found, now, "state")
        model = found["model"]
        _check_finite(model["networks"], "networks")
        _check_finite(model["tensors"], "tensors")
        if not 0 <= model["numpy"][2] <= _MT19937_WORDS:  # NumPy would read on from there without looking
            raise ValueError(f"state.model.numpy is at word {model['numpy'][2]}")
        if any(count < 0 for count in model["counted"].values() if isinstance(count, int)):
            raise ValueError(f"state.model.counted has negative counts: {model['counted']}")
        if model["replay"] is not None:
            _check_replay(model["replay"])


def _check_like(found: Any, now: Any, where: str) -> None:
    if now is None:
        return
    if isinstance(now, Mapping):
        # What optimisers keep is nothing before their first step; torch looks at it itself.
        grows = where.endswith(".state") and "optimizer" in where
        if not isinstance(found, Mapping) or (set(found) != set(now) and not grows):
            raise ValueError(f"{where} has other parts")
        for name in () if grows else now:
            _check_like(found[name], now[name], f"{where}.{name}")
    elif isinstance(now, th.Tensor | np.ndarray):
        replayed = where.startswith("state.model.replay.")  # it grows
        first = 1 if replayed else 0
        if type(found) is not type(now) or found.dtype != now.dtype or found.shape[first:] != now.shape[first:]:
            raise ValueError(f"{where} has another shape or kind")
    elif isinstance(now, tuple):
        if not isinstance(found, tuple) or len(found) != len(now):
            raise ValueError(f"{where} has another length")
        for i, (one, other) in enumerate(zip(found, now, strict=True)):
            _check_like(one, other, f"{where}[{i}]")
    elif not isinstance(found, (int, float) if isinstance(now, float) else type(now)):
        raise ValueError(f"{where} is of another kind")


def _check_finite(part: Any, where: str) -> None:
    if isinstance(part, Mapping):
        for name, value in part.items():
            _check_finite(value, f"{where}.{name}")
    elif isinstance(part, th.Tensor) and not bool(th.isfinite(part).all()):
        raise ValueError(f"{where} is not finite")


def _check_replay(replay: Mapping[str, Any]) -> None:
    lengths = {len(replay[name]) for name in _REPLAYED}
    if len(lengths) != 1:
        raise ValueError(f"state.model.replay has columns of {sorted(lengths)} steps")
    (n,) = lengths
    if not (0 <= replay["pos"] <= n if replay["full"] else replay["pos"] == n):
        raise ValueError(f"state.model.replay is at step {replay['pos']} of {n}")


def fingerprint(demonstrations: Demonstrations) -> str:
    """Return what tells demonstrations from others."""
    parts = {"observations": demonstrations.observations, "offsets": demonstrations.offsets}
    if demonstrations.actions is not None:
        parts["actions"] = demonstrations.actions
    return checksum({}, parts)


# -- the state of an algorithm ----------------------------------------------------------------------------------------


def state_of(model: BaseAlgorithm) -> dict[str, Any]:
    """Return all that an algorithm has learned and counted, its replay and the generators of torch and NumPy."""
    networks, tensors = model._get_torch_save_params()
    buffer = getattr(model, "replay_buffer", None)
    return {
        "networks": {name: _part(model, name).state_dict() for name in networks},
        "tensors": {name: _part(model, name).data for name in tensors},
        "counted": {name: getattr(model, name) for name in _COUNTED if name in vars(model)},
        "replay": None if buffer is None else _replayed(buffer),
        "torch": th.get_rng_state(),
        "numpy": np.random.get_state(legacy=True),  # noqa: NPY002 - Stable-Baselines3 draws from it
        "actions": model.action_space.np_random.bit_generator.state,
    }


def restore(model: BaseAlgorithm, state: Mapping[str, Any]) -> None:
    """Give an algorithm that was made alike the state of another."""
    for name, found in state["networks"].items():
        _part(model, name).load_state_dict(found)
    for name, found in state["tensors"].items():
        _part(model, name).data.copy_(found)
    for name, found in state["counted"].items():
        setattr(model, name, found)
    if state["replay"] is not None:
        _replay_again(model.replay_buffer, state["replay"])  # type: ignore[attr-defined]
    th.set_rng_state(state["torch"])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    model.action_space.np_random.bit_generator.state = state["actions"]


def _part(model: Any, name: str) -> Any:
    for step in name.split("."):
        model = getattr(model, step)
    return model


def _replayed(buffer: Any) -> dict[str, Any]:
    n = buffer.size()
    return {"pos": buffer.pos, "full": buffer.full, **{name: getattr(buffer, name)[:n] for name in _REPLAYED}}


def _replay_again(buffer: Any, state: Mapping[str, Any]) -> None:
    for name in _REPLAYED:
        getattr(buffer, name)[: len(state[name])] = state[name]
    buffer.pos, buffer.full = state["pos"], state["full"]


# -- nested states as JSON and arrays ---------------------------------------------------------------------------------


def _packed(part: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """Return what JSON can hold; arrays go to ``arrays``, by number."""
    if isinstance(part, th.Tensor):
        return {"tensor": _kept(part.detach().cpu().numpy(), arrays)}
    if isinstance(part, np.ndarray):
        return {"array": _kept(part, arrays)}
    if isinstance(part, Mapping):
        return {"dict": [[_packed(key, arrays), _packed(value, arrays)] for key, value in part.items()]}
    if isinstance(part, list | tuple):
        return {"tuple" if isinstance(part, tuple) else "list": [_packed(each, arrays) for each in part]}
    return part.item() if isinstance(part, np.generic) else part


def _kept(array: NDArray[Any], arrays: dict[str, NDArray[Any]]) -> str:
    name = str(len(arrays))
    arrays[name] = array
    return name


def _unpacked(part: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if not isinstance(part, dict):
        return part
    makers: dict[str, Callable[[Any], Any]] = {
        "tensor": lambda name: th.as_tensor(np.array(arrays[name])),
        "array": lambda name: np.array(arrays[name]),
        "dict": lambda pairs: {_unpacked(key, arrays): _unpacked(value, arrays) for key, value in pairs},
        "list": lambda each: [_unpacked(one, arrays) for one in each],
        "tuple": lambda each: tuple(_unpacked(one, arrays) for one in each),
    }
    ((kind, value),) = part.items()
    return makers[kind](value)
