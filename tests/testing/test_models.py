"""The checker of generative models lets right models pass and finds each kind of wrong one."""

import gymnasium as gym
import numpy as np
import pytest

from lfd_gym import FiniteMDP, TabularModel
from lfd_gym.envs import TabularEnv
from lfd_gym.testing import check_generative_model

N_STATES, N_ACTIONS = 5, 2


def small_mdp():
    """Return an MDP with random transitions and an absorbing state, the last one."""
    rng = np.random.default_rng(0)
    transitions = rng.dirichlet(np.ones(N_STATES), size=(N_STATES, N_ACTIONS))
    transitions[-1] = np.eye(N_STATES)[-1]
    return FiniteMDP(transitions, [0.4, 0.3, 0.2, 0.1, 0.0], 0.9, absorbing_state=N_STATES - 1)


class RandomWalk:
    """A right model with vectors as states: a walk on the line with Gaussian steps, absorbed (NaN) beyond ±2."""

    state_space = observation_space = gym.spaces.Box(-2.0, 2.0, (1,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def sample_initial(self, n, rng):
        return rng.uniform(-1, 1, (n, 1))

    def sample_next(self, states, actions, rng):
        states = np.asarray(states, dtype=np.float64).reshape(-1, 1)
        moved = states + 0.5 * (2.0 * np.asarray(actions, dtype=np.int64)[:, None] - 1) + self.noise(states, rng)
        return np.where(np.abs(moved) <= 2, moved, np.nan)

    def noise(self, states, rng):
        return 0.5 * rng.normal(size=states.shape)

    def observe(self, states):
        return np.array(states, dtype=np.float64).reshape(-1, 1)

    def is_absorbing(self, states):
        return np.isnan(np.asarray(states, dtype=np.float64).reshape(-1, 1))[:, 0]


class Drift(RandomWalk):
    """A right model with certain transitions."""

    def noise(self, states, rng):
        return np.zeros(states.shape)


class Right(TabularModel):
    """A right model for the wrong ones to change."""

    def __init__(self):
        mdp = small_mdp()
        super().__init__(mdp.transitions, mdp.initial_distribution, mdp.absorbing_state)


def test_right_models_pass():
    check_generative_model(RandomWalk())
    check_generative_model(Drift())
    for seed in range(20):
        check_generative_model(Right(), mdp=small_mdp(), seed=seed, n_draws=20_000)


def test_small_and_large_mdps_pass():
    one = FiniteMDP(np.ones((1, 1, 1)), [1.0], 0.5)
    check_generative_model(TabularModel.of(one), mdp=one)
    rng = np.random.default_rng(1)
    n = 3000  # more pairs than are examined, and initial states too rare for a cell of their own
    transitions = np.zeros((n, n))
    transitions[np.arange(n), rng.integers(n, size=n)] += 0.5
    transitions[np.arange(n), rng.integers(n, size=n)] += 0.5
    many = FiniteMDP(transitions, np.full(n, 1 / n), 0.5)
    check_generative_model(TabularModel.of(many), mdp=many, n_draws=5000)


def test_right_environment_passes():
    mdp = small_mdp()
    env = TabularEnv.from_mdp(mdp, np.zeros((N_STATES * N_ACTIONS, 1)))
    check_generative_model(Right(), mdp=mdp, env=env)


class Stateful(Drift):
    """Goes on from where its last call ended, as an environment does."""

    last = None

    def sample_next(self, states, actions, rng):
        start = self.last if np.shape(self.last) == np.shape(states) else states
        self.last = super().sample_next(start, actions, rng)
        return self.last.copy()


class CountsCalls(Drift):
    """Repeats itself when asked twice in a row, but not after other calls."""

    observed = 0

    def observe(self, states):
        self.observed = min(self.observed + 1, 10**6)
        return super().observe(states)

    def sample_next(self, states, actions, rng):
        return super().sample_next(states, actions, rng) * (1 - 1e-9 * self.observed)


class OwnStream(Right):
    def __init__(self):
        super().__init__()
        self.rng = np.random.default_rng(0)

    def sample_next(self, states, actions, rng):
        return super().sample_next(states, actions, self.rng)


class IgnoresRng(Right):
    def sample_next(self, states, actions, rng):
        return super().sample_next(states, actions, np.random.default_rng(0))


class IgnoresRngAtFirst(Right):
    def sample_initial(self, n, rng):
        return super().sample_initial(n, np.random.default_rng(0))


class IgnoresRngOnVectors(RandomWalk):
    def noise(self, states, rng):
        return super().noise(states, np.random.default_rng(0))


class GlobalStream(Right):
    def sample_initial(self, n, rng):
        return np.random.randint(0, 4, size=n)  # noqa: NPY002


class WrongKernel(Right):
    def sample_next(self, states, actions, rng):
        drawn = super().sample_next(states, actions, rng)
        nudged = (rng.random(drawn.size) < 0.05) & (drawn < N_STATES - 2)
        return drawn + nudged


class ImpossibleState(TabularModel):
    """Reaches a state that the MDP never reaches, rarely."""

    def __init__(self):
        super().__init__(np.array([[[1.0, 0.0]], [[1.0, 0.0]]]), [1.0, 0.0])

    def sample_next(self, states, actions, rng):
        return (rng.random(np.size(states)) < 1e-3).astype(np.int64)


class WrongInitial(Right):
    def sample_initial(self, n, rng):
        return rng.integers(0, 4, size=n)


class OneDrawForAll(Right):
    """The same uniform number for the whole batch: right for each pair alone, wrong together."""

    def sample_next(self, states, actions, rng):
        seed = rng.integers(2**32)
        pairs = np.stack([states, actions], axis=1)
        draw = super().sample_next
        kinds, inverse = np.unique(pairs, axis=0, return_inverse=True)
        outcome = draw(kinds[:, 0], kinds[:, 1], np.random.default_rng(seed))
        return outcome[inverse.reshape(-1)]


class MutatesStates(Right):
    def sample_next(self, states, actions, rng):
        drawn = super().sample_next(states, actions, rng)
        if isinstance(states, np.ndarray):
            states[:] = drawn
        return drawn


class MutatesActions(RandomWalk):
    def sample_next(self, states, actions, rng):
        drawn = super().sample_next(states, actions, rng)
        if isinstance(actions, np.ndarray):
            actions[:] = 0
        return drawn


class MutatesWhenObserving(RandomWalk):
    def observe(self, states):
        return np.clip(states, -0.1, 0.1, out=states) if isinstance(states, np.ndarray) else super().observe(states)


class ReturnsItsInput(Right):
    def sample_next(self, states, actions, rng):
        return np.asarray(states)


class LeavesAbsorbing(Right):
    def sample_next(self, states, actions, rng):
        drawn = super().sample_next(states, actions, rng)
        return np.where(np.asarray(states) == N_STATES - 1, 0, drawn)


class PlaceInBatch(Drift):
    def noise(self, states, rng):
        return 0.01 * (np.arange(len(states))[:, None] // 8)


class WrongShape(RandomWalk):
    def sample_next(self, states, actions, rng):
        return super().sample_next(states, actions, rng)[:, 0]


class WrongType(Right):
    def sample_initial(self, n, rng):
        return super().sample_initial(n, rng).astype(np.float64)


class OutsideItsSpace(RandomWalk):
    def noise(self, states, rng):
        return np.where(rng.random(states.shape) < 0.3, -np.inf, 0.0)

    def sample_next(self, states, actions, rng):
        return np.nan_to_num(super().sample_next(states, actions, rng), nan=9.0)


class WrongObservation(RandomWalk):
    def observe(self, states):
        return 3 * super().observe(states)


class RandomObservation(RandomWalk):
    observation_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float64)

    def observe(self, states):
        return super().observe(states) + np.random.default_rng().normal(size=(len(states), 1))


class WrongMask(Right):
    def is_absorbing(self, states):
        return super().is_absorbing(states).astype(np.int64)


class NoObserve(Right):
    observe = None


class NoRng(Right):
    def sample_initial(self, n):
        return np.zeros(n, dtype=np.int64)


class NoSpace(Right):
    @property
    def state_space(self):
        return 5

    @state_space.setter
    def state_space(self, value):
        pass


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        (Stateful, "determinism: sample_next drew differently with the same seed"),
        (CountsCalls, "statelessness: sample_next depends on the calls before it"),
        (OwnStream, "determinism: sample_next drew differently with the same seed"),
        (IgnoresRng, "rng: sample_next draws at random, but two different seeds gave the same draws"),
        (IgnoresRngAtFirst, "rng: sample_initial draws at random, but two different seeds"),
        (IgnoresRngOnVectors, "rng: sample_next draws at random, but two different seeds"),
        (GlobalStream, "rng: a call drew from NumPy's global stream"),
        (WrongKernel, "exact kernel: the draws of sample_next have χ².*do not follow the exact distribution"),
        (WrongInitial, "initial distribution: the draws of sample_initial have χ²"),
        (OneDrawForAll, "exact kernel: the draws of sample_next have χ²"),
        (MutatesStates, "inputs unchanged: a call changed the states"),
        (MutatesActions, "inputs unchanged: a call changed the actions"),
        (MutatesWhenObserving, "inputs unchanged: a call changed the states"),
        (ReturnsItsInput, "inputs unchanged: sample_next returned a view of the states"),
        (LeavesAbsorbing, "absorbing states: sample_next leaves an absorbing state"),
        (PlaceInBatch, "batch order: sample_next treats a pair differently"),
        (WrongShape, r"shapes: sample_next returned shape \(48,\) for states of shape \(48, 1\)"),
        (WrongType, "types: sample_initial returned float64, but its space holds int64"),
        (OutsideItsSpace, r"spaces: sample_next returned \[9.\], which is not in Box"),
        (WrongObservation, "spaces: observe returned"),
        (RandomObservation, "determinism: observe returned two different answers"),
        (WrongMask, "types: is_absorbing returned"),
        (NoObserve, "interface: there is no method observe"),
        (NoRng, "interface: sample_initial does not take 2 arguments"),
        (NoSpace, "interface: state_space is not a gymnasium.Space"),
    ],
)
def test_broken_models_are_found(broken, found):
    mdp = small_mdp() if issubclass(broken, Right) else None
    with pytest.raises(AssertionError, match=f"check_generative_model, .*{found}"):
        check_generative_model(broken(), mdp=mdp)


def test_impossible_states_are_named():
    mdp = FiniteMDP(np.array([[[1.0, 0.0]], [[1.0, 0.0]]]), [1.0, 0.0], 0.5)
    message = "exact kernel: state 1 was drawn from state [01] under action 0, which has probability zero"
    with pytest.raises(AssertionError, match=message):
        check_generative_model(ImpossibleState(), mdp=mdp)


def test_another_number_of_states_is_found():
    mdp = FiniteMDP(np.ones((1, 1, 1)), [1.0], 0.5)
    with pytest.raises(AssertionError, match=r"has Discrete\(5\) and Discrete\(2\), the MDP Discrete\(1\)"):
        check_generative_model(Right(), mdp=mdp)


class StepsItsEnv(Right):
    """Draws from the environment without returning it as it was."""

    def __init__(self, env, restore_state):
        super().__init__()
        self.env, self.restore_state = env, restore_state

    def sample_next(self, states, actions, rng):
        before = self.env.state
        self.env.step(0)
        if self.restore_state:
            self.env.set_state(before)
        return super().sample_next(states, actions, rng)


@pytest.mark.parametrize("restore_state", [False, True], ids=["state and stream", "stream only"])
def test_models_that_touch_their_environment_are_found(restore_state):
    env = TabularEnv.from_mdp(small_mdp(), np.zeros((N_STATES * N_ACTIONS, 1)))
    env.reset(seed=0)
    with pytest.raises(AssertionError, match="environment untouched: an episode of the environment changes"):
        check_generative_model(StepsItsEnv(env, restore_state), mdp=small_mdp(), env=env)
