"""The whole way, from demonstrations to a certificate, on the environments that people have, on both lines.

What is learned here is not good, budgets are tiny: the tests are about what runs, and about what is true of it.
"""

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym.policies.tables import UniformPolicy

pytest.importorskip("stable_baselines3")
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv

OLD_LINE = gym.__version__.startswith("0.")
LANDER = "LunarLander-v2" if OLD_LINE else "LunarLander-v3"
CHEETAH = "HalfCheetah-v4" if OLD_LINE else "HalfCheetah-v5"


class OtherActions(gym.ActionWrapper):
    """A wrapper that nobody knows: it swaps the actions."""

    def action(self, action):
        return 1 - action


class Docking(gym.Env):
    """A point to be brought to rest at the origin, seen as a Dict with parts of different kinds."""

    observation_space = gym.spaces.Dict(
        {
            "position": gym.spaces.Box(-2.0, 2.0, (2,), np.float32),
            "near": gym.spaces.Discrete(2),
            "right": gym.spaces.MultiBinary(2),
            "signs": gym.spaces.MultiDiscrete([3, 3]),
        }
    )
    action_space = gym.spaces.Discrete(5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = self.np_random.uniform(-1, 1, 2)
        return self._seen(), {}

    def step(self, action):
        self.position = np.clip(
            self.position + 0.2 * np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]])[action], -2, 2
        )
        distance = float(np.linalg.norm(self.position))
        return self._seen(), -distance, distance < 0.15, False, {}

    def _seen(self):
        sign = np.sign(self.position).astype(np.int64)
        return {
            "position": self.position.astype(np.float32),
            "near": np.int64(np.linalg.norm(self.position) < 0.5),
            "right": (sign > 0).astype(np.int8),
            "signs": sign + 1,
        }


if "lfd_gym_test/Docking-v0" not in gym.registry:
    gym.register("lfd_gym_test/Docking-v0", entry_point=Docking, max_episode_steps=30)


def rescaled_pendulum():
    env = gym.make("Pendulum-v1")
    return gym.wrappers.RescaleAction(env, np.float32(-1), np.float32(1))


ENVIRONMENTS = {
    "gridworld": (lambda: gym.make("lfd_gym/StochasticGridworld-v0", size=4), "model"),
    "frozen lake": (lambda: gym.make("FrozenLake-v1"), "model"),
    "cart pole": (lambda: gym.make("CartPole-v1"), "simulator"),
    "wrapped cart pole": (lambda: OtherActions(gym.make("CartPole-v1")), "episodes"),
    "rescaled pendulum": (rescaled_pendulum, "simulator"),
    "lander": (lambda: gym.make(LANDER), "episodes"),
    "cheetah": (lambda: gym.make(CHEETAH), "simulator"),
    "dict": (lambda: gym.make("lfd_gym_test/Docking-v0"), "episodes"),
    "vector environment": (lambda: gym.make_vec("CartPole-v1", num_envs=3), "episodes"),
    "vector environment of dicts": (
        lambda: gym.vector.SyncVectorEnv([lambda: gym.make("lfd_gym_test/Docking-v0")] * 2),
        "episodes",
    ),
    "Stable-Baselines3's": (lambda: DummyVecEnv([lambda: gym.make("Pendulum-v1")] * 2), "episodes"),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_from_demonstrations_to_a_certificate(name):
    make, access = ENVIRONMENTS[name]
    env = make()
    rng = np.random.default_rng(0)
    expert = UniformPolicy(lfd.Task(env, discount=0.97).action_space)
    demos = lfd.collect(env, expert, n_trajectories=3, horizon=40, rng=rng)
    task = lfd.Task(env, demos, discount=0.97, horizon=30)
    assert task.access == access
    result = lfd.learn(task, "bc", rng=rng, budget=20)

    evaluation = lfd.evaluate(result.policy, task, rng=rng, n_rollouts=6)
    assert np.abs(evaluation.expected_costs).max() <= 1
    assert evaluation.cost_distance >= 0
    assert (evaluation.episode_return is not None) == (access != "model")
    assert evaluation.discounted_return is not None
    assert "first 30 steps" in str(evaluation)

    certificate = lfd.certify(result.policy, task, rng=rng, n_rollouts=6)
    assert certificate.cost_distance <= certificate.cost_distance_bound
    assert certificate.about == ("expert" if access == "model" else "demonstrations")
    held_out = lfd.collect(env, expert, n_trajectories=3, horizon=40, rng=rng)
    honest = lfd.certify(result.policy, task, rng=rng, n_rollouts=6, held_out=held_out)
    assert honest.about == "expert"
    assert honest.cost_distance_bound >= honest.cost_distance
    env.close()


@pytest.mark.parametrize("name", ["frozen lake", "wrapped cart pole", "rescaled pendulum", "dict"])
def test_what_is_learned_plays_for_stable_baselines(name):
    env = ENVIRONMENTS[name][0]()
    rng = np.random.default_rng(1)
    expert = UniformPolicy(lfd.Task(env, discount=0.9).action_space)
    demos = lfd.collect(env, expert, n_trajectories=2, horizon=30, rng=rng)
    learned = lfd.learn(lfd.Task(env, demos, discount=0.9), "bc", rng=rng, budget=10)
    mean, deviation = evaluate_policy(learned.policy, env, n_eval_episodes=2, warn=False)
    assert np.isfinite([mean, deviation]).all()


def test_the_return_is_the_environments_own():
    """Of what an evaluation plays, the mean return is what Stable-Baselines3 finds, up to chance."""
    env = gym.make("CartPole-v1")
    rng = np.random.default_rng(2)

    def lean(observations):
        return (observations[:, 2] + observations[:, 3] > 0).astype(np.int64)

    demos = lfd.collect(env, lean, n_trajectories=5, horizon=500, rng=rng)
    task = lfd.Task(env, demos, discount=0.95)
    found = lfd.evaluate(lean, task, rng=rng, n_rollouts=30)
    predictor = lfd.as_policy(lean)
    predictor.greedy = lambda observations: lean(observations)
    mean, _ = evaluate_policy(predictor, env, n_eval_episodes=30, warn=False)
    low, high = found.sampling.episode_return
    assert low - (high - low) <= mean <= high + (high - low)
    assert found.expert_return == pytest.approx(np.mean([episode.rewards.sum() for episode in demos]))
    assert found.random_return < 60 < found.episode_return
    assert found.episode_length == found.episode_return  # a reward of one a step
    assert found.normalised_score == pytest.approx(
        (found.episode_return - found.random_return) / (found.expert_return - found.random_return)
    )


@pytest.mark.parametrize("name", ["dict", "rescaled pendulum"])
def test_gail_plays_in_the_environment_as_it_is_given(name):
    env = ENVIRONMENTS[name][0]()
    rng = np.random.default_rng(3)
    demos = lfd.collect(env, UniformPolicy(lfd.Task(env, discount=0.9).action_space), 2, 30, rng)
    gail = lfd.baselines.make_learner("gail", n_envs=2, n_steps=32, batch_size=32)
    learned = lfd.learn(lfd.Task(env, demos, discount=0.9), gail, rng=rng, budget=64)
    assert learned.resources.env_steps == 64
    assert lfd.collect(env, learned.policy, 2, 20, rng).n_transitions > 0


@pytest.mark.parametrize("wrap", [lambda env: env, lambda env: gym.wrappers.RescaleAction(env, -1.0, 1.0)])
def test_recorded_initial_states_are_where_the_simulator_can_be_put(wrap):
    """Of MuJoCo, whose observations do not tell the state: from there the recorded actions lead the same way."""
    env = wrap(gym.make("Hopper-v4" if OLD_LINE else "Hopper-v5"))
    rng = np.random.default_rng(4)
    demos = lfd.collect(env, UniformPolicy(env.action_space), 3, 20, rng)
    model = lfd.as_generative_model(env)
    assert demos.initial_states.shape == (3, *model.state_space.shape)
    states = demos.initial_states
    for t in range(demos.lengths.min()):
        seen = np.stack([episode.observations[t] for episode in demos])
        np.testing.assert_allclose(model.observe(states), seen, atol=1e-10)
        states = model.sample_next(states, np.stack([episode.actions[t] for episode in demos]), rng)
    assert lfd.collect(gym.make("CartPole-v1"), UniformPolicy(gym.spaces.Discrete(2)), 1, 5, rng).initial_states is None


class Noisy(Docking):
    """Docking with one part more, for a filter to leave out."""

    observation_space = gym.spaces.Dict({**Docking.observation_space.spaces, "noise": gym.spaces.Box(-1, 1, (3,))})

    def _seen(self):
        return {**super()._seen(), "noise": np.zeros(3, dtype=np.float32)}


def same_function(env):
    if OLD_LINE:
        return gym.wrappers.TransformObservation(env, lambda seen: seen)
    return gym.wrappers.TransformObservation(env, lambda seen: seen, env.observation_space)


PAIRS = {
    "TimeLimit": ("CartPole-v1", lambda env: gym.wrappers.TimeLimit(env, 400)),
    "OrderEnforcing": ("CartPole-v1", gym.wrappers.OrderEnforcing),
    "PassiveEnvChecker": ("CartPole-v1", gym.wrappers.PassiveEnvChecker),
    "RecordEpisodeStatistics": ("CartPole-v1", gym.wrappers.RecordEpisodeStatistics),
    "FlattenObservation": ("CartPole-v1", gym.wrappers.FlattenObservation),
    "TransformObservation": ("CartPole-v1", same_function),
    "ClipAction": ("Pendulum-v1", gym.wrappers.ClipAction),
    "RescaleAction": ("Pendulum-v1", lambda env: gym.wrappers.RescaleAction(env, np.float32(-2), np.float32(2))),
    "FilterObservation": ("lfd_gym_test/Docking-v0", None),
}


@pytest.mark.parametrize("name", PAIRS)
def test_learning_and_certifying_under_a_wrapper_is_that_of_the_bare_environment(name):
    """Each wrapper in a form in which it changes nothing: the same seed then learns and certifies the same."""
    env_id, wrap = PAIRS[name]
    bare = gym.make(env_id)
    if wrap is None:
        parts = list(Docking.observation_space.spaces)
        wrapped = gym.wrappers.FilterObservation(gym.wrappers.TimeLimit(Noisy(), 30), parts)
    else:
        wrapped = wrap(gym.make(env_id))
    found = []
    for env in (bare, wrapped):
        rng = np.random.default_rng(5)
        expert = UniformPolicy(lfd.Task(bare, discount=0.9).action_space)
        demos = lfd.collect(env, expert, 3, 25, rng)
        costs = lfd.FourierCosts.from_demonstrations(demos, actions=False)  # before ClipAction, actions have no bounds
        task = lfd.Task(env, demos, discount=0.9, horizon=20, costs=costs)
        result = lfd.learn(task, "bc", rng=rng, budget=15)
        certificate = lfd.certify(result.policy, task, rng=rng, n_rollouts=5)
        found.append((certificate.cost_distance, certificate.cost_distance_bound, task.access))
    np.testing.assert_allclose(found[0][:2], found[1][:2], rtol=1e-4)
    assert found[0][2] == found[1][2]
