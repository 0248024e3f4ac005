"""Sparse linear programs on HiGHS: through scipy, or its HiPO solver through highspy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from lfd_gym.validation import FloatArray

# The tightest tolerance HiGHS accepts.
_FEASIBILITY = 1e-10


class LinearProgramError(RuntimeError):
    """HiGHS ended without an optimal solution, so there is no policy.

    Attributes
    ----------
    status
        ``"time_limit"``, ``"infeasible"``, ``"unbounded"`` or ``"failed"``.
    """

    def __init__(self, status: str, message: str) -> None:
        super().__init__(f"the linear program ended with status {status!r}: {message}")
        self.status = status
        self._message = message

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by both arguments: exceptions do so by their text alone."""
        return type(self), (self.status, self._message)


@dataclass(frozen=True)
class Program:
    """min cost·x subject to upper_matrix·x ≤ upper, equal_matrix·x = equal, and ``bounds``, (n, 2), of each x_i."""

    cost: FloatArray
    upper_matrix: sp.csr_array
    upper: FloatArray
    equal_matrix: sp.csr_array
    equal: FloatArray
    bounds: FloatArray


@dataclass(frozen=True)
class Answer:
    """The optimal x of a `Program` and the sensitivities of its optimum to ``upper`` and ``equal``."""

    x: FloatArray
    upper_prices: FloatArray
    equal_prices: FloatArray
    message: str
    n_iterations: int


def solve_with_scipy(program: Program, method: str = "highs-ds", time_limit: float | None = None) -> Answer:
    """Solve with scipy's HiGHS, by ``"highs-ds"`` or ``"highs-ipm"``."""
    options: dict[str, Any] = {
        "primal_feasibility_tolerance": _FEASIBILITY,
        "dual_feasibility_tolerance": _FEASIBILITY,
    }
    if method == "highs-ipm":
        options["ipm_optimality_tolerance"] = _FEASIBILITY
    if time_limit is not None:
        options["time_limit"] = time_limit
    from scipy.optimize import linprog  # slow to import, and needed here only

    solve: Any = linprog  # the stubs do not know sparse arrays
    result = solve(
        program.cost,
        A_ub=program.upper_matrix,
        b_ub=program.upper,
        A_eq=program.equal_matrix,
        b_eq=program.equal,
        bounds=program.bounds,
        method=method,
        options=options,
    )
    if result.status != 0:
        statuses = {1: "time_limit", 2: "infeasible", 3: "unbounded"}
        raise LinearProgramError(statuses.get(result.status, "failed"), result.message)
    return Answer(result.x, result.ineqlin.marginals, result.eqlin.marginals, result.message, int(result.nit))


def solve_with_hipo(program: Program, time_limit: float | None, optimality: float = _FEASIBILITY) -> Answer:
    """Solve with HiGHS' interior-point solver HiPO on one thread, without crossover, and make sure that it ran.

    HiGHS does not stop when the libraries HiPO needs are missing: it falls back on the simplex method.
    ``optimality`` is the relative gap between the objectives at which HiPO may stop.
    """
    try:
        import highspy
    except ImportError as error:
        raise ImportError("method 'hipo' needs the 'highs' extra: pip install 'lfd-gym[highs]'") from error
    log: list[str] = []
    highs = highspy.Highs()
    highs.setOptionValue("log_to_console", False)
    highs.cbLogging.subscribe(lambda event: log.append(event.message))
    options: dict[str, Any] = {
        "solver": "hipo",
        "threads": 1,
        "run_crossover": "off",
        "primal_feasibility_tolerance": _FEASIBILITY,
        "dual_feasibility_tolerance": _FEASIBILITY,
        "ipm_optimality_tolerance": optimality,
    }
    if time_limit is not None:
        options["time_limit"] = time_limit
    for name, value in options.items():
        if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise ImportError(f"HiGHS refuses {name} = {value!r}; HiPO needs the 'highs' extra: {log[-1].strip()}")
    highs.passModel(_highs_model(highspy, program))
    highs.run()
    said_by_hipo = [line.strip() for line in log if "Hipo:" in line]
    message = "; ".join([highs.modelStatusToString(highs.getModelStatus()), *said_by_hipo])
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        statuses = {"kTimeLimit": "time_limit", "kInfeasible": "infeasible", "kUnbounded": "unbounded"}
        raise LinearProgramError(statuses.get(highs.getModelStatus().name, "failed"), message)
    if not any(line.startswith("Hipo: Solved") for line in said_by_hipo):
        raise RuntimeError("HiGHS solved the program by another method than HiPO:\n" + "".join(log))
    solution = highs.getSolution()
    prices = np.array(solution.row_dual)
    n_upper = program.upper.size
    n_iterations = int(highs.getInfo().ipm_iteration_count)
    return Answer(np.array(solution.col_value), prices[:n_upper], prices[n_upper:], message, n_iterations)


def _highs_model(highspy: Any, program: Program) -> Any:
    """Return the program as HighsLp: the rows of ≤ first, then those of =."""
    matrix = sp.csc_array(sp.vstack([program.upper_matrix, program.equal_matrix]))
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = matrix.shape
    model.col_cost_ = program.cost
    model.col_lower_, model.col_upper_ = program.bounds.T
    model.row_lower_ = np.concatenate([np.full(program.upper.size, -highspy.kHighsInf), program.equal])
    model.row_upper_ = np.concatenate([program.upper, program.equal])
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = matrix.indptr
    model.a_matrix_.index_ = matrix.indices
    model.a_matrix_.value_ = matrix.data
    return model
