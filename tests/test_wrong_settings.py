"""Wrong arguments that the campaign of wrong calls found: refused by their names, each of them once."""

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym import confidence, datasets, envs, features, plots
from lfd_gym.assessment import bounds, statistics
from lfd_gym.assessment.logged_data import mean_bound
from lfd_gym.baselines import learner_names, make_learner
from lfd_gym.envs.adapters import as_generative_model
from lfd_gym.policies.tiles import TileGrid
from lfd_gym.testing import check_learner

SIZE = bounds.ProblemSize(4, 2, 2.0, 0.8)
RNG = np.random.default_rng(0)
COSTS = lfd.TableCosts(np.array([[1.0, 0.0], [0.5, 0.0], [0.0, 1.0], [0.0, 1.0]]), 2)
POLE = as_generative_model(gym.make("CartPole-v1"))
WAVES = features.RandomFourierFeatures(9, [1e-9], RNG)
SOLUTION = SimpleNamespace(residual_history=[(1, 2.0)])
SAMPLES = np.full((4, 1), 0.5)
SPACES = gym.spaces.Discrete(2), gym.spaces.Discrete(2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: confidence.lower_bound(3, 0.1), "samples must be|samples must have"),
        (lambda: confidence.lower_bound(SAMPLES.astype(object), 0.1), "samples must be an array of numbers"),
        (lambda: confidence.lower_bound(SAMPLES, 0.1, copies=0.0), "copies must be positive"),
        (lambda: confidence.lower_bound(SAMPLES, 0.1, copies=np.nan), "copies must be positive"),
        (lambda: confidence.upper_bound(SAMPLES, 0.1, planned=10**40), "planned must be"),
        (lambda: mean_bound(0.5, 0.1), "samples must"),
        (lambda: bounds.ProblemSize(4, np.nan, 2.0, 0.8), "n_costs must be an integer"),
        (lambda: bounds.paper_step_size(3, 10), "size must be a ProblemSize"),
        (lambda: bounds.theorem_1("x", 0.1, 0.1), "size must be a ProblemSize"),
        (lambda: bounds.iterations_for(SIZE, 1e-320, 0.1), "accuracy must be one that"),
        (lambda: bounds.residual_bound(SIZE, 10, [0.1]), "delta must be a number"),
        (lambda: bounds.required_horizon(1j, 0.9), "accuracy must be a number"),
        (lambda: statistics.interquartile_mean([1.0, 2.0], axis=2**53), "axis must be one of the 1 of scores"),
        (lambda: statistics.run_interval([[1.0]], 3), r"rng must be a numpy\.random\.Generator"),
        (lambda: statistics.run_interval([[1e308], [0.0]], RNG), "scores must be at most"),
        (lambda: bounds.required_trajectories(1e-320, 2, 0.1), "accuracy must be one whose"),
        (lambda: lfd.Demonstrations.concatenate(np.array([])), "parts must hold"),
        (lambda: TileGrid([], [], np.array([])), "counts must be"),
        (lambda: check_learner(make_learner("random"), seed=-1), "seed must be at least 0"),
        (lambda: lfd.RecoveredCost(3, [1.0]), "costs must be"),
        (lambda: lfd.RecoveredCost(COSTS, [0.5, 0.5]).reward_wrapper(np.array(3)), "env must be"),
        (lambda: lfd.RecoveredCost(COSTS, [0.5, 0.5])([[1], [1, 2]]), "observations must be an array of numbers"),
        (lambda: TileGrid([0.0], [1.0], (3,)).sample([3], RNG), r"tiles must lie in \[0, 3\)"),
        (lambda: TileGrid([0.0], [1.0], (3,)).sample([0], 3), "rng must be"),
        (lambda: plots.draw_policy("uniform", 3), "task must be"),
        (lambda: plots.draw_residuals(3), "solution must have a residual_history"),
        (lambda: plots.draw_residuals(SOLUTION, axes=3), "axes must be a matplotlib"),
        (lambda: plots.draw_certificate(3), "certificate must be a Certificate"),
        (lambda: plots.draw_comparison({"a": 1}), "evaluations must be a mapping, each value of which is an"),
        (lambda: datasets.load(["a"]), "name must be a text"),
        (lambda: datasets.info("nothing"), "name must be that of a dataset"),
        (lambda: lfd.Simplex().check("w", [1.0], np.ones(2)), "size must be an integer"),
        (lambda: lfd.Ball().check(0.5, [1.0], 1), "name must be a text"),
        (lambda: lfd.Criterion(0.8).unseen("x"), "lengths must be an array of numbers"),
        (lambda: lfd.Criterion(0.8, 5).unseen(10**40), "lengths must be an array of numbers"),
        (lambda: features.RandomFourierFeatures(-1, [1.0], RNG), "n_features must be at least 1"),
        (lambda: features.RandomFourierFeatures(2**62, [1.0], RNG), "n_features must be such"),
        (lambda: WAVES.evaluate([[1.0, 2.0]]), r"observations must have shape \(n, 1\)"),
        (lambda: WAVES.evaluate([[1e308]]), "observations must not be so large"),
        (lambda: features.soft_occupancies(np.full((2, 2), 1e-320), 2), "memberships must be nonnegative"),
        (lambda: lfd.noisy_policy(np.empty((0, 2)), 0.1), "policy must have states"),
        (lambda: POLE.is_absorbing([[1], [1, 2]]), "states must be a batch"),
        (lambda: lfd.FourierCosts.from_spaces(gym.spaces.Box(-1, 1, (2,)), None, seed=-1), "seed must be at least 0"),
        (lambda: lfd.Demonstrations.from_episodes([([0, 1], [0])], *SPACES), r"episodes\[0\] must be"),
        (lambda: lfd.Demonstrations.from_episodes([([0, 1], 3, None, False, True)], *SPACES), r"of episodes\[0\]"),
        (lambda: lfd.as_policy(np.eye(2)).predict([[1], [1, 2]]), "observation must be an array of numbers"),
        (lambda: lfd.as_policy(np.eye(2)).predict(0, deterministic=np.ones(2)), "deterministic must be True or False"),
    ],
)  # fmt: skip
def test_it_is_refused_by_its_name(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.parametrize("seed", [-1, 0.5, "x", True, np.nan])
@pytest.mark.parametrize("vector", [False, True])
def test_seeds_and_options_of_environments(seed, vector):
    env = envs.StochasticGridworldEnv(size=3)
    env = envs.FiniteVectorEnv(env, num_envs=2) if vector else env
    with pytest.raises(ValueError, match="seed must be a whole number"):
        env.reset(seed=seed)
    with pytest.raises(TypeError, match="options must be a mapping"):
        env.reset(options=3)
    one, _ = env.reset(seed=np.int64(5))
    other, _ = env.reset(seed=5)
    assert np.array_equal(one, other)


@pytest.mark.parametrize("name", learner_names())
def test_settings_of_learners_are_no_nan_and_of_their_kind(name):
    try:
        learner = make_learner(name)
    except ImportError as error:
        pytest.skip(f"needs an extra: {error}")
    numbers = [field for field, value in vars(learner).items() if isinstance(value, float)]
    for field in numbers:
        with pytest.raises(ValueError, match=f"{field} must be"):
            make_learner(name, **{field: float("nan")})
    for field in vars(learner):
        with pytest.raises((TypeError, ValueError), match=f"{field} must be"):
            make_learner(name, **{field: object()})


def test_estimates_and_results_hold_no_nan():
    with pytest.raises(ValueError, match="values must not be NaN"):
        lfd.CostEstimate(np.array([np.nan]), np.empty((0, 1)), np.empty(0), lfd.Criterion(0.9))
    with pytest.raises(ValueError, match="trajectory_values must not be NaN"):
        lfd.CostEstimate(np.array([0.5]), np.full((1, 1), np.nan), np.zeros(1), lfd.Criterion(0.9))
    assert bounds.required_trajectories(0.1, 5, 1e-320) > 10**5  # one over it is infinite
    with pytest.raises(ValueError, match="copies and error must be numbers"):
        lfd.CostEstimate(np.array([0.5]), np.empty((0, 1)), np.empty(0), lfd.Criterion(0.9), copies=np.nan)
    with pytest.raises(ValueError, match="cost_weights must be finite"):
        lfd.LearningResult(np.eye(2), np.array([np.nan]))
    with pytest.raises(TypeError, match="learner must be a text"):
        lfd.LearningResult(np.eye(2), learner=float("nan"))
