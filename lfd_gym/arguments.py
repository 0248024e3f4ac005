"""Arguments of what is public, looked at on the way in: what the annotations say is checked, and refused by name.

An annotation says what an argument may be, for readers and for mypy; `checked` makes it hold for callers whom no type
checker watches. It looks at kinds, not at shapes, ranges or NaN, which the functions themselves know. What an
annotation leaves open (``Any``, protocols that cannot be asked) is not looked at. One thing is changed: numbers of
NumPy's come in as Python's, which never wrap around (−x of an unsigned x would be a large positive number).
"""

from __future__ import annotations

import inspect
import os
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache, wraps
from itertools import zip_longest
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

_F = TypeVar("_F", bound=Callable[..., Any])
#: A rule returns what should have been there, in words; empty if the value fits.
Rule = Callable[[Any], str]

_ARRAY = "an array of numbers"
_INTEGERS = "integers"
#: What protocols ask for: they cannot say it themselves, since a name of theirs would be asked for, too.
_IN_WORDS = {"Stated": "an object with `probabilities`", "Predictor": "one with `predict`, as of Stable-Baselines3"}


class ArgumentError(TypeError, ValueError):
    """What is not what the annotation says: of another kind, which is a wrong value too."""


class _AnyArray:
    """Stands for ``ArrayLike`` in annotations: the real one is a union that melts into the union around it."""


def checked(function: _F) -> _F:
    """Refuse arguments of ``function`` that are not what its annotations say, by their names."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        rules = _rules(function)
        passed = [
            _taken(name, value, rules) if name in rules else value
            for name, value in zip_longest(names[: len(args)], args)
        ]
        named = {name: _taken(name, value, rules) if name in rules else value for name, value in kwargs.items()}
        return function(*passed, **named)

    return cast(_F, call)


def check_fields(instance: Any) -> None:
    """Refuse fields of a dataclass that are not what their annotations say, by their names."""
    owner: Any = type(instance)
    rules = _rules(owner)
    for part in fields(instance):
        value = getattr(instance, part.name)
        if part.name in rules and value is not part.default:
            taken = _taken(part.name, value, rules)
            if taken is not value:
                object.__setattr__(instance, part.name, taken)


def _taken(name: str, value: Any, rules: Mapping[str, Rule]) -> Any:
    """Return ``value``, a number of NumPy's as one of Python's, or refuse what its rule does not allow."""
    wanted = rules[name](value)
    if not wanted:
        if rules[name] is _array and hasattr(value, "__array__") and not isinstance(value, (np.ndarray, np.generic)):
            return np.asarray(value)  # a policy with a table, say: what follows looks at shapes
        return value.item() if isinstance(value, np.generic) else value
    kinds = {_ARRAY: "biuf", _INTEGERS: "iu"}.get(wanted)
    found = f"got {_shown(value)}" if kinds is None else _why_no_array(value, kinds)
    raise ArgumentError(f"{name} must be {wanted}, {found}")


@cache
def _rules(owner: Any) -> dict[str, Rule]:
    """Return the rules of the parameters of a function, or of the fields of a class, inherited ones too."""
    found = {}
    for part in reversed(owner.__mro__) if isinstance(owner, type) else (owner,):
        space = {**vars(sys.modules[part.__module__]), "ArrayLike": _AnyArray}
        for name, annotation in inspect.get_annotations(part).items():
            rule = _rule(_resolved(annotation, space), space) if name != "return" else None
            if rule is not None:
                found[name] = rule
    return found


def _resolved(annotation: Any, space: dict[str, Any]) -> Any:
    """Return what a text in our own source stands for; Any if it is known to type checkers alone."""
    if isinstance(annotation, str):
        try:
            return eval(annotation, space)
        except (NameError, AttributeError, TypeError):
            return Any
    return annotation


def _rule(kind: Any, space: dict[str, Any]) -> Rule | None:
    """Return the rule of an annotation, None if it leaves everything open."""
    kind = _resolved(kind.__forward_arg__, space) if hasattr(kind, "__forward_arg__") else kind
    if kind is _AnyArray or kind == ArrayLike:
        return _array
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _any_of([_rule(part, space) for part in parts])
    if origin is Literal:
        return _literal(parts)
    if origin is np.ndarray or origin is NDArray:  # from NumPy 2.5 on it is an alias of its own
        return _integers if "int64" in repr(parts) else _array
    if origin is tuple and parts and parts[-1] is not ...:
        return _row([_rule(part, space) for part in parts])
    if origin in (Sequence, list, tuple, Iterable):
        return _sequence(origin, [_rule(part, space) for part in parts if part is not ...])
    if origin is Mapping or origin is dict:
        return _mapping([_rule(part, space) for part in parts])
    if origin is Callable:
        return lambda value: "" if callable(value) else "a function"
    return _plain(origin or kind)


def _plain(kind: Any) -> Rule | None:
    """Return the rule of a class."""
    known: dict[Any, Rule] = {
        bool: _instance((bool, np.bool_), "True or False"),
        int: _integer,
        float: _number,
        str: _instance(str, "a text"),
        os.PathLike: _path,
        types.NoneType: lambda value: "" if value is None else "None",
        None: lambda value: "" if value is None else "None",
    }
    if kind in known:
        return known[kind]
    if not isinstance(kind, type) or kind in (object, Any):
        return None
    if issubclass(kind, os.PathLike):
        return _path
    if issubclass(kind, sp.sparray):
        return lambda value: "" if sp.issparse(value) else "a sparse array"
    if getattr(kind, "_is_protocol", False) and not getattr(kind, "_is_runtime_protocol", False):
        return None
    if issubclass(kind, tuple):  # any sequence of as many items will do for a named tuple
        return _instance((tuple, list), f"{_article(kind.__name__)} or a tuple")
    if kind.__name__ in _IN_WORDS:
        return _instance(kind, _IN_WORDS[kind.__name__])
    module = "numpy.random." if kind is np.random.Generator else ""
    #: A class may say in words how one is made.
    return _instance(kind, getattr(kind, "how_made", _article(module + kind.__name__)))


def _article(word: str) -> str:
    return f"an {word}" if word[0] in "AEIOU" else f"a {word}"


def _instance(kind: Any, words: str) -> Rule:
    return lambda value: "" if isinstance(value, kind) else words


def _any_of(rules: Sequence[Rule | None]) -> Rule | None:
    """Fit one of several; what is said of an array comes last, so that it is said alone only where nothing else is."""
    if any(rule is None for rule in rules):
        return None
    known = cast(Sequence[Rule], rules)

    def rule(value: Any) -> str:
        wanted = []
        for one in known:
            words = one(value)
            if not words:
                return ""
            wanted.append(words)
        if _ARRAY in wanted and isinstance(value, (np.ndarray, list, tuple)):
            return _ARRAY
        return " or ".join(dict.fromkeys(wanted))

    return rule


def _literal(options: tuple[Any, ...]) -> Rule:
    words = f"one of {', '.join(map(repr, options))}"
    return lambda value: "" if isinstance(value, str) and value in options else words


def _sequence(origin: Any, parts: Sequence[Rule | None]) -> Rule:
    """Fit a sequence whose items all fit."""
    items = parts[0] if parts else None
    kinds = (Sequence, np.ndarray) if origin is not Iterable else (Iterable,)

    def rule(value: Any) -> str:
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, kinds) or np.ndim(_shallow(value)) == 0:
            return "a sequence"
        if items is None or not isinstance(value, (Sequence, np.ndarray)):
            return ""
        shown = value if isinstance(value, (list, tuple)) else value[:1]  # the others are of the same kind
        wanted = next((words for words in map(items, shown) if words), "")
        return f"a sequence, each of which is {wanted}" if wanted else ""

    return rule


def _mapping(parts: Sequence[Rule | None]) -> Rule:
    """Fit a mapping whose keys and values all fit."""
    keys, values = parts or (None, None)

    def rule(value: Any) -> str:
        if not isinstance(value, Mapping):
            return "a mapping"
        for one, items, words in ((keys, value.keys(), "key"), (values, value.values(), "value")):
            wanted = next((found for found in map(one, items) if found), "") if one else ""
            if wanted:
                return f"a mapping, each {words} of which is {wanted}"
        return ""

    return rule


def _row(parts: Sequence[Rule | None]) -> Rule:
    """Fit a sequence of so many items, each of its own kind."""
    any_number = _sequence(Sequence, [])

    def rule(value: Any) -> str:
        if any_number(value) or len(value) != len(parts):
            return f"a sequence of {len(parts)}"
        wanted = [
            f"item {i} {one(item)}" for i, (one, item) in enumerate(zip(parts, value, strict=True)) if one and one(item)
        ]
        return f"a sequence of {len(parts)}, {wanted[0]}" if wanted else ""

    return rule


def _shallow(value: Any) -> Any:
    """Stand for an array by itself, and for another sequence by something that has an axis."""
    return value if isinstance(value, np.ndarray) else (0,)


def _integer(value: Any) -> str:
    return "an integer" if isinstance(value, bool) or not isinstance(value, Integral) else ""


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, Real):
        return "a number"
    try:
        float(value)
    except OverflowError:
        return "a number that fits a float"
    return ""


def _path(value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)):
        return "a path"
    return "a path without null bytes" if "\0" in str(value) else ""


def _array(value: Any) -> str:
    return _ARRAY if _why_no_array(value) else ""


def _integers(value: Any) -> str:
    return _INTEGERS if _array(value) or (np.size(value) > 0 and np.asarray(value).dtype.kind not in "iu") else ""


def _why_no_array(value: Any, kinds: str = "biuf") -> str:
    """Say what keeps ``value`` from being an array of numbers of these kinds; empty if nothing does."""
    if sp.issparse(value):
        return f"got a sparse one, {value!r:.80}"
    if not isinstance(value, np.ndarray):
        arrays = np.isscalar(value) or isinstance(value, Iterable) or hasattr(value, "__array__")
        if isinstance(value, (str, bytes, Mapping)) or not arrays:
            return f"got {_shown(value)}"
        try:
            value = np.asarray(value)
        except (ValueError, TypeError, OverflowError, AttributeError, RuntimeError) as error:
            return f"got {_shown(value)} ({error})"
    return f"got dtype {value.dtype}" if value.dtype.kind not in kinds else ""


def _shown(value: Any) -> str:
    """Return a short text for any object, also one that cannot say what it is."""
    try:
        return f"{value!r:.80}"
    except Exception:
        return f"a {type(value).__name__}"
