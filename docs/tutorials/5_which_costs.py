# %% [markdown]
# # Which costs explain the expert, and what they are good for
#
# A policy says what the expert *does*. A cost says what it *wants*, and that can be carried to where its actions would
# be wrong: here to a cart with a pole four times as long and half the force. It needs the `sb3` extra, for PPO.

# %%
import gymnasium as gym
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import lfd_gym as lfd

rng = np.random.default_rng(0)
env = gym.make("CartPole-v1")


def expert(observations):
    return (observations @ [0.1, 0.3, 1.0, 0.5] > 0).astype(int)


# %% [markdown]
# ## What it may care about
#
# Three costs: leaning, being away from the middle, being fast. An episode that has ended pays nothing, so each is moved
# to lie in [−1, 0]: to stand still upright in the middle is then a gain, and falling ends it.


# %%
def three_costs(observations, actions):
    leaning = np.minimum(np.abs(observations[:, 2]) / 0.21, 1)
    away = np.minimum(np.abs(observations[:, 0]) / 2.4, 1)
    speed = np.minimum(np.abs(observations[:, 1]) / 3, 1)
    return np.column_stack([leaning, away, speed]) - 1


costs = lfd.FunctionCosts(three_costs, n_costs=3, names=("leaning", "away from the middle", "speed"))
demonstrations = lfd.collect(env, expert, n_trajectories=5, rng=rng)
task = lfd.Task(env, demonstrations, discount=0.98, costs=costs)
result = lfd.learn(task, rng=rng)
print(result.cost)
print("distance:", round(result.facts["distance"], 3), "of random play:", round(result.facts["distance_of_random"], 3))

# %% [markdown]
# The weights are those for which the expert comes nearest to being optimal. They are one explanation, not the only one:
# whoever stands still also leans little, so several mixtures explain the same behaviour.
# (Over finitely many states `lfd.explaining_weights` finds all of them.)
#
# ## Other physics


# %%
def other_cartpole():
    other = gym.make("CartPole-v1")
    other.unwrapped.length, other.unwrapped.polemass_length, other.unwrapped.force_mag = 2.0, 0.2, 5.0
    return other


def steps_standing(policy):
    return lfd.collect(other_cartpole(), policy, n_trajectories=20, rng=rng).lengths.mean()


print("the expert's actions:  ", steps_standing(expert), "of 500 steps")
print("the policy learned:    ", steps_standing(result.policy))

# %% [markdown]
# Both act as was right before. Now PPO is trained from nothing in the new physics, on minus the recovered cost; the
# environment's own reward is not used.

# %%
venv = result.cost.vec_env(make_vec_env(other_cartpole, n_envs=8, seed=0))
model = PPO(
    "MlpPolicy", venv, n_steps=128, batch_size=256, gamma=0.98, gae_lambda=0.9, learning_rate=1e-3, seed=0, device="cpu"
)
model.learn(50_000)
print("PPO on recovered cost: ", steps_standing(model))

# %% [markdown]
# `result.cost.reward_wrapper(env)` does the same for a single environment, and `result.cost(observations, actions)` is
# the cost itself: [the recovered cost](../costs.md#the-recovered-cost).
