"""The learner `grid`: near the expert from one demonstration, and what it says of itself is true."""

import gymnasium as gym
import numpy as np
import pytest
from experts import cart_pole, mountain_car, pendulum
from simulators import CoupledTanks, DubinsCar, Line, fill, steer, to_the_right

import lfd_gym as lfd
from lfd_gym.baselines import make_learner
from lfd_gym.policies.tables import UniformPolicy
from lfd_gym.testing import check_generative_model, check_learner, check_policy
from lfd_gym.validation import LfdGymWarning


def learn(task, seed=0, budget=24, **settings):
    return lfd.learn(task, make_learner("grid", **settings), rng=np.random.default_rng(seed), budget=budget)


def mean_return(env, policy, n_episodes=20):
    episodes = lfd.collect(env, policy, n_episodes, rng=np.random.default_rng(1000))
    return np.mean([episode.rewards.sum() for episode in episodes])


def scored(env, expert, seeds, discount, n_episodes=20):
    """Return the scores, 0 of the random policy and 1 of the expert, of what is learned with nothing given."""
    least, most = (mean_return(env, policy, n_episodes) for policy in (UniformPolicy(env.action_space), expert))
    scores = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        demos = lfd.collect(env, expert, 1, rng=rng)
        result = lfd.learn(lfd.Task(env, demos, discount=discount), rng=rng)
        assert result.learner == "grid"
        scores.append((mean_return(env, result.policy, n_episodes) - least) / (most - least))
    return scores


@pytest.fixture(scope="module")
def car():
    env = gym.make("MountainCar-v0")
    return lfd.Task(env, lfd.collect(env, mountain_car, 1, rng=np.random.default_rng(0)), discount=0.99)


@pytest.fixture(scope="module")
def learned_car(car):
    return learn(car, n_points=25)


# -- near the expert ---------------------------------------------------------------------------------------------------


def test_cart_pole_with_nothing_given():
    env, rng = gym.make("CartPole-v1"), np.random.default_rng(0)
    demos = lfd.collect(env, cart_pole, 1, rng=rng)
    result = lfd.learn(lfd.Task(env, demos, discount=0.99), rng=rng)
    assert result.learner == "grid"
    assert "grid" in result.reason
    assert mean_return(env, result.policy) >= 475


def test_mountain_car_with_nothing_given():
    scores = scored(gym.make("MountainCar-v0"), mountain_car, range(3), 0.99)
    assert np.mean(scores) >= 0.9, scores


def test_a_simulator_of_ones_own_with_nothing_given():
    env = gym.wrappers.TimeLimit(DubinsCar(), 100)
    check_generative_model(lfd.as_generative_model(env), env=env)
    with pytest.warns(LfdGymWarning, match="initial states are far"):
        scores = scored(env, steer, range(3), 0.95, n_episodes=50)
    assert np.mean(scores) >= 0.9, scores


@pytest.mark.parametrize("discount", [0.9, 0.97])
def test_noise_is_no_obstacle(discount):
    """Several draws of each pair; one look ahead would not tell, so nobody looks."""
    simulator = Line(noise=0.05)
    demos = lfd.collect(simulator, to_the_right, 3, 200, rng=np.random.default_rng(0))
    result = learn(lfd.Task(simulator, demos, discount=discount))
    assert not result.facts["deterministic"]
    assert result.facts["mode"] != "lookahead"
    assert result.facts["distance"] < 0.3 * result.facts["distance_of_random"]
    # It is where the expert is: around 0.5.
    ends = lfd.collect(Line(noise=0.05), result.policy, 50, 60, rng=np.random.default_rng(1)).observations[60::61, 0]
    assert abs(ends.mean() - 0.5) < 0.15


@pytest.mark.filterwarnings("ignore:.*initial states are far")
@pytest.mark.parametrize("n_points", [5, 7])
def test_rollouts_mend_what_a_coarse_grid_does_wrong(n_points, monkeypatch):
    """Five demonstrations: one says too little of what the expert does from where the task starts otherwise."""
    tanks = CoupledTanks()
    demos = lfd.collect(tanks, fill, 5, 60, rng=np.random.default_rng(0))
    task = lfd.Task(tanks, demos, discount=0.95)
    mended = learn(task, n_points=n_points, budget=60).facts
    monkeypatch.setattr("lfd_gym.baselines.grid_search.Search.mend", lambda search, max_calls: None)
    first = learn(task, n_points=n_points, budget=60).facts
    assert first["n_candidates"] == 3  # of the grid alone
    assert mended["n_candidates"] > 3
    assert mended["distance_when_chosen"] < first["distance_when_chosen"]
    assert mended["distance"] < first["distance"]


# -- promises ----------------------------------------------------------------------------------------------------------


def acts(policy):
    """Return what a policy consists of and draws."""
    seen = np.random.default_rng(3).uniform([-1.2, -0.07], [0.6, 0.07], (200, 2))
    arrays = [policy.table] if hasattr(policy, "table") else [policy.pair_costs, policy.values]
    return [*arrays, policy.sample(seen, np.random.default_rng(4))]


def test_the_same_seed_gives_the_same_bits(car, learned_car):
    again, other = learn(car, n_points=25), learn(car, seed=1, n_points=25)
    assert again.facts == learned_car.facts
    np.testing.assert_array_equal(again.cost_weights, learned_car.cost_weights)
    for one, two in zip(acts(again.policy), acts(learned_car.policy), strict=True):
        np.testing.assert_array_equal(one, two)
    seen = car.demonstrations.acted_on
    np.testing.assert_array_equal(again.values(seen), learned_car.values(seen))
    assert other.facts["distance"] != learned_car.facts["distance"]


def test_the_same_seed_gives_the_same_bits_of_a_simulator_that_draws():
    simulator = Line(noise=0.05)
    task = lfd.Task(simulator, lfd.collect(simulator, to_the_right, 1, 60, rng=np.random.default_rng(0)), discount=0.9)
    one, two = learn(task), learn(task)
    assert one.facts == two.facts
    np.testing.assert_array_equal(one.cost_weights, two.cost_weights)


def test_it_is_a_learner_and_its_policy_a_policy(car, learned_car):
    check_learner(make_learner("grid", n_points=15), car, budget=12)
    check_policy(learned_car.policy, car)


@pytest.mark.filterwarnings("ignore:.*initial states are far")
def test_it_is_a_learner_where_actions_are_numbers():
    tanks = CoupledTanks()
    demos = lfd.collect(tanks, fill, 1, 60, rng=np.random.default_rng(0))
    check_learner(make_learner("grid", n_points=9, n_actions=3), lfd.Task(tanks, demos, discount=0.9), budget=12)


def test_what_it_used_is_counted(learned_car):
    """At least the pairs of the grid, and what the fresh rollouts took."""
    assert learned_car.resources.oracle_calls > 25 * 25 * 3 + learned_car.facts["n_rollouts"]
    assert learned_car.facts["n_planner_calls"] <= 24


# -- what it says ------------------------------------------------------------------------------------------------------


def measured(policy, task, n=400):
    """Return the distance by rollouts of one's own from the task's initial states, and how noisy it is for 200."""
    simulator, rng = task.simulator, np.random.default_rng(99)
    states = simulator.sample_initial(n, rng)
    sums, weight, going = 0.0, 1 - task.discount, np.ones(n, dtype=bool)
    while weight > 1e-4 * (1 - task.discount):
        rows = np.zeros((n, task.expert_features().values.size))
        seen = simulator.observe(states[going])
        actions = policy.sample(seen, rng)
        rows[going] = task.costs.rows(seen, actions)
        sums, weight = sums + weight * rows, weight * task.discount
        states[going] = simulator.sample_next(states[going], actions, rng)
        going &= ~simulator.is_absorbing(states)
        if not going.any():
            break
    noise = np.sqrt(((sums - sums.mean(axis=0)) ** 2).sum(axis=1).mean())  # of the norm of one
    distance = task.costs.weights.support(sums.mean(axis=0) - task.expert_features("rescale").values)
    return distance, noise * (1 / np.sqrt(n) + 1 / np.sqrt(200))


def test_the_distance_is_that_of_fresh_rollouts(car, learned_car):
    distance, noise = measured(learned_car.policy, car)
    facts = learned_car.facts
    assert facts["distance"] == pytest.approx(distance, abs=2 * noise + 2e-3)
    assert facts["distance"] != facts["distance_when_chosen"]
    assert facts["distance"] < 0.25 * facts["distance_of_random"]


def test_starts_that_nobody_demonstrated_are_counted_in_and_told():
    """One that starts near the top says nothing of swinging up: near where it was chosen, not from everywhere."""
    env = gym.make("Pendulum-v1")
    demos = lfd.collect(env, pendulum, 20, 100, rng=np.random.default_rng(0))
    highest = demos.acted_on[demos.offsets[:-1], 0].argmax()
    task = lfd.Task(env, demos.select([int(highest)]), discount=0.95)
    with pytest.warns(LfdGymWarning, match=r"\d+ of 50 initial states are far from every demonstrated one"):
        result = learn(task, n_points=31, n_actions=5)
    facts = result.facts
    # The angle is uniform, and the demonstration covers a tenth of the circle on both sides of the top.
    assert facts["share_of_starts_far"] > 0.5
    distance, noise = measured(result.policy, task)
    assert facts["distance"] == pytest.approx(distance, abs=2 * noise + 2e-3)
    assert abs(facts["distance_when_chosen"] - distance) > 2 * noise + 2e-3


def test_starts_that_were_demonstrated_are_not_told(car, learned_car):
    assert learned_car.facts["share_of_starts_far"] == 0  # LfdGymWarning would be an error here
    assert learned_car.facts["unseen_mass"] == 0


def test_a_discount_that_looks_further_than_the_demonstrations_is_told():
    simulator = Line()
    demos = lfd.collect(simulator, to_the_right, 1, 10, rng=np.random.default_rng(0))
    with pytest.warns(LfdGymWarning, match=r"show 18% of the discounted weight.*smaller discount than 0\.98"):
        facts = learn(lfd.Task(simulator, demos, discount=0.98)).facts
    assert facts["unseen_mass"] == pytest.approx(0.98**10)
    longer = lfd.collect(simulator, to_the_right, 1, 100, rng=np.random.default_rng(0))
    assert learn(lfd.Task(simulator, longer, discount=0.98)).facts["unseen_mass"] < 0.25  # without a warning
