"""How the costs of a trajectory add up.

- *Discounted and infinite*, the paper's: (1−γ) Σ_{t≥0} γ^t c_t.
- *The first H steps*: Σ_{t<H} γ^t c_t, normalised by (1−γ)/(1−γ^H), for γ = 1 by 1/H.

Both are averages with weights that sum to one, so that costs in [−1, 1] have expected costs in [−1, 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.arguments import checked
from lfd_gym.validation import FloatArray, count, discount_factor, number


@dataclass(frozen=True)
class Criterion:
    """Weights of the steps of a trajectory.

    Attributes
    ----------
    discount
        γ, strictly between 0 and 1; 1 is allowed with a horizon.
    horizon
        H, the number of steps that count; None: all.

    Examples
    --------
    >>> Criterion(0.5).weights(3)
    array([0.5  , 0.25 , 0.125])
    >>> Criterion(1.0, horizon=4).weights(3)
    array([0.25, 0.25, 0.25])
    >>> float(Criterion(1.0, horizon=4).unseen(3)), Criterion(0.5).unseen(3)
    (0.25, 0.125)
    """

    discount: float
    horizon: int | None = None

    def __post_init__(self) -> None:
        if self.horizon is None:
            object.__setattr__(self, "discount", discount_factor("discount", self.discount))
            return
        if isinstance(self.horizon, bool) or not isinstance(self.horizon, int | np.integer):
            raise ValueError(f"horizon must be a whole number of steps or None, got {self.horizon!r}")
        if self.horizon < 1:
            raise ValueError(f"horizon must be at least 1, got {self.horizon}")
        if not 0 < number("discount", self.discount) <= 1:
            raise ValueError(f"discount must lie in (0, 1] with a horizon, got {self.discount}")
        object.__setattr__(self, "discount", float(self.discount))

    @property
    def scale(self) -> float:
        """The weight of the first step: what the discounted sum is multiplied by."""
        if self.horizon is None:
            return 1 - self.discount
        if self.discount == 1:
            return 1 / self.horizon
        # 1 − γ^H without the loss of digits for γ near one.
        return (1 - self.discount) / -math.expm1(self.horizon * math.log(self.discount))

    @checked
    def weights(self, n_steps: int) -> FloatArray:
        """Return the weights of the first ``n_steps`` steps."""
        steps = np.arange(count("n_steps", n_steps, 0))
        weights = self.scale * self.discount**steps
        return np.asarray(weights if self.horizon is None else np.where(steps < self.horizon, weights, 0.0))

    @checked
    def unseen(self, lengths: ArrayLike) -> Any:
        """Return how much of the weight comes after ``lengths`` steps."""
        steps = np.asarray(lengths)
        if not (steps >= 0).all():
            raise ValueError(f"lengths must not be negative, got {steps}")
        if steps.dtype.kind == "u":  # minus an unsigned number is a large one
            lengths = steps.astype(np.float64)
        if self.horizon is None:
            return self.discount ** (lengths if isinstance(lengths, (int, float)) else np.asarray(lengths))
        left = np.maximum(self.horizon - np.asarray(lengths), 0)
        if self.discount == 1:
            return left / self.horizon
        # γ^T (1 − γ^(H−T)) / (1 − γ^H)
        rate = math.log(self.discount)
        return (
            np.exp(rate * np.minimum(np.asarray(lengths), self.horizon))
            * np.expm1(rate * left)
            / math.expm1(rate * self.horizon)
        )

    @checked
    def steps(self, tail: float) -> int:
        """Return the smallest number of steps after which at most ``tail`` of the weight is left, H at most."""
        if not tail > 0:
            raise ValueError(f"tail must be positive, got {tail}")
        if self.horizon is not None:
            enough = np.flatnonzero(self.unseen(np.arange(self.horizon + 1)) <= tail)
            return max(1, int(enough[0]))
        steps = max(1, math.ceil(math.log(tail) / math.log(self.discount)))
        return steps if self.discount**steps <= tail else steps + 1  # the quotient may have been rounded down

    def __str__(self) -> str:
        return f"discount {self.discount:g}" + ("" if self.horizon is None else f", first {self.horizon} steps")
