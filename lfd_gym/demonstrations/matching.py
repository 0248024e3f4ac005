"""Whether demonstrations fit an environment: whether they come from it, and are over its spaces."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec, load_env_creator, parse_env_id
from numpy.typing import NDArray

from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.environments import known_spec
from lfd_gym.demonstrations.provenance import NOT_COMPARED, as_json

_UNKNOWN = object()
#: What is less likely than this is not taken for chance.
_SELDOM = 1e-3


def check_provenance(demonstrations: Demonstrations, env: Any, allow_mismatch: bool = False) -> None:
    """Refuse demonstrations of another environment than ``env``, or of one made with other arguments.

    What is not known of either side is not compared: demonstrations that do not say where they come from, environments
    without a spec, arguments that JSON cannot say. An argument that is not given counts as its default. Time limits and
    render modes may differ.

    Parameters
    ----------
    demonstrations
        What is to be used.
    env
        An environment of any kind, or anything else, which has no spec.
    allow_mismatch
        Whether to accept them all the same.

    Examples
    --------
    >>> import gymnasium as gym, numpy as np, lfd_gym as lfd
    >>> env = gym.make("FrozenLake-v1", is_slippery=False)
    >>> demos = lfd.collect(env, lambda seen: np.ones(len(seen), dtype=int), 1, rng=np.random.default_rng(0))
    >>> check_provenance(demos, env)
    >>> check_provenance(demos, gym.make("FrozenLake-v1"))
    Traceback (most recent call last):
    ...
    ValueError: demonstrations are of FrozenLake-v1 with is_slippery=false, but env is FrozenLake-v1 with ...
    """
    origin, spec = demonstrations.provenance, known_spec(env)
    if allow_mismatch or origin.env_id is None or spec is None:
        return
    advice = "if they are meant to be used here all the same, say allow_mismatch=True (--allow-mismatch)"
    if not _same_id(origin.env_id, spec.id):
        raise ValueError(f"demonstrations are of {origin.env_id}, but env is {spec.id}: {advice}")
    recorded, given = _with_defaults(origin.env_kwargs, spec), _with_defaults(spec.kwargs, spec)
    different = [name for name in sorted({*recorded, *given}) if not _alike(recorded, given, name)]
    if different:
        raise ValueError(
            f"demonstrations are of {origin.env_id} with {_said(recorded, different)}, but env is {spec.id} with "
            f"{_said(given, different)}: {advice}"
        )


def _same_id(one: str, other: str) -> bool:
    """Compare namespace, name and version; an id without a version stands for any."""
    parts = [parse_env_id(env_id.split(":")[-1]) for env_id in (one, other)]
    versions = {part[2] for part in parts} - {None}
    return parts[0][:2] == parts[1][:2] and len(versions) <= 1


def _with_defaults(kwargs: Mapping[str, Any], spec: EnvSpec) -> dict[str, Any]:
    """Return all arguments of the environment as JSON values; those that are none as unknown."""
    registered = gym.registry.get(spec.id)
    merged = _defaults(spec) | (registered.kwargs if registered is not None else {}) | dict(kwargs)
    found = {}
    for name in set(merged) - NOT_COMPARED:
        try:
            found[name] = as_json(merged[name])
        except ValueError:
            found[name] = _UNKNOWN
    return found


def _defaults(spec: EnvSpec) -> dict[str, Any]:
    """Return the defaults of what makes the environment: the task's own, so nothing that a file names is imported."""
    entry_point = spec.entry_point
    try:
        maker = load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
        parameters = inspect.signature(maker).parameters  # type: ignore[arg-type]
    except (TypeError, ValueError, ImportError, AttributeError):
        return {}
    return {name: part.default for name, part in parameters.items() if part.default is not inspect.Parameter.empty}


def _alike(recorded: Mapping[str, Any], given: Mapping[str, Any], name: str) -> bool:
    if _UNKNOWN in (recorded.get(name), given.get(name)):
        return True
    return name in recorded and name in given and bool(recorded[name] == given[name])


def _said(kwargs: Mapping[str, Any], names: list[str]) -> str:
    return ", ".join(f"{name}={json.dumps(kwargs[name])}" if name in kwargs else f"no {name}" for name in names)


def check_held_out(held_out: Demonstrations, shown: Demonstrations) -> None:
    """Refuse held-out demonstrations that are those that were shown: the same ones, some of them, or, of numbers, any.

    They are the same in whatever type of numbers, with or without actions, and, of numbers, also if one is the
    beginning of the other.

    Where every trajectory is the same, as a deterministic expert's in a world without chance, nothing can be told, nor
    does it matter. Of states that are counted, some may come again by chance. Had m trajectories that all differ been
    drawn from few, two would be alike, so a new one is among them with a probability of about 2/m at most.
    """
    acted = held_out.actions is not None and shown.actions is not None
    ours, theirs = ([_content(part, k, acted) for k in range(len(part))] for part in (held_out, shown))
    known = set(theirs)
    longest = max([*ours, *theirs], key=len)
    if len(theirs) > 1 and all(longest.startswith(each) for each in {*ours, *known}):
        return
    space = shown.observation_space
    numbers = isinstance(space, gym.spaces.Box) and np.issubdtype(space.dtype, np.floating)
    again = _begun_alike(ours, theirs, held_out) if numbers else [k for k, each in enumerate(ours) if each in known]
    taken = len(again) == len(ours) and len(known) == len(theirs) and (2 / len(theirs)) ** len(ours) < _SELDOM
    if again and (numbers or ours == theirs or taken):
        raise ValueError(
            f"held_out must be other demonstrations than those of the task, but trajectory {again[0]} is among these: "
            "keep some back with select before making the task"
        )


def _content(demonstrations: Demonstrations, k: int, acted: bool) -> bytes:
    """Return trajectory ``k`` as bytes, step by step: so one begins like another if its bytes do."""
    first, last = demonstrations.offsets[k : k + 2]
    with np.errstate(over="ignore"):  # the same number of another type
        seen = _of_one_type(demonstrations.observations[first + k : last + k + 1])
        if not acted:
            return seen.tobytes()
        done = _of_one_type(demonstrations.actions_for("comparing them")[first:last])
    before = np.concatenate([np.zeros_like(done, shape=(1, *done.shape[1:])), done])
    return np.hstack([before, seen]).tobytes()  # what was done, and seen then


def _of_one_type(batch: NDArray[Any]) -> NDArray[Any]:
    """Return (n, d) numbers: what was once rounded to half of the digits is rounded everywhere."""
    rounded = batch.astype(np.float32) if np.issubdtype(batch.dtype, np.floating) else batch
    return rounded.astype(np.float64).reshape(len(batch), math.prod(batch.shape[1:]))


def _begun_alike(ours: list[bytes], theirs: list[bytes], held_out: Demonstrations) -> list[int]:
    """Return which of ours, of at least one step, begin like one of theirs, or one of theirs like them."""
    step = len(ours[0]) // (int(held_out.lengths[0]) + 1)
    by_first: dict[bytes, list[bytes]] = {}
    for each in theirs:
        if len(each) > step:
            by_first.setdefault(each[: 2 * step], []).append(each)
    return [
        k
        for k, each in enumerate(ours)
        if len(each) > step
        and any(each.startswith(other) or other.startswith(each) for other in by_first.get(each[: 2 * step], ()))
    ]


def check_spaces(
    demonstrations: Demonstrations, observation_space: gym.Space[Any], action_space: gym.Space[Any]
) -> None:
    """Refuse demonstrations over other spaces than these, which are as the package sees them (`single_spaces`).

    Kind, shape and number of values must agree; the bounds and the dtype of a Box need not. One `Discrete` observation
    more or less is the absorbing state of a model, if trajectories only end on it. Unknown actions fit any space.
    """
    found = demonstrations.observation_space
    if not (same_values(found, observation_space) or _differ_by_the_end(demonstrations, observation_space)):
        raise ValueError(f"demonstrations observe {found}, but the environment shows {observation_space}")
    acted = demonstrations.action_space
    if demonstrations.actions is not None and not same_values(acted, action_space):
        raise ValueError(f"demonstrations act in {acted}, but the environment takes {action_space}")


def same_values(one: Any, other: Any) -> bool:
    """Whether two spaces agree in kind, shape and number of values; bounds and dtype of a Box may differ."""
    if isinstance(one, gym.spaces.Box):
        return isinstance(other, gym.spaces.Box) and one.shape == other.shape
    if isinstance(one, gym.spaces.MultiBinary):
        return isinstance(other, gym.spaces.MultiBinary) and one.shape == other.shape
    if isinstance(one, gym.spaces.MultiDiscrete):
        return isinstance(other, gym.spaces.MultiDiscrete) and np.array_equal(one.nvec, other.nvec)
    return isinstance(other, gym.spaces.Discrete) and bool(one.n == other.n)


def _differ_by_the_end(demonstrations: Demonstrations, space: gym.Space[Any]) -> bool:
    found = demonstrations.observation_space
    if not (isinstance(found, gym.spaces.Discrete) and isinstance(space, gym.spaces.Discrete)):
        return False
    if found.n == space.n - 1:  # the model's end is never shown
        return True
    last = demonstrations.offsets[1:] + np.arange(len(demonstrations))
    at_end = demonstrations.observations == space.n
    at_end[last[demonstrations.terminated]] = False
    return bool(found.n == space.n + 1 and not at_end.any())
