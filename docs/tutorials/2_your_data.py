# %% [markdown]
# # Your own data, with and without actions
#
# Logs of a machine, motion capture, a driver's recordings: lists of what was seen, and perhaps of what was done.

# %%
import gymnasium as gym
import numpy as np

import lfd_gym as lfd

rng = np.random.default_rng(0)
env = gym.make("MountainCar-v0")

# %% [markdown]
# Somebody drives a weak car up a hill by swinging. This stands for your logs: one list of observations and one of
# actions for each drive, one observation more than there are actions.

# %%
logs = []
for drive in range(3):
    seen, done = [env.reset(seed=drive)[0]], []
    ended = cut = False
    while not (ended or cut):
        done.append(2 if seen[-1][1] >= 0 else 0)  # push the way the car moves
        observation, _, ended, cut, _ = env.step(done[-1])
        seen.append(observation)
    logs.append((seen, done, ended, cut))
print([len(done) for _, done, _, _ in logs], "steps")

# %% [markdown]
# ## Into `Demonstrations`
#
# Of each drive: what was seen, what was done, rewards if there are any (None here), whether it *ended* (the goal was
# reached) and whether it was *cut* (the recording stopped). The difference matters: after an end nothing is paid any
# more, after a cut it is not known what would have come.

# %%
demonstrations = lfd.Demonstrations.from_episodes(
    [(seen, done, None, ended, cut) for seen, done, ended, cut in logs], env.observation_space, env.action_space
)
print(demonstrations)
demonstrations.save("drives.npz", overwrite=True)  # plain numbers: reading the file cannot run code
assert lfd.Demonstrations.load("drives.npz") == demonstrations

# %% [markdown]
# Data of `imitation` and Minari is taken over by `from_imitation` and `from_minari`:
# [all the ways in](../demonstrations.md).
#
# ## Learning from it
#
# How far ahead do costs count? The demonstrations say which discount they can carry.

# %%
print("suggested discount:", lfd.suggest_discount(demonstrations))
task = lfd.Task(env, demonstrations, discount=0.99)
result = lfd.learn(task, rng=rng)
played = lfd.collect(env, result.policy, n_trajectories=20, rng=rng)
print(result.learner, "needs", played.lengths.mean(), "steps to the goal; the driver", demonstrations.lengths.mean())

# %%
lfd.plots.draw_policy(result.policy, task)

# %% [markdown]
# Blue pushes left, red right; the black lines are the drives.
#
# ## Without actions
#
# A camera saw the car, nobody knows what the driver did. Cloning is impossible then. What is left to compare are
# costs of what is *seen*, and a learner that can plan needs no more than that.

# %%
seen_only = demonstrations.without_actions()
silent = lfd.Task(env, seen_only, discount=0.99)
print(silent.costs)
from_sight = lfd.learn(silent, rng=rng)
played = lfd.collect(env, from_sight.policy, n_trajectories=20, rng=rng)
print(from_sight.learner, "needs", played.lengths.mean(), "steps")
print(lfd.certify(from_sight.policy, silent, rng=rng, n_rollouts=1000).conclusion)

# %% [markdown]
# Had the data no environment at all, `lfd.Task(None, demonstrations, discount=0.99)` would hold it: there cloning
# (`"bc"`, with the `imitation` extra) is all that can be learned.
