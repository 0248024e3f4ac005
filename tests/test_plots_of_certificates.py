"""Pictures of certificates show the bounds that would be said."""

import gymnasium as gym
import numpy as np
import pytest
from worlds import gridworld

import lfd_gym as lfd
from lfd_gym.plots import draw_certificate


def lines(axes):
    return {line.get_label(): line.get_xydata() for line in axes.get_lines()}


@pytest.mark.parametrize("what", ["demonstrations", "rollouts"])
def test_the_bound_over_their_number(what):
    rng = np.random.default_rng(0)
    if what == "demonstrations":
        mdp, costs = gridworld(4, 0)
        best = mdp.optimal_policy(costs[:, 0])
        model = lfd.TabularModel.of(mdp)
        shown, fresh = (lfd.collect(model, best, m, 60, rng) for m in (30, 40))
        task = lfd.Task(model, shown, discount=0.9, costs=costs)
        certificate, now = lfd.certify(best, task, rng=rng, n_rollouts=200, held_out=fresh), 40
    else:
        env = gym.make("CartPole-v1")
        task = lfd.Task(env, lfd.collect(env, push_left, 3, 20, rng), discount=0.9, horizon=10)
        certificate, now = lfd.certify(push_left, task, rng=rng, n_rollouts=50), 50
    axes = draw_certificate(certificate)
    assert axes.get_xlabel() == f"number of {what}"
    drawn = lines(axes)
    for number, bound in drawn["at most"][::13]:
        times = (number / now, 1.0) if what == "demonstrations" else (1.0, number / now)
        assert bound == pytest.approx(certificate.forecast(*times))
    np.testing.assert_allclose(drawn[f"now, {now} {what}"], [[now, certificate.cost_distance_bound]])
    assert drawn["random play"][0, 1] == certificate.random_distance
    # No part is drawn above the bound, and the last one ends on it.
    tops = [area.get_paths()[0].vertices[:, 1].max() for area in axes.collections]
    assert max(tops) == pytest.approx(drawn["at most"][:, 1].max())
    right = drawn["at most"][-1]
    for area in axes.collections:
        corners = area.get_paths()[0].vertices
        assert corners[corners[:, 0] == corners[:, 0].max(), 1].max() <= max(right[1], certificate.cost_distance) + 1e-9


def push_left(seen):
    return np.zeros(len(seen), dtype=int)


def test_what_cannot_be_drawn():
    mdp, costs = gridworld(4, 0)
    best = mdp.optimal_policy(costs[:, 0])
    demos = lfd.collect(lfd.TabularModel.of(mdp), best, 3, 60, np.random.default_rng(0))
    chosen = lfd.TableCosts(costs, 4)
    chosen.chosen_from_demonstrations = True
    certificate = lfd.certify(best, lfd.Task(mdp, demos, costs=chosen))
    assert certificate.about == "demonstrations"
    with pytest.raises(ValueError, match="certificate must rest on rollouts or demonstrations to be drawn"):
        draw_certificate(certificate)
