"""The radius of the value weights: what warns, and what the automatic one covers."""

import numpy as np
import pytest
from hypothesis import given
from strategies import mdps_with_costs

import lfd_gym as lfd
from lfd_gym.features import FiniteValueFeatures, TabularValueFeatures
from lfd_gym.solvers.saddle.value_radius import automatic_radius, fitted_weights, warn_if_radius_too_small
from lfd_gym.validation import LfdGymWarning


def test_a_box_needs_half_the_span_because_a_constant_is_free():
    mdp = lfd.FiniteMDP(np.eye(4), np.full(4, 0.25), discount=0.5)
    costs = lfd.TableCosts([[0.0], [0.0], [0.0], [1.0]], n_actions=1)  # values 0, 0, 0, 1
    values = TabularValueFeatures(4)
    warn_if_radius_too_small(mdp, costs, values, "box", 0.51)
    with pytest.warns(LfdGymWarning, match="leaves out the optimal values of cost feature 0, which need 0.5"):
        warn_if_radius_too_small(mdp, costs, values, "box", 0.49)


@given(mdps_with_costs())
def test_the_automatic_radius_does_not_warn(drawn):
    mdp = drawn[0]
    costs = lfd.TableCosts(drawn[1], mdp.n_actions)
    values = TabularValueFeatures(mdp.n_states)
    for domain in ("ball", "box"):
        radius = automatic_radius(mdp, costs, values, domain)
        warn_if_radius_too_small(mdp, costs, values, domain, radius)


def test_the_automatic_radius_covers_both_ends_of_the_optimal_values():
    rng = np.random.default_rng(0)
    mdp = lfd.FiniteMDP(rng.dirichlet(np.full(12, 0.2), size=36), rng.dirichlet(np.ones(12)), 0.95)
    costs = rng.choice([-1.0, 1.0], size=(36, 3))
    features = FiniteValueFeatures(rng.uniform(-1, 1, (12, 4)))
    radius = automatic_radius(mdp, lfd.TableCosts(costs, n_actions=3), features, "box")
    common = mdp.optimal_policy(costs.mean(axis=1))
    ends = [mdp.plan(cost).values for cost in costs.T], [mdp.value_function(common, cost) for cost in costs.T]
    needs = [max(np.abs(fitted_weights(features, values)).max() for values in end) for end in ends]
    assert needs[1] > 1.01 * needs[0] > 0.001  # the policy's values are the larger end here
    assert radius == pytest.approx(needs[1], rel=1e-4)
