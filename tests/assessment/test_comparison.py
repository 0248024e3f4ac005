"""Bounds of the distance: against their formulas, with held-out pairs, and their coverage by simulation."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from worlds import distance, random_world, rare_world, too_many

import lfd_gym as lfd
from lfd_gym.assessment.certificate import _paired
from lfd_gym.assessment.comparison import Comparison
from lfd_gym.demonstrations.rollout_costs import sampled_costs
from lfd_gym.policies.conversion import as_policy

DELTA = 0.1
CLASSES = pytest.mark.parametrize("cost_class", ["simplex", "ball"])
REPEATS = pytest.mark.parametrize("repeats", [100, pytest.param(1000, marks=pytest.mark.slow)])


def estimates(seed=0, m=30, n=40, cost_class="simplex", horizon=25, discount=0.9, same=False):
    """A policy's and an expert's estimates, and those of pairs, in a world where nothing ends."""
    mdp, table, rng = random_world(seed, discount=discount)
    model = lfd.TabularModel.of(mdp)
    expert, policy = (np.eye(3)[[0, 1, 2, 0, 1]] if same else rng.dirichlet(np.ones(3), 5) for _ in range(2))
    demos = lfd.collect(model, expert, m, horizon, rng)
    task = lfd.Task(model, demos, discount=discount, costs=lfd.TableCosts(table, 3, cost_class))
    ours, theirs = task.expected_costs(policy, rng=rng, n_rollouts=n, horizon=horizon), task.expert_features()
    starts = demos.observations[demos.offsets[:-1] + np.arange(m)]
    same = {"n_rollouts": m, "horizon": horizon, "rng": rng, "initial_states": starts}
    again = sampled_costs(as_policy(policy), model, task.costs, task.criterion, **same)
    halves = (again.trajectory_values - theirs.trajectory_values) / 2
    paired = lfd.CostEstimate(halves.mean(axis=0), halves, (again.unseen_mass + theirs.unseen_mass) / 2, task.criterion)
    return task.costs, ours, theirs, paired


def test_over_the_simplex_it_is_the_largest_difference_of_sides():
    costs, ours, theirs, paired = estimates()
    upper, lower = ours.upper(DELTA / 2), theirs.lower(DELTA / 2)
    assert Comparison(costs, ours, theirs, True).bound(DELTA) == (upper - lower).max()
    assert Comparison(costs, ours, theirs, False).bound(DELTA) == (ours.upper(DELTA) - theirs.values).max()
    known = lfd.CostEstimate.exactly(ours.values, ours.criterion, error=0.01)
    exact = Comparison(costs, known, theirs, True).bound(DELTA)
    assert exact == (ours.values + 0.01 - theirs.lower(DELTA)).max()  # nothing is shared with what is known
    # Pairs and no pairs have half of δ each.
    apart = (ours.upper(DELTA / 4) - theirs.lower(DELTA / 4)).max()
    together = 2 * paired.upper(DELTA / 2).max()
    assert Comparison(costs, ours, theirs, True, paired=paired).bound(DELTA) == min(apart, together)
    # Of these demonstrations pairs say nothing.
    assert (
        Comparison(costs, ours, theirs, False, paired=paired).bound(DELTA) == (ours.upper(DELTA) - theirs.values).max()
    )


def test_over_the_ball_it_is_the_norm_or_the_sides():
    costs, ours, theirs, paired = estimates(cost_class="ball", m=300, n=400, discount=0.1, same=True)
    found = np.linalg.norm(ours.values - theirs.values)

    def apart(delta):
        norm = found + ours.class_radius(costs, delta / 4) + theirs.class_radius(costs, delta / 4)
        share = delta / 8
        high, low = ours.upper(share) - theirs.lower(share), ours.lower(share) - theirs.upper(share)
        return min(norm, np.linalg.norm(np.maximum(np.abs(high), np.abs(low))))

    assert Comparison(costs, ours, theirs, True).bound(DELTA) == pytest.approx(apart(DELTA), rel=1e-12)
    together = 2 * np.linalg.norm(paired.values) + 2 * paired.class_radius(costs, DELTA / 2)
    assert together < apart(DELTA / 2)  # so that it counts
    both = Comparison(costs, ours, theirs, True, paired=paired)
    assert both.bound(DELTA) == pytest.approx(together, rel=1e-12)
    # Without a table the norm alone.
    function = lfd.FunctionCosts(lambda seen, done: costs.table[3 * seen + done], weights="ball")
    function.rows(np.array([0]), np.array([0]))
    norm = found + ours.class_radius(function, DELTA / 2) + theirs.class_radius(function, DELTA / 2)
    assert Comparison(function, ours, theirs, True).bound(DELTA) == pytest.approx(norm, rel=1e-12)
    mine = found + ours.class_radius(function, DELTA)
    assert Comparison(function, ours, theirs, False).bound(DELTA) == pytest.approx(mine, rel=1e-12)


@CLASSES
def test_nothing_is_beyond_what_is_possible(cost_class):
    costs, ours, theirs, paired = estimates(cost_class=cost_class, m=1, n=1, horizon=1)
    for pairs in (None, paired):
        bound = Comparison(costs, ours, theirs, True, paired=pairs).bound(DELTA)
        assert bound <= costs.largest_distance + 1e-12
    function = lfd.FunctionCosts(lambda seen, done: costs.table[3 * seen + done], weights=cost_class)
    function.rows(np.array([0]), np.array([0]))
    assert Comparison(function, ours, theirs, True, paired=paired).bound(DELTA) <= function.largest_distance


@CLASSES
def test_parts_lead_from_what_was_found_to_the_bound(cost_class):
    costs, ours, theirs, paired = estimates(cost_class=cost_class, horizon=12)
    for about, pairs in ((True, None), (True, paired), (False, None)):
        comparison = Comparison(costs, ours, theirs, about, paired=pairs)
        parts = comparison.parts(DELTA)
        assert comparison.found + sum(parts.values()) == pytest.approx(comparison.bound(DELTA), abs=1e-12)
        assert list(parts) == ["rollouts", *(["demonstrations"] if about else []), "truncation"]
        assert min(parts.values()) > 0
    # What was not seen is a part of its own: γ^12 of each side.
    without = Comparison(costs, ours, theirs, False).parts(DELTA)
    if cost_class == "simplex":
        whole = replace(ours, unseen_mass=np.zeros(ours.n_trajectories))
        assert without["rollouts"] == pytest.approx(
            (whole.upper(DELTA) - theirs.values).max() - (ours.values - theirs.values).max(), abs=1e-12
        )
    known = lfd.CostEstimate.exactly(ours.values, ours.criterion, error=0.01)
    assert Comparison(costs, known, theirs, True).parts(DELTA)["planner"] >= 0.01 - 1e-12


@CLASSES
def test_a_forecast_is_the_bound_of_the_same_data_again(cost_class):
    costs, ours, theirs, paired = estimates(cost_class=cost_class)

    def again(estimate, times):
        return replace(
            estimate,
            trajectory_values=np.tile(estimate.trajectory_values, (times, 1)),
            unseen_mass=np.tile(estimate.unseen_mass, times),
        )

    for pairs in (None, paired):
        comparison = Comparison(costs, ours, theirs, True, paired=pairs)
        for demonstrations, rollouts in ((1, 1), (3, 1), (1, 4), (2, 5)):
            more = Comparison(
                costs,
                again(ours, rollouts),
                again(theirs, demonstrations),
                True,
                paired=None if pairs is None else again(pairs, demonstrations),
            )
            forecast = comparison.forecast(DELTA, demonstrations, rollouts)
            assert forecast == pytest.approx(more.bound(DELTA), abs=1e-7)
    assert comparison.forecast(DELTA, 4, 4) < comparison.bound(DELTA)


# -- held-out pairs ---------------------------------------------------------------------------------------------------


def separate_starts(n_starts=200):
    """Every start is a world of its own, and the first action is free in it."""
    transitions = np.eye(n_starts)[:, None, :].repeat(2, axis=1)
    costs = np.tile([[0.0], [1.0]], (n_starts, 1))
    return lfd.FiniteMDP(transitions, np.full(n_starts, 1 / n_starts), discount=0.9), costs


def test_pairs_with_the_demonstrations_that_were_learned_from_are_refused():
    """A policy that copies the demonstrated starts and fails elsewhere has differences of zero from them."""
    mdp, costs = separate_starts()
    model, rng = lfd.TabularModel.of(mdp), np.random.default_rng(0)
    expert = np.tile([1.0, 0.0], (200, 1))
    demos, fresh = (lfd.collect(model, expert, 20, 100, rng) for _ in range(2))
    copy = np.tile([0.0, 1.0], (200, 1))
    copy[np.unique(demos.observations)] = [1.0, 0.0]
    truth = mdp.expected_cost(copy, costs[:, 0])
    assert truth > 0.9
    task = lfd.Task(model, demos, discount=0.9, costs=costs)
    for same in (demos, demos.select(np.arange(20))):
        with pytest.raises(ValueError, match="held_out must be other demonstrations than those of the task"):
            lfd.certify(copy, task, held_out=same, rng=rng)
    paired = lfd.certify(copy, task, held_out=fresh, rng=rng)
    assert "rollouts paired with them" in paired.evidence
    assert paired.cost_distance_bound >= truth
    # It is for the refusal that the bound is true: whoever deceives it is deceived.
    deceived = lfd.certify(copy, lfd.Task(model, discount=0.9, costs=costs), held_out=demos, rng=rng)
    assert deceived.cost_distance_bound < truth


def test_pairs_say_more_where_the_start_decides():
    """The costs of both vary with the start, their differences do not."""
    mdp, _ = separate_starts()
    costs = np.repeat(np.linspace(-1, 1, 200), 2)[:, None]
    model, rng = lfd.TabularModel.of(mdp), np.random.default_rng(0)
    expert = np.tile([1.0, 0.0], (200, 1))
    shown, fresh = (lfd.collect(model, expert, m, 100, rng) for m in (5, 100))
    task = lfd.Task(model, shown, discount=0.9, costs=costs)
    certificate = lfd.certify(expert, task, held_out=fresh, rng=rng)
    apart = Comparison(task.costs, task.expected_costs(expert, rng=rng), task.expert_features(held_out=fresh), True)
    assert certificate.cost_distance_bound < 0.5 * apart.bound(0.05)


def test_pairs_are_halves_of_the_differences_from_the_same_starts():
    """Of rollouts and demonstrations that end or are cut, those elsewhere: what neither saw counts by half too."""
    mdp, table, rng = random_world(3, ends=True)
    model, costs = lfd.TabularModel.of(mdp), lfd.TableCosts(table, 3)
    expert, policy = (rng.dirichlet(np.ones(3), 5) for _ in range(2))
    held_out = lfd.collect(model, expert, 8, 2, rng)
    task = lfd.Task(model, discount=0.3, costs=costs)
    theirs = replace(task.expert_features(held_out=held_out), cut_elsewhere=True)
    for n_rollouts, n_each in ((30, 3), (5, 1)):
        paired = _paired(as_policy(policy), task, held_out, theirs, n_rollouts, np.random.default_rng(1), None)
        starts = np.repeat(held_out.observations[held_out.offsets[:-1] + np.arange(8)], n_each)
        long = task.criterion.steps(1e-3)
        ours = sampled_costs(
            as_policy(policy),
            model,
            costs,
            task.criterion,
            n_rollouts=8 * n_each,
            horizon=long,
            rng=np.random.default_rng(1),
            initial_states=starts,
        )
        means = ours.trajectory_values.reshape(8, n_each, 3).mean(axis=1)
        halves = (means - theirs.trajectory_values) / 2
        np.testing.assert_allclose(paired.trajectory_values, halves, atol=1e-14)
        np.testing.assert_allclose(paired.values, halves.mean(axis=0), atol=1e-14)
        unseen = (ours.unseen_mass.reshape(8, n_each).mean(axis=1) + theirs.unseen_mass) / 2
        np.testing.assert_allclose(paired.unseen_mass, unseen, atol=1e-14)
        assert 0 < (theirs.unseen_mass > 0).mean() < 1
        assert ours.unseen_mass.max() > 0
        assert paired.horizon == 2
        assert paired.cut_elsewhere
    unknown = _paired(
        as_policy(policy), task, held_out, replace(theirs, horizon=None), 8, np.random.default_rng(1), None
    )
    assert unknown.horizon is None


def test_held_out_demonstrations_may_be_alike_where_nothing_is_left_to_chance():
    env, rng = gym.make("FrozenLake-v1", is_slippery=False), np.random.default_rng(0)
    down = np.tile([0.0, 1.0, 0.0, 0.0], (16, 1))
    shown, fresh = (lfd.collect(env, down, 3, 5, rng) for _ in range(2))
    task = lfd.Task(env, shown, discount=0.9)
    assert lfd.certify(down, task, held_out=fresh).about == "expert"


def test_some_of_those_that_were_shown_are_not_held_out():
    """Of counted states single trajectories may come again by chance, but not all of five, if ten all differ."""
    mdp, table, rng = random_world(3)
    model, expert = lfd.TabularModel.of(mdp), rng.dirichlet(np.ones(3), 5)
    shown, fresh = (lfd.collect(model, expert, 10, 20, rng) for _ in range(2))
    task = lfd.Task(mdp, shown, costs=table)
    with pytest.raises(ValueError, match="held_out must be other demonstrations"):
        lfd.certify(expert, task, held_out=shown.select(range(3, 8)))
    mixed = lfd.Demonstrations.concatenate([shown.select([0]), fresh])
    assert lfd.certify(expert, task, held_out=mixed).about == "expert"
    # Where there are few ways to begin, and no chance after that, all of them come again.
    few, costs = separate_starts(4)
    stays = np.tile([1.0, 0.0], (4, 1))
    shown, fresh = (lfd.collect(lfd.TabularModel.of(few), stays, m, 5, rng) for m in (10, 5))
    assert lfd.certify(stays, lfd.Task(few, shown, costs=costs), held_out=fresh).about == "expert"


def test_of_numbers_no_trajectory_is_seen_twice():
    env, rng = gym.make("Pendulum-v1"), np.random.default_rng(0)

    def still(seen):
        return np.zeros((len(seen), 1))

    shown, fresh = (lfd.collect(env, still, 3, 5, rng) for _ in range(2))
    task = lfd.Task(env, shown, discount=0.9)
    mixed = lfd.Demonstrations.concatenate([fresh, shown.select([1])])
    with pytest.raises(ValueError, match="but trajectory 3 is among these"):
        lfd.certify(still, task, held_out=mixed, rng=rng, n_rollouts=2)


# -- coverage ---------------------------------------------------------------------------------------------------------

WORLDS = {
    "one demonstration": (lambda: random_world(3), 1, 4, 30, {}),
    "two, cut early": (lambda: random_world(3), 2, 30, 3, {}),
    "ending": (lambda: random_world(3, ends=True), 8, 20, 40, {}),
    "rare costs": (rare_world, 15, 25, 12, {}),
    "long": (lambda: random_world(3, discount=0.999), 4, 4, 60, {}),  # without pairs, which take steps one by one
    "first steps": (lambda: random_world(3), 10, 10, 8, {"horizon": 8}),
}


@REPEATS
@CLASSES
@pytest.mark.parametrize("name", WORLDS)
def test_certificates_by_rollouts_cover(name, cost_class, repeats):
    """Both statements and the pairs, of a policy and an expert that are known; a binomial test at 1e-3."""
    make, m, n, cut, settings = WORLDS[name]
    mdp, table, rng = make()
    n_states, n_actions = mdp.n_states, mdp.n_actions
    model = lfd.TabularModel.of(mdp)
    expert, policy = (rng.dirichlet(np.ones(n_actions), n_states) for _ in range(2))
    costs = lfd.TableCosts(table, n_actions, cost_class)
    if settings:
        exact = lfd.Task(mdp, costs=costs, discount=mdp.discount, **settings)
        paid, owed = (exact.expected_costs(each).values for each in (policy, expert))
        truth = float(costs.weights.support(paid - owed))
    else:
        truth = distance(mdp, table, policy, expert, cost_class)
        paid = table.T @ mdp.occupancy(policy).ravel()
    everything = lfd.collect(model, expert, 2 * repeats * m, cut, rng)
    missed = {"expert": 0, "demonstrations": 0, "found": 0}
    for k in range(repeats):
        shown, fresh = (everything.select(np.arange(j, j + m)) for j in (2 * k * m, (2 * k + 1) * m))
        held_out = None if name == "long" else fresh
        task = lfd.Task(model, shown, discount=mdp.discount, costs=costs, **settings)
        certificate = lfd.certify(policy, task, delta=DELTA, rng=rng, n_rollouts=n, held_out=held_out)
        missed["expert"] += certificate.to_expert.bound < truth - 1e-9
        told = float(costs.weights.support(paid - task.expert_features().values))
        missed["demonstrations"] += certificate.to_demonstrations.bound < told - 1e-9
        missed["found"] += certificate.to_expert.found < truth - 1e-9
    assert not too_many(missed["expert"], repeats, DELTA), missed
    assert not too_many(missed["demonstrations"], repeats, DELTA), missed


@pytest.mark.parametrize("repeats", [40, pytest.param(1000, marks=pytest.mark.slow)])
@CLASSES
@pytest.mark.parametrize("keeps_back", [False, True])
def test_certificates_by_episodes_cover(keeps_back, cost_class, repeats):
    """Through a wrapper that nobody knows, with a time limit that cuts some episodes."""
    env, rng = gym.make("FrozenLake-v1", max_episode_steps=12), np.random.default_rng(0)
    mdp = lfd.FiniteMDP.from_env(env, 0.9)
    table = rng.uniform(-1, 1, (mdp.n_states * 4, 3))
    table[-4:] = 0  # the end is free
    expert, policy = (rng.dirichlet(np.ones(4), mdp.n_states) for _ in range(2))
    truth, paid = distance(mdp, table, policy, expert, cost_class), table.T @ mdp.occupancy(policy).ravel()
    wrapped = gym.wrappers.TransformReward(env, float)
    costs = lfd.TableCosts(table, 4, cost_class)
    m, missed = 6, {"expert": 0, "demonstrations": 0, "found": 0}
    everything = lfd.collect(env, expert[:16], 2 * repeats * m, rng=rng)
    assert 0.05 < everything.truncated.mean() < 0.5
    for k in range(repeats):
        shown, fresh = (everything.select(np.arange(j, j + m)) for j in (2 * k * m, (2 * k + 1) * m))
        task = lfd.Task(wrapped, shown, discount=0.9, costs=costs)
        assert task.access == "episodes"
        settings = {"held_out": fresh} if keeps_back else {}
        certificate = lfd.certify(policy[:16], task, delta=DELTA, rng=rng, n_rollouts=10, **settings)
        missed["expert"] += certificate.to_expert.bound < truth
        missed["found"] += certificate.to_expert.found < truth
        told = float(costs.weights.support(paid - task.expert_features().values))
        missed["demonstrations"] += certificate.to_demonstrations.bound < told
    assert not too_many(missed["expert"], repeats, DELTA), missed
    assert not too_many(missed["demonstrations"], repeats, DELTA), missed
    assert cost_class == "ball" or missed["found"] > 0.3 * repeats  # the test can fail


@REPEATS
@CLASSES
def test_pairs_alone_cover(cost_class, repeats):
    mdp, table, rng = random_world(3)
    model, costs = lfd.TabularModel.of(mdp), lfd.TableCosts(table, 3, cost_class)
    expert, policy = (rng.dirichlet(np.ones(3), 5) for _ in range(2))
    truth = distance(mdp, table, policy, expert, cost_class)
    everything = lfd.collect(model, expert, repeats * 12, 40, rng)
    starts = everything.observations[everything.offsets[:-1] + np.arange(len(everything))]
    task = lfd.Task(model, everything, discount=0.9, costs=costs)
    same = {"n_rollouts": len(starts), "horizon": 40, "rng": rng, "initial_states": starts}
    ours = sampled_costs(as_policy(policy), model, costs, task.criterion, **same)
    theirs = task.expert_features()
    missed = {"pairs": 0, "found": 0}
    for k in range(repeats):
        rows = slice(12 * k, 12 * k + 12)
        halves = (ours.trajectory_values[rows] - theirs.trajectory_values[rows]) / 2
        unseen = (ours.unseen_mass[rows] + theirs.unseen_mass[rows]) / 2
        pairs = lfd.CostEstimate(halves.mean(axis=0), halves, unseen, task.criterion)
        comparison = Comparison(costs, ours, theirs, True, paired=pairs)
        missed["pairs"] += comparison._in_pairs(DELTA, pairs) < truth
        missed["found"] += 2 * costs.weights.support(pairs.values) < truth
    assert not too_many(missed["pairs"], repeats, DELTA), missed
    if cost_class == "simplex":
        assert too_many(missed["found"], repeats, DELTA)  # the test can fail


def test_held_out_demonstrations_are_known_again():
    """In another type of numbers, without actions, or a part of them: of numbers no beginning comes twice by chance."""
    env, rng = gym.make("Pendulum-v1"), np.random.default_rng(0)

    def turn(seen):
        return np.sign(seen[:, 2:])

    demos, others = (lfd.collect(env, turn, 8, 30, rng) for _ in range(2))
    task = lfd.Task(env, demos, discount=0.9)
    double = gym.spaces.Box(-np.inf, np.inf, (3,), np.float64)
    assert demos.observations.dtype == np.float32

    def part(first, last):
        cut = (
            each._replace(
                observations=each.observations[first : last + 1], actions=each.actions[first:last], rewards=None
            )
            for each in demos
        )
        return lfd.Demonstrations.from_episodes(cut, demos.observation_space, demos.action_space)

    same = (
        replace(demos, observations=demos.observations.astype(np.float64), observation_space=double),
        replace(demos, actions=demos.actions.astype(np.float64)),
        part(0, 30).without_actions(),
        part(0, 12),
        lfd.Demonstrations.concatenate([part(0, 1).select([5]), part(0, 0)]),
    )
    for held_out in same:
        with pytest.raises(ValueError, match="held_out must be other demonstrations than those of the task"):
            task.held_out(held_out)
    with pytest.raises(ValueError, match="held_out must be other demonstrations than those of the task"):
        lfd.Task(env, part(0, 12), discount=0.9).held_out(demos)  # the other way round
    for held_out in (others, others.without_actions(), part(0, 0)):
        task.held_out(held_out)
    # Where everything is always the same, lengths may differ.
    still = lfd.Demonstrations.from_episodes(
        [(np.zeros((n + 1, 3), np.float32), np.zeros((n, 1), np.float32), None, False, True) for n in (5, 5)],
        demos.observation_space,
        demos.action_space,
    )
    longer = lfd.Demonstrations.from_episodes(
        [(np.zeros((8, 3), np.float32), np.zeros((7, 1), np.float32), None, False, True)],
        demos.observation_space,
        demos.action_space,
    )
    assert lfd.Task(env, still, discount=0.9, costs=lambda seen, done: seen[:, :2]).held_out(longer) is longer
