"""A certificate over the number of demonstrations or rollouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lfd_gym.arguments import checked
from lfd_gym.assessment.statements import Certificate
from lfd_gym.assessment.tables import probability
from lfd_gym.plots.axes import axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Points of a curve over the number of demonstrations or rollouts, and how many times as many there are at its end.
_N_OVER, _TIMES = 40, 100.0
#: Parts of a bound that are a smaller share of it are not drawn.
_SEEN = 1e-3


@checked
def draw_certificate(certificate: Certificate, axes: Axes | None = None) -> Axes:
    """Draw the bound of a certificate over the number of demonstrations, or rollouts, with what it consists of.

    Where the bound is about the expert, the demonstrations are counted, else the rollouts. What is not known yet is a
    forecast, as `Certificate.needed` makes it.

    Parameters
    ----------
    certificate
        Of any policy.
    axes
        To draw on, by default new ones.
    """
    said = certificate.strongest
    of_expert = said.about == "expert"
    now = said.n_demonstrations if of_expert else certificate.n_rollouts
    if now is None:
        raise ValueError("certificate must rest on rollouts or demonstrations to be drawn over their number")
    times = np.geomspace(1 / now, _TIMES, _N_OVER)
    bounds = np.array([certificate.forecast(*((each, 1.0) if of_expert else (1.0, each))) for each in times])
    grows = "demonstrations" if of_expert else "rollouts"
    steady = {reason: part for reason, part in said.parts.items() if reason != grows}
    axes = axes_or_new(axes)
    level = np.full(times.size, said.found)
    axes.fill_between(now * times, np.minimum(level, 0.0), level, alpha=0.5, label="distance found")
    for reason, part in steady.items():
        if part > _SEEN * said.bound:
            top = np.clip(level + part, level, np.maximum(bounds, level))  # where others make it smaller, not above it
            axes.fill_between(now * times, level, top, alpha=0.5, label=f"+ {reason}")
            level = top
    axes.fill_between(now * times, level, np.maximum(bounds, level), alpha=0.5, label=f"+ {grows}")
    axes.plot(now * times, bounds, color="black", label="at most")
    axes.plot([now], [said.bound], "o", color="black", label=f"now, {now:,} {grows}")
    if certificate.random_distance is not None:
        label = "said of random play" if certificate.random_is_bound else "random play"
        axes.axhline(certificate.random_distance, color="grey", linestyle="--", label=label)
    axes.set_xscale("log")
    axes.set_xlabel(f"number of {grows}")
    axes.set_ylabel(f"cost distance to the {said.about}")
    axes.set_title(f"probability {probability(certificate.delta)}")
    axes.legend(fontsize="small")
    return axes
