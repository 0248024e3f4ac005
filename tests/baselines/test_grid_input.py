"""The learner `grid`: what it cannot use it refuses by name, what it can use it says the consequence of; its files."""

import gymnasium as gym
import numpy as np
import pytest
from experts import mountain_car, pendulum
from hypothesis import given, settings
from hypothesis import strategies as st
from simulators import CoupledTanks, Line, fill, to_the_right

import lfd_gym as lfd
from lfd_gym.baselines import make_learner
from lfd_gym.baselines.neural.fitting import is_installed
from lfd_gym.grids.actions import ActionGrid
from lfd_gym.grids.grid_model import GridModel
from lfd_gym.grids.policies import GridPolicy, LookaheadPolicy
from lfd_gym.grids.readings import StateReading
from lfd_gym.learning import best_learner
from lfd_gym.validation import LfdGymWarning


def learn(task, seed=0, budget=12, **settings):
    return lfd.learn(task, make_learner("grid", **settings), rng=np.random.default_rng(seed), budget=budget)


def on_a_line(simulator, horizon=60, discount=0.9, shown_by=None, expert=to_the_right):
    """Return the task of a simulator, of which ``shown_by`` gives the demonstration."""
    shown_by = simulator if shown_by is None else shown_by
    demos = lfd.collect(shown_by, expert, 1, horizon, rng=np.random.default_rng(0))
    return lfd.Task(simulator, demos, discount=discount)


# -- simulators --------------------------------------------------------------------------------------------------------


def test_a_simulator_that_ends_at_once_is_refused():
    ending = Line(end=1e-9)
    ending.sample_initial = lambda n, rng: np.zeros((n, 1))
    with pytest.raises(ValueError, match="must go on from some state of the grid: all of 61 points and 2 actions end"):
        learn(on_a_line(ending, shown_by=Line()))


class Broken(CoupledTanks):
    """Overflows into numbers that are none, in one entry of the state."""

    def __init__(self, value, above):
        super().__init__()
        self.value, self.above = value, above

    def sample_next(self, states, actions, rng):
        after = super().sample_next(states, actions, rng)
        after[after[:, 0] > self.above, 1] = self.value
        return after


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("above", [0.5, 1.99])
def test_a_simulator_that_leads_to_no_numbers_is_refused(value, above):
    """Where random play comes, and where only the grid does."""
    demos = lfd.collect(CoupledTanks(), fill, 1, 5, rng=np.random.default_rng(0))
    costs = lfd.FunctionCosts(lambda seen, done: seen / 2)
    task = lfd.Task(Broken(value, above), demos, discount=0.5, costs=costs)
    grid = lfd.Grid([np.linspace(0, 2, 5)] * 2)
    with pytest.raises(ValueError, match=f"simulator must lead to finite states.*{value}"):
        learn(task, grid=grid)


@pytest.mark.filterwarnings("ignore:.*initial states are far")
def test_a_simulator_that_leaves_the_grid_is_held_at_its_edge():
    """Nothing breaks, and how often it happens is told; one that stays inside tells zero."""
    task = on_a_line(Line())
    narrow = learn(task, grid=lfd.Grid([np.linspace(-0.15, 0.65, 9)])).facts
    assert narrow["share_outside"] == pytest.approx(2 / 18)  # of two actions, one at each end
    assert narrow["distance"] < 0.5 * narrow["distance_of_random"]
    tanks = CoupledTanks()
    inside = lfd.Task(tanks, lfd.collect(tanks, fill, 1, 60, rng=np.random.default_rng(0)), discount=0.9)
    assert learn(inside, grid=lfd.Grid([np.linspace(0, 2, 9)] * 2)).facts["share_outside"] == 0


class LocalNoise(Line):
    """Noisy where the expert goes, and nowhere else."""

    def sample_next(self, states, actions, rng):
        after = super().sample_next(states, actions, rng)
        near = (np.abs(after[:, 0] - 0.5) < 0.2) & (np.abs(after[:, 1:]) < 1.0).all(axis=1)
        after[near] += 0.05 * rng.standard_normal((near.sum(), after.shape[1]))
        return after

    def sample_initial(self, n, rng):
        return np.hstack([rng.uniform(-3, 3, (n, 1)), rng.uniform(-0.5, 0.5, (n, self.state_space.shape[0] - 1))])


@pytest.mark.filterwarnings("ignore:.*initial states are far")
@pytest.mark.parametrize("seed", range(5))
def test_noise_where_the_expert_goes_is_noticed(seed):
    task = on_a_line(LocalNoise(n_dimensions=3), horizon=40)
    assert not learn(task, seed=seed, n_points=7).facts["deterministic"]


def test_memory_holds_the_draws_of_noisy_simulators(monkeypatch):
    """Several draws a pair make longer rows."""
    kept, build = [], GridModel._build

    def spy(model, rng):
        found = build(model, rng)
        kept.append(found.data.nbytes + found.indices.nbytes)
        return found

    monkeypatch.setattr(GridModel, "_build", spy)
    simulator, memory = Line(noise=0.3, n_dimensions=2), 3e5
    demos = lfd.collect(simulator, to_the_right, 1, 60, rng=np.random.default_rng(0))
    costs = lfd.FunctionCosts(lambda seen, done: np.hstack([np.tanh(seen), -np.tanh(seen)]))
    learn(lfd.Task(simulator, demos, discount=0.9, costs=costs), memory=memory)
    assert 0 < max(kept) < memory


class Constant(Line):
    """Has an entry of the state that is always the same."""

    def __init__(self):
        super().__init__(n_dimensions=2)
        low, high = np.array([-5.0, 1.0]), np.array([5.0, 1.0])
        self.state_space = self.observation_space = gym.spaces.Box(low, high, dtype=np.float64)

    def sample_initial(self, n, rng):
        return np.stack([rng.uniform(-0.1, 0.1, n), np.ones(n)], axis=1)

    def sample_next(self, states, actions, rng):
        after = super().sample_next(states, actions, rng)
        after[:, 1] = 1.0
        return np.clip(after, -5, 5)


def test_an_entry_of_the_state_that_never_changes_does_no_harm():
    result = lfd.learn(on_a_line(Constant()), rng=np.random.default_rng(0), budget=12)
    assert result.learner == "grid"
    assert result.facts["distance"] < 0.5 * result.facts["distance_of_random"]


def test_too_many_dimensions_are_refused_before_anything_is_simulated():
    def play(observations):
        return np.zeros(len(observations), dtype=int)

    simulator = Line(n_dimensions=6)
    demos = lfd.collect(simulator, play, 1, 20, rng=np.random.default_rng(0))
    costs = lfd.FunctionCosts(lambda seen, done: np.tanh(seen))
    task = lfd.Task(simulator, demos, discount=0.9, costs=costs)
    before = simulator.n_steps
    with pytest.raises(
        ValueError, match=r"6 dimensions at 7 points are 117,649 states x 2 actions, more than the 60,000"
    ):
        learn(task)
    with pytest.raises(
        ValueError, match=r"6 dimensions at 15 points are 11,390,625 states x 2 actions.* GB, more than"
    ):
        learn(task, n_points=15)
    assert simulator.n_steps == before
    assert best_learner(task)[0] == ("primal_dual_rl" if is_installed() else "bc")


# -- demonstrations ----------------------------------------------------------------------------------------------------


def test_demonstrations_outside_a_given_grid_are_refused():
    with pytest.raises(ValueError, match=r"grid must hold the demonstrated states, but \d+ of 60 lie outside"):
        learn(on_a_line(Line()), grid=lfd.Grid([np.linspace(-0.2, 0.2, 9)]))


def test_demonstrations_of_another_environment_are_refused():
    demos = lfd.collect(gym.make("MountainCar-v0"), mountain_car, 1, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="MountainCar-v0"):
        lfd.Task(gym.make("MountainCarContinuous-v0"), demos, discount=0.9)
    with pytest.raises(ValueError, match=r"demonstrations observe .*but the environment shows"):
        lfd.Task(Line(), demos, discount=0.9, allow_mismatch=True)


def test_one_single_step_is_learned_from_with_a_warning():
    with pytest.warns(LfdGymWarning, match="the demonstrations show 10% of the discounted weight"):
        result = learn(on_a_line(Line(), horizon=1))
    assert result.facts["unseen_mass"] == pytest.approx(0.9)
    assert result.policy.action_space == gym.spaces.Discrete(2)


def test_an_expert_whose_actions_are_not_known():
    """Costs of states will do."""
    task = on_a_line(Line())
    watched = lfd.Task(Line(), task.demonstrations.without_actions(), discount=0.9)
    facts = learn(watched).facts
    assert facts["distance"] < 0.5 * facts["distance_of_random"]


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_points": 1}, "n_points must be a whole number of at least 2, got 1"),
        ({"n_points": -3}, "n_points must be a whole number of at least 2, got -3"),
        ({"n_points": 2.5}, "n_points must be an integer or None, got 2.5"),
        ({"n_points": "9"}, "n_points must be an integer or None, got '9'"),
        ({"repeat": 0}, "repeat must be a whole number of at least 1, got 0"),
        ({"repeat": 1.5}, "repeat must be an integer or None, got 1.5"),
        ({"n_actions": 1}, r"n_actions must be all 2 of Discrete\(2\), got 1"),
        ({"n_actions": 2.5}, "n_actions must be an integer or None, got 2.5"),
        ({"memory": -1}, "memory must be a positive number of bytes, got -1"),
        ({"memory": float("nan")}, "memory must be a number, got nan"),
        ({"memory": float("inf")}, "memory must be a positive number of bytes, got inf"),
        ({"memory": 1000}, r"7 states x 2 actions with \d+ costs, .* more than memory=1e-06 GB"),
        ({"grid": "fine"}, "grid must be a Grid or None, got 'fine'"),
        ({"grid": [[0.0, 1.0]]}, r"grid must be a Grid or None, got \[\[0.0, 1.0\]\]"),
        ({"grid": lfd.Grid([[-1.0, 1.0]] * 2)}, "grid must have the 1 axes of the states"),
        ({"grid": lfd.Grid([np.linspace(-3, 3, 2001)]), "memory": 1e4}, "1 dimensions at 2001 points are 2,001 states"),
        ({"angles": (3,)}, "angles must be entries of the state, 0 to 0, got 3"),
        ({"angles": (-1,)}, "angles must be entries of the state, 0 to 0, got -1"),
        ({"angles": ("a",)}, "angles must be a sequence, each of which is an integer, got"),
        ({"angles": (0.5,)}, "angles must be a sequence, each of which is an integer, got"),
        ({"angles": 0}, "angles must be a sequence, got 0"),
        ({"budget": 0}, "budget must be at least 1 planner calls"),
    ],
)
def test_bad_settings_are_named(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        learn(on_a_line(Line()), **given)


def test_unknown_settings_are_named():
    with pytest.raises(ValueError, match="learner 'grid' has no setting 'points'; it has grid, n_points"):
        make_learner("grid", points=9)


def pushed(observations):
    return np.clip(5 * (0.5 - observations), -1, 1)


def test_actions_of_numbers():
    one = Line(action_space=gym.spaces.Box(-1, 1, (1,)))
    with pytest.raises(ValueError, match="n_actions must be at least 2 along each dimension"):
        learn(on_a_line(one, expert=pushed), n_actions=1)
    assert learn(on_a_line(one, expert=pushed), n_actions=5).facts["n_actions"] == 5
    three = Line(action_space=gym.spaces.Box(-1, 1, (3,)))
    task = on_a_line(three, expert=lambda seen: np.repeat(pushed(seen), 3, axis=1))
    with pytest.raises(ValueError, match=r"bounded Box of one or two numbers for a grid, got Box\(-1.0, 1.0, \(3,\)"):
        learn(task)
    assert best_learner(task)[0] == ("primal_dual_rl" if is_installed() else "bc")


# -- wrappers ----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*initial states are far")
def test_another_time_limit_changes_nothing_but_the_demonstration():
    env = gym.wrappers.TimeLimit(gym.make("MountainCar-v0").unwrapped, 60)
    task = lfd.Task(env, lfd.collect(env, mountain_car, 1, rng=np.random.default_rng(0)), discount=0.9)
    assert best_learner(task)[0] == "grid"
    facts = learn(task, n_points=21).facts
    assert facts["unseen_mass"] == pytest.approx(0.9**60)
    assert facts["distance"] < 0.5 * facts["distance_of_random"]


@pytest.mark.filterwarnings("ignore:.*initial states are far")
def test_rescaled_actions_are_those_of_the_wrapper():
    env = gym.wrappers.RescaleAction(gym.make("Pendulum-v1", max_episode_steps=15), -1.0, 1.0)
    demos = lfd.collect(env, lambda seen: pendulum(seen) / 2, 2, rng=np.random.default_rng(0))
    result = learn(lfd.Task(env, demos, discount=0.7), n_points=11, n_actions=3)
    np.testing.assert_array_equal(result.policy.actions.actions.ravel(), [-1, 0, 1])


def test_observations_that_do_not_tell_states_fall_back_to_cloning():
    env = gym.wrappers.FlattenObservation(gym.make("MountainCar-v0"))
    task = lfd.Task(env, lfd.collect(env, mountain_car, 1, rng=np.random.default_rng(0)), discount=0.9)
    assert best_learner(task)[0] == ("primal_dual_rl" if is_installed() else "bc")
    with pytest.raises(ValueError, match="grid cannot learn this task: its observations do not tell the states"):
        learn(task)


def test_under_a_wrapper_that_may_do_anything_there_is_no_simulator():
    class Sticky(gym.Wrapper):
        """Does something."""

    env = Sticky(gym.make("MountainCar-v0"))
    task = lfd.Task(env, lfd.collect(env, mountain_car, 1, rng=np.random.default_rng(0)), discount=0.9)
    assert best_learner(task)[0] == ("primal_dual_rl" if is_installed() else "bc")
    with pytest.raises(ValueError, match=r"grid needs access to the simulator.*`Sticky`"):
        learn(task)


def test_without_discount_there_is_no_grid():
    env = gym.make("MountainCar-v0")
    demos = lfd.collect(env, mountain_car, 1, rng=np.random.default_rng(0))
    task = lfd.Task(env, demos, discount=1, horizon=200)
    assert best_learner(task)[0] == "bc"
    with pytest.raises(ValueError, match="the discount must be below 1"):
        learn(task)


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vote", [True, False])
@pytest.mark.parametrize("env_id", ["MountainCar-v0", "Pendulum-v1"])
def test_a_learned_table_is_kept_without_the_simulator(env_id, vote, tmp_path):
    """Of both ways to act by a table; that of Pendulum is over the angle, which is observed as a vector."""
    env, expert = gym.make(env_id), {"MountainCar-v0": mountain_car, "Pendulum-v1": pendulum}[env_id]
    demos = lfd.collect(env, expert, 5, rng=np.random.default_rng(0))
    task = lfd.Task(env, demos, discount=0.95)
    simulator, rng = task.simulator, np.random.default_rng(1)
    grid = lfd.Grid([np.linspace(-3, 3, 9), np.linspace(-1, 1, 7)], [2 * np.pi, 0])
    actions = ActionGrid(simulator.action_space)
    reading = StateReading.found(simulator, simulator.states_of(demos.acted_on))
    table = rng.dirichlet(np.ones(len(actions)), grid.n_points)
    policy = GridPolicy(grid, actions, table, reading, simulator.observation_space, vote=vote)
    lfd.save_policy(policy, tmp_path / "policy.npz")
    kept = lfd.load_policy(tmp_path / "policy.npz")
    assert repr(kept) == repr(policy)
    assert kept.action_space == env.action_space
    assert kept.observation_space == env.observation_space
    seen = demos.acted_on
    np.testing.assert_array_equal(kept.greedy(seen), policy.greedy(seen))
    drawn = [each.sample(seen, np.random.default_rng(2)) for each in (kept, policy)]
    np.testing.assert_array_equal(*drawn)
    again = policy.sample(seen, np.random.default_rng(3))
    assert np.array_equal(again, drawn[0]) == vote  # one draws, the other does not
    # Turned angles are read back: the state of the simulator acts as what is observed of it does.
    np.testing.assert_allclose(np.cos(reading(seen)[:, 0]), np.cos(simulator.states_of(seen)[:, 0]), atol=1e-6)


def test_what_was_learned_is_kept(tmp_path):
    result = learn(on_a_line(Line(noise=0.05)))  # which no simulator looks ahead of
    lfd.save_policy(result.policy, tmp_path / "policy.npz")
    kept, seen = lfd.load_policy(tmp_path / "policy.npz"), np.linspace(-2, 2, 101)[:, None]
    np.testing.assert_array_equal(kept.probabilities(seen), result.policy.probabilities(seen))


def test_looking_ahead_needs_the_simulator(tmp_path):
    simulator = Line()
    grid = lfd.Grid([np.linspace(-1, 1, 9)])
    model = lfd.GridModel(simulator, grid, discount=0.9, rng=np.random.default_rng(0))
    policy = LookaheadPolicy(model, np.zeros(18), np.zeros(9), simulator.states_of)
    with pytest.raises(ValueError, match="cannot be saved: it needs the simulator to look ahead"):
        lfd.save_policy(policy, tmp_path / "policy.npz")
    assert not list(tmp_path.iterdir())


class Turned(CoupledTanks):
    """Shows the sum and the difference of the levels."""

    def __init__(self):
        super().__init__()
        self.observation_space = gym.spaces.Box(-4.0, 4.0, (2,), np.float64)

    def observe(self, states):
        return np.asarray(states, dtype=float) @ np.array([[1, 1], [1, -1]])

    def states_of(self, observations):
        return np.asarray(observations, dtype=float) @ np.array([[1, 1], [1, -1]]) / 2


@pytest.mark.filterwarnings("ignore:.*initial states are far")
def test_states_that_the_simulator_alone_can_tell(tmp_path):
    """It learns and acts, but a table over such states cannot be kept."""
    turned = Turned()
    demos = lfd.collect(turned, lambda seen: fill(turned.states_of(seen)), 1, 60, rng=np.random.default_rng(0))
    result = learn(lfd.Task(turned, demos, discount=0.9), n_points=15, n_actions=5)
    assert result.facts["distance_when_chosen"] < 0.5 * result.facts["distance_of_random"]
    with pytest.raises(ValueError, match=r"cannot be saved: (its states are told by the|it needs the) simulator"):
        lfd.save_policy(result.policy, tmp_path / "policy.npz")


# -- identities --------------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.integers(1, 4), st.floats(0.02, 0.3), st.sampled_from([0.9, np.inf]))
def test_looking_ahead_from_a_point_is_the_bellman_operator(seed, repeat, push, end):
    """At the points of the grid what is seen ahead is what the finite model says, whatever costs and values are."""
    rng = np.random.default_rng(seed)
    grid = lfd.Grid([np.sort([-0.85, *rng.uniform(-0.8, 0.8, 6), 0.85])])
    model = lfd.GridModel(Line(push, end=end), grid, discount=0.9, rng=rng, repeat=repeat)
    costs, values = rng.uniform(-1, 1, model.n_states * 2), rng.uniform(-1, 1, model.n_states)
    wanted = (1 - model.mdp_discount) * costs + model.mdp_discount * (model.transitions @ values)
    ahead = model.lookahead(grid.points, costs, values)
    np.testing.assert_allclose(ahead, wanted.reshape(-1, 2)[: grid.n_points], atol=1e-9)


def test_a_small_angle_is_an_angle():
    """Near zero its sine is much like the angle itself, but a line is no circle."""

    class Shown(Line):
        def observe(self, states):
            return np.hstack([np.cos(states), np.sin(states)])

        def states_of(self, observations):
            return np.arctan2(observations[:, 1:], observations[:, :1])

    reading = StateReading.found(Shown(), np.random.default_rng(0).uniform(-0.08, 0.08, (200, 1)))
    assert reading.n_angles == 1


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.integers(2, 6), st.booleans())
def test_a_reading_is_found_wherever_the_entries_stand(seed, n_entries, with_angle):
    """Observed are the entries of the state in any order among others, one of them perhaps as sine and cosine."""
    rng = np.random.default_rng(seed)
    order, n_states = rng.permutation(n_entries + 1), n_entries - 1

    class Shown(Line):
        def observe(self, states):
            angle = states[:, :1]
            first = np.hstack([np.sin(angle), np.cos(angle)]) if with_angle else np.hstack([angle, angle**2 + 9])
            return np.hstack([first, states[:, 1:], np.full((len(states), 1), 7.0)])[:, order]

        def states_of(self, observations):
            told = observations[:, np.argsort(order)]
            first = np.arctan2(told[:, :1], told[:, 1:2]) if with_angle else told[:, :1]
            return np.hstack([first, told[:, 2:-1]])

    simulator = Shown(n_dimensions=n_states)
    states = rng.uniform(-3, 3, (50, n_states))
    reading = StateReading.found(simulator, states)
    assert reading.n_angles == with_angle
    fresh = rng.uniform(-3, 3, (50, n_states))
    np.testing.assert_allclose(reading(simulator.observe(fresh)), fresh, atol=1e-9)
