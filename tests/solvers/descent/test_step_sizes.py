"""The constants of both schedules, by hand: β = 3, γ = 0.8, three features each, and weights in the simplex."""

import math

import pytest
from descent_problems import two_states_with_self_loops

from lfd_gym.solvers.descent.step_sizes import GradientNorms, paper_steps, practical_steps


def test_the_paper_s_steps_are_those_of_theorem_1():
    """η = 2/(C√(N n_μ)) with C = 2β/(1 − γ) = 30, and η times the squared radius of each of the other sets."""
    steps = paper_steps(two_states_with_self_loops(), 100)
    eta = 2 / (30 * math.sqrt(300))
    assert steps.shift == pytest.approx(30)
    assert steps.occupancy == pytest.approx(eta)
    assert steps.value == pytest.approx(eta * 3)  # the ball of radius β/√n_u = √3
    assert steps.cost == pytest.approx(eta)  # the simplex lies in the unit ball
    assert not steps.value_decays


def test_practical_steps_go_by_the_norms_of_gradients():
    steps = practical_steps(two_states_with_self_loops(), 100, GradientNorms(value=5.0, cost=0.5))
    assert steps.shift == 0
    assert steps.occupancy == pytest.approx(2 * math.sqrt(math.log(3) / 300))
    assert steps.value == pytest.approx(math.sqrt(3) / 20)
    assert steps.value_decays
    in_batches = practical_steps(two_states_with_self_loops(), 100, GradientNorms(value=5.0, cost=0.5), batch_size=2)
    assert in_batches.occupancy == pytest.approx(2 * math.sqrt(math.log(3) / 150))
