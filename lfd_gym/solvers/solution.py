"""Stub until the solvers' branch is merged."""

from typing import Any, NamedTuple

from lfd_gym.solvers.exact.exact_solution import ExactSolution  # noqa


class SaddlePoint(NamedTuple):
    occupancy_weights: Any
    value_weights: Any
    cost_weights: Any


class Solution:
    pass
