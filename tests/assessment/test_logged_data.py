"""What held-out demonstrations alone say: against definitions, by simulation, and what is refused."""

import itertools

import gymnasium as gym
import numpy as np
import pytest
from worlds import distance, random_world, too_many

import lfd_gym as lfd
from lfd_gym.assessment.logged_data import mean_bound, weight_after_disagreement
from lfd_gym.confidence import upper_bound
from lfd_gym.policies.tables import TablePolicy

DELTA = 0.1
REPEATS = pytest.mark.parametrize("repeats", [100, pytest.param(1000, marks=pytest.mark.slow)])


def logged(episodes, ended=()):
    """Demonstrations over two states and two actions."""
    spaces = gym.spaces.Discrete(2), gym.spaces.Discrete(2)
    return lfd.Demonstrations.from_episodes(
        [(seen, done, None, k in ended, k not in ended) for k, (seen, done) in enumerate(episodes)], *spaces
    )


def test_it_is_the_expected_weight_after_the_first_disagreement():
    """By all ways to agree and disagree, for a trajectory that ended and one that was cut."""
    policy = TablePolicy(np.array([[0.9, 0.1], [0.4, 0.6]]))
    demos = logged([([0, 1, 1, 0], [0, 1, 0]), ([1, 0, 1], [1, 0])], ended=(0,))
    criterion = lfd.Criterion(0.8)
    found = weight_after_disagreement(policy, demos, criterion)
    for k, agree in enumerate(([0.9, 0.6, 0.4], [0.6, 0.9])):
        expected = 0.0
        for way in itertools.product([True, False], repeat=len(agree)):
            likely = np.prod([p if same else 1 - p for p, same in zip(agree, way, strict=True)])
            apart = way.index(False) if False in way else (len(agree) if k == 1 else None)
            expected += 0.0 if apart is None else likely * 0.8**apart
        assert found[k] == pytest.approx(expected, abs=1e-12)


def test_it_is_never_worse_than_the_total_variation():
    mdp, _, rng = random_world(1)
    expert = np.eye(3)[rng.integers(3, size=5)]
    policy = 0.9 * expert + 0.1 * rng.dirichlet(np.ones(3), 5)
    demos = lfd.collect(lfd.TabularModel.of(mdp), expert, 50, 200, rng)
    found = weight_after_disagreement(TablePolicy(policy), demos, lfd.Criterion(0.9))
    apart = 1 - policy[demos.acted_on, demos.actions].reshape(50, 200)
    total = (0.9 ** np.arange(200) * apart).sum(axis=1)
    assert (found <= total + 0.9**200 + 1e-12).all()
    assert found.mean() < 0.7 * total.mean()


def test_actions_are_drawn_where_probabilities_are_not_said():
    demos = logged([([0, 1, 0], [0, 1])] * 2000)
    table = TablePolicy(np.array([[0.7, 0.3], [0.2, 0.8]]))
    own = np.random.default_rng(3)

    def draws(seen):
        return (own.random(len(seen)) < table.table[seen, 1]).astype(int)

    criterion = lfd.Criterion(0.5)
    known = weight_after_disagreement(table, demos, criterion)[0]
    drawn = weight_after_disagreement(lfd.as_policy(draws), demos, criterion, np.random.default_rng(0))
    assert set(drawn) == {1.0, 0.5, 0.25}
    assert drawn.mean() == pytest.approx(known, abs=4 * drawn.std() / np.sqrt(2000))
    with pytest.raises(ValueError, match="rng must be given: FunctionPolicy"):
        weight_after_disagreement(lfd.as_policy(draws), demos, criterion)


def test_the_bound_is_that_of_the_mean():
    samples = np.random.default_rng(0).random(20)
    assert mean_bound(samples, DELTA) == upper_bound(samples[:, None], DELTA)[0]
    assert mean_bound(samples, DELTA, 3.0) == pytest.approx(mean_bound(np.tile(samples, 3), DELTA), abs=1e-8)


def tight_world():
    """Whoever disagrees once pays 1 for ever, the expert −1: the distance is the weight, exactly."""
    transitions = np.zeros((2, 2, 2))
    transitions[0] = [[1.0, 0.0], [0.0, 1.0]]
    transitions[1] = [[0.0, 1.0], [0.0, 1.0]]
    # What is paid at the step of disagreement itself is 1 too.
    return lfd.FiniteMDP(transitions, [1.0, 0.0], 0.9), np.array([[-1.0], [1.0], [1.0], [1.0]])


@REPEATS
@pytest.mark.parametrize(
    ("name", "m", "cut"),
    [("tight", 10, 40), ("random", 1, 40), ("random", 20, 5), ("ends", 15, 40), ("draws", 15, 40)],
)
@pytest.mark.parametrize("cost_class", ["simplex", "ball"])
def test_certificates_from_data_alone_cover(name, m, cut, cost_class, repeats):
    if name == "tight":
        (mdp, table), rng = tight_world(), np.random.default_rng(0)
    else:
        mdp, table, rng = random_world(2, ends=name == "ends")
    n_states, n_actions = mdp.n_states, mdp.n_actions
    expert = np.eye(n_actions)[np.zeros(n_states, dtype=int)]
    policy = 0.97 * expert + 0.03 / n_actions
    if name == "draws":  # the other way round: an expert that draws its actions
        expert, policy = policy, expert
    truth = distance(mdp, table, policy, expert, cost_class)
    everything = lfd.collect(lfd.TabularModel.of(mdp), expert, repeats * m, cut, rng)
    costs = lfd.TableCosts(table, n_actions, cost_class)
    task = lfd.Task(None, everything.select([0]), discount=0.9, costs=costs)
    apart = weight_after_disagreement(TablePolicy(policy), everything, task.criterion)
    if name == "tight" and cost_class == "simplex":
        agrees, kept = 0.985, (0.9 * 0.985) ** 40  # what was cut off counts as a disagreement there
        assert truth == pytest.approx(2 * (1 - agrees) / (1 - 0.9 * agrees))
        np.testing.assert_allclose(2 * apart, truth * (1 - kept) + 2 * kept)
    missed = 0
    for k in range(1, repeats):
        held_out = everything.select(np.arange(k * m, (k + 1) * m))
        certificate = lfd.certify(policy, task, delta=DELTA, held_out=held_out)
        missed += certificate.cost_distance_bound < truth
    assert not too_many(missed, repeats, DELTA)


def test_what_a_certificate_from_data_alone_says():
    mdp, table, rng = random_world(2)
    expert = np.eye(3)[np.zeros(5, dtype=int)]
    shown, fresh = (lfd.collect(lfd.TabularModel.of(mdp), expert, m, 200, rng) for m in (5, 300))
    task = lfd.Task(None, shown, discount=0.9, costs=lfd.TableCosts(table, 3))
    certificate = lfd.certify(expert, task, held_out=fresh, expert="deterministic")
    assert certificate.cost_distance == pytest.approx(0.0, abs=1e-8)
    assert certificate.cost_distance_bound == 2 * mean_bound(np.full(300, 0.9**200), 0.05)
    assert certificate.about == "expert"
    assert certificate.to_demonstrations is None
    assert certificate.assumptions == ()  # nothing rests on it
    assert certificate == lfd.certify(expert, task, held_out=fresh)
    assert not certificate.empty
    bound = certificate.cost_distance_bound
    assert bound / 2 < certificate.forecast(2, 1) < bound
    assert 550 < certificate.needed(bound / 2).demonstrations < 650
    uniform = np.full((5, 3), 1 / 3)
    empty = lfd.certify(uniform, task, held_out=fresh)
    assert empty.empty
    once_other = np.eye(3)[[0, 0, 0, 0, 1]]  # how soon it does something else is a matter of chance
    apart = weight_after_disagreement(TablePolicy(once_other), fresh, task.criterion)
    spread = lfd.certify(once_other, task, held_out=fresh)._standard_error
    assert spread == pytest.approx(2 * apart.std() / np.sqrt(300))
    assert spread > 0.01
    # Without an environment nobody knows how random play does: what is compared with is what the data say of it.
    said = 2 * weight_after_disagreement(TablePolicy(uniform), fresh, task.criterion).mean()
    assert empty.random_distance == pytest.approx(said)
    assert said > distance(mdp, table, uniform, expert) + 0.5
    assert f"(95 %); of random play the data say {said:.3f}. This says nothing." in str(empty)
    assert empty.to_dict()["random_is_bound"] is True


def test_what_is_refused():
    demos, other = logged([([0, 1], [0]), ([1, 1], [1])]), logged([([1, 1], [1]), ([0, 0], [0])])
    task = lfd.Task(None, demos, discount=0.9, costs=np.zeros((4, 1)))
    policy = np.full((2, 2), 0.5)
    with pytest.raises(ValueError, match="held_out must be given where there is no env"):
        lfd.certify(policy, task, expert="deterministic")
    with pytest.raises(ValueError, match="held_out must be other demonstrations"):
        lfd.certify(policy, task, held_out=demos, expert="deterministic")
    assert lfd.certify(policy, task, held_out=other, expert="deterministic").about == "expert"
    pendulum, rng = gym.make("Pendulum-v1"), np.random.default_rng(0)

    def still(seen):
        return np.zeros((len(seen), 1))

    shown, fresh = (lfd.collect(pendulum, still, 2, 5, rng) for _ in range(2))
    task = lfd.Task(None, shown, discount=0.9)
    with pytest.raises(ValueError, match="needs Discrete actions, got Box"):
        lfd.certify(still, task, held_out=fresh, expert="deterministic", rng=rng)


def test_the_largest_distance_is_that_of_all_costs():
    """A function that has not been asked yet does not say how many costs there are, nor how large they are."""
    mdp, table, rng = random_world(3)
    expert = np.eye(3)[rng.integers(3, size=5)]
    demos = lfd.collect(lfd.TabularModel.of(mdp), expert, 40, 30, rng)
    held_out, uniform = demos.select(range(20, 40)), np.full((5, 3), 1 / 3)

    def certified(function):
        costs = lfd.FunctionCosts(function, weights="ball")
        task = lfd.Task(None, demos.select(range(20)), discount=0.9, costs=costs)
        return lfd.certify(uniform, task, held_out=held_out)

    found = certified(lambda seen, done: np.ones((len(seen), 25)))
    assert found.largest_distance == 10
    assert found.cost_distance > 5
    with pytest.raises(ValueError, match=r"must lie in \[-1, 1\]"):
        certified(lambda seen, done: np.full((len(seen), 1), 3.0))
    unasked = lfd.FunctionCosts(lambda seen, done: np.ones((len(seen), 25)), weights="ball")
    with pytest.raises(ValueError, match=r"n_costs of .* must be known"):
        _ = unasked.largest_distance
    with pytest.raises(ValueError, match="costs must be the 3 of the estimate"):
        lfd.feature_expectations(demos, table, 0.9).class_radius(lfd.TableCosts(np.hstack([table] * 2), 3), 0.1)
