"""Demonstrations of another environment are refused, with both named."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from lfd_gym import Demonstrations, FiniteMDP, Provenance, TabularModel, as_generative_model, collect
from lfd_gym.demonstrations.matching import check_provenance, check_spaces

GRID = "lfd_gym/StochasticGridworld-v0"


def recorded(env_id, **kwargs):
    demos = Demonstrations([0], [], [0, 0], [True], [False], spaces.Discrete(2), spaces.Discrete(2))
    return demos.with_provenance(env_id=env_id, env_kwargs=kwargs)


@pytest.mark.parametrize(
    ("env_id", "kwargs", "env", "message"),
    [
        (
            GRID,
            {},
            gym.make("FrozenLake-v1"),
            f"demonstrations are of {GRID}, but env is FrozenLake-v1.*allow_mismatch",
        ),
        (GRID, {"size": 8}, gym.make(GRID, size=6), f"of {GRID} with size=8, but env is {GRID} with size=6: .*"),
        (GRID, {"size": 8}, gym.make(GRID), "with size=8, but env is .* with size="),
        (GRID, {}, gym.make(GRID, size=6), "but env is .* with size=6"),
        (GRID, {"cost_seed": 1}, gym.make(GRID, cost_seed=2), "with cost_seed=1, but env is .* with cost_seed=2"),
        (
            "FrozenLake-v1",
            {"map_name": "4x4", "is_slippery": False},
            gym.make("FrozenLake-v1"),
            "with is_slippery=false, but env is FrozenLake-v1 with is_slippery=true",
        ),
        ("CartPole-v0", {}, gym.make("CartPole-v1"), "of CartPole-v0, but env is CartPole-v1"),
        ("FrozenLake8x8-v1", {}, gym.make("FrozenLake-v1"), "of FrozenLake8x8-v1, but env is FrozenLake-v1"),
        ("CartPole-v1", {"sutton_barto_reward": 1, "own": 3}, gym.make("CartPole-v1"), "own=3"),
    ],
)
def test_another_environment_is_refused(env_id, kwargs, env, message):
    demos = recorded(env_id, **kwargs)
    with pytest.raises(ValueError, match=message):
        check_provenance(demos, env)
    check_provenance(demos, env, allow_mismatch=True)
    vector = gym.vector.SyncVectorEnv([lambda: env])
    with pytest.raises(ValueError, match=message):
        check_provenance(demos, vector)


def test_the_same_environment_is_accepted_however_it_was_written():
    default = gym.make(GRID).unwrapped.size
    for demos, env in [
        (recorded(GRID), gym.make(GRID)),
        (recorded(GRID, size=default), gym.make(GRID)),  # the default, given
        (recorded(GRID), gym.make(GRID, size=default, render_mode="rgb_array")),
        (recorded(GRID, size=8), gym.make(GRID, size=np.int64(8), max_episode_steps=7)),
        (recorded(f"lfd_gym:{GRID}"), gym.make(GRID)),
        (recorded("CartPole"), gym.make("CartPole-v1")),  # of some version
        (recorded("FrozenLake-v1", desc=["SF", "HG"]), gym.make("FrozenLake-v1", desc=("SF", "HG"))),
        (recorded("FrozenLake8x8-v1"), gym.make("FrozenLake8x8-v1")),  # arguments that the registration gives
        (recorded("FrozenLake8x8-v1", map_name="8x8"), gym.make("FrozenLake8x8-v1")),
    ]:
        check_provenance(demos, env)


def test_what_is_not_known_is_not_compared():
    unknown = recorded(None, size=3)
    known = recorded(GRID, size=3)
    mdp = FiniteMDP(np.ones((2, 2)) / 2, [1.0, 0.0], discount=0.9)
    check_provenance(unknown, gym.make("CartPole-v1"))
    for env in (None, mdp, TabularModel.of(mdp), as_generative_model(gym.make("CartPole-v1"))):
        check_provenance(known, env)
    check_provenance(known, gym.make("CartPole-v1").unwrapped, allow_mismatch=True)
    with pytest.raises(ValueError, match="but env is CartPole-v1"):
        check_provenance(known, gym.make("CartPole-v1").unwrapped)


def test_what_collect_records_is_what_is_checked():
    env = gym.make(GRID, size=4, cost_seed=np.int64(3))
    demos = collect(env, np.full((16, 4), 0.25), 2, 5, np.random.default_rng(0))
    assert dict(demos.provenance.env_kwargs) == {"size": 4, "cost_seed": 3}
    check_provenance(demos, gym.make(GRID, size=4, cost_seed=3))
    for other in ({"size": 4}, {"size": 5, "cost_seed": 3}, {"size": 4, "cost_seed": 4}):
        with pytest.raises(ValueError, match="demonstrations are of"):
            check_provenance(demos, gym.make(GRID, **other))


def test_arguments_of_numpy_are_json():
    assert Provenance(env_kwargs={"at": np.arange(2), "n": np.float64(0.5)}).env_kwargs == {"at": [0, 1], "n": 0.5}


# -- spaces -----------------------------------------------------------------------------------------------------------


def over(space, action_space=spaces.Discrete(2), last=0, terminated=True):  # noqa: B008
    zero = np.zeros(space.shape, dtype=space.dtype)
    done = np.zeros((1, *action_space.shape), dtype=action_space.dtype)
    seen = np.stack([zero, zero + np.asarray(last, dtype=space.dtype)])
    return Demonstrations(seen, done, [0, 1], [terminated], [not terminated], space, action_space)


def test_spaces_must_fit():
    two = spaces.Discrete(2)
    wide, narrow = spaces.Box(-1, 1, (3,)), spaces.Box(-9, 9, (3,), np.float64)
    check_spaces(over(wide), narrow, two)
    check_spaces(over(spaces.Discrete(4)), spaces.Discrete(4), two)
    check_spaces(over(spaces.MultiDiscrete([2, 3])), spaces.MultiDiscrete([2, 3]), two)
    check_spaces(over(spaces.MultiBinary(3), wide), spaces.MultiBinary(3), narrow)
    check_spaces(over(wide).without_actions(), narrow, spaces.Discrete(7))
    for space, other in [
        (wide, spaces.Box(-1, 1, (4,))),
        (wide, spaces.Discrete(3)),
        (spaces.Discrete(4), spaces.Discrete(9)),
        (spaces.Discrete(4), wide),
        (spaces.MultiDiscrete([2, 3]), spaces.MultiDiscrete([3, 2])),
        (spaces.MultiBinary(3), spaces.MultiBinary(4)),
    ]:
        with pytest.raises(ValueError, match=r"demonstrations observe .*, but the environment shows ") as caught:
            check_spaces(over(space), other, two)
        assert str(space) in str(caught.value)
        assert str(other) in str(caught.value)
        with pytest.raises(ValueError, match=r"demonstrations act in .*, but the environment takes "):
            check_spaces(over(two, space), two, other)


def test_the_end_of_a_model_is_one_observation_more_or_less():
    two = spaces.Discrete(2)
    check_spaces(over(spaces.Discrete(5), last=4), spaces.Discrete(4), two)
    check_spaces(over(spaces.Discrete(4)), spaces.Discrete(5), two)
    with pytest.raises(ValueError, match=r"observe Discrete\(5\), but the environment shows Discrete\(4\)"):
        check_spaces(over(spaces.Discrete(5), last=4, terminated=False), spaces.Discrete(4), two)
    env = gym.make("FrozenLake-v1")
    demos = collect(as_generative_model(env), np.full((17, 4), 0.25), 20, 30, np.random.default_rng(0))
    assert demos.terminated.any()
    check_spaces(demos, env.observation_space, env.action_space)
