"""Networks in files without pickle: bit-exact, and evaluated the same."""

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from stable_baselines3 import DQN, PPO
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


def test_networks_over_continuous_actions_survive_saving(tmp_path):
    ppo = PPO("MlpPolicy", gym.make("Pendulum-v1"), seed=0, device="cpu")
    save_policy(ppo, tmp_path / "network.npz")
    loaded = load_policy(tmp_path / "network.npz")
    seen = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    ours, theirs = (policy.predict(seen, deterministic=True)[0] for policy in (loaded, ppo))
    np.testing.assert_array_equal(ours, theirs)
    assert not loaded.has_probabilities


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
    with pytest.raises(ValueError, match=r"DQN\) does not say its action probabilities"):
        lfd.evaluate(dqn, mdp, costs)
    deterministic = lfd.evaluate(dqn, mdp, costs, deterministic=True)
    actions, _ = dqn.predict(np.arange(16), deterministic=True)
    np.testing.assert_allclose(
        deterministic.expected_costs, costs.T @ mdp.occupancy(lfd.model.mdp.one_hot(actions, 4)).ravel(), atol=1e-12
    )


def test_policies_of_other_forms_are_refused(tmp_path):
    dqn = DQN("MlpPolicy", gym.make("lfd_gym/StochasticGridworld-v0", size=4), seed=0, device="cpu")
    with pytest.raises(ValueError, match="cannot be saved: a file keeps tables, tiles and actor-critic networks"):
        save_policy(dqn.policy, tmp_path / "dqn.npz")


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
