"""Statistics over repeated runs: interquartile mean, bootstrap intervals, performance profiles, improvement.

Scores are (runs, tasks) matrices, higher is better (negate costs, or use the normalised score). The definitions are
those of Agarwal et al., "Deep reinforcement learning at the edge of the statistical precipice" (2021):

- IQM: the mean of the middle half of all runs × tasks scores;
- bootstrap: runs are resampled within each task, so that a task never disappears from a resample. With a handful of
  runs it is far too narrow (of 2 or 3 runs, nominal 95 % intervals cover 74 % and 86 %): then Student's interval of the
  runs is taken, which is wide because so little is known;
- performance profile: τ ↦ the share of runs × tasks with score > τ;
- probability of improvement: P(X > Y) + ½ P(X = Y) for a run of each, averaged over tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from lfd_gym.arguments import checked
from lfd_gym.validation import FloatArray, finite_array

#: With fewer runs than this, resampling them says too little.
_FEWEST_TO_RESAMPLE = 10
#: The squares of larger ones cannot be added up.
_LARGEST_SCORE = 1e100


class Statistic(Protocol):
    """A statistic of pooled scores along an axis, as `numpy.mean`, `numpy.median` and `interquartile_mean` are."""

    def __call__(self, scores: Any, /, *, axis: Any) -> Any:
        """Reduce ``axis``; all axes if it is None."""
        ...


@dataclass(frozen=True)
class Interval:
    """A point estimate with a confidence interval.

    Attributes
    ----------
    value, low, high
        The estimate, and the ends of the interval; they are infinite if there is but one run.
    confidence
        Nominal coverage.
    n_runs
        How many runs it rests on.
    """

    value: float
    low: float
    high: float
    confidence: float
    n_runs: int

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}] ({self.n_runs} runs)"


@checked
def interquartile_mean(scores: ArrayLike, *, axis: int | None = None) -> Any:
    """Return the mean of the scores left after dropping ⌊n/4⌋ of the n scores at either end.

    All scores are pooled unless ``axis`` says which axis to reduce.

    Examples
    --------
    >>> interquartile_mean([0.0, 1.0, 2.0, 100.0])
    1.5
    """
    values = _any_scores(scores)
    if axis is not None and not -values.ndim <= axis < values.ndim:
        raise ValueError(f"axis must be one of the {values.ndim} of scores, got {axis}")
    values = values.ravel() if axis is None else np.moveaxis(values, axis, -1)
    values = np.sort(values, axis=-1)
    cut = values.shape[-1] // 4
    middle = values[..., cut : values.shape[-1] - cut].mean(axis=-1)
    return float(middle) if axis is None else middle


@checked
def run_interval(
    scores: ArrayLike,
    rng: np.random.Generator,
    *,
    statistic: Statistic = interquartile_mean,
    confidence: float = 0.95,
    n_resamples: int = 2000,
) -> Interval:
    """Return a statistic of a (runs, tasks) matrix with a confidence interval over runs.

    From ten runs on it is the bias-corrected and accelerated bootstrap interval; with fewer, Student's, of the
    statistic of each run; with one run nothing is known, and the interval is the whole line.

    Parameters
    ----------
    scores
        (runs, tasks), or (runs,) for one task.
    rng
        Draws the resamples: the same generator state gives the same interval.
    statistic
        What to estimate; it sees the scores of all tasks pooled.
    confidence
        Coverage, strictly between 0 and 1.
    n_resamples
        Number of bootstrap resamples.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.random.default_rng(1).normal(size=(20, 3))
    >>> interval = run_interval(scores, np.random.default_rng(0))
    >>> interval.low < interval.value < interval.high
    True
    """
    from scipy import stats  # slow to import, and needed here only

    matrix = _score_matrix("scores", scores)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence}")
    if np.abs(matrix).max() > _LARGEST_SCORE:
        raise ValueError(f"scores must be at most {_LARGEST_SCORE:g}, got up to {np.abs(matrix).max():g}")
    n_runs = len(matrix)
    value = float(statistic(matrix, axis=None))
    if n_runs == 1:
        return Interval(value, -np.inf, np.inf, confidence, n_runs)
    if n_runs < _FEWEST_TO_RESAMPLE:
        spread = np.asarray(statistic(matrix, axis=1)).std(ddof=1)
        half = float(stdtrit(n_runs - 1, (1 + confidence) / 2) * spread / np.sqrt(n_runs))
        return Interval(value, value - half, value + half, confidence, n_runs)
    if (matrix == matrix[0]).all():  # every resample is the sample itself
        return Interval(value, value, value, confidence, n_runs)

    def of_resamples(*tasks: FloatArray, axis: int) -> Any:
        return statistic(np.concatenate(tasks, axis=axis), axis=axis)

    result: Any = stats.bootstrap(
        tuple(matrix.T),
        of_resamples,
        n_resamples=n_resamples,
        vectorized=True,
        confidence_level=confidence,
        method="BCa",
        random_state=rng,
    )
    bounds = result.confidence_interval
    return Interval(value, float(bounds.low), float(bounds.high), confidence, n_runs)


@checked
def performance_profile(scores: ArrayLike, thresholds: ArrayLike) -> FloatArray:
    """Return the share of runs × tasks with a score above each threshold.

    Examples
    --------
    >>> performance_profile([[0.0, 1.0], [2.0, 1.0]], [-1.0, 0.0, 1.0, 2.0])
    array([1.  , 0.75, 0.25, 0.  ])
    """
    values = np.sort(_any_scores(scores), axis=None)
    levels = finite_array("thresholds", thresholds, (None,))
    return np.asarray(1 - np.searchsorted(values, levels, side="right") / values.size)


@checked
def probability_of_improvement(scores: ArrayLike, others: ArrayLike) -> float:
    """Return the probability that a run of ``scores`` beats a run of ``others`` on a task drawn uniformly.

    Both are (runs, tasks) matrices over the same tasks; the numbers of runs may differ. Ties count one half.

    Examples
    --------
    >>> probability_of_improvement([[1.0], [3.0]], [[2.0], [3.0]])
    0.375
    """
    first, second = _score_matrix("scores", scores), _score_matrix("others", others)
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"others must have {first.shape[1]} tasks as scores has, got {second.shape[1]}")
    difference = first[:, None, :] - second[None, :, :]  # (runs, runs', tasks)
    return float((0.5 * (np.sign(difference) + 1)).mean())


def _any_scores(scores: ArrayLike) -> FloatArray:
    array = np.asarray(scores, dtype=np.float64)
    if array.size == 0:
        raise ValueError("scores must not be empty")
    return finite_array("scores", array, array.shape)


def _score_matrix(name: str, scores: ArrayLike) -> FloatArray:
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim == 1:
        array = array[:, None]
    matrix = finite_array(name, array, (None, None))
    if matrix.size == 0:
        raise ValueError(f"{name} must not be empty")
    return matrix
