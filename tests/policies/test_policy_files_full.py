"""Networks in files without pickle: bit-exact, and evaluated the same."""

import json

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.policies import ActorCriticPolicy

import lfd_gym as lfd
from lfd_gym.commands.training import Evaluate, Train
from lfd_gym.policies.conversion import policy_table
from lfd_gym.policies.files import load_policy, save_policy


@pytest.mark.parametrize("activation", [th.nn.Tanh, th.nn.ReLU])
@pytest.mark.parametrize("space", [gym.spaces.Discrete(9), gym.spaces.Box(-1, 1, (3,))])
def test_networks_survive_saving_bit_exactly(tmp_path, activation, space):
    network = ActorCriticPolicy(
        space, gym.spaces.Discrete(4), lambda _: 1e-3, net_arch={"pi": [8], "vf": [4, 4]}, activation_fn=activation
    )
    save_policy(network, tmp_path / "network.npz")
    state = th.get_rng_state()
    loaded = load_policy(tmp_path / "network.npz")
    assert th.equal(state, th.get_rng_state())
    for name, tensor in network.state_dict().items():
        assert th.equal(tensor, loaded.network.state_dict()[name]), name
    observations = np.array([space.sample() for _ in range(20)])
    np.testing.assert_array_equal(
        network.predict(observations, deterministic=True)[0], loaded.predict(observations, deterministic=True)[0]
    )
    with np.load(tmp_path / "network.npz", allow_pickle=False) as file:
        assert "description" in file.files


def test_every_policy_of_sb3_is_evaluated_exactly():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=4)
    mdp, costs = lfd.FiniteMDP.from_env(env, discount=0.9), env.unwrapped.cost_features
    ppo = PPO("MlpPolicy", env, seed=0, device="cpu")
    table = policy_table(ppo, mdp)
    with th.no_grad():
        for state in range(16):
            tensor, _ = ppo.policy.obs_to_tensor(np.array([state]))
            by_hand = ppo.policy.get_distribution(tensor).distribution.probs.numpy()[0]
            np.testing.assert_allclose(table[state], by_hand, atol=1e-6)
    np.testing.assert_array_equal(table, policy_table(ppo.policy, mdp))
    assert lfd.evaluate(ppo, mdp, costs).exact
    dqn = DQN("MlpPolicy", env, seed=0, device="cpu")
    assert lfd.evaluate(dqn, mdp, costs).exact
    actions, _ = dqn.predict(np.arange(16), deterministic=True)
    for deterministic in (False, True):  # its policy is the greedy network
        np.testing.assert_allclose(
            lfd.evaluate(dqn, mdp, costs, deterministic=deterministic).expected_costs,
            costs.T @ mdp.occupancy(lfd.model.mdp.one_hot(actions, 4)).ravel(),
            atol=1e-12,
        )


def tampered(source, target, change):
    """Copy a file of arrays, with its description and arrays changed."""
    with np.load(source, allow_pickle=False) as file:
        arrays = dict(file)
    description = json.loads(str(arrays.pop("description")))
    change(description, arrays)
    np.savez(target, description=np.array(json.dumps(description)), **arrays)


def set_architecture(**values):
    return lambda description, arrays: description["architecture"].update(values)


def without_bias(description, arrays):
    del arrays["weight:mu.bias"]


def with_longer_bias(description, arrays):
    arrays["weight:mu.bias"] = np.zeros(7, np.float32)


def with_words(description, arrays):
    arrays["weight:mu.bias"] = np.array(["x"])


def with_more(description, arrays):
    arrays["weight:more"] = np.zeros(1, np.float32)


def without_space(description, arrays):
    del description["action_space"]


def over_others(description, arrays):
    description["action_space"] = {"discrete": 1}


def over_many(description, arrays):
    description["observation_space"] = {"discrete": 10**12}


def over_images(description, arrays):
    description["nested"], description["outer_observation_space"] = True, {"dict": [["x", {"box": "|u1"}]]}
    arrays["outer_observation.0_low"] = np.zeros((1, 36, 36), np.uint8)
    arrays["outer_observation.0_high"] = np.full((1, 36, 36), 255, np.uint8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            set_architecture(hidden_sizes={"pi": [10**12, 10**12]}),
            r"latent_pi.0.weight must be floats of shape \(10{12}",
        ),
        (set_architecture(hidden_sizes={"pi": [16, 8] * 10**4}), "must be floats of shape|are missing"),
        (set_architecture(hidden_sizes={"pi": [16.0, 8]}), "hidden_sizes must be positive integers, got 16.0"),
        (set_architecture(hidden_sizes={"pi": [-1]}), "hidden_sizes must be positive integers, got -1"),
        (set_architecture(hidden_sizes={"pi": [16, 8], "vf": []}), "hidden_sizes must be given for pi"),
        (set_architecture(activation="Module"), "unknown activation 'Module'"),
        (set_architecture(activation=["ReLU"]), "unknown activation"),
        (set_architecture(family="os.system"), "unknown family of networks 'os.system'"),
        (set_architecture(family="td3"), "the weights mu.0.weight are missing"),
        (without_bias, "the weights mu.bias are missing"),
        (with_longer_bias, r"mu.bias must be floats of shape \(1,\), got shape \(7,\)"),
        (with_words, "mu.bias must be floats"),
        (with_more, "the network has no weights more"),
        (without_space, "'action_space' is missing"),
        (over_others, r"networks of the family 'sac' do not act in Discrete\(1\)"),
        (over_images, "looks at images, where only flattening is known"),
        (over_many, r"latent_pi.0.weight must be floats of shape \(16, 10{12}\)"),
    ],
)
def test_files_that_were_tampered_with_are_refused_before_anything_is_built(tmp_path, change, message):
    model = SAC("MlpPolicy", gym.make("Pendulum-v1"), device="cpu", buffer_size=10, policy_kwargs={"net_arch": [16, 8]})
    save_policy(model, tmp_path / "network.npz")
    tampered(tmp_path / "network.npz", tmp_path / "other.npz", change)
    with pytest.raises(ValueError, match=rf"other.npz does not hold the policy that it describes: .*({message})"):
        load_policy(tmp_path / "other.npz")


def test_a_network_trained_on_the_command_line(tmp_path):
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=5)
    mdp = lfd.FiniteMDP.from_env(env, discount=0.9)
    expert = mdp.optimal_policy(env.unwrapped.cost_features[:, 0])
    lfd.collect(env, expert, 20, 50, np.random.default_rng(0)).save(tmp_path / "demos.npz")
    Train(
        env="lfd_gym/StochasticGridworld-v0",
        env_kwargs=("size=5",),
        demonstrations=str(tmp_path / "demos.npz"),
        learner="bc",
        budget=200,
        out=tmp_path / "run",
    ).run()
    assert Evaluate(source=tmp_path / "run").evaluation().normalised_score > 0.8
