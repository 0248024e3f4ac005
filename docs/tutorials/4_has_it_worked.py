# %% [markdown]
# # Has it worked? Certificates for a policy of Stable-Baselines3
#
# A policy from somewhere, here PPO at three points of its training, and recordings of an expert. Which of the three may
# replace the expert? The certificate does not care who learned a policy, or how. It needs the `sb3` extra only because
# the policies come from there.

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
# ## Three candidates

# %%
model = PPO(
    "MlpPolicy",
    make_vec_env("CartPole-v1", n_envs=8),
    n_steps=128,
    batch_size=256,
    learning_rate=1e-3,
    seed=0,
    device="cpu",
)
candidates = {}
for total in (1_024, 8_192, 20_480):
    model.learn(total - model.num_timesteps, reset_num_timesteps=False)
    model.save(f"ppo_{total}.zip")
    candidates[f"{total:,} steps"] = PPO.load(f"ppo_{total}.zip", device="cpu")

# %% [markdown]
# ## The task to judge them in
#
# What matters is said beforehand: how far the pole leans and how far the cart is from the middle, the first 200 steps,
# all counted alike. A cost is paid for every step; an episode that has ended pays none, so what is bad about falling
# must be seen as standing being *good*: costs at most zero.


# %%
def what_matters(observations, actions):
    upright = 1 - np.minimum(np.abs(observations[:, 2]) / 0.21, 1)
    in_the_middle = 1 - np.minimum(np.abs(observations[:, 0]) / 2.4, 1)
    return -np.column_stack([np.ones(len(observations)), upright, in_the_middle])


demonstrations = lfd.collect(env, expert, n_trajectories=100, rng=rng)
task = lfd.Task(env, demonstrations, discount=1.0, horizon=200, costs=what_matters)

# %% [markdown]
# These costs did not look at the demonstrations, so the certificate is about the *expert*, not only about what was
# recorded.

# %%
certificates = {name: lfd.certify(policy, task, rng=rng, n_rollouts=400) for name, policy in candidates.items()}
for name, certificate in certificates.items():
    print(f"{name:>14}: {certificate.conclusion}")

# %% [markdown]
# None of them may replace the expert yet; training helps, and how far it has come is known without a reward.
#
# ## What the last one consists of

# %%
last = certificates["20,480 steps"]
print(last)

# %%
lfd.plots.draw_certificate(last)

# %% [markdown]
# ## What would make it tighter?

# %%
print(last.needed(last.cost_distance + 0.05))

# %% [markdown]
# ## Beside it: the usual evaluation
#
# Returns are known here, so they can be shown side by side. They need a reward, which is what one often does not have.

# %%
evaluations = {name: lfd.evaluate(policy, task, rng=rng, n_rollouts=20) for name, policy in candidates.items()}
lfd.plots.draw_comparison(evaluations, "episode_return")
