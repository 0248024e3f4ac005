"""Generative models of the environments of seals."""

import gymnasium as gym
import numpy as np
import pytest
import seals  # noqa: F401 - registers its environments

import lfd_gym as lfd
from lfd_gym.testing import check_generative_model

NUMBERED = [
    "seals/Branching-v0",
    "seals/CliffWorld7x4-v0",
    "seals/CliffWorld7x4XY-v0",
    "seals/EarlyTermNeg-v0",
    "seals/InitShiftTest-v0",
    "seals/InitShiftTrain-v0",
    "seals/Random-v0",
    "seals/RiskyPath-v0",
]
VECTORS = ["seals/LargestSum-v0", "seals/Parabola-v0", "seals/ProcGoal-v0", "seals/Sort-v0"]


def exact_mdp(env, start):
    """Return the MDP of a tabular environment of seals; what its ``terminal`` says of a state moves it to the end."""
    kernel = np.asarray(env.transition_matrix, dtype=np.float64)
    kernel = kernel / kernel.sum(axis=2, keepdims=True)  # some are float32
    n_states, n_actions, _ = kernel.shape
    terminal = np.array([env.terminal(np.int64(state), 0) for state in range(n_states)])
    if not terminal.any():
        return lfd.FiniteMDP(kernel, start, 0.9)
    transitions = np.zeros((n_states + 1, n_actions, n_states + 1))
    transitions[:-1, :, :-1] = kernel * ~terminal
    transitions[:-1, :, -1] = kernel[:, :, terminal].sum(axis=2)
    transitions[-1, :, -1] = 1.0
    return lfd.FiniteMDP(transitions, np.append(start, 0.0), 0.9, absorbing_state=n_states)


@pytest.mark.parametrize("env_id", NUMBERED)
def test_numbered_states(env_id):
    env = gym.make(env_id)
    start = np.asarray(env.unwrapped.initial_state_dist, dtype=np.float64)
    if "InitShift" in env_id:  # starts elsewhere than its table says
        start = np.eye(7)[1 if env_id == "seals/InitShiftTest-v0" else 0]
    mdp = exact_mdp(env.unwrapped, start)
    check_generative_model(lfd.as_generative_model(env), mdp=mdp, env=env, n_draws=20_000)


def test_ends_and_time_limits():
    assert lfd.as_generative_model(gym.make("seals/EarlyTermPos-v0")).state_space.n == 4  # three and the end
    assert lfd.as_generative_model(gym.make("seals/CliffWorld7x4-v0")).state_space.n == 28  # a time limit is no end


@pytest.mark.parametrize("env_id", VECTORS)
def test_vectors(env_id):
    env = gym.make(env_id)
    check_generative_model(lfd.as_generative_model(env), env=env)


@pytest.mark.parametrize("env_id", ["seals/Parabola-v0", "seals/ProcGoal-v0", "seals/Sort-v0"])
def test_vectors_agree_with_episodes(env_id):
    env = gym.make(env_id).unwrapped
    model = lfd.as_generative_model(gym.make(env_id))
    observation, _ = env.reset(seed=0)
    env.action_space.seed(0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        state, action = env.state.copy(), env.action_space.sample()
        np.testing.assert_array_equal(model.observe([state])[0], observation)
        observation = env.step(action)[0]
        np.testing.assert_array_equal(model.sample_next([state], [action], rng)[0], env.state)


def test_one_step_environment_ends():
    model = lfd.as_generative_model(gym.make("seals/LargestSum-v0"))
    states = model.sample_initial(3, np.random.default_rng(0))
    assert model.is_absorbing(model.sample_next(states, [0, 1, 0], np.random.default_rng(0))).all()


def test_classic_control_of_seals():
    env = gym.make("seals/CartPole-v0")
    check_generative_model(lfd.as_generative_model(env), env=env)
    with pytest.raises(TypeError, match="is wrapped in `AbsorbAfterDoneWrapper`, whose effect is not known"):
        lfd.as_generative_model(gym.make("seals/MountainCar-v0"))


def test_cart_pole_of_seals_never_ends():
    model = lfd.as_generative_model(gym.make("seals/CartPole-v0"))
    successors = model.sample_next([[3.0, 1.0, 3.1, 9.0]], [1], np.random.default_rng(0))
    assert not model.is_absorbing(successors).any()
    assert abs(successors[0, 2]) <= np.pi


def test_random_observations_are_refused():
    model = lfd.as_generative_model(gym.make("seals/NoisyObs-v0"))
    states = model.sample_next(model.sample_initial(5, np.random.default_rng(0)), [4] * 5, np.random.default_rng(0))
    assert states.shape == (5, 2)
    with pytest.raises(TypeError, match=r"observations of .*NoisyObs.* are random"):
        model.observe(states)


def test_rewards_are_those_of_steps():
    env = gym.make("seals/Parabola-v0").unwrapped
    model = lfd.as_generative_model(gym.make("seals/Parabola-v0"))
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(5):
        state, action = env.state, env.action_space.sample()
        reward = env.step(action)[1]
        np.testing.assert_allclose(model.sample_rewarded([state], [action], np.random.default_rng(0))[1], [reward])
