"""Elements of any space as vectors of comparable numbers, so that distances between them mean something.

`Discrete` and each part of `MultiDiscrete` become one-hot, `MultiBinary` 0 and 1, entries of a `Box` numbers that are
centred and divided by their scale, angles their cosine and sine. What is further than `LIMIT` from the centre is cut
there: an observation that runs away stays finite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lfd_gym.spaces import array_space, space_from_data, space_to_data
from lfd_gym.validation import FloatArray

#: Coded numbers lie in [−LIMIT, LIMIT].
LIMIT = 10.0
#: Bounds as large as the largest number of single precision, which environments write for "none".
_NO_BOUND = 1e30
#: An entry that moves less than this, relative to its size, is constant up to the rounding of single precision.
_CONSTANT = 1e-6


class Coding:
    """z = (c(x) − centre)/scale, where c(x) is the element x as a vector.

    Parameters
    ----------
    space
        A `Box`, `Discrete`, `MultiDiscrete` or `MultiBinary` space.
    centre, scale
        (d,) in c(x), where the cosines of angles stand in their places and their sines come last.
    angles
        Which entries of a `Box`, flattened, are angles in radians.

    Examples
    --------
    >>> Coding.from_bounds("action", gym.spaces.Box(0.0, 4.0, (2,)))("actions", [[0.0, 3.0]])
    array([[-1. ,  0.5]])
    """

    def __init__(
        self, space: gym.Space[Any], centre: FloatArray, scale: FloatArray, angles: Sequence[int] = ()
    ) -> None:
        self.space, self.centre, self.scale, self.angles = space, centre, scale, tuple(angles)

    @classmethod
    def from_bounds(cls, name: str, space: gym.Space[Any], angles: Sequence[int] = ()) -> Coding:
        """Scale the entries of a Box to [−1, 1] by its bounds, and refuse those that have none."""
        centre, scale = _by_bounds(name, space, angles)
        unbounded = np.flatnonzero(np.isnan(scale))
        if unbounded.size:
            raise ValueError(
                f"{name}_space must be bounded to take scales from it, but has no bounds at {unbounded.tolist()}: give "
                "samples, such as those of random play, to FourierCosts.from_samples"
            )
        return cls(space, centre, scale, angles)

    @classmethod
    def from_samples(
        cls, name: str, space: gym.Space[Any], batch: ArrayLike, angles: Sequence[int] = (), prefer_bounds: bool = False
    ) -> Coding:
        """Scale the entries of a Box to mean 0 and standard deviation 1; with ``prefer_bounds`` only unbounded ones.

        Entries that never move in the batch are scaled by their bounds; without bounds they are centred only. The
        cosine and the sine of an angle have one scale, so that the circle stays round.
        """
        centre, scale = _by_bounds(name, space, angles)
        vectors = _vectors(f"{name}s", space, batch, angles)
        if not len(vectors):
            raise ValueError(f"{name}s must hold at least one sample to take scales from")
        if not np.isfinite(vectors).all():
            raise ValueError(f"{name}s must be finite to take scales from them")
        if not isinstance(space, gym.spaces.Box):
            return cls(space, centre, scale)
        spread, largest = vectors.std(axis=0), np.abs(vectors).max(axis=0)
        first, n_angles = np.array(angles, dtype=np.int64), len(angles)
        if n_angles:
            spread[first] = spread[-n_angles:] = np.hypot(spread[first], spread[-n_angles:]) / np.sqrt(2)
        bounded = ~np.isnan(scale)
        by_samples = ~bounded if prefer_bounds else np.full(scale.shape, True)
        moves = by_samples & (spread > _CONSTANT * largest)
        scale = np.where(moves, spread, np.where(bounded, scale, 1.0))
        return cls(space, np.where(by_samples, vectors.mean(axis=0), centre), scale, angles)

    def __call__(self, name: str, batch: ArrayLike) -> FloatArray:
        """Return a batch of elements, called ``name`` in errors, as an (n, d) array."""
        vectors = _vectors(name, self.space, batch, self.angles)
        with np.errstate(over="ignore"):  # far out is cut
            coded = np.clip((vectors - self.centre) / self.scale, -LIMIT, LIMIT)
        if np.isnan(coded).any():
            row = int(np.argmax(np.isnan(coded).any(axis=1)))
            raise ValueError(f"{name} must be numbers, got {np.asarray(batch)[row]} at index {row}")
        return coded

    def uniform(self, n_samples: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw elements evenly from a bounded space; angles from the whole circle."""
        if isinstance(self.space, gym.spaces.Box):
            low, high = _flat_bounds(self.space)
            around = np.array(self.angles, dtype=np.int64)
            low[around], high[around] = -np.pi, np.pi
            return rng.uniform(low, high, (n_samples, low.size))
        return rng.integers(_parts(self.space), size=(n_samples, len(_parts(self.space))))


class PairCoding:
    """Observations and actions side by side; without a coding of actions, observations alone."""

    def __init__(self, observations: Coding, actions: Coding | None) -> None:
        self.observations, self.actions = observations, actions

    @classmethod
    def from_samples(
        cls,
        observations: ArrayLike,
        actions: ArrayLike | None,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any] | None,
        angles: Sequence[int] = (),
    ) -> PairCoding:
        """Scale observations by the samples, actions by their bounds where they have any."""
        seen_space = array_space("observation_space", observation_space)
        seen = Coding.from_samples("observation", seen_space, observations, angles)
        if actions is None:
            return cls(seen, None)
        if action_space is None:
            raise ValueError("action_space must be given where there are actions")
        done_space = array_space("action_space", action_space)
        return cls(seen, Coding.from_samples("action", done_space, actions, prefer_bounds=True))

    @classmethod
    def from_spaces(
        cls, observation_space: gym.Space[Any], action_space: gym.Space[Any] | None, angles: Sequence[int] = ()
    ) -> PairCoding:
        """Scale both by their bounds."""
        seen = Coding.from_bounds("observation", array_space("observation_space", observation_space), angles)
        if action_space is None:
            return cls(seen, None)
        return cls(seen, Coding.from_bounds("action", array_space("action_space", action_space)))

    def __call__(self, observations: ArrayLike, actions: ArrayLike | None) -> FloatArray:
        """Return a batch of pairs as an (n, d) array."""
        seen = self.observations("observations", observations)
        if self.actions is None:
            return seen
        done = self.actions("actions", [] if actions is None else actions)
        if len(seen) != len(done):
            raise ValueError(f"observations and actions must be equally many, got {len(seen)} and {len(done)}")
        return np.hstack([seen, done])

    def uniform(self, n_samples: int, rng: np.random.Generator) -> FloatArray:
        """Draw coded pairs evenly from bounded spaces."""
        seen = self.observations.uniform(n_samples, rng)
        return self(seen, None if self.actions is None else self.actions.uniform(n_samples, rng))

    def to_data(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the coding as JSON values and arrays."""
        data: dict[str, Any] = {"angles": list(self.observations.angles)}
        arrays: dict[str, NDArray[Any]] = {}
        for name, coding in (("observation", self.observations), ("action", self.actions)):
            if coding is not None:
                data[f"{name}_space"], bounds = space_to_data(name, coding.space)
                arrays |= bounds | {f"{name}_centre": coding.centre, f"{name}_scale": coding.scale}
        return data, arrays

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> PairCoding:
        """Return the coding that `to_data` described."""
        codings: dict[str, Coding] = {}
        for name, angles in (("observation", data["angles"]), ("action", ())):
            if f"{name}_space" in data:
                space = space_from_data(name, data[f"{name}_space"], arrays)
                codings[name] = Coding(space, arrays[f"{name}_centre"], arrays[f"{name}_scale"], angles)
        return cls(codings["observation"], codings.get("action"))


def _vectors(name: str, space: gym.Space[Any], batch: ArrayLike, angles: Sequence[int]) -> FloatArray:
    """c(x) of a batch, (n, d)."""
    array = np.asarray(batch)
    shape: tuple[int, ...] = space.shape or ()
    size = int(np.prod(shape))
    if array.ndim == 0 or array.size != len(array) * size:
        wanted = ", ".join(["n", *map(str, shape)]) + ("," if not shape else "")
        raise ValueError(f"{name} must have shape ({wanted}), got {array.shape}")
    flat = array.reshape(len(array), size)
    if not isinstance(space, gym.spaces.Box):
        return _indicators(name, space, flat)
    vectors = flat.astype(np.float64)
    if not angles:
        return vectors
    turned = vectors[:, angles]
    with np.errstate(invalid="ignore"):  # an infinite angle becomes NaN, which is refused
        vectors[:, angles] = np.cos(turned)
        return np.hstack([vectors, np.sin(turned)])


def _indicators(name: str, space: gym.Space[Any], flat: NDArray[Any]) -> FloatArray:
    """One-hot vectors of the parts side by side; binary parts as they are."""
    counts = _parts(space)
    wrong = ~((flat >= 0) & (flat < counts) & (flat == np.floor(flat)))  # NaN is wrong, too
    if wrong.any():
        raise ValueError(f"{name} must be elements of {space}, got {flat[wrong.any(axis=1)][0]}")
    if isinstance(space, gym.spaces.MultiBinary):
        return flat.astype(np.float64)
    vectors = np.zeros((len(flat), int(counts.sum())))
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    np.put_along_axis(vectors, flat.astype(np.int64) + first, 1.0, axis=1)
    return vectors


def _parts(space: Any) -> NDArray[np.int64]:
    """Return how many values each part of a space of integers takes."""
    if isinstance(space, gym.spaces.Discrete):
        return np.array([space.n], dtype=np.int64)
    if isinstance(space, gym.spaces.MultiDiscrete):
        return np.asarray(space.nvec, dtype=np.int64).ravel()
    return np.full(int(np.prod(space.shape)), 2, dtype=np.int64)


def _by_bounds(name: str, space: gym.Space[Any], angles: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Return the centre and the scale that map the bounds to [−1, 1]; both are NaN where there are no bounds."""
    if not isinstance(space, gym.spaces.Box):
        if angles:
            raise ValueError(f"angles must be empty for {name}s in {space}: only entries of a Box can be angles")
        size = len(_parts(space)) if isinstance(space, gym.spaces.MultiBinary) else int(_parts(space).sum())
        return np.zeros(size), np.ones(size)
    low, high = _flat_bounds(space)
    if len(set(angles)) < len(angles) or not all(0 <= index < low.size for index in angles):
        raise ValueError(f"angles must be different indices below {low.size}, got {tuple(angles)}")
    bounded = (np.abs(low) < _NO_BOUND) & (np.abs(high) < _NO_BOUND)
    low, high = np.where(bounded, low, np.nan), np.where(bounded, high, np.nan)
    centre, scale = (low + high) / 2, (high - low) / 2
    scale[scale == 0] = 1.0
    around = np.array(angles, dtype=np.int64)
    centre[around], scale[around] = 0.0, 1.0
    return np.append(centre, np.zeros(len(angles))), np.append(scale, np.ones(len(angles)))


def _flat_bounds(space: gym.spaces.Box) -> tuple[FloatArray, FloatArray]:
    return space.low.astype(np.float64).ravel(), space.high.astype(np.float64).ravel()
