"""Checkpoints of mirror descent: stop and resume is the same as never stopping."""

import dataclasses
import signal
import zipfile

import gymnasium as gym
import numpy as np
import pytest
from descent_problems import Simulator, gridworld_problem, two_states_with_self_loops

import lfd_gym as lfd
from lfd_gym.features import RandomFourierFeatures, TileGrid, TileOccupancyFeatures
from lfd_gym.solvers.descent.descent_run import DescentRun
from lfd_gym.solvers.descent.mirror_descent import solve_mirror_descent
from lfd_gym.solvers.descent.solver_checkpoint import fingerprint, load_checkpoint


class StoppedError(Exception):
    pass


def same_solution(first, second):
    np.testing.assert_array_equal(first.policy, second.policy)
    for part, other in zip(first.point, second.point, strict=True):
        np.testing.assert_array_equal(part, other)
    np.testing.assert_array_equal(first.cost_weights, second.cost_weights)
    np.testing.assert_array_equal(first.values, second.values)
    assert first.residual == second.residual
    assert first.residual_history == second.residual_history
    assert first.oracle_calls == second.oracle_calls
    assert first.n_iterations == second.n_iterations


def signal_after(monkeypatch, number, n_pieces):
    """Send a signal to this process after so many pieces of the next run."""
    advance = DescentRun.advance
    calls = []

    def counted(self, n_iterations):
        advance(self, min(n_iterations, 1700))
        calls.append(1)
        if len(calls) == n_pieces:
            signal.raise_signal(number)

    monkeypatch.setattr(DescentRun, "advance", counted)


@pytest.fixture
def handled():
    """Handlers that raise, as KeyboardInterrupt does."""

    def stop(number, frame):
        raise StoppedError

    old = [(number, signal.signal(number, stop)) for number in (signal.SIGINT, signal.SIGTERM)]
    yield stop
    for number, handler in old:
        assert signal.getsignal(number) is stop  # the solver puts back what it found
        signal.signal(number, handler)


CASES = {
    "practical": ({}, 40_000, False),
    "paper": ({"schedule": "paper"}, 40_000, False),
    "anytime": ({"anytime": True}, 150_000, False),
    "simulator": ({"batch_size": 4}, 300, True),
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("case", CASES)
def test_stopped_and_resumed_is_never_stopped(case, number, tmp_path, monkeypatch, handled):
    options, n, simulated = CASES[case]
    problem, model = gridworld_problem(size=4)
    if simulated:
        problem = two_states_with_self_loops()
        model = Simulator(lfd.TabularModel.of(problem.mdp))
    straight = solve_mirror_descent(problem, model, n, np.random.default_rng(0), progress=False, **options)
    path = tmp_path / "run.npz"
    with monkeypatch.context() as patch:
        signal_after(patch, number, n_pieces=1 if simulated else 12)
        if simulated:
            patch.setattr("lfd_gym.solvers.descent.mirror_descent._SECONDS_BETWEEN_LOOKS", 0.0)
        with pytest.raises(StoppedError):
            solve_mirror_descent(
                problem, model, n, np.random.default_rng(0), progress=False, checkpoint=path, **options
            )
    _, arrays = load_checkpoint(path)
    done = int(arrays["counter"][0] if simulated else arrays["counters"]["iteration"][0])
    assert 0 < done < n
    another = np.random.default_rng(99)  # the stored draws go on, not these
    resumed = solve_mirror_descent(problem, model, n, another, progress=False, checkpoint=path, **options)
    same_solution(resumed, straight)
    assert list(tmp_path.iterdir()) == [path]  # nothing half-written is left behind


def test_a_finished_run_is_read_back(tmp_path):
    problem, model = gridworld_problem(size=3)
    path = tmp_path / "run.npz"
    first = solve_mirror_descent(problem, model, 5000, np.random.default_rng(0), checkpoint=path, progress=False)
    again = solve_mirror_descent(problem, model, 5000, np.random.default_rng(1), checkpoint=path, progress=False)
    same_solution(first, again)
    assert again.seconds >= first.seconds * 0.5


def test_anytime_runs_can_be_extended(tmp_path):
    problem, model = gridworld_problem(size=3)
    path = tmp_path / "run.npz"
    options = {"anytime": True, "progress": False}
    straight = solve_mirror_descent(problem, model, 300_000, np.random.default_rng(0), **options)
    for n in (1000, 73_728, 131_072, 300_000):  # within an epoch, and at the end of one (16·36·2⁷)
        extended = solve_mirror_descent(problem, model, n, np.random.default_rng(0), checkpoint=path, **options)
        assert extended.n_iterations == n
    same_solution(extended, straight)
    with pytest.raises(ValueError, match="n_iterations must be at least the 300000 done"):
        solve_mirror_descent(problem, model, 1000, np.random.default_rng(0), checkpoint=path, **options)


def test_checkpoints_are_written_on_the_way(tmp_path, monkeypatch):
    problem, model = gridworld_problem(size=3)
    path = tmp_path / "run.npz"
    saves = []
    monkeypatch.setattr("lfd_gym.solvers.descent.mirror_descent.save_checkpoint", lambda *args: saves.append(args))
    options = {"checkpoint": path, "progress": False}
    solve_mirror_descent(problem, model, 50_000, np.random.default_rng(0), checkpoint_seconds=0.0, **options)
    assert len(saves) > 2
    saves.clear()
    solve_mirror_descent(problem, model, 50_000, np.random.default_rng(0), checkpoint_seconds=1e6, **options)
    assert len(saves) == 1


def test_other_runs_are_refused(tmp_path):
    problem, model = gridworld_problem(size=3)
    path = tmp_path / "run.npz"
    rng = np.random.default_rng(0)
    solve_mirror_descent(problem, model, 1000, rng, checkpoint=path, progress=False)
    other, _ = gridworld_problem(size=3, cost_seed=1)
    with pytest.raises(ValueError, match="belongs to another problem or model"):
        solve_mirror_descent(other, model, 1000, rng, checkpoint=path)
    halved = lfd.TableCosts(0.5 * problem.costs.table, 4)
    in_a_ball = lfd.TableCosts(problem.costs.table, 4, "ball")
    for change in ({"costs": halved}, {"costs": in_a_ball}, {"expert_features": 0.5 * problem.expert_features}):
        changed = dataclasses.replace(problem, **change)
        with pytest.raises(ValueError, match="belongs to another problem or model"):
            solve_mirror_descent(changed, model, 1000, rng, checkpoint=path)
    slippery = lfd.as_generative_model(
        lfd.FiniteMDP(np.roll(problem.mdp.transitions.toarray(), 1, axis=0), np.full(9, 1 / 9), 0.9)
    )
    with pytest.raises(ValueError, match="belongs to another problem or model"):
        solve_mirror_descent(problem, slippery, 1000, rng, checkpoint=path)
    with pytest.raises(ValueError, match=r"made with n_iterations=1000.*anytime=True"):
        solve_mirror_descent(problem, model, 2000, rng, checkpoint=path)
    with pytest.raises(ValueError, match="made with schedule='practical', got 'paper'"):
        solve_mirror_descent(problem, model, 1000, rng, checkpoint=path, schedule="paper")


def cartpole_problem(scale=1.0, cost=0.5, seed=0):
    bounds = scale * np.array([2.4, 3.0, 0.21, 3.0])
    grid = TileGrid(-bounds, bounds, [2, 2, 2, 2])
    return lfd.SaddlePointProblem.from_simulator(
        lambda observations, actions: np.where(np.isnan(observations[:, :1]), 0.0, cost),
        [0.1],
        occupancy_features=TileOccupancyFeatures(grid, n_actions=2, absorbing=True),
        value_features=RandomFourierFeatures(4, np.ones(4), np.random.default_rng(seed)),
        discount=0.9,
        value_radius=2.0,
    )


def test_functions_and_simulators_are_known_by_their_answers():
    model = lfd.as_generative_model(gym.make("CartPole-v1"))
    first = fingerprint(cartpole_problem(), model)
    assert fingerprint(cartpole_problem(), lfd.as_generative_model(gym.make("CartPole-v1"))) == first
    stronger = gym.make("CartPole-v1")
    stronger.unwrapped.force_mag = 20.0
    others = [
        fingerprint(cartpole_problem(scale=0.1), model),
        fingerprint(cartpole_problem(cost=-0.5), model),
        fingerprint(cartpole_problem(seed=7), model),
        fingerprint(cartpole_problem(), lfd.as_generative_model(stronger)),
    ]
    assert len({first, *others}) == 5


def test_a_folder_that_does_not_exist_is_refused_before_the_work(tmp_path):
    problem, model = gridworld_problem(size=3)
    with pytest.raises(ValueError, match="checkpoint must be a file in a folder that exists"):
        solve_mirror_descent(problem, model, 10, np.random.default_rng(0), checkpoint=tmp_path / "nowhere" / "run.npz")


class SlowSimulator(Simulator):
    """Sends a signal during the third batch, and may fail afterwards."""

    def __init__(self, model, fails):
        super().__init__(model)
        self.fails, self.n_batches = fails, 0

    def sample_next(self, states, actions, rng):
        self.n_batches += 1
        if self.n_batches == 3:
            signal.raise_signal(signal.SIGTERM)
            if self.fails:
                raise RuntimeError("the simulator broke")
        return super().sample_next(states, actions, rng)


def run_with_signal(tmp_path, fails):
    problem = two_states_with_self_loops()
    simulator = SlowSimulator(lfd.TabularModel.of(problem.mdp), fails)
    return solve_mirror_descent(
        problem,
        simulator,
        50,
        np.random.default_rng(0),
        schedule="paper",
        progress=False,
        checkpoint=tmp_path / "run.npz",
    )


def test_a_signal_takes_effect_after_the_batch_it_came_in(tmp_path):
    received = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        solution = run_with_signal(tmp_path, fails=False)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert received == [signal.SIGTERM]
    assert solution.status == "interrupted"
    assert solution.n_iterations <= 5
    _, arrays = load_checkpoint(tmp_path / "run.npz")
    assert arrays["counter"][0] == solution.n_iterations


def test_a_signal_is_not_lost_when_the_simulator_fails(tmp_path):
    received = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        with pytest.raises(RuntimeError, match="the simulator broke"):
            run_with_signal(tmp_path, fails=True)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert received == [signal.SIGTERM]


@pytest.mark.parametrize("fails_in", ["sample_next", "sample_initial", "observe", "is_absorbing"])
def test_a_simulator_that_fails_leaves_the_rounds_before(tmp_path, fails_in, monkeypatch):
    problem = two_states_with_self_loops()

    def solve(simulator, **options):
        fixed = {"schedule": "practical", "progress": False, "batch_size": 4}
        return solve_mirror_descent(problem, simulator, 60, np.random.default_rng(0), **fixed, **options)

    simulator = Simulator(lfd.TabularModel.of(problem.mdp))
    never_failed = solve(simulator, checkpoint=tmp_path / "whole.npz")
    work, calls = getattr(simulator, fails_in), []

    def breaks(*arguments):
        calls.append(arguments)
        if len(calls) == 40:
            raise RuntimeError("the simulator broke")
        return work(*arguments)

    monkeypatch.setattr(simulator, fails_in, breaks)
    path = tmp_path / "run.npz"
    with pytest.raises(RuntimeError, match="the simulator broke"):
        solve(simulator, checkpoint=path)
    done = int(load_checkpoint(path)[1]["counter"][0])
    assert 5 < done < 60
    same_solution(solve(simulator, checkpoint=path), never_failed)


def test_files_that_are_no_checkpoints_are_refused(tmp_path):
    problem, model = gridworld_problem(size=3)
    path = tmp_path / "run.npz"
    solve_mirror_descent(problem, model, 1000, np.random.default_rng(0), checkpoint=path, progress=False)
    whole = path.read_bytes()

    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="is not a checkpoint"):
        load_checkpoint(path)

    for description in ('{"format": "lfd_gym.mirror_descent/99"}', '{"version": 3}'):  # a later and an older version
        np.savez(path, description=np.array(description))
        with pytest.raises(ValueError, match=r"this version of lfd_gym can continue; use another file: its format is"):
            load_checkpoint(path)

    with open(path, "wb") as file:
        np.savez(file, description=np.array([{"version": 1}], dtype=object))  # a pickle inside
    assert zipfile.is_zipfile(path)
    with pytest.raises(ValueError, match="is not a checkpoint"):
        load_checkpoint(path)
