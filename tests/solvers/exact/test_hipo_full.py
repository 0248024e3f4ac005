"""HiGHS' HiPO solver: it must be the one that ran."""

import sys

import highspy
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym import FiniteMDP


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    kernel = rng.dirichlet(np.full(60, 0.1), size=60 * 4)
    mdp = FiniteMDP(kernel, initial_distribution=np.full(60, 1 / 60), discount=0.95)
    return mdp, rng.uniform(-1, 1, (240, 5)), rng.uniform(-0.2, 0.2, 5)


@pytest.mark.parametrize("form", ["primal", "dual"])
def test_hipo_agrees_with_the_simplex_method(problem, form):
    simplex = lfd.solve_linear_program(*problem)
    hipo = lfd.solve_linear_program(*problem, form=form, method="hipo")
    assert hipo.primal_objective == pytest.approx(simplex.primal_objective, abs=1e-8)
    assert hipo.apprentice_value == pytest.approx(simplex.apprentice_value, abs=1e-8)
    assert hipo.status == "optimal"
    assert hipo.n_iterations > 0


def test_a_silent_fallback_to_another_solver_is_refused(problem, monkeypatch):
    """Where HiPO is missing HiGHS goes on with the simplex method; here its option is swallowed to the same effect."""
    original = highspy.Highs.setOptionValue

    def forgetful(self, name, value):
        return original(self, name, "simplex" if name == "solver" else value)

    monkeypatch.setattr(highspy.Highs, "setOptionValue", forgetful)
    with pytest.raises(RuntimeError, match="another method than HiPO"):
        lfd.solve_linear_program(*problem, method="hipo")


def test_a_missing_package_is_named(problem, monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(ImportError, match=r"lfd-gym\[highs\]"):
        lfd.solve_linear_program(*problem, method="hipo")


def test_time_limit_gives_no_policy(problem):
    with pytest.raises(lfd.solvers.highs.LinearProgramError) as caught:
        lfd.solve_linear_program(*problem, method="hipo", time_limit=1e-6)
    assert caught.value.status == "time_limit"
