"""What users write in a module of their own, as the README shows it; tests put it into a temporary folder."""

from pathlib import Path

OWN_MODULE = """
import gymnasium as gym
import numpy as np

from lfd_gym.baselines import Learner, LearningResult, register_learner
from lfd_gym.envs import TabularEnv


def warehouse(capacity=10, largest_order=3):
    stock, orders = np.arange(capacity + 1), np.arange(largest_order + 1)
    after_delivery = np.minimum(stock[:, None] + orders, capacity)
    transitions = np.zeros((stock.size, orders.size, stock.size))
    for sold, probability in enumerate([0.1, 0.2, 0.3, 0.4]):
        left = np.maximum(after_delivery - sold, 0)
        np.add.at(transitions, (*np.indices(left.shape), left), probability)
    holding, sold_out = stock / capacity, (stock == 0).astype(float)
    cost_features = np.column_stack([(holding + sold_out) / 2, holding, sold_out])
    return TabularEnv(transitions, np.full(stock.size, 1 / stock.size), cost_features.repeat(orders.size, axis=0))


gym.register("Warehouse-v0", entry_point=warehouse, max_episode_steps=100)


class SmoothedBC(Learner):
    def __init__(self, visits=1.0):
        self.visits = visits

    def learn(self, task, budget, rng):
        counts = np.full((task.observation_space.n, task.action_space.n), self.visits)
        np.add.at(counts, (task.demonstrations.acted_on, task.demonstrations.actions), 1)
        return LearningResult(counts / counts.sum(axis=1, keepdims=True))


register_learner("smoothed_bc", SmoothedBC)


def fill_up(observations):
    return np.clip(4 - observations, 0, 3)


class NotAnObject:
    pass


number = 3
"""


def write_own_module(folder: Path) -> None:
    (folder / "my_module.py").write_text(OWN_MODULE)
