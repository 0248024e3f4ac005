"""Figures of benchmark results: scores, curves, weights and certificates.

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

from lfd_gym.benchmark.summary import groups_of, seconds_of
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


#: Lines that belong to no learner: seen on white and on black.
_GREY = "#808080"
#: Scores below are drawn here: how bad a failure is is no matter, and would squeeze everything else.
_LOWEST_SCORE = -0.25
#: Learning takes at least so long, for a logarithmic axis.
_LEAST_SECONDS = 1e-3
#: How far apart learners stand on a logarithmic axis.
_SIDE_BY_SIDE = 1.035
_NAMES = {
    "true_cost": "expected true cost (less is better)",
    "episode_return": "return (more is better)",
    "cost_distance": "distance to the expert (less is better)",
}
_REFERENCES = {"expert": Style("#000000", "o", "--"), "random": Style("#808080", "s", ":")}


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


def scores_by_learner(rows: Sequence[Row], styles: dict[str, Style], title: str, name: str = "scores") -> Figure:
    """Draw the score of every run, a line for each learner and, within it, each number of demonstrations."""
    groups = [group for group in groups_of(rows) if group.scores]
    counts = sorted({group.n_demonstrations for group in groups})
    learners = [learner for learner in styles if any(group.learner == learner for group in groups)]
    learners.sort(key=lambda learner: np.mean([g.score for g in groups if g.learner == learner]))
    figure, axes = new_axes("score: 0 random play, 1 the expert", "", title, height=1.6 + 0.34 * len(learners))
    axes.axvline(1.0, color=_GREY, linestyle="--", linewidth=1)
    axes.axvline(0.0, color=_GREY, linestyle=":", linewidth=1)
    for group in groups:
        k = counts.index(group.n_demonstrations)
        level = learners.index(group.learner) + 0.5 * (k - (len(counts) - 1) / 2) / max(1, len(counts) - 1)
        drawn: dict[str, Any] = {"color": styles[group.learner].color, "marker": list(_MARKERS)[k], "linewidths": 0}
        shown = np.clip(group.scores, _LOWEST_SCORE, None)
        dots = axes.scatter(shown, np.full(shown.size, level), s=18, alpha=0.5, **drawn)
        dots.set_gid(f"{name}~{group.learner}~runs{k}")
        mean = axes.scatter([max(group.score or 0.0, _LOWEST_SCORE)], [level], s=42, **drawn)
        mean.set_gid(f"{name}~{group.learner}~mean{k}")
    axes.set_yticks(range(len(learners)), learners)
    axes.set_ylim(-0.6, len(learners) - 0.4)
    axes.set_xlim(left=max(axes.get_xlim()[0], _LOWEST_SCORE - 0.08))
    for k, count in enumerate(counts):
        said = "1 demonstration" if count == 1 else f"{count} demonstrations"
        axes.scatter([], [], s=30, color=_GREY, marker=list(_MARKERS)[k], label=said)
    return _with_legend(figure)


def curves_over_demonstrations(
    rows: Sequence[Row], styles: dict[str, Style], name: str = "curves", title: str = ""
) -> Figure:
    """Draw the true cost, or the return, over the number of demonstrations: mean over seeds, bars from min to max.

    Learners stand side by side, so that those that are equally good do not hide each other.
    """
    quantity = "true_cost" if rows[0]["evaluation"].get("true_cost") is not None else "episode_return"
    if rows[0]["evaluation"].get(quantity) is None:
        quantity = "cost_distance"
    figure, axes = new_axes("number of demonstrations", _NAMES[quantity], title)
    shown = [learner for learner in styles if learner != "expert" and _of_learner(rows, learner)]
    for k, learner in enumerate(shown):
        groups = _by(_of_learner(rows, learner), lambda row: row["n_demonstrations"])
        counts = np.array(sorted(groups))
        values = [[row["evaluation"][quantity] for row in groups[count]] for count in counts]
        mean = np.array([np.mean(each) for each in values])
        low, high = mean - [min(each) for each in values], [max(each) for each in values] - mean
        beside = counts * _SIDE_BY_SIDE ** (k - (len(shown) - 1) / 2)
        style = styles[learner]
        line = axes.plot(beside, mean, label=learner, **style.line())[0]
        line.set_gid(f"{name}~{learner}~line")
        bars = axes.vlines(beside, mean - low, mean + high, color=style.color, linewidth=1, alpha=0.6)
        bars.set_gid(f"{name}~{learner}~bars")
    _log_counts(axes, sorted({row["n_demonstrations"] for row in rows}))
    _reference_lines(axes, rows, quantity)
    return _with_legend(figure)


def scores_over_seconds(rows: Sequence[Row], styles: dict[str, Style], title: str, name: str = "seconds") -> Figure:
    """Draw the mean score of each learner against its processor time, larger for more demonstrations."""
    figure, axes = new_axes("processor seconds of learning", "mean score", title)
    groups = [group for group in groups_of(rows) if group.scores]
    counts = sorted({group.n_demonstrations for group in groups})
    for learner, style in styles.items():
        own = [group for group in groups if group.learner == learner and learner not in _REFERENCES]
        if own:
            seconds = [max(group.mean(seconds_of) or 0.0, _LEAST_SECONDS) for group in own]
            sizes = [24 + 30 * counts.index(group.n_demonstrations) for group in own]
            shown = [max(group.score or 0.0, _LOWEST_SCORE) for group in own]
            dots = axes.scatter(
                seconds, shown, s=sizes, color=style.color, marker=style.marker, alpha=0.8, linewidths=0, label=learner
            )
            dots.set_gid(f"{name}~{learner}~dots")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    low, high = axes.get_xlim()
    if high < 20 * low:  # else no power of ten may be in sight
        axes.set_xlim(low / 5, high * 5)
    axes.set_ylim(min(0.0, *axes.get_ylim()) - 0.05, max(1.1, axes.get_ylim()[1]))  # all of the scale, always
    axes.axhline(1.0, color=_GREY, linestyle="--", linewidth=1)
    return _with_legend(figure)


def recovered_weights(rows: Sequence[Row], styles: dict[str, Style], name: str = "weights", title: str = "") -> Figure:
    """Draw the mean recovered cost weights of each learner that finds any, beside the true ones."""
    figure, axes = new_axes("cost feature", "weight", title)
    found = {
        learner: [row["facts"]["cost_weights"] for row in _of_learner(rows, learner) if _weights(row)]
        for learner in styles
    }
    found = {learner: weights for learner, weights in found.items() if weights}
    n_costs = len(next(iter(found.values()))[0])
    positions, width = np.arange(n_costs), 0.8 / (len(found) + 1)
    if (true := rows[0]["facts"].get("true_weights")) is not None:  # else it is none of the costs
        axes.bar(positions - 0.4 + width / 2, true, width, color=_GREY, label="true")
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
    return _with_legend(figure)


def certificates(rows: Sequence[Row], styles: dict[str, Style], title: str, name: str = "certificates") -> Figure:
    """Draw each certified upper bound on the 𝒞-distance against what was found."""
    figure, axes = new_axes("distance found", "certified upper bound", title)
    furthest = 0.0
    for learner, style in styles.items():
        points = [
            (row["evaluation"]["cost_distance"], row["facts"]["certified_distance"])
            for row in _of_learner(rows, learner)
            if row["facts"].get("certified_distance") is not None and row["evaluation"]["cost_distance"] is not None
        ]
        if points:
            x, y = np.array(points).T
            furthest = max(furthest, float(x.max()))
            dots = axes.scatter(
                x, y, s=28, color=style.color, marker=style.marker, alpha=0.75, linewidths=0, label=learner
            )
            dots.set_gid(f"{name}~{learner}~dots")
    axes.plot([0, furthest], [0, furthest], color=_GREY, linestyle="--", linewidth=1, label="bound = distance")
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    return _with_legend(figure)


def certified_parts(rows: Sequence[Row], title: str, name: str = "parts") -> Figure:
    """Draw what the bounds of an environment consist of, over the number of demonstrations: means over seeds.

    A line for each learner and number of demonstrations. Parts may be negative where the model is known.
    """
    groups = [group for group in groups_of(rows) if group.rows[0]["facts"].get("certified_parts") is not None]
    reasons = list(dict.fromkeys(reason for group in groups for reason in group.rows[0]["facts"]["certified_parts"]))
    figure, axes = new_axes("cost distance", "", title, height=1.4 + 0.24 * len(groups))
    colours = dict(zip(reasons, _COLOURS, strict=False))
    for level, group in enumerate(reversed(groups)):
        reached = group.mean(lambda row: row["facts"]["certified_found"]) or 0.0
        drawn: list[Any] = list(axes.barh(level, reached, height=0.6, color=_GREY, alpha=0.5))
        for reason in reasons:
            part = group.mean(lambda row, reason=reason: row["facts"]["certified_parts"].get(reason, 0.0)) or 0.0  # type: ignore[misc]
            drawn += axes.barh(level, part, left=reached, height=0.6, color=colours[reason], alpha=0.6)
            reached += part
        ends = [level - 0.38, level + 0.38]
        drawn += axes.plot([reached, reached], ends, color="black", linewidth=2)
        random = group.mean(lambda row: row["facts"].get("random_distance"))
        if random is not None:
            drawn += axes.plot([random, random], ends, color=_GREY, linestyle=":", linewidth=2)
        for k, artist in enumerate(drawn):
            artist.set_gid(f"{name}~{group.learner}~m{group.n_demonstrations}part{k}")
    axes.set_xlim(right=1.03 * axes.get_xlim()[1])
    axes.set_yticks(
        range(len(groups)), [f"{g.learner}, m = {g.n_demonstrations}" for g in reversed(groups)], fontsize=8
    )
    axes.set_ylim(-0.6, len(groups) - 0.4)
    axes.barh([0], [0], color=_GREY, alpha=0.5, label="distance found")
    for reason in reasons:
        axes.barh([0], [0], color=colours[reason], alpha=0.6, label=f"+ {reason}")
    axes.plot([], [], color="black", linewidth=2, label="at most")
    axes.plot([], [], color=_GREY, linestyle=":", linewidth=2, label="random play")
    return _with_legend(figure)


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


def new_axes(x_label: str, y_label: str, title: str = "", height: float = 3.7) -> tuple[Figure, Axes]:
    """Return an empty figure with one set of axes."""
    figure, panels = new_panels(1, x_label, y_label, height)
    if title:
        panels[0].set_title(title, fontsize=11, loc="left")
    return figure, panels[0]


def new_panels(n_panels: int, x_label: str, y_label: str, height: float = 3.7) -> tuple[Figure, list[Axes]]:
    """Return an empty figure with axes side by side that share their scale."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.2 + 4.2 * n_panels, height), layout="constrained")
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


def _reference_lines(axes: Axes, rows: Sequence[Row], quantity: str) -> None:
    for who, line in (("expert", "--"), ("random", ":")):
        name = {"true_cost": f"{who}_true_cost", "episode_return": f"{who}_return"}.get(quantity, "")
        values = [row["evaluation"][name] for row in rows if row["evaluation"].get(name) is not None]
        if values:
            axes.axhline(float(np.mean(values)), color=_GREY, linestyle=line, linewidth=1, label=who)


def _with_legend(figure: Figure) -> Figure:
    """Put the legend below the axes, where it hides nothing; none if every run failed and there is nothing to name."""
    if any(axes.get_legend_handles_labels()[0] for axes in figure.axes):
        figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    return figure


def _of_learner(rows: Iterable[Row], learner: str) -> list[Row]:
    return [row for row in rows if row["learner"] == learner]


def _by(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def _weights(row: Row) -> bool:
    return row["facts"].get("cost_weights") is not None
