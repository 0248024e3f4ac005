"""Make the datasets that come with the package again: `lfd_gym/datasets/*.npz` and their `index.json`.

Each holds 25 whole episodes of an expert of ``experts.py``: a network trained by ``train_experts.py``, which takes its
best actions, or for the lander the rule written by hand. Reference returns are those of 100 other episodes of the
expert and of the random policy. It takes half a minute; the same versions on the same kind of machine give the same
files.

    python benchmarks/make_datasets.py
    python benchmarks/make_datasets.py --names cartpole-expert --out out/datasets
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import tyro
from experts import Kind, installed_id, load_expert, random_and_expert_returns

import lfd_gym as lfd
from lfd_gym.datasets import OLDER, DatasetInfo
from lfd_gym.resources import versions

FOLDER = Path(lfd.datasets.__file__).parent
N_TRAJECTORIES, SEED = 25, 0
N_REFERENCES, REFERENCE_SEED = 100, 20_000
#: Name of the dataset → environment, and which of its experts.
SOURCES: dict[str, tuple[str, Kind]] = {
    "acrobot-expert": ("Acrobot-v1", "sb3"),
    "cartpole-expert": ("CartPole-v1", "sb3"),
    "halfcheetah-expert": ("HalfCheetah-v5", "sb3"),
    "hopper-expert": ("Hopper-v5", "sb3"),
    "inverted-double-pendulum-expert": ("InvertedDoublePendulum-v5", "sb3"),
    "inverted-pendulum-expert": ("InvertedPendulum-v5", "sb3"),
    "lunarlander-expert": ("LunarLander-v3", "rule"),
    "mountaincar-continuous-expert": ("MountainCarContinuous-v0", "sb3"),
    "mountaincar-expert": ("MountainCar-v0", "sb3"),
    "pendulum-expert": ("Pendulum-v1", "sb3"),
}
#: Whose files are in single precision: all of them together stay below 10 MB.
LARGE = ("halfcheetah-expert", "hopper-expert")
WHO: dict[Kind, str] = {
    "sb3": "a network trained with Stable-Baselines3 on the reward, its best actions",
    "rule": "a rule written by hand, after the heuristic in Gymnasium's source",
}


@dataclass(frozen=True)
class Options:
    """Record the episodes and write the files."""

    names: tuple[str, ...] = tuple(SOURCES)
    """Which datasets."""
    out: Path = FOLDER
    """Where to write; index.json there keeps what it says of other datasets."""


def make(name: str, out: Path) -> DatasetInfo:
    """Write one dataset, and return what is to be known of it."""
    env_id, kind = SOURCES[name]
    env, expert = gym.make(installed_id(env_id)), load_expert(env_id, kind)
    demos = lfd.collect(env, expert, N_TRAJECTORIES, rng=np.random.default_rng(SEED), n_envs=N_TRAJECTORIES)
    demos = as_newest(demos, env_id).with_provenance(env_id=env_id, seed=SEED, policy=WHO[kind])
    kept = in_single_precision(demos) if name in LARGE else demos
    kept.save(out / f"{name}.npz", overwrite=True)
    references = random_and_expert_returns(env_id, kind, N_REFERENCES, REFERENCE_SEED)
    found = versions()
    return DatasetInfo(
        name=name,
        env_id=env_id,
        expert=WHO[kind],
        expert_return=round(float(references.expert.mean()), 4),
        expert_deviation=round(float(references.expert.std(ddof=1)), 4),
        random_return=round(float(references.random.mean()), 4),
        random_deviation=round(float(references.random.std(ddof=1)), 4),
        n_reference_episodes=N_REFERENCES,
        n_trajectories=len(demos),
        n_transitions=demos.n_transitions,
        licence="MIT",
        made_with=f"lfd-gym {lfd.__version__}, gymnasium {found['gymnasium']}, numpy {found['numpy']}",
    )


def in_single_precision(demos: lfd.Demonstrations) -> lfd.Demonstrations:
    """Return the same with half the digits of observations and rewards."""
    assert demos.rewards is not None
    return replace(demos, observations=demos.observations.astype(np.float32), rewards=demos.rewards.astype(np.float32))


def as_newest(demos: lfd.Demonstrations, env_id: str) -> lfd.Demonstrations:
    """Leave out what only the older version of the environment observes, which is always zero."""
    if env_id != "InvertedDoublePendulum-v5" or installed_id(env_id) != OLDER[env_id]:
        return demos
    assert not demos.observations[:, 9:].any()
    space = gym.spaces.Box(-np.inf, np.inf, (9,), np.float64)
    episodes = [episode._replace(observations=episode.observations[:, :9]) for episode in demos]
    return lfd.Demonstrations.from_episodes(episodes, space, demos.action_space, demos.horizon, demos.provenance)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make what the command line asks for."""
    options = tyro.cli(Options, args=arguments, description=__doc__)
    unknown = sorted(set(options.names) - set(SOURCES))
    if unknown:
        sys.exit(f"there are no datasets {', '.join(unknown)}; there are {', '.join(SOURCES)}")
    options.out.mkdir(parents=True, exist_ok=True)
    index = options.out / "index.json"
    known = json.loads(index.read_text()) if index.exists() else {}
    for name in options.names:
        known[name] = asdict(make(name, options.out))
        size = (options.out / f"{name}.npz").stat().st_size
        print(f"{name}: expert {known[name]['expert_return']}, random {known[name]['random_return']}, {size:,} bytes")
        index.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
