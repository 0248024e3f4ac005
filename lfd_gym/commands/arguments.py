"""What several commands are given: environments by their name and arguments, and files that tell these."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import tyro
from gymnasium.envs.registration import load_env_creator

from lfd_gym.commands.graphics import cannot_be_drawn, is_of_graphics
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.environments import time_limit
from lfd_gym.envs.named import check_named_environment, import_modules
from lfd_gym.files import read_array
from lfd_gym.task import Task

#: The flag ``--import``, which is no name in Python.
Imports = Annotated[tuple[str, ...], tyro.conf.arg(name="import")]

MINARI = "minari:"
#: What is taken as a text without quotes: a word with a letter in it, such as 4x4 or maps/small.txt.
_WORD = re.compile(r"[\w./:~@+-]*[A-Za-z][\w./:~@+-]*")
#: Words that are meant as something else; the text "false" counts as true in Python.
_MEANT = {"true": "True", "false": "False", "none": "None", "null": "None"}


def parse_kwargs(words: Sequence[str], flag: str = "env_kwargs") -> dict[str, Any]:
    """Read NAME=VALUE words: a value is JSON, or a literal of Python, or else plainly a word."""
    kwargs: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"{flag} must be NAME=VALUE, got {word!r}")
        if name in kwargs:
            raise ValueError(f"{flag} must give {name} once, got it twice")
        kwargs[name] = _value(text, f"{flag} {name}")
    return kwargs


def _value(text: str, what: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    if text.lower() in _MEANT:
        raise ValueError(f"{what} must be {_MEANT[text.lower()]}, got {text}")
    if not _WORD.fullmatch(text):
        raise ValueError(
            f"{what} must be a number, True, False, None, a list, a dict or a word, got {text!r}; a text that is no "
            f"word needs quotes: '{what.rpartition(' ')[2]}=\"…\"'"
        )
    return text


def as_words(kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the words that `parse_kwargs` reads as ``kwargs``."""
    return tuple(f"{name}={_as_text(value)}" for name, value in kwargs.items())


def _as_text(value: Any) -> str:
    try:
        return json.dumps(value)
    except TypeError:
        return repr(value)  # a literal that JSON does not have, such as a set


def described(env_id: str, kwargs: Mapping[str, Any]) -> str:
    """Return an environment and its arguments, as Python writes these."""
    return env_id + (f" with {_said(kwargs)}" if kwargs else "")


def _said(kwargs: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in kwargs.items())


def choose_environment(
    env_id: str | None,
    words: Sequence[str],
    *,
    recorded: tuple[Any, Any],
    where: str,
    imports: Sequence[str],
) -> tuple[str | None, dict[str, Any]]:
    """Return the environment that is meant, None if nothing says it, and its arguments.

    Parameters
    ----------
    env_id, words
        What the user typed. Without an id it is the recorded environment, whose arguments the words override.
    recorded
        What a file says: an id, and arguments as a mapping or as words.
    where
        That file, for messages.
    imports
        Modules that the user named; what the file names is not imported otherwise.
    """
    given = parse_kwargs(words)
    if env_id is not None:
        if given:
            print(f"environment: {described(env_id, given)}")
        return env_id, given
    name, kwargs = recorded
    if not isinstance(kwargs, Mapping):
        if not isinstance(kwargs, Sequence) or not all(isinstance(word, str) for word in kwargs):
            raise ValueError(f"{where} must have env_kwargs as NAME=VALUE words, got {kwargs!r}")
        kwargs = parse_kwargs(kwargs, f"{where}: env_kwargs")
    if name is None:
        return None, given
    check_named_environment(where, name, kwargs, imports)
    merged = {**kwargs, **given}
    if given:
        print(f"environment: {described(name, merged)}")
    return name, merged


def make_env(env_id: str, kwargs: Mapping[str, Any], **settings: Any) -> gym.Env[Any, Any]:
    """Make an environment, of a module in the current folder too; what is wrong with its arguments is said in a line.

    ``settings`` are those of `gymnasium.make`, such as ``render_mode``.
    """
    module = env_id.rpartition(":")[0]
    import_modules([module] if module else [])
    taken = _parameters(env_id)
    for name, value in kwargs.items():
        default = taken[name].default if name in taken else None
        if isinstance(default, bool) and isinstance(value, str):
            raise ValueError(f"env_kwargs {name} of {env_id} must be True or False, got the text {value!r}")
    try:
        return gym.make(env_id, **settings, **kwargs)
    except (ValueError, OSError, ImportError, gym.error.Error):
        raise  # they say what is wrong
    except Exception as error:  # an environment may raise anything
        if is_of_graphics(error):
            raise cannot_be_drawn(env_id, error) from error
        unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if unknown and unknown[1] == "render_mode":
            raise ValueError(f"{env_id} cannot be drawn: it takes no render_mode") from error
        if not kwargs:
            raise
        if unknown and unknown[1] in kwargs:
            known = ", ".join(name for name in taken if name != "kwargs") or "no arguments"
            raise ValueError(f"env_kwargs: {env_id} has no argument {unknown[1]!r}; it takes {known}") from error
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ValueError(f"env_kwargs: {env_id} cannot be made with {_said(kwargs)}: {reason}") from error


def _parameters(env_id: str) -> dict[str, inspect.Parameter]:
    """Return what an environment takes, as far as its class or function says."""
    try:
        entry_point: Any = gym.spec(env_id).entry_point
        maker = load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
        return dict(inspect.signature(maker).parameters)
    except Exception:  # a module that is imported here may raise anything
        return {}  # `gymnasium.make` says what is wrong, if anything is


def read_demonstrations(
    place: str, env_id: str | None = None, kwargs: Mapping[str, Any] | None = None
) -> Demonstrations:
    """Read demonstrations from a place; the environment is needed for folders of `imitation` only."""
    if place.startswith(MINARI):
        return Demonstrations.from_minari(place.removeprefix(MINARI))
    if not Path(place).is_dir():
        return Demonstrations.load(place)
    if (Path(place) / "policy.npz").is_file():
        raise ValueError(
            f"{place} is the folder of a training run, which holds a policy and no demonstrations; lfd-gym evaluate "
            f"{place} shows it"
        )
    if env_id is None:
        raise ValueError(f"{place} is a folder as imitation saves it, which does not say its spaces: give --env")
    env = make_env(env_id, kwargs or {})
    # imitation calls the time limit an end, too: what ran to it was cut.
    return Demonstrations.from_imitation(place, env.observation_space, env.action_space, time_limit(env))


def make_task(
    env_id: str,
    kwargs: Mapping[str, Any],
    discount: float,
    costs: Path | None,
    demonstrations: Demonstrations | None = None,
    *,
    horizon: int | None = None,
    allow_mismatch: bool = False,
) -> Task:
    """Return the task on an environment; of a tabular one, the expert is optimal for its true cost."""
    env = make_env(env_id, kwargs)
    table = None if costs is None else read_array(costs, "is not an array of costs, as numpy.save writes them")
    task = Task(env, demonstrations, discount=discount, horizon=horizon, costs=table, allow_mismatch=allow_mismatch)
    if (
        task.access != "model" or task.true_cost is None or task.discount == 1
    ):  # nothing can be planned without a discount
        return task
    return replace(task, expert=task.model.optimal_policy(task.true_cost.table[:, 0]))
