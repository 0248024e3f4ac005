# %% [markdown]
# # Your own environment
#
# The more is known of an environment, the more can be learned and the surer one can be of it. Three ways to give one:
# a table of transitions, a simulator that can be put into a state, and nothing but episodes.

# %%
import gymnasium as gym
import numpy as np

import lfd_gym as lfd
from lfd_gym import plots
from lfd_gym.envs import TabularEnv

rng = np.random.default_rng(0)

# %% [markdown]
# ## A table
#
# A shop: the state is the stock, the action how many units to order, and each day up to three are sold. Transitions
# are an (S, A, S) array, costs an (S·A, n) array, one column for each thing that the owner may care about.

# %%
stock, orders = np.arange(11), np.arange(4)
after_delivery = np.minimum(stock[:, None] + orders, stock[-1])
transitions = np.zeros((stock.size, orders.size, stock.size))
for sold, probability in enumerate([0.1, 0.2, 0.3, 0.4]):
    left = np.maximum(after_delivery - sold, 0)
    np.add.at(transitions, (*np.indices(left.shape), left), probability)
holding, sold_out = stock / stock[-1], (stock == 0).astype(float)
costs = lfd.TableCosts(
    np.column_stack([holding, sold_out]).repeat(orders.size, axis=0),
    n_actions=orders.size,
    names=("holding", "sold out"),
)
shop = TabularEnv(transitions, np.full(stock.size, 1 / stock.size), costs.table)

# %% [markdown]
# The owner orders whenever there are less than three. We watch for a month, and ask which costs explain it.

# %%
watched = lfd.collect(shop, lambda seen: np.maximum(3 - seen, 0), n_trajectories=10, horizon=30, rng=rng)
task = lfd.Task(shop, watched, discount=0.95, costs=costs)
result = lfd.learn(task, rng=rng)
print(task.access, "->", result.learner)
print(result.cost)
print("orders at each stock:", result.policy.table.argmax(axis=1))
print(lfd.certify(result.policy, task))

# %%
plots.draw_policy(result.policy, task)

# %% [markdown]
# With a table everything is exact but the demonstrations: the certificate has no rollouts in it.
#
# ## A simulator
#
# Four methods and two spaces: draw first states, draw next states, and say what is seen of a state. Here a mass on a
# line, pushed left or right; a state is a place and a speed. States are rows, and many are stepped at once.


# %%
class Mass:
    state_space = observation_space = gym.spaces.Box(-2.0, 2.0, (2,), np.float64)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float64)

    def sample_initial(self, n, rng):
        return np.column_stack([rng.uniform(-1, 1, n), np.zeros(n)])

    def sample_next(self, states, actions, rng):
        place, speed = states.T
        speed = np.clip(0.95 * speed + 0.2 * np.asarray(actions)[:, 0], -2, 2)
        return np.column_stack([np.clip(place + 0.2 * speed, -2, 2), speed])

    def is_absorbing(self, states):
        return np.zeros(len(states), dtype=bool)

    def observe(self, states):
        return states

    def states_of(self, observations):  # optional: what is seen is the state
        return observations


mass = Mass()
lfd.testing.check_generative_model(mass)  # says what is wrong, if anything is


def to_the_middle(seen):
    return np.clip(-2 * seen[:, :1] - 2 * seen[:, 1:], -1, 1)


pushes = lfd.collect(mass, to_the_middle, n_trajectories=5, horizon=60, rng=rng)
pushing = lfd.Task(mass, pushes, discount=0.95)
learned = lfd.learn(pushing, rng=rng)
print(pushing.access, "->", learned.learner)
print(
    "distance:", round(learned.facts["distance"], 3), "of random play:", round(learned.facts["distance_of_random"], 3)
)

# %%
plots.draw_policy(learned.policy, pushing)

# %% [markdown]
# Classic control and MuJoCo environments of Gymnasium are such simulators already; nothing has to be written for them.
#
# ## Episodes only
#
# An environment that can only be reset and stepped, here CartPole under a wrapper that this package does not know. What
# a wrapper does to a task cannot be guessed, so less is assumed, and the task says so.


# %%
class Nervous(gym.ActionWrapper):
    """Now and then it does the opposite."""

    def action(self, action):
        return 1 - action if self.np_random.random() < 0.1 else action


def balance(seen):
    return (seen @ [0.1, 0.3, 1.0, 0.5] > 0).astype(int)


nervous = Nervous(gym.make("CartPole-v1", max_episode_steps=100))
few = lfd.collect(nervous, balance, n_trajectories=5, rng=rng)
playing = lfd.Task(nervous, few, discount=0.99, horizon=100)
print(playing.access)
print(lfd.certify(balance, playing, rng=rng, n_rollouts=200).conclusion)

# %% [markdown]
# Evaluations and certificates work as before, by playing. To learn here takes networks: with the `sb3` extra
# `lfd.learn(playing)` plays the game between policy and costs with them, and with the `imitation` extra
# `lfd.learn(playing, "bc")` and `"gail"` are there to compare with. [Choosing a learner](../choosing.md) has the table.
