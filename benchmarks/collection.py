"""Collecting demonstrations on the 16×16 gridworld, against `imitation.data.rollout.rollout` with as many environments.

Both collect the same number of trajectories of 200 actions, all side by side. Each time is the shortest of several runs
after a first one. The error is the largest deviation of the estimated costs from the exact ones, beside the confidence
radius of that many trajectories.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from imitation.data import rollout
from report_rows import Row, print_rows
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

import lfd_gym as lfd

ENV_ID = "lfd_gym/StochasticGridworld-v0"
N_ENVS = 64
HORIZON = 200
DISCOUNT = 0.9


def main() -> list[Row]:
    torch.set_num_threads(1)
    env = gym.make(ENV_ID, size=16, cost_seed=0)
    mdp = lfd.FiniteMDP.from_env(env, DISCOUNT)
    model = lfd.as_generative_model(env)
    venv = DummyVecEnv([lambda: gym.make(ENV_ID, size=16, cost_seed=0)] * N_ENVS)
    network = PPO("MlpPolicy", venv, seed=0, device="cpu").policy
    expert = mdp.optimal_policy(env.unwrapped.cost_features[:, 0])
    actions = expert.argmax(axis=1)

    def by_callable(observations: Any) -> Any:
        return actions[observations]

    def for_imitation(observations: Any, state: Any, starts: Any) -> Any:
        return by_callable(observations), None

    table = lfd.policies.policy_table(network, mdp)
    network_reference = seconds_and_demonstrations(partial(imitation_rollout, network, venv), 3)
    callable_reference = seconds_and_demonstrations(partial(imitation_rollout, for_imitation, venv), 3)
    cases = (
        ("Stable-Baselines3 policy, model", model, network, table, network_reference, 100.0),
        ("plain callable, model", model, by_callable, expert, callable_reference, 20.0),
        ("plain callable, environment", env, by_callable, expert, callable_reference, 20.0),
    )
    rows = []
    for name, source, policy, tabular, reference, bar in cases:
        exact = env.unwrapped.cost_features.T @ mdp.occupancy(tabular).ravel()
        rng = np.random.default_rng(0)
        seconds, demos = seconds_and_demonstrations(partial(lfd.collect, source, policy, N_ENVS, HORIZON, rng), 10)
        estimates = [lfd.feature_expectations(d, env.unwrapped.cost_features, DISCOUNT) for d in (reference[1], demos)]
        errors = [np.abs(estimate.values - exact).max() for estimate in estimates]
        rows.append(
            Row(
                case=f"{name}, {demos.n_transitions} transitions",
                reference=f"imitation rollout, {N_ENVS} envs",
                reference_seconds=reference[0] / reference[1].n_transitions * demos.n_transitions,
                seconds=seconds,
                bar=bar,
                error=f"{errors[0]:.3f} theirs, {errors[1]:.3f} ours, radius {estimates[1].radius(0.05).max():.3f}",
            )
        )
    return rows


def imitation_rollout(policy: Any, venv: DummyVecEnv) -> list[Any]:
    until = rollout.make_sample_until(min_episodes=N_ENVS)
    return list(rollout.rollout(policy, venv, until, np.random.default_rng(0), unwrap=False))


def seconds_and_demonstrations(work: Callable[[], Any], repeats: int) -> tuple[float, lfd.Demonstrations]:
    """Return the shortest of several runs, and the result of the last one."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    if not isinstance(result, lfd.Demonstrations):
        env = gym.make(ENV_ID, size=16)
        result = lfd.Demonstrations.from_imitation(result, env.observation_space, env.action_space, HORIZON)
    return min(times), result


if __name__ == "__main__":
    print_rows(main())
