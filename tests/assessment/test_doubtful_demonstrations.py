"""Demonstrations that are no independent trajectories of the world: nothing is said about the expert behind them."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from worlds import distance, gridworld, random_world, too_many

import lfd_gym as lfd
from lfd_gym.demonstrations.plausibility import doubt, n_different
from lfd_gym.validation import LfdGymWarning


def episodes(demos, change):
    """The same demonstrations with every episode changed."""
    return lfd.Demonstrations.from_episodes(map(change, demos), demos.observation_space, demos.action_space)


@pytest.fixture(scope="module")
def grid():
    mdp, table = gridworld(5, 2)
    best = mdp.optimal_policy(table[:, 0])
    return mdp, table, best, lfd.collect(lfd.TabularModel.of(mdp), best, 200, 60, np.random.default_rng(0))


@pytest.fixture(scope="module")
def lake():
    env = gym.make("FrozenLake-v1", max_episode_steps=15)
    task = lfd.Task(env, discount=0.95)
    best = task.model.optimal_policy(task.cost_table[:, 0])
    return env, task, best, lfd.collect(env, best[:16], 400, rng=np.random.default_rng(0))


def test_time_limits_that_are_taken_for_the_end_are_noticed(lake):
    """They would make what came after free: the bound would be below the truth."""
    env, task, best, demos = lake
    ended = np.ones(400, dtype=bool)
    wrong = replace(demos, terminated=ended, truncated=~ended, horizon=None)
    uniform = np.full((17, 4), 0.25)
    with pytest.warns(LfdGymWarning, match="is marked as terminated"):
        mistaken = lfd.Task(env, wrong, discount=0.95)
    certificate = lfd.certify(uniform, mistaken)
    assert certificate.to_expert is None
    assert "is marked as terminated after state" in certificate.refused
    assert certificate.refused in str(certificate)
    right = lfd.certify(uniform, lfd.Task(env, demos, discount=0.95)).cost_distance_bound
    truth = distance(task.model, task.cost_table, uniform, best)
    false = (task.expected_costs(uniform).values - lfd.feature_expectations(wrong, task.costs, 0.95).lower(0.05)).max()
    assert false < truth < right


def test_pieces_and_left_out_steps_are_noticed(grid):
    mdp, table, best, demos = grid
    middle = episodes(demos, lambda e: e._replace(observations=e.observations[20:], actions=e.actions[20:]))
    seldom = episodes(demos, lambda e: e._replace(observations=e.observations[::4], actions=e.actions[::4]))
    assert "which this world never does" in doubt(seldom.without_actions(), mdp.dynamics)
    for wrong, why in ((middle, "begin in state"), (seldom, "goes from state")):
        certificate = lfd.certify(best, lfd.Task(mdp, wrong, costs=table))
        assert certificate.about == "demonstrations"
        assert why in certificate.refused
        with pytest.raises(ValueError, match="held_out cannot be used"):
            lfd.certify(best, lfd.Task(mdp, costs=table), held_out=wrong)
    # A simulator with a table is as good a witness as a model.
    sampled = lfd.Task(lfd.TabularModel.of(mdp), middle, discount=0.9, costs=table)
    assert lfd.certify(best, sampled, rng=np.random.default_rng(0), n_rollouts=10).to_expert is None
    # What a deterministic expert is told from must be possible, too, beside what is held out.
    shown = lfd.Task(mdp, middle, costs=table)
    assert lfd.certify(best, shown, held_out=demos).to_expert is not None
    assert "begin in state" in lfd.certify(best, shown, held_out=demos, expert="deterministic").refused


def test_copies_are_noticed(grid):
    mdp, table, best, demos = grid
    for wrong in (
        demos.select([5] * 100),
        demos.select([*range(11)] * 2),
        demos.select([*range(5)] * 20),
        demos.select(np.random.default_rng(0).permutation([*range(12)] * 3)),
    ):
        assert lfd.certify(best, lfd.Task(mdp, wrong, costs=table)).to_expert is None
    twice = demos.select([*range(50)] * 2)
    certificate = lfd.certify(best, lfd.Task(mdp, twice, costs=table))
    assert "50 trajectories, each of which is there 2 times" in certificate.refused
    assert "100 demonstrations;" in certificate.evidence + ";"
    with pytest.raises(ValueError, match="held_out must be independent trajectories"):
        lfd.certify(best, lfd.Task(None, demos.select(range(100, 150)), discount=0.9), held_out=twice)
    few = lfd.certify(best, lfd.Task(mdp, demos.select([0] * 4 + [1]), costs=table))
    assert "5 demonstrations (2 different ones)" in few.evidence
    assert n_different(twice) == 50


def test_of_what_was_collected_nothing_is_doubted(grid, lake):
    """Also where few trajectories are possible, and most come again."""
    mdp, _, _, demos = grid
    _, task, _, ended = lake
    assert not doubt(demos, mdp.dynamics)
    assert not doubt(demos.without_actions(), mdp.dynamics)
    assert not doubt(ended, task.dynamics)
    still = gym.make("FrozenLake-v1", is_slippery=False)
    model = lfd.FiniteMDP.from_env(still, 0.9)
    assert not doubt(lfd.collect(still, lambda seen: np.ones(len(seen), int), 50, 9, np.random.default_rng(0)), None)
    table = lfd.TabularModel.of(model)
    assert not doubt(lfd.collect(table, np.full((17, 4), 0.25), 50, 9, np.random.default_rng(0)), model.dynamics)
    cliff = gym.make("CliffWalking")  # the newest version
    known = lfd.FiniteMDP.from_env(cliff, 0.9).dynamics
    assert not doubt(lfd.collect(cliff, np.full((48, 4), 0.25), 100, 20, np.random.default_rng(0)), known)
    # Twelve first states, and nothing else is left to chance.
    cycle = np.roll(np.eye(12), 1, axis=1)
    circle = lfd.FiniteMDP(cycle, np.full(12, 1 / 12), 0.9)
    doubted = 0
    for seed in range(300):
        walked = lfd.collect(lfd.TabularModel.of(circle), np.ones((12, 1)), 24, 5, np.random.default_rng(seed))
        doubted += bool(doubt(walked, circle.dynamics))
    assert doubted <= 1


def test_whoever_is_asked_for_more_must_act_in_the_known_world():
    """An environment whose own reset is not what its table says: no bound about the expert is called reached."""

    class Elsewhere(gym.Env):
        observation_space, action_space = gym.spaces.Discrete(5), gym.spaces.Discrete(3)

        def __init__(self, mdp):
            self.transitions, self.initial_distribution = mdp.dynamics.transitions, np.eye(5)[0]

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.state = 4
            return 4, {}

        def step(self, action):
            row = self.transitions[[3 * self.state + action], :].toarray()[0]
            self.state = int(self.np_random.choice(5, p=row))
            return self.state, 0.0, False, False, {}

    mdp, table, rng = random_world(0)
    env = gym.wrappers.TimeLimit(Elsewhere(mdp), 10)
    uniform = np.full((5, 3), 1 / 3)
    task = lfd.Task(env, lfd.collect(env, uniform, 5, rng=rng), discount=0.9, costs=table)
    with pytest.raises(ValueError, match=r"nothing can be said about the expert: .* begin in state"):
        lfd.collect_until(task, uniform, expert=uniform, bound=2.0, rng=rng)


def test_why_a_fragment_stops_is_not_known():
    """Cut where what comes next is cheap, and only there: by its last state the tail would be worth too much."""
    transitions = np.zeros((3, 1, 3))
    transitions[0, 0, 1:] = 0.5
    transitions[1, 0, 1] = transitions[2, 0, 2] = 1
    mdp = lfd.FiniteMDP(transitions, [1, 0, 0], 0.9)
    costs, only = np.array([[0.0], [-1.0], [1.0]]), np.ones((3, 1))
    missed = 0
    for seed in range(100):
        demos = lfd.collect(lfd.TabularModel.of(mdp), only, 100, 60, np.random.default_rng(seed))
        chosen = episodes(
            demos,
            lambda e: (
                e._replace(observations=e.observations[:1], actions=e.actions[:0], truncated=False)
                if e.observations[1] == 1
                else e
            ),
        )
        bound = lfd.certify(only, lfd.Task(mdp, chosen, costs=costs), delta=0.1).cost_distance_bound
        missed += bound < 0
    assert not too_many(missed, 100, 0.1)


def test_nothing_ends_before_its_first_step():
    mdp, table, rng = random_world(2, ends=True)
    demos = lfd.collect(lfd.TabularModel.of(mdp), np.full((5, 3), 1 / 3), 4, 5, rng)
    at_once = episodes(
        demos, lambda e: e._replace(observations=e.observations[:1], actions=e.actions[:0], terminated=True)
    )
    certificate = lfd.certify(np.full((5, 3), 1 / 3), lfd.Task(mdp, at_once, costs=table))
    assert certificate.to_expert is None
    assert "trajectory 0 is marked as terminated before its first step" in certificate.refused
    cut = replace(at_once, terminated=np.zeros(4, dtype=bool))
    assert lfd.certify(np.full((5, 3), 1 / 3), lfd.Task(mdp, cut, costs=table)).to_expert is not None


def test_a_deterministic_expert_is_one_that_does_the_same_at_every_step(grid):
    """One that looks at the time is deterministic, too, and not meant."""
    mdp, table, best, demos = grid
    certificate = lfd.certify(best, lfd.Task(mdp, demos, costs=table), expert="deterministic")
    assert "Assumed: the expert does the same whenever it is in the same state." in str(certificate)


def test_demonstrations_of_another_environment_are_an_assumption():
    env, other = (gym.make("FrozenLake-v1", is_slippery=slippery) for slippery in (True, False))
    uniform = np.full((16, 4), 0.25)
    demos = lfd.collect(other, uniform, 20, 10, np.random.default_rng(0))
    allowed = lfd.certify(uniform, lfd.Task(env, demos, discount=0.9, allow_mismatch=True))
    assert "Assumed: what is true of the demonstrations' environment is true of this one" in str(allowed)
    assert lfd.certify(uniform, lfd.Task(other, demos, discount=0.9, allow_mismatch=True)).assumptions == ()
