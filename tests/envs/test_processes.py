"""Batches spread over processes: the same draws however many there are, and nothing left behind."""

import multiprocessing
import os
import signal
import sys
import threading
import time

import gymnasium as gym
import numpy as np
import pytest

from lfd_gym.envs import processes
from lfd_gym.envs.processes import PieceError, sample_next_in_processes

forks = pytest.mark.skipif(sys.platform != "linux", reason="no safe fork")


class StrangeError(Exception):
    """An exception that cannot be pickled."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class Walk:
    """A random walk, one step at a time, that notes in which processes it was made."""

    def __init__(self, failure=None):
        self.state_space = self.observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = gym.spaces.Discrete(2)
        self.failure = failure
        self.lock = threading.Lock()  # which cannot be pickled

    def sample_initial(self, n, rng):
        return rng.normal(size=(n, 2))

    def sample_next(self, states, actions, rng):
        successors = np.array(states, dtype=float)
        for k in range(len(successors)):
            if self.failure is not None and states[k, 0] == 300:
                self.failure()
            successors[k, 0] += (2 * actions[k] - 1) * rng.random()
            successors[k, 1] = os.getpid()
        return successors

    def observe(self, states):
        return states

    def is_absorbing(self, states):
        return np.zeros(len(states), dtype=bool)


def batch(n):
    return np.column_stack([np.arange(n, dtype=float), np.zeros(n)]), np.arange(n) % 2


def fail(error):
    raise error


@pytest.mark.parametrize("n", [1, 63, 64, 1000])
def test_draws_do_not_depend_on_the_number_of_processes(n):
    drawn = [sample_next_in_processes(Walk(), *batch(n), np.random.default_rng(5), k)[:, 0] for k in (1, 2, 3, None)]
    for other in drawn[1:]:
        np.testing.assert_array_equal(other, drawn[0])
    assert len(np.unique(np.abs(drawn[0] - np.arange(n)))) == n  # no piece draws what another does
    assert (sample_next_in_processes(Walk(), *batch(n), np.random.default_rng(6), 2)[:, 0] != drawn[0]).all()
    assert not multiprocessing.active_children()


def test_the_state_of_the_generator_says_what_is_drawn():
    rng = np.random.default_rng(0)
    sample_next_in_processes(Walk(), *batch(300), rng, 2)
    again = np.random.default_rng(1)
    again.bit_generator.state = rng.bit_generator.state
    drawn = [sample_next_in_processes(Walk(), *batch(300), stream, 2)[:, 0] for stream in (rng, again)]
    np.testing.assert_array_equal(*drawn)


@forks
def test_large_batches_are_made_by_other_processes():
    makers = set(sample_next_in_processes(Walk(), *batch(1000), np.random.default_rng(0), 2)[:, 1])
    assert len(makers) == 2
    assert os.getpid() not in makers


def test_where_no_process_can_or_should_be_forked_this_one_works(monkeypatch):
    def makers(n=1000, n_processes=2):
        return set(sample_next_in_processes(Walk(), *batch(n), np.random.default_rng(0), n_processes)[:, 1])

    found = [makers(n_processes=1), makers(n=100)]
    thread = threading.Thread(target=lambda: found.append(makers()))
    thread.start()
    thread.join()
    monkeypatch.setattr(processes.sys, "platform", "darwin")
    found.append(makers())
    assert found == [{os.getpid()}] * 4


@pytest.mark.parametrize("n_processes", [1, 2])
def test_what_a_model_raises_is_raised(n_processes):
    model = Walk(lambda: fail(KeyError("no such state")))
    with pytest.raises(KeyError, match="no such state") as caught:
        sample_next_in_processes(model, *batch(1000), np.random.default_rng(0), n_processes)
    if n_processes == 2 and sys.platform == "linux":
        assert isinstance(caught.value.__cause__, PieceError)
        assert "in rows 288 to 303 of the batch" in str(caught.value.__cause__)
        assert "self.failure()" in str(caught.value.__cause__)
    assert not multiprocessing.active_children()


@forks
def test_what_cannot_be_pickled_is_told():
    model = Walk(lambda: fail(StrangeError("this", "that")))
    with pytest.raises(RuntimeError, match="StrangeError: this and that"):
        sample_next_in_processes(model, *batch(1000), np.random.default_rng(0), 2)


@forks
def test_a_dead_process_is_noticed():
    model = Walk(lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(RuntimeError, match="has died with exit code -9"):
        sample_next_in_processes(model, *batch(1000), np.random.default_rng(0), 2)
    assert not multiprocessing.active_children()


@forks
def test_an_interrupt_ends_all_processes():
    """As Ctrl-C does, the signal goes to all of them."""
    parent = os.getpid()

    def interrupt():
        time.sleep(2)  # Python ignores what is raised in the midst of a fork
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(parent, signal.SIGINT)
        time.sleep(60)

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        sample_next_in_processes(Walk(interrupt), *batch(1000), np.random.default_rng(0), 2)
    assert time.monotonic() - start < 30
    assert not multiprocessing.active_children()


def test_bad_arguments_are_named():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"same length, got shapes \(3, 2\) and \(2,\)"):
        sample_next_in_processes(Walk(), np.zeros((3, 2)), [0, 1], rng)
    with pytest.raises(ValueError, match="n_processes must be positive, got 0"):
        sample_next_in_processes(Walk(), np.zeros((1, 2)), [0], rng, 0)
    with pytest.raises(TypeError, match="n_processes must be an integer"):
        sample_next_in_processes(Walk(), np.zeros((1, 2)), [0], rng, 1.5)
    with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
        sample_next_in_processes(Walk(), np.zeros((1, 2)), [0], 0)
    assert sample_next_in_processes(Walk(), np.empty((0, 2)), [], rng, 2).shape == (0, 2)
