"""Checkpoints that were changed, with a checksum that fits: refused before the kernel follows them.

Each is continued in a process of its own with a time limit, so that a crash or a hang fails one test.
"""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from descent_problems import Simulator, gridworld_problem

from lfd_gym.files import FileContentError
from lfd_gym.solvers.descent.mirror_descent import solve_mirror_descent
from lfd_gym.solvers.descent.solver_checkpoint import load_checkpoint, save_checkpoint

N = 3000


def solve(path, simulated=False, n=N):
    problem, model = gridworld_problem(size=3)
    model = Simulator(model) if simulated else model
    options = {"checkpoint": path, "progress": False, "anytime": True, "batch_size": 8}
    return solve_mirror_descent(problem, model, n, np.random.default_rng(0), **options)


def set_field(array, field, value, index=0):
    def change(description, arrays):
        arrays[array] = arrays[array].copy()
        if field is None:
            arrays[array].flat[index] = value
        else:
            arrays[array][field][index] = value

    return change


COMPILED = {
    "alias beyond": set_field("sampler_weights", "alias", 10**9),
    "alias negative": set_field("sampler_weights", "alias", -(10**9)),
    "value zero": lambda d, a: a["sampler_weights"].__setitem__("value", 0.0),
    "one value zero": set_field("sampler_weights", "value", 0.0),
    "value nan": set_field("sampler_weights", "value", np.nan),
    "values negligible": lambda d, a: a["sampler_weights"].__setitem__("value", 1e-250),
    "base zero": lambda d, a: a["sampler_weights"].__setitem__("base", 0.0),
    "value above ceiling": set_field("sampler_weights", "value", 1e100),
    "since ahead": set_field("sampler_weights", "since", 1e9),
    "sum changed": set_field("sampler_weights", "sum", 1e6),
    "rise beyond": set_field("sampler_rises", "index", 2**40),
    "n_rises beyond": set_field("sampler_numbers", "n_rises", 10**6),
    "n_rises negative": set_field("sampler_numbers", "n_rises", -5),
    "total zero": set_field("sampler_numbers", "total", 0.0),
    "total nan": set_field("sampler_numbers", "total", np.nan),
    "mass zero": set_field("sampler_numbers", "mass", 0.0),
    "excess": set_field("sampler_numbers", "excess", 1e30),
    "until_rebuild": set_field("sampler_numbers", "until_rebuild", 2**62),
    "waste": set_field("sampler_numbers", "waste", -(2**62)),
    "stack": set_field("sampler_stack", None, -1),
    "scale zero": set_field("player_numbers", "scale", 0.0),
    "λ nan": set_field("player_entries", "value", np.nan),
    "iteration negative": set_field("counters", "iteration", -1),
    "proposals negative": set_field("counters", "for_j", -(2**62)),
    "iteration changed": set_field("counters", "iteration", 7),
    "w infinite": set_field("cost_weights", None, np.inf),
    "a shape": lambda d, a: a.update(sampler_weights=a["sampler_weights"][:1]),
    "a dtype": lambda d, a: a.update(cost_weights=a["cost_weights"].astype(np.float32)),
}
BOTH = {
    "marks": set_field("run_marks", None, -1.0),
    "marks nan": set_field("run_marks", None, np.nan),
    "marks shape": lambda d, a: a.update(run_marks=np.zeros(1)),
    "history shape": lambda d, a: a.update(run_history=np.zeros(3)),
    "history nan": lambda d, a: a.update(run_history=np.full((1, 2), np.nan)),
    "history later": lambda d, a: a.update(run_history=np.array([[1e9, 0.1]])),
    "missing": lambda d, a: a.pop("run_marks"),
    "norms": lambda d, a: d.update(norms=[float("nan"), 1.0]),
    "one norm": lambda d, a: d.update(norms=[1.0]),
    "seconds": lambda d, a: d.update(seconds=float("inf")),
    "no seconds": lambda d, a: d.pop("seconds"),
}
SIMULATED = {
    "counter": set_field("counter", None, -3),
    "counter changed": set_field("counter", None, 3),
    "log_theta nan": set_field("log_theta", None, np.nan),
    "log_theta large": set_field("log_theta", None, 900.0),
    "broadcast": lambda d, a: a.update(log_theta=np.zeros(1)),
    "lambda": set_field("lambda", None, np.inf),
    "generator": lambda d, a: a.update(generator=np.array("{}")),
    "another generator": lambda d, a: a.update(generator=np.array('{"bit_generator": "MT19937"}')),
}
CASES = [(False, name) for name in COMPILED | BOTH] + [(True, name) for name in SIMULATED | BOTH]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    for simulated in (False, True):
        solve(folder / f"{simulated}.npz", simulated, n=400 if simulated else 2000)
    return folder


@pytest.mark.parametrize(
    ("simulated", "name"), CASES, ids=[f"{'simulated' if s else 'compiled'}: {n}" for s, n in CASES]
)
def test_a_changed_checkpoint_is_refused(checkpoints, tmp_path, simulated, name):
    description, arrays = load_checkpoint(checkpoints / f"{simulated}.npz")
    ((SIMULATED if simulated else COMPILED) | BOTH)[name](description, arrays)
    path = tmp_path / "run.npz"
    save_checkpoint(path, {k: v for k, v in description.items() if k != "format"}, arrays)
    with pytest.raises(FileContentError) as caught:
        solve(path, simulated)
    assert str(path) in str(caught.value)


def test_random_changes_never_end_the_process(checkpoints, tmp_path):
    """Numbers anywhere in a checkpoint, changed at random: what is not refused runs to its end."""
    rng = np.random.default_rng(0)
    paths = []
    for k in range(150):
        description, arrays = load_checkpoint(checkpoints / "False.npz")
        name = rng.choice(sorted(name for name, array in arrays.items() if array.nbytes))
        content = bytearray(arrays[name].tobytes())
        content[rng.integers(len(content))] ^= 1 << rng.integers(8)
        arrays[name] = np.frombuffer(bytes(content), arrays[name].dtype).reshape(arrays[name].shape)
        paths.append(str(tmp_path / f"{k}.npz"))
        save_checkpoint(tmp_path / f"{k}.npz", {k: v for k, v in description.items() if k != "format"}, arrays)
    code = f"""
import sys, json, pathlib
sys.path.insert(0, {str(pathlib.Path(__file__).parents[2])!r})
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
from test_crafted_checkpoints import solve
counts = [0, 0]
for path in json.loads({json.dumps(json.dumps(paths))}):
    try:
        solution = solve(pathlib.Path(path))
    except ValueError as error:
        assert path in str(error) or "n_iterations" in str(error), error
        counts[0] += 1
    else:
        assert solution.cost_weights.sum() == solution.cost_weights.sum()
        counts[1] += 1
print(*counts)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    n_refused, n_run = map(int, done.stdout.split())
    assert n_refused + n_run == 150
    assert n_refused > 20


def test_a_changed_byte_does_not_pass_the_checksum(checkpoints, tmp_path):
    path = tmp_path / "run.npz"
    _, arrays = load_checkpoint(checkpoints / "False.npz")
    content = (checkpoints / "False.npz").read_bytes()
    seeds = arrays["seeds"].tobytes()
    place = content.index(seeds)
    damaged = bytearray(content)
    damaged[place] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(FileContentError, match=r"run\.npz"):
        load_checkpoint(path)
    with np.load(checkpoints / "False.npz") as archive:  # whole again as an archive, but not what was written
        members = {name: archive[name] for name in archive.files}
    members["seeds"] = members["seeds"] + np.uint64(1)
    np.savez(path, **members)
    with pytest.raises(FileContentError, match="does not match its checksum"):
        load_checkpoint(path)
