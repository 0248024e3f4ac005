"""The learner `grid` where steps are taken one after the other: few of them, the same bits, and what it says of it."""

import numpy as np
import pytest
from simulators import CoupledTanks, Line, OneByOne, fill, to_the_right

import lfd_gym as lfd
from lfd_gym.baselines import grid_laying, make_learner


def tanks_task(simulator):
    demos = lfd.collect(CoupledTanks(), fill, 5, 60, rng=np.random.default_rng(0))
    return lfd.Task(simulator, demos, discount=0.9)


def learn(task, seed=0, budget=24, **settings):
    return lfd.learn(task, make_learner("grid", **settings), rng=np.random.default_rng(seed), budget=budget)


@pytest.fixture(autouse=True)
def small_tables(monkeypatch):
    monkeypatch.setattr(grid_laying, "_TABLE_STEPS", 2000)
    monkeypatch.setattr(grid_laying, "_TABLE_STATES", 15**2)


@pytest.mark.filterwarnings("ignore:.*initial states are far")
def test_steps_that_are_dear_are_few_and_the_policy_is_as_near():
    simulator = OneByOne(CoupledTanks())
    found = learn(tanks_task(simulator))
    direct = learn(tanks_task(CoupledTanks()), n_points=15)
    most = grid_laying.most_steps(tanks_task(simulator), make_learner("grid"))
    assert found.facts["table_steps"] == 20**2 * 5 + 500
    assert found.facts["table_error"] < 0.1
    assert "15 x 15" in found.facts["grid"]
    assert found.facts["distance"] < direct.facts["distance"] + 0.1
    assert found.facts["distance"] < 0.5 * found.facts["distance_of_random"]
    assert found.resources.oracle_calls < most < 0.2 * direct.resources.oracle_calls


@pytest.mark.filterwarnings("ignore:.*initial states are far")
def test_the_same_seed_gives_the_same_bits():
    one, two = (learn(tanks_task(OneByOne(CoupledTanks()))) for _ in range(2))
    assert one.facts == two.facts
    np.testing.assert_array_equal(one.cost_weights, two.cost_weights)


@pytest.mark.filterwarnings("ignore:.*initial states are far")
def test_actions_are_held_for_longer_round_by_round_and_the_nearest_round_counts(monkeypatch):
    rounds = []
    solve = grid_laying.Search.solve_grid

    def spy(search):
        solve(search)
        rounds.append((search.model.repeat, search.nearest.distance, search.model.grid))

    monkeypatch.setattr(grid_laying.Search, "solve_grid", spy)
    facts = learn(tanks_task(OneByOne(CoupledTanks()))).facts
    repeats, distances, grids = zip(*rounds, strict=True)
    assert len(rounds) == grid_laying._N_ROUNDS
    assert repeats[1] == 2 * repeats[0]
    assert repeats[2] == (1 + (distances[1] < distances[0])) * repeats[int(np.argmin(distances[:2]))]
    assert facts["repeat"] in repeats
    assert grids[1] != grids[0]  # laid again over what the policy visits
    rounds.clear()
    assert learn(tanks_task(OneByOne(CoupledTanks())), repeat=3).facts["repeat"] == 3
    assert {repeat for repeat, _, _ in rounds} == {3}
    rounds.clear()
    given = lfd.Grid([np.linspace(0, 2, 9)] * 2)
    learn(tanks_task(OneByOne(CoupledTanks())), repeat=2, grid=given)
    assert [grid for _, _, grid in rounds] == [given]


@pytest.mark.filterwarnings("ignore:.*initial states are far")
def test_a_policy_of_the_table_can_be_kept_if_asked_for(tmp_path):
    result = learn(tanks_task(OneByOne(CoupledTanks())), savable=True)
    lfd.save_policy(result.policy, tmp_path / "policy.npz")


def test_noise_that_is_dear_is_drawn_from_fewer_points(monkeypatch):
    """A table of one draw would say nothing of it."""
    monkeypatch.setattr(grid_laying, "_DEAR_PAIRS", 12 * 2 * 8)
    simulator = OneByOne(Line(noise=0.05))
    demos = lfd.collect(Line(noise=0.05), to_the_right, 3, 60, rng=np.random.default_rng(0))
    facts = learn(lfd.Task(simulator, demos, discount=0.9)).facts
    assert "table_steps" not in facts
    assert facts["grid"] == "Grid(12 points, multilinear)"
    assert facts["n_rollouts"] == 50
