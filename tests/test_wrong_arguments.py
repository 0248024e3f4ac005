"""Arrays and objects that do not fit: refused by the name of the argument, before a kernel follows them."""

import numpy as np
import pytest
import scipy.sparse as sp

import lfd_gym as lfd
from lfd_gym.envs import TabularEnv
from lfd_gym.features import (
    EmpiricalOccupancyFeatures,
    FiniteOccupancyFeatures,
    FiniteValueFeatures,
    TabularOccupancyFeatures,
    TabularValueFeatures,
    TileOccupancyFeatures,
    optimal_values,
    policy_occupancies,
    soft_occupancies,
)
from lfd_gym.policies.tiles import TileGrid
from lfd_gym.solvers.descent.mirror_descent import solve_mirror_descent_many
from lfd_gym.solvers.exact.plug_in import estimate_mdp

SWAP = np.array([[0.0, 1.0], [1.0, 0.0]])  # two states, one action
COSTS = np.array([[0.5], [-0.5]])
MDP = lfd.FiniteMDP(SWAP, [1.0, 0.0], 0.5)


def broken(part, value, form="csr"):
    """A matrix over two states whose arrays were changed after it was made, when SciPy does not look any more."""
    matrix = getattr(sp, f"{form}_array")(SWAP)
    getattr(matrix, part)[-1] = value
    return matrix


BROKEN = [
    pytest.param(form, part, value, id=f"{form} {part} {value}")
    for form, parts in {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}.items()
    for part in parts
    for value in (-1, 2**28)
]
MAKERS = {
    "FiniteMDP": lambda matrix: lfd.FiniteMDP(matrix, [1.0, 0.0], 0.5),
    "TabularModel": lambda matrix: lfd.TabularModel(matrix, [1.0, 0.0]),
    "TabularEnv": lambda matrix: TabularEnv(matrix, [1.0, 0.0], COSTS),
    "FiniteValueFeatures": FiniteValueFeatures,
    "FiniteOccupancyFeatures": lambda matrix: FiniteOccupancyFeatures(matrix, 1),
    "soft_occupancies": lambda matrix: soft_occupancies(matrix, 1),
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize(("form", "part", "value"), BROKEN)
def test_indices_outside_a_sparse_matrix_are_refused(maker, form, part, value):
    assert MAKERS[maker](getattr(sp, f"{form}_array")(SWAP)) is not None
    with pytest.raises(ValueError, match=r"(indices|offsets) of (transitions|matrix|memberships) must"):
        MAKERS[maker](broken(part, value, form))


@pytest.mark.parametrize("form", ["bsr", "dia", "lil", "dok"])
def test_every_sparse_format_is_taken(form):
    mdp = lfd.FiniteMDP(getattr(sp, f"{form}_array")(SWAP), [1.0, 0.0], 0.5)
    np.testing.assert_array_equal(mdp.transitions.toarray(), SWAP)


def test_offsets_that_fall_and_lengths_that_differ_are_refused():
    falling = sp.csr_array(SWAP)
    falling.indptr[1] = 2
    falling.indptr[2] = 1
    with pytest.raises(ValueError, match="offsets of transitions must be 3 numbers that start at 0 and never fall"):
        MAKERS["FiniteMDP"](falling)
    short = sp.csr_array(SWAP)
    short.data = short.data[:1]
    with pytest.raises(ValueError, match="transitions must have as many indices as entries"):
        MAKERS["FiniteMDP"](short)


FEATURES = [
    FiniteOccupancyFeatures(np.array([[1.0, 0.5], [0.0, 0.5]]), 1),
    TabularOccupancyFeatures(2, 1),
    EmpiricalOccupancyFeatures([[0], [1]], [[0], [0]]),
    TileOccupancyFeatures(TileGrid([0.0], [1.0], (2,)), 1, absorbing=False),
]


@pytest.mark.parametrize("features", FEATURES, ids=lambda features: type(features).__name__)
def test_columns_that_are_none_are_not_drawn_from(features):
    rng = np.random.default_rng(0)
    for kind in (np.int64, np.uint8, np.uint64, np.int16):
        assert len(features.sample(np.array([0, 1, 1], dtype=kind), rng)[1]) == 3
    for wrong in ([2], [-1], [2**40], [0, 2**62]):
        with pytest.raises(ValueError, match=r"indices must lie in \[0, 2\), got"):
            features.sample(np.array(wrong), rng)
    for wrong in (np.array([0.0]), np.array([0], dtype=object), np.array(["0"])):
        with pytest.raises(ValueError, match="indices must be integers, got dtype"):
            features.sample(wrong, rng)


@pytest.mark.parametrize("features", [TabularValueFeatures(2), FiniteValueFeatures(SWAP)])
@pytest.mark.parametrize("method", ["evaluate", "row_sum"])
def test_states_that_are_none_have_no_features(features, method):
    ask = getattr(features, method)
    np.testing.assert_array_equal(ask(np.array([0, 1], dtype=np.uint8)), ask([0, 1]))
    for wrong in ([2], [-1]):
        with pytest.raises(ValueError, match=r"observations must lie in \[0, 2\), got"):
            ask(wrong)
    with pytest.raises(ValueError, match="observations must be integers"):
        ask(np.array([0.5]))


def test_empirical_pairs_outside_a_finite_space_are_refused():
    with pytest.raises(ValueError, match=r"states must lie in \[0, 2\), got 5"):
        EmpiricalOccupancyFeatures([[5]], [[0]]).to_finite(2, 1)
    with pytest.raises(ValueError, match=r"actions must be integers, got dtype float64"):
        EmpiricalOccupancyFeatures([[1]], [[0.7]]).to_finite(2, 1)


@pytest.mark.parametrize("wrong", [np.array([0.5]), np.array([0], dtype=object), np.array([2**63], dtype=np.uint64)])
def test_actions_of_every_kind_are_converted_or_refused_by_name(wrong):
    model, rng = lfd.TabularModel.of(MDP), np.random.default_rng(0)
    for kind in (np.uint8, np.uint64, np.int16):
        assert model.sample_next(np.zeros(1, kind), np.zeros(1, kind), rng) == 1
    with pytest.raises(ValueError, match="actions must"):
        model.sample_next(np.array([0]), wrong, rng)
    with pytest.raises(ValueError, match="policy must"):
        MDP.occupancy(np.concatenate([wrong, wrong]))


@pytest.mark.parametrize("size", [1.0, 1e3, 1e7, 1e12])
@pytest.mark.parametrize("temperature", [1e-3, 1.0, 1e6])
def test_soft_optimal_policies_are_found_for_costs_of_any_size(size, temperature):
    rng = np.random.default_rng(0)
    mdp = lfd.FiniteMDP(rng.dirichlet(np.ones(6), size=(6, 3)), np.full(6, 1 / 6), 0.95)
    cost = rng.uniform(-1, 1, 18)
    policy = lfd.soft_optimal_policy(mdp, size * cost, size * temperature)
    np.testing.assert_allclose(policy.sum(axis=1), 1)
    np.testing.assert_allclose(policy, lfd.soft_optimal_policy(mdp, cost, temperature), atol=1e-4)


@pytest.mark.parametrize(("name", "value"), [("temperature", np.nan), ("temperature", np.inf), ("tolerance", np.nan)])
def test_soft_optimal_policy_names_what_is_wrong(name, value):
    settings = {"temperature": 1.0, "tolerance": 1e-8} | {name: value}
    with pytest.raises(ValueError, match=f"{name} must be positive and finite, got"):
        lfd.soft_optimal_policy(MDP, COSTS.ravel(), **settings)


PROBLEM = lfd.SaddlePointProblem.tabular(MDP, COSTS, [0.0], value_radius=5.0)
MODEL, RNG = lfd.TabularModel.of(MDP), np.random.default_rng(0)
CALLS = {
    "mdp": [
        lambda mdp: lfd.solve_cutting_plane(mdp, COSTS, [0.0]),
        lambda mdp: lfd.solve_linear_program(mdp, COSTS, [0.0]),
        lambda mdp: lfd.SaddlePointProblem.tabular(mdp, COSTS, [0.0]),
        lambda mdp: lfd.explains(mdp, COSTS, [[1.0], [1.0]], [1.0]),
        lambda mdp: lfd.explaining_weights(mdp, COSTS, [[1.0], [1.0]]),
        lambda mdp: lfd.soft_optimal_policy(mdp, COSTS.ravel(), 1.0),
        lambda mdp: lfd.mixture_policy(mdp, [[[1.0], [1.0]]], [1.0]),
        lambda mdp: optimal_values(mdp, COSTS),
        lambda mdp: policy_occupancies(mdp, [[[1.0], [1.0]]]),
    ],
    "model": [
        lambda model: lfd.solve_mirror_descent(PROBLEM, model, 10, RNG),
        lambda model: solve_mirror_descent_many(PROBLEM, model, 10, [RNG]),
        lambda model: estimate_mdp(model, 0.5, 10, RNG),
    ],
    "problem": [
        lambda problem: lfd.solve_mirror_descent(problem, MODEL, 10, RNG),
        lambda problem: lfd.solve_primal_dual_hybrid(problem),
    ],
    "source": [
        lambda source: lfd.collect(source, np.ones((2, 1)), 1, 5, RNG),
        lambda source: lfd.as_generative_model(source),
    ],
    "rng": [
        lambda rng: lfd.collect(MODEL, np.ones((2, 1)), 1, 5, rng),
        lambda rng: lfd.solve_mirror_descent(PROBLEM, MODEL, 10, rng),
        lambda rng: estimate_mdp(MODEL, 0.5, 10, rng),
        lambda rng: MODEL.sample_initial(3, rng),
        lambda rng: MODEL.sample_next([0], [0], rng),
    ],
}


@pytest.mark.parametrize(("name", "call"), [(name, call) for name, calls in CALLS.items() for call in calls])
@pytest.mark.parametrize(
    "wrong", [None, 3, "text", [1.0], np.eye(2), object(), dict], ids=lambda wrong: type(wrong).__name__
)
def test_wrong_objects_are_refused_by_name(name, call, wrong):
    with pytest.raises(TypeError, match=rf"^{name} "):
        call(wrong)
