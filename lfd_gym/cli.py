"""The command line, ``lfd-gym``: one dataclass per sub-command, whose ``run`` does the work.

Each command lives beside the code it calls; this module only puts them together and turns expected failures (a wrong
argument, a missing file, a missing extra) into one line on standard error and exit code 2.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from typing import Annotated, Any, Protocol, cast

import gymnasium as gym
import tyro

import lfd_gym
from lfd_gym._jit import announce_compiling
from lfd_gym.commands.benchmark import Benchmark, Report
from lfd_gym.commands.certification import Certify
from lfd_gym.commands.demonstrations import Collect, Convert, Inspect
from lfd_gym.commands.reproduce import Reproduce
from lfd_gym.commands.show import Show
from lfd_gym.commands.training import Evaluate, Train
from lfd_gym.validation import LfdGymWarning

#: What shells report of a program that wrote to a closed pipe.
_CLOSED_PIPE = 141
#: What shells report of a program that the user stopped.
_INTERRUPTED = 130


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


#: A worked line for each command; one after the other they go the whole way.
EXAMPLES = (
    "lfd-gym envs",
    "lfd-gym show FrozenLake-v1 --expert optimal --discount 0.99 --video lake.gif",
    "lfd-gym collect --env CartPole-v1 --train-expert ppo --steps 30000 --out demos.npz",
    "lfd-gym inspect demos.npz --discount 0.99",
    "lfd-gym convert demos.npz --format imitation --out demos_folder",
    "lfd-gym train --demonstrations demos.npz --learner bc --discount 0.99 --out run",
    "lfd-gym evaluate run --rollouts 100",
    "lfd-gym certify run --delta 0.05 --picture certificate.png",
    "lfd-gym benchmark --preset quick --out quick",
    "lfd-gym reproduce growth --sizes 4 8 --out growth",
    "lfd-gym report quick",
)


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
    silence = announce_compiling(lambda: print("compiling kernels, once", file=sys.stderr, flush=True))
    try:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = cast(Any, _show_warning)
                # What imitation does to numbers is nothing that users could change.
                warnings.filterwarnings("ignore", "Converting a tensor with requires_grad=True to a scalar")
                warnings.filterwarnings("ignore", "tried to wrap .* as an observation")
                return _main(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # What is still in the buffer has nowhere to go, and must not be tried again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED_PIPE
    finally:
        silence()


def _main(arguments: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["--version"]:
        print(f"lfd-gym {lfd_gym.__version__}")
        return 0
    try:
        command: Command = tyro.cli(
            cast(Any, AnyCommand),
            prog="lfd-gym",
            description="Learning from demonstrations with guarantees.\n\nOne line for each command:\n\n"
            + "\n".join(f"$ {line}" for line in EXAMPLES),
            args=words,
        )
        command.run()
    except BrokenPipeError:
        raise
    except (ValueError, OSError, ImportError, gym.error.Error) as error:
        print(f"lfd-gym: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("lfd-gym: interrupted", file=sys.stderr)
        return _INTERRUPTED
    return 0


def _show_warning(message: Warning | str, category: type[Warning], filename: str, lineno: int, *rest: Any) -> None:
    """Say a warning of this package in a line, without the place in its code."""
    if issubclass(category, LfdGymWarning):
        print(f"lfd-gym: warning: {message}", file=sys.stderr)
    else:
        print(warnings.formatwarning(message, category, filename, lineno), end="", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
