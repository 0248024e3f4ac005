"""Algorithm 1 on a finite model: the problem as arrays, the state of a run, and the compiled rounds on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lfd_gym._splitmix import draw_seeds
from lfd_gym.costs.costs import model_costs
from lfd_gym.costs.sets import Ball, Simplex
from lfd_gym.features.value_features import FiniteValueFeatures
from lfd_gym.model.generative_model import TabularModel
from lfd_gym.solvers.descent._kernels import (
    COUNTERS,
    N_STREAMS,
    SETTINGS,
    ProblemArrays,
    RunState,
    advance,
    blank_tape,
)
from lfd_gym.solvers.descent._outcome_table import empty_table, outcome_table
from lfd_gym.solvers.descent._prefetch import aligned_zeros
from lfd_gym.solvers.descent._restored_state import check_counters, check_player, check_sampler
from lfd_gym.solvers.descent._value_ascent import DENSE, IDENTITY, SPARSE, ValuePlayer, ValueRows, zero_player
from lfd_gym.solvers.descent._weight_sampler import HEADROOM, WeightSampler, temper, uniform_sampler
from lfd_gym.solvers.descent.solver_checkpoint import require, restored
from lfd_gym.solvers.descent.step_sizes import StepSizes
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem
from lfd_gym.solvers.solution import SaddlePoint
from lfd_gym.validation import FloatArray, IntArray

#: The sets of cost weights that the kernel knows.
COMPILED_SETS = (Simplex(), Ball())
#: Rows of Ψ with a larger share of nonzeros are stored densely.
_DENSE_SHARE = 0.25
_NO_RECORD = np.empty((0, 9), np.int64)


class FiniteOracle:
    """A finite problem and the alias tables of its model, laid out for the kernel. Several runs may share it."""

    def __init__(self, problem: SaddlePointProblem, model: TabularModel) -> None:
        columns, values = problem.finite_features()
        if (columns.n_states, columns.n_actions) != (model.n_states, model.n_actions):
            raise ValueError(
                f"model has {model.n_states} states and {model.n_actions} actions, "
                f"but the problem's features are over {columns.n_states} and {columns.n_actions}"
            )
        costs = model_costs("cost_features", problem.costs, model.dynamics)
        self.problem = problem
        self.row_kind, rows = _value_rows(values)
        self.arrays = ProblemArrays(
            *_cost_rows(costs.table),
            expert=problem.expert_features,
            columns=empty_table() if columns.is_tabular else outcome_table(columns.table),
            transitions=outcome_table(model.transition_table),
            initial=outcome_table(model.initial_table),
            rows=rows,
        )

    def settings(self, steps: StepSizes) -> NDArray[np.void]:
        """Return the settings of the kernel for an epoch with these steps."""
        problem = self.problem
        columns, _ = problem.finite_features()
        settings = np.zeros(1, SETTINGS)
        values: dict[str, Any] = {
            "discount": problem.discount,
            "shift": steps.shift,
            "radius": problem.value_set.bound,
            "headroom": HEADROOM if steps.balanced else 1.0,
            "occupancy_step": steps.occupancy,
            "value_step": steps.value,
            "cost_step": steps.cost,
            "n_actions": columns.n_actions,
            "tabular_columns": columns.is_tabular,
            "row_kind": self.row_kind,
            "box": problem.value_domain == "box",
            "cost_ball": problem.costs.weights == Ball(),
            "balanced": steps.balanced,
            "value_step_decays": steps.value_decays,
        }
        for name, value in values.items():
            settings[name] = value
        return settings


class FiniteDescent:
    """A run of Algorithm 1 with a compiled inner loop. One iteration is one round of single draws."""

    oracle_calls_per_iteration = 2
    initial_draws_per_iteration = 1

    def __init__(self, oracle: FiniteOracle, steps: StepSizes, rng: np.random.Generator) -> None:
        problem = oracle.problem
        self.oracle = oracle
        self._settings = oracle.settings(steps)
        self._tape = blank_tape()
        cost_weights = np.zeros((2, problem.n_costs))
        cost_weights[0] = problem.costs.weights.centre(problem.n_costs)
        self.state = RunState(
            seeds=draw_seeds(N_STREAMS, rng),
            counters=np.zeros(1, COUNTERS),
            sampler=uniform_sampler(problem.n_occupancy_features, float(self._settings["headroom"][0])),
            player=zero_player(problem.n_value_features, oracle.row_kind),
            cost_weights=cost_weights,
        )

    @property
    def iteration(self) -> int:
        """Rounds done."""
        return int(self.state.counters["iteration"][0])

    def set_steps(self, steps: StepSizes) -> None:
        """Use other steps from now on."""
        self._settings = self.oracle.settings(steps)

    def advance(self, n_iterations: int, record: IntArray = _NO_RECORD) -> None:
        """Do so many rounds; the draws of the first ones go to ``record``, with the columns `_kernels.DRAWS`."""
        advance(self.oracle.arrays, self.state, self._settings, n_iterations, self._tape, record)

    def temper(self, power: float) -> None:
        """Raise θ and, over the simplex, w to ``power`` and normalise: dual averaging with a smaller step."""
        temper(self.state.sampler, power, float(self._settings["headroom"][0]))
        weights = self.state.cost_weights[0]
        weights[:] = self.oracle.problem.costs.weights.temper(weights, power)

    def current(self) -> SaddlePoint:
        """Return the iterates θ, λ and w."""
        theta = self.state.sampler.weights["value"] / self.state.sampler.numbers["total"][0]
        player = self.state.player
        z = player.dense[0] if self.oracle.row_kind == DENSE else player.entries["value"]
        return SaddlePoint(theta, z * player.numbers["scale"][0], self.state.cost_weights[0].copy())

    def sums(self) -> SaddlePoint:
        """Return the sums of the iterates θ_n, λ_n and w_n so far, leaving the run as it is."""
        sampler, player = self.state.sampler, self.state.player
        weights = sampler.weights
        theta = weights["sum"] + weights["value"] * (sampler.numbers["clock"][0] - weights["since"])
        if self.oracle.row_kind == DENSE:
            values = player.dense[1].copy()
        else:
            entries = player.entries
            values = entries["sum"] + entries["value"] * (player.numbers["clock"][0] - entries["since"])
        return SaddlePoint(theta, values, self.state.cost_weights[1].copy())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays that a checkpoint needs."""
        state = self.state
        return {
            "seeds": state.seeds,
            "counters": state.counters,
            "cost_weights": state.cost_weights,
            **{f"sampler_{name}": array for name, array in state.sampler._asdict().items()},
            **{f"player_{name}": array for name, array in state.player._asdict().items()},
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the arrays of a checkpoint of the same problem."""
        own = self.arrays()
        found = {name: restored(name, arrays[name], array) for name, array in own.items()}
        check_counters(found["counters"])
        check_sampler(WeightSampler(*(found[f"sampler_{name}"] for name in WeightSampler._fields)))
        check_player(ValuePlayer(*(found[f"player_{name}"] for name in ValuePlayer._fields)))
        for name, array in own.items():
            array[...] = found[name]
        total, iteration = float(self.sums().occupancy_weights.sum()), self.iteration
        require(abs(total - iteration) <= 1e-6 * max(iteration, 1), "averages of θ must be those of its rounds")


def _cost_rows(costs: FloatArray) -> tuple[FloatArray, int]:
    """Return C row after row and the distance between rows. Rows of up to a cache line lie in one, hence the gaps."""
    n = costs.shape[1]
    if n > 8:
        return np.ascontiguousarray(costs, dtype=np.float64).ravel(), n
    stride = 2 ** (n - 1).bit_length()
    rows = aligned_zeros(costs.shape[0] * stride, np.dtype(np.float64))
    rows.reshape(-1, stride)[:, :n] = costs
    return rows, stride


def _value_rows(features: FiniteValueFeatures) -> tuple[int, ValueRows]:
    offsets, columns, data = np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    matrix = np.zeros((0, 0))
    if features.is_tabular:
        return IDENTITY, ValueRows(offsets, columns, data, matrix)
    rows = features.matrix
    if rows.nnz > _DENSE_SHARE * rows.shape[0] * rows.shape[1]:
        return DENSE, ValueRows(offsets, columns, data, np.ascontiguousarray(rows.toarray()))
    return SPARSE, ValueRows(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data, matrix)
