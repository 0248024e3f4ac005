"""Do the tests notice when a formula changes? Random mutations, one at a time.

    python scripts/mutate.py --count 20 lfd_gym/confidence.py:tests/test_confidence.py

Each module is followed by the tests that should notice, with commas between them. A mutant changes one operator,
comparison, constant, or one of min and max, in a copy of the package that nothing else sees; the tests that are given
run until the first failure or the time limit. Those that no test noticed are printed with their line: each is either a
change of nothing, or asks for a test. Mutants have numbers, that of their place in the module: ``--only 7 12`` makes
these again.
"""

import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import tyro

ROOT = Path(__file__).resolve().parents[1]
#: What an operator or a comparison is replaced by.
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And, ast.USub: ast.UAdd,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "upper": "lower", "lower": "upper"}
NAMES |= {"lower_bound": "upper_bound", "upper_bound": "lower_bound", "any": "all", "all": "any"}
#: How much longer than without a change the tests may take.
_LONGER = 3


@dataclass(frozen=True)
class Mutate:
    """Change modules at random, and see whether their tests notice."""

    modules: tyro.conf.Positional[tuple[str, ...]]
    """MODULE:TEST,TEST,… relative to the project."""
    count: int = 20
    """How many mutants of each module."""
    seed: int = 0
    """Which ones."""
    only: tuple[int, ...] = ()
    """The numbers of those to make, in place of so many random ones."""
    without: str = "cover or met_about or as_often or hold_together or keeps_its_level"
    """Which tests are left out, as pytest's -k takes it: simulations, which take long and notice little."""
    seconds: float = 120.0
    """What a run of the tests takes at most; one that takes longer has noticed."""


def places(tree: ast.AST) -> list[ast.AST]:
    """Return the nodes that can be mutated, outside of annotations, texts and messages."""
    found: list[ast.AST] = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
            return
        number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
        changes = number or type(getattr(node, "op", None)) in OPERATORS
        changes |= isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS
        if changes or name_of(node) in NAMES:
            found.append(node)
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns", "decorator_list"):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        visit(child)

    visit(tree)
    return found


def name_of(node: ast.AST) -> str | None:
    """Return the name that is called."""
    if not isinstance(node, ast.Call):
        return None
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)


def mutate(node: ast.AST, rng: random.Random) -> None:
    """Change one thing about ``node``."""
    if isinstance(node, ast.Constant):
        node.value = rng.choice([node.value + 1, 2 * node.value if node.value else -1])
    elif isinstance(node, ast.Compare):
        node.ops[0] = OPERATORS[type(node.ops[0])]()
    elif isinstance(node, ast.Call):
        other = NAMES[name_of(node) or ""]
        if isinstance(node.func, ast.Attribute):
            node.func.attr = other
        elif isinstance(node.func, ast.Name):
            node.func.id = other
    else:
        node.op = OPERATORS[type(node.op)]()  # type: ignore[attr-defined]


def copied(folder: Path) -> None:
    """Put a copy of the package there, with what its links lead to, and links to what tests read beside it."""
    shutil.copytree(ROOT / "lfd_gym", folder / "lfd_gym", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("tests", "docs", "envs", "baselines", "benchmarks", "README.md", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)


def noticed(folder: Path, tests: list[str], without: str, seconds: float) -> bool:
    """Run the tests against the copy of the package, the same examples every time."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", *tests]
    command += ["-k", f"not ({without})"] if without else []
    own = {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "NUMBA_CACHE_DIR": str(folder / "kernels"), "CI": "1"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    run = subprocess.Popen(command, cwd=folder, env=os.environ | own, start_new_session=True, **quiet)  # type: ignore[call-overload]
    try:
        return bool(run.wait(seconds) != 0)
    except subprocess.TimeoutExpired:
        return True
    finally:  # with what it has started
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()


def write(target: Path, text: str) -> None:
    """Put ``text`` there with a time that no other text had: by second and size caches tell what has changed."""
    latest = int(target.stat().st_mtime)
    target.write_text(text, encoding="utf-8")
    os.utime(target, (latest + 1, latest + 1))


def survivors(folder: Path, entry: str, asked: Mutate) -> tuple[int, int]:
    """Mutate one module; return how many mutants there were, and how many of these no test noticed."""
    module, _, listed = entry.partition(":")
    tests, text = listed.split(","), (ROOT / module).read_text(encoding="utf-8")
    target = folder / module
    if folder not in target.resolve().parents:
        raise SystemExit(f"{module}: only what is copied can be changed, name it by its place in lfd_gym/")
    n_places, missed = len(places(ast.parse(text))), 0
    write(target, ast.unparse(ast.parse(text)))
    began = time.monotonic()
    if noticed(folder, tests, asked.without, 10 * asked.seconds):
        raise SystemExit(f"{module}: its tests fail as it is")
    limit = min(asked.seconds, _LONGER * (time.monotonic() - began))
    rng = random.Random(f"{asked.seed} {module}")
    numbers = asked.only or rng.sample(range(n_places), min(asked.count, n_places))
    for number in numbers:
        tree = ast.parse(text)
        node = places(tree)[number]
        before = ast.unparse(node)
        mutate(node, random.Random(f"{asked.seed} {module} {number}"))
        write(target, ast.unparse(tree))
        seen = noticed(folder, tests, asked.without, limit)
        missed += not seen
        where = f"{module}:{getattr(node, 'lineno', 0)}"
        print(f"{'noticed' if seen else 'MISSED '} {number:4} {where}: {before}  →  {ast.unparse(node)}", flush=True)
    write(target, text)
    print(f"{module}: {len(numbers) - missed} of {len(numbers)} noticed", flush=True)
    return len(numbers), missed


def main() -> int:
    """Print every mutant, and whether it was noticed; return 1 if there are any that were not."""
    asked = tyro.cli(Mutate)
    with tempfile.TemporaryDirectory(prefix="lfd-gym-mutants-") as name:
        folder = Path(name).resolve()
        copied(folder)
        counts = [survivors(folder, entry, asked) for entry in asked.modules]
    total, missed = (sum(part) for part in zip(*counts, strict=True))
    print(f"{total - missed} of {total} mutants noticed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
