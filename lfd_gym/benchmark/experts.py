"""Who demonstrates in an environment of a benchmark, what is shown to learners, and the ends of the scale of scores.

All of it is made once, before the cells are run: the expert, the demonstrations of each number and seed, and what the
expert and the random policy get. Cells take it over, and the folder of the run keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import gymnasium as gym
import numpy as np

from lfd_gym import datasets
from lfd_gym.assessment.scores import score
from lfd_gym.benchmark.spec import Cell, EnvironmentSpec, LearnerSpec, named_stream
from lfd_gym.demonstrations.collection import collect
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.optimal_expert import optimal_policy
from lfd_gym.policies.conversion import as_policy
from lfd_gym.policies.files import load_policy
from lfd_gym.policies.policy import Policy
from lfd_gym.policies.tables import UniformPolicy
from lfd_gym.task import Task
from lfd_gym.validation import FloatArray

#: Episodes that the ends of the scale are measured by, and how many are played side by side at most: networks then
#: decide for all of them at once.
N_REFERENCES, SIDE_BY_SIDE = 100, 25


@dataclass(frozen=True)
class References:
    """Mean returns of whole episodes of the random policy and of the expert: scores of 0 and 1.

    Attributes
    ----------
    random_return, expert_return
        The means.
    n_random, n_expert
        Of so many episodes.
    """

    random_return: float
    expert_return: float
    n_random: int
    n_expert: int

    def score(self, mean_return: float) -> float | None:
        """Return the normalised score; None if the two cannot be told apart."""
        return score(mean_return, self.expert_return, self.random_return)


@dataclass(frozen=True, eq=False)
class Shown:
    """What cells of one environment share.

    Attributes
    ----------
    expert
        Its policy; None if there are demonstrations only, or if it is one that no file can keep.
    references
        None where scores are those of a known true cost, or where there is no reward.
    demonstrations
        (number, seed) → what learners are shown.
    """

    expert: Policy | None
    references: References | None
    demonstrations: Mapping[tuple[int, int], Demonstrations]


@dataclass(frozen=True)
class Showing:
    """What is to be shown in one environment: for which numbers of demonstrations and which seeds."""

    environment: EnvironmentSpec
    wanted: tuple[tuple[int, int], ...]

    @property
    def id(self) -> str:
        """E.g. ``demonstrations of cartpole``."""
        return f"demonstrations of {self.environment.label}"


def show(showing: Showing) -> Shown:
    """Make the expert of an environment and let it demonstrate."""
    spec = showing.environment
    task = Task(gym.make(spec.env_id, **spec.kwargs), discount=spec.discount)
    kind, _, which = spec.expert.partition(":")
    if kind in ("data", "demonstrations"):
        recorded = datasets.load(which) if kind == "data" else Demonstrations.load(which)
        known = datasets.info(which) if kind == "data" else None
        references = _of_recorded(task, recorded, named_stream(f"references of {spec.label}"), known)
        return Shown(None, references, {pair: _chosen(spec, recorded, *pair) for pair in showing.wanted})
    expert = make_expert(spec, task)
    if task.access == "model":
        return Shown(expert, None, {pair: _from_model(spec, task, expert, *pair) for pair in showing.wanted})
    rng = named_stream(f"references of {spec.label}")
    random, best = (returns_of(task, policy, N_REFERENCES, rng) for policy in (_uniform(task), expert))
    shown = {
        pair: collect(task.env, expert, pair[0], rng=_stream(spec, *pair), n_envs=min(pair[0], SIDE_BY_SIDE))
        for pair in showing.wanted
    }
    return Shown(if_kept(expert), _scale(random, best), shown)


def make_expert(spec: EnvironmentSpec, task: Task) -> Policy:
    """Return the policy of the expert, where it has one."""
    kind, _, which = spec.expert.partition(":")
    if kind == "policy":
        return as_policy(load_policy(which), deterministic=True)
    if kind == "sb3":
        from lfd_gym.demonstrations.sb3_expert import load_expert

        network = load_expert(Path(which), task.env.observation_space, task.env.action_space)  # type: ignore[union-attr]
        return as_policy(network, deterministic=True)
    if kind == "trained":
        return _trained(spec, which)
    if kind != "optimal":
        raise ValueError(f"expert of {spec.label} has demonstrations only, and no policy: {spec.expert}")
    if task.access != "model":
        return optimal_policy(
            gym.make(spec.env_id, **spec.kwargs), spec.discount, rng=named_stream(f"expert of {spec.label}")
        )
    if task.true_cost is None:
        raise ValueError(
            f"environment {spec.label} has no reward to be optimal for: it offers neither P nor cost_features"
        )
    return as_policy(task.model.optimal_policy(task.true_cost.table[:, 0]))


def _trained(spec: EnvironmentSpec, how: str) -> Policy:
    """Train an expert on the reward; once, since all cells share it."""
    from lfd_gym.baselines.neural.seeding import SeededTorch
    from lfd_gym.demonstrations.sb3_expert import train_expert

    algorithm, _, steps = how.partition(":")
    rng = named_stream(f"expert of {spec.label}")
    with SeededTorch(rng) as seed:
        env = gym.make(spec.env_id, **spec.kwargs)
        return as_policy(train_expert(env, algorithm, int(steps), seed), deterministic=True)  # type: ignore[arg-type]


# -- demonstrations ---------------------------------------------------------------------------------------------------


def _stream(spec: EnvironmentSpec, count: int, seed: int) -> np.random.Generator:
    return Cell(spec, LearnerSpec("expert"), count, seed).demonstration_stream()


def _from_model(spec: EnvironmentSpec, task: Task, expert: Policy, count: int, seed: int) -> Demonstrations:
    if spec.horizon is None:
        raise ValueError(f"horizon of environment {spec.label} must be given: it has a table of transitions")
    return collect(task.simulator, expert, n_trajectories=count, horizon=spec.horizon, rng=_stream(spec, count, seed))


def _chosen(spec: EnvironmentSpec, recorded: Demonstrations, count: int, seed: int) -> Demonstrations:
    """Choose some of the demonstrations that are there."""
    if count > len(recorded):
        raise ValueError(
            f"n_demonstrations of {spec.label} must be at most {len(recorded)}, which are all: got {count}"
        )
    chosen = _stream(spec, count, seed).choice(len(recorded), size=count, replace=False)
    return recorded.select(np.sort(chosen))


def side_by_side(spec: EnvironmentSpec, n_episodes: int) -> gym.vector.VectorEnv:
    """Make as many copies of an environment as play that many episodes in equal rounds."""
    n_envs = min(n_episodes, SIDE_BY_SIDE)
    return gym.vector.SyncVectorEnv([lambda: gym.make(spec.env_id, **spec.kwargs)] * n_envs)


# -- the scale of scores ----------------------------------------------------------------------------------------------


def _uniform(task: Task) -> Policy:
    return UniformPolicy(task.action_space)


def returns_of(task: Task, policy: Policy, n_episodes: int, rng: np.random.Generator) -> FloatArray:
    """Return the sums of rewards of whole episodes."""
    return _totals(collect(task.env, policy, n_episodes, rng=rng, n_envs=min(n_episodes, SIDE_BY_SIDE)))


def _totals(demonstrations: Demonstrations) -> FloatArray:
    return np.array([np.asarray(episode.rewards).sum() for episode in demonstrations], dtype=np.float64)


def _of_recorded(
    task: Task, recorded: Demonstrations, rng: np.random.Generator, known: datasets.DatasetInfo | None
) -> References | None:
    if known is not None:
        count = known.n_reference_episodes
        return References(known.random_return, known.expert_return, count, count)
    if recorded.rewards is None or task.access == "model":
        return None
    return _scale(returns_of(task, _uniform(task), N_REFERENCES, rng), _totals(recorded))


def _scale(random: FloatArray, expert: FloatArray) -> References | None:
    if np.ptp(np.concatenate([random, expert])) == 0:
        return None  # there is no reward
    return References(float(random.mean()), float(expert.mean()), random.size, expert.size)


def if_kept(policy: Policy) -> Policy | None:
    """Return the policy if a file can keep it: one that looks ahead with the simulator cannot be kept, nor sent."""
    try:
        policy.to_data()
    except ValueError:
        return None
    return policy
