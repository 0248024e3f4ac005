"""How a run went, and how learners compare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lfd_gym.arguments import checked
from lfd_gym.assessment.evaluation import Evaluation
from lfd_gym.plots.axes import axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Quantity = Literal["normalised_score", "cost_distance", "true_gap", "episode_return", "discounted_return"]


def draw_residuals(solution: Any, axes: Axes | None = None) -> Axes:
    """Draw the saddle-point residual of Algorithm 1 over its iterations, with the rate 1/√N through the last.

    Parameters
    ----------
    solution
        Of `lfd_gym.solve_mirror_descent` on a known model.
    axes
        To draw on, by default new ones.
    """
    history = np.array([*getattr(solution, "residual_history", ())], dtype=np.float64).reshape(-1, 2)
    if not len(history):
        raise ValueError("solution must have a residual_history to be drawn, which needs a problem with a known model")
    axes = axes_or_new(axes)
    iterations, residuals = history.T
    axes.loglog(iterations, residuals, marker="o", label="residual")
    axes.loglog(iterations, residuals[-1] * np.sqrt(iterations[-1] / iterations), "--", color="grey", label="1/√N")
    axes.set_xlabel("iterations")
    axes.set_ylabel("saddle-point residual")
    axes.legend()
    return axes


@checked
def draw_comparison(
    evaluations: Mapping[str, Evaluation], quantity: Quantity = "normalised_score", axes: Axes | None = None
) -> Axes:
    """Draw one number of several evaluations side by side, with its interval where it has one.

    Parameters
    ----------
    evaluations
        By what is written beside them, the first on top.
    quantity
        Which of their attributes.
    axes
        To draw on, by default new ones.
    """
    values = {name: getattr(evaluation, quantity) for name, evaluation in evaluations.items()}
    unknown = [name for name, value in values.items() if value is None]
    if unknown or not values:
        raise ValueError(f"evaluations must be of at least one policy and have a {quantity}, which {unknown} lack")
    axes = axes_or_new(axes)
    names = list(values)
    axes.barh(names, list(values.values()), color="#0072B2", alpha=0.7)
    for name in names:
        interval = getattr(evaluations[name].sampling, quantity, None)
        if interval is not None:
            axes.plot(interval, [name, name], color="black", marker="|")
    axes.invert_yaxis()
    axes.set_xlabel(quantity.replace("_", " "))
    return axes
