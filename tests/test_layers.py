"""The packages stand in layers: each knows itself and what is below it, nothing beside it or above it."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = (
    {"_jit", "arguments", "files", "resources", "validation"},
    {"_splitmix", "confidence", "engines", "spaces"},
    {"model"},
    {"costs", "policies"},
    {"envs", "features"},
    {"grids"},
    {"demonstrations", "solvers"},
    {"task", "datasets"},
    {"assessment", "baselines"},
    {"learning", "plots"},
    {"testing", "training", "benchmark"},
    {"paper"},
    {"commands"},
    {"cli"},
)
HEIGHTS = {name: height for height, layer in enumerate(LAYERS) for name in layer}


def sources():
    """Yield the part of the package a source file belongs to, and the file."""
    for folder in ("lfd_gym", "envs", "baselines"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            inside = file.relative_to(ROOT / folder)
            if folder != "lfd_gym":
                yield folder, file
            elif inside.parts[0] not in ("__init__.py", "envs", "baselines"):
                yield inside.parts[0].removesuffix(".py"), file


def imported_parts(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports by a relative path"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (name.split(".")[1] for name in names if name.startswith("lfd_gym."))


@pytest.mark.parametrize(
    ("part", "file"), [pytest.param(*pair, id=str(pair[1].relative_to(ROOT))) for pair in sources()]
)
def test_a_module_knows_only_what_is_below_it(part, file):
    above = {other for other in imported_parts(file) if other != part and HEIGHTS.get(other, 99) >= HEIGHTS[part]}
    assert not above - {"__version__"}


def test_every_part_has_its_layer():
    assert {part for part, _ in sources()} == set(HEIGHTS)


def test_solvers_know_no_environment():
    for part, file in sources():
        if part == "solvers":
            assert not {"envs", "demonstrations"} & set(imported_parts(file)), file


def test_only_where_data_and_learners_meet_it_is_imitation_known():
    for part, file in sources():
        if part not in ("demonstrations", "training", "baselines"):
            text = file.read_text(encoding="utf-8")
            assert "import imitation" not in text, file
            assert "from imitation" not in text, file


def test_no_learner_asks_for_rewards():
    asking = {part for part, file in sources() if "sample_rewarded" in file.read_text(encoding="utf-8")}
    assert asking == {"model", "envs", "grids", "demonstrations"}
    switched_on = {file.name for _, file in sources() if "rewarded=True" in file.read_text(encoding="utf-8")}
    assert switched_on == {"optimal_expert.py"}
