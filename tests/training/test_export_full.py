"""Learned networks as models of Stable-Baselines3, and clone, then fine-tune."""

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3 as sb3
from stable_baselines3.common.evaluation import evaluate_policy

import lfd_gym as lfd
from lfd_gym import cli
from lfd_gym.training.export import to_sb3

CART, PENDULUM = gym.make("CartPole-v1"), gym.make("Pendulum-v1")


@pytest.mark.parametrize(
    ("name", "env"), [("PPO", CART), ("A2C", CART), ("DQN", CART), ("SAC", PENDULUM), ("TD3", PENDULUM)]
)
def test_networks_act_the_same_and_learn_on(tmp_path, name, env):
    model = getattr(sb3, name)("MlpPolicy", env, policy_kwargs={"net_arch": [8, 8]}, device="cpu", seed=0)
    lfd.save_policy(model, tmp_path / "policy.npz")
    small = {"n_steps": 16, "batch_size": 16} if name in ("PPO", "A2C") else {"learning_starts": 8}
    again = to_sb3(lfd.load_policy(tmp_path / "policy.npz"), env, **small)
    assert type(again).__name__ == ("PPO" if name == "A2C" else name)
    seen = np.array([env.observation_space.sample() for _ in range(20)]).clip(-3, 3)
    np.testing.assert_array_equal(
        again.predict(seen, deterministic=True)[0], model.predict(seen, deterministic=True)[0]
    )
    again.learn(32)


def test_what_is_no_network_is_refused():
    with pytest.raises(ValueError, match="policy must be a network to become a model"):
        to_sb3(np.full((4, 2), 0.5), CART)
    with pytest.raises(ValueError, match="does not fit"):
        to_sb3(sb3.PPO("MlpPolicy", CART, device="cpu"), PENDULUM)


def test_clone_then_fine_tune(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def careless(seen):  # looks at the angle alone, and falls after some forty steps
        return (seen[:, 2] > 0).astype(int)

    lfd.collect(CART, careless, 10, rng=np.random.default_rng(0)).save("demos.npz")
    words = "train --demonstrations demos.npz --learner bc --budget 200 --rollouts 10 --out run --export-sb3 clone.zip"
    assert cli.main(words.split()) == 0
    cloned = sb3.PPO.load("clone.zip", device="cpu")
    kept = lfd.load_policy("run/policy.npz")
    seen = np.array([CART.observation_space.sample() for _ in range(20)]).clip(-3, 3)
    np.testing.assert_array_equal(cloned.predict(seen, deterministic=True)[0], kept.greedy(seen))
    before, _ = evaluate_policy(cloned, CART, 10)
    settings = {"n_steps": 256, "batch_size": 64, "learning_rate": 1e-3, "seed": 0}
    tuned = sb3.PPO.load("clone.zip", env=CART, device="cpu", **settings)
    tuned.learn(8_000)
    after, _ = evaluate_policy(tuned, CART, 10)
    assert before < 80
    assert after > 2 * before


def test_a_place_for_the_model_is_checked_before_learning(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    train = ["train", "--demonstrations", "demos.npz", "--out", "run", "--export-sb3"]
    for place, message in (
        ("clone.npz", "must end in .zip"),
        ("nowhere/clone.zip", "the folder nowhere does not exist"),
    ):
        assert cli.main([*train, place]) == 2
        assert message in capsys.readouterr().err
