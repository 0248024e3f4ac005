"""More right calls: environments that step, learners and their settings, bounds and statistics, pictures, saving.

`fuzz_calls` has the others and makes `Call`s of all of them.
"""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import lfd_gym as lfd
from lfd_gym import baselines, confidence, datasets, envs, features, plots, testing
from lfd_gym.assessment import bounds, logged_data, statistics
from lfd_gym.envs.adapters import as_generative_model

Given = dict[str, tuple[Callable[..., Any], dict[str, Any]]]

#: Learners that learn in milliseconds on the tiny task, and how much they are given to do.
QUICK = {
    "abbeel_ng": 20, "apprentice_bc": 0, "expert": 0, "lpal": 0, "mirror_descent": 200, "mwal": 50, "plug_in": 100,
    "primal_dual_hybrid": 100, "random": 0, "mce_irl": 4,
}  # fmt: skip


def more_calls(t: dict[str, Any]) -> Given:
    """Return calls of what `fuzz_calls` leaves out, by name, given its things."""
    return _stepping(t) | _learners(t) | _bounds_and_statistics() | _results(t) | _saving(t) | _grids_and_features()


def slow_calls(t: dict[str, Any]) -> Given:
    """Return calls that take tens of milliseconds each, which are drawn less often."""
    task, policy = t["task"], t["policy"]
    solution = lfd.solve_mirror_descent(t["problem"], t["model"], 2000, np.random.default_rng(0), progress=False)
    evaluation = lfd.evaluate(policy, task, rng=np.random.default_rng(0))
    certificate = lfd.certify(policy, task, rng=np.random.default_rng(0))
    return {
        "plots.draw_policy": (plots.draw_policy, {"policy": policy, "task": task, "axes": None}),
        "plots.draw_occupancy": (plots.draw_occupancy, {"policy": policy, "task": task, "axes": None}),
        "plots.draw_values": (
            plots.draw_values,
            {"values": np.array([0.1, 0.2]), "task": task, "axes": None, "policy": policy},
        ),
        "plots.draw_residuals": (plots.draw_residuals, {"solution": solution, "axes": None}),
        "plots.draw_comparison": (
            plots.draw_comparison,
            {"evaluations": {"one": evaluation}, "quantity": "cost_distance", "axes": None},
        ),
        "certificate.needed": (certificate.needed, {"bound": 1.0}),
        "plots.draw_certificate": (plots.draw_certificate, {"certificate": certificate, "axes": None}),
    }


def _stepping(t: dict[str, Any]) -> Given:
    tabular, vector = t["swap"], envs.FiniteVectorEnv(t["swap"], num_envs=2, max_episode_steps=5)
    grid = envs.StochasticGridworldEnv(size=3)
    tabular.reset(seed=0)
    simulator = as_generative_model(gym.make("CartPole-v1"))
    states = simulator.sample_initial(2, np.random.default_rng(0))

    def step(env):
        def reset_and_step(**given):
            env.reset(seed=0)
            return env.step(**given)

        return reset_and_step

    def of_episode(part):
        return lambda **given: getattr(grid, part)(**given)

    return {
        "swap.step": (step(tabular), {"action": 1}),
        "swap.reset": (tabular.reset, {"seed": 0, "options": None}),
        "swap.set_state": (tabular.set_state, {"state": 1}),
        "grid.step": (step(grid), {"action": 1}),
        "grid.reset": (of_episode("reset"), {"seed": 0, "options": None}),
        "vector.step": (step(vector), {"actions": np.array([0, 1])}),
        "vector.reset": (vector.reset, {"seed": 0, "options": None}),
        "simulator.sample_next": (
            simulator.sample_next,
            {"states": states, "actions": np.array([0, 1]), "rng": np.random.default_rng(0)},
        ),
        "simulator.sample_initial": (simulator.sample_initial, {"n": 3, "rng": np.random.default_rng(0)}),
        "simulator.observe": (simulator.observe, {"states": states}),
        "simulator.is_absorbing": (simulator.is_absorbing, {"states": states}),
    }


def _settings(kind: type) -> dict[str, Any]:
    """Return the fields of a dataclass that can be given, at their defaults."""
    found = {}
    for part in fields(kind) if is_dataclass(kind) else ():
        if part.init:
            found[part.name] = part.default if part.default is not MISSING else part.default_factory()
    return found


def _learners(t: dict[str, Any]) -> Given:
    rng = np.random.default_rng(0)
    given: Given = {}
    for name in baselines.learner_names():
        try:
            kind = type(baselines.make_learner(name))
        except ImportError:  # the extra that it needs is not installed
            continue
        settings = _settings(kind)
        if settings:
            given[f"learner {name}"] = (kind, settings)
        if name in QUICK:
            given[f"learn {name}"] = (
                lfd.learn,
                {"task": t["task"], "learner": name, "rng": rng, "budget": QUICK[name] or None},
            )
    return given | {
        "testing.check_learner": (
            testing.check_learner,
            {"learner": t["learner"], "task": t["task"], "budget": None, "seed": 0},
        ),
        "optimal_policy": (lfd.optimal_policy, {"env": t["swap"], "discount": 0.8, "rng": rng}),
    }


def _bounds_and_statistics() -> Given:
    rng = np.random.default_rng(0)
    size = bounds.ProblemSize(4, 2, 2.0, 0.8)
    scores = np.random.default_rng(1).random((3, 6))
    return {
        "ProblemSize": (
            bounds.ProblemSize,
            {"n_occupancy_features": 4, "n_costs": 2, "value_radius": 2.0, "discount": 0.8},
        ),
        "paper_step_size": (bounds.paper_step_size, {"size": size, "n_iterations": 100}),
        "residual_bound": (
            bounds.residual_bound,
            {"size": size, "n_iterations": 100, "delta": 0.1, "step_size": 0.1},
        ),
        "iterations_for": (bounds.iterations_for, {"size": size, "accuracy": 0.5, "delta": 0.1}),
        "theorem_1": (bounds.theorem_1, {"size": size, "accuracy": 0.5, "delta": 0.1}),
        "accuracy_after": (
            bounds.accuracy_after,
            {"size": size, "n_iterations": 100, "n_trajectories": 10, "horizon": 20, "delta": 0.1},
        ),
        "required_trajectories": (
            bounds.required_trajectories,
            {"accuracy": 0.1, "n_features": 3, "delta": 0.1},
        ),
        "required_horizon": (bounds.required_horizon, {"accuracy": 0.1, "discount": 0.9}),
        "interquartile_mean": (statistics.interquartile_mean, {"scores": scores, "axis": 0}),
        "run_interval": (
            statistics.run_interval,
            {"scores": scores, "rng": rng, "confidence": 0.95, "n_resamples": 20},
        ),
        "performance_profile": (
            statistics.performance_profile,
            {"scores": scores, "thresholds": np.array([0.1, 0.5])},
        ),
        "probability_of_improvement": (
            statistics.probability_of_improvement,
            {"scores": scores, "others": scores / 2},
        ),
        "confidence.lower_bound": (
            confidence.lower_bound,
            {"samples": scores.T, "delta": 0.1, "planned": 6, "copies": 1.0},
        ),
        "confidence.upper_bound": (
            confidence.upper_bound,
            {"samples": scores.T, "delta": 0.1, "planned": 6, "copies": 1.0},
        ),
        "mean_bound": (logged_data.mean_bound, {"samples": scores[0], "delta": 0.1, "copies": 1.0}),
    }


def _results(t: dict[str, Any]) -> Given:
    estimate, costs = t["estimate"], t["costs"]
    cost = lfd.RecoveredCost(costs, np.array([0.5, 0.5]))
    result = lfd.learn(t["task"], "cutting_plane", rng=np.random.default_rng(0))
    return {
        "CostEstimate": (
            lfd.CostEstimate,
            {name: getattr(estimate, name) for name in estimate.__dataclass_fields__},
        ),
        "RecoveredCost": (lfd.RecoveredCost, {"costs": costs, "weights": np.array([0.5, 0.5])}),
        "recovered": (cost, {"observations": np.array([0, 1]), "actions": np.array([1, 0])}),
        "recovered.reward_wrapper": (cost.reward_wrapper, {"env": t["swap"]}),
        "LearningResult": (
            lfd.LearningResult,
            {"policy": t["tabular policy"], "cost_weights": result.cost_weights, "costs": costs, "learner": "bc"},
        ),
        "SaddlePoint": (lfd.SaddlePoint, dict(t["point"]._asdict())),
        "task.assess": (t["task"].assess, {"policy": t["policy"], "rng": np.random.default_rng(0)}),
        "datasets.load": (datasets.load, {"name": datasets.names()[0]}),
        "datasets.info": (datasets.info, {"name": datasets.names()[0]}),
    }


def _saving(t: dict[str, Any]) -> Given:
    folder = Path(tempfile.mkdtemp(prefix="lfd-gym-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)

    def saving(save):
        """Relative paths, of which the wrong ones have some, are put into a folder of ours."""

        def save_there(path, **given):
            inside = isinstance(path, (str, Path)) and "\0" not in str(path)
            return save(path=folder / Path(path).name if inside else path, **given)

        return save_there

    return {
        "save_policy": (saving(lfd.save_policy), {"policy": t["policy"], "path": "policy.npz", "overwrite": True}),
        "demos.save": (saving(t["demos"].save), {"path": "demonstrations.npz", "overwrite": True}),
    }


def _grids_and_features() -> Given:
    rng = np.random.default_rng(0)
    tiles = features.TileGrid([0.0], [1.0], (3,))
    fourier = features.RandomFourierFeatures(4, np.ones(3), rng)
    return {
        "tiles.index": (tiles.index, {"points": np.array([[0.2], [0.7]])}),
        "tiles.sample": (tiles.sample, {"tiles": np.array([0, 2]), "rng": rng}),
        "fourier features": (fourier.evaluate, {"observations": np.zeros((2, 3))}),
        "grid of a simulator": (
            lfd.GridModel,
            {
                "simulator": as_generative_model(gym.make("MountainCar-v0")),
                "grid": lfd.Grid([np.linspace(-1.2, 0.4, 4), np.linspace(-0.07, 0.07, 4)]),
                "discount": 0.9,
                "rng": rng,
                "repeat": 2,
                "rewarded": False,
            },
        ),
    }
