"""What cannot be right in demonstrations: a task refuses it, or warns."""

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym.demonstrations.soundness import doubtful_ends
from lfd_gym.validation import LfdGymWarning


class Line:
    """A place on a line, which ends beyond 1 if ``ends``, as a state of its own and not as a row of NaN."""

    state_space = observation_space = gym.spaces.Box(-5.0, 5.0, (1,), np.float64)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float64)

    def __init__(self, ends=False):
        self.ends = ends

    def sample_initial(self, n, rng):
        return rng.uniform(-0.5, 0.5, (n, 1))

    def sample_next(self, states, actions, rng):
        moved = np.clip(states + 0.1 * np.asarray(actions), -5, 5)
        return np.where(self.is_absorbing(states)[:, None], states, moved)

    def is_absorbing(self, states):
        return np.asarray(states)[:, 0] > (1 if self.ends else 10)

    def observe(self, states):
        return states

    def states_of(self, observations):
        return observations


def to_the_right(seen):
    return np.ones((len(seen), 1))


def walks(model, horizon=30):
    return lfd.collect(model, to_the_right, 3, horizon, np.random.default_rng(0))


def changed(demonstrations, **changes):
    episodes = [episode._replace(**changes) for episode in demonstrations]
    return lfd.Demonstrations.from_episodes(
        episodes, demonstrations.observation_space, demonstrations.action_space, None, demonstrations.provenance
    )


@pytest.mark.parametrize("name", ["observations", "actions"])
def test_a_step_that_is_not_known_is_refused(name):
    demos = walks(Line(), 10)
    columns = [getattr(episode, name).copy() for episode in demos]
    columns[1][4] = np.nan
    broken = lfd.Demonstrations.from_episodes(
        [episode._replace(**{name: column}) for episode, column in zip(demos, columns, strict=True)],
        demos.observation_space,
        demos.action_space,
    )
    with pytest.raises(ValueError, match=f"{name} of demonstrations must be known .* step 4 of trajectory 1"):
        lfd.Task(None, broken, discount=0.9)
    with pytest.raises(ValueError, match="extra_transitions must be known"):
        lfd.Task(None, demos, discount=0.9, extra_transitions=broken)


def test_what_is_seen_after_the_end_need_not_be_known():
    demos = lfd.collect(
        lfd.as_generative_model(gym.make("CartPole-v1")),
        lambda seen: np.zeros(len(seen), dtype=int),
        2,
        50,
        np.random.default_rng(0),
    )
    assert np.isnan(demos.observations).any()
    lfd.Task(gym.make("CartPole-v1"), demos, discount=0.9)


def test_a_cut_that_was_recorded_as_an_end_is_warned_of():
    demos = changed(walks(Line()), terminated=True, truncated=False)
    with pytest.warns(LfdGymWarning, match="demonstrations: trajectory 0 is marked as terminated, as are others,") as w:
        lfd.Task(Line(), demos, discount=0.9)
    assert w[0].filename == __file__
    lfd.Task(Line(), demos, discount=0.9, allow_mismatch=True)


def test_true_ends_are_believed():
    demos = walks(Line(ends=True))
    assert demos.terminated.all()
    assert doubtful_ends(demos, None, Line(ends=True)).size == 0
    lfd.Task(Line(ends=True), demos, discount=0.9)
    for env_id, action in (("CartPole-v1", 0), ("FrozenLake-v1", 1)):
        env = gym.make(env_id)
        played = lfd.collect(env, lambda seen, a=action: np.full(len(seen), a), 20, rng=np.random.default_rng(0))
        assert played.terminated.all()
        lfd.Task(env, played, discount=0.9)


def test_an_end_at_the_time_limit_is_doubtful_unless_that_cut_it_too():
    def stop(seen):
        return np.zeros(len(seen), dtype=int)

    class Unknown(gym.Wrapper):
        pass

    env = Unknown(gym.make("MountainCar-v0", max_episode_steps=20))
    demos = lfd.collect(env, stop, 2, rng=np.random.default_rng(0))
    assert doubtful_ends(demos, 20, None).size == 0
    both = changed(demos, terminated=True)
    assert doubtful_ends(both, 20, None).size == 0
    old = changed(demos, terminated=True, truncated=False)
    assert doubtful_ends(old, 20, None).tolist() == [0, 1]
    assert doubtful_ends(old, 200, None).size == 0
    with pytest.warns(LfdGymWarning, match="stops at the time limit"):
        lfd.Task(env, old, discount=0.9)


def test_actions_beyond_the_bounds_are_warned_of():
    demos = walks(Line())
    percent = lfd.Demonstrations.from_episodes(
        [episode._replace(actions=100 * episode.actions) for episode in demos],
        demos.observation_space,
        demos.action_space,
    )
    with pytest.warns(LfdGymWarning, match=r"actions leave the action space, .*: the first is 100, and 100% of the"):
        lfd.Task(Line(), percent, discount=0.9)
    nearly = lfd.Demonstrations.from_episodes(
        [episode._replace(actions=(1 + 1e-6) * episode.actions) for episode in demos],
        demos.observation_space,
        gym.spaces.Box(-np.inf, np.inf, (1,)),
    )
    lfd.Task(Line(), nearly, discount=0.9)
