"""Results that were torn or crafted are named by file and line; labels that are markup are shown as text."""

import html
import json
from html.parser import HTMLParser

import pytest

from lfd_gym import cli
from lfd_gym.benchmark import (
    BenchmarkSpec,
    EnvironmentSpec,
    LearnerSpec,
    ProcessEngine,
    ResultsFolder,
    run_benchmark,
)
from lfd_gym.benchmark.reading import read_spec
from lfd_gym.benchmark.report import write_report
from lfd_gym.files import FileContentError

LABEL = '<plaintext>"&'


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmark") / "run"
    spec = BenchmarkSpec(
        environments=(EnvironmentSpec(LABEL, "lfd_gym/StochasticGridworld-v0", 0.9, 20, {"size": 3}),),
        learners=(LearnerSpec("tabular_bc", label="<script>bc"),),
        n_demonstrations=(2,),
        seeds=(0, 1),
    )
    run_benchmark(spec, folder, ProcessEngine(1))
    return folder


class Tags(HTMLParser):
    """Collects the tags of a page, and what its links and sections are called."""

    def __init__(self):
        super().__init__()
        self.tags, self.ids, self.links = set(), set(), set()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        found = dict(attributes)
        self.ids.add(found.get("id"))
        if tag == "a":
            self.links.add(found.get("href", ""))


def test_labels_are_text_everywhere(finished):
    text = write_report(finished).read_text(encoding="utf-8")
    assert "<plaintext" not in text
    assert "<script>bc" not in text
    assert html.escape(LABEL) in text
    page = Tags()
    page.feed(text)
    assert "plaintext" not in page.tags
    assert f"env-{LABEL}" in page.ids
    assert f"#env-{LABEL}" in page.links


@pytest.mark.parametrize(
    "line", ['{"cell": "a", "sta{"cell": 3}', "[]", '{"cell": 1, "status": "ok"}', "\x00", b'{"cell": "\xe5"}']
)
def test_torn_rows_are_named_and_can_be_dropped(finished, tmp_path, capsys, line):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "spec.json").write_bytes((finished / "spec.json").read_bytes())
    rows = (finished / "results.jsonl").read_text().splitlines()
    line = line if isinstance(line, bytes) else line.encode()
    (folder / "results.jsonl").write_bytes(b"\n".join([rows[0].encode(), line, rows[1].encode()]) + b"\n")
    results = ResultsFolder.open(folder)
    with pytest.raises(FileContentError, match=r"results\.jsonl, line 2 is no result"):
        results.rows()
    assert cli.main(["report", str(folder)]) == 2
    assert "results.jsonl, line 2" in capsys.readouterr().err
    assert results.drop_torn_rows() == [2]
    assert results.drop_torn_rows() == []
    assert [json.dumps(row) for row in results.rows()] == rows


def test_specs_of_many_seeds_are_checked_in_linear_time():
    axes = {
        "environments": (EnvironmentSpec("grid", "lfd_gym/StochasticGridworld-v0", 0.9, 20),),
        "learners": (LearnerSpec("tabular_bc"),),
        "n_demonstrations": (2,),
    }

    class Counted(int):
        compared = 0

        def __eq__(self, other):
            Counted.compared += 1
            return int(self) == int(other)

        __hash__ = int.__hash__

    BenchmarkSpec(**axes, seeds=tuple(Counted(k) for k in range(5000)))
    assert Counted.compared < 50_000
    with pytest.raises(ValueError, match="seeds must be distinct, but 7 occurs more than once"):
        BenchmarkSpec(**axes, seeds=(*range(5000), 7))


@pytest.mark.parametrize("text", ["", "[", "[1]", "[" * 100_000, '{"environments": 3}', '{"environments": [3]}'])
def test_specs_that_are_none_are_refused_by_name(tmp_path, text):
    (tmp_path / "spec.json").write_text(text)
    with pytest.raises(FileContentError, match=r"spec\.json is not a JSON file of a benchmark"):
        read_spec(tmp_path / "spec.json")


@pytest.mark.parametrize("name", ["results.jsonl", "report.html"])
def test_a_stranger_s_files_of_these_names_are_left_alone(tmp_path, name):
    (tmp_path / name).write_text("mine, without an end of line")
    spec = BenchmarkSpec(
        environments=(EnvironmentSpec("grid", "lfd_gym/StochasticGridworld-v0", 0.9, 20, {"size": 3}),),
        learners=(LearnerSpec("tabular_bc"),),
        n_demonstrations=(2,),
        seeds=(0,),
    )
    with pytest.raises(FileExistsError, match="use a new folder"):
        run_benchmark(spec, tmp_path, ProcessEngine(1))
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine, without an end of line"
