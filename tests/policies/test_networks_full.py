"""Models of every algorithm of Stable-Baselines3: they act as they do there, and survive saving without pickle."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.envs import (
    BitFlippingEnv,
    FakeImageEnv,
    IdentityEnvBox,
    IdentityEnvMultiBinary,
    IdentityEnvMultiDiscrete,
    SimpleMultiObsEnv,
)
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.policies import ActorCriticPolicy

import lfd_gym as lfd
from lfd_gym.policies.mixtures import MixturePolicy
from lfd_gym.spaces import from_array, to_array


class Parts(gym.ObservationWrapper):
    """An environment shown in parts."""

    def __init__(self, env):
        super().__init__(env)
        space = env.observation_space
        self.observation_space = gym.spaces.Dict(
            {
                "speed": gym.spaces.Box(space.low[1:], space.high[1:]),
                "position": gym.spaces.Box(space.low[:1], space.high[:1]),
            }
        )

    def observation(self, observation):
        return {"speed": observation[1:], "position": observation[:1]}


CARTPOLE, PENDULUM = partial(gym.make, "CartPole-v1"), partial(gym.make, "Pendulum-v1")
CASES = {
    "ppo": (PPO, CARTPOLE),
    "ppo, finite": (PPO, partial(gym.make, "lfd_gym/StochasticGridworld-v0", size=4)),
    "ppo, box": (PPO, PENDULUM),
    "ppo, wide box": (PPO, partial(IdentityEnvBox, -3, 5)),
    "ppo, multi-discrete": (PPO, partial(IdentityEnvMultiDiscrete, 4)),
    "ppo, multi-binary": (PPO, partial(IdentityEnvMultiBinary, 3)),
    "ppo, parts": (PPO, lambda: Parts(PENDULUM())),
    "a2c": (A2C, CARTPOLE),
    "a2c, multi-binary": (A2C, partial(IdentityEnvMultiBinary, 3)),
    "a2c, parts": (A2C, partial(BitFlippingEnv, 3)),
    "dqn": (DQN, CARTPOLE),
    "dqn, finite": (DQN, partial(gym.make, "lfd_gym/StochasticGridworld-v0", size=4)),
    "dqn, parts": (DQN, partial(BitFlippingEnv, 3, discrete_obs_space=True)),
    "sac": (SAC, PENDULUM),
    "sac, parts": (SAC, partial(BitFlippingEnv, 3, continuous=True)),
    "td3": (TD3, PENDULUM),
    "td3, parts": (TD3, lambda: Parts(PENDULUM())),
    "ddpg": (DDPG, PENDULUM),
}


def make(algorithm, env, policy=None, settings=None, **policy_kwargs):
    """Return a model with weights that make a difference; it need not be trained."""
    settings = settings or ({} if algorithm in (PPO, A2C) else {"buffer_size": 10})
    nested = isinstance(env.observation_space, gym.spaces.Dict)
    policy_kwargs = {"net_arch": [16, 8], "activation_fn": th.nn.Tanh, **policy_kwargs}
    name = policy or ("MultiInputPolicy" if nested else "MlpPolicy")
    model = algorithm(name, env, seed=0, device="cpu", policy_kwargs=policy_kwargs, **settings)
    with th.no_grad():
        for number, weights in enumerate(model.policy.parameters()):
            scale = 0.7 if weights.dim() > 1 else 0.1  # with small offsets, every action is best somewhere
            weights.copy_(th.randn(weights.shape, generator=th.Generator().manual_seed(number)) * scale)
    return model


def batch_of(space, n=30):
    """Return elements of a space as the outside and as the inside of the package see them."""
    space.seed(0)
    if isinstance(space, gym.spaces.Box):  # its own samples may be as large as the largest float
        array = np.random.default_rng(0).uniform(-5, 5, (n, *space.shape)).astype(space.dtype)
    else:
        flat = [gym.spaces.flatten(space, space.sample()) for _ in range(n)]
        array = np.array(flat) if isinstance(space, gym.spaces.Dict) else np.array([space.sample() for _ in flat])
    return from_array(space, array), array


@pytest.mark.parametrize("case", CASES)
def test_models_of_every_algorithm_act_as_they_do_there(case):
    algorithm, env = CASES[case]
    model = make(algorithm, env())
    outside, inside = batch_of(model.observation_space)
    for source in (model, model.policy):
        policy = lfd.as_policy(source)
        best, _ = model.policy.predict(outside, deterministic=True)
        assert len(np.unique(best, axis=0)) > 1
        np.testing.assert_array_equal(policy.greedy(inside), best)
        np.testing.assert_array_equal(policy.predict(outside, deterministic=True)[0], best)
        np.testing.assert_array_equal(policy.predict(inside, deterministic=True)[0], best)
        assert policy.action_space == model.action_space
        assert policy.observation_space.shape == inside.shape[1:]
        with policy.acting(np.random.default_rng(5)):
            drawn = policy.sample(inside, np.random.default_rng(5))
        if policy.has_probabilities:
            assert drawn.shape == (30,)
            rows = policy.probabilities(inside)
            np.testing.assert_array_equal(rows.argmax(axis=1), best)
            continue
        th.manual_seed(int(np.random.default_rng(5).integers(2**63)))
        np.testing.assert_array_equal(drawn, model.predict(outside, deterministic=False)[0])
        if isinstance(model.action_space, gym.spaces.Box):
            assert (drawn >= model.action_space.low).all()
            assert (drawn <= model.action_space.high).all()


def test_the_policy_of_dqn_is_the_greedy_one():
    model = make(DQN, CARTPOLE())
    model.exploration_rate = 1.0  # as while it is trained: its own predict is random play
    outside, inside = batch_of(model.observation_space)
    policy = lfd.as_policy(model)
    best = model.predict(outside, deterministic=True)[0]
    np.testing.assert_array_equal(policy.sample(inside, np.random.default_rng(0)), best)
    np.testing.assert_array_equal(policy.predict(outside)[0], best)
    np.testing.assert_array_equal(policy.probabilities(inside), np.eye(2)[best])


@pytest.mark.parametrize("case", CASES)
def test_models_of_every_algorithm_survive_saving(case, tmp_path):
    algorithm, env = CASES[case]
    model = make(algorithm, env())
    lfd.save_policy(model, tmp_path / "network.npz")
    state = th.get_rng_state()
    loaded, policy = lfd.load_policy(tmp_path / "network.npz"), lfd.as_policy(model)
    assert th.equal(state, th.get_rng_state())
    assert (loaded.action_space, loaded.observation_space) == (policy.action_space, policy.observation_space)
    assert loaded.outer_observation_space == policy.outer_observation_space
    outside, inside = batch_of(model.observation_space)
    np.testing.assert_array_equal(loaded.greedy(inside), policy.greedy(inside))
    drawn = []
    for acting in (loaded, policy):
        rng = np.random.default_rng(1)
        with acting.acting(rng):
            actor = acting.start(30, rng)
            drawn.append([actor(np.arange(30), inside) for _ in range(3)])
    np.testing.assert_array_equal(*drawn)
    np.testing.assert_array_equal(loaded.predict(outside)[0], policy.predict(outside)[0])  # both draw with their rng
    lfd.save_policy(loaded, tmp_path / "again.npz")
    with np.load(tmp_path / "network.npz") as first, np.load(tmp_path / "again.npz") as second:
        assert not [name for name in first.files if "critic" in name or "target" in name]
        assert first.files == second.files
        for name in set(first.files) - {"description"}:
            np.testing.assert_array_equal(first[name], second[name])


@pytest.mark.parametrize("activation", ["ELU", "GELU", "LeakyReLU", "Mish", "SiLU", "Sigmoid", "Softplus"])
@pytest.mark.parametrize("algorithm", [PPO, SAC])
def test_activations_are_kept(activation, algorithm, tmp_path):
    kind = getattr(th.nn, activation)
    model = make(algorithm, PENDULUM(), activation_fn=kind)
    lfd.save_policy(model, tmp_path / "network.npz")
    loaded = lfd.load_policy(tmp_path / "network.npz")
    outside, _ = batch_of(model.observation_space)
    best = [policy.predict(outside, deterministic=True)[0] for policy in (loaded, model)]
    np.testing.assert_array_equal(*best)
    assert any(type(part) is kind for part in loaded.network.modules())


@pytest.mark.parametrize("net_arch", [[], [5], {"pi": [4, 3], "vf": [], "qf": []}], ids=str)
@pytest.mark.parametrize("algorithm", [A2C, TD3])
def test_all_sizes_are_kept(net_arch, algorithm, tmp_path):
    model = make(algorithm, PENDULUM(), net_arch=net_arch)
    lfd.save_policy(model, tmp_path / "network.npz")
    loaded = lfd.load_policy(tmp_path / "network.npz")
    outside, _ = batch_of(model.observation_space)
    best = [policy.predict(outside, deterministic=True)[0] for policy in (loaded, model)]
    np.testing.assert_array_equal(*best)


class Contrary(ActorCriticPolicy):
    """Decides otherwise, with the same weights."""

    def _predict(self, observation, deterministic=False):
        return 1 - super()._predict(observation, deterministic)


class Mixed(ActorCriticPolicy):
    """Has other layers than its architecture says."""

    def _build_mlp_extractor(self):
        super()._build_mlp_extractor()
        self.mlp_extractor.policy_net[1] = th.nn.ELU()


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda: make(PPO, PENDULUM(), settings={"use_sde": True}), "state-dependent exploration"),
        (lambda: make(SAC, PENDULUM(), settings={"use_sde": True, "buffer_size": 10}), "state-dependent exploration"),
        (
            lambda: make(PPO, FakeImageEnv(screen_height=40, screen_width=40), "CnnPolicy"),
            "NatureCNN, where only flattening is known",
        ),
        (
            lambda: make(DQN, FakeImageEnv(screen_height=40, screen_width=40), "CnnPolicy"),
            "NatureCNN, where only flattening is known",
        ),
        (lambda: make(PPO, SimpleMultiObsEnv()), "CombinedExtractor, where only flattening is known"),
        (lambda: make(PPO, CARTPOLE(), activation_fn=partial(th.nn.LeakyReLU, 0.3)), "its activation is none of"),
        (lambda: make(PPO, CARTPOLE(), Contrary), "its class decides in a way of its own"),
        (lambda: make(PPO, CARTPOLE(), Mixed), "its layers are not those"),
        (lambda: make(PPO, CARTPOLE()).policy.double(), "single precision"),
    ],
)
def test_networks_of_another_form_are_refused_by_name(model, reason, tmp_path):
    network = model()
    with pytest.raises(ValueError, match=rf"cannot be saved without pickle: .*{reason}.*Keep it with the `save`"):
        lfd.save_policy(network, tmp_path / "network.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("algorithm", [PPO, DQN])
def test_networks_that_look_at_images_act(algorithm):
    env = FakeImageEnv(
        screen_height=40, screen_width=40
    )  # height, width, channels; the network's own space has the channels first
    model = make(algorithm, env, "CnnPolicy", net_arch=[])
    seen = np.random.default_rng(0).integers(0, 256, (4, 40, 40, 1), dtype=np.uint8)
    policy = lfd.as_policy(model)
    best = model.predict(seen, deterministic=True)[0]
    np.testing.assert_array_equal(policy.greedy(seen), best)
    np.testing.assert_array_equal(policy.predict(seen, deterministic=True)[0], best)
    assert policy.predict(seen[0], deterministic=True)[0] == best[0]


# -- environments shown in parts --------------------------------------------------------------------------------------


def test_a_network_over_flat_observations_plays_where_they_come_in_parts(tmp_path):
    """What a learner finds on flattened demonstrations is used in the environment they came from."""
    env = Parts(CARTPOLE())
    flat = gym.wrappers.FlattenObservation(Parts(CARTPOLE()))
    model = make(PPO, flat)
    policy = lfd.as_policy(model)
    policy.take_observations_of(env.observation_space)
    lfd.save_policy(policy, tmp_path / "network.npz")
    returns = []
    for acting, world in ((model, flat), (policy, env), (lfd.load_policy(tmp_path / "network.npz"), env)):
        world.reset(seed=0)
        returns.append(evaluate_policy(acting, world, 5, warn=False, return_episode_rewards=True)[0])
    assert returns[0] == returns[1] == returns[2]
    assert len(set(returns[0])) > 1


@pytest.mark.parametrize(("algorithm", "env"), [(PPO, CARTPOLE), (SAC, PENDULUM)])
def test_parts_and_flat_arrays_give_the_same(algorithm, env):
    world = Parts(env())
    policy = lfd.as_policy(make(algorithm, world))
    shown = [world.reset(seed=seed)[0] for seed in range(4)]
    inside = np.stack([gym.spaces.flatten(world.observation_space, part) for part in shown])
    batch = {key: np.stack([part[key] for part in shown]) for key in shown[0]}
    np.testing.assert_array_equal(to_array(world.observation_space, batch, 4), inside)
    best = policy.greedy(inside)
    np.testing.assert_array_equal(policy.predict(batch, deterministic=True)[0], best)
    np.testing.assert_array_equal(policy.predict(shown[2], deterministic=True)[0], best[2])


def test_mixtures_of_networks(tmp_path):
    members = [
        make(algorithm, Parts(PENDULUM()), net_arch=[size]) for algorithm, size in ((SAC, 4), (PPO, 5), (TD3, 6))
    ]
    mixture = MixturePolicy(members, [0.3, 0.3, 0.4])
    lfd.save_policy(mixture, tmp_path / "mixture.npz")
    loaded = lfd.load_policy(tmp_path / "mixture.npz")
    _, inside = batch_of(members[0].observation_space)
    best = np.stack([lfd.as_policy(member).greedy(inside) for member in members])
    drawn = []
    for policy in (mixture, loaded):
        rng = np.random.default_rng(0)
        with policy.acting(rng):
            actor = policy.start(30, rng)
            drawn.append([actor(np.arange(30), inside) for _ in range(2)])
            actions = policy.start(30, rng, deterministic=True)(np.arange(30), inside)
        played = np.isclose(best, actions, atol=1e-5).all(axis=2).argmax(axis=0)
        np.testing.assert_allclose(best[played, np.arange(30)], actions, atol=1e-5)
        assert set(played) == {0, 1, 2}
    np.testing.assert_array_equal(*drawn)
    mean, _ = evaluate_policy(mixture, Parts(PENDULUM()), n_eval_episodes=2, warn=False)
    assert mean < 0
