"""Simulators on grids: against a hand-made chain, costs of held actions, noise, ends, and what is refused."""

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym.grids.actions import ActionGrid
from lfd_gym.grids.choice import GridSize, choose_grid, choose_repeat


class Line:
    """A point on a line, pushed left or right; an episode ends beyond ``end``. It shows its position."""

    def __init__(self, step=0.25, noise=0.0, end=np.inf, action_space=None, broken_at=np.inf):
        self.state_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float64)
        self.observation_space = self.state_space
        self.action_space = gym.spaces.Discrete(2) if action_space is None else action_space
        self.step, self.noise, self.end, self.broken_at = step, noise, end, broken_at
        self.never_ends = end == np.inf

    def sample_initial(self, n, rng):
        return rng.uniform(-0.1, 0.1, (n, 1))

    def sample_next(self, states, actions, rng):
        push = np.asarray(actions, dtype=float).reshape(len(states), -1)[:, 0]
        if isinstance(self.action_space, gym.spaces.Discrete):
            push = 2 * push - 1
        after = np.asarray(states) + self.step * push[:, None]
        after = after + self.noise * rng.standard_normal(after.shape)
        after = np.where(np.abs(after) > self.end, np.nan, after)
        return np.where(after > self.broken_at, np.inf, after)

    def observe(self, states):
        return np.asarray(states)

    states_of = observe

    def is_absorbing(self, states):
        return np.isnan(states).all(axis=1)


COSTS = lfd.FunctionCosts(lambda seen, done: np.hstack([np.clip(seen, -1, 1), np.ones((len(seen), 1))]))


def line_model(simulator, n=5, **settings):
    rng = np.random.default_rng(0)
    return lfd.GridModel(simulator, lfd.Grid([np.linspace(-1, 1, n)]), discount=0.9, rng=rng, **settings)


def test_rows_are_interpolation_weights():
    model = line_model(Line(step=0.25))  # half a cell
    rows = model.transitions.toarray().reshape(5, 2, 5)
    np.testing.assert_allclose(rows[2, 1], [0, 0, 0.5, 0.5, 0])
    np.testing.assert_allclose(rows[2, 0], [0, 0.5, 0.5, 0, 0])
    np.testing.assert_allclose(rows[4, 1], [0, 0, 0, 0, 1])  # the edge stands for what is beyond
    assert model.share_outside == pytest.approx(2 / 10)
    assert model.absorbing_state is None
    assert model.deterministic


def test_an_action_that_is_held_moves_a_whole_cell_and_pays_for_all_its_steps():
    model = line_model(Line(step=0.25), repeat=2)
    rows = model.transitions.toarray().reshape(5, 2, 5)
    np.testing.assert_allclose(rows[2, 1], [0, 0, 0, 1, 0], atol=1e-12)
    assert model.mdp_discount == pytest.approx(0.81)
    table = model.table(COSTS).reshape(5, 2, 2)
    np.testing.assert_allclose(table[..., 1], 1.0)
    scale = (1 - 0.9) / (1 - 0.81)
    np.testing.assert_allclose(table[2, 1, 0], scale * (0.0 + 0.9 * 0.25))


def test_expected_costs_are_those_of_the_simulator_where_steps_end_on_points():
    """Steps of one cell make the grid exact: its value is the discounted sum along the line."""
    model = line_model(Line(step=0.5))
    mdp, table = model.mdp([[-1.0]]), model.table(COSTS)
    always_right = np.tile([0.0, 1.0], (5, 1))
    positions = np.minimum(-1 + 0.5 * np.arange(400), 1.0)
    truth = 0.1 * (0.9 ** np.arange(400) * positions).sum()
    assert mdp.expected_cost(always_right, table[:, 0]) == pytest.approx(truth, abs=1e-9)


def test_an_end_is_the_absorbing_state_and_free():
    model = line_model(Line(step=0.5, end=0.9))
    assert model.absorbing_state == 5
    rows = model.transitions.toarray().reshape(6, 2, 6)
    np.testing.assert_allclose(rows[3, 1], [0, 0, 0, 0, 0, 1])
    np.testing.assert_allclose(rows[5], [[0, 0, 0, 0, 0, 1]] * 2)
    assert not model.table(COSTS)[-2:].any()


def test_noise_is_drawn_several_times():
    model = line_model(Line(noise=0.1), n_draws=50)
    assert not model.deterministic
    row = model.transitions.toarray().reshape(5, 2, 5)[2, 1]
    assert row.sum() == pytest.approx(1)
    assert row @ np.linspace(-1, 1, 5) == pytest.approx(0.25, abs=0.1)
    assert line_model(Line(noise=0.1)).n_draws == 8
    same = [line_model(Line(noise=0.1)).transitions.data for _ in range(2)]
    np.testing.assert_array_equal(*same)


def test_lookahead_takes_the_better_action_between_the_points():
    model = line_model(Line(step=0.25), n=41)
    cost = np.abs(np.repeat(model.grid.points[:, 0], 2))  # away from 0
    plan = model.mdp([[0.5]]).plan(cost)
    ahead = model.lookahead(np.array([[0.613], [-0.481]]), cost, plan.values)
    assert ahead.argmin(axis=1).tolist() == [0, 1]


def test_spread_costs_are_the_table_at_the_points_around():
    simulator = Line(action_space=gym.spaces.Box(-1.0, 1.0, (1,)))
    model = line_model(simulator, actions=ActionGrid(simulator.action_space, 3))
    costs = lfd.FunctionCosts(lambda seen, done: np.hstack([np.clip(seen, -1, 1) ** 2, done**2]))
    states, actions, weights = np.array([[0.25], [1.0]]), np.array([[0.5], [-1.0]]), np.array([0.4, 0.6])
    table = model.table(costs).reshape(5, 3, 2)
    truth = 0.4 * (table[2, 1] + table[2, 2] + table[3, 1] + table[3, 2]) / 4 + 0.6 * table[4, 0]
    np.testing.assert_allclose(model.spread_costs(costs, states, actions, weights), truth)


def test_actions_of_two_numbers():
    known = ActionGrid(gym.spaces.Box(np.array([-1.0, 0.0]), np.array([1.0, 2.0])), 3)
    assert known.actions.shape == (9, 2)
    index, weights = known.interpolate(np.array([[0.5, 1.0]]))
    np.testing.assert_allclose((weights[..., None] * known.actions[index]).sum(axis=1), [[0.5, 1.0]])


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (gym.spaces.MultiDiscrete([2, 2]), "must be Discrete or a Box"),
        (gym.spaces.Box(-1.0, 1.0, (3,)), "one or two numbers"),
        (gym.spaces.Box(-np.inf, np.inf, (1,)), "bounded"),
    ],
)
def test_actions_that_cannot_be_few_are_refused(space, message):
    with pytest.raises(ValueError, match=message):
        ActionGrid(space)


def test_simulators_that_cannot_be_used_are_refused():
    with pytest.raises(ValueError, match="must go on from some state of the grid: all of 5 points and 2 actions"):
        line_model(Line(end=0.0))
    with pytest.raises(ValueError, match=r"must lead to finite states, got \[inf\]"):
        line_model(Line(broken_at=0.6))
    never = Line(end=0.9)
    never.never_ends = True
    with pytest.raises(ValueError, match="says that it never ends, but"):
        line_model(never)
    with pytest.raises(ValueError, match="as many axes as states have entries"):
        lfd.GridModel(Line(), lfd.Grid([[0.0, 1.0]] * 2), discount=0.9, rng=np.random.default_rng(0))


def test_what_does_not_fit_says_so_in_numbers():
    with pytest.raises(ValueError, match=r"6 dimensions at 11 points are 1,771,561 states x 3 actions .* GB"):
        GridSize(6, 3, 129, memory=2e9).points_along(11)
    assert GridSize(4, 2, 129, memory=2e9).points_along() == 15
    assert GridSize(4, 2, 129, memory=2e7).points_along() < 15
    assert GridSize(2, 11, 129, memory=2e9).points_along() == 61


def test_axes_are_denser_where_more_was_visited_and_stay_in_the_space():
    rng = np.random.default_rng(0)
    visited = np.hstack([rng.normal(0, 0.1, (5000, 1)), rng.uniform(-1, 1, (5000, 1))])
    visited[0, 0] = 2.0
    grid = choose_grid(visited, 21, space=gym.spaces.Box(-1.0, 1.0, (2,), np.float64))
    steps = np.diff(grid.axes[0])
    assert steps.min() < 0.7 * steps.max()
    assert grid.axes[1][0] == -1.0
    assert grid.axes[1][-1] == 1.0
    around = choose_grid(visited, 21, angles=[1])
    assert around.periods.tolist() == [0.0, 2 * np.pi]


def test_actions_are_held_until_they_move():
    rng = np.random.default_rng(0)
    visited, grid = rng.uniform(-1, 1, (500, 1)), lfd.Grid([np.linspace(-1, 1, 21)])
    actions = ActionGrid(gym.spaces.Discrete(2))
    assert choose_repeat(Line(step=0.1), grid, visited, actions, rng) == 1
    assert choose_repeat(Line(step=0.02), grid, visited, actions, rng) == 3
    assert choose_repeat(Line(step=0.0), grid, visited, actions, rng) == 8


# -- rewards -----------------------------------------------------------------------------------------------------------


def test_rewards_are_averaged_over_the_steps_that_an_action_is_held():
    env = gym.make("Pendulum-v1")
    simulator, rng = lfd.as_generative_model(env), np.random.default_rng(0)
    grid = lfd.Grid([np.linspace(-3, 3, 5), np.linspace(-2, 2, 4)])
    model = lfd.GridModel(simulator, grid, discount=0.9, rng=rng, repeat=2, rewarded=True)
    states, held = np.repeat(grid.points, model.n_actions, axis=0), np.tile(model.actions.actions, (grid.n_points, 1))
    between, first = simulator.sample_rewarded(states, held, rng)
    _, second = simulator.sample_rewarded(between, held, rng)
    np.testing.assert_allclose(model.reward_cost, -(first + 0.9 * second) / 1.9)
    assert lfd.GridModel(simulator, grid, discount=0.9, rng=rng).reward_cost is None


def test_rewards_come_back_from_processes_and_an_end_is_worth_nothing():
    env = gym.wrappers.RescaleAction(gym.make("MountainCarContinuous-v0"), -0.5, 0.5)
    grid = lfd.Grid([np.linspace(-1, 0.44, 12), np.linspace(-0.06, 0.06, 11)])
    models = [
        lfd.GridModel(
            lfd.as_generative_model(source), grid, discount=0.9, rng=np.random.default_rng(0), repeat=3, rewarded=True
        )
        for source in (env, gym.make("MountainCarContinuous-v0"))
    ]
    np.testing.assert_allclose(models[0].reward_cost, models[1].reward_cost, atol=1e-6)
    np.testing.assert_array_equal(models[0].reward_cost[-models[0].n_actions :], 0.0)
    assert models[0].reward_cost.min() < -20  # the goal
