"""The learner `grid` begins along demonstrations: every state of a trajectory shows what the expert does from there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulators import Line

import lfd_gym as lfd
from lfd_gym.baselines.grid_starts import Starts, demonstrated_states


def task_of(lengths, terminated, discount, uses_actions=True):
    """Return a task with demonstrations of some lengths of a random walk on a line, which is nowhere twice."""
    simulator, rng = Line(end=5.0), np.random.default_rng(0)

    def play(observations):
        return rng.integers(2, size=len(observations))

    episodes = [
        lfd.collect(Line(noise=0.01), play, 1, length, rng=rng)[0]._replace(terminated=ended, truncated=not ended)
        for length, ended in zip(lengths, terminated, strict=True)
    ]
    demos = lfd.Demonstrations.from_episodes(episodes, simulator.observation_space, simulator.action_space)

    def rows(seen, done):
        return np.column_stack([np.cos(3 * seen[:, 0]), np.sin(5 * seen[:, 0] + (done if uses_actions else 0))])

    costs = lfd.FunctionCosts(rows, 2, uses_actions=uses_actions)
    return lfd.Task(simulator, demos, discount=discount, costs=costs, allow_mismatch=True)


def tail_costs(task, state):
    """Return the mean costs of what follows the only demonstrated step with a state, step by step."""
    for episode in task.demonstrations:
        seen = episode.observations[:-1]
        found = np.flatnonzero(np.isclose(seen[:, 0], state[0], rtol=0, atol=1e-12))
        if found.size:
            total, weight, weights = np.zeros(2), 1 - task.discount, 0.0
            for t in range(found[0], len(seen)):
                total += weight * task.costs.rows(seen[t : t + 1], episode.actions[t : t + 1])[0]
                weights += weight
                weight *= task.discount
            return total if episode.terminated else total / weights
    raise AssertionError(f"{state} was not demonstrated")


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(0, 2**31),
    st.floats(0.3, 0.97),
)
def test_what_starts_are_to_cost_is_what_follows_them(lengths, seed, discount):
    """The costs of the demonstrations are those of the rest of the trajectory from each start, with its share."""
    terminated = np.random.default_rng(seed).random(len(lengths)) < 0.5
    task = task_of(lengths, terminated.tolist(), discount)
    states = demonstrated_states(task)
    starts = Starts.chosen(task, states, np.random.default_rng(1))
    n_demonstrated = len(starts.states) - len(starts.others)
    shares = starts.shares[:n_demonstrated] / starts.shares[:n_demonstrated].sum()
    expected = sum(
        share * tail_costs(task, state) for share, state in zip(shares, starts.states[:n_demonstrated], strict=True)
    )
    np.testing.assert_allclose(starts.expert, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        starts.expert, starts.step_weights @ task.costs.rows(states, task.demonstrations.actions)
    )


def test_shares_are_those_that_are_said():
    """Four fifths were demonstrated, half of these are first states; what was seen for longer counts more."""
    task = task_of([30, 5], [False, False], 0.9)
    states = demonstrated_states(task)
    starts = Starts.chosen(task, states, np.random.default_rng(1))
    assert starts.shares.sum() == pytest.approx(1)
    assert starts.shares[-len(starts.others) :].sum() == pytest.approx(0.2)
    at = [starts.shares[np.all(starts.states == state, axis=1)].sum() for state in states]
    firsts = [0, 30]
    assert sum(at[k] for k in firsts) > 0.4
    assert at[0] > at[30]  # 30 steps follow the one, and 5 the other
    assert at[1] > at[20] > at[29] > 0


def test_a_single_step_is_a_start():
    task = task_of([1], [False], 0.9)
    starts = Starts.chosen(task, demonstrated_states(task), np.random.default_rng(1))
    np.testing.assert_allclose(starts.step_weights, [1.0])
    np.testing.assert_allclose(starts.expert, task.expert_features("rescale").values)


def test_actions_that_are_not_known_are_not_asked_for():
    task = task_of([12], [True], 0.9, uses_actions=False)
    watched = lfd.Task(task.simulator, task.demonstrations.without_actions(), discount=0.9, costs=task.costs)
    known, unknown = (
        Starts.chosen(each, demonstrated_states(each), np.random.default_rng(1)) for each in (task, watched)
    )
    np.testing.assert_array_equal(known.expert, unknown.expert)
