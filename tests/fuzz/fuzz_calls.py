"""Right calls of everything that is public, to be made wrong: each a function and arguments that it takes.

Reading a file is a call with the content as its argument. What trains networks or takes minutes is not here.
`fuzz_more_calls` holds the second half.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from fuzz_files import files
from fuzz_more_calls import more_calls, slow_calls

import lfd_gym as lfd
from lfd_gym import envs, features, testing
from lfd_gym.baselines import make_learner

#: Arguments that say how much is to be done: what is large is honest work there.
AMOUNTS = {
    "n_iterations", "n_trajectories", "horizon", "budget", "n_rollouts", "draws_per_pair", "n_draws", "n_samples",
    "n_per_column", "n_envs", "num_envs", "at_first", "at_most", "n_points", "repeat", "max_iterations", "count",
    "max_planner_calls", "n_frequencies", "n_states", "n_costs", "size", "cell_size", "max_vertices", "batch_size",
    "max_episode_steps", "n_successors", "axes", "counts", "n_actions", "n_steps", "tail", "n", "n_resamples",
}  # fmt: skip


@dataclass
class Call:
    """A function, where it is found, and arguments that it takes."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    #: Of how many draws of a slow call one is made.
    one_of: int = 1
    #: Whether NaN stands for something in what it returns: states that have ended; or it only keeps what it was given.
    means_nan: bool = False


def _swap():
    transitions = np.array(
        [
            [[0.6, 0.4], [0.1, 0.9]],
            [[0.3, 0.7], [1.0, 0.0]],
        ]
    )
    return lfd.FiniteMDP(transitions, [0.7, 0.3], 0.8)


def _things() -> dict[str, Any]:
    """Objects of ours that fit together."""
    rng = np.random.default_rng(0)
    mdp = _swap()
    table = np.array([[1.0, -0.5], [0.2, 0.3], [-1.0, 0.8], [0.4, -0.9]])
    model = lfd.TabularModel.of(mdp)
    policy = np.array([[0.25, 0.75], [0.5, 0.5]])
    demos, others = (lfd.collect(model, policy, 4, 6, rng) for _ in range(2))
    problem = lfd.SaddlePointProblem.tabular(mdp, table, [0.1, -0.2], value_radius=5.0)
    costs = lfd.TableCosts(table, 2)
    task = lfd.Task(mdp, demos, costs=costs, expert=policy, true_cost=table[:, 0])
    pole = gym.make("CartPole-v1", max_episode_steps=20)
    seen = rng.uniform(-1, 1, (9, 4))
    fourier = lfd.FourierCosts.from_samples(
        seen, rng.integers(2, size=9), pole.observation_space, pole.action_space,
        chosen_from_demonstrations=False, n_frequencies=4,
    )  # fmt: skip
    point = lfd.SaddlePoint(np.full(4, 0.25), np.array([0.5, -0.5]), np.array([0.5, 0.5]))
    return {
        "mdp": mdp,
        "table": table,
        "model": model,
        "policy": policy,
        "demos": demos,
        "others": others,
        "problem": problem,
        "costs": costs,
        "task": task,
        "pole": pole,
        "seen": seen,
        "fourier": fourier,
        "point": point,
        "swap": envs.TabularEnv(mdp.transitions, [0.7, 0.3], table),
        "estimate": lfd.feature_expectations(demos, table, 0.8),
        "criterion": lfd.Criterion(0.8, 6),
        "grid": lfd.Grid([np.linspace(-1, 1, 4), np.linspace(-2, 2, 3)]),
        "simplex": lfd.Simplex(),
        "ball": lfd.Ball(),
        "box": lfd.Box(),
        "tiles": features.TileGrid([0.0], [1.0], (3,)),
        "mixture": lfd.MixturePolicy([policy, policy], [0.5, 0.5]),
        "occupancies": features.TabularOccupancyFeatures(2, 2),
        "values": features.TabularValueFeatures(2),
        "rng": np.random.default_rng(5),
        "model task": lfd.Task(model, demos, discount=0.8, costs=costs),
        "tabular policy": lfd.as_policy(policy),
        "provenance": demos.provenance,
        "learner": make_learner("tabular_bc"),
    }


def calls_and_objects() -> tuple[list[Call], list[Any]]:
    """Return all calls, and objects that some arguments take and others do not."""
    t = _things()
    mdp, table, model, policy, demos = t["mdp"], t["table"], t["model"], t["policy"], t["demos"]
    others = t["others"]
    problem, task, seen, point, pole = t["problem"], t["task"], t["seen"], t["point"], t["pole"]
    rng, expert_features = np.random.default_rng(0), np.array([0.1, -0.2])
    vector, radii = np.array([0.3, -0.2, 0.5]), np.array([0.1, 0.0, 0.2])
    spaces = {"observation_space": gym.spaces.Discrete(2), "action_space": gym.spaces.Discrete(2)}
    box = {"observation_space": pole.observation_space, "action_space": pole.action_space}
    exact = {"mdp": mdp, "cost_features": table, "expert_features": expert_features}
    columns = {
        field: getattr(demos, field) for field in ("observations", "actions", "offsets", "terminated", "truncated")
    }
    occupancy = mdp.occupancy(policy)
    estimated = lfd.SaddlePointProblem.tabular(mdp, table, t["estimate"].values, value_radius=5.0)
    given: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "FiniteMDP": (
            lfd.FiniteMDP,
            {
                "transitions": mdp.transitions,
                "initial_distribution": np.array([0.7, 0.3]),
                "discount": 0.8,
                "absorbing_state": None,
            },
        ),
        "FiniteMDP dense": (
            lfd.FiniteMDP,
            {
                "transitions": mdp.transitions.toarray().reshape(2, 2, 2),
                "initial_distribution": [0.7, 0.3],
                "discount": 0.8,
            },
        ),
        "FiniteMDP.from_dict": (
            lfd.FiniteMDP.from_dict,
            {
                "table": {s: {a: [(1.0, 1 - s, 0.5, False)] for a in (0, 1)} for s in (0, 1)},
                "initial_distribution": np.array([0.7, 0.3]),
                "discount": 0.8,
            },
        ),
        "FiniteMDP.from_env": (lfd.FiniteMDP.from_env, {"env": t["swap"], "discount": 0.8}),
        "FiniteMDP.of": (lfd.FiniteMDP.of, {"dynamics": mdp.dynamics, "discount": 0.9}),
        "mdp.bellman_adjoint": (mdp.bellman_adjoint, {"values": np.array([0.5, -1.0])}),
        "mdp.bellman_flow": (mdp.bellman_flow, {"occupancy": occupancy}),
        "mdp.expected_cost": (mdp.expected_cost, {"policy": policy, "cost": table[:, 0], "tolerance": 1e-8}),
        "mdp.occupancy": (mdp.occupancy, {"policy": policy, "tolerance": 1e-8, "start": np.array([0.7, 0.3])}),
        "mdp.state_occupancy": (
            mdp.state_occupancy,
            {"policy": policy, "tolerance": 1e-8, "start": np.array([0.7, 0.3])},
        ),
        "mdp.optimal_policy": (mdp.optimal_policy, {"cost": table[:, 0], "tolerance": 1e-8}),
        "mdp.pair_cost": (mdp.pair_cost, {"cost": table[:, 0]}),
        "mdp.plan": (
            mdp.plan,
            {
                "cost": table[:, 0],
                "tolerance": 1e-8,
                "initial_values": np.array([0.1, 0.2]),
                "typical_visits": np.array([0.5, 0.5]),
            },
        ),
        "mdp.value_function": (
            mdp.value_function,
            {"policy": policy, "cost": table[:, 0], "tolerance": 1e-8, "start": np.array([0.1, 0.1])},
        ),
        "TabularModel": (
            lfd.TabularModel,
            {"transitions": mdp.transitions, "initial_distribution": np.array([0.7, 0.3]), "absorbing_state": None},
        ),
        "TabularModel.of": (lfd.TabularModel.of, {"source": mdp}),
        "model.sample_initial": (model.sample_initial, {"n": 3, "rng": rng}),
        "model.sample_next": (model.sample_next, {"states": np.array([0, 1]), "actions": np.array([1, 0]), "rng": rng}),
        "model.is_absorbing": (model.is_absorbing, {"states": np.array([0, 1])}),
        "model.observe": (model.observe, {"states": np.array([0, 1])}),
        "model.states_of": (model.states_of, {"observations": np.array([0, 1])}),
        "as_generative_model": (lfd.as_generative_model, {"source": mdp}),
        "reward_cost": (lfd.reward_cost, {"env": t["swap"]}),
        "Ball": (lfd.Ball, {"bound": 1.0}),
        "Box": (lfd.Box, {"bound": 1.0}),
        "TableCosts": (lfd.TableCosts, {"table": table, "n_actions": 2, "weights": "simplex", "names": ["a", "b"]}),
        "costs.rows": (
            t["costs"].rows,
            {"observations": np.array([0, 1]), "actions": np.array([1, 0]), "ended": np.array([False, False])},
        ),
        "costs.deviation": (t["costs"].deviation, {"n_samples": 10.0, "delta": 0.1}),
        "FunctionCosts": (
            lfd.FunctionCosts,
            {
                "function": lambda o, a: np.zeros((len(o), 2)),
                "n_costs": 2,
                "weights": "ball",
                "names": None,
                "uses_actions": True,
            },
        ),
        "FourierCosts.from_samples": (
            lfd.FourierCosts.from_samples,
            {
                "observations": seen,
                "actions": np.array([0, 1] * 4 + [0]),
                **box,
                "chosen_from_demonstrations": False,
                "n_frequencies": 4,
                "widths": (0.5, 1.0),
                "angles": (2,),
                "constant": 0.5,
                "weights": "ball",
                "seed": 0,
            },
        ),
        "FourierCosts.from_spaces": (
            lfd.FourierCosts.from_spaces,
            {
                "observation_space": gym.spaces.Box(-1, 1, (2,)),
                "action_space": gym.spaces.Discrete(2),
                "n_frequencies": 4,
                "widths": (0.5, 1.0),
                "angles": (),
                "constant": 0.5,
                "weights": "ball",
                "seed": 0,
            },
        ),
        "FourierCosts.from_demonstrations": (
            lfd.FourierCosts.from_demonstrations,
            {"demonstrations": demos, "actions": True},
        ),
        "fourier.rows": (
            t["fourier"].rows,
            {"observations": seen, "actions": np.array([0, 1] * 4 + [0]), "ended": np.zeros(9, bool)},
        ),
        "fourier.kernel": (
            t["fourier"].kernel,
            {
                "observations": seen,
                "actions": np.array([0, 1] * 4 + [0]),
                "other_observations": seen[:2],
                "other_actions": np.array([0, 1]),
            },
        ),
        "normalise_costs": (lfd.normalise_costs, {"cost_features": table}),
        "Criterion": (lfd.Criterion, {"discount": 0.8, "horizon": 5}),
        "criterion.weights": (t["criterion"].weights, {"n_steps": 4}),
        "criterion.steps": (lfd.Criterion(0.8).steps, {"tail": 0.01}),
        "criterion.unseen": (t["criterion"].unseen, {"lengths": np.array([1, 5])}),
        "Demonstrations": (
            lfd.Demonstrations,
            {
                **columns,
                **spaces,
                "rewards": np.zeros(len(demos.actions)),
                "horizon": 6,
                "provenance": lfd.Provenance(),
                "initial_states": None,
            },
        ),
        "Demonstrations.from_episodes": (
            lfd.Demonstrations.from_episodes,
            {"episodes": [([0, 1, 1], [1, 0], [0.0, 1.0], False, True)], **spaces, "horizon": 2},
        ),
        "Demonstrations.concatenate": (lfd.Demonstrations.concatenate, {"parts": [demos, demos]}),
        "demos.select": (demos.select, {"trajectories": np.array([0, 2])}),
        "demos.with_provenance": (demos.with_provenance, {"env_id": "CartPole-v1", "env_kwargs": {"a": 1}, "seed": 3}),
        "Provenance": (
            lfd.Provenance,
            {f.name: getattr(demos.provenance, f.name) for f in fields(lfd.Provenance)} | {"env_kwargs": {"size": 3}},
        ),
        "feature_expectations": (
            lfd.feature_expectations,
            {"demonstrations": demos, "cost_features": table, "discount": 0.8, "horizon": 6, "truncation": "paper"},
        ),
        "estimate.lower": (t["estimate"].lower, {"delta": 0.1, "simultaneous": True}),
        "estimate.upper": (t["estimate"].upper, {"delta": 0.1, "simultaneous": True}),
        "estimate.radius": (t["estimate"].radius, {"delta": 0.1, "simultaneous": True}),
        "estimate.intervals": (t["estimate"].intervals, {"confidence": 0.9}),
        "estimate.class_radius": (t["estimate"].class_radius, {"costs": t["costs"], "delta": 0.1}),
        "estimate.first": (t["estimate"].first, {"n_costs": 1}),
        "CostEstimate.exactly": (
            lfd.CostEstimate.exactly,
            {"values": expert_features, "criterion": t["criterion"], "error": 0.0},
        ),
        "suggest_discount": (lfd.suggest_discount, {"demonstrations": demos}),
        "Grid": (
            lfd.Grid,
            {
                "axes": [np.linspace(-1, 1, 4), np.linspace(-2, 2, 3)],
                "periods": [0.0, 0.0],
                "interpolation": "multilinear",
            },
        ),
        "grid.inside": (t["grid"].inside, {"states": np.array([[0.0, 0.5]])}),
        "grid.interpolate": (t["grid"].interpolate, {"states": np.array([[0.0, 0.5]])}),
        "collect": (
            lfd.collect,
            {"source": model, "policy": policy, "n_trajectories": 2, "horizon": 5, "rng": rng, "deterministic": False},
        ),
        "collect env": (
            lfd.collect,
            {
                "source": pole,
                "policy": lambda seen: np.zeros(len(seen), int),
                "n_trajectories": 2,
                "horizon": 5,
                "rng": rng,
                "deterministic": False,
                "n_envs": 1,
            },
        ),
        "collect_until": (
            lfd.collect_until,
            {
                "task": t["model task"],
                "policy": policy,
                "bound": 1.9,
                "rng": rng,
                "expert": policy,
                "delta": 0.05,
                "at_first": 20,
                "at_most": 40,
            },
        ),
        "Task": (
            lfd.Task,
            {
                "env": mdp,
                "demonstrations": demos,
                "discount": 0.8,
                "horizon": None,
                "costs": table,
                "true_cost": table[:, 0],
                "expert": policy,
                "extra_transitions": demos,
                "allow_mismatch": False,
            },
        ),
        "Task without env": (lfd.Task, {"env": None, "demonstrations": demos, "discount": 0.8, "costs": table}),
        "task.expected_costs": (
            task.expected_costs,
            {
                "policy": policy,
                "rng": rng,
                "n_rollouts": 5,
                "horizon": 5,
                "deterministic": False,
                "with_true_cost": True,
            },
        ),
        "task.expert_features": (task.expert_features, {"truncation": "paper", "held_out": others}),
        "as_policy": (lfd.as_policy, {"policy": policy, "deterministic": False}),
        "certify": (
            lfd.certify,
            {
                "policy": policy,
                "task": task,
                "delta": 0.05,
                "rng": rng,
                "deterministic": False,
                "held_out": others,
                "expert": "any",
                "truncation": "paper",
            },
        ),
        "evaluate": (
            lfd.evaluate,
            {"policy": policy, "task": task, "rng": rng, "n_rollouts": 5, "deterministic": False},
        ),
        "evaluate mdp": (
            lfd.evaluate,
            {
                "policy": policy,
                "task": mdp,
                "costs": table,
                "expert_features": expert_features,
                "true_cost": table[:, 0],
                "cost_class": "simplex",
            },
        ),
        "evaluate model": (
            lfd.evaluate,
            {"policy": policy, "task": model, "costs": table, "discount": 0.8, "rng": rng, "n_rollouts": 5},
        ),
        "explaining_weights": (
            lfd.explaining_weights,
            {
                "mdp": mdp,
                "cost_features": table,
                "expert": policy,
                "cost_class": "simplex",
                "slack": 0.1,
                "tolerance": 1e-8,
                "max_vertices": 100,
            },
        ),
        "explains": (
            lfd.explains,
            {
                "mdp": mdp,
                "cost_features": table,
                "expert": policy,
                "cost_weights": np.array([0.5, 0.5]),
                "cost_class": "simplex",
                "tolerance": 1e-8,
            },
        ),
        "learn": (lfd.learn, {"task": task, "learner": "tabular_bc", "rng": rng, "budget": None}),
        "learn cutting_plane": (lfd.learn, {"task": task, "learner": "cutting_plane", "rng": rng, "budget": 20}),
        "make_learner": (make_learner, {"name": "tabular_bc"}),
        "mixture_policy": (
            lfd.mixture_policy,
            {"mdp": mdp, "policies": [policy, policy[::-1]], "weights": np.array([0.5, 0.5])},
        ),
        "MixturePolicy": (lfd.MixturePolicy, {"policies": [policy, policy[::-1]], "weights": np.array([0.5, 0.5])}),
        "noisy_policy": (lfd.noisy_policy, {"policy": policy, "epsilon": 0.1}),
        "soft_optimal_policy": (
            lfd.soft_optimal_policy,
            {"mdp": mdp, "cost": table[:, 0], "temperature": 0.5, "tolerance": 1e-8},
        ),
        "policy.sample": (t["tabular policy"].sample, {"observations": np.array([0, 1]), "rng": rng}),
        "policy.greedy": (t["tabular policy"].greedy, {"observations": np.array([0, 1])}),
        "policy.probabilities": (t["tabular policy"].probabilities, {"observations": np.array([0, 1])}),
        "policy.predict": (t["tabular policy"].predict, {"observation": np.array([0, 1]), "deterministic": False}),
        "SaddlePointProblem.tabular": (
            lfd.SaddlePointProblem.tabular,
            {**exact, "value_radius": 5.0, "value_domain": "ball", "cost_class": "simplex"},
        ),
        "SaddlePointProblem.linear": (
            lfd.SaddlePointProblem.linear,
            {
                **exact,
                "occupancy_features": features.FiniteOccupancyFeatures(np.eye(4), 2),
                "value_features": features.FiniteValueFeatures(np.eye(2)),
                "value_radius": 5.0,
            },
        ),
        "SaddlePointProblem.from_simulator": (
            lfd.SaddlePointProblem.from_simulator,
            {
                "cost_features": t["costs"],
                "expert_features": expert_features,
                "occupancy_features": t["occupancies"],
                "value_features": t["values"],
                "discount": 0.8,
                "value_radius": 5.0,
            },
        ),
        "problem.gradients": (problem.gradients, {"point": point, "expert": expert_features}),
        "problem.lagrangian": (problem.lagrangian, {"point": point, "expert": expert_features}),
        "problem.saddle_point_residual": (problem.saddle_point_residual, {"point": point, "expert": expert_features}),
        "problem.upper_value": (
            problem.upper_value,
            {"occupancy_weights": point.occupancy_weights, "expert": expert_features},
        ),
        "problem.lower_value": (
            problem.lower_value,
            {"value_weights": point.value_weights, "cost_weights": point.cost_weights, "expert": expert_features},
        ),
        "problem.occupancy": (problem.occupancy, {"occupancy_weights": point.occupancy_weights}),
        "problem.policy": (problem.policy, {"occupancy_weights": point.occupancy_weights}),
        "problem.values": (problem.values, {"value_weights": point.value_weights}),
        "certify_saddle_point": (
            lfd.certify_saddle_point,
            {"problem": estimated, "point": point, "expert": t["estimate"], "delta": 0.05},
        ),
        "solve_cutting_plane": (
            lfd.solve_cutting_plane,
            {**exact, "cost_class": "simplex", "tolerance": 1e-8, "max_planner_calls": 50, "time_limit": 5.0},
        ),
        "solve_cutting_plane ball": (lfd.solve_cutting_plane, {**exact, "cost_class": "ball"}),
        "solve_linear_program": (
            lfd.solve_linear_program,
            {
                **exact,
                "cost_class": "simplex",
                "form": "primal",
                "method": "highs-ds",
                "tolerance": 1e-8,
                "time_limit": 5.0,
            },
        ),
        "solve_mirror_descent": (
            lfd.solve_mirror_descent,
            {
                "problem": problem,
                "model": model,
                "n_iterations": 40,
                "rng": rng,
                "schedule": "practical",
                "anytime": False,
                "batch_size": 8,
                "tolerance": 0.0,
                "progress": False,
            },
        ),
        "solve_plug_in": (
            lfd.solve_plug_in,
            {
                "model": model,
                "cost_features": table,
                "expert_features": expert_features,
                "discount": 0.8,
                "draws_per_pair": 3,
                "rng": rng,
                "cost_class": None,
                "tolerance": 1e-8,
            },
        ),
        "solve_primal_dual_hybrid": (
            lfd.solve_primal_dual_hybrid,
            {"problem": problem, "tolerance": 1e-3, "max_iterations": 50},
        ),
        "features.EmpiricalOccupancyFeatures": (
            features.EmpiricalOccupancyFeatures,
            {"states": [[0, 1]], "actions": [[1, 0]], "weights": [[0.5, 0.5]]},
        ),
        "features.FiniteOccupancyFeatures": (features.FiniteOccupancyFeatures, {"matrix": np.eye(4), "n_actions": 2}),
        "features.FiniteValueFeatures": (features.FiniteValueFeatures, {"matrix": np.eye(2)}),
        "features.RadialBasisFeatures": (
            features.RadialBasisFeatures,
            {"centres": np.zeros((2, 3)), "widths": np.ones(3)},
        ),
        "features.RandomFourierFeatures": (
            features.RandomFourierFeatures,
            {"n_features": 4, "widths": np.ones(3), "rng": rng},
        ),
        "features.TabularOccupancyFeatures": (features.TabularOccupancyFeatures, {"n_states": 2, "n_actions": 2}),
        "features.TabularValueFeatures": (features.TabularValueFeatures, {"n_states": 2}),
        "features.TileGrid": (features.TileGrid, {"low": np.zeros(2), "high": np.ones(2), "counts": (2, 3)}),
        "features.TileOccupancyFeatures": (
            features.TileOccupancyFeatures,
            {"grid": t["tiles"], "n_actions": 2, "absorbing": False},
        ),
        "features.TilePolicy": (features.TilePolicy, {"grid": t["tiles"], "table": np.full((3, 2), 0.5)}),
        "features.TileValueFeatures": (features.TileValueFeatures, {"grid": t["tiles"]}),
        "features.aggregated_occupancies": (
            features.aggregated_occupancies,
            {"cells": np.array([0, 1]), "n_actions": 2},
        ),
        "features.aggregated_values": (features.aggregated_values, {"cells": np.array([0, 1])}),
        "features.optimal_values": (features.optimal_values, {"mdp": mdp, "cost_features": table}),
        "features.policy_occupancies": (features.policy_occupancies, {"mdp": mdp, "policies": [policy]}),
        "features.policy_values": (features.policy_values, {"mdp": mdp, "policies": [policy], "cost_features": table}),
        "features.rollout_occupancies": (
            features.rollout_occupancies,
            {"state_rollouts": [[[0, 1], [1, 0]]], "action_rollouts": [[[1, 0], [0, 0]]], "discount": 0.8},
        ),
        "features.soft_occupancies": (features.soft_occupancies, {"memberships": np.eye(2), "n_actions": 2}),
        "features.soft_values": (features.soft_values, {"memberships": np.eye(2)}),
        "values.evaluate": (t["values"].evaluate, {"observations": np.array([0, 1])}),
        "occupancies.sample": (t["occupancies"].sample, {"indices": np.array([0, 3]), "rng": rng}),
        "envs.TabularEnv": (
            envs.TabularEnv,
            {
                "transitions": mdp.transitions,
                "initial_distribution": np.array([0.7, 0.3]),
                "cost_features": table,
                "absorbing_state": None,
            },
        ),
        "envs.GarnetEnv": (
            envs.GarnetEnv,
            {"n_states": 5, "n_actions": 2, "n_successors": 2, "n_costs": 2, "mdp_seed": 0},
        ),
        "envs.garnet": (envs.garnet, {"n_states": 5, "n_actions": 2, "n_successors": 2, "discount": 0.9, "rng": rng}),
        "envs.StochasticGridworldEnv": (
            envs.StochasticGridworldEnv,
            {"size": 3, "intended_probability": 0.7, "n_costs": 2, "cost_seed": 0, "render_mode": None},
        ),
        "envs.gridworld_transitions": (envs.gridworld_transitions, {"size": 3, "intended_probability": 0.7}),
        "envs.render_grid": (
            envs.render_grid,
            {"cost": np.zeros(16), "size": 2, "agent": 1, "policy": None, "occupancy": None, "cell_size": 8},
        ),
        "envs.FiniteVectorEnv": (envs.FiniteVectorEnv, {"env": t["swap"], "num_envs": 2, "max_episode_steps": 5}),
        "testing.check_policy": (testing.check_policy, {"policy": policy, "task": task, "seed": 0}),
        "testing.check_generative_model": (
            testing.check_generative_model,
            {"model": model, "mdp": mdp, "seed": 0, "n_draws": 2000},
        ),
    }
    given |= {f"reading {name}": (read, {name: content}) for name, (read, content) in files(t).items()}
    for name in ("simplex", "ball", "box"):
        weights = t[name]
        if name != "simplex":
            given[f"{name}.gauge"] = (weights.gauge, {"vector": vector})
        given |= {
            f"{name}.centre": (weights.centre, {"size": 3}),
            f"{name}.check": (weights.check, {"name": "w", "weights": np.array([0.2, 0.3, 0.5]), "size": 3}),
            f"{name}.deviation": (weights.deviation, {"size": 3, "n_samples": 10.0, "delta": 0.1}),
            f"{name}.largest_within": (weights.largest_within, {"vector": vector, "radii": radii}),
            f"{name}.maximiser": (weights.maximiser, {"vector": vector}),
            f"{name}.project": (weights.project, {"vector": vector}),
            f"{name}.support": (weights.support, {"vectors": vector[None]}),
        }
    slow = slow_calls(t)
    rare = dict.fromkeys(("collect_until", "grid of a simulator", "testing.check_learner"), 4) | dict.fromkeys(slow, 4)
    given |= more_calls(t) | slow
    ended = {
        "simulator.sample_next",
        "simulator.sample_initial",
        "simulator.observe",
        "SaddlePoint",
        "grid of a simulator",
    }
    calls = [Call(name, *what, rare.get(name, 1), name in ended) for name, what in given.items()]
    return calls, list(t.values())


def holds_nan(value: Any, depth: int = 0) -> bool:
    """Whether a result holds a NaN: in arrays, numbers, collections and the parts of our objects."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "fc" and bool(np.isnan(value).any())
    if isinstance(value, (float, complex, np.floating)):
        return bool(np.isnan(value))
    if depth > 3 or isinstance(value, gym.Env):  # a wrapper asks what it wraps for everything
        return False
    if isinstance(value, dict):
        return any(holds_nan(part, depth + 1) for part in value.values())
    if isinstance(value, (list, tuple)):
        return any(holds_nan(part, depth + 1) for part in value)
    if hasattr(value, "data") and hasattr(value, "indices"):
        return holds_nan(np.asarray(value.data))
    if is_dataclass(value) or type(value).__module__.startswith("lfd_gym"):
        return any(holds_nan(part, depth + 1) for part in vars(value).values()) if hasattr(value, "__dict__") else False
    return False


def quietly() -> None:
    """Keep warnings, of which wrong values make many, to themselves."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
