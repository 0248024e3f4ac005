# %% [markdown]
# # From one demonstration to a certified policy
#
# You have seen somebody balance a pole, once. What can be learned from that, and how do you know that it worked?

# %%
import gymnasium as gym
import numpy as np

import lfd_gym as lfd

rng = np.random.default_rng(0)
env = gym.make("CartPole-v1")


def expert(observations):  # batches of observations in, actions out
    return (observations @ [0.1, 0.3, 1.0, 0.5] > 0).astype(int)


demonstrations = lfd.collect(env, expert, n_trajectories=1, rng=rng)
print(demonstrations)

# %% [markdown]
# The expert is a rule here. A model of Stable-Baselines3, data of Minari or lists of your own will do as well: see
# [the next tutorial](2_your_data.md). No reward is used from here on.
#
# ## The task
#
# A `Task` is the environment, the demonstrations, and how far ahead costs count.

# %%
task = lfd.Task(env, demonstrations, discount=0.99)
print(task.access)
print(task.costs)

# %% [markdown]
# Two things were found out. The environment is one that can be put into any state, so a simulator is there to plan in.
# And nobody has said what the expert cares about, so the costs are generic ones: smooth functions of what is seen and
# done. The distance to the expert is the largest difference over all of them.
#
# ## Learning

# %%
result = lfd.learn(task, rng=rng)
print(result.learner, "-", result.reason)
print("distance to the demonstration:", round(result.facts["distance"], 3))
print("the same of random play:      ", round(result.facts["distance_of_random"], 3))

# %% [markdown]
# The policy acts like one of Stable-Baselines3 (`predict`), so everything that takes such a policy takes it. Does it
# balance? The reward was never shown to the learner; here it is only counted.

# %%
played = lfd.collect(env, result.policy, n_trajectories=20, rng=rng)
print("steps until the pole falls, at most 500:", played.lengths)

# %% [markdown]
# ## The certificate
#
# Mostly there is no reward to count. `certify` needs none: it plays fresh episodes and says how far the policy can be
# from what was demonstrated, in any cost of the class, with probability 95 %.

# %%
certificate = lfd.certify(result.policy, task, rng=rng, n_rollouts=1000)
print(certificate)

# %% [markdown]
# Why is the distance not smaller, if the pole never falls? The demonstration began in one state and went its own way,
# and fresh episodes begin in others. The expert itself is not at distance zero from its own one demonstration:

# %%
print(round(lfd.certify(expert, task, rng=rng, n_rollouts=1000).cost_distance, 3))

# %% [markdown]
# Read the first line of a certificate first. The second says what is *not* known: with costs that were chosen after
# looking at the demonstration, nothing can be said about the expert behind it. How the bound falls with more rollouts,
# and what it consists of:

# %%
lfd.plots.draw_certificate(certificate)

# %% [markdown]
# Where next: [your own data](2_your_data.md), [your own environment](3_your_environment.md), and
# [what a certificate rests on](../certificates.md).
