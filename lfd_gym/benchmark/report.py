"""One self-contained page about a benchmark: tables, charts, maps, certificates, failures, and how to run it again.

``write_report(folder)`` reads the folder of a run and writes ``report.html`` there, and each figure as a file under
``figures/``. Looking at the page needs no network: styles, script and pictures are inside.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lfd_gym.benchmark import figures
from lfd_gym.benchmark.policy_maps import policy_maps
from lfd_gym.benchmark.results import ResultsFolder
from lfd_gym.benchmark.summary import SummaryRow, interval_text, samples_of, seconds_of, summarise
from lfd_gym.files import replacing_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]

_SUMMARY_NOTE = (
    "Score: 0 is the random policy, 1 the expert; IQM is the mean of the middle half of the runs, its interval "
    "over that many runs is Student's below ten, else a stratified bootstrap. True gap: expected true cost minus the "
    "expert's; below zero is better than the expert. "
    "Distance: the largest excess over the expert in any cost of the class. Samples: environment steps plus draws from "
    "the generative model. Seconds: learning alone, without imports and compilation. Gap, distance, agreement, samples "
    "and seconds are means over runs. Press a heading to sort."
)
_MAPS_NOTE = (
    "Arrows: the policy. The darker the square, the more often the state is visited. Blue states are cheap, orange "
    "ones costly."
)


def write_report(folder: str | Path, imported: Sequence[str] = ()) -> Path:
    """Write ``report.html`` and ``figures/`` into the folder of a benchmark run, and return the page's path.

    ``imported`` names modules that the environments of the run may come from, beside Gymnasium and this package.
    """
    results = ResultsFolder.open(folder, imported)
    rows = results.rows()
    succeeded = [row for row in rows if row["status"] == "ok"]
    if not succeeded:
        raise ValueError(f"{folder} has no finished cell to report on")
    styles = figures.learner_styles([learner.label for learner in results.spec.learners])
    charts = _Charts(results.path / "figures")
    body = [
        _head(results, rows),
        _section("Summary", _summary(summarise(succeeded)), "summary"),
        _legend(styles),
        _section("All environments", _overall_charts(charts, succeeded, styles), "all"),
    ]
    for environment in results.spec.environments:
        own = [row for row in succeeded if row["environment"] == environment.label]
        if own:
            content = _environment(charts, results, environment.label, own, styles)
            body.append(_section(environment.label, content, f"env-{environment.label}"))
    body.append(_section("Failures", _failures([row for row in rows if row["status"] != "ok"]), "failures"))
    body.append(_section("Run it again", _reproduce(results, rows), "again"))
    page = results.path / "report.html"
    with replacing_file(page, overwrite=True) as unfinished:
        unfinished.write_text(_page("".join(body)), encoding="utf-8")
    return page


# -- parts of the page ------------------------------------------------------------------------------------------------


def _head(results: ResultsFolder, rows: Sequence[Row]) -> str:
    total, done = len(results.spec.cells()), len(rows)
    links = [("summary", "Summary"), ("all", "All environments")]
    links += [(f"env-{e.label}", e.label) for e in results.spec.environments]
    links += [("failures", "Failures"), ("again", "Run it again")]
    items = "".join(f'<li><a href="#{html.escape(anchor)}">{html.escape(text)}</a></li>' for anchor, text in links)
    return (
        f"<h1>Learning from demonstrations: benchmark report</h1>"
        f'<p class="lead">{done} of {total} runs: {len(results.spec.learners)} learners on '
        f"{html.escape(_list(e.label for e in results.spec.environments))} with "
        f"{html.escape(_list(results.spec.n_demonstrations))} demonstrations, seeds "
        f"{html.escape(_list(results.spec.seeds))}.</p><nav><ul>{items}</ul></nav>"
    )


def _summary(summary: Sequence[SummaryRow]) -> str:
    # Heading, kind of sorting, what is sorted by, what is shown.
    columns: tuple[tuple[str, str, Callable[[SummaryRow], Any], Callable[[SummaryRow], str]], ...] = (
        ("learner", "text", lambda r: r.learner, lambda r: r.learner),
        ("score (IQM)", "number", lambda r: r.score.value, lambda r: f"{r.score.value:.3f}"),
        ("95 % interval", "number", lambda r: r.score.value, lambda r: interval_text(r.score)),
        ("true gap", "number", lambda r: r.true_gap, lambda r: f"{r.true_gap:+.4f}"),
        ("distance", "number", lambda r: r.cost_distance, lambda r: f"{r.cost_distance:.4f}"),
        ("agreement", "number", lambda r: r.agreement, lambda r: f"{r.agreement:.1%}"),
        ("samples", "number", lambda r: r.samples, lambda r: f"{r.samples:,.0f}"),
        ("seconds", "number", lambda r: r.seconds, lambda r: f"{r.seconds:.2f}"),
        ("runs", "number", lambda r: r.n_runs, lambda r: str(r.n_runs)),
    )
    head = "".join(f'<th data-sort="{kind}"><button type="button">{name}</button></th>' for name, kind, _, _ in columns)
    lines = []
    for entry in summary:
        cells = "".join(
            f'<td data-value="{html.escape(str(key_of(entry)))}">{html.escape(text_of(entry))}</td>'
            for _, _, key_of, text_of in columns
        )
        lines.append(f"<tr>{cells}</tr>")
    return (
        '<div class="table"><table id="summary-table">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
        f'<p class="note">{_SUMMARY_NOTE}</p>'
    )


def _legend(styles: dict[str, figures.Style]) -> str:
    buttons = "".join(
        f'<button type="button" aria-pressed="true" data-learner="{html.escape(learner)}">'
        f'<span class="swatch" style="color:{style.color}">{style.symbol}</span>{html.escape(learner)}</button>'
        for learner, style in styles.items()
    )
    return f'<div class="legend" aria-label="show or hide learners">{buttons}</div>'


def _overall_charts(charts: _Charts, rows: Sequence[Row], styles: dict[str, figures.Style]) -> str:
    parts = [
        charts.add("profile", figures.profiles(rows, styles), "Performance profile over all runs: higher is better."),
        charts.add(
            "seconds",
            figures.scatter_over(rows, styles, seconds_of, "seconds of learning", "seconds"),
            "Score of each run against the time it took.",
        ),
    ]
    if any(samples_of(row) > 0 for row in rows):
        figure = figures.scatter_over(rows, styles, samples_of, "environment steps + generative draws", "samples")
        caption = "Score of each run against the samples it drew (learners that draw none are not shown)."
        parts.append(charts.add("samples", figure, caption))
    if any(row["facts"].get("certified_distance") is not None for row in rows):
        caption = "Certified upper bounds against true distances: a dot below the line would be a broken promise."
        parts.append(charts.add("certificates", figures.certificates(rows, styles), caption))
    return f'<div class="figures">{"".join(parts)}</div>'


def _environment(
    charts: _Charts, results: ResultsFolder, label: str, rows: Sequence[Row], styles: dict[str, figures.Style]
) -> str:
    name = f"curves-{label}"
    caption = "Expected true cost against the number of demonstrations: mean and range over seeds; dashed: the expert."
    parts = [charts.add(name, figures.curves_over_demonstrations(rows, styles, name), caption)]
    if any(row["facts"].get("cost_weights") is not None for row in rows):
        name = f"weights-{label}"
        caption = "Recovered cost weights (mean over runs) beside the true ones."
        parts.append(charts.add(name, figures.recovered_weights(rows, styles, name), caption))
    maps = "".join(
        f"<figure>{_image(picture)}<figcaption>{html.escape(text)}</figcaption></figure>"
        for text, picture in policy_maps(results, label, rows)
    )
    if maps:
        maps = f'<h3>Policies</h3><p class="note">{_MAPS_NOTE}</p><div class="maps">{maps}</div>'
    return f'<div class="figures">{"".join(parts)}</div>{maps}'


def _failures(rows: Sequence[Row]) -> str:
    if not rows:
        return "<p>None.</p>"
    items = "".join(
        f'<details><summary class="failed">{html.escape(row["cell"])}: {html.escape(row["error"].splitlines()[0])}'
        f"</summary><pre>{html.escape(row['error'])}</pre></details>"
        for row in rows
    )
    return f"<p>{len(rows)} runs failed.</p>{items}"


def _reproduce(results: ResultsFolder, rows: Sequence[Row]) -> str:
    provenance = next(row["provenance"] for row in rows if "provenance" in row)  # a run that failed has none
    versions = "\n".join(f"{name}=={version}" for name, version in provenance["versions"].items())
    command = "lfd-gym benchmark --spec spec.json --out DIR\nlfd-gym report DIR"
    return (
        "<p>The file spec.json beside this page says everything that was run. With it:</p>"
        f"<pre>{command}</pre><p>Recorded with the first run: revision {html.escape(provenance['revision'])}, "
        f"machine {html.escape(provenance['machine'])}, and these versions:</p><pre>{html.escape(versions)}</pre>"
    )


# -- the small things -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Charts:
    """Writes each figure as PNG and SVG files and gives the SVG back for the page."""

    folder: Path

    def add(self, name: str, figure: Figure, caption: str) -> str:
        self.folder.mkdir(exist_ok=True)
        for suffix in ("png", "svg"):
            with replacing_file(self.folder / f"{name}.{suffix}", overwrite=True) as unfinished:
                unfinished.write_bytes(_rendered(figure, suffix, name))
        drawing = _rendered(figure, "svg", name).decode()
        drawing = drawing[drawing.index("<svg") :]
        return f"<figure>{drawing}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _rendered(figure: Figure, suffix: str, salt: str) -> bytes:
    import matplotlib

    buffer = io.BytesIO()
    # Text stays text, and ids are salted by the figure's name: several drawings share one page.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt, "font.family": "sans-serif"}):
        metadata = {"Date": None} if suffix == "svg" else {}
        figure.savefig(buffer, format=suffix, dpi=150, metadata=metadata)
    return buffer.getvalue()


def _image(png: bytes) -> str:
    return f'<img alt="" src="data:image/png;base64,{base64.b64encode(png).decode()}">'


def _section(title: str, content: str, anchor: str) -> str:
    return f'<section id="{html.escape(anchor)}"><h2>{html.escape(title)}</h2>{content}</section>'


def _page(body: str) -> str:
    assets = resources.files("lfd_gym.benchmark") / "report-assets"
    style, script = ((assets / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>Benchmark report</title><style>{style}</style></head>"
        f"<body>{body}<script>{script}</script></body></html>"
    )


def _list(values: Iterable[int | str]) -> str:
    return ", ".join(str(value) for value in values)
