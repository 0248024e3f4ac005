"""The preconditioner of chains: basins, their shares and the chain between them, against definitions."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from lfd_gym.envs.gridworld import gridworld_transitions
from lfd_gym.model import krylov
from lfd_gym.model.basins import approximate_solution, find_basins

DISCOUNT = 0.97


def drifting_chain(n_states, rng):
    """Each state goes to one state with probability 0.6, and to a few others."""
    rows = np.repeat(np.arange(n_states), 4)
    columns = rng.integers(n_states, size=(n_states, 4))
    weights = np.tile([0.6, 0.2, 0.1, 0.1], (n_states, 1))
    return sp.csr_array((DISCOUNT * weights.ravel(), (rows, columns.ravel())), shape=(n_states, n_states))


def goal_chain(size, discount=DISCOUNT):
    """Go right, else down, to the last corner of a gridworld."""
    states = np.arange(size**2)
    actions = np.where(states % size < size - 1, RIGHT, DOWN)
    return sp.csr_array(discount * gridworld_transitions(size)[4 * states + actions])


def direction_of(step):
    """The action of the gridworld that most probably moves a state in the middle by ``step``."""
    size = 5
    rows = gridworld_transitions(size)[4 * 12 : 4 * 12 + 4].toarray()
    return int(rows[:, 12 + step].argmax())


RIGHT, DOWN = direction_of(1), direction_of(5)


def basins_of(chain, distribution):
    arrays = sp.csr_array(chain.T) if distribution else chain
    arrays.sort_indices()
    chain = (arrays.indptr.astype(np.uint32), arrays.indices.astype(np.uint32), arrays.data)
    found, in_order = find_basins(*chain, distribution)
    return found, arrays, in_order


def circle_and_distance(following, state):
    """Walk until a state comes again."""
    path = []
    while state not in path:
        path.append(state)
        state = following[state]
    return frozenset(path[path.index(state) :]), path.index(state)


@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.booleans())
def test_basins_are_what_leads_to_the_same_circle(n_states, seed, distribution):
    chain = drifting_chain(n_states, np.random.default_rng(seed))
    found, _, _ = basins_of(chain, distribution)
    following = [int(chain.indices[slice(*pair)][chain.data[slice(*pair)].argmax()]) for pair in row_slices(chain)]
    walks = [circle_and_distance(following, state) for state in range(n_states)]
    assert sorted(found.order) == list(range(n_states))
    assert (found.starts[0], found.starts[-1]) == (0, n_states)
    circles = set()
    for first, last in zip(found.starts[:-1], found.starts[1:], strict=True):
        members = [walks[state] for state in found.order[first:last]]
        distances = [distance for _, distance in members]
        assert distances == sorted(distances, reverse=distribution)  # values flow up, distributions down
        (circle,) = {circle for circle, _ in members}
        circles.add(circle)
    assert len(circles) == found.starts.size - 1


def row_slices(chain):
    return zip(chain.indptr[:-1], chain.indptr[1:], strict=True)


@pytest.mark.parametrize("distribution", [False, True])
def test_the_chain_between_basins_is_galerkins(distribution):
    chain = drifting_chain(300, np.random.default_rng(3))
    found, arrays, _ = basins_of(chain, distribution)
    n_basins = found.starts.size - 1
    assert 1 < n_basins < 50
    basin = np.repeat(np.arange(n_basins), np.diff(found.starts))
    indicator = np.zeros((300, n_basins))
    indicator[found.order, basin] = 1.0
    spread = np.zeros((300, n_basins))
    spread[found.order, basin] = found.share
    assert (found.share >= 0).all()
    np.testing.assert_allclose(spread.sum(axis=0), 1, atol=1e-14)
    expected = indicator.T @ arrays @ spread if distribution else spread.T @ arrays @ indicator
    between = sp.csr_array((found.weights, found.successors.view(np.int32), found.offsets))
    between.resize((n_basins, n_basins))
    np.testing.assert_allclose(found.scale, 1 / (1 - expected.diagonal()), rtol=1e-12)
    np.testing.assert_allclose(
        between.toarray() / found.scale[:, None] + np.diag(expected.diagonal()), expected, atol=1e-14
    )


def test_long_indices_give_the_same():
    chain = drifting_chain(50, np.random.default_rng(0))
    short, long = (find_basins(chain.indptr.astype(t), chain.indices.astype(t), chain.data, False) for t in "IL")
    for one, other in zip((*short[0], *short[1]), (*long[0], *long[1]), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("distribution", [False, True])
def test_shares_are_where_the_chain_stays(distribution):
    stay = sp.csr_array(np.array([[0.0, 0.9, 0.0], [0.9, 0.0, 0.0], [0.0, 0.9, 0.0]]))  # 2 leads to the circle 0, 1
    found, _, _ = basins_of(stay, distribution)
    assert dict(zip(found.order.tolist(), found.share, strict=True)) == pytest.approx({0: 0.5, 1: 0.5, 2: 0.0})


@pytest.mark.parametrize("distribution", [False, True])
def test_approximate_solutions_are_linear_and_close(distribution):
    found, arrays, in_order = basins_of(goal_chain(30), distribution)
    offsets, successors, weights = in_order
    matrix = sp.csr_array((weights, successors.view(np.int32), offsets.view(np.int32)))
    np.testing.assert_array_equal(matrix.toarray(), arrays.toarray()[np.ix_(found.order, found.order)])

    def approximate(residual):
        x = np.empty_like(residual)
        approximate_solution(*in_order, found, residual, x, distribution)
        return x

    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 900))
    np.testing.assert_allclose(
        approximate(2 * first - 3 * second), 2 * approximate(first) - 3 * approximate(second), atol=1e-10
    )
    # Repeated, it solves; a fixed-point step would shrink the residual to 0.97.
    residual = rng.uniform(size=900)
    sizes = []
    for _ in range(10):
        x = approximate(residual)
        residual = residual - x + matrix @ x
        sizes.append(np.abs(residual).sum())
    assert sizes[-1] < 0.9**9 * sizes[0]


@pytest.mark.parametrize("distribution", [False, True])
def test_a_chain_without_flow_is_left_alone(distribution):
    rows = gridworld_transitions(4)
    uniform = sp.csr_array(sp.kron(sp.eye_array(16), np.full((1, 4), 0.25 * DISCOUNT)) @ rows)
    chain = sp.csr_array(uniform.T) if distribution else uniform
    assert (
        find_basins(chain.indptr.astype(np.uint32), chain.indices.astype(np.uint32), chain.data, distribution) is None
    )


@pytest.mark.parametrize("distribution", [False, True])
def test_bicgstab_with_basins_needs_no_help(monkeypatch, distribution):
    for helper in ("_solve_directly", "gauss_seidel"):
        monkeypatch.setattr(krylov, helper, lambda *_: pytest.fail("BiCGStab did not reach the target"))
    found = []
    monkeypatch.setattr(krylov, "find_basins", lambda *chain: found.append(find_basins(*chain)) or found[-1])
    chain = goal_chain(40, 0.995)
    chain = sp.csr_array(chain.T) if distribution else chain
    residual = np.random.default_rng(0).normal(size=1600)
    arrays = (chain.indptr.astype(np.uint32), chain.indices.astype(np.uint32), chain.data)
    x = krylov.ChainSolver(0.995, 1600, distribution).solve(*arrays, residual.copy(), 1e-9)
    left = residual - x + chain @ x
    assert (np.abs(left).sum() if distribution else np.ptp(left)) <= 1.01e-9
    assert found[0][0].starts.size == 2  # one basin: all ways lead to the goal
