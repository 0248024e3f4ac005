"""Figures of benchmark results: curves, scatters, profiles, weights and certificates.

Each function takes rows of a benchmark (see `lfd_gym.benchmark`) and returns a matplotlib figure. Learners keep one
colour, marker and line style through all figures of a report: the colours of Okabe and Ito, which colour-blind readers
can tell apart, then again with another marker and line; black and grey for the expert and the random policy. Whatever
belongs to a learner carries the id ``<figure>~<learner>~<part>``, so that a page showing the figure can hide it.

matplotlib is imported when the first figure is made, and its global state is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lfd_gym.assessment.statistics import performance_profile
from lfd_gym.validation import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = dict[str, Any]

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8F7700")
_LINES = ("-", "--", ":", "-.")
#: Markers, and the characters that look like them.
_MARKERS = {"o": "●", "s": "■", "D": "◆", "^": "▲", "v": "▼", "P": "✚", "*": "★", "X": "✖", "<": "◀", ">": "▶"}


@dataclass(frozen=True)
class Style:
    """How a learner is drawn."""

    color: str
    marker: str
    linestyle: str

    def line(self) -> dict[str, Any]:
        """Return the arguments for a line of matplotlib with markers."""
        return {"color": self.color, "marker": self.marker, "linestyle": self.linestyle, "markersize": 5}

    @property
    def symbol(self) -> str:
        """The marker as a character, for legends outside the figure."""
        return _MARKERS[self.marker]


_REFERENCES = {"expert": Style("#000000", "o", "--"), "random": Style("#7F7F7F", "s", ":")}


def learner_styles(learners: Sequence[str]) -> dict[str, Style]:
    """Give each learner its colour, marker and line."""
    markers = list(_MARKERS)
    others = [learner for learner in learners if learner not in _REFERENCES]
    styles = {
        learner: Style(
            _COLOURS[k % len(_COLOURS)], markers[k % len(markers)], _LINES[(k // len(_COLOURS)) % len(_LINES)]
        )
        for k, learner in enumerate(others)
    }
    return {learner: (_REFERENCES | styles)[learner] for learner in learners}


def curves_over_demonstrations(rows: Sequence[Row], styles: dict[str, Style], name: str = "curves") -> Figure:
    """Draw the expected true cost against the number of demonstrations: mean over seeds, band from min to max."""
    figure, axes = new_axes("number of demonstrations", "expected true cost")
    for learner, style in styles.items():
        groups = _by(_of_learner(rows, learner), lambda row: row["n_demonstrations"])
        if not groups:
            continue
        counts = sorted(groups)
        costs = [[row["evaluation"]["true_cost"] for row in groups[count]] for count in counts]
        line = axes.plot(counts, [np.mean(c) for c in costs], label=learner, **style.line())[0]
        line.set_gid(f"{name}~{learner}~line")
        low, high = [min(c) for c in costs], [max(c) for c in costs]
        band = axes.fill_between(counts, low, high, color=style.color, alpha=0.12, linewidth=0)
        band.set_gid(f"{name}~{learner}~band")
    _log_counts(axes, sorted({row["n_demonstrations"] for row in rows}))
    _expert_line(axes, rows)
    return figure


def scatter_over(
    rows: Sequence[Row], styles: dict[str, Style], quantity: Callable[[Row], float], label: str, name: str
) -> Figure:
    """Draw the normalised score of each run against something it used, such as seconds."""
    figure, axes = new_axes(label, "normalised score")
    for learner, style in styles.items():
        points = [(quantity(row), _score(row)) for row in _of_learner(rows, learner) if quantity(row) > 0]
        if points:
            x, y = np.array(points).T
            dots = axes.scatter(x, y, s=28, color=style.color, marker=style.marker, alpha=0.75, linewidths=0)
            dots.set_gid(f"{name}~{learner}~dots")
    axes.set_xscale("log")
    axes.axhline(1.0, color="0.35", linestyle="--", linewidth=1)
    return figure


def profiles(rows: Sequence[Row], styles: dict[str, Style], name: str = "profile") -> Figure:
    """Draw, for each learner, the share of its runs whose normalised score exceeds τ, against τ."""
    figure, axes = new_axes("normalised score τ", "share of runs with a score above τ")
    thresholds = np.linspace(-0.2, 1.05, 251)
    for learner, style in styles.items():
        scores = [_score(row) for row in _of_learner(rows, learner)]
        if scores:
            share = performance_profile(np.array(scores)[:, None], thresholds)
            line = axes.plot(thresholds, share, **style.line(), markevery=(0.05, 0.2))[0]
            line.set_gid(f"{name}~{learner}~line")
    axes.set_ylim(-0.02, 1.02)
    return figure


def recovered_weights(rows: Sequence[Row], styles: dict[str, Style], name: str = "weights") -> Figure:
    """Draw the mean recovered cost weights of each learner that finds any, beside the true ones."""
    figure, axes = new_axes("cost feature", "weight")
    found = {
        learner: [row["facts"]["cost_weights"] for row in _of_learner(rows, learner) if _weights(row)]
        for learner in styles
    }
    found = {learner: weights for learner, weights in found.items() if weights}
    n_costs = len(next(iter(found.values()))[0])
    positions, width = np.arange(n_costs), 0.8 / (len(found) + 1)
    if (true := rows[0]["facts"].get("true_weights")) is not None:  # else it is none of the costs
        axes.bar(positions - 0.4 + width / 2, true, width, color="0.6", label="true")
    for k, (learner, weights) in enumerate(found.items(), start=1):
        bars = axes.bar(
            positions - 0.4 + (k + 0.5) * width,
            np.mean(weights, axis=0),
            width,
            color=styles[learner].color,
            label=learner,
        )
        for bar in bars:
            bar.set_gid(f"{name}~{learner}~bar{bar.get_x():.3f}")
    axes.set_xticks(positions)
    axes.legend(fontsize=8)
    return figure


def certificates(rows: Sequence[Row], styles: dict[str, Style], name: str = "certificates") -> Figure:
    """Draw each certified upper bound on the 𝒞-distance against the true one: none may lie below the line."""
    figure, axes = new_axes("true distance to the expert", "certified upper bound")
    furthest = 0.0
    for learner, style in styles.items():
        points = [
            (row["evaluation"]["cost_distance"], row["facts"]["certified_distance"])
            for row in _of_learner(rows, learner)
            if row["facts"].get("certified_distance") is not None
        ]
        if points:
            x, y = np.array(points).T
            furthest = max(furthest, float(x.max()))
            dots = axes.scatter(x, y, s=28, color=style.color, marker=style.marker, alpha=0.75, linewidths=0)
            dots.set_gid(f"{name}~{learner}~dots")
    axes.plot([0, furthest], [0, furthest], color="0.35", linestyle="--", linewidth=1)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    return figure


def paper_figure(table: FloatArray, expert_cost: float, learner: str) -> Figure:
    """Draw the paper's figure of a learner from the columns n_traj, rho_mean, rho_std, rho_min, rho_max."""
    figure, axes = new_axes("number of sample trajectories $m$", r"$\rho_{c_{\mathrm{true}}}(\hat\pi)$")
    count, mean, deviation, low, high = table.T
    axes.fill_between(count, low, high, color=_COLOURS[0], alpha=0.12, linewidth=0, label="min to max over runs")
    axes.errorbar(
        count,
        mean,
        deviation,
        color=_COLOURS[0],
        marker="o",
        markersize=4,
        capsize=2,
        label=f"{learner}: mean ± standard deviation",
    )
    axes.axhline(expert_cost, color=_COLOURS[1], linestyle="--", label="expert")
    _log_counts(axes, [int(n) for n in count])
    axes.legend(fontsize=9)
    return figure


def new_axes(x_label: str, y_label: str) -> tuple[Figure, Axes]:
    """Return an empty figure with one set of axes."""
    figure, panels = new_panels(1, x_label, y_label)
    return figure, panels[0]


def new_panels(n_panels: int, x_label: str, y_label: str) -> tuple[Figure, list[Axes]]:
    """Return an empty figure with axes side by side that share their scale."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.2 + 4.2 * n_panels, 3.7), layout="constrained")
    FigureCanvasAgg(figure)
    panels = list(figure.subplots(1, n_panels, sharey=True, squeeze=False)[0])
    panels[0].set_ylabel(y_label)
    for axes in panels:
        axes.set_xlabel(x_label)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels


def _log_counts(axes: Axes, counts: Sequence[int]) -> None:
    """Put numbers of demonstrations on a logarithmic axis, written out."""
    axes.set_xscale("log")
    axes.set_xticks(counts, [str(count) for count in counts], fontsize=9)
    axes.set_xticks([], minor=True)


def _expert_line(axes: Axes, rows: Sequence[Row]) -> None:
    costs = [row["evaluation"]["expert_true_cost"] for row in rows]
    if costs:
        axes.axhline(float(np.mean(costs)), color="0.35", linestyle="--", linewidth=1, label="expert")


def _of_learner(rows: Iterable[Row], learner: str) -> list[Row]:
    return [row for row in rows if row["learner"] == learner]


def _by(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def _score(row: Row) -> float:
    return float(row["evaluation"]["normalised_score"])


def _weights(row: Row) -> bool:
    return row["facts"].get("cost_weights") is not None
