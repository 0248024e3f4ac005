"""The same seed gives the numbers that version 0.1 gave, before everything was put in new rooms.

Bounds are not among them: they are found by other inequalities now. What certificates find by rollouts is of this
version: their episodes are their own now, whatever the seed was used for before.

They were equal bit by bit on the machine that made them. The tolerance allows for other processors and libraries.
"""

from functools import cache

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym.benchmark import Cell, EnvironmentSpec, LearnerSpec
from lfd_gym.benchmark.runner import run_cell

GRID = "lfd_gym/StochasticGridworld-v0"
NUMBERS = {
    "cartpole_certify": [0.11940171947255024],
    "cartpole_collect": [-1.859698466313749, 0.06370435839247868],
    "cartpole_descent": [0.5908292273222236, 0.2131615727913796, 3.625535743826876, 1.004026403118675],
    "cell": [0.08426347450539873, 0.8084361727138047, -0.7882938000849247],
    "certify_point": [0.2035963279029766],
    "certify_policy_ball": [0.05473998944808525],
    "certify_policy_simplex": [0.022483953317928962],
    "certify_samples": [0.21695368385614947, 1.4034789727950066],
    "collect": [-26.319901059521293, 44.72559732377206],
    "collect_env": [38.71075444959407],
    "cutting_plane_ball": [0.0023722994903880236, 3.6094103895394354, 0.7707746107487797],
    "cutting_plane_simplex": [-0.004167389038395308, 4.0243420502081015, 0.8723620309005673],
    "evaluate": [0.3868326584248428, 0.3868326584248428, -0.0, 0.7620634704223022, 0.25],
    "features": [-0.29821167222810163],
    "hybrid_ball": [0.00028522264224499147, 0.06458702885657697, -1.0721678704641977, 0.7705646856493321],
    "hybrid_simplex": [0.00017024209671211675, 0.08990214131184814, -1.28249490893952, 0.8723669616836462],
    "learner_apprentice_bc": [3.0654961737480657, 0, 0, 0.8723620309005673],
    "learner_mwal": [3.6949081106333725, 0, 0, 0.7613261707523644],
    "linear_program": [-0.004167389038395197, 4.024342050207595, 0.8723666028272921],
    "mirror_paper_ball": [
        59.26273929342354,
        12.138672221809644,
        1.0998631464456206,
        0.010640770393740138,
        -0.03760863037006301,
        0.003087977635363229,
        40000,
    ],
    "mirror_practical_simplex": [
        0.5551326836414809,
        1.1907793394704966,
        -1.5261167838284853,
        0.017460419255885342,
        -0.4301460437494238,
        0.9262964119461237,
        41024,
    ],
    "plug_in": [-0.015415009746770918, 1.0231975656325125, 12800],
}


def digest(array):
    """One number that sees every entry and its place."""
    flat = np.asarray(array, dtype=float).ravel()
    return float(flat @ np.cos(np.arange(flat.size) * 0.7 + 0.3))


def rng(seed):
    return np.random.default_rng(seed)


@cache
def task(weights="simplex"):
    env = gym.make(GRID, size=8, cost_seed=1)
    costs = lfd.TableCosts(env.unwrapped.cost_features, 4, weights)
    expert = lfd.FiniteMDP.from_env(env, discount=0.9).optimal_policy(costs.table[:, 0])
    demos = lfd.collect(lfd.as_generative_model(env), expert, 20, 100, rng(1))
    return lfd.Task(env, demos, discount=0.9, costs=costs, expert=expert)


def problem(weights, **settings):
    given = task(weights)
    return lfd.SaddlePointProblem.tabular(given.model, given.costs, given.expert_features().values, **settings)


@cache
def descent(weights, schedule, domain):
    asked = problem(weights, value_domain=domain)
    found = lfd.solve_mirror_descent(asked, task().simulator, 20_000, rng(4), schedule=schedule, progress=False)
    return asked, found


def mirror(*settings):
    asked, found = descent(*settings)
    residual, points = found.residual, map(digest, found.point)
    return [asked.value_radius, residual, digest(found.policy), *points, found.oracle_calls]


def collected():
    return [digest(task().demonstrations.observations), digest(task().demonstrations.actions)]


def collected_from_the_environment():
    return [digest(lfd.collect(task().env, task().expert, 5, 50, rng(2)).observations)]


def features():
    return [digest(task().expert_features().values)]


def cutting_plane(weights):
    given = task(weights)
    found = lfd.solve_cutting_plane(given.model, given.costs, given.expert_features().values)
    return [found.apprentice_value, digest(found.policy), digest(found.cost_weights)]


def linear_program():
    found = lfd.solve_linear_program(task().model, task().costs, task().expert_features().values)
    return [found.apprentice_value, digest(found.policy), digest(found.cost_weights)]


def plug_in():
    found = lfd.solve_plug_in(task().simulator, task().costs, task().expert_features().values, 0.9, 50, rng(3))
    return [found.apprentice_value, digest(found.policy), found.oracle_calls]


def hybrid(weights):
    found = lfd.solve_primal_dual_hybrid(problem(weights), max_iterations=4000)
    return [found.residual, *map(digest, found.point)]


def certified_point(**settings):
    asked, found = descent("simplex", "practical", "box")
    return lfd.certify_saddle_point(asked, found.point, expert=task().expert_features(), delta=0.05, **settings)


def exact_point():
    found = certified_point()
    return [found.cost_distance]


def sampled_point():
    draws = {"n_rollouts": 500, "n_samples": 10_000, "n_per_column": 50}
    found = certified_point(model=task().simulator, rng=rng(5), **draws)
    return [found.cost_distance, found.residual]


def certified_expert(weights):
    return [lfd.certify(task().expert, task(weights), delta=0.05).cost_distance]


def evaluated():
    found = lfd.evaluate(np.full((64, 4), 0.25), task())
    names = ("true_gap", "cost_distance", "normalised_score", "occupancy_distance", "agreement")
    return [getattr(found, name) for name in names]


def pole_costs(seen, done):
    columns = [np.abs(seen[:, 2]) / 0.21, np.abs(seen[:, 0]) / 2.4, np.asarray(done) - 0.5]
    return np.column_stack(columns).clip(-1, 1)


@cache
def pole():
    model = lfd.as_generative_model(gym.make("CartPole-v1"))
    demos = lfd.collect(model, lambda seen: (seen[:, 2] + seen[:, 3] > 0).astype(int), 5, 40, rng(6))
    return lfd.Task(model, demos, discount=0.95, costs=pole_costs)


def pole_collected():
    estimate = pole().expert_features()
    return [digest(pole().demonstrations.observations), digest(estimate.values)]


@cache
def pole_solution():
    grid = lfd.features.TileGrid([-2.4, -3, -0.21, -3], [2.4, 3, 0.21, 3], (3, 3, 4, 3))
    asked = lfd.SaddlePointProblem.from_simulator(
        pole_costs,
        pole().expert_features().values,
        occupancy_features=lfd.features.TileOccupancyFeatures(grid, 2, absorbing=True),
        value_features=lfd.features.TileValueFeatures(grid),
        discount=0.95,
        value_radius=1.0,
        value_domain="box",
    )
    return lfd.solve_mirror_descent(asked, pole().simulator, 60, rng(7), progress=False, batch_size=16)


def pole_descent():
    found = pole_solution()
    theta, lam, w = map(digest, found.point)
    return [w, theta, lam, digest(found.policy.table)]


def pole_certified():
    return [lfd.certify(pole_solution().policy, pole(), delta=0.1, rng=rng(9), n_rollouts=30).cost_distance]


def learned(name, budget=None):
    found = lfd.learn(task(), name, rng=rng(10), budget=budget)
    used = found.resources
    weights = [] if found.cost_weights is None else [digest(found.cost_weights)]
    return [digest(found.policy), used.oracle_calls, used.env_steps, *weights]


def cell():
    environment = EnvironmentSpec("grid", GRID, 0.9, 50, {"size": 6})
    row, policy = run_cell(Cell(environment, LearnerSpec("cutting_plane"), 3, 1))
    numbers = row["evaluation"]
    return [numbers["true_gap"], numbers["normalised_score"], digest(policy)]


COMPUTED = {
    "cartpole_certify": pole_certified,
    "cartpole_collect": pole_collected,
    "cartpole_descent": pole_descent,
    "cell": cell,
    "certify_point": exact_point,
    "certify_policy_ball": lambda: certified_expert("ball"),
    "certify_policy_simplex": lambda: certified_expert("simplex"),
    "certify_samples": sampled_point,
    "collect": collected,
    "collect_env": collected_from_the_environment,
    "cutting_plane_ball": lambda: cutting_plane("ball"),
    "cutting_plane_simplex": lambda: cutting_plane("simplex"),
    "evaluate": evaluated,
    "features": features,
    "hybrid_ball": lambda: hybrid("ball"),
    "hybrid_simplex": lambda: hybrid("simplex"),
    "learner_apprentice_bc": lambda: learned("apprentice_bc"),
    "learner_mwal": lambda: learned("mwal", 50),
    "linear_program": linear_program,
    "mirror_paper_ball": lambda: mirror("ball", "paper", "ball"),
    "mirror_practical_simplex": lambda: mirror("simplex", "practical", "box"),
    "plug_in": plug_in,
}


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_the_numbers_of_version_0_1(name):
    np.testing.assert_allclose(COMPUTED[name](), NUMBERS[name], rtol=1e-6, atol=1e-9)
