"""The command line, ``lfd-gym``: one dataclass per sub-command, whose ``run`` does the work.

Each command lives beside the code it calls; this module only puts them together and turns expected failures (a wrong
argument, a missing file, a missing extra) into one line on standard error and exit code 2.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol, cast

import gymnasium as gym
import tyro

import lfd_gym
from lfd_gym.mdp import FiniteMDP


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
    """Draw an environment: its true cost and the policy that is optimal for it."""

    env_id: tyro.conf.Positional[str]
    """What `gymnasium.make` takes, e.g. lfd_gym/StochasticGridworld-v0."""
    out: Path = Path("env.png")
    """The PNG file to write."""
    size: int | None = None
    """The side of the grid; the environment's own default if not given."""
    seed: int = 0
    """Draws the costs."""
    discount: float = 0.9
    """Discount of the policy that is shown."""

    def run(self) -> None:
        """Write the picture and say where it is."""
        kwargs: dict[str, Any] = {"cost_seed": self.seed}
        if self.size is not None:
            kwargs["size"] = self.size
        env = gym.make(self.env_id, **kwargs)
        source: Any = env.unwrapped
        if not hasattr(source, "picture"):
            raise ValueError(f"{self.env_id} cannot be drawn: lfd-gym show draws the gridworlds that `lfd-gym envs` lists")
        mdp = FiniteMDP.from_env(env, self.discount)
        cost = source.cost_features[:, 0]
        policy = mdp.optimal_policy(cost)
        write_png(self.out, source.picture(policy=policy))
        print(f"{self.env_id}: {mdp.n_states} states, {mdp.n_actions} actions, discount {self.discount}")
        print(f"expected cost of the optimal policy: {mdp.expected_cost(policy, cost):.4f}")
        print(f"picture: {self.out}")


AnyCommand = Annotated[Envs, tyro.conf.subcommand("envs")] | Annotated[Show, tyro.conf.subcommand("show")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and run the chosen command."""
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
    except (ValueError, OSError, ImportError, gym.error.Error) as error:
        print(f"lfd-gym: {error}", file=sys.stderr)
        return 2
    return 0
