"""How states are read from observations, as data: so that a policy over states can be kept without its simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.validation import FloatArray, IntArray

#: Observations are often rounded to single precision.
_ROUNDING = 1e-4


@dataclass(frozen=True, eq=False)
class StateReading:
    """Each entry of the state is an entry of the observation, or the angle of two: their sine and their cosine.

    Attributes
    ----------
    entries
        (d,) which entry of the flattened observation it is; of an angle, its sine.
    cosines
        (d,) which entry is the cosine, −1 where there is no angle.
    """

    entries: IntArray
    cosines: IntArray

    def __call__(self, observations: ArrayLike) -> FloatArray:
        """Return the (n, d) states that were observed."""
        batch = np.asarray(observations, dtype=np.float64)
        flat = batch.reshape(len(batch), -1)
        states = flat[:, self.entries]
        angles = self.cosines >= 0
        states[:, angles] = np.arctan2(states[:, angles], flat[:, self.cosines[angles]])
        return states

    @classmethod
    def found(cls, simulator: GenerativeModel, states: FloatArray) -> StateReading | None:
        """Find out by looking at what the simulator shows of ``states``; None if it shows something else."""
        observed = np.asarray(simulator.observe(states), dtype=np.float64).reshape(len(states), -1)
        known = np.asarray(simulator.states_of(simulator.observe(states)), dtype=np.float64)  # type: ignore[attr-defined]
        entries, cosines = [], []
        for column in known.T:
            found = _source(column, observed)
            if found is None:
                return None
            entries.append(found[0])
            cosines.append(found[1])
        return cls(np.array(entries, dtype=np.int64), np.array(cosines, dtype=np.int64))

    def check(self, n_entries: int) -> None:
        """Refuse a reading that asks for entries that observations do not have."""
        asked = np.concatenate([self.entries, self.cosines])
        if self.entries.shape != self.cosines.shape or asked.min() < -1 or asked.max() >= n_entries:
            raise ValueError(f"states must be read from the {n_entries} entries of observations, got {self}")

    @property
    def n_angles(self) -> int:
        """How many entries of the state are read as angles."""
        return int((self.cosines >= 0).sum())

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the reading as arrays."""
        return {"entries": self.entries, "cosines": self.cosines}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> StateReading:
        """Return the reading that `to_arrays` described."""
        return cls(arrays["entries"].astype(np.int64), arrays["cosines"].astype(np.int64))


def _source(column: FloatArray, observed: FloatArray) -> tuple[int, int] | None:
    """Return the entries of the sine and the cosine of ``column``, or the entry that it is.

    The angle first: a small one is also much like its sine.
    """
    sine = np.isclose(observed, np.sin(column)[:, None], rtol=0, atol=_ROUNDING).all(axis=0)
    cosine = np.isclose(observed, np.cos(column)[:, None], rtol=0, atol=_ROUNDING).all(axis=0)
    if sine.any() and cosine.any():
        return int(sine.argmax()), int(cosine.argmax())
    close = np.isclose(observed, column[:, None], rtol=_ROUNDING, atol=_ROUNDING).all(axis=0)
    return (int(close.argmax()), -1) if close.any() else None
