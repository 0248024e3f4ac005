"""Problems, simulators and runs for the tests of Algorithm 1."""

import warnings

import gymnasium as gym
import numpy as np
from scipy import stats

import lfd_gym as lfd
from lfd_gym.features import FiniteOccupancyFeatures, FiniteValueFeatures
from lfd_gym.solvers.descent.finite_descent import FiniteDescent, FiniteOracle
from lfd_gym.solvers.descent.gradient_norms import estimate_gradient_norms
from lfd_gym.solvers.descent.step_sizes import paper_steps, practical_steps


def two_states_with_self_loops(value_domain="ball", cost_class="simplex"):
    transitions = np.array([[[0.6, 0.4], [0.1, 0.9]], [[0.3, 0.7], [1.0, 0.0]]])
    mdp = lfd.FiniteMDP(transitions, initial_distribution=[0.7, 0.3], discount=0.8)
    costs = np.array([[1.0, -0.5], [0.2, 0.3], [-1.0, 0.8], [0.4, -0.9]])
    return lfd.SaddlePointProblem(
        costs=lfd.TableCosts(costs, mdp.n_actions, cost_class),
        expert_features=np.array([0.1, -0.2]),
        occupancy_features=FiniteOccupancyFeatures(
            np.array([[0.5, 0.1, 0.25], [0.5, 0.0, 0.25], [0.0, 0.9, 0.25], [0.0, 0.0, 0.25]]), n_actions=2
        ),
        value_features=FiniteValueFeatures(np.array([[1.0, 0.5, 0.0], [-0.3, 0.0, 1.0]])),
        discount=0.8,
        value_radius=3.0,
        value_domain=value_domain,
        mdp=mdp,
    )


def gridworld_problem(size=16, cost_seed=0, discount=0.9, value_radius=33.0, **kwargs):
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=size, cost_seed=cost_seed)
    mdp = lfd.FiniteMDP.from_env(env, discount=discount)
    costs = np.asarray(env.unwrapped.cost_features)
    expert = costs.T @ mdp.occupancy(mdp.optimal_policy(costs[:, 0])).ravel()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lfd.LfdGymWarning)  # the radius need not hold the values of every cost
        problem = lfd.SaddlePointProblem.tabular(mdp, costs, expert, value_radius=value_radius, **kwargs)
    return problem, lfd.as_generative_model(env)


def some_steps(problem, schedule, n_iterations, rng):
    if schedule == "paper":
        return paper_steps(problem, n_iterations)
    model = lfd.TabularModel.of(problem.mdp)
    return practical_steps(problem, n_iterations, estimate_gradient_norms(problem, model, 1, rng))


def new_descent(problem, steps, seed):
    oracle = FiniteOracle(problem, lfd.TabularModel.of(problem.mdp))
    return FiniteDescent(oracle, steps, np.random.default_rng(seed))


class Simulator:
    """A finite model that hides its tables, as a user's simulator would."""

    def __init__(self, model):
        self._model = model
        self.state_space, self.action_space = model.state_space, model.action_space
        self.observation_space = model.observation_space
        self.calls = self.starts = 0

    def sample_initial(self, n, rng):
        self.starts += n
        return self._model.sample_initial(n, rng)

    def sample_next(self, states, actions, rng):
        self.calls += len(states)
        return self._model.sample_next(states, actions, rng)

    def observe(self, states):
        return self._model.observe(states)

    def is_absorbing(self, states):
        return self._model.is_absorbing(states)


def chi_square(drawn, probabilities):
    counts = np.bincount(drawn, minlength=probabilities.size)
    assert (counts[probabilities == 0] == 0).all()
    support = probabilities > 0
    expected = probabilities[support] * drawn.size
    return stats.chisquare(counts[support], expected * counts.sum() / expected.sum()).pvalue
