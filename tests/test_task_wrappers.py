"""Wrappers change the task: what is known under them is used, what is not leaves episodes, and nothing is false."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import wrappers

import lfd_gym as lfd
from lfd_gym.policies.tables import TablePolicy


class TurnedActions(gym.ActionWrapper):
    """The false case of looking through wrappers: every action means the next one."""

    def action(self, action):
        return (action + 1) % 4


def gridworld(**kwargs):
    return gym.make("lfd_gym/StochasticGridworld-v0", size=8, cost_seed=3, **kwargs)


def transformed(env, function, space):
    """Wrap alike on both lines: 0.29 takes no space."""
    try:
        return wrappers.TransformObservation(env, function, space)
    except TypeError:
        wrapped = wrappers.TransformObservation(env, function)
        wrapped.observation_space = space
        return wrapped


def test_a_policy_of_the_bare_environment_is_not_certified_under_a_wrapper_that_turns_its_actions():
    bare = gridworld()
    rng = np.random.default_rng(0)
    mdp = lfd.FiniteMDP.from_env(bare, 0.9)
    costs = bare.unwrapped.cost_features
    expert = mdp.optimal_policy(costs[:, 0])
    turned = TurnedActions(gridworld())
    demos = lfd.collect(turned, np.roll(expert, -1, axis=1), 300, 100, rng)  # whose turned actions are the expert's
    task = lfd.Task(turned, demos, discount=0.9, costs=costs)
    assert task.access == "episodes"
    for who in ("cutting_plane", "mirror_descent"):
        with pytest.raises(ValueError, match=rf"{who} needs access to the (model|simulator).*`TurnedActions`"):
            lfd.learn(task, who, rng=rng)
    with pytest.raises(TypeError, match="`TurnedActions`"):
        lfd.FiniteMDP.from_env(turned, 0.9)
    truth = mdp.occupancy(np.roll(expert, 1, axis=1)).ravel() @ costs - mdp.occupancy(expert).ravel() @ costs
    assert truth.max() > 0.2
    wrong = lfd.certify(expert, task, rng=rng, n_rollouts=200)
    assert wrong.cost_distance_bound >= truth.max()
    np.testing.assert_allclose(wrong.cost_distance, truth.max(), atol=0.1)
    right = lfd.certify(np.roll(expert, -1, axis=1), task, rng=rng, n_rollouts=200)
    assert right.cost_distance < 0.1 < wrong.cost_distance


WITHOUT_EFFECT = {
    "TimeLimit": lambda env: wrappers.TimeLimit(env, 77),
    "OrderEnforcing": wrappers.OrderEnforcing,
    "PassiveEnvChecker": wrappers.PassiveEnvChecker,
    "RecordEpisodeStatistics": wrappers.RecordEpisodeStatistics,
}


@pytest.mark.parametrize("name", [*WITHOUT_EFFECT, "FlattenObservation"])
def test_learning_and_certifying_a_table_under_a_wrapper_is_that_of_the_bare_environment(name):
    bare = gridworld()
    expert = lfd.FiniteMDP.from_env(bare, 0.9).optimal_policy(bare.unwrapped.cost_features[:, 0])
    demos = lfd.collect(bare, expert, 20, 60, np.random.default_rng(1))
    wrapped = (
        wrappers.FlattenObservation(gridworld()) if name not in WITHOUT_EFFECT else WITHOUT_EFFECT[name](gridworld())
    )
    found = []
    for env in (bare, wrapped):
        task = lfd.Task(env, demos, discount=0.9, expert=expert)
        assert task.access == "model"
        result = lfd.learn(task, rng=np.random.default_rng(2))
        certificate = lfd.certify(result.policy, task)
        score = lfd.evaluate(result.policy, task).normalised_score
        found.append((result.policy.table, result.cost_weights, certificate, score))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
    assert found[0][2:] == found[1][2:]


def push(observations):
    return (observations[:, 2] + 0.3 * observations[:, 3] > 0).astype(np.int64)


def far_and_tilted(observations, actions):
    return np.minimum(np.abs(observations[:, [0, 2]]), 1.0)


CART_POLES = {
    **{name: (wrap, lambda seen: seen) for name, wrap in WITHOUT_EFFECT.items()},
    "FlattenObservation": (wrappers.FlattenObservation, lambda seen: seen),
    "TransformObservation": (
        lambda env: transformed(env, lambda seen: seen[::-1] / 2, gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)),
        lambda seen: 2 * seen[:, ::-1],
    ),
}


@pytest.mark.parametrize("name", CART_POLES)
def test_certifying_on_a_simulator_under_a_wrapper_is_that_of_the_bare_environment(name):
    wrap, back = CART_POLES[name]
    bare = gym.make("CartPole-v1")
    demos = lfd.collect(bare, push, 3, 200, np.random.default_rng(0))
    wrapped = wrap(gym.make("CartPole-v1"))
    shown = lfd.collect(
        wrapped, lambda seen: push(back(seen)), 3, 200 if name != "TimeLimit" else 77, np.random.default_rng(0)
    )
    np.testing.assert_allclose(back(shown.observations)[:50], demos.observations[:50], rtol=1e-6)
    tasks = [
        lfd.Task(bare, demos, discount=0.99, costs=far_and_tilted),
        lfd.Task(
            wrapped,
            demos if name == "TimeLimit" else shown,
            discount=0.99,
            costs=lambda s, a: far_and_tilted(back(s), a),
        ),
    ]
    assert [task.access for task in tasks] == ["simulator", "simulator"]
    policies = push, lambda seen: push(back(seen))
    found = [
        lfd.certify(policy, task, rng=np.random.default_rng(3), n_rollouts=5)
        for policy, task in zip(policies, tasks, strict=True)
    ]
    np.testing.assert_allclose(found[0].cost_distance, found[1].cost_distance, rtol=1e-5)
    np.testing.assert_allclose(found[0].cost_distance_bound, found[1].cost_distance_bound, rtol=1e-5)


def swing(observations):
    return np.clip(-2 * observations[:, [1]] - observations[:, [2]], -2, 2).astype(np.float32)


PENDULUMS = {
    "RescaleAction": (lambda env: wrappers.RescaleAction(env, np.float32(-1), np.float32(1)), 0.5),
    "ClipAction": (wrappers.ClipAction, 1.0),
}


@pytest.mark.parametrize("name", PENDULUMS)
def test_actions_are_mapped_as_the_wrapper_does(name):
    wrap, factor = PENDULUMS[name]
    bare, wrapped = gym.make("Pendulum-v1"), wrap(gym.make("Pendulum-v1"))
    demos = lfd.collect(bare, swing, 2, 50, np.random.default_rng(0))
    shown = lfd.collect(wrapped, lambda seen: factor * swing(seen), 2, 50, np.random.default_rng(0))
    np.testing.assert_allclose(shown.observations, demos.observations, atol=1e-5)

    def turning(observations, actions):
        return np.abs(observations[:, 2:3]) / 8

    found = [
        lfd.certify(policy, task, rng=np.random.default_rng(1), n_rollouts=3)
        for policy, task in (
            (swing, lfd.Task(bare, demos, discount=0.98, costs=turning)),
            (lambda seen: factor * swing(seen), lfd.Task(wrapped, shown, discount=0.98, costs=turning)),
        )
    ]
    np.testing.assert_allclose(found[0].cost_distance, found[1].cost_distance, atol=1e-4)


class Parts(gym.ObservationWrapper):
    """CartPole as a Dict; a class of the test, so that only episodes can be played below it."""

    def __init__(self, env):
        super().__init__(env)
        box = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.observation_space = gym.spaces.Dict({"cart": box, "pole": box, "noise": box})

    def observation(self, seen):
        return {"cart": seen[:2], "pole": seen[2:], "noise": self.np_random.normal(size=2).astype(np.float32)}


def test_a_filter_shows_what_is_left():
    env = wrappers.FilterObservation(Parts(gym.make("CartPole-v1")), ["cart", "pole"])
    demos = lfd.collect(env, push, 3, 100, np.random.default_rng(0))
    bare = lfd.collect(gym.make("CartPole-v1"), push, 3, 100, np.random.default_rng(0))
    np.testing.assert_array_equal(demos.observations, bare.observations)
    task = lfd.Task(env, demos, discount=0.95, costs=far_and_tilted)
    assert task.access == "episodes"
    with pytest.raises(ValueError, match="`Parts`"):
        _ = task.simulator
    plain = lfd.Task(gym.make("CartPole-v1"), bare, discount=0.95, costs=far_and_tilted)
    found = [lfd.certify(push, one, rng=np.random.default_rng(1), n_rollouts=4) for one in (task, plain)]
    assert found[0].cost_distance == pytest.approx(found[1].cost_distance)


def test_a_random_transform_leaves_episodes():
    rng = np.random.default_rng(0)
    space = gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    env = transformed(gym.make("CartPole-v1"), lambda seen: (seen + rng.normal(size=4)).astype(np.float32), space)
    task = lfd.Task(env, discount=0.9)
    assert task.access == "episodes"
    with pytest.raises(ValueError, match="does not give the same twice"):
        _ = task.simulator


def test_table_policies_and_mixtures_are_exact_where_the_model_is_known():
    env = gridworld()
    task = lfd.Task(env, discount=0.9)
    rng = np.random.default_rng(0)
    parts = [TablePolicy(rng.dirichlet(np.ones(4), 64)) for _ in range(2)]
    mixture = lfd.MixturePolicy(parts, [0.25, 0.75])
    expected = 0.25 * task.expected_costs(parts[0]).values + 0.75 * task.expected_costs(parts[1]).values
    found = task.expected_costs(mixture)
    assert found.exact
    np.testing.assert_allclose(found.values, expected)
    sampled = lfd.Task(lfd.as_generative_model(env), discount=0.9, costs=task.costs)
    estimate = sampled.expected_costs(mixture, rng=rng, n_rollouts=3000)
    assert (np.abs(estimate.values - expected) <= estimate.radius(0.001)).all()
    assert lfd.evaluate(mixture, lfd.Task(env, discount=0.9, expert=parts[0])).agreement is None


class Turning(gym.Env):
    """Shows two places and an angle."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = gym.spaces.Discrete(2)
    observation_angles = (2,)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.normal(size=3).astype(np.float32), {}

    def step(self, action):
        return self.np_random.normal(size=3).astype(np.float32), 0.0, False, False, {}


class Reversed(gym.ObservationWrapper):
    def observation(self, observation):
        return observation[::-1].copy()


@pytest.mark.parametrize(
    ("wrap", "angles"),
    [
        (lambda env: env, (2,)),
        (Reversed, ()),
        (lambda env: transformed(env, lambda seen: seen[1:], gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)), ()),
    ],
    ids=["bare", "unknown wrapper", "TransformObservation"],
)
def test_angles_of_the_environment_are_not_looked_for_in_what_a_wrapper_shows(wrap, angles):
    env = wrap(wrappers.TimeLimit(Turning(), 20))
    demos = lfd.collect(env, lambda seen: np.zeros(len(seen), int), 2, rng=np.random.default_rng(0))
    assert lfd.Task(env, demos, discount=0.9).costs.coding.observations.angles == angles
