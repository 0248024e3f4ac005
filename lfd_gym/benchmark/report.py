"""One self-contained page about a benchmark: its conclusion, tables, charts, maps, certificates, and raw results.

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
from typing import TYPE_CHECKING, Any, TypeAlias

from lfd_gym.benchmark import figures
from lfd_gym.benchmark.phase_portraits import phase_portraits
from lfd_gym.benchmark.policy_maps import policy_maps
from lfd_gym.benchmark.results import ResultsFolder
from lfd_gym.benchmark.summary import (
    Group,
    SummaryRow,
    conclusion,
    groups_of,
    interval_text,
    knowledge,
    samples_of,
    seconds_of,
    summarise,
)
from lfd_gym.files import replacing_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]

_SUMMARY_NOTE = (
    "Score: 0 is the random policy, 1 the expert, by the known true cost or else by the returns of whole episodes, of "
    "the policy at the end of learning. IQM is the mean of the middle half of the runs, its interval over so many runs "
    "is Student's below ten, else a stratified bootstrap. Reached: in how many environments, with their numbers of "
    "demonstrations, the mean score is 0.95 or more. Knows: what is asked for or was used; costs are told, or generic. "
    "Steps: of the environment, or draws from a simulator. CPU seconds: of learning, without imports and compilation. "
    "Both are means over runs. Press a heading to sort."
)
_TABLE_NOTE = (
    "In the tables below are means over seeds; behind a final score stand the worst and the best of the seeds. Best "
    "score: of the best of ten policies on the way, chosen by the reward, which learners are not shown: only for "
    "comparison with others who publish that; learners without such policies have none. Distance: the "
    "largest excess over the expert in any cost of the class, or over the data, that is the demonstrations. With 95 % "
    "certainty in each run it is at most the bound. Beats random: in how many runs the bound is below the distance of "
    "random play."
)
_MAPS_NOTE = (
    "Arrows: the policy. The darker the square, the more often the expert is there. Orange: where the learner does "
    "otherwise; first seed, fewest demonstrations."
)
_PORTRAITS_NOTE = "Over the two dimensions of the state; first seed, fewest demonstrations."

#: Heading, kind of sorting, what is sorted by, what is shown.
Column: TypeAlias = tuple[str, str, Callable[[Any], Any], Callable[[Any], str]]


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
        _head(results, rows, conclusion(succeeded)),
        _section("Summary", _summary(summarise(succeeded)), "summary"),
        _legend(styles),
    ]
    for environment in results.spec.environments:
        own = [row for row in succeeded if row["environment"] == environment.label]
        if own:
            content = _environment(charts, results, environment.label, own, styles)
            body.append(_section(environment.label, content, f"env-{environment.label}"))
    body.append(_section("Certificates", _certificates(charts, succeeded, styles), "certificates"))
    body.append(_section("Failures", _failures([row for row in rows if row["status"] != "ok"]), "failures"))
    body.append(_section("Raw results, and how to run it again", _reproduce(results, rows), "again"))
    page = results.path / "report.html"
    with replacing_file(page, overwrite=True) as unfinished:
        unfinished.write_text(_page("".join(body)), encoding="utf-8")
    return page


# -- parts of the page ------------------------------------------------------------------------------------------------


def _head(results: ResultsFolder, rows: Sequence[Row], sentence: str) -> str:
    total, done = len(results.spec.cells()), len(rows)
    links = [("summary", "Summary")]
    links += [(f"env-{e.label}", e.label) for e in results.spec.environments]
    links += [("certificates", "Certificates"), ("failures", "Failures"), ("again", "Raw results")]
    items = "".join(f'<li><a href="#{html.escape(anchor)}">{html.escape(text)}</a></li>' for anchor, text in links)
    counts = sorted({cell.n_demonstrations for cell in results.spec.cells()})
    return (
        f'<h1>Learning from demonstrations: benchmark report</h1><p class="conclusion">{html.escape(sentence)}</p>'
        f'<p class="lead">{done} of {total} runs: {len(results.spec.learners)} learners on '
        f"{html.escape(_list(e.label for e in results.spec.environments))} with "
        f"{html.escape(_list(counts))} demonstrations, seeds "
        f"{html.escape(_list(results.spec.seeds))}.</p><nav><ul>{items}</ul></nav>"
    )


def _summary(summary: Sequence[SummaryRow]) -> str:
    columns: tuple[Column, ...] = (
        ("learner", "text", lambda r: r.learner, lambda r: r.learner),
        ("final score (IQM)", "number", lambda r: _number(r.score and r.score.value), _score_of),
        ("95 % interval", "number", lambda r: _number(r.score and r.score.low), _interval_of),
        ("reached", "number", lambda r: r.n_reached / r.n_groups, lambda r: f"{r.n_reached} of {r.n_groups}"),
        ("knows", "text", lambda r: r.knows, lambda r: r.knows),
        ("costs", "text", lambda r: r.costs, lambda r: r.costs or "-"),
        ("steps", "number", lambda r: r.steps, lambda r: f"{r.steps:,.0f}"),
        ("CPU seconds", "number", lambda r: r.cpu_seconds, lambda r: f"{r.cpu_seconds:.2f}"),
        ("runs", "number", lambda r: r.n_runs, lambda r: str(r.n_runs)),
    )
    return f'{_table(columns, summary, "summary-table")}<p class="note">{_SUMMARY_NOTE} {_TABLE_NOTE}</p>'


def _score_of(row: SummaryRow) -> str:
    return "-" if row.score is None else f"{row.score.value:.3f}"


def _interval_of(row: SummaryRow) -> str:
    return "-" if row.score is None else interval_text(row.score)


def _groups_table(groups: Sequence[Group]) -> str:
    columns: tuple[Column, ...] = (
        ("learner", "text", lambda g: g.learner, lambda g: g.learner),
        ("m", "number", lambda g: g.n_demonstrations, lambda g: str(g.n_demonstrations)),
        ("final score", "number", lambda g: _number(g.score), _range),
        ("best score", "number", lambda g: _number(g.best_score), _shown(lambda g: _number(g.best_score), ".3f")),
        ("return", "number", _of("episode_return"), _shown(_of("episode_return"), ".1f")),
        ("true cost", "number", _of("true_cost"), _shown(_of("true_cost"), "+.4f")),
        ("distance", "number", _of("cost_distance"), _shown(_of("cost_distance"), ".3f")),
        ("bound", "number", lambda g: _number(g.bound), _shown(lambda g: _number(g.bound), ".3f")),
        ("beats random", "number", lambda g: g.n_beat_random, _nearer_than_random),
        ("to the", "text", _about, _about),
        ("steps", "number", lambda g: g.mean(samples_of), lambda g: f"{g.mean(samples_of):,.0f}"),
        ("CPU s", "number", lambda g: g.mean(seconds_of), lambda g: f"{g.mean(seconds_of):.2f}"),
        ("knows", "text", lambda g: knowledge(g.rows[0]), lambda g: knowledge(g.rows[0])),
    )
    known = tuple(column for column in columns if any(column[2](group) != "" for group in groups))
    return _table(known, groups)


def _nearer_than_random(group: Group) -> str:
    return "-" if group.learner == "random" else f"{group.n_beat_random} of {len(group.rows)}"


def _range(group: Group) -> str:
    if group.score is None:
        return "-"
    scores = group.scores
    return f"{group.score:.3f} ({min(scores):.3f} to {max(scores):.3f})" if len(scores) > 1 else f"{group.score:.3f}"


def _of(name: str) -> Callable[[Group], Any]:
    return lambda group: _number(group.mean(lambda row: row["evaluation"].get(name)))


def _shown(value_of: Callable[[Group], Any], form: str) -> Callable[[Group], str]:
    def text(group: Group) -> str:
        value = value_of(group)
        return "-" if value == "" else format(value, form)

    return text


def _about(group: Group) -> str:
    return {"demonstrations": "data"}.get(about := str(group.rows[0]["facts"].get("certified_about") or "-"), about)


def _number(value: float | None) -> float | str:
    """Return what a table is sorted by; empty is last."""
    return "" if value is None else value


def _table(columns: Sequence[Column], entries: Sequence[Any], anchor: str = "") -> str:
    head = "".join(f'<th data-sort="{kind}"><button type="button">{name}</button></th>' for name, kind, _, _ in columns)
    lines = []
    for entry in entries:
        cells = "".join(
            f'<td data-value="{html.escape(str(key_of(entry)))}">{html.escape(text_of(entry))}</td>'
            for _, _, key_of, text_of in columns
        )
        lines.append(f"<tr>{cells}</tr>")
    named = f' id="{anchor}"' if anchor else ""
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return f'<div class="table" tabindex="0"><table{named}>{body}</table></div>'


def _legend(styles: dict[str, figures.Style]) -> str:
    buttons = "".join(
        f'<button type="button" aria-pressed="true" data-learner="{html.escape(learner)}">'
        f'<span class="swatch" style="color:{_themed(style.color)}">{style.symbol}</span>'
        f"{html.escape(learner)}</button>"
        for learner, style in styles.items()
    )
    return f'<div class="legend" aria-label="show or hide learners in all charts">{buttons}</div>'


def _environment(
    charts: _Charts, results: ResultsFolder, label: str, rows: Sequence[Row], styles: dict[str, figures.Style]
) -> str:
    parts = []
    if any(group.scores for group in groups_of(rows)):
        name, title = f"scores-{label}", f"{label}: score of each learner"
        caption = "Large: the mean over seeds, small: each seed. Scores below -0.25 are drawn there."
        parts.append(charts.add(name, figures.scores_by_learner(rows, styles, title, name), caption))
        name, title = f"seconds-{label}", f"{label}: score over processor time"
        caption = "Mean score against the time of learning; the larger, the more demonstrations."
        parts.append(charts.add(name, figures.scores_over_seconds(rows, styles, title, name), caption))
    if len({row["n_demonstrations"] for row in rows}) > 1:
        name, title = f"curves-{label}", f"{label}: over the number of demonstrations"
        caption = "Mean over seeds, bars from the worst to the best; learners stand side by side."
        parts.append(charts.add(name, figures.curves_over_demonstrations(rows, styles, name, title), caption))
    if any(row["facts"].get("true_weights") is not None for row in rows) and any(map(_has_weights, rows)):
        name, title = f"weights-{label}", f"{label}: recovered cost weights"
        caption = "Mean over runs, beside the true ones."
        parts.append(charts.add(name, figures.recovered_weights(rows, styles, name, title), caption))
    if any(row["facts"].get("certified_parts") is not None for row in rows):
        name, title = f"parts-{label}", f"{label}: what the certified bounds consist of"
        caption = "Means over seeds. Where the model is known, what it says of the expert can make a bound smaller."
        parts.append(charts.add(name, figures.certified_parts(rows, title, name), caption))
    table = _groups_table(groups_of(rows))
    return f'{table}<div class="figures">{"".join(parts)}</div>{_maps(results, label, rows)}'


def _has_weights(row: Row) -> bool:
    return row["facts"].get("cost_weights") is not None


def _maps(results: ResultsFolder, label: str, rows: Sequence[Row]) -> str:
    return "".join(
        _gallery(heading, note, pictures(results, label, rows))
        for heading, note, pictures in (
            ("Where policies differ from the expert", _MAPS_NOTE, policy_maps),
            ("What policies do where", _PORTRAITS_NOTE, phase_portraits),
        )
    )


def _gallery(heading: str, note: str, pictures: Iterable[tuple[str, bytes]]) -> str:
    """Show pictures with their captions; captions without a picture come below."""
    drawn, same = [], []
    for text, picture in pictures:
        if picture:
            drawn.append(f"<figure>{_image(picture, text)}<figcaption>{html.escape(text)}</figcaption></figure>")
        else:
            same.append(html.escape(text))
    if not drawn:
        return ""
    rest = f'<p class="note">{"; ".join(same)}.</p>' if same else ""
    return f'<h3>{heading}</h3><p class="note">{note}</p><div class="maps">{"".join(drawn)}</div>{rest}'


def _certificates(charts: _Charts, rows: Sequence[Row], styles: dict[str, figures.Style]) -> str:
    if not any(row["facts"].get("certified_distance") is not None for row in rows):
        return "<p>None.</p>"
    caption = "Each run. Where the model is known, what it says of the expert may bring a bound below what was found."
    figure = figures.certificates(rows, styles, "Certified bounds, and distances found")
    return f'<div class="figures">{charts.add("certificates", figure, caption)}</div>'


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
    files = {
        "results.jsonl": "every run, a line of JSON each",
        "spec.json": "what was run",
        "figures/": "the charts as PNG and SVG",
        "policies/": "what was learned",
        "demonstrations/": "what was shown",
    }
    links = "".join(
        f'<li><a href="{name}">{name}</a>: {what}</li>'
        for name, what in files.items()
        if (results.path / name).exists()
    )
    return (
        f"<p>Beside this page:</p><ul>{links}</ul><p>With spec.json everything is run again:</p>"
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
        drawing = _rendered(figure, "svg", name, transparent=True).decode()
        drawing = _themed(drawing[drawing.index("<svg") :])
        return f"<figure>{drawing}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _themed(drawing: str) -> str:
    """Let what is black take the colour of the page's text, which is light on a dark page."""
    return drawing.replace("#000000", "currentColor")


def _rendered(figure: Figure, suffix: str, salt: str, *, transparent: bool = False) -> bytes:
    import matplotlib

    buffer = io.BytesIO()
    # Text stays text, and ids are salted by the figure's name: several drawings share one page.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt, "font.family": "sans-serif"}):
        metadata = {"Date": None} if suffix == "svg" else {}
        figure.savefig(buffer, format=suffix, dpi=150, metadata=metadata, transparent=transparent)
    return buffer.getvalue()


def _image(png: bytes, text: str) -> str:
    return f'<img alt="{html.escape(text)}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'


def _section(title: str, content: str, anchor: str) -> str:
    return f'<section id="{html.escape(anchor)}"><h2>{html.escape(title)}</h2>{content}</section>'


def _page(body: str) -> str:
    assets = resources.files("lfd_gym.benchmark") / "report-assets"
    style, script = ((assets / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>Benchmark report</title><style>{style}</style></head>"
        f"<body>{body}<script>{script}</script></body></html>"
    )


def _list(values: Iterable[int | str]) -> str:
    return ", ".join(str(value) for value in values)
