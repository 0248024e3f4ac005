"""The linear programs (P) and (D) of the paper's Section 3 over HiGHS, for the simplex of costs.

    (P)  min ε            over (μ, ε)   subject to  T_γ μ = ν₀,  Cᵀμ − ε1 ≤ ρ,  μ ≥ 0
    (D)  max ⟨ν₀, u⟩ − ⟨w, ρ⟩  over (u, w)   subject to  T_γ* u − Cw ≤ 0,  Σw = 1,  w ≥ 0

Each is the other's dual; either one yields all of μ, u and w. With the expert's own ρ the objective of (D) is the
paper's ⟨μ_E, T_γ* u − c_w⟩; with estimated ρ̂ it stays as written here. HiGHS gets the flow equations times (1−γ), whose
entries are of size one, and so finds u/(1−γ).

These programs hold every state-action pair, so they serve as an independent reference and for small models;
`solve_cutting_plane` solves the same problem much faster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from lfd_gym.arguments import checked
from lfd_gym.costs.costs import Costs
from lfd_gym.costs.sets import CostClass
from lfd_gym.model.mdp import FiniteMDP, one_hot, policy_from_occupancy
from lfd_gym.solvers.exact.exact_solution import ApprenticeshipProblem, require_simplex
from lfd_gym.solvers.highs import Answer, Program, solve_with_hipo, solve_with_scipy
from lfd_gym.solvers.solution import ExactSolution
from lfd_gym.validation import FloatArray

Form = Literal["primal", "dual"]
Method = Literal["highs-ds", "highs-ipm", "hipo"]

_ZERO = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LinearProgramSolution(ExactSolution):
    """An `ExactSolution` with what HiGHS itself reported.

    ``policy``, ``occupancy`` and ``values`` are recomputed from HiGHS' μ and w, so the bounds hold whatever its
    tolerances did; the two objectives are those of HiGHS' own (μ, ε) and (u, w).

    Attributes
    ----------
    primal_objective, dual_objective
        ε, and ⟨ν₀, u⟩ − ⟨w, ρ⟩.
    highs_message
        HiGHS' status in its own words.
    n_iterations
        Iterations of the simplex or interior-point method.
    """

    primal_objective: float
    dual_objective: float
    highs_message: str
    n_iterations: int


@checked
def solve_linear_program(
    mdp: FiniteMDP,
    cost_features: Costs | ArrayLike,
    expert_features: ArrayLike,
    *,
    cost_class: CostClass | None = None,
    form: Form = "primal",
    method: Method = "highs-ds",
    tolerance: float = 1e-8,
    time_limit: float | None = None,
) -> LinearProgramSolution:
    """Solve min_π max_i ρ_{c_i}(π) − ρ_{c_i}(π_E) as one linear program with HiGHS.

    Parameters
    ----------
    mdp, cost_features, expert_features
        As for `solve_cutting_plane`.
    cost_class
        The simplex: no other class is allowed.
    form
        Which of the two programs HiGHS gets.
    method
        ``"highs-ds"``, the dual simplex method; ``"highs-ipm"``, the interior-point method; both of scipy. ``"hipo"``,
        HiGHS' fastest interior-point method, needs the extra ``highs``.
    tolerance
        The status is ``"optimal"`` if the certified gap is at most this, else ``"inaccurate"``.
    time_limit
        In seconds.

    Raises
    ------
    LinearProgramError
        If HiGHS reaches the time limit, or calls the program infeasible or unbounded. There is no policy then.

    Examples
    --------
    >>> import numpy as np
    >>> import lfd_gym as lfd
    >>> stay_or_go = np.array([[[1.0, 0.0], [0.2, 0.8]], [[0.0, 1.0], [0.0, 1.0]]])
    >>> mdp = lfd.FiniteMDP(stay_or_go, initial_distribution=[1.0, 0.0], discount=0.5)
    >>> costs = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    >>> solution = lfd.solve_linear_program(mdp, costs, [0.9, 0.2])
    >>> solution.status, round(solution.primal_objective, 6), round(solution.dual_objective, 6)
    ('optimal', -0.033333, -0.033333)
    """
    problem = ApprenticeshipProblem.checked(mdp, cost_features, expert_features, cost_class)
    require_simplex(problem.costs, "solve_linear_program")
    if form not in get_args(Form):
        raise ValueError(f"form must be one of {get_args(Form)}, got {form!r}")
    if method not in get_args(Method):
        raise ValueError(f"method must be one of {get_args(Method)}, got {method!r}")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be positive, got {time_limit}")
    program, read = primal_program(problem) if form == "primal" else dual_program(problem)
    answer = solve_with_hipo(program, time_limit) if method == "hipo" else solve_with_scipy(program, method, time_limit)
    return certified_answer(problem, read(answer), answer, tolerance)


@dataclass(frozen=True)
class Point:
    """μ (S·A,), ε, u and w as HiGHS found them."""

    occupancy: FloatArray
    epsilon: float
    values: FloatArray
    cost_weights: FloatArray


def _flow_matrix(mdp: FiniteMDP) -> sp.csr_array:
    """B − γP, (S·A, S)."""
    pairs = np.arange(mdp.n_states * mdp.n_actions)
    stay = sp.csr_array((np.ones(pairs.size), (pairs, pairs // mdp.n_actions)), shape=mdp.transitions.shape)
    return sp.csr_array(stay - mdp.discount * mdp.transitions)


def primal_program(problem: ApprenticeshipProblem) -> tuple[Program, Callable[[Answer], Point]]:
    """Return (P), and how to read μ, ε, u and w off its answer."""
    mdp, n_costs = problem.mdp, problem.n_costs
    n_pairs = mdp.n_states * mdp.n_actions
    costs = sp.csr_array(problem.costs.table.T)
    program = Program(
        cost=np.append(np.zeros(n_pairs), 1.0),
        upper_matrix=sp.csr_array(sp.hstack([costs, sp.csr_array(np.full((n_costs, 1), -1.0))])),
        upper=problem.expert,
        equal_matrix=sp.csr_array(sp.hstack([_flow_matrix(mdp).T, sp.csr_array((mdp.n_states, 1))])),
        equal=(1 - mdp.discount) * mdp.initial_distribution,
        bounds=np.column_stack([np.append(np.zeros(n_pairs), -np.inf), np.full(n_pairs + 1, np.inf)]),
    )

    def read(answer: Answer) -> Point:
        values = (1 - mdp.discount) * answer.equal_prices
        return Point(answer.x[:-1], float(answer.x[-1]), values, -answer.upper_prices)

    return program, read


def dual_program(problem: ApprenticeshipProblem) -> tuple[Program, Callable[[Answer], Point]]:
    """Return (D) in the variables u/(1−γ) and w, as a minimisation, and how to read its answer."""
    mdp, n_costs = problem.mdp, problem.n_costs
    sizes = (mdp.n_states, n_costs)
    sums = sp.csr_array((np.ones(n_costs), (np.zeros(n_costs, dtype=int), mdp.n_states + np.arange(n_costs))))
    program = Program(
        cost=np.concatenate([-(1 - mdp.discount) * mdp.initial_distribution, problem.expert]),
        upper_matrix=sp.csr_array(sp.hstack([_flow_matrix(mdp), sp.csr_array(-problem.costs.table)])),
        upper=np.zeros(mdp.n_states * mdp.n_actions),
        equal_matrix=sums,
        equal=np.ones(1),
        bounds=np.column_stack([np.repeat([-np.inf, 0.0], sizes), np.full(sum(sizes), np.inf)]),
    )

    def read(answer: Answer) -> Point:
        values = (1 - mdp.discount) * answer.x[: mdp.n_states]
        return Point(-answer.upper_prices, -float(answer.equal_prices[0]), values, answer.x[mdp.n_states :])

    return program, read


def certified_answer(
    problem: ApprenticeshipProblem, point: Point, answer: Answer, tolerance: float
) -> LinearProgramSolution:
    """Clean HiGHS' μ and w, recompute the policy's occupancy and V*_w, and certify."""
    mdp = problem.mdp
    weights = np.maximum(point.cost_weights, 0.0)
    weights /= weights.sum()
    plan = mdp.plan(problem.costs.table @ weights, 0.02 * tolerance)
    # Interior-point solutions have no exact zeros.
    pairs = np.where(point.occupancy > _ZERO / mdp.n_states, point.occupancy, 0.0).reshape(mdp.n_states, mdp.n_actions)
    policy = policy_from_occupancy(pairs, fallback=one_hot(plan.actions, mdp.n_actions))
    solution = problem.certified_solution(
        mdp.occupancy(policy, 0.02 * tolerance),
        plan.values,
        weights,
        negligible=0.0,
        tolerance=tolerance,
        otherwise="inaccurate",
        n_planner_calls=0,
    )
    return LinearProgramSolution(
        **vars(solution),
        primal_objective=point.epsilon,
        dual_objective=float(mdp.initial_distribution @ point.values - point.cost_weights @ problem.expert),
        highs_message=answer.message,
        n_iterations=answer.n_iterations,
    )
