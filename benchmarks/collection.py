"""Collecting demonstrations on the 16×16 gridworld, against `imitation.data.rollout.rollout` with as many environments.

Both collect 256 trajectories of 200 actions; `imitation` and our environment run 64 side by side, our model runs all.
Each time is the median of equally many runs, taken in turn after a first one. The error is the largest deviation of the
estimated costs from the exact ones, beside the confidence radius of that many trajectories.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from imitation.data import rollout
from report_rows import Row, run_benchmark
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

import lfd_gym as lfd
from lfd_gym.policies.conversion import policy_table

ENV_ID = "lfd_gym/StochasticGridworld-v0"
N_ENVS = 64
N_TRAJECTORIES = 256
HORIZON = 200
DISCOUNT = 0.9
REPEATS = 5


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

    table = policy_table(network, mdp)
    cases = (
        ("Stable-Baselines3 policy, model", model, network, network, table, 100.0),
        ("plain callable, model", model, by_callable, for_imitation, expert, 20.0),
        ("plain callable, environment", env, by_callable, for_imitation, expert, 20.0),
    )
    rows = []
    for name, source, policy, reference_policy, tabular, bar in cases:
        exact = env.unwrapped.cost_features.T @ mdp.occupancy(tabular).ravel()
        rng = np.random.default_rng(0)
        n_envs = N_ENVS if source is env else None  # a model runs all trajectories side by side
        theirs, ours = (
            partial(imitation_rollout, reference_policy, venv),
            partial(lfd.collect, source, policy, N_TRAJECTORIES, HORIZON, rng, n_envs=n_envs),
        )
        (reference_seconds, trajectories), (seconds, demos) = median_times(theirs, ours)
        spaces = (env.observation_space, env.action_space)
        reference = lfd.Demonstrations.from_imitation(trajectories, *spaces, HORIZON)
        estimates = [lfd.feature_expectations(d, env.unwrapped.cost_features, DISCOUNT) for d in (reference, demos)]
        errors = [np.abs(estimate.values - exact).max() for estimate in estimates]
        rows.append(
            Row(
                case=f"{name}, {demos.n_transitions} transitions",
                reference=f"imitation rollout, {N_ENVS} envs",
                reference_seconds=reference_seconds / reference.n_transitions * demos.n_transitions,
                seconds=seconds,
                bar=bar,
                error=f"{errors[0]:.3f} theirs, {errors[1]:.3f} ours, radius {estimates[1].radius(0.05).max():.3f}",
            )
        )
    return rows


def imitation_rollout(policy: Any, venv: DummyVecEnv) -> list[Any]:
    until = rollout.make_sample_until(min_episodes=N_TRAJECTORIES)
    return list(rollout.rollout(policy, venv, until, np.random.default_rng(0), unwrap=False))


def median_times(*works: Callable[[], Any]) -> list[tuple[float, Any]]:
    """Run all in turn, again and again, and return the median time and the last result of each."""
    results = [work() for work in works]  # compiles, too
    times = np.zeros((REPEATS, len(works)))
    for repeat in range(REPEATS):
        for k, work in enumerate(works):
            start = time.perf_counter()
            results[k] = work()
            times[repeat, k] = time.perf_counter() - start
    return list(zip(np.median(times, axis=0), results, strict=True))


if __name__ == "__main__":
    run_benchmark(main, __doc__)
