"""The learner `grid` where steps are taken one after the other: few of them, the same bits, and what it says of it."""

from dataclasses import replace

import numpy as np
import pytest
from simulators import CoupledTanks, Line, OneByOne, fill, to_the_right

import lfd_gym as lfd
from lfd_gym.baselines import grid_laying, grid_search, make_learner
from lfd_gym.model.mdp import FiniteMDP


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
    most = grid_laying.most_steps(tanks_task(simulator))
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


@pytest.fixture
def rounds(monkeypatch):
    """The searches of the rounds, as they are solved."""
    found, solve = [], grid_laying.Search.solve_grid

    def spy(search, max_calls):
        solve(search, max_calls)
        found.append(search)

    monkeypatch.setattr(grid_laying.Search, "solve_grid", spy)
    return found


@pytest.mark.filterwarnings("ignore:.*initial states are far")
def test_actions_are_held_for_longer_in_each_round_whatever_comes_of_it(rounds):
    facts = learn(tanks_task(OneByOne(CoupledTanks()))).facts
    first = rounds[0].model.repeat
    assert [each.model.repeat for each in rounds] == [first, 2 * first, 3 * first, 4 * first]
    assert facts["n_candidates"] >= 4 * 3  # three modes of each
    assert len({repr(each.model.grid.axes) for each in rounds}) == 4  # laid again over what the policy visits


@pytest.mark.filterwarnings("ignore:.*initial states are far")
def test_what_is_given_stays_as_it_is_in_all_rounds(rounds):
    assert learn(tanks_task(OneByOne(CoupledTanks())), repeat=3).facts["repeat"] == 3
    assert [each.model.repeat for each in rounds] == [3] * 4
    rounds.clear()
    given = lfd.Grid([np.linspace(0, 2, 9)] * 2)
    learn(tanks_task(OneByOne(CoupledTanks())), repeat=2, grid=given)
    assert [each.model.grid for each in rounds] == [given]


@pytest.mark.filterwarnings("ignore:.*initial states are far")
@pytest.mark.parametrize("budget", [1, 3, 10, 24])
def test_the_budget_is_that_of_all_rounds_together(monkeypatch, budget):
    plan, calls = FiniteMDP.plan, []

    def spy(*arguments, **settings):
        calls.append(arguments)
        return plan(*arguments, **settings)

    monkeypatch.setattr(FiniteMDP, "plan", spy)
    assert learn(tanks_task(OneByOne(CoupledTanks())), budget=budget).facts["n_planner_calls"] == len(calls) <= budget


@pytest.mark.filterwarnings("ignore:.*initial states are far")
def test_each_round_is_judged_in_the_simulator_and_what_is_told_is_of_the_one_taken(monkeypatch, rounds):
    judge, judged = grid_laying.Search._judged_again, []

    def only_the_third_will_do(search, candidate):
        judged.append(candidate.model)
        distance = float(candidate.model is not rounds[2].model)
        return replace(judge(search, candidate), distance=distance)

    monkeypatch.setattr(grid_laying.Search, "_judged_again", only_the_third_will_do)
    monkeypatch.setattr(grid_search, "_FINALIST", 100.0)
    facts = learn(tanks_task(OneByOne(CoupledTanks()))).facts
    assert {id(each) for each in judged} == {id(each.model) for each in rounds}
    assert facts["repeat"] == rounds[2].model.repeat
    assert facts["apprentice_value_on_grid"] == rounds[2].value_on_grid
    assert len({each.value_on_grid for each in rounds}) == 4


@pytest.mark.filterwarnings("ignore:.*initial states are far")
def test_a_policy_of_the_table_can_be_kept_if_asked_for(tmp_path):
    task = tanks_task(OneByOne(CoupledTanks()))
    policy = learn(task, savable=True).policy
    lfd.save_policy(policy, tmp_path / "policy.npz")
    seen = task.demonstrations.acted_on
    np.testing.assert_array_equal(lfd.load_policy(tmp_path / "policy.npz").greedy(seen), policy.greedy(seen))


def test_noise_that_is_dear_is_drawn_from_fewer_points(monkeypatch):
    """A table of one draw would say nothing of it."""
    monkeypatch.setattr(grid_laying, "_DEAR_PAIRS", 12 * 2 * 8)
    simulator = OneByOne(Line(noise=0.05))
    demos = lfd.collect(Line(noise=0.05), to_the_right, 3, 60, rng=np.random.default_rng(0))
    facts = learn(lfd.Task(simulator, demos, discount=0.9)).facts
    assert "table_steps" not in facts
    assert facts["grid"] == "Grid(12 points, multilinear)"
    assert facts["n_rollouts"] == 50
