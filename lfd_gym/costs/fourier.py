"""Generic costs: random Fourier features of what is seen and done.

An observation and an action together are coded as a vector z, see `lfd_gym.costs.coding`. For m frequencies ω_k the
row of z is

    [a cos⟨ω_1, z⟩, …, a cos⟨ω_m, z⟩, a sin⟨ω_1, z⟩, …, a sin⟨ω_m, z⟩, b],    a = √((1 − b²)/m),

of 2-norm exactly 1, since cos² + sin² = 1 for each frequency. (The form √(2/n) cos(⟨ω, z⟩ + phase), also in use, has
norm 1 on average only.) The inner product of two rows is the kernel

    k(z, z') = b² + (1 − b²)/m · Σ_k cos⟨ω_k, z − z'⟩,

and with ω_k = g_k/σ_k, g_k standard normal, it tends to b² + (1 − b²)·mean_σ exp(−‖z − z'‖²/(2σ²)) as m grows.

**What the ball of weights means.** A cost c_w(z) = ⟨w, row(z)⟩ is a function of the space of k, with norm at most ‖w‖₂.
Over the unit ball the 𝒞-distance of two policies is ‖ρ(π) − ρ(π_E)‖₂, the *maximum mean discrepancy* (MMD) of their
occupancy measures under k. So a bound of the distance bounds the difference in *every* cost of this space: by B times
the bound for a cost of norm B.

The constant b makes the length of episodes count: where an episode has ended the row is zero, so a policy that loses
discounted mass Δ by ending early is at distance b·Δ at least. The price is the factor √(1 − b²) for all else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lfd_gym.arguments import checked
from lfd_gym.costs.coding import PairCoding
from lfd_gym.costs.costs import Costs, hidden_rows
from lfd_gym.costs.sets import Ball, Box, CostClass, Simplex
from lfd_gym.validation import FloatArray, batch_of_numbers, count

#: Samples among which the median distance is taken.
_N_FOR_MEDIAN = 500
#: Sets of weights that can be written down as data.
_KNOWN_SETS = {kind.__name__: kind for kind in (Simplex, Ball, Box)}


class FourierCosts(Costs):
    """Costs of random Fourier features; usually made by one of the three class methods, which choose the scales.

    Parameters
    ----------
    coding
        What turns pairs into vectors; if it leaves out the actions, the costs are those of observations alone.
    frequencies
        (m, d) ω_k over the coded observation and action.
    widths
        The widths σ of the kernel that the frequencies were drawn for, in the units of coded vectors.
    constant
        b, in [0, 1).
    weights
        As for `TableCosts`; the unit ball by default.
    chosen_from
        What scales and widths were chosen from, in words.
    chosen_from_demonstrations
        Whether these were demonstrations; see `Costs`.

    Examples
    --------
    >>> env = gym.make("Acrobot-v1")
    >>> costs = FourierCosts.from_spaces(env.observation_space, env.action_space)
    >>> costs
    FourierCosts(257 costs, Ball(bound=1.0), chosen from the bounds of the spaces)
    >>> rows = costs.rows(np.zeros((5, 6)), np.array([0, 1, 2, 0, 1]))
    >>> bool(np.allclose(np.linalg.norm(rows, axis=1), 1.0))
    True
    """

    row_norm = 1.0

    def __init__(
        self,
        coding: PairCoding,
        frequencies: FloatArray,
        *,
        widths: Sequence[float],
        constant: float,
        weights: CostClass = "ball",
        chosen_from: str,
        chosen_from_demonstrations: bool,
    ) -> None:
        if not 0 <= constant < 1:
            raise ValueError(f"constant must lie in [0, 1), got {constant}")
        self.coding, self.frequencies = coding, frequencies
        self.widths = tuple(widths)
        self.constant = constant
        self.chosen_from = chosen_from
        self.chosen_from_demonstrations = chosen_from_demonstrations
        self.uses_actions = coding.actions is not None
        waves = [f"{wave}{k}" for wave in ("cos", "sin") for k in range(len(frequencies))]
        super().__init__(weights, [*waves, "constant"])

    # -- choosing scales and widths -----------------------------------------------------------------------------------

    @classmethod
    @checked
    def from_samples(
        cls,
        observations: ArrayLike,
        actions: ArrayLike | None,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any] | None,
        *,
        chosen_from_demonstrations: bool,
        chosen_from: str | None = None,
        n_frequencies: int = 128,
        widths: Sequence[float] = (0.5, 1.0, 2.0),
        angles: Sequence[int] = (),
        constant: float = 0.5,
        weights: CostClass = "ball",
        seed: int = 0,
    ) -> FourierCosts:
        """Choose scales and widths from what was seen and done: by demonstrations, or beforehand by random play.

        Entries of observations in a Box are scaled to mean 0 and standard deviation 1, actions by their bounds where
        they have any, and the widths are relative to the median distance of the samples. In many dimensions distances
        are large, and a fixed width would make all samples equally far from each other.

        Parameters
        ----------
        observations, actions
            (N, …) each; None in place of actions: costs of observations alone.
        observation_space, action_space
            Of the environment; `Dict` and `Tuple` stand for their flat arrays.
        chosen_from_demonstrations
            Whether the samples are demonstrations that the costs are to be used with. This has to be said: then
            nothing that these demonstrations say of the costs is a statement about the expert.
        chosen_from
            In words, e.g. ``"random play"``.
        n_frequencies
            m: there are 2m + 1 costs. They are spread evenly over the widths.
        widths
            Relative to the median distance.
        angles
            Which entries of the (flattened) observations are angles in radians.
        constant
            b, the weight of the constant feature. At 0.5 discounted mass lost by ending early counts at least half,
            and all else √(1 − b²) = 0.87.
        weights
            As for `TableCosts`.
        seed
            Of the frequencies: the same seed and samples give the same costs.
        """
        if chosen_from is None:
            chosen_from = "demonstrations" if chosen_from_demonstrations else "samples"
        coding = PairCoding.from_samples(observations, actions, observation_space, action_space, angles)
        rng = np.random.default_rng(count("seed", seed, 0))
        frequencies, absolute = _drawn(coding(observations, actions), n_frequencies, widths, rng)
        return cls(
            coding,
            frequencies,
            widths=absolute,
            constant=constant,
            weights=weights,
            chosen_from=chosen_from,
            chosen_from_demonstrations=chosen_from_demonstrations,
        )

    @classmethod
    @checked
    def from_demonstrations(cls, demonstrations: Any, *, actions: bool = True, **settings: Any) -> FourierCosts:
        """Choose scales and widths from `Demonstrations`; ``settings`` are those of `from_samples`.

        With ``actions=False``, or if the demonstrations have no actions, the costs are those of observations alone.

        Examples
        --------
        >>> import gymnasium as gym, numpy as np, lfd_gym as lfd
        >>> env, rng = gym.make("CartPole-v1"), np.random.default_rng(0)
        >>> demos = lfd.collect(env, lambda seen: (seen[:, 2] > 0) * 1, 5, 50, rng)
        >>> lfd.FourierCosts.from_demonstrations(demos, actions=False)
        FourierCosts(257 costs of observations alone, Ball(bound=1.0), chosen from 5 demonstrations)
        """
        if not hasattr(demonstrations, "acted_on"):  # what demonstrations are is known above these layers only
            raise TypeError(f"demonstrations must be lfd_gym.Demonstrations, got {demonstrations!r:.80}")
        return cls.from_samples(
            demonstrations.acted_on,
            demonstrations.actions if actions else None,
            demonstrations.observation_space,
            demonstrations.action_space,
            chosen_from_demonstrations=True,
            chosen_from=f"{len(demonstrations)} demonstrations",
            **settings,
        )

    @classmethod
    @checked
    def from_spaces(
        cls,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any] | None,
        *,
        n_frequencies: int = 128,
        widths: Sequence[float] = (0.5, 1.0, 2.0),
        angles: Sequence[int] = (),
        constant: float = 0.5,
        weights: CostClass = "ball",
        seed: int = 0,
    ) -> FourierCosts:
        """Choose scales and widths from the bounds of the spaces, which must have some; no data is looked at.

        Entries of a Box are scaled to [−1, 1], and the widths are relative to the median distance of even draws. The
        settings are those of `from_samples`; without an action space the costs are those of observations alone.
        """
        coding = PairCoding.from_spaces(observation_space, action_space, angles)
        rng = np.random.default_rng(count("seed", seed, 0))
        frequencies, absolute = _drawn(coding.uniform(_N_FOR_MEDIAN, rng), n_frequencies, widths, rng)
        return cls(
            coding,
            frequencies,
            widths=absolute,
            constant=constant,
            weights=weights,
            chosen_from="the bounds of the spaces",
            chosen_from_demonstrations=False,
        )

    # -- the costs ----------------------------------------------------------------------------------------------------

    @property
    def n_costs(self) -> int:
        """2m + 1."""
        return 2 * len(self.frequencies) + 1

    def rows(
        self, observations: NDArray[Any], actions: NDArray[Any] | None, ended: NDArray[np.bool_] | None = None
    ) -> FloatArray:
        """Return the features of a batch, (n, 2m + 1): rows of norm 1, and of zeros where the episode is over."""
        self.check_actions(actions)
        seen = batch_of_numbers("observations", observations)
        done = None if actions is None else batch_of_numbers("actions", actions)
        over = np.zeros(len(seen), dtype=bool)
        if ended is not None:
            over = batch_of_numbers("ended", ended, len(seen)).astype(bool)
            if over.ndim != 1:
                raise ValueError(f"ended must have shape ({len(seen)},), got {over.shape}")
        if np.issubdtype(seen.dtype, np.floating) and seen.size:
            over = over | hidden_rows(seen)
        if not over.any():
            return self._features(self.coding(seen, done))
        if done is not None and len(done) != len(seen):
            raise ValueError(f"actions must be as many as observations, {len(seen)}, got {len(done)}")
        rows = np.zeros((len(seen), self.n_costs))
        rows[~over] = self._features(self.coding(seen[~over], None if done is None else done[~over]))
        return rows

    def _features(self, coded: FloatArray) -> FloatArray:
        m = len(self.frequencies)
        phases = coded @ self.frequencies.T
        rows = np.empty((len(coded), 2 * m + 1))
        np.cos(phases, out=rows[:, :m])
        np.sin(phases, out=rows[:, m : 2 * m])
        rows[:, : 2 * m] *= math.sqrt((1 - self.constant**2) / m)
        rows[:, -1] = self.constant
        return rows

    def kernel(
        self,
        observations: NDArray[Any],
        actions: NDArray[Any] | None,
        other_observations: NDArray[Any],
        other_actions: NDArray[Any] | None,
    ) -> FloatArray:
        """Return k of each pair of the first batch with each of the second, (n, n')."""
        return np.asarray(self.rows(observations, actions) @ self.rows(other_observations, other_actions).T)

    def to_data(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the costs as JSON values and arrays."""
        if type(self.weights) not in _KNOWN_SETS.values():
            raise ValueError(
                f"weights must lie in one of {tuple(_KNOWN_SETS)} to be written down, not in {self.weights}"
            )
        data, arrays = self._parts()
        known: Any = self.weights
        return data | {"weights": {"set": type(known).__name__, **asdict(known)}}, arrays

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> FourierCosts:
        """Return the costs that `to_data` described."""
        weights = dict(data["weights"])
        return cls(
            PairCoding.from_data(data, arrays),
            arrays["frequencies"],
            widths=data["widths"],
            constant=data["constant"],
            weights=_KNOWN_SETS[weights.pop("set")](**weights),
            chosen_from=data["chosen_from"],
            chosen_from_demonstrations=data["chosen_from_demonstrations"],
        )

    def _parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all but the set of the weights."""
        data, arrays = self.coding.to_data()
        data |= {
            "widths": list(self.widths),
            "constant": self.constant,
            "chosen_from": self.chosen_from,
            "chosen_from_demonstrations": self.chosen_from_demonstrations,
        }
        return data, arrays | {"frequencies": self.frequencies}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FourierCosts):
            return NotImplemented
        (mine, my_arrays), (theirs, their_arrays) = self._parts(), other._parts()
        if mine != theirs or self.weights != other.weights or my_arrays.keys() != their_arrays.keys():
            return False
        return all(np.array_equal(my_arrays[name], their_arrays[name]) for name in my_arrays)

    def __hash__(self) -> int:
        return hash(self.frequencies.tobytes())

    def __repr__(self) -> str:
        alone = "" if self.uses_actions else " of observations alone"
        return f"FourierCosts({self.n_costs} costs{alone}, {self.weights}, chosen from {self.chosen_from})"


def _drawn(
    samples: FloatArray, n_frequencies: int, widths: Sequence[float], rng: np.random.Generator
) -> tuple[FloatArray, list[float]]:
    """Draw (m, d) frequencies for kernels of widths relative to the median distance of samples."""
    if n_frequencies < 1:
        raise ValueError(f"n_frequencies must be at least 1, got {n_frequencies}")
    if np.ndim(widths) != 1 or len(widths) == 0 or not all(0 < width < math.inf for width in widths):
        raise ValueError(f"widths must be one or more positive numbers, got {tuple(widths)}")
    median = _median_distance(samples, rng)
    absolute = [float(width) * median for width in widths]
    normal = rng.standard_normal((n_frequencies, samples.shape[1]))
    return normal / np.resize(absolute, n_frequencies)[:, None], absolute


def _median_distance(samples: FloatArray, rng: np.random.Generator) -> float:
    """Return the median distance of samples that differ; 1 if none do."""
    from scipy.spatial.distance import pdist  # slow to import, and not needed to read costs from a file

    if len(samples) > _N_FOR_MEDIAN:
        samples = samples[rng.choice(len(samples), _N_FOR_MEDIAN, replace=False)]
    distances = pdist(samples)
    apart = distances[distances > 0]
    return float(np.median(apart)) if apart.size else 1.0
