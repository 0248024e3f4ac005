"""Experts of Stable-Baselines3: trained, kept, and read without running anything that is in a file."""

import base64
import json
import pickle
import zipfile

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3 as sb3
import torch

import lfd_gym as lfd
from lfd_gym.demonstrations.sb3_expert import load_expert, train_expert

CART, PENDULUM = (lambda: gym.make("CartPole-v1")), (lambda: gym.make("Pendulum-v1"))
GRID = "lfd_gym/StochasticGridworld-v0"


class Parts(gym.ObservationWrapper):
    """What is seen, as a Dict."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gym.spaces.Dict({"one": env.observation_space, "two": env.observation_space})

    def observation(self, observation):
        return {"one": observation, "two": observation}


#: Algorithm, environment, settings of the policy.
MODELS = {
    "ppo": ("PPO", CART, {}),
    "ppo, other architecture": (
        "PPO",
        PENDULUM,
        {"net_arch": {"pi": [8], "vf": [4, 4]}, "activation_fn": torch.nn.ELU},
    ),
    "ppo, finite": ("PPO", lambda: gym.make(GRID, size=3), {"net_arch": []}),
    "ppo, parts": ("PPO", lambda: Parts(PENDULUM()), {}),
    "a2c": ("A2C", CART, {}),
    "dqn": ("DQN", CART, {"net_arch": [16]}),
    "sac": ("SAC", PENDULUM, {"net_arch": [16, 8]}),
    "sac, linear": ("SAC", PENDULUM, {"net_arch": {"pi": [], "qf": [4]}}),
    "td3": ("TD3", PENDULUM, {"activation_fn": torch.nn.Tanh}),
    "ddpg": ("DDPG", PENDULUM, {}),
}


def make_model(name):
    algorithm, env, kwargs = MODELS[name]
    made = env()
    inputs = "MultiInputPolicy" if isinstance(made.observation_space, gym.spaces.Dict) else "MlpPolicy"
    return getattr(sb3, algorithm)(inputs, made, policy_kwargs=kwargs, device="cpu", seed=0), made


def observations(env, n=50):
    env.reset(seed=0)
    env.action_space.seed(0)
    seen = []
    while len(seen) < n:
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        seen.append(observation)
        if terminated or truncated:
            env.reset()
    return seen


@pytest.mark.parametrize("name", MODELS)
def test_models_of_any_algorithm_act_as_they_did(tmp_path, name, monkeypatch):
    model, env = make_model(name)
    model.save(tmp_path / "model.zip")
    monkeypatch.setattr(pickle, "loads", lambda *_: pytest.fail("it was unpickled"))
    policy = load_expert(tmp_path / "model.zip", env.observation_space, env.action_space)
    for seen in observations(env):
        np.testing.assert_array_equal(
            policy.predict(seen, deterministic=True)[0], model.predict(seen, deterministic=True)[0]
        )


class Payload:
    """Leaves a mark when it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        import pathlib

        return pathlib.Path.touch, (self.marker,)


def replaced(source, target, change):
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(target, "w") as changed:
        for name in archive.namelist():
            content = archive.read(name)
            if name == "data":
                data = json.loads(content)
                change(data)
                content = json.dumps(data).encode()
            changed.writestr(name, content)


def test_nothing_in_a_hostile_file_runs(tmp_path):
    model, env = make_model("ppo")
    marker = tmp_path / "was_run"
    evil = base64.b64encode(pickle.dumps(Payload(marker))).decode()
    model.save(tmp_path / "model.zip")

    def in_class(data):
        data["policy_class"][":serialized:"] = evil

    def in_kwargs(data):
        data["policy_kwargs"] = {":type:": "x", ":serialized:": evil, "features_extractor_class": "evil"}

    replaced(tmp_path / "model.zip", tmp_path / "class.zip", in_class)
    load_expert(tmp_path / "class.zip", env.observation_space, env.action_space)
    replaced(tmp_path / "model.zip", tmp_path / "kwargs.zip", in_kwargs)
    with pytest.raises(
        ValueError, match=r"policy_kwargs have features_extractor_class.* runs whatever code .* --trust"
    ):
        load_expert(tmp_path / "kwargs.zip", env.observation_space, env.action_space)
    with zipfile.ZipFile(tmp_path / "weights.zip", "w") as hostile:
        hostile.writestr("data", "{}")
        hostile.writestr("policy.pth", pickle.dumps(Payload(marker)))
    with pytest.raises(ValueError, match=r"weights\.zip does not hold a model saved by Stable-Baselines3"):
        load_expert(tmp_path / "weights.zip", env.observation_space, env.action_space)
    assert not marker.exists()
    with pytest.raises(Exception):  # noqa: B017, PT011  (whatever becomes of it, the payload is real)
        load_expert(tmp_path / "kwargs.zip", env.observation_space, env.action_space, trust=True)
    assert marker.exists()


class OwnPolicy(sb3.ppo.MlpPolicy):
    """A class of somebody's own."""


@pytest.mark.parametrize("kind", ["sde", "own class"])
def test_what_is_not_plain_needs_trust(tmp_path, kind):
    env = PENDULUM()
    settings = {"use_sde": True} if kind == "sde" else {}
    policy = "MlpPolicy" if kind == "sde" else OwnPolicy
    model = sb3.PPO(policy, env, device="cpu", seed=0, **settings)
    model.save(tmp_path / "model.zip")
    with pytest.raises(ValueError, match=r"cannot be read as plain numbers: .*if you trust where it comes from"):
        load_expert(tmp_path / "model.zip", env.observation_space, env.action_space)
    trusted = load_expert(tmp_path / "model.zip", env.observation_space, env.action_space, trust=True)
    seen = np.array(observations(env))
    np.testing.assert_array_equal(trusted.greedy(seen), model.predict(seen, deterministic=True)[0])


def test_files_that_do_not_fit_are_named(tmp_path):
    model, env = make_model("ppo")
    model.save(tmp_path / "model.zip")
    other = PENDULUM()
    with pytest.raises(ValueError, match=r"observation_space of shape \[4\], but that of the environment is Box"):
        load_expert(tmp_path / "model.zip", other.observation_space, other.action_space)
    three = gym.spaces.Discrete(3)
    with pytest.raises(ValueError, match=r"action_space of n 2, but that of the environment is Discrete\(3\)"):
        load_expert(tmp_path / "model.zip", env.observation_space, three)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_expert(tmp_path / "nowhere.zip", env.observation_space, env.action_space)
    (tmp_path / "text.zip").write_text("text")
    with pytest.raises(ValueError, match=r"text\.zip does not hold a model"):
        load_expert(tmp_path / "text.zip", env.observation_space, env.action_space)


def test_training_learns():
    env = gym.make(GRID, size=4, cost_seed=1, max_episode_steps=20)
    settings = {"n_steps": 500, "batch_size": 250, "gamma": 0.9, "learning_rate": 3e-3}
    model = train_expert(env, "ppo", 6_000, 0, **settings)
    mdp, cost = lfd.FiniteMDP.from_env(env, 0.9), env.unwrapped.cost_features[:, 0]
    learned = mdp.expected_cost(lfd.policies.conversion.policy_table(model, mdp), cost)
    best, uniform = mdp.expected_cost(mdp.optimal_policy(cost), cost), mdp.expected_cost(np.full((16, 4), 0.25), cost)
    assert learned < uniform - 0.7 * (uniform - best)


@pytest.mark.parametrize(("algorithm", "env"), [("dqn", PENDULUM), ("sac", CART)])
def test_algorithms_say_where_they_act(algorithm, env):
    with pytest.raises(ValueError, match=f"algorithm '{algorithm}' does not act in"):
        train_expert(env(), algorithm, 10, 0)
