"""The command line, ``lfd-gym``: one dataclass per sub-command, whose ``run`` does the work.

Each command lives beside the code it calls; this module only puts them together and turns expected failures (a wrong
argument, a missing file, a missing extra) into one line on standard error and exit code 2.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, Protocol, cast

import gymnasium as gym
import numpy as np
import tyro

import lfd_gym
from lfd_gym.commands.benchmark import Benchmark, Report
from lfd_gym.commands.certification import Certify
from lfd_gym.commands.demonstrations import Collect, Convert, Inspect
from lfd_gym.commands.reproduce import Reproduce
from lfd_gym.commands.training import Evaluate, Train
from lfd_gym.envs.rendering import Picture, render_grid
from lfd_gym.files import replacing_file
from lfd_gym.model.mdp import FiniteMDP

#: What shells report of a program that wrote to a closed pipe.
_CLOSED_PIPE = 141


class Command(Protocol):
    """A parsed sub-command."""

    def run(self) -> None:
        """Do what was asked."""
        ...


@dataclass(frozen=True)
class Envs:
    """List the environments this package registers."""

    def run(self) -> None:
        """Print one line per environment."""
        for env_id, spec in sorted(gym.registry.items()):
            if env_id.startswith("lfd_gym/"):
                limit = f"max_episode_steps={spec.max_episode_steps}"
                print(f"{env_id:40} {limit}")


@dataclass(frozen=True)
class Show:
    """Draw an environment: a gridworld with its true cost and optimal policy, any other as it renders itself."""

    env_id: tyro.conf.Positional[str]
    """What `gymnasium.make` takes, e.g. lfd_gym/StochasticGridworld-v0."""
    out: Path = Path("env.png")
    """The PNG file to write."""
    size: int = 16
    """The side of a gridworld."""
    seed: int = 0
    """Draws the costs of a gridworld, and the first state of other environments."""
    discount: float = 0.9
    """Discount of a gridworld's policy."""

    def run(self) -> None:
        """Write the picture and say where it is."""
        if self.env_id.split(":")[-1] == "lfd_gym/StochasticGridworld-v0":
            picture = self._gridworld()
        else:
            env: Any = gym.make(self.env_id, render_mode="rgb_array")
            env.reset(seed=self.seed)
            picture = np.asarray(env.render(), dtype=np.uint8)
            env.close()
            print(f"{self.env_id}: observations {env.observation_space}, actions {env.action_space}")
        write_png(self.out, picture)
        print(f"picture: {self.out}")

    def _gridworld(self) -> Picture:
        env = gym.make(self.env_id, size=self.size, cost_seed=self.seed)
        mdp = FiniteMDP.from_env(env, self.discount)
        source: Any = env.unwrapped
        cost = source.cost_features[:, 0]
        policy = mdp.optimal_policy(cost)
        print(f"{self.env_id}: {mdp.n_states} states, {mdp.n_actions} actions, discount {self.discount}")
        print(f"expected cost of the optimal policy: {mdp.expected_cost(policy, cost):.4f}")
        return render_grid(cost, self.size, policy=policy, occupancy=mdp.occupancy(policy))


def write_png(path: Path, picture: Picture) -> None:
    """Write an RGB picture as a PNG file."""
    from matplotlib.image import imsave

    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing_file(path, overwrite=True) as unfinished:
        imsave(unfinished, picture, format="png")


AnyCommand = (
    Annotated[Envs, tyro.conf.subcommand("envs")]
    | Annotated[Show, tyro.conf.subcommand("show")]
    | Annotated[Collect, tyro.conf.subcommand("collect")]
    | Annotated[Inspect, tyro.conf.subcommand("inspect")]
    | Annotated[Convert, tyro.conf.subcommand("convert")]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[Certify, tyro.conf.subcommand("certify")]
    | Annotated[Benchmark, tyro.conf.subcommand("benchmark")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Report, tyro.conf.subcommand("report")]
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and run the chosen command; a reader who has gone away ends it quietly."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that does not know γ must not end a run that is done
            stream.reconfigure(errors="replace")
    try:
        try:
            return _main(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # What is still in the buffer has nowhere to go, and must not be tried again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED_PIPE


def _main(arguments: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["--version"]:
        print(f"lfd-gym {lfd_gym.__version__}")
        return 0
    command: Command = tyro.cli(
        cast(Any, AnyCommand),
        prog="lfd-gym",
        description="Learning from demonstrations with guarantees.",
        args=words,
    )
    try:
        command.run()
    except BrokenPipeError:
        raise
    except (ValueError, OSError, ImportError, gym.error.Error) as error:
        print(f"lfd-gym: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
