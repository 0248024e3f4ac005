"""Costs: tables and functions behind one interface."""

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym.costs.costs import as_costs, model_costs

TABLE = np.array([[1.0, 0.0], [0.5, 0.0], [0.0, -1.0], [0.0, 1.0]])


def of_table(observations, actions):
    return TABLE[observations * 2 + actions]


def test_a_table_and_its_function_agree():
    table, function = lfd.TableCosts(TABLE, 2), lfd.FunctionCosts(of_table)
    states, actions = np.array([0, 1, 1, 0]), np.array([1, 0, 1, 0])
    np.testing.assert_array_equal(table.rows(states, actions), function.rows(states, actions))
    assert (table.n_costs, function.n_costs) == (2, 2)
    assert function.table is None
    assert table.names == ("c0", "c1")
    assert lfd.TableCosts(TABLE, 2, names=("near", "far")).names == ("near", "far")
    assert repr(table) == "TableCosts(2 costs, Simplex())"
    assert repr(lfd.FunctionCosts(of_table, weights="ball")) == "FunctionCosts(some costs, Ball(bound=1.0))"


def test_the_end_is_free():
    function = lfd.FunctionCosts(lambda seen, done: np.ones((len(seen), 1)))
    seen = np.array([[0.5], [np.nan], [0.1]])
    ended = np.array([False, False, True])
    np.testing.assert_array_equal(function.rows(seen, np.zeros(3)), [[1.0], [0.0], [1.0]])
    np.testing.assert_array_equal(function.rows(seen, np.zeros(3), ended), [[1.0], [0.0], [0.0]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lfd.TableCosts(2 * TABLE, 2), r"table must lie in \[-1, 1\], but feature 0 reaches 2"),
        (lambda: lfd.TableCosts(TABLE[:, :0], 2), "table must have at least one column"),
        (lambda: lfd.TableCosts(TABLE, 3), r"table must have S\*A rows with A = 3, got 4"),
        (lambda: lfd.TableCosts(TABLE, 2, names=("one",)), "names must be 2, one for each cost, got 1"),
        (lambda: lfd.TableCosts(TABLE, 2, weights="box"), "weights must be one of"),
        (lambda: lfd.TableCosts(TABLE, 2).rows(np.array([2]), np.array([0])), r"observations must lie in \[0, 2\)"),
        (lambda: lfd.TableCosts(TABLE, 2).rows(np.array([-1]), np.array([0])), r"observations must lie in \[0, 2\)"),
        (lambda: lfd.FunctionCosts(of_table, 3).rows(np.array([0]), np.array([0])), r"must return shape \(1, 3\)"),
        (lambda: lfd.FunctionCosts(lambda s, a: [1.0]).rows(np.array([0]), np.array([0])), r"return shape \(1, n_c\)"),
        (lambda: lfd.FunctionCosts(lambda s, a: [[7.0]]).rows(np.array([0]), np.array([0])), "feature 0 reaches 7"),
        (lambda: lfd.FunctionCosts(lambda s, a: [[np.nan]]).rows(np.array([0]), np.array([0])), "must be finite"),
        (lambda: as_costs("costs", TABLE, 2, n_pairs=6), r"costs must have shape \(6, any\)"),
        (lambda: as_costs("costs", TABLE[:, 0], 2, n_pairs=4), r"costs must have shape \(4, any\)"),
        (lambda: as_costs("costs", TABLE, None), r"costs must be a function of \(observations, actions\)"),
        (lambda: as_costs("costs", lfd.TableCosts(TABLE, 2), 2, "ball"), "cost_class must be that of the costs"),
    ],
)
def test_what_is_wrong_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_function_must_be_one():
    with pytest.raises(TypeError, match="function must map"):
        lfd.FunctionCosts(TABLE)


def test_costs_of_a_model():
    mdp = lfd.FiniteMDP(np.full((2, 2, 2), 0.5), [0.5, 0.5], discount=0.9)
    assert model_costs("costs", TABLE, mdp.dynamics, "ball").weights == lfd.Ball()
    own = lfd.TableCosts(TABLE, 2, "ball")
    assert model_costs("costs", own, mdp.dynamics) is own
    with pytest.raises(ValueError, match=r"costs must be an .* array when the model is known"):
        model_costs("costs", of_table, mdp.dynamics)
    with pytest.raises(ValueError, match=r"costs must have shape \(4, any\), got \(2, 2\)"):
        model_costs("costs", TABLE[:2], mdp.dynamics)


def test_one_rule_for_environments_that_bring_a_reward_only():
    """FrozenLake's costs: the reward's first, then four that are zero at the end, the same for everybody."""
    tasks = [lfd.Task(gym.make("FrozenLake-v1"), discount=0.9) for _ in range(2)]
    table = tasks[0].cost_table
    assert table.shape == (17 * 4, 5)
    np.testing.assert_array_equal(table, tasks[1].cost_table)
    np.testing.assert_array_equal(table[:, 0], tasks[0].true_cost.table[:, 0])
    assert not table[-4:].any()
    assert (np.abs(table[:-4, 1:]).sum(axis=0) > 0).all()


def test_costs_that_do_not_fit_say_what_to_do():
    seen, done = np.full((3, 1), 4.0), np.zeros(3, int)
    with pytest.raises(ValueError, match=r"a single cost is one column, costs\[:, None\]"):
        lfd.FunctionCosts(lambda observations, actions: observations[:, 0]).rows(seen, done)
    # normalise_costs would divide each batch by another number.
    with pytest.raises(ValueError, match=r"feature 0 reaches 4.0; divide by a number that is fixed beforehand"):
        lfd.FunctionCosts(lambda observations, actions: observations).rows(seen, done)


def test_a_table_stays_what_it_was_when_it_was_checked():
    """Else costs beyond [−1, 1] could come in later, unseen, and the norm of the rows be that of others."""
    given = np.array([[0.5], [-0.5]])
    costs = lfd.TableCosts(given, n_actions=2)
    given *= 10
    assert costs.table.tolist() == [[0.5], [-0.5]]
    with pytest.raises(ValueError, match="read-only"):
        costs.table[0, 0] = 3.0
    assert lfd.TableCosts(costs.table, n_actions=2).table is costs.table  # nothing is copied twice


def test_costs_that_are_larger_than_they_say_have_no_bounds():
    """A class of one's own may return what it likes: what is not in [−1, 1] would be cut to it, unseen."""

    class Own(lfd.Costs):
        n_costs = 2

        def __init__(self, size, weights):
            self.size = size
            super().__init__(weights)

        def rows(self, observations, actions, ended=None):
            return np.full((len(observations), 2), self.size)

    def certified(costs):
        env, rng = gym.make("CartPole-v1"), np.random.default_rng(0)
        task = lfd.Task(
            env, lfd.collect(env, lambda seen: np.ones(len(seen), int), 3, 5, rng), discount=0.9, costs=costs
        )
        return lfd.certify(lambda seen: np.zeros(len(seen), int), task, rng=rng, n_rollouts=5)

    for weights in ("simplex", "ball"):
        assert certified(Own(1.0, weights)).to_expert is not None
    with pytest.raises(ValueError, match=r"entries of at most 1, got .*: the costs are larger than they say"):
        certified(Own(3.0, "simplex"))
    lying = Own(1.0, "ball")
    lying.row_norm = 0.1
    with pytest.raises(ValueError, match=r"rows of norms of at most 0.1, got"):
        certified(lying)
