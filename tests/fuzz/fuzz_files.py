"""Files of every format that is read: right ones, and what reads them; those of other packages where there are any."""

import atexit
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import lfd_gym as lfd
from lfd_gym.benchmark.reading import read_spec
from lfd_gym.benchmark.results import ResultsFolder
from lfd_gym.training.run_folder import read_config

SPEC = """{"environments": [{"label": "grid", "env_id": "lfd_gym/StochasticGridworld-v0", "discount": 0.9,
"horizon": 20, "kwargs": {"size": 3}}], "learners": [{"name": "tabular_bc"}], "n_demonstrations": [2], "seeds": [0]}"""
ROW = b'{"cell": "grid/tabular_bc/m=2/seed=0", "status": "ok", "evaluation": {"expected_costs": [0.5]}}\n'


def files(t: dict[str, Any]) -> dict[str, tuple[Callable[..., Any], bytes]]:
    """For the name of a file of each format: a function that reads it from its bytes, and the bytes of a right one."""
    folder = Path(tempfile.mkdtemp(prefix="lfd-gym-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    problem = t["problem"]

    def solve(path):
        rng = np.random.default_rng(0)
        return lfd.solve_mirror_descent(problem, t["model"], 300, rng, checkpoint=path, progress=False)

    def rows(path):
        (path.parent / "spec.json").write_text(SPEC)
        return ResultsFolder.open(path.parent).rows()

    def reading(load):
        def read(**content):
            ((name, data),) = content.items()
            path = folder / name
            right = path.read_bytes()
            path.write_bytes(data)
            try:
                return load(path)
            finally:
                path.write_bytes(right)  # other files of the same folder are read beside it

        return read

    t["demos"].save(folder / "demonstrations.npz")
    lfd.save_policy(t["mixture"], folder / "policy.npz")
    solve(folder / "checkpoint.npz")
    (folder / "spec.json").write_text(SPEC)
    (folder / "results.jsonl").write_bytes(ROW)
    (folder / "config.json").write_text('{"env": "CartPole-v1", "discount": 0.9, "env_kwargs": ["size=3"]}')
    readers: dict[str, Callable[[Path], Any]] = {
        "demonstrations.npz": lfd.Demonstrations.load,
        "policy.npz": lfd.load_policy,
        "checkpoint.npz": solve,
        "spec.json": read_spec,
        "results.jsonl": rows,
        "config.json": lambda path: read_config(path.parent),
    }
    for add in (_of_imitation, _of_minari, _of_stable_baselines):
        readers |= add(t["demos"], folder)
    return {name: (reading(load), (folder / name).read_bytes()) for name, load in readers.items()}


def _has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _of_imitation(demos: lfd.Demonstrations, folder: Path) -> dict[str, Callable[[Path], Any]]:
    """Write a folder of Arrow files, of which any may be damaged."""
    if not _has("imitation"):
        return {}
    from lfd_gym.demonstrations.interop_imitation import save_dataset, to_demonstrations

    save_dataset(demos, folder / "arrow")
    spaces = demos.observation_space, demos.action_space
    files = sorted(path.relative_to(folder).as_posix() for path in (folder / "arrow").iterdir())
    return dict.fromkeys(files, lambda path: to_demonstrations(path.parent, *spaces))


def _of_minari(demos: lfd.Demonstrations, folder: Path) -> dict[str, Callable[[Path], Any]]:
    """Write a data set, HDF5 and its description."""
    if not _has("minari"):
        return {}
    from lfd_gym.demonstrations.interop_minari import create_dataset, dataset_path, from_dataset

    os.environ["MINARI_DATASETS_PATH"] = str(folder / "minari")
    create_dataset(demos, "fuzz/swap-v0")
    files = [path for path in sorted(dataset_path("fuzz/swap-v0").rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): lambda path: from_dataset("fuzz/swap-v0") for path in files}


def _of_stable_baselines(demos: lfd.Demonstrations, folder: Path) -> dict[str, Callable[[Path], Any]]:
    """Write a model."""
    if not _has("stable_baselines3"):
        return {}
    from stable_baselines3 import PPO

    from lfd_gym.demonstrations.sb3_expert import load_expert

    env = gym.make("CartPole-v1")
    PPO("MlpPolicy", env, device="cpu", n_steps=8, batch_size=8, policy_kwargs={"net_arch": [4]}).save(folder / "model")
    return {"model.zip": lambda path: load_expert(path, env.observation_space, env.action_space)}
