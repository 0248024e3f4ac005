import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym import FiniteMDP, TabularModel
from lfd_gym.solvers.exact.plug_in import estimate_mdp


@pytest.fixture(scope="module")
def gridworld():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=16, cost_seed=0)
    mdp = FiniteMDP.from_env(env, discount=0.9)
    costs = env.unwrapped.cost_features
    rho = mdp.occupancy(mdp.optimal_policy(costs[:, 0])).ravel() @ costs
    return mdp, costs, rho


def test_frequencies_are_those_of_the_draws():
    class Counter(TabularModel):
        def sample_next(self, states, actions, rng):
            self.asked = np.bincount(np.asarray(states) * self.n_actions + actions, minlength=6)
            self.drawn = super().sample_next(states, actions, rng)
            return self.drawn

    kernel = np.array([[0.5, 0.5, 0], [0, 1, 0], [0.2, 0.3, 0.5], [1, 0, 0], [0, 0, 1], [0, 0, 1.0]])
    model = Counter(kernel, initial_distribution=[0.7, 0.3, 0.0], absorbing_state=2)
    estimated = estimate_mdp(model, 0.9, 50, np.random.default_rng(0))
    assert model.asked.tolist() == [50] * 6
    expected = np.array([np.bincount(model.drawn[50 * k : 50 * (k + 1)], minlength=3) for k in range(6)]) / 50
    assert estimated.transitions.toarray() == pytest.approx(expected, abs=1e-15)
    assert estimated.absorbing_state == 2
    assert estimated.initial_distribution[2] == 0
    assert estimated.initial_distribution == pytest.approx([0.7, 0.3, 0.0], abs=0.15)


def test_estimates_in_blocks_are_the_same_as_at_once(gridworld, monkeypatch):
    model = TabularModel.of(gridworld[0])
    at_once = estimate_mdp(model, 0.9, 3, np.random.default_rng(0))
    monkeypatch.setattr("lfd_gym.solvers.exact.plug_in._DRAWS_AT_ONCE", 500)
    in_blocks = estimate_mdp(model, 0.9, 3, np.random.default_rng(0))
    assert (at_once.transitions != in_blocks.transitions).nnz == 0


def test_more_draws_come_closer(gridworld):
    mdp, costs, rho = gridworld
    model = TabularModel.of(mdp)
    gaps = []
    for draws in (10, 1000):  # about 1e4 and 1e6 draws in all
        found = lfd.solve_plug_in(model, costs, rho, 0.9, draws, np.random.default_rng(1))
        truth = (mdp.occupancy(found.policy).ravel() @ costs - rho).max()
        assert found.oracle_calls == draws * 1024
        assert found.status == "optimal"
        gaps.append(truth)  # α* = 0: the expert is optimal
    assert 0.002 < gaps[0] < 0.1
    assert -1e-9 <= gaps[1] < 0.002


def test_the_ball_is_solved_too(gridworld):
    mdp, costs, rho = gridworld
    model = TabularModel.of(mdp)
    found = lfd.solve_plug_in(model, costs, rho, 0.9, 100, np.random.default_rng(0), cost_class="ball")
    truth = np.linalg.norm(mdp.occupancy(found.policy).ravel() @ costs - rho)
    assert found.status == "optimal"
    assert found.apprentice_value == pytest.approx(truth, abs=0.05)


def test_same_seed_same_result(gridworld):
    mdp, costs, rho = gridworld
    model = TabularModel.of(mdp)
    first, second, other = (
        lfd.solve_plug_in(model, costs, rho, 0.9, 5, np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    assert np.array_equal(first.policy, second.policy)
    assert first.apprentice_value == second.apprentice_value
    assert not np.array_equal(first.policy, other.policy)


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("draws_per_pair", 0, "draws_per_pair must be at least 1"),
        ("discount", 1.0, "discount must lie strictly between"),
        ("cost_features", np.zeros((7, 2)), r"cost_features must have shape"),
        ("cost_features", np.zeros((6, 2)), "cost_features must have shape"),
        ("expert_features", [0.0], "expert_features must have shape"),
        ("cost_class", "cube", "cost_class must be one of"),
    ],
)
def test_bad_arguments_are_named(argument, value, message):
    arguments = {
        "model": TabularModel(np.eye(4)[[0, 1, 2, 3, 0, 1, 2, 3]], initial_distribution=np.full(4, 0.25)),
        "cost_features": np.zeros((8, 2)),
        "expert_features": np.zeros(2),
        "discount": 0.9,
        "draws_per_pair": 2,
        "rng": np.random.default_rng(0),
    }
    with pytest.raises(ValueError, match=message):
        lfd.solve_plug_in(**(arguments | {argument: value}))


def test_only_finite_models_have_transitions_to_estimate():
    model = lfd.as_generative_model(gym.make("CartPole-v1"))
    with pytest.raises(ValueError, match="Discrete state_space"):
        estimate_mdp(model, 0.9, 1, np.random.default_rng(0))
